"""The resident: a process that answers a user's commands from a workspace that it holds open."""

"""Care of a workspace: creating, checking, repairing, backing up, pruning and rewinding it."""

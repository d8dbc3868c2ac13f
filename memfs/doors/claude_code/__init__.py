"""The door of Claude Code, and of programs whose hooks speak as its do: hooks, and what installs them."""

"""Doors into a workspace: the command line, MCP, hooks, importers and frameworks."""

"""Hooks for Claude Code, and for programs whose hooks speak as its do; and what installs them."""

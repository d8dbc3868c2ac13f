"""Doors: argument parsing and wire formats only."""

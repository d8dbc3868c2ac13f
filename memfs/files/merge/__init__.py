"""Joining versions of memory files that began from one (B3)."""

"""Bytes and paths: reading, writing, locking, journalling, encoding."""

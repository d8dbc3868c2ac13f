"""The version of memfs."""

__version__ = "0.1.0"

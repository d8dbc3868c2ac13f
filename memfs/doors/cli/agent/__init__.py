"""The verbs of ``memfs agent``."""

"""The verbs of ``memfs team``."""

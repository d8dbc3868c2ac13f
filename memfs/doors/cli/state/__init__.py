"""Verbs of ``memfs state``: iterations, documents and checkpoints of multi-agent systems."""

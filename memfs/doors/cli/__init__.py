"""The ``memfs`` command: arguments in, text or JSON out."""

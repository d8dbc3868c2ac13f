"""The ``memfs`` command: arguments in, text or JSON out. What the verbs do is the workspace's business."""

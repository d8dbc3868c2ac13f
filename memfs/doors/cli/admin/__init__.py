"""The group ``memfs admin``: care of a whole workspace."""

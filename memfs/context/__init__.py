"""What gives an agent its context: built-in sources, plugins, mounts, and the files that agents read."""

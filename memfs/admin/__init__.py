"""Care of a workspace: making it, checking it, rewinding it."""

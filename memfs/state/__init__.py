"""The state of a long-running multi-agent system: iterations, checkpoints, feedback, archives."""

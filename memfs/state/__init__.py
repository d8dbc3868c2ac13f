"""States: what a long-running multi-agent system keeps — iterations, checkpoints, feedback, archives (seed 001)."""

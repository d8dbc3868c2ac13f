"""What a team does with memory that is in git: review it, merge it, ask its past, undo changes."""

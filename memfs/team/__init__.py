"""What a team does with memory that lies in git: review it, merge it, ask its past, undo changes."""

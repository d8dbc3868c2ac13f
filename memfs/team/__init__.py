"""What a team does with memory that lies in git: review it, merge it, travel in it, undo it."""

"""Who was given which items, and when: a record that stays on this machine."""

"""What is known of contents: one database in the user's cache, which can always be made again."""

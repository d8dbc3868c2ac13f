"""Git: reading and writing history, without a person noticing more than commits."""

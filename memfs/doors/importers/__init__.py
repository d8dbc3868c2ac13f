"""What other stores keep, read as memories. Which of them are stored, and under which ids, is decided below."""

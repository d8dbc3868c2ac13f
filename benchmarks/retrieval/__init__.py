"""How good recall is: questions with known evidence, asked of memfs and of plain ways to search."""

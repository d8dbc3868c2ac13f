"""Contract classes for the tests of authors of plugins and embedders."""

"""Fixtures and contract classes for tests, also for authors of engines and plugins."""

"""Measures memfs against its budgets: ``python -m benchmarks``, or ``make bench``."""

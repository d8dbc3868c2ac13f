"""A workspace with a resident, for the tests of its faults."""

from kit.residents import ask, resident, root  # noqa: F401  fixtures

"""Body: reading fields of an item's ``data``, which anybody may have written by hand.

Owns that what is of another sort than expected counts as not being there. Which fields there are, it does not know.
"""

from __future__ import annotations

from typing import Any


def text_in(value: object) -> str:
    """A text, "" for anything else."""
    return value if isinstance(value, str) else ""


def texts_in(value: object) -> tuple[str, ...]:
    """The texts of a list, or one alone; none for anything else."""
    values: Any = value if isinstance(value, (list, tuple)) else (value,)
    return tuple(one for one in values if isinstance(one, str))


def count_in(value: object) -> int:
    """A whole number of at least 0; 0 for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0

"""How many errors of one file are described."""

from __future__ import annotations

import time

import pytest

from memfs.format.schema import MAX_ERRORS, Schemas
from memfs.model.kinds import KindTable


@pytest.mark.parametrize(
    "wrong",
    [
        {f"unknown{number}": 1 for number in range(20_000)},
        {"tags": list(range(20_000))},
        {"links": [{}] * 20_000},
    ],
)
def test_row_16_no_more_errors_are_looked_for_than_a_person_reads(wrong: dict[str, object]) -> None:
    """However many fields are wrong, the first twenty are named, and soon."""
    schemas = Schemas()
    kind = KindTable().get("semantic")
    schemas.check_item({"title": "a", "content": 1}, kind)
    started = time.process_time()
    errors = schemas.check_item({"title": "a", "content": "b"} | wrong, kind)

    assert 0 < len(errors) <= MAX_ERRORS
    assert time.process_time() - started < 10

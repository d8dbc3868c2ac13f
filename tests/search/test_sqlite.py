"""What the SQLite engine does beyond the contract."""

from __future__ import annotations

from pathlib import Path

import pytest

from kit.corpus import FILTERS, WORDS, brute_force, corpus, item
from memfs.errors import IndexUnavailable
from memfs.model import Query
from memfs.search import sqlite
from memfs.search.sqlite import SqliteIndex


def test_fts_scores_are_close_to_ours_where_they_are_taken_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the bound for exact scores the same items are found, in nearly the same order."""
    items = [one for one in corpus(300) if len(one.content) <= 600]  # of a long one FTS5 sees the best passage only
    index = SqliteIndex(tmp_path)
    index.add(items)
    monkeypatch.setattr(sqlite, "_EXACT", 0)
    for word in WORDS:
        for name in ("none", "type and dates", "all of two tags"):
            query = Query(text=f"{word} pool", limit=1000, **FILTERS[name])  # type: ignore[arg-type]
            expected = brute_force(items, query)
            found = [hit.id for hit in index.search(query)]
            assert set(found) == {key for key, _ in expected}
            assert len(set(found[:10]) & {key for key, _ in expected[:12]}) >= min(7, len(expected))
    index.close()


def test_ties_at_the_limit_are_settled_by_id_by_fts_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many share the score at the limit, the smallest ids are chosen."""
    monkeypatch.setattr(sqlite, "_EXACT", 0)
    index = SqliteIndex(tmp_path)
    index.add(item(f"twin-{number:04d}", "the very same words") for number in reversed(range(700)))
    assert [hit.id for hit in index.search(Query(text="very words", limit=9))] == [f"twin-{n:04d}" for n in range(9)]
    index.close()


def test_damage_is_said_in_our_words(tmp_path: Path) -> None:
    """What SQLite says of a damaged file becomes IndexUnavailable."""
    (tmp_path / "index.sqlite").write_bytes(b"no database" * 1000)
    with pytest.raises(IndexUnavailable, match="SQLite"):
        SqliteIndex(tmp_path).search(Query(text="pool"))

"""What the SQLite engine does beyond the contract."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path

import pytest

from kit.corpus import FILTERS, WORDS, brute_force, corpus, item
from memfs.errors import IndexUnavailable
from memfs.model import Query
from memfs.search import sqlite
from memfs.search.sqlite import SqliteIndex


def test_what_is_added_bit_by_bit_is_found_as_what_is_added_at_once(tmp_path: Path) -> None:
    """Segments that were joined, and those beside others, say the same, also of what was replaced."""
    items = corpus(400)
    whole, parts = SqliteIndex(tmp_path / "whole"), SqliteIndex(tmp_path / "parts")
    for name, index, sizes in (("whole", whole, [400]), ("parts", parts, [300, 5, 40, 30, 20, 5])):
        (tmp_path / name).mkdir()
        rest = iter(items)
        for size in sizes:
            index.add(islice(rest, size))
            index.flush()
    with closing(sqlite3.connect(tmp_path / "parts" / "index.sqlite")) as base:
        assert 1 < base.execute("SELECT count(*) FROM segments").fetchone()[0] < 4
    for word in WORDS:
        for name in ("none", "type and dates", "all of two tags"):
            query = Query(text=f"{word} pool", limit=1000, **FILTERS[name])  # type: ignore[arg-type]
            found = [(hit.id, hit.similarity) for hit in parts.search(query)]
            assert found == [(hit.id, hit.similarity) for hit in whole.search(query)]
            assert {key for key, _ in found} == {key for key, _ in brute_force(items, query)}
    parts.close()
    whole.close()


def test_what_was_replaced_is_not_found_by_what_it_said(tmp_path: Path) -> None:
    """Its old terms stay in the file under a number that is no longer used, in this process and the next."""
    index = SqliteIndex(tmp_path)
    index.add([item("one", "an anvil"), item("two", "a barn")])
    index.flush()
    index.add([item("one", "a plough")])
    for _ in range(2):
        assert index.search(Query(text="anvil")) == []
        assert [hit.id for hit in index.search(Query(text="plough"))] == ["one"]
        index.flush()
        index.release()
    index.close()


def test_a_folder_may_have_any_name(tmp_path: Path) -> None:
    """What ends a path in an address of SQLite's, and a name that is not text, are part of it."""
    for name in ("a%20b?c#d", os.fsdecode(b"caf\xe9")):
        folder = tmp_path / name
        folder.mkdir()
        index = SqliteIndex(folder)
        index.add([item("one", "an anvil")])
        index.flush()
        index.close()
        assert (folder / "index.sqlite").is_file()
        index = SqliteIndex(folder)
        assert [hit.id for hit in index.search(Query(text="anvil"))] == ["one"]
        index.close()


def test_ties_at_the_limit_are_settled_by_id(tmp_path: Path) -> None:
    """However many share the score at the limit, the smallest ids are chosen."""
    index = SqliteIndex(tmp_path)
    index.add(item(f"twin-{number:04d}", "the very same words") for number in reversed(range(700)))
    assert [hit.id for hit in index.search(Query(text="very words", limit=9))] == [f"twin-{n:04d}" for n in range(9)]
    index.close()


def test_damage_is_an_error_of_ours(tmp_path: Path) -> None:
    """What SQLite says of a damaged file becomes IndexUnavailable."""
    index = SqliteIndex(tmp_path)
    index.add([item("one", "a pool of water")])
    index.flush()
    index.close()
    (tmp_path / "index.sqlite").write_bytes(b"no database" * 1000)
    with pytest.raises(IndexUnavailable, match="sqlite"):
        index.search(Query(text="pool"))
    index.close()
    index.add([item("two", "a pond")])
    with pytest.raises(IndexUnavailable, match="sqlite"):
        index.flush()
    index.close()
    (tmp_path / "columns").write_bytes(b"nothing of ours")
    with pytest.raises(IndexUnavailable, match="damaged"):
        index.search(Query(text="pool"))


def test_what_pythons_own_module_refuses_is_an_error_of_ours_too(tmp_path: Path) -> None:
    """Its errors, for invalid text or a closed connection, have no name that SQLite gave them."""
    index = SqliteIndex(tmp_path)
    index.add([item("one", "a pool of water")])
    index.flush()
    index.release()
    with closing(sqlite3.connect(tmp_path / "index.sqlite")) as base:
        base.execute("UPDATE postings SET term = CAST(x'7080' AS TEXT) WHERE term = 'pool'")
        base.commit()
    with pytest.raises(IndexUnavailable, match="UTF-8"):
        index.terms("p")
    assert index._open is not None
    index._open.close()
    with pytest.raises(IndexUnavailable, match="closed"):
        index.search(Query(text="water"))


def test_a_last_item_without_words_leaves_nothing_unwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A segment that was full is kept even if nothing that follows it belongs in another."""
    monkeypatch.setattr(sqlite, "MOST_PENDING", 2)
    index = SqliteIndex(tmp_path)
    index.add([item("one", "a barn"), item("two", "a barn"), item("wordless", "?!")])
    index.flush()
    index.release()
    assert [hit.id for hit in index.search(Query(text="barn"))] == ["one", "two"]
    index.close()


def test_a_file_that_is_cut_short_while_it_is_open_kills_nobody(tmp_path: Path) -> None:
    """Nothing of it is mapped into memory, so that no question ends in SIGBUS: it finds less, or says what is wrong."""
    index = SqliteIndex(tmp_path)
    index.add(corpus(400))
    index.flush()
    index.release()
    assert index.search(Query(text="pool"))
    assert "index.sqlite" not in Path("/proc/self/maps").read_text()
    os.truncate(tmp_path / "index.sqlite", 0)
    for word in WORDS:
        with suppress(IndexUnavailable):
            index.search(Query(text=word))
    index.close()

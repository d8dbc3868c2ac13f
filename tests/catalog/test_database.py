"""The file of derived data, beside what a program does with its processes."""

from __future__ import annotations

import os
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kit.patience import until
from memfs.catalog.database import Database
from memfs.errors import StorageIO
from memfs.fs.lock import no_fork

_SCHEMA = "CREATE TABLE IF NOT EXISTS rows (text TEXT)"


def test_a_fork_waits_until_no_thread_is_within_sqlite(tmp_path: Path) -> None:
    """A child would wait forever for a lock of SQLite's that a thread of its parent held at the fork (A5)."""
    database = Database(tmp_path / "rows", _SCHEMA, "", what="rows")
    inside, left = threading.Event(), threading.Event()

    def write() -> None:
        database.change(lambda _: (inside.set(), until(lambda: no_fork.wanted), left.set()))

    writer = threading.Thread(target=write)
    writer.start()
    inside.wait()
    child = os.fork()
    if child == 0:
        rows = database.change(lambda base: base.execute("INSERT INTO rows VALUES ('child')").rowcount)
        os._exit(rows - 1)
    assert left.is_set()
    assert until(lambda: os.waitpid(child, os.WNOHANG) == (child, 0))
    writer.join()
    assert database.ask(lambda base: base.execute("SELECT text FROM rows").fetchall()) == [("child",)]
    database.close()


def test_many_may_make_a_file_at_once(tmp_path: Path) -> None:
    """Each waits for the one that lays out the tables."""
    for number in range(30):
        path, together = tmp_path / f"rows{number}", threading.Barrier(4)

        def first(path: Path = path, together: threading.Barrier = together) -> int:
            database = Database(path, _SCHEMA, "", what="rows")
            together.wait()
            found = database.change(lambda base: base.execute("INSERT INTO rows VALUES ('one')").rowcount)
            database.close()
            return found

        with ThreadPoolExecutor(4) as pool:
            assert [one.result() for one in [pool.submit(first) for _ in range(4)]] == [1] * 4


def test_what_cannot_be_made_again_is_set_aside_only_where_it_is_damaged(tmp_path: Path) -> None:
    """Memory that SQLite lacked says nothing about the file: the rows stay; a damaged file is kept beside."""
    database = Database(tmp_path / "rows.db", _SCHEMA, what="rows", root=tmp_path)
    database.change(lambda base: base.execute("INSERT INTO rows VALUES ('kept')").rowcount)

    def fails(_: sqlite3.Connection) -> None:
        error = sqlite3.OperationalError("out of memory")
        error.sqlite_errorname = "SQLITE_NOMEM"
        raise error

    with pytest.raises(StorageIO, match="out of memory"):
        database.ask(fails)
    assert database.ask(lambda base: base.execute("SELECT text FROM rows").fetchall()) == [("kept",)]
    database.close()
    (tmp_path / "rows.db").write_bytes(b"no database" * 1000)
    assert database.ask(lambda base: base.execute("SELECT text FROM rows").fetchall()) == []
    assert (tmp_path / "rows.damaged").read_bytes() == b"no database" * 1000
    database.close()


@pytest.mark.parametrize("durable", [True, False])
def test_no_file_beside_it_is_mapped_into_memory(durable: bool, tmp_path: Path) -> None:
    """What another process cuts short while it is open would end this one with SIGBUS."""
    database = Database(tmp_path / "rows", _SCHEMA, what="rows", durable=durable)
    assert database.change(lambda base: base.execute("INSERT INTO rows VALUES ('one')").rowcount) == 1
    assert os.listdir(tmp_path) == ["rows"]
    database.close()

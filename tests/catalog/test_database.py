"""The file of derived data, beside what a program does with its processes."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kit.patience import until
from memfs.catalog.database import Database
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
    """SQLite lets one connection turn the write-ahead log on and refuses the others at once: they try again."""
    for number in range(30):
        path, together = tmp_path / f"rows{number}", threading.Barrier(4)

        def first(path: Path = path, together: threading.Barrier = together) -> int:
            database = Database(path, _SCHEMA, "", what="rows", spare=False)
            together.wait()
            found = database.change(lambda base: base.execute("INSERT INTO rows VALUES ('one')").rowcount)
            database.close()
            return found

        with ThreadPoolExecutor(4) as pool:
            assert [one.result() for one in [pool.submit(first) for _ in range(4)]] == [1] * 4

"""The file of derived data, beside what a program does with its processes."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from kit.patience import until
from memfs.catalog.database import CacheDatabase

_SCHEMA = "CREATE TABLE IF NOT EXISTS rows (text TEXT)"


def test_a_fork_waits_for_who_is_within_sqlite(tmp_path: Path) -> None:
    """A child would find SQLite's own locks held forever: it asks while another thread of its parent writes (A5)."""
    written, asked = CacheDatabase(tmp_path / "a", _SCHEMA, "", what="a"), CacheDatabase(None, _SCHEMA, "", what="b")
    ended = threading.Event()

    def write() -> None:
        while not ended.is_set():
            written.change(lambda base: base.executemany("INSERT INTO rows VALUES (?)", [("x" * 50,)] * 40))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(60):
            child = os.fork()
            if child == 0:
                asked.change(lambda base: base.execute("INSERT INTO rows VALUES ('y')"))
                written.ask(lambda base: base.execute("SELECT count(*) FROM rows").fetchone())
                os._exit(0)
            assert until(lambda child=child: os.waitpid(child, os.WNOHANG)[0] == child)
    finally:
        ended.set()
        writer.join()

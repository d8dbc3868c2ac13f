"""The catalog's file: what it says is right, whatever becomes of it, or it says nothing."""

from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from memfs.catalog.database import BESIDE
from memfs.catalog.facts import FILE, Catalog, Key, maker

Scale = Callable[[int, int], int]
MAKER = maker("test", "1")
KEYS = [(f"{number:040x}", "semantic") for number in range(300)]
FACTS: dict[Key, str] = {key: f'["fact {key[0]}", 1.5, null]' for key in KEYS}


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    """One with facts in it."""
    made = filled(tmp_path)
    yield made
    made.close()


def filled(folder: Path) -> Catalog:
    """A catalog with all facts."""
    made = Catalog(folder)
    made.keep(MAKER, FACTS)
    return made


def right(catalog: Catalog) -> int:
    """How many facts it has; each is what was kept."""
    found = catalog.found(MAKER, KEYS)
    assert all(fact == [f"fact {blob}", 1.5, None] for (blob, _), fact in found.items())
    return len(found)


def test_a_fact_is_found_by_content_kind_and_maker(catalog: Catalog) -> None:
    """Equal bytes in the folder of another kind, and another version of the rules, have facts of their own."""
    assert right(catalog) == len(KEYS)
    assert catalog.found(MAKER, [(KEYS[0][0], "note")]) == {}
    assert catalog.found(maker("test", "2"), KEYS[:1]) == catalog.found(maker("other", "1"), KEYS[:1]) == {}


def test_another_process_finds_what_was_kept(catalog: Catalog, tmp_path: Path) -> None:
    """Facts are there for everybody at once."""
    other = Catalog(tmp_path)
    assert right(other) == len(KEYS)
    other.close()


def test_any_flipped_bit_changes_no_answer(tmp_path: Path, scale: Scale) -> None:
    """A fact that a disk damaged is not found, or the file is made again; what is kept after that is found."""
    filled(tmp_path).close()
    whole, chooser = (tmp_path / FILE).read_bytes(), random.Random(1)
    for _ in range(scale(150, 2000)):
        place = chooser.randrange(len(whole))
        (tmp_path / FILE).write_bytes(
            whole[:place] + bytes([whole[place] ^ 1 << chooser.randrange(8)]) + whole[place + 1 :]
        )
        damaged = Catalog(tmp_path)
        right(damaged)
        damaged.keep(MAKER, dict(list(FACTS.items())[:1]))
        assert damaged.found(MAKER, KEYS[:1])
        damaged.close()


@pytest.mark.parametrize("harm", ["gone", "cut", "garbage", "another's", "a newer version's", "a folder's"])
def test_a_file_that_is_exchanged_at_work_harms_nobody(harm: str, catalog: Catalog, tmp_path: Path) -> None:
    """Deleted, cut short or replaced while processes have it open: they go on, and find what they keep from then on."""
    file = tmp_path / FILE
    other = Catalog(tmp_path)
    assert right(other) == len(KEYS)
    for name in (f"{FILE}-wal", f"{FILE}-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    data = file.read_bytes()
    file.unlink()
    if harm in ("cut", "garbage"):
        file.write_bytes(data[: len(data) // 2] if harm == "cut" else b"\0garbage" * 999)
    elif harm == "a folder's":
        file.mkdir()
    elif harm != "gone":
        with closing(sqlite3.connect(file)) as base, base:
            base.execute("CREATE TABLE facts (blob, kind, maker, json, checksum)")
            base.execute("INSERT INTO facts VALUES (?, ?, ?, '[\"wrong\"]', 0)", (*KEYS[0], MAKER))
            base.execute(f"PRAGMA user_version = {7 if harm == 'a newer version' else 0}")
    for one in (catalog, other):
        right(one)
        one.keep(MAKER, FACTS)
        assert right(one) == len(KEYS)
    other.close()


def test_no_file_beside_it_is_mapped_into_memory(catalog: Catalog, tmp_path: Path) -> None:
    """What another process cuts short while the catalog is open would end this one with SIGBUS."""
    assert right(catalog) == len(KEYS)
    assert [one.name for one in tmp_path.iterdir()] == [FILE]


@pytest.mark.parametrize("suffix", ["", *BESIDE])
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_what_is_not_a_file_keeps_nobody_waiting(make: Callable[[Path], None], suffix: str, tmp_path: Path) -> None:
    """A pipe, folder or link in the place of one of its files is not opened: facts are kept in memory."""
    make(tmp_path / f"{FILE}{suffix}")
    assert right(filled(tmp_path)) == len(KEYS)


def test_beyond_its_bound_it_is_started_over(tmp_path: Path) -> None:
    """It does not grow with every content that there ever was."""
    small = Catalog(tmp_path, most_bytes=60_000)
    for key in KEYS[:40]:
        small.keep(MAKER, {key: f'"{"x" * 5_000}"'})
    found = small.found(MAKER, KEYS[:40])
    assert KEYS[39] in found
    assert KEYS[0] not in found
    small.close()


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_folder_that_takes_no_file_keeps_nobody_from_asking(tmp_path: Path) -> None:
    """Facts are kept in memory there."""
    tmp_path.chmod(0o500)
    assert right(filled(tmp_path)) == len(KEYS)
    tmp_path.chmod(0o700)


def test_an_invalid_folder_keeps_nobody_from_asking(tmp_path: Path) -> None:
    """Where something else is in its place, facts are kept in memory."""
    (tmp_path / "file").write_text("")
    assert right(filled(tmp_path / "file")) == len(KEYS)

"""Generations: whatever happens to the folder, only whole ones of our own are opened (faults rows 21, 28, 29)."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from kit.corpus import corpus, item, pairs
from kit.faults import Fault, Stopped, injected
from memfs.errors import IndexUnavailable, StorageIO
from memfs.model import Query
from memfs.model.ids import stem_of
from memfs.model.item import RACY_NS
from memfs.search import analyzer, generations
from memfs.search import engine as engines
from memfs.search.columns import COLUMNS
from memfs.search.generations import MANIFEST, POINTER
from memfs.search.search_index import SearchIndex

WITH_KIT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1] / "faults")}
"""What a process of its own needs to import the tests' kit."""

Opened = Callable[[], SearchIndex]


def ids(index: SearchIndex, text: str = "alpha") -> list[str]:
    """The ids a search gives, sorted."""
    return sorted(hit.id for hit in index.search(Query(text=text, limit=1000)))


def files_below(folder: Path) -> list[str]:
    """Every file of a folder by its name below it."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


class Canary:
    """A pickle that makes a file when loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return Path.touch, (self.path,)


def test_a_fold_stopped_at_any_step_leaves_a_whole_generation(opened: Opened, folder: Path) -> None:
    """Stopped before each disk operation in turn, what opens next has the old base or the new, and can fold."""
    index = opened()
    index.rebuild(pairs(item("one", "alpha"), item("two", "alpha")))
    index.close()
    keep = folder.parent / "before"
    shutil.copytree(folder, keep)
    seen = set()
    at = 0
    while True:
        at += 1
        shutil.rmtree(folder)
        shutil.copytree(keep, folder)
        index = opened()
        index.update(pairs(item("three", "alpha"), item("one", "beta")), [item("two").path])
        fault = Fault(at=at)
        with injected(fault), contextlib.suppress(Stopped):
            index.fold()
        after = opened()
        found = ids(after)
        assert found in (["one", "two"], ["three"])
        assert {stem_of(path) for path in after.base_stamps()} == ({"one"} | set(found))
        seen.add((fault.stopped, tuple(found)))
        after.update(pairs(item("four", "alpha")))
        assert after.fold()
        assert ids(opened()) == sorted([*found, "four"])
        assert len(list(folder.glob("gen-*"))) <= 2
        assert not list(folder.rglob("*.tmp"))
        if not fault.stopped:
            break
    assert at > 20
    assert seen == {(True, ("one", "two")), (True, ("three",)), (False, ("three",))}


KILLED = """
import os, sys, threading, time
from pathlib import Path
from memfs.search.search_index import SearchIndex
from kit.corpus import item, pairs
index = SearchIndex(Path(sys.argv[1]), sys.argv[2])
number = len(index.base_stamps())
print("ready", flush=True)
while True:
    index.update(pairs(item(f"item-{number}", f"alpha word{number}")))
    if index.fold():
        number += 1
        print(number, flush=True)
"""


@pytest.mark.faults
def test_a_process_killed_while_folding_loses_nothing_it_had_folded(
    opened: Opened, folder: Path, engine: str, forked: Path
) -> None:
    """kill -9 at arbitrary moments: every fold that was finished is there, and the next process goes on."""
    done = 0
    for delay in (0.0, 0.013, 0.031, 0.057, 0.11):
        process = subprocess.Popen(
            [str(forked), "-c", KILLED, str(folder), engine], stdout=subprocess.PIPE, text=True, env=WITH_KIT
        )
        assert process.stdout is not None
        with process.stdout as lines:
            assert lines.readline() == "ready\n"
            lines.readline()
            try:
                process.wait(timeout=delay)
            except subprocess.TimeoutExpired:
                process.kill()
            process.wait()
            numbers = [int(line) for line in lines.read().split()]
        done = max([done + 1, *numbers])
        index = opened()
        assert len(index.base_stamps()) >= done
        assert len(ids(index)) == len(index.base_stamps())
        done = len(index.base_stamps())
    assert done >= 5


FOLDING = """
import sys
from pathlib import Path
from memfs.search.search_index import SearchIndex
from kit.corpus import item, pairs
index = SearchIndex(Path(sys.argv[1]), sys.argv[2])
for number in range(12):
    index.update(pairs(item(f"{sys.argv[3]}-{number}", "alpha")))
    index.fold()
while index.overlay_size():
    index.fold()
"""


def test_processes_folding_at_once_lose_nothing(opened: Opened, folder: Path, engine: str, forked: Path) -> None:
    """Two processes that fold as quickly as they can both end with everything of both in the base."""
    running = [
        subprocess.Popen([str(forked), "-c", FOLDING, str(folder), engine, name], stderr=subprocess.PIPE, env=WITH_KIT)
        for name in ("one", "two")
    ]
    for process in running:
        _, errors = process.communicate(timeout=120)
        assert (process.returncode, errors) == (0, b"")
    assert ids(opened()) == sorted(f"{name}-{number}" for name in ("one", "two") for number in range(12))


def damaged(data: bytes) -> dict[str, bytes | None]:
    """Ways for a file to be wrong; None deletes it."""
    middle = len(data) // 2
    flipped = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :] if data else b"x"
    return {
        "deleted": None,
        "empty": b"" if data else b"x",
        "cut": data[:-1] or b"yy",
        "flipped": flipped,
        "longer": data + b"\0",
    }


@pytest.mark.parametrize("way", ["deleted", "empty", "cut", "flipped", "longer"])
def test_a_damaged_index_is_as_if_empty_and_is_rebuilt(opened: Opened, folder: Path, way: str) -> None:
    """Whatever file is damaged however little, the base is empty, nothing raises, and filling it again works."""
    items = corpus(30)
    index = opened()
    index.rebuild(pairs(*items))
    index.close()
    expected = ids(opened(), "pool")
    keep = folder.parent / "before"
    shutil.copytree(folder, keep)
    for name in [name for name in files_below(folder) if name != generations.LOCK]:
        shutil.rmtree(folder)
        shutil.copytree(keep, folder)
        change = damaged((folder / name).read_bytes())[way]
        if change is None:
            (folder / name).unlink()
        else:
            (folder / name).write_bytes(change)
        index = opened()
        assert (dict(index.base_stamps()), ids(index, "pool")) == ({}, []), name
        index.update(pairs(*items))
        assert index.fold()
        assert ids(opened(), "pool") == expected, name


def test_a_deleted_folder_is_made_again(opened: Opened, folder: Path) -> None:
    """Deleting the whole cache, even under an open index, loses nothing but time."""
    index = opened()
    index.rebuild(pairs(item("one", "alpha")))
    shutil.rmtree(folder)
    index.update(pairs(item("two", "alpha")))
    assert index.fold()
    assert dict(index.base_stamps()).keys() == {item("two").path}
    index.update(pairs(item("one", "alpha")))
    assert index.fold()
    assert ids(opened()) == ["one", "two"]


def test_a_file_in_the_place_of_the_folder_is_replaced_by_it(tmp_path: Path) -> None:
    """All in the cache can be made again, so a plain file there is removed; a link may lead anywhere and is refused."""
    folder = generations.index_folder(tmp_path)
    shutil.rmtree(folder)
    folder.write_text("junk")
    assert generations.index_folder(tmp_path).is_dir()
    shutil.rmtree(folder)
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageIO):
        generations.index_folder(tmp_path)


@pytest.mark.parametrize("asked", [True, False])
def test_files_replaced_while_released_are_not_opened(opened: Opened, folder: Path, asked: bool) -> None:
    """A process that closed its files to fork opens only those it verified: others would answer for other items."""
    index = opened()
    index.rebuild(pairs(item("one", "alpha"), item("two", "beta")))
    other = SearchIndex(folder.parent / "other", index._engine.name)
    other.rebuild(pairs(item("one", "gamma beta"), item("two", "alpha")))
    index.close()
    assert len(index.base_stamps()) == 2
    assert not asked or ids(index) == ["one"]
    index.release()
    files = index.folder / "gen-1" / generations.FILES
    columns = (files / COLUMNS).read_bytes()
    shutil.rmtree(files)
    shutil.copytree(other.folder / "gen-1" / generations.FILES, files)
    (files / COLUMNS).write_bytes(columns)
    with pytest.raises(IndexUnavailable):
        ids(index, "beta")
    assert not index.base_stamps()


def test_the_same_files_are_opened_again_whatever_their_times(opened: Opened, folder: Path) -> None:
    """Files that a backup or a fold only touched or linked are read again, and found to be the same."""
    index = opened()
    index.rebuild(pairs(item("one", "alpha"), item("two", "beta")))
    assert ids(index) == ["one"]
    index.release()
    for path in (folder / "gen-1").rglob("*"):
        os.utime(path)
    assert ids(index, "beta") == ["two"]


def test_a_planted_pickle_is_never_loaded(opened: Opened, folder: Path, tmp_path: Path) -> None:
    """A foreign pickle in the place of any file, or beside them, does not run (canary absent)."""
    canary = tmp_path / "canary"
    pickle.loads(pickle.dumps(Canary(canary)))
    assert canary.exists(), "the canary works"
    canary.unlink()
    planted = pickle.dumps(Canary(canary))
    index = opened()
    index.rebuild(pairs(*corpus(30)))
    index.close()
    keep = folder.parent / "before"
    shutil.copytree(folder, keep)
    names = [name for name in files_below(folder) if name != generations.LOCK]
    for name in [*names, "gen-1/engine/_MAIN_99.toc", "gen-1/engine/MAIN_x.trm", "gen-1/extra.pickle"]:
        shutil.rmtree(folder)
        shutil.copytree(keep, folder)
        (folder / name).write_bytes(planted)
        index = opened()
        assert ids(index, "pool") == [], name
        index.update(pairs(item("one", "alpha")))
        assert index.fold()
        assert ids(index) == ["one"]
    assert not canary.exists()


def test_what_was_verified_is_not_read_again(
    opened: Opened, folder: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files with the facts by which they were verified are taken as they are, and read again after any change."""
    opened().rebuild(pairs(item("one", "alpha")))
    monkeypatch.setattr(generations, "RACY_NS", 0)
    assert ids(opened()) == ["one"]
    with monkeypatch.context() as patched:
        patched.setattr(generations, "_digest", None)
        assert ids(opened()) == ["one"]
    for name in (name for name in files_below(folder / "gen-1") if name.startswith("engine/")):
        file = folder / "gen-1" / name
        data, facts = file.read_bytes(), file.stat()
        file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        os.utime(file, ns=(facts.st_atime_ns, facts.st_mtime_ns))
        assert dict(opened().base_stamps()) == {}, name
        file.write_bytes(data)
        assert ids(opened()) == ["one"]


def test_young_files_are_read_again(opened: Opened, folder: Path) -> None:
    """Of files so young that a later change may have the same times, it is not noted that they were verified."""
    opened().rebuild(pairs(item("one", "alpha")))
    assert ids(opened()) == ["one"]
    assert not (folder / generations.VERIFIED).exists()


def test_links_in_the_folder_are_not_followed(opened: Opened, folder: Path, tmp_path: Path) -> None:
    """A link in the place of a file or folder of a generation is a foreign thing, whatever it leads to."""
    index = opened()
    index.rebuild(pairs(item("one", "alpha")))
    index.close()
    for name in ("gen-1/manifest.json", "gen-1/engine", "gen-1", POINTER):
        elsewhere = tmp_path / "elsewhere"
        (folder / name).rename(elsewhere)
        (folder / name).symlink_to(elsewhere)
        assert dict(opened().base_stamps()) == {}, name
        (folder / name).unlink()
        elsewhere.rename(folder / name)
    assert ids(opened()) == ["one"]


def test_a_folder_others_can_write_is_not_trusted(opened: Opened, folder: Path) -> None:
    """A generation in a folder that another user could have written is not opened; a fold takes the folder back."""
    index = opened()
    index.rebuild(pairs(item("one", "alpha")))
    index.close()
    folder.chmod(0o777)
    index = opened()
    assert dict(index.base_stamps()) == {}
    index.update(pairs(item("one", "alpha")))
    assert index.fold()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert ids(opened()) == ["one"]


def test_everything_is_this_users_only(opened: Opened, folder: Path) -> None:
    """Folders are 0700 and files 0600 whatever the umask."""
    before = os.umask(0)
    try:
        index = opened()
        index.rebuild(pairs(item("one", "alpha")))
    finally:
        os.umask(before)
    modes = {path.stat().st_mode & 0o777 for path in folder.rglob("*") if path.is_file()}
    assert (modes, {path.stat().st_mode & 0o777 for path in (folder, folder / "gen-1")}) == ({0o600}, {0o700})


@pytest.mark.parametrize("mark", ["format", "engine", "analyzer", "byteorder", "generation"])
def test_another_format_engine_or_analyzer_is_not_opened(opened: Opened, folder: Path, mark: str) -> None:
    """A whole generation that was made in another way is left alone, although all its digests fit."""
    index = opened()
    index.rebuild(pairs(item("one", "alpha")))
    index.close()
    manifest = json.loads((folder / "gen-1" / MANIFEST).read_bytes())
    manifest[mark] = 99 if isinstance(manifest[mark], int) else "another"
    data = json.dumps(manifest).encode()
    (folder / "gen-1" / MANIFEST).write_bytes(data)
    (folder / POINTER).write_text(json.dumps({"generation": 1, "manifest": sha256(data).hexdigest()}))
    assert dict(opened().base_stamps()) == {}


def test_the_manifest_names_the_stemmer(opened: Opened, folder: Path) -> None:
    """The analyzer in the manifest changes with the stemmer's program, so that old stems are never searched."""
    index = opened()
    index.rebuild(pairs(item("one", "alpha")))
    manifest = json.loads((folder / "gen-1" / MANIFEST).read_bytes())
    assert manifest["analyzer"] == analyzer.identity()
    assert analyzer.stemmer_name() in manifest["analyzer"]


def test_changing_the_engine_starts_over(opened: Opened, folder: Path, engine: str) -> None:
    """A folder made by one engine is empty for another, which then takes it over."""
    index = opened()
    index.rebuild(pairs(item("one", "alpha")))
    index.close()
    other = SearchIndex(folder, "sqlite" if engine == "whoosh" else "whoosh")
    assert dict(other.base_stamps()) == {}
    other.update(pairs(item("one", "alpha")))
    assert other.fold()
    assert (ids(other), dict(opened().base_stamps())) == (["one"], {})
    other.close()


def test_only_two_generations_are_kept(opened: Opened, folder: Path) -> None:
    """The current generation and the one before it stay; leftovers of dead writers go."""
    index = opened()
    for number in range(5):
        index.update(pairs(item(f"item-{number}", "alpha")))
        index.fold()
        (folder / "gen-77").mkdir(exist_ok=True)
        (folder / ".current.1.tmp").write_bytes(b"")
    index.update(pairs(item("last", "alpha")))
    index.fold()
    assert len(list(folder.glob("gen-*"))) == 2
    assert sorted(path.name for path in folder.iterdir() if not path.name.startswith("gen-")) == [POINTER, "index.lock"]


def test_generations_share_the_files_that_did_not_change(folder: Path) -> None:
    """A fold links what the engine keeps as it is instead of copying it."""
    index = SearchIndex(folder, "whoosh")
    index.rebuild(pairs(*corpus(200)))
    index.update(pairs(item("one", "alpha")))
    index.fold()
    index.close()
    first = {path.stat().st_ino for path in (folder / "gen-1" / "engine").glob("*.pst")}
    second = {path.stat().st_ino for path in (folder / "gen-2" / "engine").glob("*.pst")}
    assert first < second


def test_opening_imports_no_engine(folder: Path) -> None:
    """Looking at stamps needs neither Whoosh nor the stemmer: only a search or a fold imports them."""
    index = SearchIndex(folder, "whoosh")
    index.rebuild(pairs(item("one", "alpha")))
    index.close()
    script = (
        "import sys; from pathlib import Path; from memfs.search.search_index import SearchIndex\n"
        "index = SearchIndex(Path(sys.argv[1]), 'whoosh'); assert len(index.base_stamps()) == 1\n"
        "print(sorted({'whoosh', 'snowballstemmer', 'sqlite3'} & set(sys.modules)))\n"
    )
    result = subprocess.run([sys.executable, "-c", script, str(folder)], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


def test_what_was_read_again_is_folded(opened: Opened) -> None:
    """Many files that every process would read again, as they were very young when they were read, are worth a fold at
    the end of one that asked; one that only writes leaves them.
    """
    rows = pairs(*(item(f"number{number}", "alpha") for number in range(20)))
    index = opened()
    index.rebuild(rows)
    assert not index.spares_others(asked=True)
    for one, stamp in rows:
        young = stamp._replace(checked_ns=stamp.ctime_ns)
        index.restamp(one.path, young)
    assert not index.spares_others(asked=True)  # the next process could rely on them no more
    again = [(one, stamp._replace(checked_ns=max(stamp.mtime_ns, stamp.ctime_ns) + RACY_NS)) for one, stamp in rows]
    for one, stamp in again:
        index.restamp(one.path, stamp)
    assert index.spares_others(asked=True)
    assert not index.spares_others(asked=False)
    assert index.fold()
    assert not index.spares_others(asked=True)
    assert dict(opened().base_stamps()) == {one.path: of for one, of in again}


def test_a_generation_has_all_where_its_last_item_is_one_too_many_to_wait(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was added and taken in before the end is written at the end, even if nothing follows it."""
    monkeypatch.setattr(engines, "MOST_PENDING", 3)
    index = opened()
    index.rebuild(pairs(*(item(f"item-{number}", "alpha") for number in range(3))))
    assert ids(opened()) == ["item-0", "item-1", "item-2"]
    index.update(pairs(*(item(f"item-{number}", "alpha") for number in range(3, 6))))
    assert index.fold()
    assert len(ids(opened())) == 6


def test_a_worn_base_is_rebuilt_from_items_that_are_still_what_it_holds(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then nothing is left of what was replaced; items of another moment are left alone, and nothing gets lost."""
    monkeypatch.setattr(engines, "_FEW_DEAD", 5)
    index = opened()
    first = pairs(*(item(f"item-{number}", "alpha") for number in range(4)))
    index.rebuild(first)
    for words in ("beta", "gamma"):
        assert not index.worn
        rows = pairs(*(item(f"item-{number}", words) for number in range(4)))
        index.update(rows)
        assert index.fold()
    assert index.worn
    index.update(pairs(item("late", "gamma")))
    assert index.fold(rows)
    made = index.generation
    assert index.fold(rows)  # nothing has changed, and these are not all
    assert (index.worn, index.generation) == (True, made)
    assert len(ids(opened(), "gamma")) == 5
    assert index.fold([*rows, *pairs(item("late", "gamma"))])
    assert not index.worn
    again = opened()
    assert (ids(again), len(ids(again, "gamma")), again.statistics(()).passages) == ([], 5, 5)

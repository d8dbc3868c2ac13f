"""One bit turned over in each sort of file (faults row 28): never wrong bytes, never a foreign error, always reported.

The texts that were written are the oracle. Whatever is flipped, every answer holds only those, or says that something
is missing; what memfs relies on is reported or made again.
"""

from __future__ import annotations

import contextlib
import random
import shutil
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import pytest

from kit.faults import flipped, rot
from kit.places import disk
from memfs import MemoryItem
from memfs.admin.backup_file import restore, verify
from memfs.admin.repair import Repairer
from memfs.errors import CorruptItem, JournalDamaged, MemfsError
from memfs.model import Query
from memfs.search import generations as indexes
from memfs.search.engine import engine as engine_of
from memfs.trust import grant
from memfs.workspace import Workspace, open_workspace

Scale = Callable[[int, int], int]
Figures = Callable[..., None]
Git = Callable[..., str]

pytestmark = pytest.mark.faults

TEXTS = {
    f"n{number}": f"The {word} stands in the barn, behind {number} doors; nobody has moved it since spring."
    for number, word in enumerate(("plough", "tractor", "wagon", "ladder", "anvil", "saddle"))
}


@pytest.fixture(autouse=True)
def on_a_disk_that_shows_edits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the tests run on, its times of change are the kernel's."""
    monkeypatch.setattr("memfs.fs.tree.file_system", lambda _: "ext4")


def opened(root: Path, engine: str = "memory") -> Workspace:
    """The workspace, as a process opens it."""
    settings = {"index.engine": engine, "history.commit": "manual", "history.adopt": "leave"}
    return open_workspace(root, create=not (root / "memfs.toml").exists(), watch=False, settings=settings)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace whose first four items are committed and whose last two wait."""
    place = tmp_path / "W"
    with opened(place) as workspace:
        for number, (name, text) in enumerate(TEXTS.items()):
            if number == 4:
                workspace.store.flush()
            workspace.store.put(MemoryItem(text, "semantic", id=name))
    return place


def bits(path: Path, chooser: random.Random, count: int) -> Iterator[int]:
    """So many bits of a file, in no order."""
    size = path.stat().st_size * 8
    yield from (chooser.randrange(size) for _ in range(count))


@contextlib.contextmanager
def turned(path: Path, bit: int) -> Iterator[None]:
    """While the block runs, one bit of a file is the other way round."""
    before = path.read_bytes()
    mode = path.stat().st_mode
    path.chmod(mode | 0o200)
    path.write_bytes(flipped(before, bit))
    try:
        yield
    finally:
        path.write_bytes(before)
        path.chmod(mode)


def assert_right(workspace: Workspace, missing: int = 0) -> None:
    """Every way of asking gives texts that were written, or an error of ours; at most ``missing`` of them lack."""
    for query in (Query(text="barn doors", limit=50), Query(text="", limit=50)):
        answer = workspace.recaller.search(query)
        found = {hit.item.id: hit.item.content for hit in answer.hits}
        assert found.items() <= TEXTS.items()
        assert len(found) >= len(TEXTS) - missing
        assert answer.partial or len(found) == len(TEXTS)
    for name, text in TEXTS.items():
        try:
            item = workspace.store.get(name)
        except MemfsError:
            assert missing
            continue
        assert item is not None
        assert item.content == text


# -- items --------------------------------------------------------------------------------------------------------
def flip_items(root: Path, count: int, chooser: random.Random) -> int:
    """Rot in one item after the other, each found, reported and repaired; how many were tried."""
    with opened(root) as workspace:
        assert_right(workspace)
        for _ in range(count):
            name = chooser.choice(list(TEXTS))
            path = workspace.store.locate(name)
            whole = (root / path).read_bytes()
            rot(workspace, path, chooser.randrange(len(whole) * 8))
            assert_right(workspace, missing=1)
            with pytest.raises(CorruptItem):
                workspace.store.get(name)
            assert path in {problem.path for problem in workspace.store.problems() if problem.code == "CorruptItem"}
            if chooser.random() < 0.2:
                (row,) = Repairer(workspace.store, workspace.parts).repair([path])
                assert row.done
            else:
                rot(workspace, path, data=whole)
                workspace.store.refresh([path])
            assert_right(workspace)
    return count


def test_28_items(root: Path, scale: Scale, figures: Figures) -> None:
    """Rot in an item is never served, named with its file, and repaired from git or the journal."""
    figures("bit flips: item", points=flip_items(root, scale(15, 1500), random.Random(1)), lost=0)


def test_28_items_the_check_catches_a_memfs_that_does_not_compare(root: Path) -> None:
    """Without the comparison with the stamp, the same check fails."""
    never = mock.patch("memfs.fs.tree.detects_edits", return_value=False)
    with never, pytest.raises((AssertionError, pytest.fail.Exception)):
        flip_items(root, 30, random.Random(1))


def test_a_flip_with_a_trace_is_an_edit(root: Path, scale: Scale, figures: Figures) -> None:
    """A bit that a program turns over is its edit: valid ones count, invalid ones are named, no other file suffers."""
    chooser = random.Random(2)
    count = scale(15, 1500)
    with opened(root) as workspace:
        for _ in range(count):
            name = chooser.choice(list(TEXTS))
            path = workspace.store.locate(name)
            with turned(root / path, chooser.randrange((root / path).stat().st_size * 8)):
                answer = workspace.recaller.search(Query(text="", limit=50))
                found = {hit.item.id: hit.item.content for hit in answer.hits if not hit.stale}
                assert {other: found.get(other) for other in TEXTS if other != name} == {
                    other: text for other, text in TEXTS.items() if other != name
                }
                named = {problem.path for problem in workspace.store.problems()}
                assert name in found or (path in named and answer.partial)
            assert_right(workspace)
    figures("bit flips: item, as an edit", points=count, lost=0)


# -- the journal --------------------------------------------------------------------------------------------------
def flip_journal(root: Path, count: int, chooser: random.Random) -> int:
    """Flip bits of the journal; how many the check reported."""
    with opened(root) as workspace:
        journal = workspace.repository.state / "journal"
    whole = journal.read_bytes()
    noticed = 0
    for bit in bits(journal, chooser, count):
        journal.write_bytes(flipped(whole, bit))
        with opened(root) as workspace:
            assert_right(workspace)
            problems = {problem.code for problem in workspace.store.problems()}
            noticed += bool(problems)
            assert problems <= {"JournalDamaged", "FormatUnsupported"}
            for operation in workspace.parts.journal.operations() if not problems else ():
                for change in operation.changes:
                    assert change.data == (root / change.path).read_bytes()
            if chooser.random() < 0.1:
                repairer = Repairer(workspace.store, workspace.parts)
                assert bool([row for row in repairer.repair() if row.done]) == bool(problems)
                workspace.store.put(MemoryItem("one more", "semantic", id="more"))
                workspace.store.delete("more")
                assert_right(workspace)
        journal.write_bytes(whole)
    return noticed


def test_28_the_journal(root: Path, scale: Scale, figures: Figures) -> None:
    """A damaged record is reported and the others are kept; a damaged end is a write that was never acknowledged."""
    count = scale(25, 2000)
    noticed = flip_journal(root, count, random.Random(3))
    assert noticed > count / 2  # the last record is the mark that the last write is in place: it counts as torn
    figures("bit flips: journal", points=count, lost=0)


def test_28_the_journal_the_check_catches_one_without_checksums(root: Path) -> None:
    """With records that are believed as they are, the same check fails."""

    def believing(data: bytes, position: int, _mark: bytes) -> tuple[bytes | None, int]:
        if len(data) - position < 16:
            return None, position
        length = int.from_bytes(data[position + 8 : position + 12], "big")
        payload = data[position + 16 : position + 16 + length]
        return (payload, position + 16 + length) if len(payload) == length else (None, position)

    caught = (AssertionError, MemfsError, ValueError, KeyError, TypeError)
    with mock.patch("memfs.fs.journal._frame", believing), pytest.raises(caught):
        flip_journal(root, 100, random.Random(3))


# -- git ----------------------------------------------------------------------------------------------------------
def git_files(root: Path) -> list[Path]:
    """Everything in the repository that git or memfs reads as data."""
    folder = root / ".git"
    found = [
        path for path in sorted(folder.rglob("*")) if path.is_file() and "memfs" not in path.relative_to(folder).parts
    ]
    return [path for path in found if path.name not in ("config", "description") and path.stat().st_size]


@pytest.mark.parametrize("packed", [False, True], ids=["loose", "packed"])
def test_28_git_objects_refs_and_index(root: Path, packed: bool, scale: Scale, figures: Figures, git: Git) -> None:
    """Present memory does not depend on git; history gives what was committed or says that it cannot."""
    if packed:
        git(root, "repack", "-adq")
        git(root, "pack-refs", "--all")
    chooser = random.Random(4)
    files = git_files(root)
    count = scale(15, 1500)
    for _ in range(count):
        path = chooser.choice(files)
        with turned(path, chooser.randrange(path.stat().st_size * 8)), opened(root) as workspace:
            assert_right(workspace)
            for name in list(TEXTS)[:4]:
                with contextlib.suppress(MemfsError):
                    data = workspace.history.content("HEAD", name)
                    assert TEXTS[name].encode() in data.replace(b"\n  ", b" ")
            with contextlib.suppress(MemfsError):
                workspace.history.log()
            if chooser.random() < 0.2:
                assert "CorruptItem" not in {problem.code for problem in workspace.checker.check()}
    figures(f"bit flips: git, {'packed' if packed else 'loose'}", points=count, lost=0)


def unpacked(data: bytes) -> bytes | None:
    """What a loose object holds, None where it cannot be read."""
    reader = zlib.decompressobj()
    try:
        content = reader.decompress(data)
    except zlib.error:
        return None
    return content if reader.eof and not reader.unused_data else None


@pytest.mark.parametrize("packed", [False, True], ids=["loose", "packed"])
def test_28_every_damaged_object_is_reported(root: Path, packed: bool, scale: Scale, git: Git) -> None:
    """The integrity check names damage in any object."""
    if packed:
        git(root, "repack", "-adq")
    chooser = random.Random(5)
    files = [path for path in git_files(root) if "objects" in path.parts and "info" not in path.parts]
    for _ in range(scale(4, 120)):
        path = chooser.choice(files)
        whole = path.read_bytes()
        with turned(path, chooser.randrange(path.stat().st_size * 8)), opened(root) as workspace:
            if not packed and unpacked(path.read_bytes()) == unpacked(whole):
                continue  # a bit that says nothing: the object is the same
            errors = [problem for problem in workspace.checker.check(integrity=True) if problem.severity == "error"]
            assert [problem.code for problem in errors if problem.code == "HistoryUnavailable"], path


# -- the index ----------------------------------------------------------------------------------------------------
def index_files(workspace: Workspace) -> list[Path]:
    """Every file of the present generation, and the pointer to it."""
    folder = workspace.parts.index.folder
    generations = sorted(folder.glob("gen-*"), key=lambda path: int(path.name[4:]))
    return [path for path in (folder / "current", *sorted(generations[-1].rglob("*"))) if path.is_file()]


def is_refused(workspace: Workspace) -> bool:
    """Whether the index on disk is found not to be what was written."""
    generations = indexes.Generations(workspace.parts.index.folder, engine_of(workspace.parts.index.engine))
    return generations.current() is None


def flip_index(root: Path, engine: str, count: int, chooser: random.Random) -> None:
    """Flip bits of the index: each answer is right."""
    with opened(root, engine) as workspace:
        workspace.recaller.search("barn")
        workspace.store.fold()
        files = index_files(workspace)
        whole = {path: path.read_bytes() for path in files}
    for _ in range(count):
        path = chooser.choice(files)
        if not path.stat().st_size:
            continue
        path.write_bytes(flipped(whole[path], chooser.randrange(len(whole[path]) * 8)))
        with opened(root, engine) as workspace:
            if chooser.random() < 0.2:
                assert is_refused(workspace) or path.name == "current"
            assert_right(workspace)
        folder = files[0].parent
        for stale in folder.glob("gen-*"):
            shutil.rmtree(stale)
        for name, data in whole.items():
            name.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            name.write_bytes(data)


@pytest.mark.parametrize("engine", ["sqlite", "whoosh"])
def test_28_the_index(root: Path, engine: str, scale: Scale, figures: Figures) -> None:
    """A damaged index is never asked: it is made again, and every answer is right."""
    count = scale(15 if engine == "sqlite" else 10, 1500)
    flip_index(root, engine, count, random.Random(6))
    figures(f"bit flips: index, {engine}", points=count, lost=0)


def test_28_the_index_the_check_catches_one_that_is_believed(root: Path) -> None:
    """Without the digest of its file, the same check fails."""
    digest = indexes._digest

    def believed(path: Path) -> str:
        return "0" * 64 if path.name == "index.sqlite" else digest(path)

    with mock.patch.object(indexes, "_digest", believed), pytest.raises((AssertionError, MemfsError)):
        flip_index(root, "sqlite", 200, random.Random(6))


# -- backups ------------------------------------------------------------------------------------------------------
def test_28_a_backup(root: Path, tmp_path: Path, scale: Scale, figures: Figures) -> None:
    """A damaged backup is refused, unless the bit is of no consequence: then what it restores is right."""
    with opened(root) as workspace:
        backup = workspace.backups.make(tmp_path / "backups")[0].path
    chooser = random.Random(8)
    count = scale(15, 1500)
    harmless = 0
    for bit in bits(backup, chooser, count):
        with turned(backup, bit):
            try:
                verify(backup)
            except MemfsError:
                continue
            harmless += 1
            again = restore(backup, tmp_path / f"again{bit}")
            with opened(again.root) as workspace:
                assert_right(workspace)
    assert harmless < count / 4
    figures("bit flips: backup", points=count, lost=0)


# -- settings and documents ---------------------------------------------------------------------------------------
def test_28_settings_and_documents(root: Path, scale: Scale, figures: Figures) -> None:
    """A flip in settings or documents is an error of ours that names the file, or a value that is allowed."""
    chooser = random.Random(7)
    files = [root / "memfs.toml", *sorted((root / "ContextMemory" / "configuration").glob("*"))]
    count = scale(15, 1000)
    for _ in range(count):
        path = chooser.choice(files)
        bit = chooser.randrange(path.stat().st_size * 8)
        with turned(path, bit), contextlib.suppress(MemfsError), opened(root) as workspace:
            assert_right(workspace)
            if chooser.random() < 0.1:
                workspace.checker.check()
    figures("bit flips: settings", points=count, lost=0)


def test_28_files_of_memfss_own(root: Path, own_world: Path, scale: Scale, figures: Figures) -> None:
    """Counters, notes and records beside the journal: damaged, emptied or noise, they harm nobody."""
    grant(root)
    with opened(root) as workspace:
        workspace.backups.make()
        state = workspace.repository.state
        workspace.quota.settle()
    places = [path for folder in (state.parent, own_world) for path in sorted(folder.rglob("*")) if path.is_file()]
    files = [path for path in places if path.name not in ("journal", ".gitconfig") and path.stat().st_size]
    assert len(files) > 2, files
    chooser = random.Random(10)
    count = scale(15, 1500)
    for number in range(count):
        path = files[number % len(files)]
        if not path.exists() or not path.stat().st_size:
            continue
        with turned(path, chooser.randrange(path.stat().st_size * 8)):
            if number % 3:
                path.write_bytes(chooser.choice([b"", b"{}", b"[1]", b"null", b"\x00\xff" * 99]))
            with opened(root) as workspace:
                assert_right(workspace)
                stored = workspace.store.put(MemoryItem("one more", "semantic", id="more"))
                workspace.store.delete(stored.id)
                workspace.checker.check()
    figures("bit flips: state", points=count, lost=0)


# -- a real disk --------------------------------------------------------------------------------------------------
def test_28_rot_on_a_real_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, git: Git) -> None:
    """A bit turned over on the disk itself while it is not mounted: no time changes, memfs reports and repairs it."""
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with disk(tmp_path) as place:
        place.format()
        place.mount()
        root = place.mounted / "W"
        with opened(root, "sqlite") as workspace:
            for name, text in TEXTS.items():
                workspace.store.put(MemoryItem(text, "semantic", id=name))
            workspace.store.flush()
            path = workspace.store.locate("n1")
        _let_times_settle(root)
        place.unmount()
        image = place.image.read_bytes()
        with place.image.open("r+b") as file:
            for start in _all(image, b"The tractor stands"):  # in the file, and where else it was written
                file.seek(start + 6)
                file.write(b"f")
        place.mount()
        assert b"The trfctor" in (root / path).read_bytes()
        with opened(root, "sqlite") as workspace:
            assert_right(workspace, missing=1)
            assert [problem.code for problem in workspace.store.problems()] == ["CorruptItem"]
            (row,) = Repairer(workspace.store, workspace.parts).repair()
            assert row.done
            assert_right(workspace)
        assert git(root, "status", "--porcelain") == ""


def _let_times_settle(root: Path) -> None:
    """Let the index vouch for files that are old enough, as the next check would."""
    time.sleep(2.1)
    with opened(root, "sqlite") as workspace:
        assert workspace.checker.check(integrity=True) == []


def _all(data: bytes, part: bytes) -> Iterator[int]:
    at = -1
    while (at := data.find(part, at + 1)) >= 0:
        yield at


def test_a_journal_of_noise_is_an_error_of_ours(root: Path) -> None:
    """Whatever is in the journal's place is reported, never obeyed."""
    with opened(root) as workspace:
        journal = workspace.repository.state / "journal"
    for noise in (b"", b"\n", b"\x00" * 500, b"memfs-journal 1\n", b"memfs-journal 1 x y z\n", bytes(range(256)) * 4):
        journal.write_bytes(noise)
        with opened(root) as workspace:
            assert_right(workspace)
            with pytest.raises(JournalDamaged):
                workspace.store.put(MemoryItem("never", "semantic", id="never"))
            rows = Repairer(workspace.store, workspace.parts).repair()
            assert [row.done for row in rows if "journal" in row.sentence] == [True]
            workspace.store.put(MemoryItem("after", "semantic", id="after"))
            workspace.store.delete("after")

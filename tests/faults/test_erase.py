"""Erasing an item from a repository that holds it in every way, stopped and killed anywhere (faults row 50; B6)."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kit import nasty
from kit.copies import copy_workspace
from kit.faults import DISK_ERROR, Fault, Stopped, injected
from kit.nasty import ITEM, NEEDLES, Nasty
from memfs.errors import MemfsError
from memfs.fs import io
from memfs.git import rewrite
from memfs.git.layout import ERASE_RECORD

pytestmark = pytest.mark.faults
Scale = Callable[[int, int], int]
Figures = Callable[..., None]
CHANGES = ("rename", "unlink", "link", "write", "mkdir", "rmdir", "git", "truncate")
GONE = tuple(needle for needle in NEEDLES if needle != b"osprey-2342")  # that one stays in a file that quotes it


class Ready:
    """A nasty repository, quick to set up again at the same place."""

    def __init__(self, folder: Path) -> None:
        self.nasty = nasty.make(folder / "team")
        self._first = folder / "first"
        self.log = self.nasty.log()
        copy_workspace(self.nasty.root, self._first)

    def again(self) -> Nasty:
        """The repository as it first was."""
        shutil.rmtree(self.nasty.root)
        copy_workspace(self._first, self.nasty.root)
        self.nasty.git("update-index", "-q", "--refresh")
        return self.nasty

    def check_erased(self) -> None:
        """The item is nowhere, and everything else is as it was."""
        assert self.nasty.found(GONE) == []
        assert self.nasty.trees() == self.nasty.kept
        assert self.nasty.log() == self.log
        self.nasty.whole()
        assert not list((self.nasty.root / ".git/memfs").rglob("erase"))


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Ready:
    """One repository for the module, made in a world of its own."""
    patch = pytest.MonkeyPatch()
    home = tmp_path_factory.mktemp("erasing")
    (home / ".gitconfig").write_text(
        "[user]\n\tname = Ada Person\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n"
    )
    for name in list(os.environ):
        if name.startswith(("GIT_", "MEMFS_", "XDG_")):
            patch.delenv(name)
    patch.setenv("HOME", str(home))
    patch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    ready = Ready(home)
    patch.undo()
    return ready


def erase(ready: Nasty) -> None:
    """The whole erase, as the command does it."""
    with ready.open() as workspace:
        done = workspace.eraser.erase(ITEM, rewrite_shared=True)
        assert done.proof.hits == ()


def test_50_an_item_that_was_everywhere_is_nowhere(base: Ready) -> None:
    """Commits, branches, tags of tags, merges, stashes, notes, reflogs, packs, loose objects, index: no hit at all."""
    ready = base.again()
    assert len(ready.found()) >= len(NEEDLES)
    with ready.open() as workspace:
        done = workspace.eraser.erase(ITEM, rewrite_shared=True)
        assert done.proof.hits == ()
        assert done.plan.copies == (nasty.COPY,)
        assert nasty.QUOTE in done.proof.quotes
        assert any("example.org" in place for place in done.plan.unreachable)
        assert "token" not in str(done)
        assert workspace.store.get(ITEM) is None
    base.check_erased()
    assert not (ready.root / nasty.COPY).exists()
    assert not list((ready.root / "ContextMemory").rglob(f"{ITEM}*"))


def test_50_the_texts_around_it_stay(base: Ready) -> None:
    """Notes are kept, tags of tags hold, stashes apply, messages lose the item's words only."""
    ready = base.again()
    about = ready.git("rev-parse", "HEAD").strip()
    erase(ready)
    assert "Seen" in ready.git("notes", "show", about)
    assert "Release" in ready.git("cat-file", "tag", "v1")
    assert ready.git("rev-parse", "v1-again^{commit}") == ready.git("rev-parse", "v1^{commit}")
    assert "gpgsig" not in ready.git("cat-file", "commit", "signed")
    assert "Copy [erased]" in ready.git("log", "--all", "--format=%s")
    ready.git("stash", "pop", "-q")
    assert "return 2" in (ready.root / "src/main.c").read_text()
    ready.git("checkout", "-q", "--", ".")
    assert ready.git("reflog", "show", "HEAD").count("\n") == len(ready.git("reflog").splitlines())


def points(base: Ready) -> tuple[list[int], int]:
    """The operations of an erase that change something, and the one after which it is bound to end."""
    ready = base.again()
    with ready.open() as workspace, injected(Fault()) as fault:
        workspace.eraser.erase(ITEM, rewrite_shared=True)
    changing = [number for number, seen in enumerate(fault.seen, 1) if seen.split(" ")[0] in CHANGES]
    bound = next(
        number for number, seen in enumerate(fault.seen, 1) if seen.endswith("record.json") and "rename" in seen
    )
    return changing, bound


def spread(rows: list[int], count: int) -> list[int]:
    """About so many of the rows, evenly, the first and the last among them."""
    if count >= len(rows):
        return rows
    return sorted({rows[round(place * (len(rows) - 1) / (count - 1))] for place in range(count)})


def test_50_stopped_at_any_operation_it_is_old_or_new_and_the_next_opening_ends_it(
    base: Ready, scale: Scale, figures: Figures
) -> None:
    """A stop at the N-th operation leaves a whole repository; the next opening of the workspace ends what had begun."""
    changing, bound = points(base)
    early = [number for number in changing if number <= bound]
    late = [number for number in changing if number > bound]
    tried = spread(early, scale(2, 10_000)) + spread(late, scale(4, 10_000))
    for number in tried:
        ready = base.again()
        with ready.open() as workspace, injected(Fault(at=number)) as fault:
            with pytest.raises(Stopped):
                workspace.eraser.erase(ITEM, rewrite_shared=True)
            workspace.store.close = lambda: None  # type: ignore[method-assign]  the process is dead
        ready.git("fsck", "--full", "--strict")
        begun = (workspace.repository.state / "erase/record.json").exists()
        with ready.open() as workspace:
            if not begun and ready.found(GONE):
                assert number <= bound, fault.seen[-1]
                workspace.eraser.erase(ITEM, rewrite_shared=True)
            else:
                assert not begun or workspace.eraser.ended is not None, (number, workspace.store.notes)
        base.check_erased()


def test_50_a_failing_disk_changes_nothing_or_is_ended_later(base: Ready, scale: Scale) -> None:
    """An error at the N-th operation is a memfs error; the next erase or opening finishes it."""
    changing, _ = points(base)
    for number in spread(changing, scale(3, 150)):
        ready = base.again()
        fault = Fault(at=number, error=DISK_ERROR)
        with ready.open() as workspace, injected(fault), contextlib.suppress(MemfsError):
            workspace.eraser.erase(ITEM, rewrite_shared=True)
        ready.git("fsck", "--full", "--strict")
        with ready.open() as workspace:
            if ready.found(GONE):
                workspace.eraser.erase(ITEM, rewrite_shared=True)
        base.check_erased()


def test_50_the_check_catches_an_eraser_that_removes_first(base: Ready, monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken on purpose: an eraser that removes the old objects before the refs turn is caught at a stop."""
    real = rewrite.turn

    def removing_first(*arguments: Any) -> None:
        for path in (base.nasty.root / ".git/objects").glob("[0-9a-f][0-9a-f]/*"):
            io.unlink(path)
        real(*arguments)

    monkeypatch.setattr(rewrite, "turn", removing_first)
    ready = base.again()
    with ready.open() as workspace, injected(Fault()) as fault:
        workspace.eraser.erase(ITEM, rewrite_shared=True)
    last = max(
        number for number, seen in enumerate(fault.seen, 1) if seen.startswith("rename") and "packed-refs" in seen
    )
    ready = base.again()
    with ready.open() as workspace, injected(Fault(at=last)):
        with pytest.raises(Stopped):
            workspace.eraser.erase(ITEM, rewrite_shared=True)
        workspace.store.close = lambda: None  # type: ignore[method-assign]
    with pytest.raises(AssertionError, match="fsck"):
        ready.git("fsck", "--full", "--strict")


def test_50_the_check_catches_an_eraser_without_a_record(base: Ready, monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken on purpose: without the record nobody ends what was begun, and the search finds what is left."""
    write = io.write_file

    def unrecorded(path: Path, data: bytes, *arguments: Any, **options: Any) -> None:
        if not path.match(ERASE_RECORD):
            write(path, data, *arguments, **options)

    monkeypatch.setattr(io, "write_file", unrecorded)
    ready = base.again()
    with ready.open() as workspace, injected(Fault()) as fault:
        workspace.eraser.erase(ITEM, rewrite_shared=True)
    first = next(
        number for number, seen in enumerate(fault.seen, 1) if seen.startswith("unlink") and "/objects/" in seen
    )
    ready = base.again()
    with ready.open() as workspace, injected(Fault(at=first)):
        with pytest.raises(Stopped):
            workspace.eraser.erase(ITEM, rewrite_shared=True)
        workspace.store.close = lambda: None  # type: ignore[method-assign]
    with ready.open():
        assert ready.found(GONE)


KILLED = """
import sys
from memfs import open_workspace
settings = {"index.engine": "whoosh", "history.commit": "manual"}
with open_workspace(sys.argv[1], watch=False, settings=settings) as workspace:
    print("ready", flush=True)
    workspace.eraser.erase(sys.argv[2], rewrite_shared=True)
"""


def test_50_killed_at_any_moment_it_is_old_or_new(base: Ready, scale: Scale, figures: Figures) -> None:
    """kill -9 at random moments, git's children included: whole before the next opening, erased after a rerun."""
    rng = random.Random(50)
    kills = scale(2, 200)
    for _ in range(kills):
        ready = base.again()
        process = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(ready.root), ITEM], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(rng.uniform(0, 1.2))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        ready.git("fsck", "--full", "--strict")
        with ready.open() as workspace:
            if ready.found(GONE):
                workspace.eraser.erase(ITEM, rewrite_shared=True)
        base.check_erased()
    figures("erase killed", points=kills, lost=0)

"""Many clones that sync with one bare remote end up with the same memory, and nothing of anybody's is lost (B3)."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from memfs import MemoryItem, Workspace, open_workspace
from memfs.errors import MemfsError
from memfs.fs import io

CLONES = 8
TYPES = ("semantic", "knowledge", "procedural")
SETTINGS = {"index.engine": "memory", "history.commit": "manual", "history.adopt": "auto"}


@dataclass
class Team:
    """Clones of one remote, and what was acknowledged to their writers."""

    root: Path
    rng: random.Random
    stack: ExitStack
    clones: list[Workspace] = field(default_factory=list)
    put: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    counted: dict[str, int] = field(default_factory=dict)
    tags: dict[str, set[str]] = field(default_factory=dict)
    lines: dict[str, set[str]] = field(default_factory=dict)
    number: int = 0

    def begin(self) -> None:
        """A remote, a first clone that fills it, and the others."""
        git(self.root, "init", "--quiet", "--bare", "--initial-branch=main", "remote.git")
        first = self.root / "clone0"
        open_workspace(first, create=True, watch=False, settings=SETTINGS).close()
        git(first, "remote", "add", "origin", str(self.root / "remote.git"))
        self.open(first).teams.syncer.sync(edits=True)
        for number in range(1, CLONES):
            git(self.root, "clone", "--quiet", "remote.git", f"clone{number}")
            self.open(self.root / f"clone{number}")

    def open(self, path: Path) -> Workspace:
        workspace = open_workspace(path, watch=False, settings=SETTINGS)
        self.stack.callback(workspace.close)
        self.clones.append(workspace)
        return workspace

    # -- what a writer does -----------------------------------------------------------------------------------
    def step(self) -> None:
        clone = self.rng.choice(self.clones)
        acts = (self.add, self.add, self.line, self.line, self.tag, self.tag, self.count, self.count, self.move)
        self.rng.choice((*acts, self.by_hand, self.delete))(clone)

    def fresh(self, word: str) -> str:
        self.number += 1
        return f"{word}{self.number}"

    def any_item(self, clone: Workspace, word: str = "item") -> MemoryItem | None:
        known = sorted(path.stem for path in clone.root.glob("ContextMemory/memories/*/*/*.yaml"))
        ids = [name for name in known if name.startswith(word)]
        return clone.store.get(self.rng.choice(ids)) if ids else None

    def add(self, clone: Workspace) -> None:
        if self.rng.random() < 0.3:
            name = self.fresh("counter")
            clone.store.put(MemoryItem(f"seen {name}", "pattern", id=name, data={"occurrences": 1}))
            self.counted[name] = 1
        else:
            name = self.fresh("item")
            text = "\n".join(f"{name} line {number}" for number in range(6))
            clone.store.put(MemoryItem(text, self.rng.choice(TYPES), id=name))
        self.put.add(name)

    def line(self, clone: Workspace) -> None:
        if (item := self.any_item(clone)) is not None:
            mark = self.fresh("mark")
            lines = item.content.split("\n")
            lines.insert(self.rng.randrange(len(lines) + 1), mark)
            clone.store.put(item.replace(content="\n".join(lines)))
            self.lines.setdefault(item.id, set()).add(mark)

    def tag(self, clone: Workspace) -> None:
        if (item := self.any_item(clone)) is not None:
            mark = self.fresh("tag")
            clone.store.put(item.replace(tags=(*item.tags, mark)))
            self.tags.setdefault(item.id, set()).add(mark)

    def count(self, clone: Workspace) -> None:
        if (item := self.any_item(clone, "counter")) is not None:
            by = self.rng.randint(1, 5)
            clone.store.put(item.replace(data={**item.data, "occurrences": item.data["occurrences"] + by}))
            self.counted[item.id] += by

    def move(self, clone: Workspace) -> None:
        if (item := self.any_item(clone)) is not None:
            clone.store.put(item.replace(memory_type=self.rng.choice(TYPES)))

    def by_hand(self, clone: Workspace) -> None:
        if (item := self.any_item(clone)) is not None:
            mark = self.fresh("hand")
            path = clone.root / item.path
            text = path.read_text()
            if "content: |-\n" in text:
                path.write_text(text.replace("content: |-\n", f"content: |-\n  {mark}\n"))
                self.lines.setdefault(item.id, set()).add(mark)

    def delete(self, clone: Workspace) -> None:
        if (item := self.any_item(clone, self.rng.choice(("item", "counter")))) is not None:
            clone.store.delete(item.id)
            self.deleted.add(item.id)

    # -- syncs ------------------------------------------------------------------------------------------------
    def sync(self) -> None:
        kind = self.rng.random()
        if kind < 0.25:
            self.killed_sync(self.rng.choice(self.clones))
        elif kind < 0.5:
            with ThreadPoolExecutor(3) as threads:
                list(threads.map(lambda clone: clone.teams.syncer.sync(edits=True), self.rng.sample(self.clones, 3)))
        else:
            self.rng.choice(self.clones).teams.syncer.sync(edits=True)

    def killed_sync(self, clone: Workspace) -> None:
        """Another process syncs the same clone, and dies before its N-th change to the disk."""
        left = self.rng.randint(1, 90)
        pid = os.fork()
        if pid == 0:
            seen = iter(range(left))

            def hook(name: str, path: object) -> None:
                if name not in ("open", "read", "stat") and next(seen, None) is None:
                    os._exit(9)

            with suppress(MemfsError):
                workspace = open_workspace(clone.root, watch=False, settings=SETTINGS)
                io.set_hook(hook)
                workspace.teams.syncer.sync(edits=True)
            os._exit(0)
        os.waitpid(pid, 0)

    def rest(self) -> None:
        """Everybody syncs until nothing changes."""
        for _ in range(3):
            if not [
                done for clone in self.clones if (done := clone.teams.syncer.sync(edits=True)).joined or done.pushed
            ]:
                return
        raise AssertionError("three rounds were not enough")


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True, text=True).stdout


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Callable[[int], Team]]:
    with ExitStack() as stack:

        def make(seed: int) -> Team:
            made = Team(tmp_path, random.Random(seed), stack)
            made.begin()
            return made

        yield make


def test_clones_converge_and_nothing_is_lost(team: Callable[[int], Team], scale: Callable[[int, int], int]) -> None:
    """Eight clones write, edit, move, delete, sync at once and are killed: in the end all hold the same (B3)."""
    made = team(scale(1, random.randrange(1 << 30)))
    for number in range(scale(40, 1500)):
        made.step()
        if number % 4 == 0:
            made.sync()
    made.rest()
    trees = {git(clone.root, "rev-parse", "HEAD^{tree}") for clone in made.clones}
    assert len(trees) == 1
    assert trees == {git(made.root / "remote.git", "rev-parse", "main^{tree}")}
    assert [git(clone.root, "status", "--porcelain") for clone in made.clones] == [""] * CLONES
    files = sorted(made.clones[0].root.glob("ContextMemory/memories/*/*/*.yaml"))
    texts = {path.stem: path.read_text() for path in files}
    assert len(texts) == len(files), "an item is there twice"
    assert made.put - made.deleted <= texts.keys() <= made.put
    for name in texts.keys() - made.deleted:
        item = made.clones[0].store.get(name)
        assert item is not None
        assert made.tags.get(name, set()) <= set(item.tags), name
        assert [mark for mark in made.lines.get(name, ()) if mark not in texts[name]] == [], name
        if name in made.counted:
            assert item.data["occurrences"] == made.counted[name], name
    for clone in made.clones:
        assert [(one.path, one.code, one.message) for one in clone.checker.check() if one.severity == "error"] == []

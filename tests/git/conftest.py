"""A real git repository for each test, in a folder with a space and an umlaut in its name."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kit.copies import copy_workspace
from memfs.fs import io
from memfs.fs.journal import Writer
from memfs.git.commit_object import CommitChange, Group
from memfs.git.commits import commit
from memfs.git.repository import Repository

MAIN = "refs/heads/main"
ITEM = "ContextMemory/memories/semantic/2026-11/use-postgres-7h2k9q.yaml"


class World:
    """A working tree with two commits of a person, and what a test needs to act in it."""

    def __init__(self, root: Path, below: str = "") -> None:
        self.root = root
        self.workspace = root / below
        self.opened: list[Repository] = []
        self._own: Repository | None = None

    def git(self, *arguments: str, ok: bool = True, folder: Path | None = None, **variables: str) -> str:
        """The person's own git."""
        done = subprocess.run(
            ["git", *arguments],
            cwd=folder or self.root,
            env=os.environ | variables,
            capture_output=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        assert not ok or done.returncode == 0, done.stderr.decode()
        return done.stdout.decode("utf-8", "surrogateescape")

    def write(self, path: str, text: str, folder: Path | None = None) -> Path:
        file = (folder or self.workspace) / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
        return file

    def change(self, path: str, text: str | None) -> CommitChange:
        """A change as the store makes it: the file first, then the same bytes for history."""
        if text is None:
            (self.workspace / path).unlink(missing_ok=True)
            return CommitChange(path=path, data=None)
        self.write(path, text)
        return CommitChange(path=path, data=text.encode())

    def group(self, *changes: CommitChange, message: str = "Remember", agent: str = "", session: str = "") -> Group:
        writers = (Writer(agent=agent, session=session),) if agent or session else (Writer(person=True),)
        return Group(changes=changes, message=message, writers=writers, time=datetime.now(UTC))

    def put(self, path: str, text: str | None, **more: str) -> Group:
        return self.group(self.change(path, text), **more)

    def open(self, folder: Path | None = None, allow_detached: bool = False) -> Repository:
        repository = Repository.find(folder or self.workspace, allow_detached)
        assert repository is not None
        self.opened.append(repository)
        return repository

    def commit(self, *groups: Group, ref: str = MAIN) -> tuple[str, ...]:
        return commit(self.repository, groups, ref).commits

    @property
    def repository(self) -> Repository:
        if self._own is None:
            self._own = self.open()
        return self._own

    def status(self) -> str:
        return self.git("status", "--porcelain")

    def check(self) -> None:
        """The repository is whole and no lock or leftover of ours is in it."""
        self.git("fsck", "--full", "--strict")
        assert not list((self.root / ".git").rglob("*.lock"))
        for state in (self.root / ".git/memfs").iterdir():
            assert {path.name for path in state.iterdir()} <= {"children"}

    def close(self) -> None:
        for repository in self.opened:
            repository.close()


def _begin(world: World) -> None:
    world.root.mkdir()
    world.git("init", "-q")
    world.write("src/main.c", "int main;\n", world.root)
    world.git("add", ".")
    world.git("commit", "-qm", "one")
    world.write(ITEM, "title: first\n")
    world.git("add", ".")
    world.git("commit", "-qm", "two")


@pytest.fixture
def make_world(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., World]]:
    """Make worlds, as copies of one; what was opened in them is closed at the end."""
    made: list[World] = []

    def make(name: str = "mein Gedächtnis", below: str = "") -> World:
        pristine = tmp_path_factory.getbasetemp() / f"world-{below.replace('/', '-')}"
        if not pristine.exists():
            _begin(World(pristine, below))
        world = World(tmp_path / name, below)
        copy_workspace(pristine, world.root)
        made.append(world)
        return world

    yield make
    for world in made:
        world.close()


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    """One world."""
    return make_world()


@pytest.fixture(autouse=True)
def no_hook() -> Iterator[None]:
    """A fault hook ends with its test."""
    yield
    io.set_hook(None)

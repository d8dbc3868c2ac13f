"""Two clones of one memory, worked on by two people with git alone."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kit.copies import copy_workspace
from memfs import open_workspace
from memfs.admin import store_builder
from memfs.doors.cli.app import run
from memfs.git.repository import Repository

ITEM = "ContextMemory/memories/semantic/2026-03/deploy.yaml"
TEXT = """\
title: Deploy target
content: |-
  Deploy to Frankfurt on Tuesdays.
  Ask Bo first.
  Then watch the graphs.
tags:
- ops
created: '2026-03-01T10:00:00Z'
trust: human
importance: 2
"""
RESULT = "ContextMemory/iterations/iteration_001/tournament_data/final.json"
CONTEXT = "ContextMemory/context/release.yaml"


@dataclass(frozen=True)
class Done:
    """What one command of git or memfs did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its output, as the one JSON document it must be."""
        return json.loads(self.out)


@dataclass(frozen=True)
class Clone:
    """One person's clone."""

    root: Path

    def git(self, *words: str, code: int | None = 0) -> Done:
        """Run git here, as a person would."""
        run_ = subprocess.run(
            ["git", *words],
            cwd=self.root,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            check=False,
            env={**os.environ},
        )
        assert code is None or run_.returncode == code, run_.stdout + run_.stderr
        return Done(run_.returncode, run_.stdout, run_.stderr)

    def blobs(self, names: Iterable[str]) -> list[str]:
        """The texts of blobs."""
        asked = list(names)
        words = ["git", "cat-file", "--batch"]
        out = subprocess.run(
            words, cwd=self.root, input="".join(f"{one}\n" for one in asked).encode(), capture_output=True, check=True
        ).stdout
        found = []
        for _ in asked:
            facts, _, out = out.partition(b"\n")
            size = int(facts.split()[2])
            found.append(out[:size].decode())
            out = out[size + 1 :]
        return found

    def read(self, path: str = ITEM) -> str:
        """A file's text."""
        return (self.root / path).read_text(encoding="utf-8")

    def write(self, text: str, path: str = ITEM) -> None:
        """Save a file by hand."""
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")

    def edit(self, old: str, new: str, path: str = ITEM, message: str = "Edit by hand") -> None:
        """Change a passage of a file by hand, and commit it."""
        assert old in self.read(path)
        self.write(self.read(path).replace(old, new), path)
        self.commit(message)

    def commit(self, message: str = "Edit by hand") -> None:
        """Commit every file here."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)

    def install(self) -> None:
        """Install the merge driver, as ``memfs init`` does in a fresh clone."""
        repository = Repository.find(self.root)
        assert repository is not None
        store_builder.install_driver(repository)

    def pull(self, other: Clone, *options: str, code: int | None = 0) -> Done:
        """Merge the other's branch into this one."""
        self.git("fetch", "--quiet", str(other.root), "main")
        return self.git("merge", "--quiet", "--no-edit", *options, "FETCH_HEAD", code=code)

    def clean(self) -> bool:
        """Whether git has nothing to say of the files."""
        return self.git("status", "--porcelain").out == ""


@dataclass(frozen=True)
class Pristine:
    """Clones to copy: of a memory with one item, one state document and one context."""

    plain: Path
    joining: Path


@pytest.fixture(scope="session")
def pristine(forked: Path, tmp_path_factory: pytest.TempPathFactory) -> Pristine:
    """A clone without a merge driver, and one whose driver is a fork of a process that has imported everything."""
    folder, home = tmp_path_factory.mktemp("pristine"), tmp_path_factory.mktemp("home")
    (home / ".gitconfig").write_text(
        "[user]\n\tname = Ada\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("GIT_", "MEMFS_", "XDG_"))]:
            patch.delenv(name)
        patch.setenv("HOME", str(home))
        patch.setenv("XDG_CACHE_HOME", str(home / "cache"))
        memory, plain, joining = (Clone(folder / name) for name in ("memory", "plain", "joining"))
        open_workspace(memory.root, create=True, watch=False).close()
        memory.write(TEXT)
        document = {"id": "final", "participants": ["h1"], "winner": "h1", "timestamp": "2026-03-01T10:00:00Z"}
        memory.write(json.dumps(document, indent=2) + "\n", RESULT)
        memory.write("values:\n  target: staging\n", CONTEXT)
        memory.commit("The memory so far")
        for one in (plain, joining):
            memory.git("clone", "--quiet", str(memory.root), str(one.root))
        patch.setattr(sys, "executable", str(forked.with_name("python")))
        joining.install()
    return Pristine(plain.root, joining.root)


def ada_and_bo(source: Path, folder: Path) -> tuple[Clone, Clone]:
    """Copies of a clone for two people."""
    both = Clone(folder / "ada"), Clone(folder / "bo")
    for one in both:
        copy_workspace(source, one.root)
    return both


@pytest.fixture
def clones(pristine: Pristine, tmp_path: Path) -> tuple[Clone, Clone]:
    """Ada's and Bo's clones, without a merge driver."""
    return ada_and_bo(pristine.plain, tmp_path)


@pytest.fixture
def joining(pristine: Pristine, tmp_path: Path) -> tuple[Clone, Clone]:
    """The two clones, both with the merge driver."""
    return ada_and_bo(pristine.joining, tmp_path)


@pytest.fixture
def memfs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    """Run ``memfs`` in a clone."""
    monkeypatch.setenv("MEMFS_INDEX_ENGINE", "memory")

    def call(clone: Clone, *words: str) -> Done:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b""), encoding="utf-8"))
        capsys.readouterr()
        code = run(("-C", str(clone.root), *words))
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return call

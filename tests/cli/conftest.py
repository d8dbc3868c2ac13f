"""Running the command line in this process, in a workspace of the test's own."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from json import dumps, loads
from pathlib import Path
from typing import Any, Protocol

import pytest
import reference
import yaml
from jsonschema import Draft202012Validator

from kit.copies import copy_workspace
from memfs.doors.cli import output
from memfs.doors.cli.app import run


@dataclass(frozen=True, slots=True)
class Ran:
    """What one command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output, as the one JSON document it must be."""
        return yaml.safe_load(self.out)


class Memfs(Protocol):
    """Runs ``memfs`` with these arguments."""

    def __call__(self, *arguments: str, stdin: str | bytes = b"") -> Ran: ...


@pytest.fixture(autouse=True)
def json_by_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a verb of these tests prints as JSON has to be what the schema of its result says."""

    def render(result: Any, shown: Iterable[Any], *, json: bool) -> None:
        if json:
            fitting(type(result)).validate(loads(dumps(output.as_json(result), default=str)))
        plain_render(result, shown, json=json)

    plain_render = output.render
    monkeypatch.setattr(output, "render", render)


@cache
def fitting(kind: type) -> Draft202012Validator:
    """What checks the JSON of a result."""
    return Draft202012Validator(reference.schema(kind))


@pytest.fixture
def bare(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Memfs:
    """``memfs`` without a workspace."""

    def call(*arguments: str, stdin: str | bytes = b"") -> Ran:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))
        capsys.readouterr()
        code = run(arguments)
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return call


@pytest.fixture
def root(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, bare: Memfs, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A fresh workspace in a repository of its own, a copy of what ``memfs init`` made once; the quickest engine."""
    monkeypatch.setenv("MEMFS_INDEX_ENGINE", "sqlite")
    pristine = tmp_path_factory.getbasetemp() / "initialised"
    if not pristine.exists():
        made = bare("init", str(pristine))
        assert made.code == 0, made.err
        (pristine / "ContextMemory/configuration").mkdir()  # a test may write what a person would
    copy_workspace(pristine, tmp_path / "W")
    return tmp_path / "W"


@pytest.fixture
def memfs(root: Path, bare: Memfs) -> Memfs:
    """``memfs -C W`` in a fresh workspace."""

    def call(*arguments: str, stdin: str | bytes = b"") -> Ran:
        return bare("-C", str(root), *arguments, stdin=stdin)

    return call


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Set ``$EDITOR`` to a shell script that gets the file as ``$1``."""

    def use(script: str) -> None:
        path = tmp_path / "editor"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        monkeypatch.delenv("VISUAL", raising=False)
        monkeypatch.setenv("EDITOR", str(path))

    return use


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the verbs that open an editor believe that a person sits at a terminal."""
    monkeypatch.setattr("memfs.doors.cli.editor.is_interactive", lambda: True)


def git(root: Path, *arguments: str) -> str:
    """Run git as a person would."""
    import subprocess

    done = subprocess.run(
        ["git", "-C", str(root), *arguments], check=True, capture_output=True, text=True, env=os.environ
    )
    return done.stdout

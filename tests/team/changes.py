"""A team's repository for tests of reviews: memory files written by hand, and commits of anybody."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from memfs.git.repository import Repository
from memfs.settings import Settings
from memfs.team.asof import Travel
from memfs.team.review import Reviews
from memfs.team.review_report import Report

BELOW = "ContextMemory/memories"
ADA = ("Ada Person", "ada@example.org")
CODER = ("coder", "coder@agent.memfs")


class Team:
    """A repository with a workspace in it (``below`` its top), on the branch ``main`` with one commit."""

    def __init__(self, folder: Path, below: str = "") -> None:
        self.top = folder
        self.root = folder / below
        self.root.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch=main")
        self.write("memfs.toml", "")
        self.item("semantic/anchor", "The anchor of everything is here.")
        self.commit("Begin")

    def git(self, *words: str, check: bool = True, **variables: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(self.top), *words],
            check=False, capture_output=True, text=True, env={**os.environ, **variables},
        )  # fmt: skip
        assert not check or done.returncode == 0, done.stderr
        return done.stdout

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def item(self, name: str, content: str = "", **fields: str) -> str:
        """An item ``type/id``; fields are lines of YAML. Returns its path."""
        kind, _, stem = name.partition("/")
        folder = "ContextMemory/conventions" if kind == "convention" else f"{BELOW}/{kind}/2026-03"
        rest = "".join(f"{key}: {value}\n" for key, value in {"trust": "human", **fields}.items())
        times = "created: 2026-03-01T10:00:00Z\n"
        self.write(f"{folder}/{stem}.yaml", f"content: |-\n  {content}\n{times}{rest}")
        return f"{folder}/{stem}.yaml"

    def move(self, path: str, to: str) -> None:
        (self.root / to).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).rename(self.root / to)

    def commit(self, message: str = "Change", author: tuple[str, str] = ADA) -> str:
        name, email = author
        self.git("add", "--all")
        self.git("commit", "--quiet", "-m", message, GIT_AUTHOR_NAME=name, GIT_AUTHOR_EMAIL=email)
        return self.git("rev-parse", "HEAD").strip()

    def branch(self, name: str = "work") -> None:
        self.git("switch", "--quiet", "--create", name)

    def reviews(self, settings: Settings | None = None) -> Reviews:
        repository = Repository.find(self.root)
        assert repository is not None
        chosen = settings or Settings()
        travel = Travel(repository, chosen)
        return Reviews(repository, chosen, travel)

    def review(self, revisions: str = "main..HEAD", settings: Settings | None = None) -> Report:
        return self.reviews(settings).report(revisions)


def codes(report: Report) -> set[tuple[str, str]]:
    """Code and severity of what was found."""
    return {(one.code, one.severity) for one in report.findings}

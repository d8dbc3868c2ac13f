"""``review``: report what a pull request does to memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memfs.dataclass import dataclass, field
from memfs.doors.cli.command import invocation, verb
from memfs.doors.cli.output import MERGE, Block, Text, print_text
from memfs.errors import RepoUnsupported, SettingInvalid, StorageIO, WorkspaceNotFound

if TYPE_CHECKING:
    from memfs.git.repository import Repository
    from memfs.team.review_report import Report

_TEMPLATES = {"github": "github-workflow.yml"}


@dataclass(frozen=True, slots=True)
class ReviewedChange:
    """What a change does to memory.

    Attributes:
        failed: whether it must not be merged; with `--strict` a warning does.
        summary: that in a sentence.
        report: all of it; its fields are inlined.
    """

    failed: bool
    summary: str
    report: Report = field(metadata=MERGE)


def _text(reviewed: ReviewedChange) -> Text:
    from memfs.team.review_report import markdown

    yield Block(markdown(reviewed.report).rstrip("\n"))


@verb("review", text=_text, exit_code=lambda reviewed: reviewed.failed)
@click.argument("revisions", required=False, metavar="[BASE..HEAD | HEAD]")
@click.option("--strict", is_flag=True, help="Fail on warnings, too.")
@click.option("--template", type=click.Choice(sorted(_TEMPLATES)), help="Only print a CI workflow that runs this.")
def review(revisions: str | None, strict: bool, template: str | None) -> ReviewedChange | None:
    """Report what a change does to memory: what is added, changed and removed, and what is wrong with it.

    BASE..HEAD is compared as a pull request is: from the commit that both began with. A single branch or commit is the
    head, and the branch that is checked out its base; without a range, the main branch of 'origin', or else 'main' or
    'master', is. Nothing is written. Exit code 0: it can be merged. 1: errors were found, or warnings with
    --strict, or the range cannot be compared.

    Examples:
        memfs review main..HEAD
        memfs review origin/tune
        memfs review --strict
        memfs review --template github > .github/workflows/memory.yml
    """
    if template:
        from memfs.resources import template_text  # wanted once in a workspace's life

        print_text(template_text(_TEMPLATES[template]).removesuffix("\n"))
        return None
    from memfs.config import load  # as the next, not wanted for --help
    from memfs.settings import Settings
    from memfs.team.asof import Travel
    from memfs.team.review import Reviews
    from memfs.team.review_report import summary

    asked = invocation()
    root, missing = _folder(asked.workspace)
    try:
        settings = load(root, dict(asked.settings))
    except SettingInvalid as error:
        if error.path is None:
            raise
        settings = Settings()  # the file is what is reviewed: the report says what is wrong with it
    with _repository(root) as repository, closing(Travel(repository, settings)) as travel:
        report = Reviews(repository, settings, travel).report(revisions or "")
        if missing is not None and report.empty:
            raise missing
    return ReviewedChange(report.failed(strict=strict), summary(report), report)


def _folder(named: str | None) -> tuple[Path, WorkspaceNotFound | None]:
    """The workspace's folder; with what is to be said where it holds no memory, if no change took it all away.

    Raises:
        WorkspaceNotFound: there is no such folder, and no repository either.
    """
    from memfs.fs.workspace_location import find_workspace, named_workspace

    try:
        return find_workspace(named), None
    except WorkspaceNotFound as error:
        folder = Path(named or named_workspace() or ".").resolve()
        if not (folder / ".git").exists():
            raise
        return folder, error


@contextmanager
def _repository(root: Path) -> Iterator[Repository]:
    """The workspace's repository; where nothing can be written in it, git runs in a folder that is gone afterwards."""
    import tempfile

    from memfs import trust
    from memfs.git.repository import Repository

    with ExitStack() as ending:
        try:
            found = Repository.find(root, trusted=trust.repository)
        except StorageIO:
            folder = ending.enter_context(tempfile.TemporaryDirectory(prefix="memfs-"))
            found = Repository.find(root, trusted=trust.repository, state=Path(folder))
        if found is None:
            raise RepoUnsupported("this workspace is in no git repository", path=str(root), hint="run git init there")
        ending.callback(found.close)
        yield found

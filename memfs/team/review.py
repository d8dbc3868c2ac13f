"""Compare two sides of a change of memory as a pull request does, and report on it.

Reads git's objects only: it needs no journal, no lock and no index, and writes nothing. Secrets never reach the
report.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memfs.config_names import KINDS
from memfs.errors import HistoryUnavailable, MemfsError
from memfs.format.secrets import redacted, redacted_value
from memfs.fs.atomic_replace import sha256
from memfs.fs.journal import Journal
from memfs.fs.own_branch import BRANCH
from memfs.git.ancestry import cut_off, merge_bases
from memfs.git.repository import Repository
from memfs.settings import Settings
from memfs.team.answers import compare, not_asked, question_findings, questions_of
from memfs.team.review_changes import (
    ChangedPaths,
    Side,
    changed_between,
    convention_changes,
    document_changes,
    item_changes,
    side_of,
    staged_side,
)
from memfs.team.review_findings import (
    commits_between,
    file_findings,
    history_findings,
    item_findings,
    neighbour_findings,
    shallow,
)
from memfs.team.review_report import (
    FieldChange,
    ItemChange,
    Report,
    ReviewFinding,
    in_order,
    of_error,
)

if TYPE_CHECKING:
    from memfs.team.asof import Past, Travel


def concealed(report: Report) -> Report:
    """The report with the name of a rule in place of each secret."""
    shown: Report = _concealed(report)
    return replace(shown, base=report.base, head=report.head)


def _concealed(value: Any) -> Any:
    if isinstance(value, FieldChange):
        key = value.field.rpartition(".")[2]
        sides = {name: redacted_value(getattr(value, name), key) for name in ("before", "after")}
        return FieldChange(field=redacted(value.field), **sides)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{one.name: _concealed(getattr(value, one.name)) for one in fields(value)})
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, tuple):
        return tuple(map(_concealed, value))
    return redacted_value(value) if isinstance(value, Mapping) else value


_REMOTES = "refs/remotes/"
_OWN_BASES = (f"{_REMOTES}origin/{BRANCH}", BRANCH)
_BASES = (f"{_REMOTES}origin/HEAD", f"{_REMOTES}origin/main", f"{_REMOTES}origin/master", "main", "master")
_HINT = "write BASE..HEAD, such as main..HEAD"


class Reviews:
    """Reviews changes of one workspace's memory.

    Args:
        repository: where it lies.
        settings: those that hold in this process.
        travel: goes to either side of a change.
    """

    def __init__(self, repository: Repository, settings: Settings, travel: Travel) -> None:
        self._repository = repository
        self._settings = settings
        self._travel = travel

    def report(self, revisions: str = "") -> Report:
        """What a range of commits does to memory: from what both ends began with to its head.

        Args:
            revisions: ``BASE..HEAD``; ``HEAD`` alone is what would come to the branch that is checked out, ``BASE..``
                means up to that branch, "" from the branch that ``origin`` calls its main one, or else ``main`` or
                ``master``.

        Raises:
            HistoryUnavailable: a revision does not exist, the two have nothing in common, the clone is too shallow, or
                all that a single one has is here already.
        """
        revisions = revisions.strip() or f"{self._main()}..HEAD"
        if ".." not in revisions:
            revisions = self._coming(revisions)
        left, right = self._ends(revisions)
        base = self._common(left, right)
        commits = commits_between(self._repository, base, right)
        before, after = (side_of(self._repository, commit, self._invisible) for commit in (base, right))
        return concealed(self._report(before, after, revisions.removeprefix(_REMOTES), commits))

    def staged(self, index: Path | None = None) -> Report:
        """What the next commit would do to memory, by what is staged.

        Args:
            index: another index file than the repository's own, as git names it to hooks (``GIT_INDEX_FILE``).

        Raises:
            HistoryUnavailable, GitFailed: HEAD or the index cannot be read.
        """
        before = side_of(self._repository, self._repository.head_commit(), self._invisible)
        after = staged_side(self._repository, index, self._invisible)
        return concealed(self._report(before, after, "what is staged", []))

    def uncommitted(self, report: Report) -> int:
        """How many writes wait for their commit, and so are not part of a report that goes up to HEAD."""
        head = self._repository.head_commit()
        if not head or report.head != head:
            return 0
        journal = Journal(self._repository.state / "journal")
        try:
            writes = [{change.path for change in operation.changes} for operation in journal.operations()]
            waiting = {path for path in set().union(*writes) if journal.latest(path) != self._committed(path)}
            return sum(not waiting.isdisjoint(paths) for paths in writes)
        except MemfsError:  # 'memfs check' tells what is wrong with it
            return 0
        finally:
            journal.close()

    def _committed(self, path: str) -> str:
        blob = self._repository.head_blob(path)
        return "" if blob is None else sha256(self._repository.blob(blob))

    @property
    def _invisible(self) -> bool:
        return self._settings.security.allow_invisible

    # -- which sides ----------------------------------------------------------------------------------------------
    def _ends(self, revisions: str) -> tuple[str, str]:
        left, _, right = revisions.partition("..")
        if not left:
            raise HistoryUnavailable(f"{revisions!a} names no beginning", hint=_HINT)
        return self._repository.resolve(left), self._repository.resolve(right.removeprefix(".") or "HEAD")

    def _coming(self, head: str) -> str:
        """The range of what a revision would bring; one that brings nothing is most likely meant as the other end."""
        here, there = self._repository.resolve("HEAD"), self._repository.resolve(head)
        if there in merge_bases(self._repository, here, there):
            hint = f"what this branch has and {head} has not: memfs review {head}..HEAD"
            raise HistoryUnavailable(f"all of {head} is in this branch already", hint=hint)
        return f"HEAD..{head}"

    def _main(self) -> str:
        """The branch that a pull request most likely is for."""
        head = self._repository.head_commit()
        for name in (*_OWN_BASES, *_BASES):
            with suppress(HistoryUnavailable):
                commit = self._repository.resolve(name)
                if name in _BASES or (head and merge_bases(self._repository, head, commit)):
                    return name
        raise HistoryUnavailable("nobody says what to compare with", hint=_HINT)

    def _common(self, left: str, right: str) -> str:
        """The commit that both began from."""
        bases = merge_bases(self._repository, left, right)
        if bases:
            return bases[0]
        if cut_off(self._repository):
            raise shallow()
        raise HistoryUnavailable("the two have no commit in common", hint="name two branches of one history")

    # -- the report -----------------------------------------------------------------------------------------------
    def _report(self, before: Side, after: Side, title: str, commits: list[str]) -> Report:
        changed = changed_between(before, after)
        items = item_changes(before, after, changed)
        found = list(self._findings(before, after, changed, items, commits))
        report = Report(
            base=before.files.commit,
            head=after.files.commit,
            title=title,
            prefix=self._repository.prefix,
            items=tuple(items),
            conventions=tuple(convention_changes(before, after, changed)),
            documents=tuple(document_changes(before, after, changed)),
            commits=len(commits),
        )
        if changed.every:
            try:
                pasts = self._past(before, after.time), self._past(after, after.time)
                found += neighbour_findings(before, after, items, pasts[1].store)
                then = pasts[0].recall if before.files.commit and before.entries else None
                answered = tuple(compare(questions_of(after), then, pasts[1].recall))
                report = replace(report, questions=answered)
                found += question_findings(answered)
            except (MemfsError, OSError) as error:
                found.append(not_asked(error))
        return replace(report, findings=in_order(found))

    def _findings(
        self, before: Side, after: Side, changed: ChangedPaths, items: list[ItemChange], commits: list[str]
    ) -> Iterator[ReviewFinding]:
        if after.broken_kinds is not None and KINDS not in changed.others:
            yield of_error(after.broken_kinds, KINDS)
        yield from file_findings(before, after, changed)
        yield from item_findings(before, after, items, changed)
        yield from history_findings(before, after, commits, items)

    def _past(self, side: Side, now: datetime) -> Past:
        """The memory of a side, also of what only a quarantined branch holds: a person looks at it."""
        if not side.files.commit:
            return self._travel.staged(side.entries, now=now)
        return self._travel.at(side.files.commit, now=now, quarantined=True)


def index_of_hook() -> Path | None:
    """The index that git tells a hook to look at, which is another one in a partial commit."""
    named = os.environ.get("GIT_INDEX_FILE", "")
    return Path(os.path.abspath(named)) if named else None

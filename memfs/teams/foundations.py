"""Foundations: the two files without which no workspace opens, mended after a merge (row 43; K4, B3).

Owns which files these are, and what is told of them and done to them while nothing is open: there is no store, no
journal and no index then. How versions are found and joined is ``openmerges``' business, as for every other file.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType

from memfs import trust
from memfs.errors import ContentError
from memfs.files.codec import Codec
from memfs.files.lock import FileLock
from memfs.files.markers import spans
from memfs.files.schema import Schemas
from memfs.files.tomltext import FILE as SETTINGS
from memfs.files.tree import Tree
from memfs.history.repository import Repository
from memfs.model import KindTable
from memfs.model.problem import Problem
from memfs.store.parts import READ_LIMIT
from memfs.teams.endings import end_merges, keep_conflicts, place
from memfs.teams.openmerges import Open, OpenMerges, Outcome, Side, is_marked
from memfs.upkeep.kindfile import PATH as KINDS
from memfs.upkeep.mergespool import MergeSpool

FILES = (SETTINGS, KINDS)
_HINT = "'memfs resolve' shows both values and joins them; --ours or --theirs takes one version whole"


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """A file with conflict markers that keeps the workspace closed.

    Attributes:
        path: the file.
        lines: the first and last line of each stretch between markers, from 1.
        outcome: what ``resolve`` makes of it; ``undecided`` where somebody has to choose.
    """

    path: str
    lines: tuple[tuple[int, int], ...]
    outcome: Outcome

    @property
    def problem(self) -> Problem:
        """It, as a check tells it."""
        places = ", ".join(f"{first} to {last}" for first, last in self.lines)
        told = "; ".join(_values(self.outcome))
        message = f"a merge left conflict markers in lines {places}{': ' if told else ''}{told}"
        return Problem(path=self.path, code="ConflictMarkers", message=message, hint=_HINT, line=self.lines[0][0])


def broken(root: Path) -> tuple[str, ...]:
    """Which of the files have conflict markers in them; it costs reading them."""
    tree = Tree(root)
    try:
        return tuple(path for path in FILES if is_marked(tree, path))
    finally:
        tree.close()


class Foundations:
    """The files of one workspace that cannot be opened. It is to be closed."""

    def __init__(self, root: Path) -> None:
        """
        Raises:
            RepoUntrusted, RepoUnsupported: the workspace's repository is not to be read.
        """
        found = Repository.find(root, trusted=trust.repository)
        if found is None:
            raise ContentError("a merge left conflict markers, and there is no repository", path=SETTINGS)
        self.repository = found
        self.tree = Tree(root)
        self.kinds = KindTable()
        self.codec = Codec(Schemas(), self.kinds, allow_invisible=True)
        self._merges = OpenMerges(self)

    def blocked(self, side: Side = "") -> list[Blocked]:
        """The files with markers, and what becomes of each.

        Args:
            side: that version is taken whole.
        """
        opened = {one.path: one for one in self._merges.in_index()[0]}
        return [self._blocked(path, opened.get(path), side) for path in FILES if is_marked(self.tree, path)]

    def finish(self, references: Collection[str] = (), *, side: Side = "", dry_run: bool = False) -> list[Outcome]:
        """Join or choose versions, as ``Resolver.finish`` does; committing is left to the person.

        Args:
            references: of which files; none means each.
            side: take that version whole.

        Raises:
            Conflict, GitBusy, StorageIO: see there.
        """
        found = [one.outcome for one in self.blocked(side) if not references or one.path in references]
        ready = [one for one in found if not one.undecided]
        if ready and not dry_run:
            self._end(ready)
        return found

    def _end(self, outcomes: Sequence[Outcome]) -> None:
        state = self.repository.state
        with FileLock(state / "lock", home=self.repository.common_dir).hold("resolve"):
            for one in outcomes:
                keep_conflicts(MergeSpool(state), one)
            end_merges(self.tree, self.repository, [one for one in outcomes if one.open.staged])
            for one in outcomes:
                if not one.open.staged:
                    place(self.tree, self.repository, self._with_markers_kept(one))

    def _with_markers_kept(self, one: Outcome) -> Outcome:
        """What no commit has is set aside first: nothing tells markers of git's from a text that has such lines."""
        committed = one.before is not None and self.repository.head_blob(one.open.path) == self.repository.blob_id(
            one.before
        )
        return replace(one, touched=not committed)

    def _blocked(self, path: str, opened: Open | None, side: Side) -> Blocked:
        data = self.tree.read(path, READ_LIMIT).data
        lines = tuple(spans(data))
        try:
            one = opened or self._merges.between_markers(path)
        except ContentError as error:
            left = Open(path=path, what="has conflict markers", base=None, ours=None, theirs=None, staged=False)
            return Blocked(path=path, lines=lines, outcome=Outcome(open=left, before=data, undecided=str(error)))
        return Blocked(path=path, lines=lines, outcome=self._merges.outcome(one, side))

    def close(self) -> None:
        """Release what was opened."""
        self.tree.close()
        self.repository.close()

    def __enter__(self) -> Foundations:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _values(outcome: Outcome) -> list[str]:
    words = ("ours", "theirs") if outcome.undecided else ("kept", "lost")
    return [f"{one.field} ({words[0]} {one.kept!r}, {words[1]} {one.lost!r})" for one in outcome.conflicts if one.field]

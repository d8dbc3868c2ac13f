"""Resolution: whatever a merge could not decide, listed and brought to an end (faults row 43; K4, B3).

Owns what counts as waiting, and in which order an outcome reaches the file, the person's index and the records. How
versions are found and joined is ``openmerges``', what a decision does to an item ``decisions``' business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from memfs.errors import ContentError, ItemNotFound, ItemSyntaxError
from memfs.history.unmerged import situation
from memfs.model.conflicts import KEPT, LOST, DocumentClash
from memfs.model.ids import stem_of
from memfs.model.item import MemoryItem
from memfs.store import Store
from memfs.store.documents import schema_of
from memfs.store.naming import path_of
from memfs.store.parts import ITEM_SUFFIXES, Parts
from memfs.teams.decisions import Decided, Decisions, Ruling, is_record
from memfs.teams.endings import end_merges, keep_conflicts
from memfs.teams.keptaside import KeptAside
from memfs.teams.missed import bring_back, settle
from memfs.teams.openmerges import Open, OpenMerges, Outcome, Side, is_marked, paths_of
from memfs.upkeep.mergespool import MergeSpool, Record, can_be_recorded
from memfs.upkeep.opening import has_states

if TYPE_CHECKING:
    from memfs.states.parts import States

_MESSAGE = "Join the versions that a merge left"


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """What waits for somebody in one workspace.

    Attributes:
        open: files of which the person's index holds several versions.
        markers: files with conflict markers in them that git takes for merged, by path.
        items: items that carry conflicts of a merge.
        documents: fields of documents of which one value gave way.
        spooled: conflicts of a merge that goes on; they are decided about when it is over.
        others: how many files that are not memory are open in the person's index.
        situation: what goes on in the repository, by the file that says so (``MERGE_HEAD``, ...), "" for nothing.
    """

    open: tuple[Open, ...] = ()
    markers: tuple[str, ...] = ()
    items: tuple[MemoryItem, ...] = ()
    documents: tuple[DocumentClash, ...] = ()
    spooled: tuple[Record, ...] = ()
    others: int = 0
    situation: str = ""

    @property
    def count(self) -> int:
        """How many decisions wait: files, and fields."""
        fields = sum(len(item.conflicts) for item in self.items)
        return len(self.open) + len(self.markers) + fields + len(self.documents) + len(self.spooled)


class Resolver:
    """Lists and ends what merges could not decide in one workspace. May be used from several threads."""

    def __init__(self, store: Store, parts: Parts, states: Callable[[], States]) -> None:
        self._store = store
        self._parts = parts
        self._states = states
        self._merges = OpenMerges(parts)
        self._decisions = Decisions(store, parts)
        self._spool = MergeSpool(parts.repository.state)
        self._aside = KeptAside(store, parts)

    # -- looking --------------------------------------------------------------------------------------------------
    def waiting(self, *, quick: bool = False) -> Waiting:
        """Everything that waits for a decision (B3).

        Args:
            quick: leave out documents with markers that git takes for merged: to find them each is read.

        Raises:
            GitFailed, HistoryUnavailable: git's files cannot be read.
        """
        with self._store.looking_once():
            return self._waiting(quick)

    def _waiting(self, quick: bool) -> Waiting:
        documents = self.documents()
        opened, others = self._merges.in_index()
        in_index = {path for one in opened for path in one.paths}
        return Waiting(
            open=tuple(opened),
            markers=tuple(path for path in self._marked(quick) if path not in in_index),
            items=tuple(item for item in self._decisions.waiting() if item.path not in in_index),
            documents=tuple(documents),
            spooled=self._spooled(),
            others=others,
            situation=situation(self._parts.repository),
        )

    def items(self) -> list[MemoryItem]:
        """The items that carry conflicts of a merge."""
        return list(self._decisions.waiting())

    def take_up(self) -> int:
        """Write down what merges of git's left behind, once those are over: conflicts, and lost edits; how many."""
        self._store.require_open()
        lost = bring_back(self._store, self._parts, self._spool)
        waits = any(can_be_recorded(record["document"]) for record in self._spool.waiting().values())
        return lost + (self._states().take_up_merges() if waits else 0)

    def documents(self) -> list[DocumentClash]:
        """Fields of documents of which one value gave way: those with a record in the tree, and those kept aside."""
        self.take_up()
        recorded = self._states().clashes.list() if has_states(self._parts.seen) else []
        return [*recorded, *self._aside.waiting()]

    def _spooled(self) -> tuple[Record, ...]:
        """What waits until a merge is over, to be recorded or to be decided about."""
        going_on = bool(self._parts.repository.busy())
        waiting = self._spool.waiting().values()
        return tuple(record for record in waiting if going_on or can_be_recorded(record["document"]))

    def _marked(self, quick: bool = False) -> list[str]:
        self._store.follow()
        problems = self._store.following.problems()
        if not quick:
            from memfs.upkeep.integrity import document_problems  # brings what state documents need

            problems = [*problems, *document_problems(self._store, self._parts)]
        suspects = {problem.path for problem in problems if problem.code == ItemSyntaxError.__name__}
        return sorted(path for path in suspects if is_marked(self._parts.tree, path))

    # -- ending merges --------------------------------------------------------------------------------------------
    def finish(
        self, references: Sequence[str] = (), *, side: Side = "", source: str = "", dry_run: bool = False
    ) -> list[Outcome]:
        """Join what git left in several versions, by the same rules as the merge driver (row 43; K4, B3).

        A file that the person made an outcome of stays as they made it. The outcome goes into the file and into the
        person's index, as ``git add`` would put it; committing the merge is left to them. A file that git takes for
        merged, with markers in it, is written and committed like any other change.

        Args:
            references: ids or paths; none means every file.
            side: take that version whole instead; what the person made of the file is set aside.
            dry_run: tell, write nothing.

        Returns:
            One outcome for each file; those with ``undecided`` were left as they are.

        Raises:
            ItemNotFound: nothing is open under one of the names.
            Conflict: a file changed at this very moment. What came before it is finished.
            GitBusy: somebody holds the index; repeat it.
            StorageIO.
        """
        opened, _ = self._merges.in_index()
        chosen = list(dict.fromkeys(self._chosen(opened, references)))
        outcomes = _in_pairs([self._merges.outcome(one, side) for one in chosen])
        ready = [one for one in outcomes if not one.undecided]
        if not dry_run:
            self._end_merges([one for one in ready if one.open.staged])
            self._write([one for one in ready if not one.open.staged], source)
            self.take_up()
        return outcomes

    def _chosen(self, opened: Sequence[Open], references: Sequence[str]) -> Iterator[Open]:
        taken = {path for one in opened for path in one.paths}
        marked = [path for path in self._marked() if path not in taken]
        if not references:
            yield from opened
            for path in marked:
                with suppress(ContentError):
                    yield self._merges.between_markers(path)
            return
        for reference in references:
            found = [one for one in opened if any(_means(reference, path) for path in one.paths)]
            if found:
                yield from found
                continue
            path = next((path for path in marked if _means(reference, path)), "")
            if not path:
                raise ItemNotFound(f"no merge left {reference!r} open", hint="'memfs resolve' lists what waits")
            yield self._merges.between_markers(path)

    def _end_merges(self, outcomes: Sequence[Outcome]) -> None:
        """The journal takes no part: what the file holds follows from what the index has, the commit is theirs."""
        if not outcomes:
            return
        repository = self._parts.repository
        for one in outcomes:
            keep_conflicts(self._spool, one)
        with self._parts.lock.hold("resolve"):
            end_merges(self._parts.tree, repository, outcomes)
        settle(self._spool, {stem_of(path).casefold() for path in paths_of(outcomes)})
        self._store.refresh(paths_of(outcomes))

    def _write(self, outcomes: Sequence[Outcome], source: str) -> None:
        plans = []
        for one in outcomes:
            plan = self._store.plan_restore(one.open.path, one.data)
            if plan is not None:
                plans.append(replace(plan, expected=plan.old_sha))
        if plans:
            self._store.carry_out(plans, _MESSAGE, source=source)
        for one in outcomes:
            keep_conflicts(self._spool, one)

    # -- deciding -------------------------------------------------------------------------------------------------
    def decide(
        self, reference: str, ruling: Ruling, *, source: str = "", dry_run: bool = False
    ) -> Decided | DocumentClash:
        """Settle the conflicts of an item or document, or the one of a state document's record (B3).

        Args:
            reference: an item, by id or path; the path of a record; or that of a document outside of iterations.
            ruling: of a record only ``take`` counts.

        Raises:
            ItemNotFound, QueryInvalid, Conflict, ContentError, StorageIO: nothing was written.
        """
        if is_record(reference):
            clashes = self._states().clashes
            if dry_run:
                found = next((one for one in clashes.list() if one.path == reference), None)
                if found is None:
                    raise ItemNotFound(f"there is no record {reference!r}", hint="'memfs resolve' lists what waits")
                return found
            return clashes.resolve(reference, keep=LOST if ruling.take else KEPT, source=source)
        if schema_of(path_of(reference)):
            decided = self._aside.decide(reference, ruling, source=source, dry_run=dry_run)
            if decided is not None:
                return decided
        return self._decisions.decide(reference, ruling, source=source, dry_run=dry_run)


def _in_pairs(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """With what has to end together left together: git knows the one of two items only by the other's entry."""
    left = {one.open.path for one in outcomes if one.undecided}
    return [
        replace(one, undecided=f"it ends together with {other}")
        if (other := next((path for path in one.open.beside if path in left), ""))
        else one
        for one in outcomes
    ]


def _means(reference: str, path: str) -> bool:
    """Whether a person's name for a file means this path: the path itself, or an item's id or its beginning."""
    if "/" in reference or reference.endswith(ITEM_SUFFIXES) or reference == path:
        return path_of(reference) == path
    return not schema_of(path) and stem_of(path).casefold().startswith(reference.casefold())

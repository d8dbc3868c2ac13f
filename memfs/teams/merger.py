"""Merger: joins another line of history into the branch that is checked out (B1, B3).

Owns what a merge that memfs makes itself does to files and to history: that what waits is committed before, that
nothing of a person's is replaced, and which commit results. What the files come to is the business of
``memfs.teams.historyjoin``; where the other line came from, its caller's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from memfs.errors import Conflict, GitBusy, HistoryUnavailable, MemfsError, MergeRefused
from memfs.history.ancestry import holds_commit, is_ancestor, merge_bases
from memfs.store import Store, signing
from memfs.store.joining import join
from memfs.store.parts import Parts
from memfs.store.plan import Planned
from memfs.store.writing import Signature
from memfs.teams.contested import conflict_records, keep_others, told
from memfs.teams.historyjoin import HistoryJoin, Wanted
from memfs.teams.treejoin import Contested, TreeJoin

_TRIES = 5
_FEW = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class FileClash:
    """One field that both sides changed differently, and of which one value was kept.

    Attributes:
        path: the file, below the workspace.
        field: dotted name; "" for the whole file (deleted on one side, edited on the other).
        kept: what the file holds now.
        lost: what it does not hold; recorded in the file, or in a record beside it.
    """

    path: str
    field: str
    kept: Any = None
    lost: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """What a merge did, or would do.

    Attributes:
        commit: the commit that holds both lines: the branch's tip. "" where nothing was made (``dry_run``), or where it
            waits.
        forward: the branch only moved along the other line, without a commit of its own.
        changed: the files that are different from before, below the workspace.
        conflicts: what both sides changed differently.
        waiting: why the merge commit waits, where git became busy; the files are merged already.
        nothing: the branch held the other line already. Where both lines say the same, a commit joins them all the
            same, and no file changes.
    """

    commit: str
    forward: bool = False
    changed: tuple[str, ...] = ()
    conflicts: tuple[FileClash, ...] = ()
    waiting: str = ""
    nothing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Planned:
    commit: str
    branch: str
    forward: bool
    wanted: tuple[Wanted, ...]
    contested: tuple[Contested, ...]

    def joined(self, commit: str, forward: bool, waiting: str = "") -> Joined:
        return Joined(
            commit=commit,
            forward=forward,
            changed=tuple(one.path for one in self.wanted),
            conflicts=tuple(
                FileClash(path=file.path, field=one.field, kept=one.kept, lost=one.lost)
                for file in self.contested
                for one in file.conflicts
            ),
            waiting=waiting,
        )


class Merger:
    """Merges commits into the checked-out branch of one workspace. May be used from several threads."""

    def __init__(self, store: Store, parts: Parts, sum_up: Callable[[Sequence[str]], None]) -> None:
        """``sum_up`` is told of the files that a merge changed, to bring up to date what follows from them."""
        self._sum_up = sum_up
        self._store = store
        self._parts = parts
        self._histories = HistoryJoin(parts.repository, TreeJoin(parts.repository, parts.codec, parts.kinds))

    def merge(
        self,
        commit: str,
        message: str,
        *,
        source: str = "",
        dry_run: bool = False,
        adopt: bool | None = None,
        strangers: bool = False,
    ) -> Joined:
        """Join a commit's memory with what is here; the branch then holds both lines (B1, B3).

        What waits is committed first. Files are written journal first: killed anywhere, the merge is finished or was
        never begun. Where the branch holds nothing that the commit lacks, it moves there without a merge commit.

        Args:
            commit: full id of the commit to join; it must be in the repository.
            message: the merge commit's sentence.
            source: which door asked for it, for the commit's trailers.
            dry_run: tell what would happen, write nothing; what waits for its commit is left out.
            adopt: whether edits by hand are committed first; None as ``history.adopt`` says.
            strangers: also join a line that has no commit in common with this one.

        Returns:
            What changed, and what both sides changed differently.

        Raises:
            Conflict: a file that the merge would change was edited by hand, and the edit is not committed.
            GitBusy: a person is in the middle of something; nothing was changed.
            MergeRefused: the other line changes files that are not memory, or files that no merge can join, or has
                nothing in common with this one.
            HistoryUnavailable: the commit, or what both share, is not in the repository (a shallow clone).
        """
        for attempt in range(_TRIES):
            if not dry_run:
                self._commit_what_waits(adopt)
                self._take_news()
            planned = self._plan(commit, strangers)
            if planned is None:
                return Joined(commit=self._parts.repository.head_commit() or "", nothing=True)
            self._refuse_edited([one.path for one in planned.wanted])
            if dry_run:
                return planned.joined("", planned.forward)
            try:
                return self._carry_out(planned, message, source)
            except Conflict:  # somebody wrote, or switched, meanwhile: what it comes to is another thing
                if attempt + 1 == _TRIES:
                    raise
        raise AssertionError("the last try returns or raises")

    # -- before ---------------------------------------------------------------------------------------------------
    def _commit_what_waits(self, adopt: bool | None) -> None:
        flushed = self._store.flush(adopt=adopt)
        if flushed.reason or flushed.waiting:
            reason = flushed.reason or f"{flushed.waiting} write(s) still wait for their commit"
            raise GitBusy(reason, hint="merge again when that is over")

    def _take_news(self) -> None:
        """Learn what other processes wrote: a plan made without it is outdated."""
        news = self._store.writing.news()
        if news is None:
            self._store.refresh()
        elif news:
            self._store.following.refresh(news)

    def _plan(self, commit: str, strangers: bool) -> _Planned | None:
        """What is to be done; None where the branch holds the commit already."""
        repository = self._parts.repository
        if busy := repository.busy():
            raise GitBusy(busy, hint="merge again when that is over")
        head = repository.head()
        if not holds_commit(repository, commit):
            raise HistoryUnavailable(f"the commit {commit[:10]} is not in this repository", hint="fetch it first")
        ours = head.commit
        if ours is not None and is_ancestor(repository, commit, ours):
            return None
        bases = merge_bases(repository, ours, commit) if ours else ()
        if ours and not bases and not strangers:
            raise MergeRefused(
                f"{commit[:10]} has no history in common with this branch",
                hint=f"'git merge --allow-unrelated-histories {commit[:12]}' joins them; memfs merges memory there",
            )
        outcome = self._histories.outcome(ours, commit, bases)
        extra = conflict_records(self._parts, outcome.contested)
        return _Planned(
            commit=commit,
            branch=head.ref or "",
            forward=ours is None or bases == (ours,),
            wanted=(*outcome.wanted, *extra),
            contested=outcome.contested,
        )

    def _refuse_edited(self, paths: Sequence[str]) -> None:
        """Refuse to touch files with edits of a person's that are in no commit."""
        edited = set(self._store.hand_edits(paths if len(paths) <= _FEW else None)).intersection(paths)
        if edited:
            first = min(edited)
            raise Conflict(
                f"{len(edited)} file(s) that the merge changes hold edits that are not committed",
                path=first,
                hint="'memfs commit' commits them, after you corrected what 'memfs check' names; then merge again",
            )

    # -- the merge ------------------------------------------------------------------------------------------------
    def _carry_out(self, planned: _Planned, message: str, source: str) -> Joined:
        signer = signing.signer()
        signature = Signature(
            agent=signer.agent if signer else "", session=signer.session if signer else "", source=source
        )
        plans = [
            Planned(path=one.path, before=one.before, after=one.after, item=None, vetted=True) for one in planned.wanted
        ]
        keep_others(self._parts, planned.contested, planned.wanted)
        said = told(message, planned.contested)
        join(self._store, self._parts, plans, said, signature, merges=planned.commit, on=planned.branch)
        flushed = self._store.flush(adopt=False)
        tip = self._parts.repository.head_commit() or ""
        if not is_ancestor(self._parts.repository, planned.commit, tip):
            reason = flushed.reason or "the branch moved meanwhile"
            return planned.joined("", forward=False, waiting=reason)
        if tip == planned.commit:
            return planned.joined(tip, forward=True)
        self._follow_up([one.path for one in planned.wanted])
        return planned.joined(self._parts.repository.head_commit() or tip, forward=False)

    def _follow_up(self, changed: Sequence[str]) -> None:
        """Bring sums up to date, which neither side had of both; the merge stands, whatever becomes of that."""
        try:
            self._sum_up(changed)
        except MemfsError as error:
            self._store.note_failure(error)
        self._store.flush(adopt=False)

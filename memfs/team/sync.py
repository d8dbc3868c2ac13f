"""Sync a branch's memory with a remote: fetch, merge and push, so that neither side loses anything.

Never forces. A push that others were quicker with is tried again after another merge; a remote whose history was
rewritten is refused.
"""

from __future__ import annotations

import random
import shlex
import time
from collections.abc import Iterator, Mapping
from contextlib import closing

from memfs import errors
from memfs.dataclass import dataclass, replace
from memfs.format.text import has_markers, shortlist
from memfs.fs.lock import FileLock
from memfs.fs.workspace_location import BRANCH
from memfs.git.layout import HEADS, is_branch
from memfs.git.log import snapshots
from memfs.git.remote import LOCK, Raced, Remote, RemoteConnection, RemoteHistory, configured, remote_of, upstream
from memfs.git.repository import Repository, beyond, cut_off, holds_commit, is_ancestor, merge_bases
from memfs.store import Store
from memfs.store.parts import Parts
from memfs.team.history_merge import Merger, MergeResult, memory_path
from memfs.team.own_branch import is_separate

_MOST = 1000


def taken_out(repository: Repository, old: str, new: str) -> str:
    """The newest commit of the line to ``old`` that the line to ``new`` has again with fewer files; "" for none.

    It is known by who made it and when, to the second: an erase keeps that, whatever it takes out of the message.
    """
    try:
        again = dict(_marked(repository, new, old))
        for mark, commit in _marked(repository, old, new):
            if mark in again:
                before, after = snapshots(repository, [commit, again[mark]])
                if before and not after:
                    return commit
    except (errors.GitFailed, errors.HistoryUnavailable):  # something of it is not here
        return ""
    return ""


def _marked(repository: Repository, tip: str, other: str) -> Iterator[tuple[tuple[bytes, ...], str]]:
    for commit in beyond(repository, [tip], [other], most=_MOST):
        head = repository.object(commit).data.partition(b"\n\n")[0]
        yield tuple(line for line in head.split(b"\n") if line.startswith((b"author ", b"committer "))), commit


def _old_history(asked: _SyncRequest, announced: str) -> errors.RemoteRewritten:
    """The error for a remote that still has what was erased here."""
    remote, branch = asked.remote.name, asked.branch
    force = f"--force-with-lease={branch}:{announced}" if announced else "--force"
    return errors.RemoteRewritten(
        f"history was rewritten here (an erase, or a cut), and {remote}/{branch} still has the old one",
        hint=f"git push {force} {remote} HEAD:{branch} replaces it there, and what others pushed on top of it goes;"
        " then sync, and replace every clone",
    )


_LATER = "sync again when that is over"
_LOCK_PATIENCE = 120.0
_ROUNDS = 20
_PAUSE = 0.05
_LONGEST_PAUSE = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncOutcome:
    """What a sync did, or would do.

    Attributes:
        remote, branch: with which branch of which remote.
        address: the remote's, without a password in it.
        commit: the tip of the branch here.
        fetched: the tip of the branch there before; "" where it had none.
        joined: what the merge changed here; None where there was nothing to merge.
        ahead: how many commits the remote lacked.
        pushed: whether it has them now.
        rounds: how often others had pushed in between, and one more.
        uncommitted: in a dry run, how many writes wait for their commit: they would be committed first, and merged.
        edits: the files that somebody edited by hand, and whose edits were not committed, nor published.
        rescued: the ref that keeps what a rewritten remote had before, "" where there was no need.
        refused: why what was merged was not pushed, or would not be; None where that was not refused.
    """

    remote: str
    branch: str
    address: str
    commit: str
    fetched: str
    joined: MergeResult | None
    ahead: int
    pushed: bool
    rounds: int
    uncommitted: int = 0
    edits: tuple[str, ...] = ()
    rescued: str = ""
    refused: errors.MemfsError | None = None

    @property
    def waiting(self) -> str:
        """Why the merge waits for its commit, "" where it does not."""
        return self.joined.waiting if self.joined else ""


@dataclass(frozen=True, slots=True)
class _SyncRequest:
    remote: Remote
    branch: str
    named: bool
    push: bool
    rejoin: bool
    dry_run: bool


class Syncer:
    """Syncs the branch that is checked out in one workspace. One sync at a time, whichever process it is in."""

    def __init__(self, store: Store, parts: Parts, merger: Merger) -> None:
        self._store = store
        self._repository = parts.repository
        self._adopts = parts.policy.adopts
        self._merger = merger
        self._seen = RemoteHistory(parts.repository)
        self._lock = FileLock(parts.repository.state / LOCK)

    def sync(
        self,
        remote: str = "",
        *,
        branch: str = "",
        push: bool = True,
        rejoin: bool = False,
        dry_run: bool = False,
        edits: bool | None = None,
    ) -> SyncOutcome:
        """Fetch, merge, push, and begin again where others pushed meanwhile; never force.

        Args:
            remote: its name in the repository; "" for the one that the branch follows, or ``origin``, or the only one.
            branch: the branch there; "" for the one that is followed, or of the same name.
            push: whether to push; else what others have comes here, and that is all.
            rejoin: merge with a remote whose history was rewritten, though what it dropped comes back with that.
            dry_run: fetch, and report what would happen. Nothing here or there changes.
            edits: True: commit and publish edits by hand, whatever ``history.adopt`` says; False: leave them as they
                are, and sync the rest; None: refuse where ``unpublished_edits`` finds any that would be pushed.

        Returns:
            What happened. Once something was merged, ``refused`` has the error by which the sync ended.

        Raises:
            RemoteInvalid: there is no such remote or branch, or its address would run a program.
            RemoteUnreachable: the remote did not answer, or denied access.
            RemoteRewritten: it no longer holds what it held; nothing here has changed.
            MergeRefused, Conflict, GitBusy, HistoryUnavailable: as ``Merger.merge``; nothing was pushed.
            PushRefused: the remote does not take it, or others pushed again and again; or there are edits that nobody
                agreed to publish. Nothing has changed here.
            LockTimeout: another sync of this workspace does not end.
        """
        with self._lock.hold("sync", _LOCK_PATIENCE):
            there = self._where(remote, branch)
            asked = _SyncRequest(*there, bool(branch) or there[1] == BRANCH, push, rejoin, dry_run)
            if edits and push and not dry_run:
                self._store.flush_now(_LATER, adopt=True)
            elif edits is None and push and not dry_run and (found := self.unpublished_edits()):
                raise errors.PushRefused(
                    f"edits by hand are not committed, and would be published: {shortlist(found, 20)}",
                    hint="look at them with 'memfs diff'; 'memfs commit' or --yes commits them, then they go along",
                )
            with closing(RemoteConnection(self._repository, asked.remote)) as talk:
                return self._rounds(talk, asked)

    def unpublished_edits(self) -> list[str]:
        """The files edited by hand whose edits a sync does not leave out unless asked to.

        None where the policy leaves edits to the person: a sync takes those only when asked to. What they have staged,
        and what cannot be committed as it is, is left in any case.
        """
        self._store.require_open()
        return [plan.path for plan in self._store.edit_finder.find(False).plans] if self._adopts else []

    # -- where ----------------------------------------------------------------------------------------------------
    def _where(self, remote: str, branch: str) -> tuple[Remote, str]:
        """The remote and the branch there; refuses where this branch cannot be synced at all."""
        repository = self._repository
        if busy := repository.busy():
            raise errors.GitBusy(busy, hint=_LATER)
        head = repository.head()
        if head.ref is None:
            raise errors.GitBusy("HEAD is detached", hint="git switch BRANCH, then sync again")
        if cut_off(repository) and not is_separate(repository):  # what is fetched of that branch is never shallow
            raise errors.HistoryUnavailable("this clone is shallow: it lacks history", hint="git fetch --unshallow")
        followed, followed_branch = upstream(repository, head.branch)
        name = remote or self._usual(followed)
        there = branch or (followed_branch if followed == name else "") or head.branch
        if not is_branch(HEADS + there):
            raise errors.RemoteInvalid(
                f"{ascii(there)[:100]} is not the name of a branch", hint="--branch takes one such as main"
            )
        return remote_of(repository, name), there

    def _usual(self, followed: str) -> str:
        known = configured(self._repository)
        if followed in known:
            return followed
        if "origin" in known or len(known) == 1:
            return "origin" if "origin" in known else known[0]
        if known:
            raise errors.RemoteInvalid(f"there are {len(known)} remotes", hint=f"name one: {', '.join(known)}")
        raise errors.RemoteInvalid("this repository has no remote", hint="'git remote add origin ADDRESS' adds one")

    # -- rounds ---------------------------------------------------------------------------------------------------
    def _rounds(self, talk: RemoteConnection, asked: _SyncRequest) -> SyncOutcome:
        tips = talk.branches()
        theirs = tips.get(asked.branch, "")
        rescued = "" if theirs else self._refuse_absent(tips, asked)
        joined: MergeResult | None = None
        done: SyncOutcome | None = None
        reason = ""
        try:
            for number in range(1, _ROUNDS + 1):
                if theirs or number > 1:
                    theirs, rescued = self._fetch(talk, asked, theirs if number == 1 else "", rescued)
                    joined = _both(joined, self._merge(asked, theirs))
                elif not asked.dry_run:
                    self._store.flush_now(_LATER)
                tip = self._repository.head_commit() or ""
                done = SyncOutcome(
                    remote=asked.remote.name,
                    branch=asked.branch,
                    address=asked.remote.shown,
                    commit=tip,
                    fetched=theirs,
                    joined=None if joined is None or joined.nothing else joined,
                    ahead=len(beyond(self._repository, [tip], filter(None, [theirs])))
                    if tip not in ("", theirs)
                    else 0,
                    pushed=False,
                    rounds=number,
                    uncommitted=self._store.pending().count if asked.dry_run else 0,
                    edits=tuple(self._store.hand_edits()),
                    rescued=rescued,
                )
                if done.waiting or not (asked.push and done.ahead):
                    return done
                self._refuse_unfit(asked, done)
                if asked.dry_run:
                    return done
                try:
                    talk.push(done.commit, asked.branch)
                    self._seen.note(asked.remote.name, asked.branch, done.commit)
                    return replace(done, pushed=True)
                except Raced as race:
                    reason = str(race)
                    time.sleep(min(_PAUSE * 2**number, _LONGEST_PAUSE) * random.random())  # noqa: S311 - spreads retries
            raise errors.PushRefused(
                f"{asked.remote.name} took none of {_ROUNDS} pushes, as others push or hold it: {reason}",
                hint="what was merged is committed here: sync again, or ask whoever maintains the remote",
            )
        except errors.MemfsError as error:
            if done is None or done.joined is None:
                raise
            return replace(done, refused=error)

    def _merge(self, asked: _SyncRequest, theirs: str) -> MergeResult:
        """Merge the remote's commit into this branch, and note that it is known here."""
        merged = self._merger.merge(
            theirs,
            f"Merge {asked.remote.name}/{asked.branch}",
            source="sync",
            dry_run=asked.dry_run,
            adopt=False,
            # two people may both have begun a memory on its own branch
            unrelated=asked.branch == BRANCH and is_separate(self._repository),
        )
        if not asked.dry_run and not merged.waiting:
            self._seen.note(asked.remote.name, asked.branch, theirs)
        return merged

    def _refuse_absent(self, tips: Mapping[str, str], asked: _SyncRequest) -> str:
        """Refuse to make an unrequested branch beside those that are there, or that was removed there.

        Returns:
            The ref that keeps what the branch had, where it was removed and is to be made again.
        """
        if tips and not asked.named:
            names = ", ".join(sorted(tips)[:3])
            raise errors.RemoteInvalid(
                f"{asked.remote.name} has no branch {asked.branch}, but {names}",
                hint=f"--branch {asked.branch} makes it there; --branch NAME merges with that one, and pushes to it",
            )
        last = self._seen.tip(asked.remote.name, asked.branch)
        if not last or self._seen.rewritten_here(asked.remote.name, asked.branch):
            return ""
        if not self._would_return(last, "", self._repository.head_commit()):
            return ""
        rescued = "" if asked.dry_run else self._seen.rescue(asked.remote.name, asked.branch, last)
        if not asked.rejoin:
            kept = f"; {rescued} keeps that" if rescued else ""
            raise errors.RemoteRewritten(
                f"{asked.remote.name} has no branch {asked.branch} any more, and had one with {last[:10]}{kept}",
                hint="ask why. If something was erased, clone again; if by mistake, or if the remote is another one, "
                "'memfs sync --rejoin' makes it again",
            )
        return rescued

    def _fetch(self, talk: RemoteConnection, asked: _SyncRequest, announced: str, rescued: str) -> tuple[str, str]:
        """The remote's commit, with all that belongs to it here, and the ref that keeps what it had before."""
        remote, branch, here = asked.remote.name, asked.branch, self._repository.head_commit()
        last = self._seen.tip(remote, branch)
        # Of what was erased here not even the objects are fetched.
        if before := self._seen.rewritten_here(remote, branch):
            there = bool(announced) and holds_commit(self._repository, announced)
            recorded = there or bool(self._seen.erased())  # what was replaced
            above = there and is_ancestor(self._repository, before, announced)
            if announced == before or not recorded or above:
                raise _old_history(asked, announced)
        known = [commit for commit in (here, last) if commit and holds_commit(self._repository, commit)]
        held = bool(announced) and any(is_ancestor(self._repository, announced, commit) for commit in known)
        theirs = announced if held else talk.fetch(branch, known, self._seen.erased())
        if not theirs:
            raise _old_history(asked, announced)
        if last and not is_ancestor(self._repository, last, theirs) and self._would_return(last, theirs, here):
            if not rescued and not asked.dry_run:
                rescued = self._seen.rescue(remote, branch, last)
            name, kept = f"{remote}/{branch}", f"; {rescued} keeps what it had" if rescued else ""
            if taken_out(self._repository, last, theirs):
                raise errors.RemoteRewritten(
                    f"something was erased from the history of {name};"
                    " this clone still has it, and would bring it back",
                    hint="run git clone again, and repeat there what only this clone has (memfs log)",
                )
            if not asked.rejoin:
                raise errors.RemoteRewritten(
                    f"{name} was rewritten: it had {last[:10]} and has {theirs[:10]}, which does not lead there{kept}",
                    hint="ask why. If something was erased, clone again; if by mistake, "
                    "'memfs sync --rejoin' brings it back",
                )
        elif not asked.dry_run:
            self._seen.track(remote, branch, theirs)
        return theirs, rescued

    def _would_return(self, last: str, theirs: str, here: str | None) -> bool:
        """Whether this branch still has commits that the remote dropped, so that a merge would bring them back."""
        if here is None:
            return False
        if not holds_commit(self._repository, last):
            return True
        met = merge_bases(self._repository, here, last)
        return any(not is_ancestor(self._repository, commit, theirs) for commit in met)

    def _refuse_unfit(self, asked: _SyncRequest, done: SyncOutcome) -> None:
        """Refuse to publish, beside memory, work that a person has committed and not pushed; or a merge's markers.

        The first push to an empty branch is theirs to have asked for: the remote holds nothing yet.
        """
        before, after = snapshots(self._repository, [done.fetched or None, done.commit])
        found = [name for name in {*before, *after} if before.get(name) != after.get(name)]
        foreign = sorted(name for name in found if not memory_path(self._repository, name))
        if foreign and done.fetched:
            named = shortlist(name.decode("utf-8", "backslashreplace") for name in foreign)
            place = shlex.quote(str(self._repository.work_tree))
            own = f"git -C {place} push {asked.remote.name} {BRANCH}"  # where the code is git pushes code
            push = own if is_separate(self._repository) else "git push"
            raise errors.PushRefused(
                f"{asked.remote.name}/{asked.branch} would get files that are not memory: {named}",
                hint=f"{push} publishes them, if they are ready; then sync again. Until then: memfs sync --no-push",
            )

        for name, entry in sorted(after.items()) if not asked.dry_run else ():
            path = memory_path(self._repository, name)
            if path and has_markers(self._repository.blob(entry.id)):
                raise errors.MergeRefused(
                    "this file has conflict markers, and is committed",
                    path=path,
                    hint="keep what is right, delete the marker lines, and sync again",
                )


def _both(before: MergeResult | None, after: MergeResult) -> MergeResult:
    """What two merges of one sync did together."""
    if before is None or before.nothing:
        return after
    if after.nothing:
        return before
    return replace(
        after,
        forward=before.forward and after.forward,
        changed=tuple(sorted({*before.changed, *after.changed})),
        conflicts=(*before.conflicts, *after.conflicts),
    )

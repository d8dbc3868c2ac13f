"""Choosing: which changes of which files an undo means (B2).

Owns the way from a session, an agent or some commits to single changes: by the trailers of commits, by what items say
of themselves where those do not tell, and without what was taken back before. It changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from memfs.errors import HistoryUnavailable, MemfsError, QueryInvalid
from memfs.files.operation import Operation
from memfs.history.ancestry import is_ancestor
from memfs.history.commitobject import AGENT, SESSION, SOURCE, Parsed, trailer_value
from memfs.history.log import OWN_PATHS
from memfs.history.objects import REGULAR
from memfs.history.treediff import changed_paths
from memfs.model import Query
from memfs.model.query import MOST, moment
from memfs.model.statepaths import AGGREGATES
from memfs.store import Store
from memfs.store.parts import Parts
from memfs.teams.blame import Blame
from memfs.teams.leaves import Fields
from memfs.teams.origins import Trailers, named_in, shared, trailers_of

UNDOES = "Memfs-Undoes"
"""The trailer by which an undo names the commits that it takes back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Whose changes are meant: what one session, or one agent, wrote, or what some commits changed.

    Attributes:
        session, agent: their names; with both, what the agent wrote in that session.
        commits: revisions; each is a commit of HEAD's history.
        since: only what was written at this time or later.
    """

    session: str = ""
    agent: str = ""
    commits: tuple[str, ...] = ()
    since: datetime | None = None

    def __post_init__(self) -> None:
        """Take a time without an offset for local time."""
        object.__setattr__(self, "since", moment("since", self.since))

    def check(self) -> None:
        """Refuse one that does not say whose changes are meant.

        Raises:
            QueryInvalid: nothing is named, or both commits and a writer.
        """
        if bool(self.commits) == bool(self.session or self.agent):
            raise QueryInvalid(
                "an undo needs to know whose changes are meant",
                field="commits" if self.commits else "session",
                hint="name a session, an agent or both, or else commits",
            )

    def names(self, trailers: Trailers) -> bool:
        """Whether a commit's writers are, or are among, those that are meant."""
        wanted = {SESSION: self.session, AGENT: self.agent}
        return all(trailer_value(name) in trailers.get(key, ()) for key, name in wanted.items() if name)

    def owns(self, values: Mapping[str, Any]) -> bool:
        """Whether a file says itself that it is of those that are meant."""
        origin = values.get("origin")
        said = origin if isinstance(origin, Mapping) else {}
        wanted = {"session": self.session, "agent": self.agent}
        return all(said.get(key) == name for key, name in wanted.items() if name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A commit of which something is taken back; of a write that waits, ``commit`` is "" (in a dry run only)."""

    commit: str
    time: datetime
    author: str
    subject: str


@dataclass(frozen=True, slots=True)
class FileVersion:
    """A file as it was: where it lay, its blob id, and its bytes where they are in no commit."""

    path: str
    blob: str
    data: bytes | None = field(default=None, compare=False)


Data = Callable[[FileVersion], bytes]
"""Gives the bytes of a version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepChange:
    """What one step did to one file; a version is None where the file was not there.

    ``name`` stays the same where the file moves.
    """

    name: str
    step: Step
    before: FileVersion | None
    after: FileVersion | None

    @property
    def paths(self) -> tuple[str, ...]:
        """Where the file lay."""
        return tuple(one.path for one in (self.before, self.after) if one is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What an undo means.

    Attributes:
        changes: of each file by its name, newest first.
        steps: where they come from, newest first.
        already: commits that were meant, and were taken back before.
        left: files that are not touched, with why.
    """

    changes: Mapping[str, tuple[StepChange, ...]]
    steps: tuple[Step, ...]
    already: tuple[str, ...]
    left: tuple[tuple[str, str], ...]


class Choosing:
    """Finds what a selection means. Made anew for each undo."""

    def __init__(self, store: Store, parts: Parts, blame: Blame, selection: Selection) -> None:
        selection.check()
        self._store, self._parts, self._blame, self._selection = store, parts, blame, selection
        self._repository = parts.repository
        self._fields = Fields(parts.kinds)
        self._left: dict[str, str] = {}
        self._by_hand: dict[str, StepChange] = {}

    def choose(self) -> Choice:
        """What is meant, newest first.

        Raises:
            HistoryUnavailable: a commit does not exist, or is not in HEAD's history.
        """
        head = self._repository.head_commit()
        meant = list(self._commits(head)) if head else []
        undone = self._undone(head, {commit for commit, _ in meant}) if head else set()
        if self._selection.commits and not head:
            raise HistoryUnavailable("there is no commit yet", hint="memfs log shows what there is")
        already = [commit for commit, _ in meant if commit in undone]
        changes = list(self._waiting())
        for commit, parsed in meant:
            if commit not in undone:
                changes += self._of_commit(commit, parsed)
        changes += self._unsigned({change.name for change in changes}, undone)
        by_name: dict[str, list[StepChange]] = {}
        for change in changes:
            by_name.setdefault(change.name, []).append(change)
        return Choice(
            changes={name: tuple(found) for name, found in by_name.items()},
            steps=tuple(dict.fromkeys(change.step for change in changes)),
            already=tuple(already),
            left=tuple(self._left.items()),
        )

    # -- commits ------------------------------------------------------------------------------------------------------
    def _commits(self, head: str) -> Iterator[tuple[str, Parsed]]:
        """The commits that are meant, newest first."""
        selection = self._selection
        if selection.commits:
            wanted = {self._in_history(revision, head) for revision in selection.commits}
            found = [one for one in self._listed(head) if one in wanted]
        else:
            named = ((SESSION, selection.session), (AGENT, selection.agent))
            words = [f"--grep={key}: {trailer_value(name)}" for key, name in named if name]
            found = self._listed(head, "--fixed-strings", "--all-match", *words)
        for commit in found:
            parsed = self._repository.commit_object(commit)
            if selection.since is not None and parsed.time < selection.since:
                continue
            if selection.commits or len(parsed.parents) < 2:  # what a merge brought, others wrote
                yield commit, parsed

    def _listed(self, head: str, *arguments: str) -> list[str]:
        return self._repository.git.run("rev-list", "--topo-order", *arguments, head, "--").decode().split()

    def _in_history(self, revision: str, head: str) -> str:
        commit = self._repository.resolve(revision)
        if not is_ancestor(self._repository, commit, head):
            raise HistoryUnavailable(
                f"{revision!a} is not in the history of what is checked out", hint="check its branch out, or merge it"
            )
        return commit

    def _undone(self, head: str, meant: Set[str]) -> set[str]:
        """The commits that were taken back, and not brought back again since.

        What those say of themselves that are meant counts for nothing: they could keep their own from being undone.
        """
        undone: set[str] = set()
        for commit in self._listed(head, "--fixed-strings", f"--grep={UNDOES}: "):
            if commit not in undone and commit not in meant:
                undone.update(self._repository.commit_object(commit).trailers.get(UNDOES, ()))
        return undone

    def _of_commit(self, commit: str, parsed: Parsed) -> list[StepChange]:
        step = Step(commit=commit, time=parsed.time, author=parsed.author.name, subject=parsed.subject)
        parent = parsed.parents[0] if parsed.parents else ""
        paths = [path for own in OWN_PATHS for path in changed_paths(self._repository, parent, commit, own)]
        before = {path: found for path in paths if (found := self._at(parent, path))}
        after = {path: found for path in paths if (found := self._at(commit, path))}
        return self._chosen(self._paired(step, paths, before, after), named_in(parsed.body, parsed.trailers))

    def _at(self, commit: str, path: str) -> FileVersion | None:
        entry = self._repository.entry(commit or None, path)
        return FileVersion(path, entry.id) if entry is not None and entry.mode in REGULAR else None

    def _unsigned(self, known: set[str], undone: set[str]) -> list[StepChange]:
        """What a person committed by hand for those that are meant: the items say so, the commit does not."""
        selection = self._selection
        if selection.commits:
            return []
        sessions, agents = (frozenset(filter(None, [name])) for name in (selection.session, selection.agent))
        query = Query(sessions=sessions, agents=agents, limit=MOST)
        found: list[StepChange] = []
        for one in self._store.candidates(query):
            name = one.id.casefold()
            if name not in known:
                found += self._brought(one.id, name, undone)
        return found

    def _brought(self, item_id: str, name: str, undone: set[str]) -> list[StepChange]:
        """The change that brought an item that is of those that are meant, where its commit names nobody."""
        if name in self._by_hand:  # the commit that made it is known: it made others as well
            return [self._by_hand[name]]
        field = "origin.session" if self._selection.session else "origin.agent"
        try:
            taught = self._blame.fields(item_id, field)[0]
        except MemfsError:  # it is gone by now, or cannot be read
            return []
        since = self._selection.since
        if not taught.commit:
            self._left[taught.path] = "it was written by hand, and is not committed"
            return []
        if taught.commit in undone or (since is not None and taught.time is not None and taught.time < since):
            return []
        parsed = self._repository.commit_object(taught.commit)
        trailers = named_in(parsed.body, parsed.trailers)
        if {AGENT, SESSION, SOURCE} & trailers.keys() or len(parsed.parents) > 1:
            return []  # it says whose it is; what memfs brought back for a person is that person's
        changes = self._of_commit(taught.commit, parsed)
        made = [one for one in changes if one.before is None and one.after is not None and self._owns(one.after)]
        self._by_hand |= {change.name: change for change in made}
        return [change for change in changes if change.name == name]

    def _owns(self, version: FileVersion) -> bool:
        return self._selection.owns(self._fields.read(self.data(version), version.path)[1])

    # -- what waits ---------------------------------------------------------------------------------------------------
    def _waiting(self) -> list[StepChange]:
        """What waits for its commit on this branch, newest first."""
        if self._selection.commits:
            return []
        self._parts.journal.catch_up()
        branch = self._repository.head().ref or ""
        now: dict[str, FileVersion | None] = {}
        found: list[StepChange] = []
        for operation in self._parts.journal.operations():
            if operation.branch == branch:
                found[:0] = self._of_operation(operation, now)
        return found

    def _of_operation(self, operation: Operation, now: dict[str, FileVersion | None]) -> list[StepChange]:
        """What a waiting write did; ``now`` is what the writes before it left of each path."""
        moment = datetime.fromtimestamp(operation.time, UTC)
        trailers = trailers_of(operation)
        author = next(iter(trailers.get(AGENT, ())), "")
        step = Step(commit="", time=moment, author=author, subject=operation.message.partition("\n")[0])
        head = self._repository.head_commit() or ""
        paths = [change.path for change in operation.changes]
        before = {path: one for path in paths if (one := now[path] if path in now else self._at(head, path))}
        for change in operation.changes:
            data = change.data
            now[change.path] = None if data is None else FileVersion(change.path, self._repository.blob_id(data), data)
        after = {path: one for path in paths if (one := now[path])}
        since = self._selection.since
        if not self._selection.names(trailers) or (since is not None and moment < since):
            return []
        return self._chosen(self._paired(step, paths, before, after), trailers)

    # -- files --------------------------------------------------------------------------------------------------------
    def _paired(
        self, step: Step, paths: Iterable[str], before: Mapping[str, FileVersion], after: Mapping[str, FileVersion]
    ) -> Iterator[StepChange]:
        """The changes of a step by file: one that moved is one file, at two paths."""
        names: dict[str, list[str]] = {}
        for path in sorted(paths):
            if self._store.edits.is_own(path) and not path.startswith(f"{AGGREGATES}/"):  # these are made anew
                names.setdefault(self._fields.name(path), []).append(path)
        for name, lain in names.items():
            old = next((before[path] for path in lain if path in before and path not in after), None)
            new = next((after[path] for path in lain if path in after and path not in before), None)
            stayed = next((path for path in lain if path in before and path in after), None)
            old, new = (before[stayed], after[stayed]) if stayed is not None else (old, new)
            if old != new:
                yield StepChange(name=name, step=step, before=old, after=new)

    def _chosen(self, changes: Iterable[StepChange], trailers: Trailers) -> list[StepChange]:
        """Of what a commit changed, what is meant: where several wrote together, each file says whose it is."""
        meant = self._selection.commits or (self._selection.names(trailers) and not shared(trailers))
        if meant:
            return list(changes)
        found = []
        for change in changes:
            version = change.after or change.before
            assert version is not None  # a change has one of them
            if self._owns(version):
                found.append(change)
            elif not self._fields.is_item(version.path) and self._selection.names(trailers):
                self._left[version.path] = "several wrote this commit together, and the file does not say whose it is"
        return found

    def data(self, version: FileVersion) -> bytes:
        """The bytes of a version."""
        return version.data if version.data is not None else self._repository.blob(version.blob)

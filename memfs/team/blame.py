"""Find who taught each field of a memory, and when.

History is followed field by field through merges, moves and changes of type, and through what waits for its commit.
Nothing is written.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from memfs.admin.history import History
from memfs.dataclass import NamedTuple, dataclass
from memfs.errors import ContentError, HistoryUnavailable, ItemTooLarge
from memfs.format.codec import parse, schema_of
from memfs.format.plain import DOCUMENT_PARTS, canonical
from memfs.fs.journal import FileChange, Operation
from memfs.git.commit_object import AGENT, SESSION, SOURCE, trailer_value
from memfs.git.log import Revision, line_of, revisions
from memfs.git.objects import REGULAR
from memfs.model.ids import stem_of
from memfs.model.kinds import KindTable
from memfs.store import Store
from memfs.store.parts import READ_LIMIT, Parts, below_content, is_item

Trailers = Mapping[str, tuple[str, ...]]
_AMID = re.compile(rf"({AGENT}|{SESSION}): (\S.*)")


def _wrote(trailers: Trailers, values: Mapping[str, Any]) -> dict[str, str]:
    """Who a change of one file came from, as ``LearnedFrom`` has it; "" for what is unknown.

    Args:
        trailers: the commit's.
        values: the file's fields after the change.
    """
    origin = _origin(values)
    agent = _one(trailers.get(AGENT, ()), origin.get("agent", ""))
    session = _one(trailers.get(SESSION, ()), origin.get("session", ""))
    own = origin.get("agent", "") in ("", agent) and origin.get("session", "") in ("", session)
    return {
        "agent": agent,
        "session": session,
        "source": _one(trailers.get(SOURCE, ()), ""),
        "tool": origin.get("tool", "") if own else "",
    }


def trailers_of(operation: Operation) -> Trailers:
    """The trailers that the commit of a waiting write will have."""
    rows = [map(trailer_value, (one.agent, one.session, one.source)) for one in operation.writers]
    named = dict(zip((AGENT, SESSION, SOURCE), zip(*rows, strict=True), strict=False))
    return {name: found for name, names in named.items() if (found := tuple(dict.fromkeys(filter(None, names))))}


def named_in(body: str, trailers: Trailers) -> Trailers:
    """The writers that a commit names anywhere: one that was squashed out of several has trailers amid its text."""
    found: dict[str, dict[str, None]] = {name: dict.fromkeys(values) for name, values in trailers.items()}
    for line in body.splitlines():
        if match := _AMID.fullmatch(line.strip()):
            found.setdefault(match[1], {})[match[2]] = None
    return {name: tuple(values) for name, values in found.items()}


def shared(trailers: Trailers) -> bool:
    """Whether a commit holds the writing of several."""
    return any(len(trailers.get(name, ())) > 1 for name in (AGENT, SESSION))


def _one(named: tuple[str, ...], own: str) -> str:
    """The one that a commit names; of several, the one that the item names itself."""
    if len(named) == 1:
        return named[0]
    return trailer_value(own) if trailer_value(own) in named else ""


def _origin(values: Mapping[str, Any]) -> Mapping[str, str]:
    found = values.get("origin")
    return {name: text for name, text in found.items() if isinstance(text, str)} if isinstance(found, dict) else {}


TYPE = "type"


class Leaf(NamedTuple):
    """One field: its dotted name, its value as canonical text, and which one it is of equal elements of a list."""

    field: str
    text: str
    turn: int = 0


class Fields:
    """Takes files of one workspace apart."""

    def __init__(self, kinds: KindTable) -> None:
        self._kinds = kinds

    def has(self, path: str) -> bool:
        """Whether a file at this path consists of fields."""
        return self.is_item(path) or schema_of(path) != ""

    def mapping(self, data: bytes, path: str) -> dict[str, Any]:
        """The fields of a file as written in it; of an item also its type, which its folder says.

        Raises:
            ContentError: the bytes are neither YAML nor JSON that memfs reads.
        """
        if len(data) > READ_LIMIT:
            raise ItemTooLarge(f"{len(data)} bytes", path=path, hint="split it into several")
        # what hides from a reader is shown as escapes, and history may hold it
        values: dict[str, Any] = parse(data, path, True, DOCUMENT_PARTS).mapping
        kind = self._kinds.at(below_content(path))
        return values if kind is None else {TYPE: kind.name} | values

    def read(self, data: bytes | None, path: str) -> tuple[dict[Leaf, Any] | None, dict[str, Any]]:
        """Each field of a version with its value, and all of them as written.

        A file that is absent has none; of one that cannot be read, None says so.
        """
        if data is None:
            return {}, {}
        try:
            values = self.mapping(data, path)
        except ContentError:
            return None, {}
        return taken_apart(values), values

    def differing(self, one: bytes, other: bytes, path: str) -> set[str] | None:
        """The names of the fields, without what is within them, that two versions do not share; None if unreadable."""
        try:
            here, there = self.mapping(one, path), self.mapping(other, path)
        except ContentError:
            return None
        names = here.keys() | there.keys()
        return {name for name in names if canonical(here.get(name)) != canonical(there.get(name))}

    def is_item(self, path: str) -> bool:
        """Whether a file at this path is an item, by its folder and ending."""
        return is_item(path, self._kinds)

    def name(self, path: str) -> str:
        """What stays the same where a file is moved: an item's id without letter case, else the path."""
        return stem_of(path).casefold() if self.is_item(path) else path


def taken_apart(mapping: Mapping[str, Any]) -> dict[Leaf, Any]:
    """Each field of a mapping with its value, in order."""
    turns: Counter[tuple[str, str]] = Counter()
    found: dict[Leaf, Any] = {}
    for field, value in _parts(mapping, ""):
        text = canonical(value)
        found[Leaf(field, text, turns[field, text])] = value
        turns[field, text] += 1
    return found


def _parts(value: Any, field: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and (value or not field):
        for key, part in value.items():
            yield from _parts(part, f"{field}.{key}" if field else str(key))
    elif isinstance(value, list) and value:
        yield from ((field, part) for part in value)
    else:
        yield field, value


_FILE, _WAITS = "file", "waits-"
_LINES = "git blame shows it line by line"
Leaves = dict[Leaf, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedFrom:
    """One field of a memory and who taught it.

    Attributes:
        field: its dotted name; each element of a list counts by itself, under the list's name.
        value: what it says.
        commit: the commit that brought it, "" while it waits for one.
        time: when; None where it is unknown, as for an edit by hand that is not committed.
        author: who made that commit: an agent, or a person.
        agent, session, source, tool: who wrote it, in which session, through which door, with which tool.
        subject: the commit's sentence.
        path: where the file lay then.
        waiting: ``memfs`` for a write that waits for its commit, ``hand`` for an edit by hand; "" for a commit.
    """

    field: str
    value: Any
    commit: str = ""
    time: datetime | None = None
    author: str = ""
    agent: str = ""
    session: str = ""
    source: str = ""
    tool: str = ""
    subject: str = ""
    path: str = ""
    waiting: str = ""


@dataclass(frozen=True, slots=True)
class _Node:
    """A version of the file and those it came from; ``leaves`` is None where it cannot be read.

    ``wait`` and ``operation`` say of a version that is in no commit what it is.
    """

    path: str
    leaves: Leaves | None
    values: Mapping[str, Any]
    parents: tuple[str, ...]
    wait: str = ""
    operation: Operation | None = None


class Blame:
    """Traces who taught what in one workspace. Reads only; may be used from several threads."""

    def __init__(self, store: Store, parts: Parts, history: History) -> None:
        self._store, self._parts, self._history = store, parts, history
        self._fields = Fields(parts.kinds)

    def fields(self, target: str, field: str = "", revision: str | None = None) -> list[LearnedFrom]:
        """Each field of an item or document with who taught it, in the order of the file.

        Args:
            target: an item's id, or a path below the workspace.
            field: only this one, and what is below it.
            revision: the version at a commit or date; None for the file as it is, with what waits for its commit.

        Raises:
            ItemNotFound: no memory has that id, and none had it.
            HistoryUnavailable: the revision does not exist, or the file was not there.
            ContentError: the version cannot be read, or has no such field.
        """
        found = self._present(target) if revision is None else None
        if found is None:
            commit = self._parts.repository.resolve(revision or "HEAD")
            path, data = self._history.found_at(commit, target)
            found = path, data, self._committed(commit, path), commit
        path, data, nodes, start = found
        if not self._fields.has(path):
            raise ContentError("this file does not consist of fields", path=path, hint=_LINES)
        self._fields.mapping(data, path)  # says what is wrong with it
        taught = self._learned_from(nodes, start)
        chosen = [one for one in taught if field in ("", one.field) or one.field.startswith(f"{field}.")]
        if field and not chosen:
            names = ", ".join(dict.fromkeys(one.field for one in taught))
            raise ContentError("there is no such field", path=path, field=field, hint=f"it has {names}")
        return chosen

    # -- versions -----------------------------------------------------------------------------------------------------
    def _present(self, target: str) -> tuple[str, bytes, dict[str, _Node], str] | None:
        """The file as it is on top of what waits, and that on top of HEAD; None where there is no file now."""
        path = self._history.path_of(target)
        try:
            data = self._parts.seen.read(path, READ_LIMIT).data if path else None
        except FileNotFoundError:
            data = None
        if data is None:
            return None
        waiting = self._waiting(path)
        head = self._parts.repository.head_commit()
        below = self._committed(head, *self._lain(head, path, waiting)) if head else {}
        names = [_FILE, *(f"{_WAITS}{number}" for number in range(len(waiting))), *([head] if head else [])]
        after = {name: names[number + 1 : number + 2] for number, name in enumerate(names)}
        nodes = {_FILE: self._node(path, data, after[_FILE], wait="hand")}
        for name, (operation, change) in zip(names[1:], waiting, strict=False):
            by_hand = any(writer.person for writer in operation.writers)
            wait = "hand" if by_hand else "memfs"
            nodes[name] = self._node(change.path, change.data, after[name], wait=wait, operation=operation)
        return path, data, nodes | below, _FILE

    def _lain(self, head: str, path: str, waiting: Sequence[tuple[Operation, FileChange]]) -> list[str]:
        """Where a file was by what waits, and at HEAD: a person may have moved it since."""
        lain = [path, *(change.path for _, change in waiting)]
        if self._at(head, lain) is None and self._fields.is_item(path):
            with suppress(HistoryUnavailable):
                lain.append(self._history.found_at(head, stem_of(path))[0])
        return lain

    def _waiting(self, path: str) -> list[tuple[Operation, FileChange]]:
        """What waits for its commit on this branch and concerns a file, newest first."""
        self._parts.journal.catch_up()
        branch, name = self._parts.repository.head().ref or "", self._fields.name(path)
        found = []
        for operation in reversed(self._parts.journal.operations()):
            changes = [one for one in operation.changes if self._fields.name(one.path) == name]
            changes.sort(key=lambda one: one.data is None)  # of a move, where it went
            if changes and operation.branch == branch:
                found.append((operation, changes[0]))
        return found

    def _committed(self, commit: str, *paths: str) -> dict[str, _Node]:
        """Every version that a commit's file came from, itself included, by commit."""
        history, known = self._line(commit, dict.fromkeys(paths))
        if commit not in history:  # it did not change the file itself
            history = {commit: list(history)[:1]} | history
        return {one: self._version(one, known, parents) for one, parents in history.items()}

    def _line(self, commit: str, paths: Mapping[str, None]) -> tuple[dict[str, list[str]], list[str]]:
        """The commits that changed a file, children before parents, and every path it had.

        A commit in which the file appears may have moved it there: then its line continues at the other path.
        """
        repository, known = self._parts.repository, list(paths)
        name = self._fields.name(known[0])
        while True:
            history = line_of(repository, known, commit)
            born = [one for one, parents in history.items() if not any(self._at(two, known) for two in parents)]
            touched = (path for one in revisions(repository, born) for path in one.paths)
            further = [path for path in dict.fromkeys(touched) if path not in known and self._fields.name(path) == name]
            if not further:
                return history, known
            known += further

    def _at(self, commit: str, paths: Sequence[str]) -> tuple[str, str] | None:
        """Where a file lay at a commit, and its blob."""
        for path in paths:
            entry = self._parts.repository.entry(commit, path)
            if entry is not None and entry.mode in REGULAR:
                return path, entry.id
        return None

    def _version(self, commit: str, paths: Sequence[str], parents: Sequence[str]) -> _Node:
        there = self._at(commit, paths)
        if there is None:
            return self._node(paths[0], None, parents)
        return self._node(there[0], self._parts.repository.blob(there[1]), parents)

    def _node(
        self, path: str, data: bytes | None, parents: Sequence[str], wait: str = "", operation: Operation | None = None
    ) -> _Node:
        leaves, values = self._fields.read(data, path)
        return _Node(path, leaves, values, tuple(parents), wait, operation)

    # -- who taught what ----------------------------------------------------------------------------------------------
    def _learned_from(self, nodes: Mapping[str, _Node], start: str) -> list[LearnedFrom]:
        leaves = nodes[start].leaves or {}
        found = {leaf: _introduced(nodes, leaf) or start for leaf in leaves}
        commits = sorted({one for one in found.values() if not nodes[one].wait})
        known = {one.commit: one for one in revisions(self._parts.repository, commits)}
        return [
            _taught(leaf.field, value, nodes[found[leaf]], known.get(found[leaf])) for leaf, value in leaves.items()
        ]


def _introduced(nodes: Mapping[str, _Node], leaf: Leaf) -> str | None:
    """The newest version that has a field which none of those before it has; None where none does.

    One that cannot be read has what those before it have.
    """

    def holds(name: str) -> bool:
        node = nodes[name]
        return leaf in node.leaves if node.leaves is not None else any(map(holds, node.parents))

    return next((name for name, node in nodes.items() if holds(name) and not any(map(holds, node.parents))), None)


def _taught(field: str, value: Any, node: _Node, revision: Revision | None) -> LearnedFrom:
    brought: dict[str, Any] = {"waiting": node.wait}
    if revision is not None:
        brought |= {"commit": revision.commit, "author": revision.author}
        brought |= {"time": revision.time, "subject": revision.subject}
        brought |= _wrote(named_in(revision.body, revision.trailers), node.values)
    elif (operation := node.operation) is not None:
        subject = operation.message.partition("\n")[0]
        brought |= {"time": datetime.fromtimestamp(operation.time, UTC), "subject": subject}
        brought |= _wrote(trailers_of(operation), node.values)
    return LearnedFrom(field=field, value=value, path=node.path, **brought)

"""Find who taught each field of a memory, and when.

History is followed field by field through merges, moves and changes of type. Nothing is written.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from memfs.admin.history import History
from memfs.dataclass import NamedTuple, dataclass
from memfs.errors import ContentError, HistoryUnavailable, ItemTooLarge
from memfs.format.codec import parse, schema_of
from memfs.format.plain import DOCUMENT_PARTS, canonical
from memfs.fs.journal import Operation
from memfs.git.commit_object import AGENT, SESSION, SOURCE, trailer_value
from memfs.git.log import Revision, line_of, revisions
from memfs.git.objects import REGULAR
from memfs.model.ids import stem_of
from memfs.model.kinds import KindTable
from memfs.store.parts import READ_LIMIT, Parts, below_content, is_item

Trailers = Mapping[str, tuple[str, ...]]
_AMID = re.compile(rf"({AGENT}|{SESSION}): (\S.*)")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedFrom:
    """One field of a memory and who taught it.

    Attributes:
        field: its dotted name; each element of a list counts by itself, under the list's name.
        value: what it says.
        commit: the commit that brought it.
        time: when that was made.
        author: who made it: an agent, or a person.
        agent, session, source, tool: who wrote it, in which session, through which door, with which tool.
        subject: the commit's sentence.
        path: where the file lay then.
    """

    field: str
    value: Any
    commit: str
    time: datetime
    author: str
    agent: str = ""
    session: str = ""
    source: str = ""
    tool: str = ""
    subject: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class _Node:
    """A version of the file and those it came from; ``leaves`` is None where it cannot be read."""

    path: str
    leaves: Mapping[Leaf, Any] | None
    values: Mapping[str, Any]
    parents: tuple[str, ...]


class Blame:
    """Traces who taught what in one workspace. Reads only; may be used from several threads."""

    def __init__(self, parts: Parts, history: History) -> None:
        self._repository, self._history = parts.repository, history
        self._fields = Fields(parts.kinds)

    def fields(self, target: str, field: str = "", revision: str = "HEAD") -> list[LearnedFrom]:
        """Each field of an item or document, as it was committed, with who taught it, in the order of the file.

        Args:
            target: an item's id, or a path below the workspace.
            field: only this one, and what is below it.
            revision: the version at a commit or date.

        Raises:
            HistoryUnavailable: the revision does not exist, or the file was not there.
            ContentError: the version cannot be read, or has no such field.
        """
        commit = self._repository.resolve(revision)
        try:
            path, data = self._history.found_at(revision, target)
        except HistoryUnavailable as error:
            if revision == "HEAD" and self._history.holds(target):
                error.hint = "'memfs commit' commits what is in no commit yet"
            raise
        if not (self._fields.is_item(path) or schema_of(path)):
            raise ContentError(
                "this file does not consist of fields", path=path, hint="git blame shows it line by line"
            )
        self._fields.mapping(data, path)  # says what is wrong with it
        # Every version that the commit's file came from, itself included, by commit.
        history, places = self._line(commit, path)
        if commit not in history:  # it did not change the file itself
            history = {commit: list(history)[:1]} | history
        nodes = {one: self._version(one, places, parents) for one, parents in history.items()}
        leaves = nodes[commit].leaves or {}
        found = {leaf: _introduced(nodes, leaf) or commit for leaf in leaves}
        known = {one.commit: one for one in revisions(self._repository, sorted({*found.values()}))}
        taught = [_taught(leaf.field, value, nodes[found[leaf]], known[found[leaf]]) for leaf, value in leaves.items()]
        chosen = [one for one in taught if field in ("", one.field) or one.field.startswith(f"{field}.")]
        if field and not chosen:
            names = ", ".join(dict.fromkeys(one.field for one in taught))
            raise ContentError("there is no such field", path=path, field=field, hint=f"it has {names}")
        return chosen

    def _line(self, commit: str, path: str) -> tuple[dict[str, list[str]], list[str]]:
        """The commits that changed a file, children before parents, and every path it had.

        A commit in which the file appears may have moved it there: then its line continues at the other path.
        """
        repository, known = self._repository, [path]
        name = self._fields.name(path)
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
            entry = self._repository.entry(commit, path)
            if entry is not None and entry.mode in REGULAR:
                return path, entry.id
        return None

    def _version(self, commit: str, paths: Sequence[str], parents: Sequence[str]) -> _Node:
        path, blob = self._at(commit, paths) or (paths[0], "")
        leaves, values = self._fields.read(self._repository.blob(blob) if blob else None, path)
        return _Node(path, leaves, values, tuple(parents))


def _introduced(nodes: Mapping[str, _Node], leaf: Leaf) -> str | None:
    """The newest version that has a field which none of those before it has; None where none does.

    One that cannot be read has what those before it have.
    """

    def holds(name: str) -> bool:
        node = nodes[name]
        return leaf in node.leaves if node.leaves is not None else any(map(holds, node.parents))

    return next((name for name, node in nodes.items() if holds(name) and not any(map(holds, node.parents))), None)


def _taught(field: str, value: Any, node: _Node, revision: Revision) -> LearnedFrom:
    trailers, stated = named_in(revision.body, revision.trailers), node.values.get("origin")
    fields = stated.items() if isinstance(stated, dict) else ()
    origin = {name: text for name, text in fields if isinstance(text, str)}
    agent = _one(trailers.get(AGENT, ()), origin.get("agent", ""))
    session = _one(trailers.get(SESSION, ()), origin.get("session", ""))
    own = origin.get("agent", "") in ("", agent) and origin.get("session", "") in ("", session)
    return LearnedFrom(
        field=field,
        value=value,
        commit=revision.commit,
        time=revision.time,
        author=revision.author,
        subject=revision.subject,
        path=node.path,
        agent=agent,
        session=session,
        source=_one(trailers.get(SOURCE, ()), ""),
        tool=origin.get("tool", "") if own else "",
    )

"""State index: finds state documents by what they are about, in the workspace's tables beside the search index.

Everything in it is derived. No document is read.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from memfs.catalog.database import DAMAGE, workspace_tables
from memfs.dataclass import NamedTuple, dataclass, field
from memfs.errors import IndexUnavailable
from memfs.model.item import Stamp
from memfs.model.state_facts import STATEFUL, Iteration, Measure, StateFacts, StateQuery, StateRow
from memfs.model.time import micros
from memfs.model.time import moment as moment_of

_TABLES = ("documents", "names", "measures", "words", "folders", "meta")
_NO_TIME = -(1 << 62)
"""The moment of a document without one: before all others."""

_ROLE = {"parents": "parent", "hypotheses": "hypothesis", "names": "name", "agents": "agent", "components": "component"}
"""By the field of a question, what ``names`` calls it; of several the first that has one name leads."""

_ROW = "d.facts, d.sha256, d.bytes, d.stamp, d.archive"
_BELOW = "path >= ? AND path < ?"
_NEAR = (
    "SELECT id, moment, value FROM measures INDEXED BY measures_near"
    " WHERE kind = 'state_update' AND name = ? AND agent = ? AND value "
)

Value = TypeVar("Value")
Answer = TypeVar("Answer")


class Folder(NamedTuple):
    """The facts about a folder when it was last looked into, at ``checked`` nanoseconds since 1970."""

    mtime_ns: int
    ctime_ns: int
    inode: int
    checked: int


@dataclass(frozen=True, slots=True)
class RowSet:
    """The rows that were found for a question; each is decoded when its turn comes, which takes most of the time."""

    raw: Sequence[Sequence[object]]

    def __len__(self) -> int:
        return len(self.raw)

    def __iter__(self) -> Iterator[StateRow]:
        return map(_row_of, self.raw)


@dataclass(slots=True)
class Alike:
    """In what a state update was found to be like another: by what it has itself, and at which moment."""

    key: int
    moment: int
    figures: dict[tuple[str, str], float] = field(default_factory=dict)


class StateIndex:
    """What is known of every state document of one workspace. Shared by threads and processes.

    Raises (every method):
        IndexUnavailable: the file gives no answer, and neither does a new one; or it was deleted or damaged since
            ``mark_complete``, and the one in its place need not have all documents.
    """

    def __init__(self, folder: Path | None) -> None:
        """``folder``: the workspace's own in the user's cache; None keeps the rows in memory."""
        self._base = workspace_tables(folder)
        self._complete = 0

    def _all(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """The rows that a question finds."""
        return self._asked(lambda base: base.execute(sql, values).fetchall())

    def _asked(self, act: Callable[[sqlite3.Connection], Answer]) -> Answer:
        answer = self._base.ask(act)
        if self._complete not in (0, self._base.identity):
            hint = "ask again; it is made again of the files"
            raise IndexUnavailable("what is known of state documents was begun again meanwhile", hint=hint)
        return answer

    def mark_complete(self) -> None:
        """Note that every document is known. Until ``notes`` is asked again, another file in its place is an error."""
        self._complete = self._base.identity

    # -- learning -----------------------------------------------------------------------------------------------------
    def learn(self, rows: Iterable[StateRow]) -> None:
        """Note documents, all at once; what was known under their paths is replaced."""
        self._each(_put, rows)

    def forget(self, paths: Iterable[str]) -> None:
        """Drop documents; paths that are not known are passed over."""
        self._each(_take, paths)

    def _each(self, act: Callable[[sqlite3.Connection, Value], object], values: Iterable[Value]) -> None:
        listed = list(values)

        def change(base: sqlite3.Connection) -> None:
            for value in listed:
                act(base, value)

        if listed:
            self._base.change(change)

    def clear(self) -> None:
        """Forget everything."""
        self._each(lambda base, table: base.execute(f"DELETE FROM {table}"), _TABLES)  # noqa: S608

    def close(self) -> None:
        """Release the file; the next question opens it again."""
        self._base.close()

    # -- documents ----------------------------------------------------------------------------------------------------
    def find(self, question: StateQuery) -> list[StateRow]:
        """The documents that agree with a question, by time; ones without a time come before the others."""
        return list(self.found(question))

    def found(self, question: StateQuery) -> RowSet:
        """As ``find``, for a caller who may not have the time for all of them."""
        return RowSet(self._all(*documents(question)))

    def row(self, path: str) -> StateRow | None:
        """What is known of one document, None where nothing is."""
        found = self._all(f"SELECT {_ROW} FROM documents d WHERE d.path = ?", (path,))  # noqa: S608
        return _row_of(found[0]) if found else None

    def stamp(self, path: str) -> Stamp | None:
        """The stamp of a document's file, None where none is known."""
        found = self._all("SELECT stamp FROM documents WHERE path = ?", (path,))
        return _stamp_of(found[0][0]) if found else None

    def rows(self, keys: Sequence[int]) -> list[StateRow]:
        """The documents with these keys, in no particular order; a key that is gone by now has none."""
        sql = f"SELECT {_ROW} FROM json_each(?) e JOIN documents d ON d.id = e.value"  # noqa: S608
        return list(map(_row_of, self._all(sql, (json.dumps(keys),))))

    def stamps(self, folder: str, deep: bool = True) -> dict[str, tuple[Stamp | None, str]]:
        """By path, of what is known below a folder: the stamp of its file, if there is one, and the archive it is in.

        Args:
            deep: false for what lies directly in it.
        """
        where, values = (_BELOW, _span(folder)) if deep else ("folder = ?", (folder,))
        found = self._all(f"SELECT path, stamp, archive FROM documents WHERE {where}", values)  # noqa: S608
        return {path: (_stamp_of(stamp), archive) for path, stamp, archive in found}

    def in_archive(self, archive: str) -> list[str]:
        """The paths of the documents that are known to be in an archive only."""
        sql = "SELECT path FROM documents WHERE archive = ? AND archive != '' ORDER BY path"
        return [path for (path,) in self._all(sql, (archive,))]

    def count(self) -> int:
        """How many documents are known."""
        return int(self._all("SELECT count(*) FROM documents")[0][0])

    # -- iterations, agents, figures ----------------------------------------------------------------------------------
    def iterations(self) -> list[Iteration]:
        """The iterations, by number, those without a header too."""
        sql = (
            "SELECT i.iteration, d.facts, d.archive FROM (SELECT DISTINCT iteration FROM documents"
            " WHERE iteration IS NOT NULL) i LEFT JOIN documents d ON d.iteration = i.iteration"
            " AND d.kind = 'system_state' ORDER BY i.iteration"
        )
        found = []
        for number, facts, archive in self._all(sql):
            header = _facts_of(facts) if facts else StateFacts(path="")
            status = header.status or "open"
            opened, closed = header.timestamp, header.closed
            found.append(Iteration(number=number, status=status, opened=opened, closed=closed, archive=archive or ""))
        return found

    def newest_iteration(self, status: str = "") -> int | None:
        """The highest number of an iteration, None where there is none; with ``status``, of those in it."""
        of_status = " WHERE kind = 'system_state' AND status = ?" if status else ""
        found = self._all(f"SELECT max(iteration) FROM documents{of_status}", [status] if status else [])  # noqa: S608
        return None if found[0][0] is None else int(found[0][0])

    def iterations_with(self, kind: str, status: str = "") -> list[int]:
        """The numbers, in order, of the iterations with a ``system_state`` in a status, or with a ``meta_review``."""
        # the kind is part of the statement, as SQLite chooses the index by it
        sql = f"SELECT DISTINCT iteration FROM documents WHERE kind = '{kind}' AND status = ? ORDER BY iteration"  # noqa: S608
        return [number for (number,) in self._all(sql, (status,))]

    def agents(self, kinds: Sequence[str] = ("agent_output",)) -> list[str]:
        """The agents that documents of these kinds are about, by name; costs by agent, not by document."""
        return self._asked(lambda base: sorted({name for kind in kinds for name in _agents(base, kind)}))

    def counts(
        self, iterations: Sequence[int] = (), start: datetime | None = None, end: datetime | None = None
    ) -> dict[str, int]:
        """How many documents of each kind there are."""
        where = _Where()
        where.among("iteration", iterations)
        where.within("moment", start, end)
        sql = f"SELECT kind, count(*) FROM documents{where.sql} GROUP BY kind ORDER BY kind"  # noqa: S608
        return dict(self._all(sql, where.values))

    def work_by_agent(self) -> dict[str, tuple[int, int]]:
        """By agent, how many outputs it stored, of how many tasks."""
        sql = (
            "SELECT n.name, count(*), count(DISTINCT d.task) FROM names n JOIN documents d ON d.id = n.id"
            " WHERE n.role = 'agent' AND n.kind = 'agent_output' GROUP BY n.name ORDER BY n.name"
        )
        return {agent: (outputs, tasks) for agent, outputs, tasks in self._all(sql)}

    def hypotheses(self) -> int:
        """How many hypotheses there are, each counted once."""
        sql = "SELECT count(DISTINCT name) FROM names WHERE role = 'name' AND kind = 'hypothesis'"
        return int(self._all(sql)[0][0])

    def counts_by_iteration(self) -> dict[int, dict[str, int]]:
        """How many documents of each kind each iteration has."""
        sql = "SELECT iteration, kind, count(*) FROM documents WHERE iteration IS NOT NULL GROUP BY iteration, kind"
        counted: dict[int, dict[str, int]] = {}
        for number, kind, many in self._all(sql):
            counted.setdefault(number, {})[kind] = many
        return counted

    def metrics(
        self,
        names: Sequence[str] = (),
        agents: Sequence[str] | None = None,
        iterations: Sequence[int] = (),
        start: datetime | None = None,
        end: datetime | None = None,
    ) -> list[Measure]:
        """Figures, by time; ``agents`` may hold "" for the system's own."""
        where = _Where()
        where.among("m.name", names)
        if agents is not None:
            where.among("m.agent", agents or ("\0",))
        where.among("m.iteration", iterations)
        where.within("m.moment", start, end)
        led = " INDEXED BY measures_in" if iterations else ""  # else SQLite goes through all an agent ever measured
        sql = (
            "SELECT m.name, m.value, m.agent, m.iteration, m.moment, m.kind, d.path"  # noqa: S608
            f" FROM measures m{led} JOIN documents d ON d.id = m.id{where.sql} ORDER BY m.moment, m.id, m.agent, m.name"
        )
        return [
            Measure(
                name=name,
                value=value,
                agent=agent,
                iteration=number,
                timestamp=None if moment == _NO_TIME else moment_of(moment),
                kind=kind,
                path=path,
            )
            for name, value, agent, number, moment, kind, path in self._all(sql, where.values)
        ]

    def near(self, fingerprint: Mapping[tuple[str, str], float], most: int) -> list[Alike]:
        """State updates that come near in a figure: of each the ``most`` nearest on either side."""
        found: dict[int, Alike] = {}
        for figure, value in fingerprint.items():
            # newer ones first among equals; each question reads the index from one place on, in its own order: nothing
            # is sorted
            of = (_storable(figure[1]), _storable(figure[0]))
            below = self._all(f"{_NEAR} <= ? ORDER BY value DESC, moment DESC LIMIT ?", (*of, value, most))
            above = self._all(f"{_NEAR} > ? ORDER BY value, moment LIMIT ?", (*of, value, most))
            if len(above) == most:  # of the last value there may be newer ones
                last = above[-1][2]
                above = [one for one in above if one[2] < last]
                above += self._all(f"{_NEAR} = ? ORDER BY moment DESC LIMIT ?", (*of, last, most - len(above)))
            for key, moment, theirs in (*below, *above):
                found.setdefault(key, Alike(key, moment)).figures[figure] = theirs
        return list(found.values())

    def digests(self, kinds: Sequence[str]) -> dict[int, str]:
        """By iteration, what names the contents of its documents of these kinds, and of their hypotheses' parents."""
        where = _Where()
        where.among("d.kind", kinds)
        parents = (
            "SELECT p.iteration, d.path, d.sha256 FROM names p JOIN names n ON n.role = 'name' AND n.name = p.name"
            " AND n.kind = 'hypothesis' JOIN documents d ON d.id = n.id"
            " WHERE p.role = 'parent' AND n.iteration < p.iteration"
        )
        sql = f"SELECT d.iteration, d.path, d.sha256 FROM documents d{where.sql} UNION {parents} ORDER BY 1, 2"  # noqa: S608
        found: dict[int, Any] = {}
        for iteration, *content in self._all(sql, where.values):
            found.setdefault(iteration, hashlib.sha256()).update("\0".join(content).encode() + b"\n")
        return {iteration: digest.hexdigest() for iteration, digest in found.items()}

    # -- words --------------------------------------------------------------------------------------------------------
    def without_words(self, most: int) -> list[StateRow]:
        """At most ``most`` documents whose words are not indexed yet."""
        sql = (
            f"SELECT {_ROW} FROM documents d"  # noqa: S608
            " WHERE NOT EXISTS (SELECT 1 FROM words_docsize s WHERE s.id = d.id) LIMIT ?"
        )
        return list(map(_row_of, self._all(sql, (most,))))

    def learn_words(self, found: Iterable[tuple[StateRow, str]]) -> None:
        """Note the terms of documents, parted by blanks; of one that is another by now nothing is noted."""

        def put(base: sqlite3.Connection, one: tuple[StateRow, str]) -> None:
            row, terms = one
            sql = "SELECT id FROM documents WHERE path = ? AND sha256 = ?"
            for (key,) in base.execute(sql, (row.path, row.sha256)).fetchall():
                base.execute("DELETE FROM words WHERE rowid = ?", (key,))
                base.execute("INSERT INTO words (rowid, terms) VALUES (?, ?)", (key, _storable(terms)))

        self._each(put, found)

    def matching(self, terms: Sequence[str], question: StateQuery) -> list[tuple[StateRow, float]]:
        """The documents that agree with a question and hold one of the terms, with their scores, the best first."""
        where = _Where()
        where.add("words MATCH ?", " OR ".join(f'"{term}"' for term in terms))
        where.narrow(question, "d.")
        where.rest(question)
        sql = (
            f"SELECT {_ROW}, -bm25(words) AS score FROM words CROSS JOIN documents d ON d.id = words.rowid{where.sql}"  # noqa: S608
            " ORDER BY score DESC, d.moment DESC, d.path LIMIT ?"
        )
        found = self._all(sql, (*where.values, -1 if question.limit is None else question.limit))
        return [(_row_of(one[:-1]), one[-1]) for one in found]

    # -- folders and notes --------------------------------------------------------------------------------------------
    def folders(self, folder: str, deep: bool = True) -> dict[str, Folder]:
        """The folders at and below one (with ``deep`` false, only itself), as they were when last looked into."""
        below = f" OR ({_BELOW})" if deep else ""
        found = self._all(f"SELECT * FROM folders WHERE path = ?{below}", [folder, *(_span(folder) if deep else ())])  # noqa: S608
        return {path: Folder(*facts) for path, *facts in found}

    def known_folders(self, paths: Sequence[str]) -> set[str]:
        """Those of the folders that were looked into."""
        sql = "SELECT f.path FROM json_each(?) e JOIN folders f ON f.path = e.value"
        return {path for (path,) in self._all(sql, (json.dumps(paths),))}

    def looked_into(self, path: str, facts: Folder | None) -> None:
        """Note that a folder was looked into, or that it is gone."""
        if facts is None:
            self._base.change(lambda base: base.execute("DELETE FROM folders WHERE path = ?", (path,)).rowcount)
        else:
            sql = "INSERT OR REPLACE INTO folders VALUES (?, ?, ?, ?, ?)"
            self._base.change(lambda base: base.execute(sql, (path, *facts)).rowcount)

    def note(self, **values: str) -> None:
        """Keep short texts by key, as long as the file is not started over."""
        rows = list(values.items())
        self._base.change(lambda base: base.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", rows).rowcount)

    def notes(self) -> dict[str, str]:
        """All texts that are kept, by key; none in a file that was started over."""
        self._complete = 0
        return dict(self._all("SELECT key, value FROM meta"))


# -- questions ----------------------------------------------------------------------------------------------------
class _Where:
    """Conditions with their values, in step."""

    def __init__(self) -> None:
        self.conditions: list[str] = []
        self.values: list[Any] = []

    def add(self, condition: str, *values: Any) -> None:
        self.conditions.append(condition)
        self.values += values

    def among(self, column: str, values: Sequence[Any]) -> None:
        if values:
            given = (_storable(value) if isinstance(value, str) else value for value in values)
            self.add(f"{column} IN ({_marks(values)})", *given)

    def within(self, column: str, start: datetime | None, end: datetime | None) -> None:
        if start is not None:
            self.add(f"{column} >= ?", micros(start))
        if end is not None:
            self.add(f"{column} <= ?", micros(end))

    def narrow(self, question: StateQuery, table: str) -> None:
        """What names and documents have both: the narrower of the two is gone through."""
        self.among(f"{table}kind", question.kinds)
        self.among(f"{table}iteration", question.iterations)
        self.within(f"{table}moment", question.start, question.end)

    def rest(self, question: StateQuery, lead: str = "") -> None:
        """All other conditions, but for that on the names which lead."""
        for role in _ROLE:
            names = getattr(question, role)
            if names and role != lead:
                inner = _Where()
                inner.add("role = ?", _ROLE[role])
                inner.among("name", names)
                inner.narrow(question, "")
                self.add(f"d.id IN (SELECT id FROM names{inner.sql})", *inner.values)  # noqa: S608
        self.among("d.task", question.tasks)
        self.among("d.state", question.states)
        if question.metrics:
            inner = _Where()
            inner.add("m.id = d.id")
            inner.among("m.name", question.metrics)
            self.add(f"EXISTS (SELECT 1 FROM measures m{inner.sql})", *inner.values)  # noqa: S608

    @property
    def sql(self) -> str:
        return f" WHERE {' AND '.join(self.conditions)}" if self.conditions else ""


def documents(question: StateQuery) -> tuple[str, list[Any]]:
    """What finds the documents a question wants."""
    where = _Where()
    lead = next((role for role in _ROLE if len(getattr(question, role)) == 1), "")
    leader = "n" if lead else "d"
    source = "names n CROSS JOIN documents d ON d.id = n.id" if lead else "documents d"
    if lead:
        stateful = lead == "agents" and question.states == (STATEFUL,)
        role = STATEFUL if stateful else _ROLE[lead]
        where.add("n.role = ? AND n.name = ?", role, _storable(getattr(question, lead)[0]))
    where.narrow(question, f"{leader}.")
    where.rest(question, lead)
    order = "DESC" if question.newest else "ASC"
    limit = f" LIMIT {int(question.limit)}" if question.limit is not None else ""
    sorting = f"{leader}.moment {order}, {leader}.id {order}"
    return f"SELECT {_ROW} FROM {source}{where.sql} ORDER BY {sorting}{limit}", where.values  # noqa: S608


def _agents(base: sqlite3.Connection, kind: str) -> Iterator[str]:
    """Each agent once, by going from one name to the next in the table's order."""
    sql = "SELECT name FROM names WHERE role = 'agent' AND name > ? ORDER BY name LIMIT 1"
    has = "SELECT 1 FROM names WHERE role = 'agent' AND name = ? AND kind = ? LIMIT 1"
    found = base.execute(sql, ("",)).fetchone()
    while found:
        if base.execute(has, (found[0], kind)).fetchone():
            yield found[0]
        found = base.execute(sql, found).fetchone()


# -- rows ---------------------------------------------------------------------------------------------------------
def _row_of(found: Sequence[Any]) -> StateRow:
    """A row out of ``_ROW``."""
    facts, sha256, size, stamp, archive = found
    return StateRow(facts=_facts_of(facts), sha256=sha256, bytes=size, stamp=_stamp_of(stamp), archive=archive)


def _facts_of(facts: str) -> StateFacts:
    try:
        return StateFacts.from_dict(json.loads(facts))
    except DAMAGE as error:
        hint = "run memfs admin reindex"
        raise IndexUnavailable(f"what is known of a state document is damaged: {error}", hint=hint) from error


def _stamp_of(stamp: str) -> Stamp | None:
    return Stamp(*json.loads(stamp)) if stamp else None


def _put(base: sqlite3.Connection, row: StateRow) -> None:
    """Note a document in place of what was known under its path."""
    facts, stamp = row.facts, json.dumps(row.stamp) if row.stamp is not None else ""
    described, folder = json.dumps(facts.to_dict()), row.path.rpartition("/")[0]
    known = base.execute("SELECT id, sha256, facts FROM documents WHERE path = ?", (row.path,)).fetchone()
    if facts.timestamp:
        moment = micros(facts.timestamp)
    elif row.stamp is not None:
        moment = row.stamp.mtime_ns // 1000
    else:  # in an archive: that of its iteration
        sql = "SELECT max(moment) FROM documents WHERE iteration = ? AND kind = 'system_state'"
        (found,) = base.execute(sql, (facts.iteration,)).fetchone()
        moment = _NO_TIME if found is None else int(found)
    about = (facts.kind, facts.iteration, moment, *map(_storable, (facts.task, facts.state, facts.status)))
    values = (known and known[0], row.path, folder, *about, row.sha256, row.bytes, stamp, row.archive, described)
    key = base.execute(f"INSERT OR REPLACE INTO documents VALUES ({_marks(values)})", values).lastrowid  # noqa: S608
    if stamp:  # as far as this knows, its folder was not looked into
        base.execute("INSERT OR IGNORE INTO folders VALUES (?, 1, 0, 0, 0)", (folder,))
    if known is not None and known[1:] == (row.sha256, described):
        return
    if known is not None:
        _clear_beside(base, known[0])
    names = [(role, _storable(name), facts.kind, moment, key, facts.iteration) for role, name in _names(facts)]
    base.executemany("INSERT OR IGNORE INTO names VALUES (?, ?, ?, ?, ?, ?)", names)
    measures = [
        (_storable(name), _storable(agent), moment, key, value, facts.iteration, facts.kind)
        for (agent, name), value in facts.fingerprint.items()
    ]
    base.executemany("INSERT OR IGNORE INTO measures VALUES (?, ?, ?, ?, ?, ?, ?)", measures)


def _take(base: sqlite3.Connection, path: str) -> None:
    """Drop a document."""
    for (key,) in base.execute("SELECT id FROM documents WHERE path = ?", (path,)).fetchall():
        _clear_beside(base, key)
        base.execute("DELETE FROM documents WHERE id = ?", (key,))


def _clear_beside(base: sqlite3.Connection, key: int) -> None:
    """Drop what else is known of a document."""
    for table, column in (("names", "id"), ("measures", "id"), ("words", "rowid")):
        base.execute(f"DELETE FROM {table} WHERE {column} = ?", (key,))  # noqa: S608


def _names(facts: StateFacts) -> Iterator[tuple[str, str]]:
    """Under which names a document is found, each with its role."""
    for kind, role in _ROLE.items():
        names = ((facts.name,) if facts.name else ()) if kind == "names" else getattr(facts, kind)
        yield from ((role, name) for name in names)
    if facts.state == STATEFUL:
        yield from ((STATEFUL, name) for name in facts.agents)


# -- values -------------------------------------------------------------------------------------------------------
def _storable(text: str) -> str:
    """A text that SQLite takes: lone surrogates, which a hand-written JSON file can hold, are escaped."""
    return text.encode("utf-8", "backslashreplace").decode()


def _marks(values: Sequence[Any]) -> str:
    """A question mark for each value."""
    return ", ".join("?" * len(values))


def _span(folder: str) -> tuple[str, str]:
    """The range in which every path below a folder is."""
    return f"{folder}/", f"{folder}0"

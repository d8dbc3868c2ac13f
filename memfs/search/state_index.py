"""State index: finds state documents by what they are about, in one SQLite file beside the search index.

Everything in it is derived: a file that is damaged or gone is started over, and ``whole`` says so. No document is
read.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from memfs.catalog.database import CacheDatabase
from memfs.model.item import Stamp
from memfs.model.state_facts import STATEFUL
from memfs.model.state_query import Iteration, Measure, StateQuery, StateRow
from memfs.search import state_tables as tables
from memfs.search.state_tables import COLUMNS, number_of, storable

_ROLES = ("parents", "hypotheses", "names", "agents", "components")
_ROLE = {
    "agents": "agent",
    "components": "component",
    "hypotheses": "hypothesis",
    "names": "name",
    "parents": "parent",
}


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
            self.add(f"{column} IN ({marks(values)})", *map(_value, values))

    def within(self, column: str, start: datetime | None, end: datetime | None) -> None:
        if start is not None:
            self.add(f"{column} >= ?", number_of(start))
        if end is not None:
            self.add(f"{column} <= ?", number_of(end))

    @property
    def sql(self) -> str:
        return f" WHERE {' AND '.join(self.conditions)}" if self.conditions else ""


def documents(question: StateQuery) -> tuple[str, list[Any]]:
    """What finds the documents a question wants."""
    where = _Where()
    lead = next((role for role in _ROLES if len(getattr(question, role)) == 1), "")
    leader = "n" if lead else "d"
    source = "names n CROSS JOIN documents d ON d.id = n.id" if lead else "documents d"
    if lead:
        stateful = lead == "agents" and question.states == (STATEFUL,)
        role = STATEFUL if stateful else _ROLE[lead]
        where.add("n.role = ? AND n.name = ?", role, storable(getattr(question, lead)[0]))
    _named(where, question, lead)
    _narrowed(where, question, f"{leader}.")
    _rest(where, question)
    order = "DESC" if question.newest else "ASC"
    limit = f" LIMIT {int(question.limit)}" if question.limit is not None else ""
    sorting = f"{leader}.moment {order}, {leader}.id {order}"
    sql = f"SELECT {COLUMNS} FROM {source}{where.sql} ORDER BY {sorting}{limit}"  # noqa: S608
    return sql, where.values


def matches(terms: Sequence[str], question: StateQuery) -> tuple[str, list[Any]]:
    """What finds the documents a question wants that hold one of some terms, the best first, each with its score."""
    where = _Where()
    where.add("words MATCH ?", " OR ".join(f'"{term}"' for term in terms))
    _named(where, question)
    _narrowed(where, question, "d.")
    _rest(where, question)
    sql = (
        f"SELECT {COLUMNS}, -bm25(words) AS score FROM words CROSS JOIN documents d ON d.id = words.rowid{where.sql}"  # noqa: S608
        " ORDER BY score DESC, d.moment DESC, d.path LIMIT ?"
    )
    return sql, [*where.values, -1 if question.limit is None else question.limit]


def _named(where: _Where, question: StateQuery, lead: str = "") -> None:
    for role in _ROLES:
        names = getattr(question, role)
        if names and role != lead:
            named = _Where()
            named.add(f"role = ? AND name IN ({marks(names)})", _ROLE[role], *map(storable, names))
            _narrowed(named, question, "")
            where.add(f"d.id IN (SELECT id FROM names{named.sql})", *named.values)  # noqa: S608


def _narrowed(where: _Where, question: StateQuery, table: str) -> None:
    """What names and documents have both: the narrower of the two is gone through."""
    where.among(f"{table}kind", question.kinds)
    where.among(f"{table}iteration", question.iterations)
    where.within(f"{table}moment", question.start, question.end)


def _rest(where: _Where, question: StateQuery) -> None:
    where.among("d.task", question.tasks)
    where.among("d.state", question.states)
    if question.metrics:
        where.add(
            f"EXISTS (SELECT 1 FROM measures m WHERE m.id = d.id AND m.name IN ({marks(question.metrics)}))",  # noqa: S608
            *map(storable, question.metrics),
        )


def marks(values: Sequence[Any]) -> str:
    """A question mark for each value."""
    return ", ".join("?" * len(values))


def _value(value: Any) -> Any:
    return storable(value) if isinstance(value, str) else value


_NEAR = (
    "SELECT id, moment, value FROM measures INDEXED BY measures_near"
    " WHERE kind = 'state_update' AND name = ? AND agent = ? AND value "
)


def near(base: sqlite3.Connection, figure: tuple[str, str], value: float, most: int) -> list[tuple[int, int, float]]:
    """Key, moment and figure of the state updates in which one figure is nearest to a value, on either side; newer ones
    first among equals. Each question reads the index from one place on, in its own order: nothing is sorted.
    """
    of = (storable(figure[1]), storable(figure[0]))
    below = base.execute(f"{_NEAR} <= ? ORDER BY value DESC, moment DESC LIMIT ?", (*of, value, most)).fetchall()
    above = base.execute(f"{_NEAR} > ? ORDER BY value, moment LIMIT ?", (*of, value, most)).fetchall()
    if len(above) == most:  # of the last value there may be newer ones
        last = above[-1][2]
        above = [one for one in above if one[2] < last]
        newest = f"{_NEAR} = ? ORDER BY moment DESC LIMIT ?"
        above += base.execute(newest, (*of, last, most - len(above))).fetchall()
    return below + above


def sharing(base: sqlite3.Connection, role: str, word: str, most: int) -> list[tuple[int, int]]:
    """Key and moment of the newest state updates whose focus has a word, or all the words of a ``text_of``."""
    sql = (
        "SELECT id, moment FROM names WHERE role = ? AND name = ? AND kind = 'state_update'"
        " ORDER BY moment DESC, id DESC LIMIT ?"
    )
    return base.execute(sql, (role, storable(word), most)).fetchall()


_CHUNK = 500
_BELOW = "path >= ? AND path < ?"

Value = TypeVar("Value")


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
        return map(tables.row_of, self.raw)


@dataclass(slots=True)
class Alike:
    """In what a state update was found to be like another: by what it has itself, and at which moment."""

    key: int
    moment: int
    figures: dict[tuple[str, str], float] = field(default_factory=dict)
    words: set[str] = field(default_factory=set)


class StateIndex:
    """What is known of every state document of one workspace. Shared by threads and processes.

    Raises (every method):
        IndexUnavailable: the file gives no answer, and neither does a new one.
    """

    def __init__(self, folder: Path) -> None:
        """``folder``: the workspace's own in the user's cache."""
        self._base = CacheDatabase(
            folder / tables.FILE, tables.SCHEMA, tables.VERSION, what="the index of state documents"
        )

    # -- learning -----------------------------------------------------------------------------------------------------
    def learn(self, rows: Iterable[StateRow]) -> None:
        """Note documents, all at once; what was known under their paths is replaced."""
        listed = list(rows)
        if listed:
            self._base.change(lambda base: _each(tables.put, base, listed))

    def forget(self, paths: Iterable[str]) -> None:
        """Drop documents; paths that are not known are passed over."""
        listed = list(paths)
        if listed:
            self._base.change(lambda base: _each(tables.take, base, listed))

    def clear(self) -> None:
        """Forget everything, also where the file is damaged."""
        self._base.clear()

    def close(self) -> None:
        """Release the file; the next question opens it again."""
        self._base.close()

    # -- documents ----------------------------------------------------------------------------------------------------
    def find(self, question: StateQuery) -> list[StateRow]:
        """The documents that agree with a question, by time; ones without a time come before the others."""
        return list(self.found(question))

    def found(self, question: StateQuery) -> RowSet:
        """As ``find``, for a caller who may not have the time for all of them."""
        sql, values = documents(question)
        return RowSet(self._base.ask(lambda base: base.execute(sql, values).fetchall()))

    def row(self, path: str) -> StateRow | None:
        """What is known of one document, None where nothing is."""
        sql = f"SELECT {tables.COLUMNS} FROM documents d WHERE d.path = ?"  # noqa: S608
        return self._base.ask(
            lambda base: next((tables.row_of(found) for found in base.execute(sql, (path,))), None),
        )

    def stamps(self, folder: str, deep: bool = True) -> dict[str, tuple[int, int, int, int, int, str]]:
        """Size, times, inode, moment of reading and archive of what is known below a folder, by path.

        Args:
            deep: false for what lies directly in it.
        """
        where, values = (_BELOW, _span(folder)) if deep else ("folder = ?", (folder,))
        sql = f"SELECT path, bytes, mtime, ctime, inode, checked, archive FROM documents WHERE {where}"  # noqa: S608
        return self._base.ask(lambda base: {found[0]: found[1:] for found in base.execute(sql, values)})

    def vouchers(self) -> dict[str, Stamp]:
        """The stamps of the files that are known, by path; those in archives have none."""
        sql = "SELECT path, bytes, mtime, ctime, inode, blob, checked FROM documents WHERE checked"
        return self._base.ask(lambda base: {path: Stamp(*facts) for path, *facts in base.execute(sql)})

    def in_archive(self, archive: str) -> list[str]:
        """The paths of the documents that are known to lie in an archive only."""
        sql = "SELECT path FROM documents WHERE archive = ? AND archive != '' ORDER BY path"
        return self._base.ask(lambda base: [path for (path,) in base.execute(sql, (archive,))])

    def count(self) -> int:
        """How many documents are known."""
        return self._base.ask(lambda base: int(base.execute("SELECT count(*) FROM documents").fetchone()[0]))

    # -- iterations, agents, figures ----------------------------------------------------------------------------------
    def iterations(self) -> list[Iteration]:
        """The iterations, by number, those without a header too."""
        sql = (
            "SELECT i.iteration, d.facts, d.archive FROM (SELECT DISTINCT iteration FROM documents"
            " WHERE iteration IS NOT NULL) i LEFT JOIN documents d ON d.iteration = i.iteration"
            " AND d.kind = 'system_state' ORDER BY i.iteration"
        )
        return self._base.ask(lambda base: [tables.iteration_of(*found) for found in base.execute(sql)])

    def newest_iteration(self, status: str = "") -> int | None:
        """The highest number of an iteration, None where there is none; with ``status``, of those in it."""
        of_status = " WHERE kind = 'system_state' AND status = ?" if status else ""
        values = [status] if status else []
        sql = f"SELECT max(iteration) FROM documents{of_status}"  # noqa: S608
        (found,) = self._base.ask(lambda base: base.execute(sql, values).fetchone())
        return None if found is None else int(found)

    def iterations_with(self, kind: str, status: str = "") -> list[int]:
        """The numbers, in order, of the iterations with a ``system_state`` in a status, or with a ``meta_review``."""
        # the kind stands in the statement, as SQLite chooses the index by it
        sql = f"SELECT DISTINCT iteration FROM documents WHERE kind = '{kind}' AND status = ? ORDER BY iteration"  # noqa: S608
        return self._base.ask(lambda base: [number for (number,) in base.execute(sql, (status,))])

    def agents(self, kinds: Sequence[str] = ("agent_output",)) -> list[str]:
        """The agents that documents of these kinds are about, by name; costs by agent, not by document."""
        return self._base.ask(lambda base: sorted({name for kind in kinds for name in _agents(base, kind)}))

    def counts(
        self,
        iterations: Sequence[int] = (),
        start: datetime | None = None,
        end: datetime | None = None,
    ) -> dict[str, int]:
        """How many documents of each kind there are."""
        where = _Where()
        where.among("iteration", iterations)
        where.within("moment", start, end)
        sql = f"SELECT kind, count(*) FROM documents{where.sql} GROUP BY kind ORDER BY kind"  # noqa: S608
        return self._base.ask(lambda base: dict(base.execute(sql, where.values).fetchall()))

    def counts_by_iteration(self) -> dict[int, dict[str, int]]:
        """How many documents of each kind each iteration has."""
        sql = "SELECT iteration, kind, count(*) FROM documents WHERE iteration IS NOT NULL GROUP BY iteration, kind"
        counted: dict[int, dict[str, int]] = {}
        for number, kind, many in self._base.ask(lambda base: base.execute(sql).fetchall()):
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
        return self._base.ask(lambda base: [tables.measure_of(found) for found in base.execute(sql, where.values)])

    def near(self, fingerprint: Mapping[tuple[str, str], float], words: Collection[str], most: int) -> list[Alike]:
        """State updates that come near in a figure or share a word: of each figure the ``most`` nearest on either side,
        of each word, and of all together, the ``most`` newest. Costs by figure and word, not by document.
        """

        def nearest(base: sqlite3.Connection) -> list[Alike]:
            found: dict[int, Alike] = {}
            for figure, value in fingerprint.items():
                for key, moment, theirs in near(base, figure, value, most):
                    found.setdefault(key, Alike(key, moment)).figures[figure] = theirs
            traits: list[tuple[str, str, tuple[str, ...]]] = [(tables.WORD, word, (word,)) for word in words]
            if words:
                traits.append((tables.TEXT, tables.text_of(words), tuple(words)))
            for role, name, shared in traits:
                for key, moment in sharing(base, role, name, most):
                    found.setdefault(key, Alike(key, moment)).words.update(shared)
            return list(found.values())

        return self._base.ask(nearest)

    def rows(self, keys: Sequence[int]) -> list[StateRow]:
        """The documents with these keys, in no particular order; a key that is gone by now has none."""
        found: list[StateRow] = []
        for part in _parts(keys):
            sql = f"SELECT {tables.COLUMNS} FROM documents d WHERE d.id IN ({marks(part)})"  # noqa: S608
            found += self._base.ask(lambda base, s=sql, p=part: [tables.row_of(row) for row in base.execute(s, p)])  # type: ignore[misc]
        return found

    # -- what iterations come to --------------------------------------------------------------------------------------
    def entries(self, aggregate: str) -> dict[int, dict[str, Any]]:
        """What was kept for an aggregate, by iteration; nothing of one of which a document changed since."""
        sql = "SELECT iteration, entry FROM entries WHERE aggregate = ? AND entry != ''"
        found = self._base.ask(lambda base: base.execute(sql, (aggregate,)).fetchall())
        return {number: json.loads(entry) for number, entry in found}

    def begin_entry(self, aggregate: str, iteration: int) -> int:
        """Begin an entry, before its documents are looked up; the number to keep it under."""
        maker = secrets.randbits(62)
        row = (iteration, aggregate, maker, "")
        self._base.change(lambda base: base.execute("INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?)", row).rowcount)
        return maker

    def keep_entry(self, aggregate: str, iteration: int, maker: int, entry: Mapping[str, Any]) -> None:
        """Keep an entry, unless a document of its iteration changed since it was begun."""
        sql = "UPDATE entries SET entry = ? WHERE iteration = ? AND aggregate = ? AND maker = ?"
        values = (json.dumps(entry), iteration, aggregate, maker)
        self._base.change(lambda base: base.execute(sql, values).rowcount)

    def forget_entries(self) -> None:
        """Drop all entries."""
        self._base.change(lambda base: base.execute("DELETE FROM entries").rowcount)

    # -- words --------------------------------------------------------------------------------------------------------
    def without_words(self, most: int) -> list[StateRow]:
        """So many documents of which nobody has noted the words yet."""
        sql = (
            f"SELECT {tables.COLUMNS} FROM documents d"  # noqa: S608
            " WHERE NOT EXISTS (SELECT 1 FROM words_docsize s WHERE s.id = d.id) LIMIT ?"
        )
        return self._base.ask(lambda base: [tables.row_of(found) for found in base.execute(sql, (most,))])

    def learn_words(self, found: Iterable[tuple[StateRow, str]]) -> None:
        """Note the terms of documents, parted by blanks; of one that is another by now nothing is noted."""
        listed = list(found)
        if listed:
            self._base.change(lambda base: _each(tables.put_words, base, listed))

    def matching(self, terms: Sequence[str], question: StateQuery) -> list[tuple[StateRow, float]]:
        """The documents that agree with a question and hold one of the terms, with their scores, the best first."""
        sql, values = matches(terms, question)
        return self._base.ask(
            lambda base: [(tables.row_of(found[:-1]), found[-1]) for found in base.execute(sql, values)]
        )

    # -- folders and notes --------------------------------------------------------------------------------------------
    def folders(self, folder: str, deep: bool = True) -> dict[str, Folder]:
        """The folders at and below one (with ``deep`` false, only itself), as they were when last looked into."""
        sql, values = "SELECT * FROM folders WHERE path = ?", [folder]
        if deep:
            sql, values = f"{sql} OR ({_BELOW})", [folder, *_span(folder)]
        return self._base.ask(lambda base: {path: Folder(*facts) for path, *facts in base.execute(sql, values)})

    def known_folders(self, paths: Sequence[str]) -> set[str]:
        """Those of the folders that were looked into."""
        sql = "SELECT f.path FROM json_each(?) e JOIN folders f ON f.path = e.value"
        return self._base.ask(lambda base: {path for (path,) in base.execute(sql, (json.dumps(paths),))})

    def looked_into(self, folders: Mapping[str, Folder], gone: Collection[str] = ()) -> None:
        """Note that folders were looked into, and that others are gone."""
        rows = [(path, *facts) for path, facts in folders.items()]

        def act(base: sqlite3.Connection) -> None:
            base.executemany("DELETE FROM folders WHERE path = ?", [(path,) for path in gone])
            base.executemany("INSERT OR REPLACE INTO folders VALUES (?, ?, ?, ?, ?)", rows)

        if rows or gone:
            self._base.change(act)

    def note(self, **values: str) -> None:
        """Keep short texts by key, as long as the file is not started over."""
        rows = list(values.items())
        self._base.change(lambda base: base.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", rows).rowcount)

    def notes(self) -> dict[str, str]:
        """All texts that are kept, by key; none in a file that was started over."""
        return self._base.ask(lambda base: dict(base.execute("SELECT key, value FROM meta").fetchall()))


def _each(act: Callable[[sqlite3.Connection, Value], None], base: sqlite3.Connection, values: Iterable[Value]) -> None:
    for value in values:
        act(base, value)


def _agents(base: sqlite3.Connection, kind: str) -> Iterator[str]:
    """Each agent once, by going from one name to the next in the table's order."""
    sql = "SELECT name FROM names WHERE role = 'agent' AND name > ? ORDER BY name LIMIT 1"
    has = "SELECT 1 FROM names WHERE role = 'agent' AND name = ? AND kind = ? LIMIT 1"
    found = base.execute(sql, ("",)).fetchone()
    while found:
        if base.execute(has, (found[0], kind)).fetchone():
            yield found[0]
        found = base.execute(sql, found).fetchone()


def _span(folder: str) -> tuple[str, str]:
    """The range in which every path below a folder lies."""
    return f"{folder}/", f"{folder}0"


def _parts(values: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(values), _CHUNK):
        yield values[start : start + _CHUNK]

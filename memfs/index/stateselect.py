"""State select: the SQL by which questions for state documents are answered.

Owns which table leads: for a question with one name the rows come in the order of time straight from the table's own
order, so that the newest costs the same however many there are.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from memfs.index.statetables import COLUMNS, number_of, storable
from memfs.model.statefacts import STATEFUL
from memfs.model.statequery import Question

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


def documents(question: Question) -> tuple[str, list[Any]]:
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


def matches(terms: Sequence[str], question: Question) -> tuple[str, list[Any]]:
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


def _named(where: _Where, question: Question, lead: str = "") -> None:
    for role in _ROLES:
        names = getattr(question, role)
        if names and role != lead:
            named = _Where()
            named.add(f"role = ? AND name IN ({marks(names)})", _ROLE[role], *map(storable, names))
            _narrowed(named, question, "")
            where.add(f"d.id IN (SELECT id FROM names{named.sql})", *named.values)  # noqa: S608


def _narrowed(where: _Where, question: Question, table: str) -> None:
    """What names and documents have both: the narrower of the two is gone through."""
    where.among(f"{table}kind", question.kinds)
    where.among(f"{table}iteration", question.iterations)
    where.within(f"{table}moment", question.start, question.end)


def _rest(where: _Where, question: Question) -> None:
    where.among("d.task", question.tasks)
    where.among("d.state", question.states)
    if question.metrics:
        where.add(
            f"EXISTS (SELECT 1 FROM measures m WHERE m.id = d.id AND m.name IN ({marks(question.metrics)}))",  # noqa: S608
            *map(storable, question.metrics),
        )


def measures(
    names: Sequence[str],
    agents: Sequence[str] | None,
    iterations: Sequence[int],
    kinds: Sequence[str],
    start: datetime | None,
    end: datetime | None,
) -> tuple[str, list[Any]]:
    """What finds figures."""
    where = _Where()
    where.among("m.name", names)
    if agents is not None:
        where.among("m.agent", agents or ("\0",))
    where.among("m.iteration", iterations)
    where.among("m.kind", kinds)
    where.within("m.moment", start, end)
    led = " INDEXED BY measures_in" if iterations else ""  # else SQLite goes through all that an agent ever measured
    sql = (
        "SELECT m.name, m.value, m.agent, m.iteration, m.moment, m.kind, d.path"  # noqa: S608
        f" FROM measures m{led} JOIN documents d ON d.id = m.id{where.sql} ORDER BY m.moment, m.id, m.agent, m.name"
    )
    return sql, where.values


def marks(values: Sequence[Any]) -> str:
    """A question mark for each value."""
    return ", ".join("?" * len(values))


def _value(value: Any) -> Any:
    return storable(value) if isinstance(value, str) else value


def counts(iterations: Sequence[int], start: datetime | None, end: datetime | None) -> tuple[str, list[Any]]:
    """What counts documents by kind."""
    where = _Where()
    where.among("iteration", iterations)
    where.within("moment", start, end)
    return f"SELECT kind, count(*) FROM documents{where.sql} GROUP BY kind ORDER BY kind", where.values  # noqa: S608


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

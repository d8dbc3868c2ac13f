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
    source, moment, kind = "documents d", "d.moment", "d.kind"
    if lead:
        source, moment, kind = "names n CROSS JOIN documents d ON d.id = n.id", "n.moment", "n.kind"
        where.add("n.role = ? AND n.name = ?", _ROLE[lead], storable(getattr(question, lead)[0]))
    _named(where, question, lead)
    _rest(where, question, moment, kind)
    order = "DESC" if question.newest else "ASC"
    limit = f" LIMIT {int(question.limit)}" if question.limit is not None else ""
    key = "n.id" if lead else "d.id"
    sql = f"SELECT {COLUMNS} FROM {source}{where.sql} ORDER BY {moment} {order}, {key} {order}{limit}"  # noqa: S608
    return sql, where.values


def matches(terms: Sequence[str], question: Question) -> tuple[str, list[Any]]:
    """What finds the documents a question wants that hold one of some terms, the best first, each with its score."""
    where = _Where()
    where.add("words MATCH ?", " OR ".join(f'"{term}"' for term in terms))
    _named(where, question)
    _rest(where, question, "d.moment", "d.kind")
    sql = (
        f"SELECT {COLUMNS}, -bm25(words) AS score FROM words CROSS JOIN documents d ON d.id = words.rowid{where.sql}"  # noqa: S608
        " ORDER BY score DESC, d.moment DESC, d.path LIMIT ?"
    )
    return sql, [*where.values, -1 if question.limit is None else question.limit]


def _named(where: _Where, question: Question, lead: str = "") -> None:
    for role in _ROLES:
        names = getattr(question, role)
        if names and role != lead:
            where.add(
                f"d.id IN (SELECT id FROM names WHERE role = ? AND name IN ({marks(names)}){_kinds(question)})",  # noqa: S608
                _ROLE[role],
                *map(storable, names),
                *question.kinds,
            )


def _rest(where: _Where, question: Question, moment: str, kind: str) -> None:
    where.among(kind, question.kinds)
    where.among("d.iteration", question.iterations)
    where.among("d.task", question.tasks)
    where.among("d.state", question.states)
    where.within(moment, question.start, question.end)
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
    sql = (
        "SELECT m.name, m.value, m.agent, m.iteration, m.moment, m.kind, d.path"  # noqa: S608
        f" FROM measures m JOIN documents d ON d.id = m.id{where.sql} ORDER BY m.moment, m.id, m.agent, m.name"
    )
    return sql, where.values


def marks(values: Sequence[Any]) -> str:
    """A question mark for each value."""
    return ", ".join("?" * len(values))


def _kinds(question: Question) -> str:
    return f" AND kind IN ({marks(question.kinds)})" if question.kinds else ""


def _value(value: Any) -> Any:
    return storable(value) if isinstance(value, str) else value


def counts(iterations: Sequence[int], start: datetime | None, end: datetime | None) -> tuple[str, list[Any]]:
    """What counts documents by kind."""
    where = _Where()
    where.among("iteration", iterations)
    where.within("moment", start, end)
    return f"SELECT kind, count(*) FROM documents{where.sql} GROUP BY kind ORDER BY kind", where.values  # noqa: S608


def near(base: sqlite3.Connection, figure: tuple[str, str], value: float, most: int) -> set[int]:
    """The documents in which one figure is nearest to a value, newer ones first among equals."""
    agent, name = figure
    found: set[int] = set()
    for beyond, order in ((">=", "ASC"), ("<=", "DESC")):
        sql = (
            "SELECT id FROM measures INDEXED BY measures_near WHERE kind = 'state_update' AND name = ? AND agent = ?"  # noqa: S608
            f" AND value {beyond} ? ORDER BY value {order}, moment DESC LIMIT ?"
        )
        found.update(key for (key,) in base.execute(sql, (storable(name), storable(agent), value, most)))
    return found

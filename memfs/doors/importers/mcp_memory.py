"""Read the graph of the Model Context Protocol's reference memory server: entities, observations and relations.

The file holds one JSON object a line, of type ``entity`` or ``relation``; or what ``read_graph`` answers.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from memfs.doors.importers.source_files import SourceContent, line_of, name_of, records, tags_of
from memfs.errors import MemfsError
from memfs.model import MemoryItem
from memfs.model.item import Origin, Trust

NAME = "mcp-memory"
_SORTS = ("entity", "relation")


def is_record(value: Any) -> bool:
    """Whether a first value in a file is of this format."""
    if not isinstance(value, dict):
        return False
    if isinstance(value.get("entities"), list):
        return True
    return value.get("type") in _SORTS and ("name" in value or "relationType" in value)


class _Graph:
    """What was read: entities by name, in order, and the relations that begin at each."""

    def __init__(self) -> None:
        self.sorts: dict[str, str] = {}
        self.said: dict[str, list[str]] = defaultdict(list)
        self.lines: dict[str, int] = {}
        self.relations: dict[str, dict[tuple[str, str], int]] = defaultdict(dict)

    def take_entity(self, value: dict[str, Any], line: int) -> bool:
        """Take an entity; what is said of one name twice is said of one entity."""
        name = name_of(value.get("name"))
        said = value.get("observations", [])
        if not name or not isinstance(said, list):
            return False
        self.sorts.setdefault(name, line_of(value.get("entityType")))
        self.lines.setdefault(name, line)
        texts = (one.get("content") if isinstance(one, dict) else one for one in said)
        self.said[name] = list(dict.fromkeys([*self.said[name], *(text for text in map(_text, texts) if text)]))
        return True

    def take_relation(self, value: dict[str, Any], line: int) -> bool:
        """Take a relation between two names."""
        begin, end, sort = (name_of(value.get(key)) for key in ("from", "to", "relationType"))
        if begin and end and sort:
            self.relations[begin].setdefault((sort, end), line)
        return bool(begin and end and sort)


def read(text: str, name: str) -> SourceContent:
    """The memories of a graph: one for each entity, linked as its relations say.

    Raises:
        ItemSyntaxError: it is no JSON at all.
    """
    taken, graph = SourceContent(), _Graph()
    for line, value in records(text, name):
        _take(value, line, name, graph, taken)
    for entity, sort in graph.sorts.items():
        _take_entity(graph, entity, sort, name, taken)
    for begin, relations in graph.relations.items():
        for (sort, end), line in relations.items():
            missing = next((one for one in (begin, end) if one not in graph.sorts), "")
            if missing:
                taken.skip(f"{name}:{line}", f"the relation {begin} {sort} {end} has no entity {missing}")
    return taken


def _take(value: Any, line: int, name: str, graph: _Graph, taken: SourceContent) -> None:
    if isinstance(value, MemfsError):
        taken.skip(f"{name}:{line}", value.message)
    elif isinstance(value, dict) and isinstance(value.get("entities"), list):
        relations = value.get("relations")
        for sort, rows in (("entity", value["entities"]), ("relation", relations)):
            for row in rows if isinstance(rows, list) else []:
                _take({**row, "type": sort} if isinstance(row, dict) else row, line, name, graph, taken)
    elif isinstance(value, dict) and value.get("type") in _SORTS:
        take = graph.take_entity if value["type"] == "entity" else graph.take_relation
        if not take(value, line):
            taken.skip(f"{name}:{line}", f"this {value['type']} lacks what the format asks for")
    else:
        taken.skip(f"{name}:{line}", "neither an entity nor a relation")


def _take_entity(graph: _Graph, entity: str, sort: str, name: str, taken: SourceContent) -> None:
    relations = list(graph.relations.get(entity, {}))
    told = [f"- {text}" for text in graph.said[entity]]
    told += [f"- {relation}: {end}" for relation, end in relations]
    item = MemoryItem(
        "\n".join(told),
        "knowledge",
        title=entity,
        tags=tags_of(sort),
        origin=Origin(tool=NAME),
        trust=Trust.AGENT.value,
    )
    line = graph.lines[entity]
    links = ((end, relation[:100]) for relation, end in relations)
    taken.take(item, f"{name}:{line}", entity, entity, {"file": name, "line": line, "id": entity}, links)


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else line_of(value)

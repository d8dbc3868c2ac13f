"""Read the graph of the Model Context Protocol's reference memory server: entities, observations and relations.

The file holds one JSON object a line, of type ``entity`` or ``relation``; or what ``read_graph`` answers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from memfs.doors.importers.source_files import SourceContent, line_of, name_of, records, tags_of
from memfs.errors import MemfsError
from memfs.model import Trust

NAME = "mcp-memory"
_SORTS = ("entity", "relation")


def is_record(value: Any) -> bool:
    """Whether a first value in a file is of this format."""
    if not isinstance(value, dict):
        return False
    if isinstance(value.get("entities"), list):
        return True
    return value.get("type") in _SORTS and ("name" in value or "relationType" in value)


def read(text: str, name: str) -> SourceContent:
    """The memories of a graph: one for each entity, linked as its relations say.

    What is said of one name twice is said of one entity.

    Raises:
        ItemSyntaxError: it is no JSON at all.
    """
    taken = SourceContent(NAME, Trust.AGENT)
    entities: dict[str, tuple[str, int]] = {}
    said: dict[str, dict[str, None]] = defaultdict(dict)
    relations: dict[str, dict[tuple[str, str], int]] = defaultdict(dict)
    for line, value in ((line, row) for line, found in records(text, name) for row in _rows(found)):
        where = f"{name}:{line}"
        if isinstance(value, MemfsError):
            taken.skip(where, value.message)
            continue
        sort = value.get("type") if isinstance(value, dict) else ""
        if sort not in _SORTS:
            taken.skip(where, "neither an entity nor a relation")
            continue
        entity, observations = name_of(value.get("name")), value.get("observations", [])
        begin, end, kind = (name_of(value.get(key)) for key in ("from", "to", "relationType"))
        if sort == "entity" and entity and isinstance(observations, list):
            entities.setdefault(entity, (line_of(value.get("entityType")), line))
            said[entity] |= dict.fromkeys(filter(None, map(_text, observations)))
        elif sort == "relation" and begin and end and kind:
            relations[begin].setdefault((kind, end), line)
        else:
            taken.skip(where, f"this {sort} lacks what the format asks for")
    for entity, (sort, line) in entities.items():
        told = [*said[entity], *(f"{kind}: {end}" for kind, end in relations.get(entity, ()))]
        taken.take(
            "\n".join(f"- {one}" for one in told),
            "knowledge",
            title=entity,
            tags=tags_of(sort),
            where=f"{name}:{line}",
            key=entity,
            name=entity,
            facts={"file": name, "line": line, "id": entity},
            links=((end, kind[:100]) for kind, end in relations.get(entity, ())),
        )
    for begin, kind, end, line in ((a, *b, line) for a, found in relations.items() for b, line in found.items()):
        if missing := next((one for one in (begin, end) if one not in entities), ""):
            taken.skip(f"{name}:{line}", f"the relation {begin} {kind} {end} has no entity {missing}")
    return taken


def _rows(value: Any) -> Iterator[Any]:
    """The entities and relations that a value is, or holds."""
    if not isinstance(value, dict) or not isinstance(value.get("entities"), list):
        yield value
        return
    for sort, rows in (("entity", value["entities"]), ("relation", value.get("relations"))):
        for row in rows if isinstance(rows, list) else []:
            yield {**row, "type": sort} if isinstance(row, dict) else row


def _text(value: Any) -> str:
    """What an observation says, which some versions write as an object."""
    said = value.get("content") if isinstance(value, dict) else value
    return said.strip() if isinstance(said, str) else line_of(said)

"""Leaves: a memory file taken apart into its single fields, so that versions can be compared field by field.

Owns what a field is: a value under dotted names, and of a list each element. Knows neither history nor who wrote what.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from memfs.errors import ContentError, ItemTooLarge
from memfs.files.plain import DOCUMENT_PARTS, canonical
from memfs.files.rendering import parse
from memfs.model.ids import stem_of
from memfs.model.kinds import KindTable
from memfs.store.documents import schema_of
from memfs.store.parts import READ_LIMIT, below_content, is_item

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
        """The fields of a file as they stand in it; of an item also its type, which its folder says.

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
        """Each field of a version with its value, and all of them as they stand.

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

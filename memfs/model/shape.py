"""Shape: a frozen dataclass that is also the mapping its document is, and values as JSON has them.

A shape is made from a mapping and gives it back, so it can be read by attribute and by key.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cache

from memfs.errors import ItemTooDeep, SchemaInvalid
from memfs.model.item import moment_in
from memfs.model.kinds import nearest
from memfs.model.time import Moment, format_time
from memfs.startup import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Self

_SIMPLE = frozenset({str, int, float, bool, type(None)})

Free = Mapping[str, Any]
"""Keys and values that the caller chooses."""


def _fields(shape: Any) -> tuple[Any, ...]:
    """The fields of a shape, or of its class."""
    from dataclasses import fields  # takes long to import, and most commands look no shape over

    return fields(shape)


class Shape(Mapping[str, Any]):
    """Base of the shapes: a frozen dataclass that is a mapping of its own fields, and equal to one with the same."""

    __slots__ = ()

    def __post_init__(self) -> None:
        """Take mappings for nested shapes, ISO 8601 text for points in time, and any sequence for a list."""
        for name, sort in sorts_in(type(self)).items():
            value = getattr(self, name)
            if sort is datetime:
                object.__setattr__(self, name, value if value is None else Moment.of(moment_in(name, value)))
            elif sort is tuple:
                if isinstance(value, list):
                    object.__setattr__(self, name, tuple(value))
            elif value is not None and not isinstance(value, sort):
                object.__setattr__(self, name, sort.from_dict(value, where=name))

    def __getitem__(self, name: str) -> Any:
        if name not in (one.name for one in _fields(self)):
            raise KeyError(name)
        return getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        return (one.name for one in _fields(self))

    def __len__(self) -> int:
        return len(_fields(self))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], where: str = "") -> Self:
        """The shape that a mapping describes.

        Args:
            values: by field; what is left out has the field's default.
            where: the dotted name of the field the mapping is in, for errors.

        Raises:
            SchemaInvalid: naming the field: one that there is not, one that is missing, a value of another sort.
        """
        if isinstance(values, cls):
            return values
        if not isinstance(values, Mapping):
            raise SchemaInvalid("expected keys and values", field=where or None, hint=f"see {cls.__name__}")
        from dataclasses import MISSING

        known = {one.name: one for one in _fields(cls)}
        for key in values:
            if key not in known:
                raise SchemaInvalid(
                    f"{cls.__name__} has no field {key!r}",
                    field=_dotted(where, str(key)),
                    hint=nearest(str(key), known) or f"it has {', '.join(known)}",
                )
        for name, one in known.items():
            if name not in values and one.default is MISSING and one.default_factory is MISSING:
                hint = f"{re.sub('(?<!^)(?=[A-Z])', '_', cls.__name__).lower()} needs it"
                raise SchemaInvalid("the field is missing", field=_dotted(where, name), hint=hint)
        try:
            return cls(**values)
        except SchemaInvalid as error:
            raise SchemaInvalid(error.message, field=_dotted(where, error.field or ""), hint=error.hint) from None

    def to_dict(self) -> dict[str, Any]:
        """The shape as JSON has it: plain mappings and lists, points in time as text; what is None is left out."""
        return {name: plain(value) for name, value in self.items() if value is not None}


@cache
def sorts_in(shape: type[Shape]) -> Mapping[str, Any]:
    """The fields whose values are more than taken as they are: points in time, lists, and nested shapes."""
    known = vars(sys.modules[shape.__module__])
    found = {}
    for field in _fields(shape):
        name = re.split(r"[\[ ]", str(field.type))[0]
        sort = {"datetime": datetime, "tuple": tuple}.get(name, known.get(name))
        if sort in (datetime, tuple) or (isinstance(sort, type) and issubclass(sort, Shape)):
            found[field.name] = sort
    return found


def plain(value: Any) -> Any:
    """A value as JSON has it.

    Raises:
        ItemTooDeep: it is nested deeper than can be followed, or holds itself.
    """
    try:
        return _plain(value)
    except RecursionError:
        raise ItemTooDeep("nested too deep, or a value that holds itself", hint="flatten it") from None


def _plain(value: Any) -> Any:
    if value.__class__ in _SIMPLE:
        return value
    if value.__class__ is list:
        return value.copy() if _SIMPLE.issuperset(map(type, value)) else [_plain(inner) for inner in value]
    if isinstance(value, Shape):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return format_time(value) if isinstance(value, datetime) else value


def _dotted(where: str, name: str) -> str:
    return ".".join(part for part in (where, name) if part)


def text_in(value: object) -> str:
    """A text, "" for anything else."""
    return value if isinstance(value, str) else ""


def texts_in(value: object) -> tuple[str, ...]:
    """The texts of a list, or one alone; none for anything else."""
    values: Any = value if isinstance(value, (list, tuple)) else (value,)
    return tuple(one for one in values if isinstance(one, str))


def count_in(value: object) -> int:
    """A whole number of at least 0; 0 for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0

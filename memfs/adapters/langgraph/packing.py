"""Packing: a value of a graph's state as a document holds it, and back.

Owns the readable form: what LangGraph's own serializer makes (MessagePack) is written as JSON wherever that gives the
very same bytes again, with ``$`` marks for what JSON has no word for; else its bytes as base64. Any other serializer,
an encrypting one above all, has its bytes kept as they are.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import ormsgpack
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import (
    EXT_CONSTRUCTOR_KW_ARGS,
    EXT_CONSTRUCTOR_POS_ARGS,
    EXT_CONSTRUCTOR_SINGLE_ARG,
    EXT_METHOD_SINGLE_ARG,
    EXT_PYDANTIC_V1,
    EXT_PYDANTIC_V2,
    JsonPlusSerializer,
)

from memfs.errors import ContentError
from memfs.files.plain import MAX_DEPTH, MAX_INT, MAX_KEY, hidden
from memfs.model.threads import Kept

_MSGPACK = "msgpack"
_EXT, _OF, _BYTES, _PAIRS, _FLOAT = "$object", "of", "$bytes", "$pairs", "$number"
_WIDTH = MAX_DEPTH - 12  # a document's own nesting, and the marks
_OPTION = ormsgpack.OPT_NON_STR_KEYS
_OF_A_CLASS = (
    EXT_CONSTRUCTOR_SINGLE_ARG,
    EXT_CONSTRUCTOR_POS_ARGS,
    EXT_CONSTRUCTOR_KW_ARGS,
    EXT_METHOD_SINGLE_ARG,
    EXT_PYDANTIC_V1,
    EXT_PYDANTIC_V2,
)


def pack(serde: SerializerProtocol, value: Any) -> Kept:
    """A value as a document holds it: ``{"value": ...}``, or ``{"type": ..., "base64": ...}``.

    Raises:
        TypeError and others: what the serializer raises over a value that it cannot take.
    """
    kind, data = serde.dumps_typed(value)
    if type(serde) is JsonPlusSerializer:
        if kind == "null":
            return {"value": None}
        if kind == _MSGPACK:
            try:
                readable = _readable(data)
            except (_UnreadableError, TypeError, ValueError, RecursionError):
                pass
            else:
                return {"value": readable}
    return {"type": kind, "base64": base64.b64encode(data).decode("ascii")}


def unpack(serde: SerializerProtocol, kept: Kept) -> Any:
    """The value that was packed.

    Raises:
        ContentError: somebody changed it into what is none; or this serializer, with this key, cannot read it.
    """
    if "value" in kept:
        try:
            kind, data = _MSGPACK, _packed(kept["value"])
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise ContentError(f"not a value of a graph: {error}", hint="bring the file back from git") from error
    else:
        kind, data = kept.get("type", ""), _bytes_of(kept)
    try:
        return serde.loads_typed((kind, data))
    except (ValueError, TypeError, NotImplementedError, RecursionError) as error:
        hint = "read it with the serializer and the key that wrote it, or bring the file back from git"
        raise ContentError(f"the serializer cannot read the value: {error}", hint=hint) from error


def _bytes_of(kept: Kept) -> bytes:
    try:
        return base64.b64decode(kept["base64"], validate=True)
    except (KeyError, TypeError, ValueError) as error:
        raise ContentError("neither a value nor bytes", hint="bring the file back from git") from error


def types_in(kept: Kept) -> set[tuple[str, str]]:
    """The classes, by module and name, that a value would bring to life when it is unpacked.

    Raises:
        ContentError: somebody changed it into what is no value.
    """
    found: set[tuple[str, str]] = set()
    if "value" in kept:
        _types_in_readable(kept["value"], found)
    elif kept.get("type") == _MSGPACK:
        with suppress(ormsgpack.MsgpackDecodeError):  # whoever unpacks it says so
            _types_in_bytes(_bytes_of(kept), found)
    return found


def _types_in_readable(value: Any, found: set[tuple[str, str]]) -> None:
    if isinstance(value, list):
        for part in value:
            _types_in_readable(part, found)
    elif isinstance(value, dict):
        if _EXT in value:
            _note_type(value[_EXT], value.get(_OF), found)
            if _BYTES in value:  # never written where it could be read
                with suppress(ormsgpack.MsgpackDecodeError, TypeError, ValueError):
                    _types_in_bytes(_packed({_EXT: value[_EXT], _BYTES: value[_BYTES]}), found)
        for part in value.values():
            _types_in_readable(part, found)


def _types_in_bytes(data: bytes, found: set[tuple[str, str]]) -> None:
    def hook(tag: int, inner: bytes) -> None:
        with suppress(ormsgpack.MsgpackDecodeError):
            _note_type(tag, ormsgpack.unpackb(inner, ext_hook=hook, option=_OPTION), found)

    ormsgpack.unpackb(data, ext_hook=hook, option=_OPTION)


def _note_type(tag: Any, made_of: Any, found: set[tuple[str, str]]) -> None:
    """Note the class of an object: such a one is made of a module, a name, and the rest."""
    if tag in _OF_A_CLASS and isinstance(made_of, list) and len(made_of) > len(("module", "name")):
        module, name = made_of[:2]
        if isinstance(module, str) and isinstance(name, str):
            found.add((module, name))


# -- MessagePack as JSON ------------------------------------------------------------------------------------------
class _Object(NamedTuple):
    """What MessagePack leaves to the framework: a number that says how it is made, and of what."""

    tag: int
    data: bytes


class _UnreadableError(Exception):
    """JSON cannot hold the value so that the same bytes come back."""


def _readable(data: bytes) -> Any:
    readable = _marked(_unpacked(data), 0)
    if any(True for _ in hidden({"value": readable})) or _packed(readable) != data:
        raise _UnreadableError
    return readable


def _unpacked(data: bytes) -> Any:
    return ormsgpack.unpackb(data, ext_hook=_Object, option=_OPTION)


def _marked(value: Any, depth: int) -> Any:
    """A value of MessagePack as one of JSON."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return value if value <= MAX_INT else {_FLOAT: str(value)}
    if isinstance(value, float):
        return value if math.isfinite(value) else {_FLOAT: repr(value)}
    if depth > _WIDTH:
        raise _UnreadableError
    if isinstance(value, bytes):
        return {_BYTES: base64.b64encode(value).decode("ascii")}
    if isinstance(value, _Object):
        return _marked_object(value, depth)
    if isinstance(value, (list, tuple)):  # a tuple is part of a key
        return [_marked(part, depth + 1) for part in value]
    if isinstance(value, dict):
        return _marked_mapping(value, depth)
    raise _UnreadableError


def _marked_mapping(value: Mapping[Any, Any], depth: int) -> Any:
    if all(isinstance(key, str) and 0 < len(key) <= MAX_KEY and not key.startswith("$") for key in value):
        return {key: _marked(part, depth + 1) for key, part in value.items()}
    return {_PAIRS: [[_marked(key, depth + 3), _marked(part, depth + 3)] for key, part in value.items()]}


def _marked_object(value: _Object, depth: int) -> Any:
    """An object, with what it is made of; where that is no MessagePack, with its bytes."""
    try:
        inner = _unpacked(value.data)
    except ormsgpack.MsgpackDecodeError:
        return {_EXT: value.tag, _BYTES: base64.b64encode(value.data).decode("ascii")}
    return {_EXT: value.tag, _OF: _marked(inner, depth + 1)}


def _packed(readable: Any) -> bytes:
    """The bytes that a readable value stands for."""
    return ormsgpack.packb(_unmarked(readable), option=_OPTION)


def _unmarked(value: Any) -> Any:
    if isinstance(value, list):
        return [_unmarked(part) for part in value]
    if not isinstance(value, dict):
        return value
    if _EXT in value:
        inner = _packed(value[_OF]) if _OF in value else base64.b64decode(value[_BYTES], validate=True)
        return ormsgpack.Ext(value[_EXT], inner)
    if _BYTES in value:
        return base64.b64decode(value[_BYTES], validate=True)
    if _PAIRS in value:
        return {_hashable(_unmarked(key)): _unmarked(part) for key, part in value[_PAIRS]}
    if _FLOAT in value:
        return _number(value[_FLOAT])
    return {key: _unmarked(part) for key, part in value.items()}


def _hashable(key: Any) -> Any:
    return tuple(_hashable(part) for part in key) if isinstance(key, list) else key


def _number(text: str) -> int | float:
    return int(text) if str(text).isdecimal() else float(text)

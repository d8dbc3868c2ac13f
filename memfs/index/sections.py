"""Sections: one file of named byte strings, and the compact forms of lists inside them.

Owns the container only. Nothing in it can run code when read, unlike a pickle. Numbers are in the machine's own byte
order; whoever keeps such a file notes that order beside it.
"""

from __future__ import annotations

import json
import zlib
from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from memfs.errors import IndexUnavailable

_MAGIC = b"memfs-sections-1\n"
_PLAIN = 4096
_SEPARATOR = "\0"


def pack(sections: Mapping[str, bytes]) -> bytes:
    """One byte string that holds all sections by name."""
    head = json.dumps({name: len(data) for name, data in sections.items()}).encode()
    return b"".join((_MAGIC, str(len(head)).encode(), b"\n", head, *sections.values()))


def unpack(data: bytes) -> dict[str, memoryview]:
    """The sections of a packed byte string.

    Raises:
        IndexUnavailable: it is none, or is cut short.
    """
    try:
        if not data.startswith(_MAGIC):
            raise ValueError("unknown form")
        start = data.index(b"\n", len(_MAGIC)) + 1
        place = start + int(data[len(_MAGIC) : start])
        lengths = json.loads(data[start:place])
        found = {}
        for name, length in lengths.items():
            found[name] = memoryview(data)[place : place + length]
            place += length
        if place != len(data):
            raise ValueError(f"{len(data)} bytes instead of {place}")
    except (ValueError, AttributeError, TypeError) as error:
        raise IndexUnavailable(
            f"an index file cannot be read: {error}", hint="it is made anew from the files"
        ) from error
    return found


def pack_texts(texts: Sequence[str]) -> bytes:
    """Texts without NUL characters, such as paths and ids, compressed where there are many."""
    plain = _SEPARATOR.join(texts).encode("utf-8", "surrogatepass")
    if len(plain) < _PLAIN:
        return b"p" + plain if texts else b""
    return b"z" + zlib.compress(plain, 1)


def unpack_texts(data: memoryview) -> list[str]:
    """The texts again."""
    if not data:
        return []
    plain = zlib.decompress(data[1:]) if data[0] == ord("z") else bytes(data[1:])
    return plain.decode("utf-8", "surrogatepass").split(_SEPARATOR)


def pack_json(value: Any) -> bytes:
    """A value of JSON's types; anything else in it becomes text."""
    return json.dumps(value, ensure_ascii=True, default=str).encode()


def unpack_json(data: memoryview) -> Any:
    """The value again."""
    return json.loads(bytes(data))


def pack_numbers(code: str, numbers: Iterable[int] | Iterable[float]) -> bytes:
    """Numbers of one ``array`` type code."""
    return array(code, numbers).tobytes()


def unpack_numbers(code: str, data: memoryview) -> array[Any]:
    """The numbers again."""
    numbers: array[Any] = array(code)
    numbers.frombytes(data)
    return numbers

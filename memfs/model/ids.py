"""Checks and makes item ids.

An accepted id is a file name that is safe on every file system. An id of a mounted workspace carries the mount's name.
"""

from __future__ import annotations

import os
import re
import unicodedata

from memfs.errors import IdInvalid
from memfs.startup import regex, sha256

_SHAPE = regex(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,118}[A-Za-z0-9])?")
_DEVICES = frozenset(
    {"con", "prn", "aux", "nul", "conin$", "conout$"}
    | {f"com{digit}" for digit in range(10)}
    | {f"lpt{digit}" for digit in range(10)}
)
_SUFFIX_ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"
_SLUG_LENGTH = 48
_SPELT_OUT = str.maketrans({"ß": "ss", "æ": "ae", "Æ": "ae", "œ": "oe", "ø": "o", "Ø": "o", "ł": "l"})
"""Letters that no decomposition makes ASCII."""


def check_id(text: str) -> str:
    """Return the id unchanged if it is a safe file name everywhere.

    Raises:
        IdInvalid: naming what is wrong.
    """
    if not isinstance(text, str) or not _SHAPE.fullmatch(text):
        raise IdInvalid(
            f"{_shown(text)} cannot be an id",
            hint="use letters a-z, digits, '.', '_' and '-', at most 120, beginning and ending with a letter or digit",
        )
    if ".." in text:
        raise IdInvalid(f"{_shown(text)} cannot be an id: it holds '..'", hint="use single dots only")
    lowered = text.lower()
    if lowered.split(".")[0] in _DEVICES:
        raise IdInvalid(f"{_shown(text)} cannot be an id: it is a Windows device name", hint="choose another name")
    if lowered.endswith((".lock", ".tmp")):
        raise IdInvalid(f"{_shown(text)} cannot be an id: it ends like a lock or temporary file", hint="choose another")
    return text


def stable_id(words: str, *parts: str, otherwise: str) -> str:
    """An id that people can say and that follows from what is said: the same for the same.

    Args:
        words: what it begins with; ``otherwise`` where none of them can be in an id.
    """
    digest = sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
    return f"{slug(words) or otherwise}-{digest[:8]}"


def is_id(text: str) -> bool:
    """Whether ``check_id`` would accept the text."""
    try:
        check_id(text)
    except IdInvalid:
        return False
    return True


def stem_of(path: str) -> str:
    """A file's name without folder and suffix: the id of the item in it."""
    return path.rpartition("/")[2].rpartition(".")[0]


def in_mount(name: str, text: str) -> str:
    """What an id or path of a mounted workspace is called here: after the mount's name. No id holds a ":" itself."""
    return f"{name}:{text}"


def of_mount(text: str) -> str:
    """The name of the mounted workspace that an id or path is of; "" for one of the workspace's own."""
    name, colon, _ = text.partition(":")
    return name if colon and "/" not in name else ""


def without_mount(text: str) -> str:
    """An id or path as the mounted workspace itself has it."""
    return text.partition(":")[2]


def slug(text: str) -> str:
    """The first words of a text as lower-case ASCII joined by hyphens, at most 48 characters; "" if none remain."""
    plain = unicodedata.normalize("NFKD", text[:400].translate(_SPELT_OUT)).encode("ascii", "ignore").decode().lower()
    words = re.findall(r"[a-z0-9]+", plain.replace("'", ""))  # "don't" is one word
    chosen = ""
    for word in words:
        longer = f"{chosen}-{word}" if chosen else word[:_SLUG_LENGTH]
        if len(longer) > _SLUG_LENGTH:
            break
        chosen = longer
    return chosen


def suffix_of(data: bytes, length: int) -> str:
    """The end of an id that follows from bytes: the same for the same bytes, and hardly ever for others."""
    number, suffix = int.from_bytes(sha256(data).digest(), "big"), ""
    for _ in range(length):
        number, digit = divmod(number, len(_SUFFIX_ALPHABET))
        suffix += _SUFFIX_ALPHABET[digit]
    return suffix


def new_id(text: str) -> str:
    """A fresh id: a readable slug of the text and six random characters (about 30 bits)."""
    return f"{slug(text) or 'memory'}-{suffix_of(os.urandom(32), 6)}"


def _shown(text: object) -> str:
    written = repr(text)
    return written if len(written) <= 60 else written[:57] + "..."

"""Matches paths against globs as people write them for the scope of a convention or the files of a rule.

The time a match takes grows only with the lengths of path and glob, whatever the pattern.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

_LONGEST_GLOB = 300
_LONGEST_PATH = 4096
_FOLDERS = "**"
_PIECE = re.compile(r"\*+|\?|\[[!^]?[^\]]+\]|.", re.DOTALL)
_RANGE = re.compile(r"(.)(?:-(.))?", re.DOTALL)
_SIGNS = re.compile(r"[*?]|\[[^\]/]*\]")

Part = str | re.Pattern[str]
"""What one name of a path must be; ``**`` for any number of folders."""


def fits(glob: str, path: str, *, anywhere: bool = False) -> bool:
    """Whether a glob means a file.

    ``*`` and ``?`` stay within one name, ``**`` stands for folders, ``[ab]`` is one of several characters, or what is
    written, since files are named so, too. A glob without ``/`` means a name in any folder; one that names a folder
    means all below it. An absolute path is meant by its end. What it takes grows with both lengths alone, whatever the
    glob.

    Args:
        anywhere: whether the glob may begin in any folder, and not at the top alone.
    """
    parts = _parts(glob)
    whole = plain(path)
    if not parts or len(whole) > _LONGEST_PATH:
        return False
    begins = anywhere or whole.startswith("/") or len(parts) == 1
    return _match((_FOLDERS, *parts) if begins else parts, whole.split("/"))


def is_wild(glob: str) -> bool:
    """Whether a glob has a wildcard; brackets are none, as files are named with them."""
    return "*" in glob or "?" in glob


def telling(glob: str) -> str:
    """The longest piece of a glob that is in every path it means."""
    return max(_SIGNS.split(plain(glob.strip())), key=len).strip("/")


def plain(path: str) -> str:
    """A path without the ``./`` before it."""
    while path.startswith("./"):
        path = path[2:]
    return path


@lru_cache(maxsize=2048)
def _parts(glob: str) -> tuple[Part, ...]:
    """What a glob asks of a path, name by name; () for one that means nothing."""
    written = plain(glob.strip()).strip("/")
    if not written or len(written) > _LONGEST_GLOB:
        return ()
    return tuple(_part(name) for name in written.split("/"))


def _part(name: str) -> Part:
    """Stars are tried from left to right and never again: what is between two of them has one length."""
    if name == _FOLDERS or not (is_wild(name) or "[" in name):
        return name
    runs = [""]
    for piece in _PIECE.findall(name):
        if piece[0] == "*":
            runs.append("")
        else:
            runs[-1] += _one(piece)
    found = runs[0]
    if len(runs) > 1:
        found += "".join(f"(?>.*?{run})" for run in runs[1:-1]) + f".*{runs[-1]}"
    return re.compile(f"(?:{found})|{re.escape(name)}", re.DOTALL)


def _one(piece: str) -> str:
    """What takes one character."""
    if piece == "?":
        return "."
    if len(piece) == 1:
        return re.escape(piece)
    denied = piece[1] in "!^"
    ranges = [(low, high or low) for low, high in _RANGE.findall(piece[2 if denied else 1 : -1])]
    letters = "".join(f"{re.escape(low)}-{re.escape(high)}" for low, high in ranges if low <= high)
    return f"[{'^' if denied else ''}{letters}]" if letters else "." if denied else "(?!)"


def _match(parts: Sequence[Part], names: Sequence[str]) -> bool:
    """Whether the parts take a whole path, or the beginning of it that is a folder: how far they can take it."""
    reached = {0}
    for at, part in enumerate(parts):
        if part == _FOLDERS:
            least = min(reached) + (at == len(parts) - 1)
            reached = set(range(least, len(names) + 1))
        else:
            reached = {place + 1 for place in reached if place < len(names) and _takes(part, names[place])}
        if not reached:
            return False
    return any(reached)


def _takes(part: Part, name: str) -> bool:
    return part == name if isinstance(part, str) else part.fullmatch(name) is not None

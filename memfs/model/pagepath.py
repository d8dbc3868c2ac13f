"""Page paths: the paths under which pages are kept, and the ids that follow from them.

Owns what such a path may look like, and which item a page is by its path alone. Nothing here touches a disk: these are
names in a tree of their own, never files of the operating system.
"""

from __future__ import annotations

import re

from memfs.errors import IdInvalid, PathEscape
from memfs.model.ids import slug, suffix_of
from memfs.model.item import MemoryItem

PAGE = "note"
"""The kind of an item that is a page."""
MOST = 300
"""The most characters of a path: it is the page's title."""
_LONGEST_NAME = 255
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def clean(path: str) -> str:
    """A path in its one spelling: no empty parts, no ``.`` and ``..``, no slash at its ends; "" for the root.

    Raises:
        PathEscape: it leads above the root.
        IdInvalid: it is too long, or holds a character that cannot be seen.
    """
    found: list[str] = []
    for part in path.split("/"):
        if part == "..":
            if not found:
                raise PathEscape(f"{ascii(path)[:80]} leads above the root", hint="name a path below it")
            found.pop()
        elif part not in ("", "."):
            found.append(part)
    tidy = "/".join(found)
    if _CONTROLS.search(tidy):
        raise IdInvalid(f"{ascii(tidy)[:80]} holds a control character", hint="use letters, digits and ordinary signs")
    if len(tidy) > MOST or any(len(part.encode()) > _LONGEST_NAME for part in found):
        hint = f"use at most {MOST} characters, and {_LONGEST_NAME} bytes a name"
        raise IdInvalid(f"a path of {len(tidy)} characters is too long", hint=hint)
    return tidy


def page_id(path: str, turn: int = 0) -> str:
    """The id of the page at a clean path: readable, and one for each spelling, upper and lower case included.

    Args:
        turn: for another id where that one is taken by a page that was given another path since.
    """
    stem = f"{slug(path) or 'page'}-{suffix_of(path.encode(), 12)}"
    return f"{stem}-{turn + 1}" if turn else stem


def path_of(item: MemoryItem) -> str:
    """The path of a page: its title, where that is one in its one spelling, or else its id."""
    try:
        return item.title if item.title and clean(item.title) == item.title else item.id
    except (PathEscape, IdInvalid):
        return item.id

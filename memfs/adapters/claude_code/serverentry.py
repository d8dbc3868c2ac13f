"""Server entry: memfs's MCP server in the text of a file that names servers.

Owns that one entry, and that the result differs from what was there in it alone: that is compared before anything is
written. Works on texts; where they lie it does not know.
"""

from __future__ import annotations

from typing import Any

from memfs.adapters.claude_code import handlers, jsonsplice
from memfs.errors import Conflict, ContentError
from memfs.files import jsontext, nodes

SERVERS = "mcpServers"
_NAME = handlers.COMMAND


def with_server(text: str | None, wanted: dict[str, Any], key: str = SERVERS) -> str:
    """The text with memfs's server.

    Args:
        text: None where there is no file.
        wanted: the entry, such as ``handlers.server`` gives.
        key: below which the program's file names its servers.

    Raises:
        Conflict: a server of that name is somebody else's.
        ContentError: it is no JSON, or not of the program's shape, with line and remedy.
    """
    if text is None:
        return jsonsplice.made(key, {_NAME: wanted})
    there = jsonsplice.below(text, key).get(_NAME)
    if there == wanted:
        return text
    if there is not None and not handlers.is_our_server(there):
        error = Conflict(f"a server named {_NAME} is there already", hint="give it another name")
        error.line = nodes.place(jsontext.tree(text), text, (key, _NAME), of_key=True).line
        raise error
    if key in jsonsplice.said(text):
        after = jsonsplice.put(text, (key, _NAME), wanted)
    else:
        after = jsonsplice.put(text, (key,), {_NAME: wanted})
    _compare(text, after, wanted, key)
    return after


def without_server(text: str | None, key: str = SERVERS) -> str | None:
    """The text without memfs's server; None where the file was made for it, or there is none.

    Raises:
        ContentError: as ``with_server``.
    """
    if text is None or not handlers.is_our_server(jsonsplice.below(text, key).get(_NAME)):
        return text
    after = jsonsplice.take(text, (key, _NAME))
    _compare(text, after, None, key)
    return after


def _compare(before: str, after: str | None, wanted: dict[str, Any] | None, key: str) -> None:
    """Prove that two texts differ in memfs's server alone, and that the second has the one that is wanted.

    Raises:
        ContentError: they do not; nothing may be written.
    """
    first, second = (_parted(text, key) for text in (before, after))
    first[1].pop(_NAME, None)
    if second[1].pop(_NAME, None) != wanted or first != second:
        raise ContentError("memfs cannot change this file safely", hint="write or remove its server by hand")


def _parted(text: str | None, key: str) -> tuple[list[Any], dict[str, Any]]:
    """What a file says besides its servers, in its order, and the servers."""
    all_of_it = jsonsplice.said(text)
    servers = all_of_it.pop(key, {})
    return list(all_of_it.items()), servers

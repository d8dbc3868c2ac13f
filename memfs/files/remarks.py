"""What is accepted in a file but worth a look: byte order mark, CRLF, unseen characters, numbers that may be names.

Owns these warnings and their words. Must not know items, schemas or how files are written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memfs.files import yamltext
from memfs.files.decoding import Text, position
from memfs.files.nodes import Node
from memfs.files.textguard import findings
from memfs.model.problem import WARNING, Problem

_MAX_UNSEEN = 20
_ENDS_IN_ZERO = re.compile(r"\.[0-9]*0(?![0-9])")
_FREE = frozenset({"context", "metadata", "data"})


def remarks(text: Text, path: str) -> list[Problem]:
    """The warnings for a file that was read without error (faults rows 6, 10 and 17)."""
    found = [*_layout(text, path), *_unseen(text.text, path)]
    if not path.endswith(".json") and _ENDS_IN_ZERO.search(text.text):
        found.extend(_perhaps_names(text.text, path))
    return found


def _layout(text: Text, path: str) -> Iterator[Problem]:
    if text.bom:
        yield _warning(path, "ByteOrderMark", "the file begins with a byte order mark", 1, "save without it")
    if text.crlf:
        line = text.text.count("\n", 0, text.text.index("\r\n")) + 1
        yield _warning(path, "CarriageReturn", "lines end in CR LF", line, "save with Unix line endings")


def _unseen(text: str, path: str) -> Iterator[Problem]:
    for count, finding in enumerate(findings(text)):
        if count == _MAX_UNSEEN:
            return
        line, column = position(text, finding.offset)
        message = f"unseen character {finding.codes} at column {column}"
        yield _warning(path, "InvisibleCharacter", message, line, "remove it unless it is meant")


def _perhaps_names(text: str, path: str) -> Iterator[Problem]:
    """Fractions such as ``3.10``: what is read is 3.1, which a version is not."""
    for entry in yamltext.tree(text).entries:
        if entry.key not in _FREE:
            continue
        for node in _scalars(entry.value):
            typed = text[node.start : node.end]
            if isinstance(node.value, float) and _ENDS_IN_ZERO.search(typed) and not typed.endswith(".0"):
                hint = f'if it is a name or a version, quote it: "{typed}"'
                yield _warning(path, "NumberAmbiguous", f"{typed} is read as the number {node.value}", node.line, hint)


def _scalars(node: Node) -> Iterator[Node]:
    if node.kind == "scalar":
        yield node
    for part in (*node.items, *(entry.value for entry in node.entries)):
        yield from _scalars(part)


def _warning(path: str, code: str, message: str, line: int, hint: str) -> Problem:
    return Problem(path=path, code=code, message=message, line=line, hint=hint, severity=WARNING)

"""Differences between two states of files, as unified text that ``git apply`` takes.

Owns the wording of a patch. Text comes in as bytes; nothing is read, no filter and no external program runs.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping

from memfs.history.objects import FILE

_CONTEXT = 3
_SHORT = 7
_SNIFFED = 8000
_MOST_COMPARED = 4_000_000
_ABSENT = "0" * _SHORT
_ESCAPED = {"\t": "\\t", "\n": "\\n", '"': '\\"', "\\": "\\\\"}

Read = Callable[[str], bytes]


def differences(before: Mapping[str, str], after: Mapping[str, str], read: Read) -> str:
    """The patch from one state to another.

    Args:
        before, after: path to blob id.
        read: the content of a blob.
    """
    changed = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    return "".join(line for path in changed for line in _file(path, before.get(path), after.get(path), read))


def _file(path: str, old: str | None, new: str | None, read: Read) -> Iterator[str]:
    old_name, new_name = _quoted(f"a/{path}"), _quoted(f"b/{path}")
    yield f"diff --git {old_name} {new_name}\n"
    if old is None:
        yield f"new file mode {FILE}\n"
    elif new is None:
        yield f"deleted file mode {FILE}\n"
    yield f"index {old[:_SHORT] if old else _ABSENT}..{new[:_SHORT] if new else _ABSENT}\n"
    before, after = read(old) if old else b"", read(new) if new else b""
    if b"\0" in before[:_SNIFFED] or b"\0" in after[:_SNIFFED]:
        yield f"Binary files {old_name if old else '/dev/null'} and {new_name if new else '/dev/null'} differ\n"
        return
    if before != after:
        yield f"--- {old_name if old else '/dev/null'}\n+++ {new_name if new else '/dev/null'}\n"
        yield from _hunks(_lines(before), _lines(after))


def _lines(data: bytes) -> list[str]:
    """Lines as git sees them: only a line feed ends one."""
    text = data.decode("utf-8", "replace")
    lines = [line + "\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _hunks(before: list[str], after: list[str]) -> Iterator[str]:
    for group in _groups(before, after):
        first, last = group[0], group[-1]
        yield f"@@ -{_span(first[1], last[2])} +{_span(first[3], last[4])} @@\n"
        for tag, old_from, old_to, new_from, new_to in group:
            if tag == "equal":
                yield from _marked(" ", before[old_from:old_to])
            else:
                yield from _marked("-", before[old_from:old_to])
                yield from _marked("+", after[new_from:new_to])


def _groups(before: list[str], after: list[str]) -> Iterator[list[tuple[str, int, int, int, int]]]:
    if len(before) * len(after) <= _MOST_COMPARED:
        yield from difflib.SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(_CONTEXT)
        return
    # Comparing every line with every other would take minutes: only what is equal at both ends is told apart.
    head = next((at for at, (one, two) in enumerate(zip(before, after, strict=False)) if one != two), 0)
    pairs = zip(reversed(before[head:]), reversed(after[head:]), strict=False)
    tail = next((at for at, (one, two) in enumerate(pairs) if one != two), min(len(before), len(after)) - head)
    start, old_end, new_end = max(0, head - _CONTEXT), len(before) - tail, len(after) - tail
    shown = min(tail, _CONTEXT)
    yield [
        ("equal", start, head, start, head),
        ("replace", head, old_end, head, new_end),
        ("equal", old_end, old_end + shown, new_end, new_end + shown),
    ]


def _span(start: int, end: int) -> str:
    length = end - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"


def _marked(mark: str, lines: list[str]) -> Iterator[str]:
    for line in lines:
        yield mark + line if line.endswith("\n") else f"{mark}{line}\n\\ No newline at end of file\n"


def _quoted(name: str) -> str:
    """A name in a patch's header, in C's quotes where it holds what would be misread."""
    if all(character.isprintable() and character not in _ESCAPED for character in name):
        return name
    return '"' + "".join(map(_escaped, name)) + '"'


def _escaped(character: str) -> str:
    if character in _ESCAPED:
        return _ESCAPED[character]
    if character.isprintable():
        return character
    return "".join(f"\\{byte:03o}" for byte in character.encode("utf-8", "surrogateescape"))

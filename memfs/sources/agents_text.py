"""Agents' text: conventions and preferences as Markdown for a file that agents read on their own.

Owns that nothing in an item can end the block, hide the rest of the file from a reader, open a code block that never
ends, fetch a picture, or have an agent read another file. Where the text goes, it does not know.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from memfs.files.textguard import shown
from memfs.pipeline.conventions import Convention
from memfs.pipeline.preferences import Preference
from memfs.pipeline.undecided import told

_LONGEST = 4_000
_MOST_EXAMPLES = 3
_LONGEST_EXAMPLE = 300
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_IMPORT = re.compile(r"(?<![\w\\])@(?=[\w~./\\])")
_HEADING = re.compile(r"(#{1,6}(?:\s|$)|=+\s*$|-+\s*$|\[[^\]]*\]:)")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})(.*)")
_BLOCK = re.compile(r"\s*(?:[-*+>]\s|\d{1,9}[.)]\s|`{3}|~{3}|\||$)")


def block_text(conventions: Sequence[Convention], preferences: Sequence[Preference] = ()) -> str:
    """What stands between the marks, ending with a newline; "" where there is nothing to say.

    The same for the same items, in whatever order they are given.
    """
    parts = []
    if conventions:
        listed = sorted(conventions, key=lambda one: (not one.item.pinned, -one.item.importance, one.id))
        parts.append("\n".join(["## Conventions", "", *(_convention(one) for one in listed)]))
    if preferences:
        wishes = sorted(preferences, key=lambda one: (-one.importance, one.id))
        parts.append("\n".join(["## User preferences", "", *(_bullet("", one.text, one.id) for one in wishes)]))
    return "\n\n".join(parts) + "\n" if parts else ""


def _convention(one: Convention) -> str:
    held = ", ".join(f"`{_in_code(glob)}`" for glob in one.scope)
    left = told(one.item)
    more = (f", for {held}" if held else "") + (f"; {_escaped(left)}" if left else "")
    bullet = _bullet(one.title, one.text, one.id, more)
    examples = [*_examples(one, "do", "Do"), *_examples(one, "dont", "Don't")]
    return "\n".join([bullet, *examples])


def _examples(one: Convention, key: str, word: str) -> Iterable[str]:
    written = one.item.data.get(key, ())
    for text in [text for text in written if isinstance(text, str)][:_MOST_EXAMPLES]:
        line = " ".join(text.split())
        yield f"  - {word}: `{_in_code(line[:_LONGEST_EXAMPLE])}`"


def _bullet(title: str, text: str, name: str, more: str = "") -> str:
    """A list item, all of whose lines belong to it: title and text, then where it comes from."""
    title = " ".join(title.split())
    lines = _lines(text)
    bold = f"**{_escaped(title).replace('*', chr(92) + '*')}**" if title and title != " ".join(text.split()) else ""
    if bold and not _BLOCK.match(lines[0]):
        lines[0] = f"{bold}: {lines[0]}"
    elif bold:
        lines.insert(0, bold)
    elif _BLOCK.match(lines[0]):
        lines.insert(0, f"`{name}`:")
    first, *others = [*lines, f"(`{name}`{more})"]
    return "\n".join([f"- {first}", *(f"  {line}" if line else "" for line in others)])


# -- escaping -----------------------------------------------------------------------------------------------------
def _lines(text: str) -> list[str]:
    """The lines of a text, each safe by itself and together."""
    plain = text.replace("\r\n", "\n").replace("\r", "\n").strip()
    if len(plain) > _LONGEST:
        plain = plain[:_LONGEST].rstrip() + " …"
    lines = [line.rstrip() for line in plain.split("\n")]
    closed = _fences_close(lines)
    return [_line(line, closed) for line in lines]


def _line(line: str, fences_close: bool) -> str:
    if _FENCE.match(line):
        return _escaped(line) if fences_close else _behind(_escaped(line))
    found = _HEADING.match(line.lstrip())
    return _behind(_escaped(line)) if found else _escaped(line)


def _behind(line: str) -> str:
    """A line whose first sign means nothing, as a backslash stands before it."""
    space = line[: len(line) - len(line.lstrip())]
    return f"{space}\\{line.lstrip()}"


def _escaped(line: str) -> str:
    text = _TAG.sub("&lt;", line).replace("-->", "--&gt;").replace("![", "!\\[")
    return shown(_IMPORT.sub(r"\@", text))


def _in_code(text: str) -> str:
    """A text for between backticks, in which no escape is read."""
    line = shown(" ".join(text.split())).replace("`", "'")
    return line.replace("<!--", "<! --").replace("-->", "-- >")


def _fences_close(lines: Iterable[str]) -> bool:
    """Whether each code block that the lines open is closed by them, too."""
    opened = ""
    for line in lines:
        found = _FENCE.match(line)
        if found is None:
            continue
        marks, rest = found.groups()
        if not opened:
            opened = marks
        elif marks[0] == opened[0] and len(marks) >= len(opened) and not rest.strip():
            opened = ""
    return not opened

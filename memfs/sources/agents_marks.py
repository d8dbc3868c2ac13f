"""Agents' marks: a block between two marks in a file that somebody else writes, byte by byte.

Owns finding the block, putting it in, replacing it, and taking it out so that every other byte is as it was. Works on
bytes alone; which file they come from, and what the block says, it does not know.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from memfs.errors import Conflict, ContentError

_END = b"<!-- memfs:end -->"
_BEGIN = re.compile(
    rb"<!-- memfs:begin sha256=(?P<digest>[0-9a-f]{64}) added=(?P<added>[0-2])(?P<created> created)?"
    rb"(?P<preferences> preferences)? \|[^\r\n]*-->"
)
_NOTE = "written by 'memfs agents-md write'; edit the memories it comes from, not this block"
_ANY_MARK = re.compile(rb"(?:^|(?<=\A\xef\xbb\xbf))[ \t]*<!--[ \t]*memfs:(?:begin|end)\b[^\r\n]*", re.MULTILINE)
_BOM = b"\xef\xbb\xbf"
_OTHER_ENCODINGS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """The block in a file.

    Attributes:
        start, end: from where to where it reaches, marks and the last line's end included.
        body: what stands between the marks, with plain newlines.
        intact: whether it is as it was written.
        newline: how its lines end.
        added: how many line ends were put before it; ``created``: whether the file was made for it.
        preferences: whether it was written with preferences.
        line: where it begins, from 1.
    """

    start: int
    end: int
    body: str
    intact: bool
    newline: bytes = b"\n"
    added: int = 0
    created: bool = False
    preferences: bool = False
    line: int = 1


def find(data: bytes, name: str) -> Block | None:
    """The block in a file's bytes; None where there is none.

    Raises:
        ContentError: a mark is damaged, stands alone or twice, with its line; or the file is no text.
    """
    _refuse_other_encodings(data, name)
    marks = list(_ANY_MARK.finditer(data))
    if not marks:
        return None
    begins = [one for one in marks if _BEGIN.fullmatch(one[0].rstrip())]
    ends = [one for one in marks if one[0].rstrip() == _END]
    for one in marks:
        if one not in begins and one not in ends:
            raise _damaged(data, one.start(), name, "this mark of memfs's block is damaged")
    for found, word in ((begins, "first"), (ends, "last")):
        if len(found) > 1:
            raise _damaged(data, found[1].start(), name, f"the {word} mark of memfs's block stands here again")
    if not begins or not ends or ends[0].start() < begins[0].end():
        raise _damaged(data, marks[0].start(), name, "this mark of memfs's block has no counterpart")
    return _block(data, begins[0], ends[0])


def _block(data: bytes, begin: re.Match[bytes], end: re.Match[bytes]) -> Block:
    facts = _BEGIN.fullmatch(begin[0].rstrip())
    assert facts is not None  # it was looked for by this pattern
    inside = data[_line_end(data, begin.end()) : end.start()].replace(b"\r\n", b"\n")
    return Block(
        start=begin.start(),
        end=_line_end(data, end.end()),
        body=inside.decode("utf-8", "surrogateescape"),
        intact=_digest(inside) == facts["digest"],
        newline=b"\r\n" if data[: _line_end(data, begin.end())].endswith(b"\r\n") else b"\n",
        added=int(facts["added"]),
        created=facts["created"] is not None,
        preferences=facts["preferences"] is not None,
        line=_line_of(data, begin.start()),
    )


def placed(data: bytes | None, block: Block | None, body: str, preferences: bool) -> bytes:
    """A file's bytes with a block that says ``body``: in the place of the one that is there, else at the end.

    Args:
        data: the bytes now; None where there is no file.
        block: what ``find`` found in them.
    """
    before = data or b""
    newline = _newline(before)
    if block is not None:
        made = _written(body, newline, block.added, block.created, preferences)
        return before[: block.start] + made + before[block.end :]
    added = _missing_newlines(before)
    return before + newline * added + _written(body, newline, added, data is None, preferences)


def without(data: bytes, block: Block) -> bytes | None:
    """A file's bytes without the block; None where the file was made for it and holds nothing else."""
    before, after = data[: block.start], data[block.end :]
    ours = block.newline * block.added
    empty_line = before.replace(b"\r\n", b"\n").endswith(b"\n\n")  # else somebody took line ends away already
    if not after and empty_line and before.endswith(ours):
        before = before[: len(before) - len(ours)]
    rest = before + after
    return None if block.created and not rest else rest


def refuse_edited(block: Block, name: str) -> None:
    """Refuse to touch a block that somebody edited.

    Raises:
        Conflict: with the line at which it begins.
    """
    if not block.intact:
        error = Conflict(
            "somebody edited memfs's block",
            path=name,
            hint="move the edit into a convention or out of the block; or overwrite it on purpose (--force)",
        )
        error.line = block.line
        raise error


def _written(body: str, newline: bytes, added: int, created: bool, preferences: bool) -> bytes:
    inside = body.encode()
    marks = f"added={added}{' created' if created else ''}{' preferences' if preferences else ''}"
    begin = f"<!-- memfs:begin sha256={_digest(inside).decode()} {marks} | {_NOTE} -->\n".encode()
    return (begin + inside + _END + b"\n").replace(b"\n", newline)


def _digest(inside: bytes) -> bytes:
    return hashlib.sha256(inside).hexdigest().encode()


def _newline(data: bytes) -> bytes:
    """How most lines end."""
    return b"\r\n" if data.count(b"\r\n") * 2 > data.count(b"\n") else b"\n"


def _missing_newlines(data: bytes) -> int:
    """How many line ends are wanting before a block, so that an empty line precedes it."""
    text = data.removeprefix(_BOM).replace(b"\r\n", b"\n")
    if not text or text.endswith(b"\n\n"):
        return 0
    return 1 if text.endswith(b"\n") else 2


def _line_end(data: bytes, at: int) -> int:
    """Behind the end of the line in which a position is."""
    end = data.find(b"\n", at)
    return len(data) if end < 0 else end + 1


def _line_of(data: bytes, at: int) -> int:
    return data.count(b"\n", 0, at) + 1


def _damaged(data: bytes, at: int, name: str, message: str) -> ContentError:
    hint = "make it the two marks of one block again, or remove the block by hand"
    return ContentError(message, path=name, line=_line_of(data, at), hint=hint)


def _refuse_other_encodings(data: bytes, name: str) -> None:
    if data.startswith(_OTHER_ENCODINGS) or b"\0" in data:
        raise ContentError("this is no UTF-8 text", path=name, hint="save it as UTF-8")

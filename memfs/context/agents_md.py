"""Keep a block with the team's conventions in a file that agents read on their own (``AGENTS.md``, ``CLAUDE.md``).

Every byte outside the block stays as it is. A block that somebody edited is not replaced unless asked to, and a save
by somebody else at the same moment is not lost.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path

from memfs.dataclass import dataclass
from memfs.errors import Conflict, ContentError, PathEscape
from memfs.format.text import shown
from memfs.fs import atomic_replace
from memfs.fs.workspace_location import is_own, names_git
from memfs.learning.conventions import Convention, Conventions, vouched
from memfs.model.kinds import ACCEPTED
from memfs.recall.conflict_notes import unresolved_note
from memfs.store.parts import CONTENT

_END = b"<!-- memfs:end -->"
_BEGIN = re.compile(
    rb"<!-- memfs:begin sha256=(?P<digest>[0-9a-f]{64}) added=(?P<added>[0-2])(?P<created> created)?"
    rb" \|[^\r\n]*-->"
)
_NOTE = "written by 'memfs team agents-md write'; edit the memories it comes from, not this block"
_ANY_MARK = re.compile(rb"(?:^|(?<=\A\xef\xbb\xbf))[ \t]*<!--[ \t]*memfs:(?:begin|end)\b[^\r\n]*", re.MULTILINE)
_BOM = b"\xef\xbb\xbf"
_OTHER_ENCODINGS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundBlock:
    """The block in a file.

    Attributes:
        start, end: from where to where it reaches, marks and the last line's end included.
        body: the text between the marks, with plain newlines.
        intact: whether it is as it was written.
        newline: how its lines end.
        added: how many line ends were put before it; ``created``: whether the file was made for it.
        line: where it begins, from 1.
    """

    start: int
    end: int
    body: str
    intact: bool
    newline: bytes = b"\n"
    added: int = 0
    created: bool = False
    line: int = 1


def find(data: bytes, name: str) -> FoundBlock | None:
    """The block in a file's bytes; None where there is none.

    Raises:
        ContentError: a mark is damaged, lacks its other half or occurs twice, with its line; or the file is no text.
    """
    if data.startswith(_OTHER_ENCODINGS) or b"\0" in data:
        raise ContentError("this is not UTF-8 text", path=name, hint="save it as UTF-8")
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
            raise _damaged(data, found[1].start(), name, f"the {word} mark of memfs's block is here again")
    if not begins or not ends or ends[0].start() < begins[0].end():
        raise _damaged(data, marks[0].start(), name, "this mark of memfs's block has no counterpart")
    begin, end = begins[0], ends[0]
    facts = _BEGIN.fullmatch(begin[0].rstrip())
    assert facts is not None  # it was looked for by this pattern
    inside = data[_line_end(data, begin.end()) : end.start()].replace(b"\r\n", b"\n")
    return FoundBlock(
        start=begin.start(),
        end=_line_end(data, end.end()),
        body=inside.decode("utf-8", "surrogateescape"),
        intact=_digest(inside) == facts["digest"],
        newline=b"\r\n" if data[: _line_end(data, begin.end())].endswith(b"\r\n") else b"\n",
        added=int(facts["added"]),
        created=facts["created"] is not None,
        line=_line_of(data, begin.start()),
    )


def placed(data: bytes | None, block: FoundBlock | None, body: str) -> bytes:
    """A file's bytes with a block that says ``body``: in the place of the one that is there, else at the end.

    Args:
        data: the bytes now; None where there is no file.
        block: what ``find`` found in them.
    """
    before = data or b""
    newline = b"\r\n" if before.count(b"\r\n") * 2 > before.count(b"\n") else b"\n"  # as most lines end
    if block is not None:
        made = _written(body, newline, block.added, block.created)
        return before[: block.start] + made + before[block.end :]
    added = _missing_newlines(before)
    return before + newline * added + _written(body, newline, added, data is None)


def without(data: bytes, block: FoundBlock) -> bytes | None:
    """A file's bytes without the block; None where the file was made for it and holds nothing else."""
    before, after = data[: block.start], data[block.end :]
    ours = block.newline * block.added
    empty_line = before.replace(b"\r\n", b"\n").endswith(b"\n\n")  # else somebody took line ends away already
    if not after and empty_line and before.endswith(ours):
        before = before[: len(before) - len(ours)]
    rest = before + after
    return None if block.created and not rest else rest


def refuse_edited(block: FoundBlock, name: str) -> None:
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


def _written(body: str, newline: bytes, added: int, created: bool) -> bytes:
    inside = body.encode()
    marks = f"added={added}{' created' if created else ''}"
    begin = f"<!-- memfs:begin sha256={_digest(inside).decode()} {marks} | {_NOTE} -->\n".encode()
    return (begin + inside + _END + b"\n").replace(b"\n", newline)


def _digest(inside: bytes) -> bytes:
    return hashlib.sha256(inside).hexdigest().encode()


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


_LONGEST = 4_000
_MOST_EXAMPLES = 3
_LONGEST_EXAMPLE = 300
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_IMPORT = re.compile(r"(?<![\w\\])@(?=[\w~./\\])")
_HEADING = re.compile(r"(#{1,6}(?:\s|$)|=+\s*$|-+\s*$|\[[^\]]*\]:)")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})(.*)")
_BLOCK = re.compile(r"\s*(?:[-*+>]\s|\d{1,9}[.)]\s|`{3}|~{3}|\||$)")


def block_text(conventions: Sequence[Convention]) -> str:
    """The text between the marks, in the given order, ending with a newline; "" where there is nothing to say."""
    if not conventions:
        return ""
    return "\n".join(["## Conventions", "", *map(_convention, conventions)]) + "\n"


def _convention(one: Convention) -> str:
    """A list item, all of whose lines belong to it: title and text, where it comes from, and examples."""
    held = ", ".join(f"`{_in_code(glob)}`" for glob in one.scope)
    left = unresolved_note(one.item)
    more = (f", for {held}" if held else "") + (f"; {_escaped(left)}" if left else "")
    title, lines = " ".join(one.item.title.split()), _lines(one.text)
    titled = title and title != " ".join(one.text.split())
    bold = f"**{_escaped(title).replace('*', chr(92) + '*')}**" if titled else ""
    if bold and not _BLOCK.match(lines[0]):
        lines[0] = f"{bold}: {lines[0]}"
    elif bold:
        lines.insert(0, bold)
    elif _BLOCK.match(lines[0]):
        lines.insert(0, f"`{one.id}`:")
    first, *others = [*lines, f"(`{one.id}`{more})"]
    examples = [*_examples(one, "do", "Do"), *_examples(one, "dont", "Don't")]
    return "\n".join([f"- {first}", *(f"  {line}" if line else "" for line in others), *examples])


def _examples(one: Convention, key: str, word: str) -> Iterable[str]:
    written = one.item.data.get(key, ())
    for text in [text for text in written if isinstance(text, str)][:_MOST_EXAMPLES]:
        line = " ".join(text.split())
        yield f"  - {word}: `{_in_code(line[:_LONGEST_EXAMPLE])}`"


# -- escaping -----------------------------------------------------------------------------------------------------
def _lines(text: str) -> list[str]:
    """The lines of a text, each safe by itself and together."""
    plain = text.replace("\r\n", "\n").replace("\r", "\n").strip()
    if len(plain) > _LONGEST:
        plain = plain[:_LONGEST].rstrip() + " …"
    lines = [line.rstrip() for line in plain.split("\n")]
    closed = _fences_close(lines)
    found = []
    for line in lines:
        safe = _escaped(line)
        begins = not closed if _FENCE.match(line) else _HEADING.match(line.lstrip())
        if begins:  # something else than text: its first sign is to mean nothing
            safe = f"{safe[: len(safe) - len(safe.lstrip())]}\\{safe.lstrip()}"
        found.append(safe)
    return found


def _escaped(line: str) -> str:
    return shown(_IMPORT.sub(r"\@", _TAG.sub("&lt;", line).replace("-->", "--&gt;").replace("![", "!\\[")))


def _in_code(text: str) -> str:
    """A text for between backticks, in which no escape is read."""
    return shown(" ".join(text.split())).replace("`", "'").replace("<!--", "<! --").replace("-->", "-- >")


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


FILE = "AGENTS.md"


class BlockStatus(StrEnum):
    """How a file compares with what is agreed on."""

    CURRENT = "current"
    STALE = "stale"
    MISSING = "missing"
    EDITED = "edited"


class BlockResult(StrEnum):
    """What became of a file."""

    CREATED = "created"
    WRITTEN = "written"
    UPDATED = "updated"
    SAME = "same"
    REMOVED = "removed"
    DELETED = "deleted"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockCheck:
    """The state of a file: ``line`` is where its block begins, 0 for none; ``expected`` what it is to say."""

    path: Path
    status: BlockStatus
    expected: str
    line: int = 0


class AgentsBlock:
    """Keeps the block of one workspace."""

    def __init__(self, root: Path, top: Path, conventions: Conventions) -> None:
        """
        Args:
            root: the folder in which ``AGENTS.md`` is by default: the workspace, or the code's working tree.
            top: the top folder of the working tree around it; no file outside it is touched.
            conventions: where they are read.
        """
        self._root = Path(os.path.realpath(root))
        self._top = Path(os.path.realpath(top))
        self._conventions = conventions

    @property
    def folder(self) -> Path:
        """In which ``AGENTS.md`` is by default."""
        return self._root

    def beside(self, folder: Path) -> AgentsBlock:
        """The block in another folder, which is a working tree of the same repository, or is in it."""
        if folder == self._root:
            return self
        return AgentsBlock(folder, folder, self._conventions)

    # -- what it says ---------------------------------------------------------------------------------------------
    def text(self) -> str:
        """The text between the marks: what is agreed on and a person vouches for; "" for nothing."""
        return block_text(vouched(self._conventions.holding()))

    def left_out(self) -> list[Convention]:
        """What is agreed on and yet left out, as no one vouches for it."""
        held = self._conventions.holding(status=ACCEPTED)
        ids = {one.id for one in vouched(held)}
        return [one for one in held if one.id not in ids]

    # -- the file -------------------------------------------------------------------------------------------------
    def check(self, path: str | os.PathLike[str] | None = None) -> BlockCheck:
        """The state of a file. With nothing to say and no block, it is current.

        Args:
            path: the file; ``AGENTS.md`` in the workspace by default.

        Raises:
            ContentError: its marks are damaged. PathEscape, NotRegularFile: no block belongs there. StorageIO.
        """
        place = self._place(path)
        data = atomic_replace.read(place)
        return self._looked(place, find(data, place.name) if data is not None else None)

    def write(self, path: str | os.PathLike[str] | None = None, *, force: bool = False) -> BlockResult:
        """Put the block into a file, or bring it up to date; all other bytes stay as they are.

        With nothing to say, a block that is there goes. A link is followed where it stays within the repository. What
        somebody saves in the same moment is kept.

        Args:
            path: as for ``check``; ``AGENTS.md`` is made where there is none.
            force: overwrite a block that somebody edited.

        Raises:
            Conflict: somebody edited the block, or keeps saving the file.
            ContentError, PathEscape, NotRegularFile, StorageIO: nothing was changed.
        """

        def change(data: bytes | None, place: Path) -> tuple[bytes | None, BlockResult]:
            block = find(data, place.name) if data is not None else None
            looked = self._looked(place, block)
            if looked.status is BlockStatus.CURRENT:
                return data, BlockResult.SAME if block is not None else BlockResult.NOTHING
            if block is not None and not force:
                refuse_edited(block, place.name)
            if not looked.expected:
                return self._taken_out(data, block)
            changed = BlockResult.CREATED if data is None else BlockResult.WRITTEN
            return placed(data, block, looked.expected), BlockResult.UPDATED if block is not None else changed

        return atomic_replace.rewrite(lambda: self._place(path), change)

    def remove(self, path: str | os.PathLike[str] | None = None, *, force: bool = False) -> BlockResult:
        """Take the block out: every other byte is as it was before it came; a file made for it goes.

        Raises:
            Conflict, ContentError, PathEscape, NotRegularFile, StorageIO: as for ``write``.
        """

        def change(data: bytes | None, place: Path) -> tuple[bytes | None, BlockResult]:
            block = find(data, place.name) if data is not None else None
            if block is not None and not force:
                refuse_edited(block, place.name)
            return self._taken_out(data, block)

        return atomic_replace.rewrite(lambda: self._place(path), change)

    @staticmethod
    def _taken_out(data: bytes | None, block: FoundBlock | None) -> tuple[bytes | None, BlockResult]:
        if data is None or block is None:
            return data, BlockResult.NOTHING
        rest = without(data, block)
        return rest, BlockResult.DELETED if rest is None else BlockResult.REMOVED

    def _looked(self, place: Path, block: FoundBlock | None) -> BlockCheck:
        expected = self.text()
        if block is None:
            return BlockCheck(
                path=place, status=BlockStatus.MISSING if expected else BlockStatus.CURRENT, expected=expected
            )
        same = BlockStatus.CURRENT if block.body == expected else BlockStatus.STALE
        status = same if block.intact else BlockStatus.EDITED
        return BlockCheck(path=place, status=status, expected=expected, line=block.line)

    # -- places ---------------------------------------------------------------------------------------------------
    def _place(self, path: str | os.PathLike[str] | None) -> Path:
        """Where the file really is.

        Raises:
            PathEscape: outside the repository, among git's files or memfs's own.
        """
        named = self._root / FILE if path is None else Path(path)
        try:
            place = Path(os.path.realpath(named))
            below = place.relative_to(self._top).as_posix()
        except (ValueError, OSError):
            raise PathEscape("it is outside the repository", path=str(named), hint="name a file in it") from None
        inside = place.relative_to(self._root).as_posix() if place.is_relative_to(self._root) else ""
        if names_git(below) or is_own(inside) or CONTENT in place.relative_to(self._top).parts:
            raise PathEscape("this is not a file for agents to read", path=str(named), hint=f"name a file like {FILE}")
        return place

"""Commands: what Claude's memory tool is told of each command, word for word as the Anthropic SDK's own tool tells it.

Owns the words and the layout of answers and refusals. It needs no SDK, so that a client of its own making can use it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from memfs.errors import IdExists, ItemNotFound, MemfsError, PathEscape, SecretDetected
from memfs.facades.pages import Page, Pages
from memfs.files.textguard import shown_line

ROOT = "/memories"
MOST_LINES = 999_999
_WIDTH = len(str(MOST_LINES))
_MOST_NAMED = 1_000  # lines named in one refusal
_DEEPEST = 2
_FOLDER_BYTES = 4_096  # what a folder weighs on common file systems: there is none on disk
_CONTEXT = 2
_LONGEST_PATH = 4_096
_EDITED = "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"

_LEAVE_OUT = "leave it out, and say where it is kept instead; a person can allow it"  # it is a model that reads this

Result = TypeVar("Result")


class Refused(Exception):
    """A command that is not carried out; its text is for the model."""


class Commands:
    """The six commands, and ``clear``, over the pages of a workspace.

    Each returns the text for the model. Each raises ``Refused`` with the text that says why not; then nothing changed.
    """

    def __init__(self, pages: Pages) -> None:
        """``pages``: what lies under ``/memories``."""
        self._pages = pages

    def view(self, path: str, view_range: Sequence[int] | None = None) -> str:
        """The numbered lines of a file, or what lies in a folder, two levels deep."""
        inner = _inner(path)
        text = self._tried(path, lambda: self._pages.read(inner)) if inner else None
        if text is not None:
            left = self._tried(path, lambda: self._pages.undecided(inner))
            return _numbered(path, text, view_range) + (f"\n\nOf this file, {left}." if left else "")
        below = self._tried(path, lambda: self._pages.below(inner))
        if not below and inner:
            raise Refused(f"The path {path} does not exist. Please provide a valid path.")
        return _listing(path, inner, below)

    def create(self, path: str, file_text: str) -> str:
        """Make a file that is not there yet."""
        inner = _inner(path)
        if not inner:
            raise Refused(f"File {path} already exists")
        try:
            self._tried(path, lambda: self._pages.create(inner, file_text))
        except IdExists:
            raise Refused(f"File {path} already exists") from None
        return f"File created successfully at: {path}"

    def str_replace(self, path: str, old_str: str, new_str: str) -> str:
        """Replace the one place where a text stands."""
        made: list[str] = []

        def edit(text: str) -> str:
            made[:] = _replaced(path, text, old_str, new_str)
            return made[0]

        self._change(path, edit)
        return _EDITED + made[1]

    def insert(self, path: str, insert_line: int, insert_text: str) -> str:
        """Insert a text after so many lines."""
        self._change(path, lambda text: _inserted(text, insert_line, insert_text))
        return f"The file {path} has been edited."

    def delete(self, path: str) -> str:
        """Remove a file, or a folder and everything in it."""
        inner = _inner(path)
        if not inner:
            raise Refused(f"Cannot delete the {ROOT} directory itself")
        try:
            self._tried(path, lambda: self._pages.remove(inner))
        except ItemNotFound:
            raise Refused(f"The path {path} does not exist") from None
        return f"Successfully deleted {path}"

    def rename(self, old_path: str, new_path: str) -> str:
        """Move a file or a folder to where nothing is."""
        old, new = _inner(old_path), _inner(new_path)
        if not old:
            raise Refused(f"Cannot rename the {ROOT} directory itself")
        try:
            self._tried(new_path, lambda: self._pages.rename(old, new))
        except IdExists:
            raise Refused(f"The destination {new_path} already exists") from None
        except ItemNotFound:
            raise Refused(f"The path {old_path} does not exist") from None
        return f"Successfully renamed {old_path} to {new_path}"

    def clear(self) -> str:
        """Remove everything."""
        self._tried(ROOT, self._pages.clear)
        return "All memory cleared"

    def _change(self, path: str, edit: Callable[[str], str]) -> None:
        inner = _inner(path)
        try:
            if inner:
                self._tried(path, lambda: self._pages.change(inner, edit))
                return
        except ItemNotFound:
            if not self._tried(path, lambda: self._pages.is_folder(inner)):
                raise Refused(f"The path {path} does not exist. Please provide a valid path.") from None
        raise Refused(f"The path {path} is not a file.")

    @staticmethod
    def _tried(path: str, work: Callable[[], Result]) -> Result:
        """What work gives back. Its refusals become texts, but for those each command words by itself."""
        try:
            return work()
        except (IdExists, ItemNotFound):
            raise
        except PathEscape:
            raise Refused(_escape(path)) from None
        except MemfsError as error:
            hint = f" ({_LEAVE_OUT if isinstance(error, SecretDetected) else error.hint})" if error.hint else ""
            raise Refused(shown_line(f"{path}: {error.sentence}{hint}")) from error


# -- paths --------------------------------------------------------------------------------------------------------
def _inner(path: str) -> str:
    """What of a path follows ``/memories``; "" for that itself, in whatever spelling."""
    if len(path) > _LONGEST_PATH:
        raise Refused(f"Path {path[:60]}... of {len(path):,} characters is too long")
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        raise Refused(f"Path must start with {ROOT}, got: {path}")
    found: list[str] = []
    for part in path.split("/"):
        if part == "..":
            if not found:
                raise Refused(_escape(path))
            found.pop()
        elif part not in ("", "."):
            found.append(part)
    if found[:1] != [ROOT[1:]]:
        raise Refused(_escape(path))
    return "/".join(found[1:])


def _escape(path: str) -> str:
    return f"Path {path} would escape {ROOT} directory"


# -- files --------------------------------------------------------------------------------------------------------
def _numbered(path: str, text: str, view_range: Sequence[int] | None) -> str:
    lines = text.split("\n")
    if len(lines) > MOST_LINES:
        raise Refused(f"File {path} exceeds maximum line limit of {MOST_LINES:,} lines.")
    first = 0
    if view_range and len(view_range) == 2:
        first = max(1, view_range[0]) - 1
        lines = lines[first : len(lines) if view_range[1] == -1 else view_range[1]]
    return f"Here's the content of {path} with line numbers:\n" + _rows(lines, first + 1)


def _rows(lines: Sequence[str], first: int) -> str:
    return "\n".join(f"{number:>{_WIDTH}}\t{line}" for number, line in enumerate(lines, first))


def _replaced(path: str, text: str, old: str, new: str) -> tuple[str, str]:
    """The text with the one place replaced, and the lines around it."""
    places = _places(text, old)
    if not places:
        raise Refused(f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}.")
    if text.count(old) > 1:
        named = ", ".join(map(str, places[:_MOST_NAMED])) + (", ..." if len(places) > _MOST_NAMED else "")
        raise Refused(
            f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {named}. "
            "Please ensure it is unique"
        )
    changed = text.replace(old, new)
    lines = changed.split("\n")
    start = max(0, places[0] - 1 - _CONTEXT)
    return changed, _rows(lines[start : places[0] + _CONTEXT], start + 1)


def _places(text: str, wanted: str) -> list[int]:
    """The numbers of the lines in which a text begins, each place once, overlapping ones too; a few past the most."""
    found: list[int] = []
    line, seen, place = 1, 0, text.find(wanted)
    while place >= 0 and len(found) <= _MOST_NAMED:
        line += text.count("\n", seen, place)
        found.append(line)
        seen, place = place, text.find(wanted, place + 1)
    return found


def _inserted(text: str, after: int, inserted: str) -> str:
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    if not 0 <= after <= len(lines):
        raise Refused(f"Invalid `insert_line` parameter: {after}. It should be within the range [0, {len(lines)}].")
    lines.insert(after, inserted.rstrip("\n"))
    changed = "\n".join(lines)
    return changed if changed.endswith("\n") else changed + "\n"


# -- folders ------------------------------------------------------------------------------------------------------
def _listing(path: str, inner: str, pages: Sequence[Page]) -> str:
    """What lies in a folder, by name, without what is hidden."""
    sizes: dict[tuple[str, ...], int | None] = {}
    for page in pages:
        parts = tuple(page.path[len(inner) + 1 if inner else 0 :].split("/"))
        if any(part.startswith(".") for part in parts[:_DEEPEST]):
            shown = next(place for place, part in enumerate(parts) if part.startswith("."))
            parts = (*parts[:shown], "")
        for depth in range(1, min(len(parts) - 1, _DEEPEST) + 1):
            sizes.setdefault((*parts[:depth], ""), None)
        if len(parts) <= _DEEPEST and parts[-1]:
            sizes[parts] = page.size
    rows = [f"{_size(_FOLDER_BYTES)}\t{path}"]
    for parts, size in sorted(sizes.items()):
        rows.append(f"{_size(_FOLDER_BYTES if size is None else size)}\t{path}/{'/'.join(parts)}")
    head = f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items:"
    return "\n".join([head, *rows])


def _size(count: int) -> str:
    """A number of bytes as the SDK's tool writes it."""
    if not count:
        return "0B"
    step = min((count.bit_length() - 1) // 10, 3)
    weight = count / 1024**step
    return f"{int(weight)}{'BKMG'[step]}" if weight == int(weight) else f"{weight:.1f}{'BKMG'[step]}"

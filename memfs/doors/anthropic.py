"""Claude's memory tool, kept as files in git: what the Anthropic SDK's tool runner takes, synchronous and asynchronous.

What the model keeps under ``/memories`` are items of kind ``note`` whose titles are paths; a folder exists as long as a
page is below it. A command that cannot be carried out returns an error for the model, and a change never overwrites
what others wrote meanwhile. Needs ``pip install
'gitmemfs[anthropic]'``.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import cached_property, wraps
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from memfs.dataclass import dataclass
from memfs.errors import (
    Conflict,
    ExtraMissing,
    IdExists,
    IdInvalid,
    ItemNotFound,
    MemfsError,
    PathEscape,
    SecretDetected,
)
from memfs.facades.open_workspaces import Closable, SignedFacade
from memfs.format.secrets import reason_in
from memfs.format.text import shown_line
from memfs.model import MemoryItem, Origin, Trust
from memfs.model.ids import slug, suffix_of
from memfs.recall.conflict_notes import unresolved_note
from memfs.store.plan import signed_by
from memfs.store.reader import Extracts
from memfs.store.store import retry_on_conflict
from memfs.workspace import Workspace

try:
    from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
except ImportError as error:
    raise ExtraMissing.of("Claude's memory tool", "anthropic", ("anthropic",), error) from error

if TYPE_CHECKING:
    from anthropic.types.beta import BetaCacheControlEphemeralParam


ROOT = "/memories"
PAGE = "note"
"""The kind of an item that is a page."""
MOST = 300
"""The most characters of a path: it is the page's title."""
MOST_LINES = 999_999
_WIDTH = len(str(MOST_LINES))
_MOST_NAMED = 1_000  # lines named in one refusal
_DEEPEST = 2
_FOLDER_BYTES = 4_096  # what a folder weighs on common file systems: there is none on disk
_CONTEXT = 2
_LONGEST_PATH, _LONGEST_NAME = 4_096, 255
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_TRIES, _TURNS = 20, 10
_EDITED = "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"

_LEAVE_OUT = "leave it out, and say where it is kept instead; a person can allow it"  # it is a model that reads this

_SOURCE = "anthropic"
Result = TypeVar("Result")


def _command(method: Callable[..., str]) -> Callable[..., str]:
    """A command whose refusals are texts for the model."""

    @wraps(method)
    def run(self: MemfsMemoryTool, *command: Any) -> str:
        try:
            return method(self, *command)
        except MemfsError as error:
            path = next((getattr(command[0], name) for name in ("path", "new_path") if hasattr(command[0], name)), ROOT)
            hint = f" ({_LEAVE_OUT if isinstance(error, SecretDetected) else error.hint})" if error.hint else ""
            raise ToolError(shown_line(f"{path}: {error.sentence}{hint}")) from error

    return run


@dataclass(frozen=True, slots=True)
class Page:
    """A page as it is: its path, how many bytes its text has, and the item it is."""

    path: str
    size: int
    id: str


class MemfsMemoryTool(Closable, BetaAbstractMemoryTool):
    """Claude's memory tool over a workspace: what the model keeps under ``/memories`` are items of kind ``note``.

    They are versioned, found by every other way of asking, and those that people or other tools made are shown to the
    model. Answers and refusals are word for word those of the SDK's tool for a local folder. Each command raises
    ``ToolError`` with a text for the model where it cannot be carried out; then nothing changed. Threads and processes
    may share it.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        folder: str = "",
        agent: str = "",
        session: str = "",
        workspace: Workspace | None = None,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        """Choose the workspace, as every facade does.

        Args:
            path: a folder: the workspace there or above it, else one that is made there; None: the workspace at hand.
            folder: what the model sees as ``/memories``, so that several users or agents have one each; "" is all.
            agent, session: who writes, for the items' origin and the commits; without a name, the door's own.
            workspace: an open workspace to work in; it stays open.
            cache_control: as the SDK has it.

        Raises:
            WorkspaceNotFound: none is there, and none can be made.
            PathEscape, IdInvalid: ``folder`` is no path.
        """
        super().__init__(cache_control=cache_control)
        self._origin = Origin(agent=agent or _SOURCE, session=session, role="assistant", tool="memory")
        self._facade = SignedFacade(path, origin=self._origin, source=_SOURCE, workspace=workspace)
        self._folder = clean(folder)

    # -- commands -------------------------------------------------------------------------------------------------
    @_command
    def view(self, command: Any) -> str:
        """The numbered lines of a file, or what is in a folder, two levels deep."""
        lines = getattr(command, "view_range", None)
        if lines is not None and not (isinstance(lines, list) and all(type(line) is int for line in lines)):
            raise ToolError("Invalid `view_range` parameter: it should be a list of two line numbers.")
        path = _text(command, "path")
        whole = self._whole(path)
        item = self._find(whole)
        if item is not None:
            self._facade.served([item.id])
            numbered, first = item.content.split("\n"), 0
            if len(numbered) > MOST_LINES:
                raise ToolError(f"File {path} exceeds maximum line limit of {MOST_LINES:,} lines.")
            if lines and len(lines) == 2:
                first = max(1, lines[0]) - 1
                numbered = numbered[first : len(numbered) if lines[1] == -1 else lines[1]]
            left = unresolved_note(item)
            text = f"Here's the content of {path} with line numbers:\n" + _rows(numbered, first + 1)
            return text + (f"\n\nOf this file, {left}." if left else "")
        below = self._below(whole)
        if not below and whole != self._folder:
            raise ToolError(f"The path {path} does not exist. Please provide a valid path.")
        return _listing(path, whole, below)

    @_command
    def create(self, command: Any) -> str:
        """Make a file that is not there yet."""
        path, text = _text(command, "path"), _text(command, "file_text")
        whole = self._whole(path)
        if not self._is_taken(whole):
            self._refuse_below(whole)
            draft = self._signed(MemoryItem(text, PAGE, title=whole))
            for turn in range(_TURNS):
                with suppress(IdExists):  # another page was given another path since, or somebody was quicker
                    self._facade.write([(draft.replace(id=page_id(whole, turn)), "")], "", one=f"Write {whole}")
                    return f"File created successfully at: {path}"
                if self._find(whole) is not None:
                    break
        raise ToolError(f"File {path} already exists")

    @_command
    def str_replace(self, command: Any) -> str:
        """Replace the one place where a text occurs. What others write meanwhile is not lost."""
        path, old, new = _text(command, "path"), _text(command, "old_str"), _text(command, "new_str", "")
        shown = ""

        def edit(text: str) -> str:
            nonlocal shown
            changed, shown = _replaced(path, text, old, new)
            return changed

        self._change(path, edit)
        return _EDITED + shown

    @_command
    def insert(self, command: Any) -> str:
        """Insert a text after a number of lines. What others write meanwhile is not lost."""
        line: object = getattr(command, "insert_line", None)
        if type(line) is not int:
            raise ToolError("Invalid `insert_line` parameter: it should be a line number.")
        path, inserted = _text(command, "path"), _text(command, "insert_text")
        self._change(path, lambda text: _inserted(text, line, inserted))
        return f"The file {path} has been edited."

    @_command
    def delete(self, command: Any) -> str:
        """Remove a file, or a folder and everything in it, in one commit; git keeps it."""
        path = _text(command, "path")
        whole = self._whole(path)
        if whole == self._folder:
            raise ToolError(f"Cannot delete the {ROOT} directory itself")
        item = self._find(whole)
        found = [item.id] if item is not None else [page.id for page in self._below(whole)]
        with suppress(ItemNotFound):  # somebody was quicker
            if found:
                self._facade.write([(one, None) for one in found], f"Remove {whole}")
                return f"Successfully deleted {path}"
        raise ToolError(f"The path {path} does not exist")

    @_command
    def rename(self, command: Any) -> str:
        """Move a file or a folder to where nothing is, all or nothing and in one commit."""
        old, new = _text(command, "old_path"), _text(command, "new_path")
        source, target = self._whole(old), self._whole(new)
        if source == self._folder:
            raise ToolError(f"Cannot rename the {ROOT} directory itself")
        taken = ToolError(f"The destination {new} already exists")
        if self._is_taken(target):
            raise taken
        for _ in range(_TRIES):
            moves = self._moves(source, target)
            if not moves:
                raise ToolError(f"The path {old} does not exist")
            self._refuse_below(target, source)
            try:
                self._move(moves, f"Move {source} to {target}")
                return f"Successfully renamed {old} to {new}"
            except (Conflict, ItemNotFound):
                continue  # somebody changed one of them, or was quicker
            except IdExists:
                raise taken from None
        raise Conflict(f"{old!r} keeps changing", hint="try again")

    @_command
    def clear_all_memory(self, *_: Any) -> str:
        """Remove every file, in one commit; git keeps them. For the program: the model cannot ask for it."""
        where = f" below {self._folder}" if self._folder else ""
        self._facade.write([(page.id, None) for page in self._below(self._folder)], f"Remove all pages{where}")
        return "All memory cleared"

    def close(self) -> None:
        """End the session, which commits what waits for that, and the use of the workspace. May be repeated."""
        self._facade.finish()

    # -- pages ----------------------------------------------------------------------------------------------------
    @cached_property
    def _extracts(self) -> Extracts[Page]:
        store = self._facade.workspace.store
        return Extracts(store, lambda item: Page(path_of(item), len(item.content.encode()), item.id))

    def _listed(self) -> list[Page]:
        return self._extracts.every(self._facade.workspace.kinds.get(PAGE))

    def _below(self, whole: str) -> list[Page]:
        """The pages below a folder, by path; none where there is no such folder."""
        head = f"{whole}/" if whole else ""
        found = {page.path: page for page in self._listed() if page.path.startswith(head)}
        return [page for _, page in sorted(found.items())]

    def _whole(self, path: str) -> str:
        """A path of the model's, in whatever spelling, as it is in the workspace.

        Raises:
            ToolError: it is not below ``/memories``.
            IdInvalid: it is too long, or holds a character that cannot be seen.
        """
        if len(path) > _LONGEST_PATH:
            raise ToolError(f"Path {path[:60]}... of {len(path):,} characters is too long")
        if path != ROOT and not path.startswith(f"{ROOT}/"):
            raise ToolError(f"Path must start with {ROOT}, got: {path}")
        with suppress(PathEscape):
            root, _, inner = clean(path).partition("/")
            if root == ROOT[1:]:
                return clean(f"{self._folder}/{inner}")
        raise ToolError(f"Path {path} would escape {ROOT} directory")

    def _is_taken(self, whole: str) -> bool:
        """Whether a page or a folder is there; the root always is."""
        listed = [page.path for page in self._listed()]
        return whole == self._folder or whole in listed or any(one.startswith(f"{whole}/") for one in listed)

    def _refuse_below(self, whole: str, moving: str = "") -> None:
        """Refuse a path that leads through a page, or through what is to be moved there."""
        if moving and whole.startswith(f"{moving}/"):
            raise IdInvalid(f"{whole!r} is below {moving!r}", hint="choose another path")
        above = next((page.path for page in self._listed() if whole.startswith(f"{page.path}/")), None)
        if above is not None:
            raise IdInvalid(f"{above!r} is a page, not a folder", hint="choose another path")

    def _find(self, whole: str) -> MemoryItem | None:
        """The page at a path of the workspace: the one whose id follows from it, or else the first with its title."""
        if whole == self._folder:
            return None
        store = self._facade.workspace.store
        item = store.get(page_id(whole))
        if item is not None and item.type == PAGE and path_of(item) == whole:
            return item
        ids = sorted(page.id for page in self._listed() if page.path == whole)
        return store.get(ids[0]) if ids else None

    def _signed(self, item: MemoryItem) -> MemoryItem:
        return item.replace(origin=self._origin, trust=Trust.AGENT.value)

    def _change(self, path: str, edit: Callable[[str], str]) -> None:
        """Give a page the text that ``edit`` makes of the one it has, again where it was changed meanwhile."""
        whole = self._whole(path)

        def changed() -> None:
            item = self._find(whole)
            if item is None and (whole == self._folder or self._below(whole)):
                raise ToolError(f"The path {path} is not a file.")
            if item is None:
                raise ToolError(f"The path {path} does not exist. Please provide a valid path.")
            page = self._signed(item.replace(content=edit(item.content), title=whole))
            self._facade.write([(page, item.sha256)], "", one=f"Change {whole}")

        retry_on_conflict(changed, tries=_TRIES)

    def _moves(self, source: str, target: str) -> list[tuple[MemoryItem, str]]:
        """What is at or below a path, each with the path it is to have."""
        item = self._find(source)
        if item is not None:
            return [(item, target)]
        items = [self._facade.workspace.store.get(page.id) for page in self._below(source)]
        return [(one, target + path_of(one)[len(source) :]) for one in items if one is not None]

    def _move(self, moves: Sequence[tuple[MemoryItem, str]], message: str) -> None:
        with signed_by(self._origin), self._facade.workspace.store.batch(message, source=_SOURCE) as batch:
            for item, whole in moves:
                moved = item.replace(id=self._free_id(clean(whole), item.id), title=whole)
                if moved.id == item.id:
                    batch.put(moved, item.sha256)
                    continue
                batch.delete(item.id, item.sha256)
                known = {**item.metadata, "moved_from": item.id}
                moved = moved.replace(metadata=known, path="", sha256="")
                batch.put(moved, "", allow_secret=reason_in(item.metadata))

    def _free_id(self, whole: str, present: str) -> str:
        """The id for a page that moves to a path where no page is.

        Raises:
            IdExists: there is one now.
        """
        for one in (page_id(whole, turn) for turn in range(_TURNS)):
            item = self._facade.workspace.store.get(one)
            if item is None or one == present:
                return one
            if item.type == PAGE and path_of(item) == whole:
                break  # somebody made it meanwhile
        raise IdExists(f"there is something at {whole!r} already", hint="choose another path")


def _on_thread(command: Callable[..., Result]) -> Callable[..., Coroutine[Any, Any, Result]]:
    """A method of ``MemfsMemoryTool`` for an event loop, which runs on meanwhile."""

    @wraps(command)
    async def run(self: AsyncMemfsMemoryTool, *arguments: Any) -> Result:
        return await asyncio.to_thread(command, self._tool, *arguments)

    return run


class AsyncMemfsMemoryTool(BetaAsyncAbstractMemoryTool):
    """``MemfsMemoryTool`` for the SDK's asynchronous client: the work is done on a thread."""

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        cache_control: BetaCacheControlEphemeralParam | None = None,
        **chosen: Any,
    ) -> None:
        """As ``MemfsMemoryTool``."""
        super().__init__(cache_control=cache_control)
        self._tool = MemfsMemoryTool(path, **chosen)

    view = _on_thread(MemfsMemoryTool.view)
    create = _on_thread(MemfsMemoryTool.create)
    str_replace = _on_thread(MemfsMemoryTool.str_replace)
    insert = _on_thread(MemfsMemoryTool.insert)
    delete = _on_thread(MemfsMemoryTool.delete)
    rename = _on_thread(MemfsMemoryTool.rename)
    clear_all_memory = _on_thread(MemfsMemoryTool.clear_all_memory)
    close = _on_thread(MemfsMemoryTool.close)

    async def __aenter__(self) -> AsyncMemfsMemoryTool:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _text(command: Any, name: str, usual: str | None = None) -> str:
    """A parameter of a command: models leave some out, and the SDK checks none of them."""
    value = getattr(command, name, usual)
    if not isinstance(value, str):
        raise ToolError(f"Missing required parameter `{name}`: it should be text.")
    return value


# -- paths --------------------------------------------------------------------------------------------------------
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


# -- files --------------------------------------------------------------------------------------------------------
def _rows(lines: Sequence[str], first: int) -> str:
    return "\n".join(f"{number:>{_WIDTH}}\t{line}" for number, line in enumerate(lines, first))


def _replaced(path: str, text: str, old: str, new: str) -> tuple[str, str]:
    """The text with the one place replaced, and the lines around it."""
    found = islice(re.finditer(f"(?={re.escape(old)})", text), _MOST_NAMED + 1)  # overlapping ones, too
    places = [text.count("\n", 0, place.start()) + 1 for place in found]
    if not places:
        raise ToolError(f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}.")
    if text.count(old) > 1:
        named = ", ".join(map(str, places[:_MOST_NAMED])) + (", ..." if len(places) > _MOST_NAMED else "")
        raise ToolError(
            f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {named}. "
            "Please ensure it is unique"
        )
    changed = text.replace(old, new)
    lines = changed.split("\n")
    start = max(0, places[0] - 1 - _CONTEXT)
    return changed, _rows(lines[start : places[0] + _CONTEXT], start + 1)


def _inserted(text: str, after: int, inserted: str) -> str:
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    if not 0 <= after <= len(lines):
        raise ToolError(f"Invalid `insert_line` parameter: {after}. It should be within the range [0, {len(lines)}].")
    lines.insert(after, inserted.rstrip("\n"))
    changed = "\n".join(lines)
    return changed if changed.endswith("\n") else changed + "\n"


# -- folders ------------------------------------------------------------------------------------------------------
def _listing(path: str, whole: str, pages: Sequence[Page]) -> str:
    """What is in a folder, by name, without what is hidden."""
    sizes: dict[tuple[str, ...], int | None] = {}
    for page in pages:
        parts = tuple(page.path[len(whole) + 1 if whole else 0 :].split("/"))
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

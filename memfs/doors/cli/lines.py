"""Store the lines of a JSONL file, each an object with the fields of an item."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memfs.doors.cli.commit_report import SOURCE
from memfs.doors.cli.draft import Draft, decoded, mapping_of
from memfs.doors.cli.output import TEXT_ONLY, count, note, progress, write_error
from memfs.doors.cli.streams import read_input
from memfs.errors import ContentError, IdExists, MemfsError, StorageIO
from memfs.format.secrets import allowed
from memfs.model.ids import check_id, new_id
from memfs.model.time import utc_now

if TYPE_CHECKING:
    from memfs.model import MemoryItem
    from memfs.workspace import Workspace

_BATCH = 5000  # each batch is a commit that writes the whole month folder's tree again
_ERRORS_SHOWN = 20
_PAGES = (".md", ".markdown", ".mdc")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """What became of a file's lines: the items stored, in order, and why the other lines were refused."""

    items: list[MemoryItem]
    refused: list[MemfsError]


@dataclass(frozen=True, slots=True)
class StoredLine:
    """A line of a file that is a memory now.

    Attributes:
        item: the memory, of which these fields are told.
    """

    item: MemoryItem = field(metadata={"merge": "id path sha256"})


@dataclass(frozen=True, slots=True)
class RefusedLine:
    """A line of a file that was left out.

    Attributes:
        line: its number.
        code: which error it is.
        reason: what is wrong.
    """

    line: int | None
    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class StoredLines:
    """What became of the lines of a file.

    Attributes:
        items: what was stored, in order.
        refused: what was left out.
        file: the file.
    """

    items: tuple[StoredLine, ...]
    refused: tuple[RefusedLine, ...]
    file: str = field(metadata=TEXT_ONLY)

    @classmethod
    def of(cls, file: str, done: Lines) -> StoredLines:
        """What is told of it."""
        refused = (RefusedLine(error.line, error.code, error.message) for error in done.refused)
        return cls(tuple(map(StoredLine, done.items)), tuple(refused), file)


def import_lines(
    workspace: Workspace,
    file: str,
    wanted: Draft,
    *,
    replace: bool = False,
    allow_secret: str = "",
    dry_run: bool = False,
    skip_refused: bool = False,
) -> Lines:
    """Store every line of a file, in order.

    Args:
        allow_secret: why lines may hold what looks like a secret.
        dry_run: only check them.
        skip_refused: leave out the lines that are wrong; each is named on standard error.

    Raises:
        ContentError: some lines are wrong; each was named on standard error, and nothing was stored.
        StorageIO: the file cannot be read, or a batch could not be stored; batches before it are.
    """
    name = "standard input" if file == "-" else file
    if file.lower().endswith(_PAGES):
        hint = f"'memfs import {file}' keeps it as a memory, 'memfs remember - < {file}' its bare text"
        raise ContentError("--file takes one JSON object a line, and this is Markdown", path=file, hint=hint)
    items, refused = _checked(workspace, name, _lines(file, name), wanted, replace, allow_secret)
    if refused and not skip_refused:
        raise ContentError(
            f"{len(refused)} of {count(len(items) + len(refused), 'line')} cannot be imported; nothing was stored",
            hint="correct the lines named above, or leave them out with --skip-refused",
        )
    if dry_run:
        return Lines(items=items, refused=refused)
    stored: list[MemoryItem] = []
    expected = None if replace else ""
    with progress("Storing") as step:
        for start in range(0, len(items), _BATCH):
            chunk = items[start : start + _BATCH]
            message = f"Import {count(len(chunk), 'memory', 'memories')} from {os.path.basename(name)}"
            with workspace.store.batch(message, source=SOURCE) as batch:
                planned = [batch.put(item, expected, allow_secret=allow_secret) for item in chunk]
            stored += planned
            step(len(stored), len(items))
    return Lines(items=stored, refused=refused)


def _lines(file: str, name: str) -> Iterator[tuple[int, str]]:
    try:
        data = read_input() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise StorageIO(f"cannot be read: {error.strerror}", path=file, hint="name a JSONL file") from error
    for number, line in enumerate(decoded(data, name).split("\n"), 1):
        if line.strip():
            yield number, line


def _checked(
    workspace: Workspace, file: str, lines: Iterator[tuple[int, str]], wanted: Draft, replace: bool, allow_secret: str
) -> tuple[list[MemoryItem], list[MemfsError]]:
    items: list[MemoryItem] = []
    wrong: list[MemfsError] = []
    seen: dict[str, int] = {}
    with progress("Checking") as step:
        rows = list(lines)
        workspace.store.refresh()  # so that a taken id is known without looking again for each line
        for done, (number, line) in enumerate(rows, 1):
            try:
                item = _item(workspace, wanted.onto(mapping_of(line)))
                _check_new(workspace, item, number, seen, replace)
                items.append(allowed(item, allow_secret)[0])
            except MemfsError as error:
                for one in (error, *error.also):
                    one.path, one.line = file, number
                wrong.append(error)
                if len(wrong) <= _ERRORS_SHOWN:
                    write_error(error)
            step(done, len(rows))
    if len(wrong) > _ERRORS_SHOWN:
        note(f"and {count(len(wrong) - _ERRORS_SHOWN, 'more line')}")
    return items, wrong


def _item(workspace: Workspace, fields: Mapping[str, Any]) -> MemoryItem:
    own = dict(fields)
    kind = workspace.kinds.get(str(own.pop("type")))
    chosen = check_id(own.pop("id")) if "id" in own else new_id(str(own.get("title") or own.get("content") or ""))
    # read as the file it is about to become: one home for what a valid item is
    place = f"ContextMemory/{kind.folder}/{chosen}.json"
    data = json.dumps(own, ensure_ascii=False).encode("utf-8", "surrogatepass")
    item: MemoryItem = workspace.parts.codec.read(data, place, utc_now())
    kept = {"path": "", "sha256": ""}
    return item.replace(**kept) if "timestamp" in own else item.replace(**kept, timestamp=None)


def _check_new(workspace: Workspace, item: MemoryItem, number: int, seen: dict[str, int], replace: bool) -> None:
    folded = item.id.casefold()
    if folded in seen:
        raise IdExists(f"the id {item.id!r} stands in line {seen[folded]} already", hint="give each line its own id")
    seen[folded] = number
    if not replace and workspace.store.locate(item.id):
        raise IdExists(f"the id {item.id!r} is taken", hint="choose another, or change those items with --replace")

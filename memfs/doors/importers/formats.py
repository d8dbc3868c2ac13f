"""The stores that memories can be imported from, by name, and which of them a file is of."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from memfs.doors.importers import (
    STORES,
    agents_md,
    basic_memory,
    claude_code,
    markdown_notes,
    mcp_memory,
    mem0,
    source_files,
)
from memfs.errors import ContentError, MemfsError, StorageIO

_LOOKED_AT = 200
_PEEK = 1 << 16
_SUFFIXES = (".json", ".jsonl", ".ndjson")


_PAGES: dict[str, tuple[str, Callable[[Path], source_files.SourceContent]]] = {
    claude_code.NAME: ("a memory folder of Claude Code", claude_code.read),
    agents_md.NAME: ("AGENTS.md, CLAUDE.md, or a folder with them", agents_md.read),
    basic_memory.NAME: ("a folder of basic-memory notes", basic_memory.read),
}
"""Stores that keep pages, each with what to name on the command line, and what reads a file or folder."""
_RECORDS: dict[str, tuple[str, Callable[[str, str], source_files.SourceContent]]] = {
    mcp_memory.NAME: ("the reference MCP memory server's JSONL", mcp_memory.read),
    mem0.NAME: ("an export of mem0, JSON", mem0.read),
}
"""Stores that export records, and what reads one text with its name."""


def read(name: str, path: Path, data: bytes | None = None) -> source_files.SourceContent:
    """What a source of that format holds.

    Args:
        name: of the format.
        path: a file or folder; only its name counts where ``data`` is given.
        data: the bytes, where they do not come from a file.

    Raises:
        StorageIO, ContentError: it cannot be read, or is not what the format asks for.
    """
    if name in _RECORDS:
        wanted, from_text = _RECORDS[name]
        if data is None and path.is_dir():
            raise ContentError(f"{name} asks for a file", path=str(path), hint=f"name {wanted}")
        return from_text(source_files.decoded(source_files.named(path) if data is None else data, str(path)), path.name)
    wanted, from_path = _PAGES[name]
    if data is not None:
        raise ContentError(f"{name} cannot come from standard input", path=str(path), hint=f"name {wanted}")
    return from_path(path)


def detect(path: Path, data: bytes | None = None) -> str:
    """Which format a file or folder is of; "" where it is of none of these, as what memfs itself exports.

    Raises:
        ContentError: a folder whose format is unclear. StorageIO: it cannot be read.
    """
    if data is None and path.is_dir():
        return _of_folder(path)
    if data is None and path.suffix in (*markdown_notes.SUFFIXES, ".mdc"):
        return _of_page(path)
    if data is None and path.suffix not in _SUFFIXES:
        return ""
    return _of_records(data, path.name) if data is not None else _of_record_file(path)


def _of_record_file(path: Path) -> str:
    """The format of a file of records: most tell it by their first line; an export of ours may be very long."""
    try:
        with path.open("rb") as stream:
            first, size = stream.readline(_PEEK), stream.seek(0, os.SEEK_END)
    except OSError as error:
        raise StorageIO(f"cannot be read: {error.strerror}", path=str(path), hint="name a file") from error
    complete = first.endswith(b"\n") or len(first) == size
    found = _of_records(first, path.name) if complete else ""
    whole = not found and size <= source_files.LARGEST and not (complete and _is_json(first))
    return _of_records(source_files.named(path), path.name) if whole else found


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _of_records(data: bytes, name: str) -> str:
    try:
        _, first = next(iter(source_files.records(source_files.decoded(data, name), name)))
    except (MemfsError, StopIteration):
        return ""  # its reader says what is wrong
    if mcp_memory.is_record(first):
        return mcp_memory.NAME
    return mem0.NAME if mem0.is_record(first) else ""


def _of_page(path: Path) -> str:
    if agents_md.is_file_name(path.as_posix()):
        return agents_md.NAME
    try:
        return _of_pages([source_files.page(path)]) or markdown_notes.NAME
    except ContentError:
        return markdown_notes.NAME  # its reader says what is wrong


def _of_folder(path: Path) -> str:
    source_files.refuse_whole(path)
    if (path / claude_code.INDEX).is_file() or (path / "memory" / claude_code.INDEX).is_file():
        return claude_code.NAME
    instructions, projects = any(_names(path)), (path / "projects").is_dir()
    if instructions and projects:
        hint = f"say so: --from {', '.join(STORES)}"
        raise ContentError("it cannot be told what wrote this folder", path=str(path), hint=hint)
    if instructions or projects:
        return agents_md.NAME if instructions else claude_code.NAME
    taken = source_files.SourceContent()
    looked = []
    for one in source_files.pages(path, lambda name: name.endswith(markdown_notes.SUFFIXES), taken):
        looked.append(one)
        if len(looked) == _LOOKED_AT:
            break
    if not looked and not taken.skipped:
        raise ContentError("there is no Markdown file here", path=str(path), hint=f"or say --from {', '.join(STORES)}")
    return _of_pages(looked) or markdown_notes.NAME


def _names(path: Path) -> Iterable[str]:
    return (name for name in agents_md.FILES if (path / name).is_file() or (path / ".claude" / name).is_file())


def _of_pages(found: Iterable[source_files.SourcePage]) -> str:
    """The format of most of the pages; "" where none is known."""
    shown = list(found)
    notes = sum(map(basic_memory.is_note, shown))
    memories = sum(map(claude_code.is_memory, shown))
    if 2 * max(notes, memories) < len(shown) or not shown or not (notes or memories):
        return ""
    return basic_memory.NAME if notes >= memories else claude_code.NAME

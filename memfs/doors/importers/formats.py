"""The stores that memories can be imported from, by name, and which of them a file is of."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from memfs.doors.importers import STORES, agents_md, claude_code, markdown_notes, mcp_memory, source_files
from memfs.errors import ContentError, StorageIO

_LOOKED_AT = 200
_PEEK = 1 << 16
_SUFFIXES = (".json", ".jsonl", ".ndjson")
_PAGES = {claude_code.NAME: claude_code.read, agents_md.NAME: agents_md.read}


def read(name: str, path: Path, data: bytes | None = None) -> source_files.SourceContent:
    """What a source of that format holds.

    Args:
        name: of the format.
        path: a file or folder; only its name counts where ``data`` is given.
        data: the bytes, where they do not come from a file.

    Raises:
        StorageIO, ContentError: it cannot be read, or is not what the format asks for.
    """
    if name == mcp_memory.NAME:
        if data is None and path.is_dir():
            raise ContentError(f"{name} asks for a file", path=str(path), hint="name the memory server's JSONL")
        text = source_files.decoded(source_files.named(path) if data is None else data, str(path))
        return mcp_memory.read(text, path.name)
    if data is not None:
        raise ContentError(f"{name} cannot come from standard input", path=str(path), hint="name a file or folder")
    return _PAGES[name](path)


def detect(path: Path) -> str:
    """Which format a file or folder is of; "" where it is of none of these, as what memfs itself exports.

    Raises:
        ContentError: a folder whose format is unclear. StorageIO: it cannot be read.
    """
    if path.is_dir():
        return _of_folder(path)
    if path.suffix in (*markdown_notes.SUFFIXES, ".mdc"):
        return _of_page(path)
    return _of_records(path) if path.suffix in _SUFFIXES else ""


def _of_records(path: Path) -> str:
    """The format of a file of records, which its first line tells, or all of it where that is one value."""
    try:
        with path.open("rb") as stream:
            first = stream.readline(_PEEK)
            value = _parsed(first) or _parsed(first + stream.read(source_files.LARGEST))
    except OSError as error:
        raise StorageIO(f"cannot be read: {error.strerror}", path=str(path), hint="name a file") from error
    return mcp_memory.NAME if mcp_memory.is_record(value) else ""


def _parsed(written: bytes) -> Any:
    """What some bytes say as JSON, None where they are none."""
    try:
        return json.loads(written)
    except (ValueError, RecursionError):
        return None


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
    told = [claude_code.is_memory(one) for one in found]
    return claude_code.NAME if told and 2 * sum(told) >= len(told) else ""

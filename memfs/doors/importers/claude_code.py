"""Read Claude Code's own memory: a folder of Markdown files, one fact each, with ``MEMORY.md`` as their index.

Front matter has ``name``, ``description`` and ``type`` (at the top, or below ``metadata`` as newer versions write
it); ``[[name]]`` links files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from memfs.doors.importers.markdown import (
    SourceContent,
    SourcePage,
    first_heading,
    front_matter,
    line_of,
    moment,
    page,
    pages,
    tags_of,
)
from memfs.errors import ContentError
from memfs.fs.workspace_location import home
from memfs.model import Origin, Trust

NAME = "claude-code"
INDEX = "MEMORY.md"
KINDS = {"user": "preference", "feedback": "preference", "project": "knowledge", "reference": "documentation"}
"""What a memory's type becomes here; any other, or none, becomes knowledge."""
_OTHER = "knowledge"
_LINK = re.compile(r"\[\[([^\[\]\n|]{1,200})(?:\|[^\[\]\n]*)?\]\]")
_POINTER = re.compile(r"\[[^\]\n]*\]\(\s*<?([^()\s>]+\.md)>?\s*\)")
_NOT_IN_SLUG = re.compile(r"[^A-Za-z0-9]")
_AGENT = "claude-code"
_LONGEST_TITLE = 200


def memory_folder(named: Path | None, roots: Iterable[Path]) -> Path:
    """The folder with the memory files that a person means.

    Args:
        named: the folder itself, its project's, or Claude Code's own; None means Claude Code's own.
        roots: folders whose project may be meant, where Claude Code's own folder is named.

    Raises:
        ContentError: there is none, or it is unclear which one.
    """
    top = named or Path(os.environ.get("CLAUDE_CONFIG_DIR") or home() / ".claude")
    if (top / "projects").is_dir():
        top = top / "projects"
    if top.name != "projects" and named is not None:
        return top / "memory" if (top / "memory").is_dir() else top
    for root in roots:
        folder = top / slug_of(root) / "memory"
        if folder.is_dir():
            return folder
    raise ContentError(
        "there is no memory of Claude Code for this project",
        path=str(top),
        hint=f"name a folder {top if top.name == 'projects' else top / 'projects'}/PROJECT/memory",
    )


def slug_of(root: Path) -> str:
    """What Claude Code calls a project by its folder."""
    return _NOT_IN_SLUG.sub("-", os.path.realpath(root))


def is_memory(found: SourcePage) -> bool:
    """Whether a file is one of Claude Code's memories, by its front matter."""
    fields, _, _ = front_matter(found.text)
    return "name" in fields and ("description" in fields or _sort(fields) in KINDS)


def read(path: Path) -> SourceContent:
    """The memories of a folder, or in one file.

    Raises:
        StorageIO, ContentError: it cannot be read.
    """
    taken = SourceContent(NAME, Trust.AGENT)
    found = list(pages(path, taken)) if path.is_dir() else [page(path)]
    folder = path.parent if path.is_file() else path
    keys: dict[str, str] = {}  # the file that a link names, by its name or what it is called
    for one in found:
        for name in (line_of(front_matter(one.text)[0].get("name")), one.name.removesuffix(".md"), one.stem):
            keys.setdefault(name.casefold(), one.name)
    for one in found:
        if one.path.name == INDEX:
            _take_index(one, {other.name for other in found}, folder, taken)
        else:
            _take(one, keys, folder, taken)
    return taken


def _take(one: SourcePage, keys: dict[str, str], folder: Path, taken: SourceContent) -> None:
    fields, body, line = front_matter(one.text)
    description = line_of(fields.get("description"))
    if not body.strip() and not description:
        taken.skip(one.name, "it is empty")
        return
    name, sort, written = line_of(fields.get("name")), _sort(fields), _written(fields)
    aims = dict.fromkeys(keys[aim] for aim in _aims(body) if keys.get(aim, one.name) != one.name)
    taken.take(
        body.strip(),
        KINDS.get(sort, _OTHER),
        title=(description or name or first_heading(body)[0] or one.stem)[:_LONGEST_TITLE],
        tags=tags_of(sort),
        timestamp=moment(written) or one.changed,
        origin=_origin(folder, fields),
        where=f"{one.name}:{line}",
        key=_place(folder, one.name),
        name=one.stem,
        facts={"file": _place(folder, one.name), "name": name, "type": sort, "modified": written},
        links=((_place(folder, aim), "relates") for aim in aims),
    )


def _take_index(one: SourcePage, names: set[str], folder: Path, taken: SourceContent) -> None:
    """What the index says beside its pointers to the other files: older versions kept their notes there."""
    _, body, line = front_matter(one.text)
    rest: list[str] = []
    for number, row in enumerate(body.split("\n"), line):
        pointer = _POINTER.search(row) if row.lstrip().startswith(("-", "*", "+")) else None
        if pointer is None:
            rest.append(row)
        elif pointer[1].removeprefix("./") not in names:
            taken.skip(f"{one.name}:{number}", f"points to {pointer[1]}, which is not there")
    title, text = first_heading("\n".join(rest))
    if all(not row.strip() or row.startswith("#") for row in text.split("\n")):
        return
    taken.take(
        text.strip(),
        _OTHER,
        title=(title or one.stem)[:_LONGEST_TITLE],
        timestamp=one.changed,
        origin=_origin(folder, {}),
        where=f"{one.name}:{line}",
        key=_place(folder, one.name),
        name=one.stem,
        facts={"file": _place(folder, one.name)},
    )


def _inner(fields: dict[str, Any]) -> dict[str, Any]:
    """What is below ``metadata``."""
    inner = fields.get("metadata")
    return inner if isinstance(inner, dict) else {}


def _sort(fields: dict[str, Any]) -> str:
    return (line_of(fields.get("type")) or line_of(_inner(fields).get("type"))).casefold()


def _written(fields: dict[str, Any]) -> str:
    """When a memory was written, as it says itself."""
    more = _inner(fields)
    return line_of(more.get("modified")) or line_of(fields.get("modified")) or line_of(more.get("date"))


def _origin(folder: Path, fields: dict[str, Any]) -> Origin:
    session = line_of(_inner(fields).get("originSessionId")) or line_of(fields.get("originSessionId"))
    agent = folder.name if folder.parent.name.startswith("agent-memory") else _AGENT
    return Origin(agent=agent, session=session[:200])


def _aims(body: str) -> Iterable[str]:
    return dict.fromkeys(name.strip().casefold().removesuffix(".md") for name in _LINK.findall(body))


def _label(folder: Path) -> str:
    """What a folder is called in keys: by its project, so that two projects' memories stay two."""
    place = Path(os.path.realpath(folder))
    return place.parent.name if place.name == "memory" else place.name


def _place(folder: Path, name: str) -> str:
    return f"{_label(folder)}/{name}"

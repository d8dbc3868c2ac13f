"""Read any Markdown file, or a folder of them, one memory each.

Title, tags, type and dates come from the front matter; the rest of it is kept below ``metadata``. The text is taken
as it is, links included.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from memfs.doors.importers import source_files
from memfs.doors.importers.agents_md import is_file_name
from memfs.doors.importers.markdown import first_heading, front_matter, texts_of
from memfs.errors import MemfsError
from memfs.fs.workspace_location import home
from memfs.model import KindTable

NAME = "markdown"
SUFFIXES = (".md", ".markdown")
_TYPE = "semantic"
_HAPPENED = ("date", "timestamp", "updated", "modified", "created")
_ENDS = "expires"
_LONGEST_TITLE = 300


def read(paths: Iterable[Path], root: Path, kinds: KindTable) -> source_files.SourceContent:
    """The notes among some files and folders; a file that cannot be read is noted as refused.

    Args:
        paths: what a person named, in order.
        root: the working tree; a file in it is known by its place there, wherever it is named from.
        kinds: the types that front matter may name; another one is kept as metadata.

    Raises:
        StorageIO: a folder cannot be listed. ContentError: it holds too many files.
    """
    taken = source_files.SourceContent(NAME)
    named, seen = list(paths), set[str]()
    for path in named:
        for name, one in _found(path, root, taken):
            if is_file_name(one.name) and (len(named) > 1 or path.is_dir()):
                taken.skip(one.name, "agents' instructions; name the file alone to import it")
            elif name not in seen:
                seen.add(name)
                _take(name, one, kinds, taken)
    return taken


def _found(path: Path, root: Path, taken: source_files.SourceContent) -> Iterator[tuple[str, source_files.SourcePage]]:
    """The pages at a path that a person named, each with the name it is known by."""
    if not path.is_dir():
        try:
            yield _place(path, root), source_files.page(path)
        except MemfsError as error:
            taken.skip(f"{path}:{error.line}" if error.line else str(path), error.message, refused=True)
        return
    source_files.refuse_whole(path)
    top = _place(path, root)
    for one in source_files.pages(path, lambda name: name.endswith(SUFFIXES), taken):
        yield f"{top}/{one.name}" if top else one.name, one


def _place(path: Path, root: Path) -> str:
    """What a file or folder is known by: its path in the working tree, else from the home folder, else the whole."""
    real = path.resolve()
    for base, prefix in ((root.resolve(), ""), (home().resolve(), "~/")):
        if real.is_relative_to(base):
            below = real.relative_to(base).as_posix()
            return prefix + ("" if below == "." else below)
    return real.as_posix()


def _take(name: str, one: source_files.SourcePage, kinds: KindTable, taken: source_files.SourceContent) -> None:
    fields, body, line = front_matter(one.text)
    if not fields and not body.strip():
        taken.skip(name, "it is empty")
        return
    heading, rest = first_heading(body)
    stated = source_files.line_of(fields.pop("title", ""))
    own = _own(fields, kinds)
    taken.take(
        (body if stated else rest).strip("\n"),
        own.pop("type", _TYPE),
        title=(stated or heading or one.stem)[:_LONGEST_TITLE],
        tags=source_files.tags_of(texts_of(fields.pop("tags", ()))),
        timestamp=own.pop("timestamp", None) or one.changed,
        expires=own.pop(_ENDS, None),
        metadata={key: value for key, value in fields.items() if value not in (None, "", [], {})},
        where=f"{name}:{line}",
        key=name,
        name=one.stem,
        facts={"file": name},
    )


def _own(fields: dict[str, Any], kinds: KindTable) -> dict[str, Any]:
    """What front matter says of an item's own fields, taken out of it: what cannot be understood stays there."""
    own: dict[str, Any] = {}
    if (kind := source_files.line_of(fields.get("type"))) in kinds:
        own["type"] = kind
        del fields["type"]
    for key in _HAPPENED:
        if key in fields and (when := source_files.moment(source_files.line_of(fields[key]))) is not None:
            own.setdefault("timestamp", when)
            del fields[key]
    if (ends := source_files.moment(source_files.line_of(fields.get(_ENDS)))) is not None:
        own[_ENDS] = ends
        del fields[_ENDS]
    return own

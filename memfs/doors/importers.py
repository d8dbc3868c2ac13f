"""Read what others remember: Markdown, Claude Code's own memory, which is Markdown, too, and conventions that another
workspace exported.

Only regular files of a bounded size in UTF-8 are read, and no link within a folder is followed; what is skipped is
reported. A page gets title, tags, type and dates from the front matter, the rest of which is kept below ``metadata``;
its text is taken as it is, links included.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memfs.dataclass import dataclass, field, replace
from memfs.doors.claude_code.settings_file import user_folder
from memfs.errors import ContentError, ItemSyntaxError, MemfsError, StorageIO
from memfs.format import yaml_text
from memfs.fs import io
from memfs.fs.workspace_location import home
from memfs.intake.import_service import Arrival, is_edited, taken_from
from memfs.model import KindTable, MemoryItem, Origin, Trust
from memfs.model.kinds import ACCEPTED, CONVENTION, ITEM_LIMIT, PROPOSED
from memfs.model.time import parse_time
from memfs.state.transfer import ExportRecord, item_of, read_json_lines
from memfs.store.parts import Parts

# -- files --------------------------------------------------------------------------------------------------------
FILES = ("AGENTS.md", "CLAUDE.md", "CLAUDE.local.md", "GEMINI.md", "copilot-instructions.md")
"""Files that agents read on their own."""
SUFFIXES = (".md", ".markdown")
_RULES = re.compile(r"(?:^|/)\.claude/rules/.+\.md$")
_MOST_FILES = 10_000
_DEEPEST = 16
_PASSED_OVER = frozenset({"node_modules", "vendor", "__pycache__", "ContextMemory"})


@dataclass(frozen=True, slots=True)
class SkippedSource:
    """What is not taken in.

    Attributes:
        where: its file, and its line or name there.
        reason: why.
        refused: whether a person had named it, and should know.
    """

    where: str
    reason: str
    refused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePage:
    """A text file of a source: its name below what was named, "/" separated, its text, and when it was changed."""

    name: str
    path: Path
    text: str
    changed: datetime


@dataclass(slots=True)
class SourceContent:
    """What a source holds: the memories found in it, and what was passed over.

    Attributes:
        tool: the name of its format.
        trust: that of what it holds.
    """

    tool: str = ""
    trust: Trust = Trust.HUMAN
    arrivals: list[Arrival] = field(default_factory=list)
    skipped: list[SkippedSource] = field(default_factory=list)

    def take(self, key: str, where: str, fact: str, name: str, item: MemoryItem) -> None:
        """Take a memory in; ``fact`` says what its key is: the name of a file, or an id."""
        self.arrivals.append(Arrival(key=key, name=name, item=item, where=where, facts={fact: key} if key else {}))

    def skip(self, where: str, reason: str, *, refused: bool = False) -> None:
        """Note that something is not taken in."""
        self.skipped.append(SkippedSource(where, reason, refused))


def page(path: Path, name: str = "") -> SourcePage:
    """A text file that a person named; or, with a name, one that was found in a folder: that is no link.

    Raises:
        FileNotFoundError: one that was found is gone.
        StorageIO, NotRegularFile, ItemTooLarge, ItemSyntaxError.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | (os.O_NOFOLLOW if name else 0)
    try:
        with io.descriptor(io.open_file(path, flags)) as fd:
            data = io.read_regular(fd, str(path), ITEM_LIMIT)
    except FileNotFoundError as error:
        if name:
            raise
        raise StorageIO("cannot be read: it is not there", path=str(path), hint="name a file") from error
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ItemSyntaxError("not UTF-8 text", path=str(path), line=line, hint="save it as UTF-8") from error
    changed = datetime.fromtimestamp(int(io.facts(path).st_mtime), UTC)
    return SourcePage(name=name or path.name, path=path, text=text, changed=changed)


def refuse_whole(folder: Path) -> None:
    """Refuse a folder that is somebody's notes least of all: the whole file system, or a whole home.

    Raises:
        ContentError: it is one of these.
    """
    if folder.resolve() in (Path("/"), home().resolve()):
        what = "the whole file system" if folder.resolve() == Path("/") else "your whole home folder"
        hint = "name the folder of the notes, or single files; --dry-run shows what would be stored"
        raise ContentError(f"this is {what}", path=str(folder), hint=hint)


def pages(folder: Path, taken: SourceContent) -> Iterator[SourcePage]:
    """The Markdown files of a folder, in order; what cannot be read is noted as skipped.

    Links are not followed, nor is hidden, vendored or memfs's own looked into, but for ``.claude`` and ``.github``.

    Raises:
        ContentError: there are too many. StorageIO: the folder cannot be listed.
    """
    chosen = [name for name in sorted(_files(folder, "", taken)) if name.endswith(SUFFIXES)]
    if len(chosen) > _MOST_FILES:
        raise ContentError(f"{len(chosen):,} files, limit {_MOST_FILES:,}", path=str(folder), hint="import parts of it")
    for name in chosen:
        try:
            yield page(folder / name, name)
        except FileNotFoundError:
            taken.skip(name, "it was removed meanwhile")
        except MemfsError as error:
            where = f"{name}:{error.line}" if error.line else name
            taken.skip(where, error.message)


def _files(folder: Path, beneath: str, taken: SourceContent, depth: int = 0) -> Iterator[str]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        if not depth:
            raise StorageIO(f"cannot be listed: {error.strerror}", path=str(folder), hint="name a folder") from error
        taken.skip(beneath, f"cannot be listed: {error.strerror}")
        return
    for entry in entries:
        name = f"{beneath}{entry.name}"
        if entry.is_symlink():
            if name.endswith(".md"):
                taken.skip(name, "a link; name the file itself to import it")
        elif name.endswith(".md") and not entry.is_dir(follow_symlinks=False) and not entry.is_file():
            taken.skip(name, "not a regular file")
        elif entry.is_dir(follow_symlinks=False):
            hidden = entry.name.startswith(".") and entry.name not in (".claude", ".github")
            if not hidden and entry.name not in _PASSED_OVER and depth < _DEEPEST:
                yield from _files(folder / entry.name, f"{name}/", taken, depth + 1)
        elif entry.is_file(follow_symlinks=False):
            yield name


# -- pages --------------------------------------------------------------------------------------------------------
_LONGEST_TAG = 100
_MOST_TAGS = 50


def line_of(value: Any) -> str:
    """A value as one line of text; "" for what is no text."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return " ".join(str(value).split())


def tags_of(values: Any) -> tuple[str, ...]:
    """A list, or one text, as tags."""
    parts = values if isinstance(values, list) else [values]
    return tuple(dict.fromkeys(tag for part in parts if (tag := line_of(part)[:_LONGEST_TAG])))[:_MOST_TAGS]


def moment(value: Any) -> Any:
    """A time that another store wrote, None where it cannot be understood."""
    try:
        return parse_time(value) if isinstance(value, str) and value else None
    except (ValueError, OverflowError):
        return None


_FRONT = re.compile(r"---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.MULTILINE | re.DOTALL)
_PAIR = re.compile(r"^[ \t]*([A-Za-z][\w-]*)[ \t]*:[ \t]*(\S.*)$", re.MULTILINE)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*))?$")


def front_matter(text: str) -> tuple[dict[str, Any], str, int]:
    """What is in a page's front matter, the rest of the page, and the line in which that begins.

    Front matter that is no YAML is read line by line: an agent wrote it, and what can be read counts.
    """
    found = _FRONT.match(text)
    if found is None:
        return {}, text, 1
    try:
        fields = yaml_text.load(found[1])
    except ContentError:
        fields = {name: shown.strip("\"'") for name, shown in _PAIR.findall(found[1])}
    rest, line = text[found.end() :], text.count("\n", 0, found.end()) + 1
    return fields if isinstance(fields, dict) else {}, rest, line


def texts_of(value: Any) -> list[str]:
    """A field that is a list, or a text with commas, as texts."""
    parts = value if isinstance(value, list) else str(value).split(",") if isinstance(value, str) else []
    return list(dict.fromkeys(text for part in parts if (text := line_of(part).lstrip("#"))))


def first_heading(body: str) -> tuple[str, str]:
    """What the first heading of a page says, "" where it has none, and the page; without it where it begins so."""
    lines = list(rows(body))
    for number, (row, is_code) in enumerate(lines):
        found = None if is_code else _HEADING.match(row)
        if found and (title := _title(found[2] or "")):
            before, after = ([line for line, _ in part] for part in (lines[:number], lines[number + 1 :]))
            return " ".join(title.split()), body if any(map(str.strip, before)) else "\n".join(after)
    return "", body


def rows(text: str) -> Iterator[tuple[str, bool]]:
    """The lines of a page, and whether each belongs to a block of code; an unclosed one reaches to the end."""
    marks = ""
    for row in text.split("\n"):
        fence = _FENCE.match(row.strip())
        if fence and not marks:
            marks = fence[1]
            yield row, True
            continue
        yield row, bool(marks)
        if fence and marks and fence[1].startswith(marks) and not fence[2].strip():
            marks = ""


def _title(written: str) -> str:
    """What a heading says, without the marks that may close it."""
    heading = written.strip(" \t")
    bare = heading.rstrip("#")
    return bare.rstrip(" \t") if not bare or bare[-1] in " \t" else heading


# -- notes --------------------------------------------------------------------------------------------------------
MARKDOWN, CLAUDE_CODE = "markdown", "claude-code"
INDEX = "MEMORY.md"
"""The file in which Claude Code lists the others; what it says besides is a memory, too."""
KINDS = {"user": "preference", "feedback": "preference", "reference": "documentation"}
"""What becomes of Claude Code's types; any other, or none, becomes knowledge."""
_TYPE, _OTHER = "semantic", "knowledge"
_HAPPENED = ("date", "timestamp", "updated", "modified", "created")
_ENDS = "expires"
_LONGEST_TITLE = 300
_POINTER = re.compile(r"[ \t]*[-*+].*\]\([^()\s]+\.md\)")


def read(paths: Iterable[Path], root: Path, kinds: KindTable, form: str = MARKDOWN) -> SourceContent:
    """The notes among some files and folders; a file that cannot be read is noted as refused.

    Args:
        paths: what a person named, in order.
        root: the working tree; a file in it is known by its place there, wherever it is named from.
        kinds: the types that front matter may name; another one is kept as metadata.
        form: who wrote them: people (``MARKDOWN``), or ``CLAUDE_CODE``.

    Raises:
        StorageIO: a folder cannot be listed. ContentError: it holds no file, or too many.
    """
    taken = SourceContent(form, Trust.AGENT if form == CLAUDE_CODE else Trust.HUMAN)
    named, seen = list(paths), set[str]()
    for path in named:
        for name, one in _found(path, root, taken):
            agents_own = posixpath.basename(one.name) in FILES or _RULES.search(one.name)
            if agents_own and (len(named) > 1 or path.is_dir()):
                taken.skip(name, "agents' instructions; name the file alone to import it")
            elif name not in seen:
                seen.add(name)
                _take(name, one, kinds, taken)
    if not seen and not taken.skipped:
        raise ContentError("there is no Markdown file here", path=str(named[0]), hint="or say what it is with --from")
    return taken


def claude_folder(roots: Iterable[Path]) -> Path:
    """The folder in which Claude Code keeps its memory of a project, which any of these folders may be.

    Raises:
        ContentError: there is none.
    """
    top = user_folder() / "projects"
    for root in roots:
        folder = top / re.sub(r"[^A-Za-z0-9]", "-", os.path.realpath(root)) / "memory"
        if folder.is_dir():
            return folder
    hint = f"name a folder {top}/PROJECT/memory"
    raise ContentError("there is no memory of Claude Code for this project", path=str(top), hint=hint)


def _found(path: Path, root: Path, taken: SourceContent) -> Iterator[tuple[str, SourcePage]]:
    """The pages at a path that a person named, each with the name it is known by."""
    if not path.is_dir():
        try:
            yield _place(path, root), page(path)
        except MemfsError as error:
            taken.skip(f"{path}:{error.line}" if error.line else str(path), error.message, refused=True)
        return
    refuse_whole(path)
    top = _place(path, root)
    for one in pages(path, taken):
        yield f"{top}/{one.name}" if top else one.name, one


def _place(path: Path, root: Path) -> str:
    """What a file or folder is known by: its path in the working tree, else from the home folder, else the whole."""
    real = path.resolve()
    for base, prefix in ((root.resolve(), ""), (home().resolve(), "~/")):
        if real.is_relative_to(base):
            below = real.relative_to(base).as_posix()
            return prefix + ("" if below == "." else below)
    return real.as_posix()


def _take(name: str, one: SourcePage, kinds: KindTable, taken: SourceContent) -> None:
    fields, body, line = front_matter(one.text)
    origin = Origin()
    if taken.tool == CLAUDE_CODE:
        fields, origin = _of_claude(fields)
        body = "\n".join(row for row in body.split("\n") if one.path.name != INDEX or not _POINTER.match(row))
    if one.path.name == INDEX and not re.search(r"^[^#\s]", body, re.MULTILINE):
        return  # it only names the others
    if not fields and not body.strip():
        taken.skip(name, "it is empty")
        return
    heading, rest = first_heading(body)
    stated = line_of(fields.pop("title", ""))
    own = _own(fields, kinds)
    item = MemoryItem(
        (body if stated else rest).strip("\n"),
        own.pop("type", _TYPE if taken.tool == MARKDOWN else _OTHER),
        title=(stated or heading or one.path.stem)[:_LONGEST_TITLE],
        tags=tags_of(texts_of(fields.pop("tags", ()))),
        timestamp=own.pop("timestamp", None) or one.changed,
        expires=own.pop(_ENDS, None),
        metadata={key: value for key, value in fields.items() if value not in (None, "", [], {})},
        origin=replace(origin, tool=taken.tool),
        trust=taken.trust.value,
    )
    taken.take(name, f"{name}:{line}", "file", one.path.stem, item)


def _of_claude(fields: dict[str, Any]) -> tuple[dict[str, Any], Origin]:
    """Claude Code's front matter in the words of other notes, and the session in which it wrote."""
    inner = fields.get("metadata")  # newer versions have the rest in it
    said = fields | (inner if isinstance(inner, dict) else {})
    sort, session = (line_of(said.get(name)) for name in ("type", "originSessionId"))
    known = {"title": line_of(said.get("description")) or line_of(said.get("name")), "modified": said.get("modified")}
    known |= {"type": KINDS.get(sort.casefold(), _OTHER), "tags": [sort]} if sort else {}
    return {key: value for key, value in known.items() if value}, Origin(agent=CLAUDE_CODE, session=session[:200])


def _own(fields: dict[str, Any], kinds: KindTable) -> dict[str, Any]:
    """What front matter says of an item's own fields, taken out of it: what cannot be understood stays there."""
    own: dict[str, Any] = {}
    if (kind := line_of(fields.get("type"))) in kinds:
        own["type"] = kind
        del fields["type"]
    for key in _HAPPENED:
        if key in fields and (when := moment(line_of(fields[key]))) is not None:
            own.setdefault("timestamp", when)
            del fields[key]
    if (ends := moment(line_of(fields.get(_ENDS)))) is not None:
        own[_ENDS] = ends
        del fields[_ENDS]
    return own


# -- conventions --------------------------------------------------------------------------------------------------
CONVENTIONS = "conventions"


def read_conventions(path: Path, parts: Parts) -> SourceContent:
    """The conventions that another workspace accepted, from its export, as proposals; what is no memory is refused, and
    the others are left out. What they say comes along, and not who said it or what it weighs.

    The name of the file says whose they are.

    Raises:
        ItemTooLarge: a line is too long to be read. StorageIO: the file cannot be read.
    """
    taken = SourceContent(f"{CONVENTIONS} of {path.stem}", Trust.TOOL)
    with io.operation("read", path), path.open("rb") as stream:
        for record in read_json_lines(stream, str(path)):
            where = f"{path.name}:{record.place if isinstance(record, ExportRecord) else record.line}"
            try:
                if not isinstance(record, ExportRecord):
                    raise record
                item = item_of(record, parts)
            except MemfsError as error:
                taken.skip(where, error.message, refused=True)
                continue
            if reason := _left_out(item):
                taken.skip(where, reason)
                continue
            proposal = MemoryItem(
                item.content,
                CONVENTION,
                origin=Origin(tool=taken.tool),
                trust=taken.trust.value,
                title=item.title,
                tags=item.tags,
                expires=item.expires,
                status=PROPOSED,
                # when it was accepted, each team says for itself
                data={name: value for name, value in item.data.items() if name != "accepted"},
            )
            taken.take(item.id, where, "id", item.id, proposal)
    return taken


def _left_out(item: MemoryItem) -> str:
    """Why an item is not taken in; "" where it is."""
    if item.type != CONVENTION:
        return "no convention"
    if item.status != ACCEPTED:
        return f"{item.status or PROPOSED} there"
    handed_on = str(taken_from(item).get("source")).startswith(f"{CONVENTIONS} of ") and not is_edited(item)
    return "no convention of theirs: they imported it" if handed_on else ""

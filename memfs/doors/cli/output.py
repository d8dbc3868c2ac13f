"""Print everything that the command line prints: lines, texts, JSON, tables, errors, progress.

The standard streams are safe to use, also when they are closed or full. Nothing from outside can end a line, begin
another, move the terminal or command a runner of workflows. Items and problems have one shape of JSON, which scripts
can rely on.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import MappingProxyType

from memfs.dataclass import NamedTuple, metadata_of
from memfs.doors.cli.declare import click
from memfs.errors import MemfsError, StorageIO
from memfs.startup import TYPE_CHECKING, Any, json, regex

if TYPE_CHECKING:
    from typing import TextIO, TypeAlias

    from memfs.model import MemoryItem, Problem


_UTF_8 = frozenset({"utf-8", "utf8"})


def secure() -> None:
    """Make the streams safe to use: what is closed leads nowhere, what a terminal cannot show is written as escapes.

    A closed stream's number would else be given to the next file that is opened, and our output written into it.
    """
    for number, mode in ((0, os.O_RDONLY), (1, os.O_WRONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  it lives as long as we
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


class OutputLost(StorageIO):
    """Standard output cannot be written, so nothing more can be said there."""


def is_interactive() -> bool:
    """Whether a person sits at a terminal that is both our input and our output."""
    return somebody_types() and sys.stdout.isatty()


def somebody_types() -> bool:
    """Whether our input is a terminal."""
    return sys.stdin is not None and sys.stdin.isatty()


def read_input() -> bytes:
    """All of standard input.

    Raises:
        StorageIO: it is closed or cannot be read.
    """
    try:
        if sys.stdin is None:
            raise OSError("it is closed")
        return sys.stdin.buffer.read()
    except OSError as error:
        raise StorageIO(f"standard input cannot be read: {error.strerror or error}") from error


def read_named(file: str, most: int = -1) -> bytes:
    """What the file that a person names holds, ``most`` bytes at most; links are followed, '-' is standard input.

    Raises:
        StorageIO: it cannot be read.
    """
    if file == "-":
        return read_input()
    try:
        with open(file, "rb") as stream:
            return stream.read(most)
    except OSError as error:
        raise StorageIO(f"cannot be read: {error.strerror}", path=file, hint="name a file") from error


def echo(text: str | bytes, stream: TextIO, color: bool | None = None) -> None:
    """Print a line on a stream, or bytes as they are; click is imported for what is more than plain text."""
    if isinstance(text, str) and "\x1b" not in text and (stream.encoding or "").lower() in _UTF_8:
        stream.write(f"{text}\n")
        stream.flush()
        return
    import click

    click.echo(text, stream, nl=isinstance(text, str), color=color)


def write(text: str | bytes, color: bool | None = None) -> None:
    """Print a line on standard output, or bytes as they are.

    Raises:
        OutputLost: it cannot be written; nothing more will be.
        BrokenPipeError: what reads it has gone.
    """
    try:
        echo(text, sys.stdout, color)
    except BrokenPipeError:
        raise
    except OSError as error:
        drop_output()
        raise OutputLost(f"the output cannot be written: {error.strerror or error}") from error


def drop_output() -> None:
    """Lead standard output nowhere, so that the interpreter does not stumble over it while it closes."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# what represents in a line the escapes of our own styles: no text can hold it
_ESC = f"\x1b{os.urandom(8).hex()}"
# what a runner of GitHub Actions obeys in a line of its log
_COMMAND = regex(r"^\s*:(?=:)|#(?=#\[)")
_UNITS = ("bytes", "KB", "MB", "GB", "TB")
_WEIGHTS = frozenset(
    ("archived", "free", "growth_of_an_iteration", "packed", "quota")
)  # fields in bytes, by their names
Step = Callable[[int, int], None]


# -- text ---------------------------------------------------------------------------------------------------------
def clean(text: str) -> str:
    """A piece of a line as it will be shown, for those who count its characters or hand it to a prompt."""
    from memfs.format.text import shown_line

    return shown_line(text)


def _line(text: str) -> str:
    """The one place that all but JSON passes on its way out: one line, with no escape but those of our styles."""
    line = "\x1b".join(map(clean, text.split(_ESC)))
    if not os.environ.get("GITHUB_ACTIONS"):
        return line
    return _COMMAND.sub(lambda found: f"{found[0][:-1]}\\u{{{ord(found[0][-1]):X}}}", line)


def one_line(text: str, width: int = 0) -> str:
    """The text on one line, safe to show, cut to ``width`` where that is positive."""
    from memfs.format.text import shortened

    line = clean(" ".join(text.split()))
    return shortened(line, width) if width > 0 else line


def note(text: str, hint: str | None = None) -> None:
    """Print a remark, and what to do about it, on standard error; where that cannot be written, it is lost."""
    with suppress(OSError):
        echo(_line(f"memfs: {text}"), sys.stderr)
        if hint:
            echo(_line(f"  {hint}"), sys.stderr)


def write_error(error: MemfsError) -> None:
    """Print an error with its place, and its hint on a separate line; and what else is wrong there, likewise."""
    for one in (error, *error.also):
        place = ":".join(str(part) for part in (one.path, one.line, one.column) if part is not None)
        note(f"{place}: {one.sentence}" if place else one.sentence, one.hint)


def width() -> int:
    """How wide lines may be: the terminal's width, 0 (no limit) when the output goes elsewhere."""
    if not sys.stdout.isatty():
        return 0
    import shutil  # for a person alone

    return shutil.get_terminal_size().columns


def styled(text: str, **style: Any) -> str:
    """A piece of a line in a style, where the output is a terminal; for ``print_raw`` alone."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return clean(text)
    return click.style(clean(text), **style).replace("\x1b", _ESC)


def print_raw(text: str) -> None:
    """Print one line; whatever would end it or command the terminal is shown as an escape."""
    write(_line(text), color=False if os.environ.get("NO_COLOR") else None)


def print_text(text: str, indent: str = "") -> None:
    """Print a text of several lines, each safe by itself."""
    write("\n".join(_line(indent + line) for line in text.split("\n")))


def print_table(rows: Sequence[Sequence[str]], dim: Iterable[int] = ()) -> None:
    """Print rows in columns; the last column is cut to the terminal's width."""
    if not rows:
        return
    shown = [[clean(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in shown) for column in range(len(shown[0]) - 1)]
    room = width() - sum(widths) - 2 * len(widths)
    faint = frozenset(dim)
    for row in shown:
        cells = [
            styled(cell.ljust(space), dim=True) if column in faint else cell.ljust(space)
            for column, (cell, space) in enumerate(zip(row, widths, strict=False))
        ]
        last = one_line(row[-1], max(room, 20)) if width() else row[-1]
        print_raw("  ".join((*cells, last)).rstrip())


# -- JSON ---------------------------------------------------------------------------------------------------------
def print_json(value: Any, indent: int | None = 2) -> None:
    """Print one JSON document, on one line where there is no indent; what hides or controls is written as escapes."""
    from memfs.format.text import UNSHOWN

    text = json.dumps(value, ensure_ascii=False, indent=indent, default=str)
    safe = UNSHOWN.sub(lambda found: json.dumps(found[0])[1:-1], text)
    write(safe.replace("##[", "#\\u0023[") if os.environ.get("GITHUB_ACTIONS") else safe)


OMIT: Mapping[str, Any] = {"omit": True}
"""The metadata of a result's field that JSON leaves out while it is empty."""
MERGE: Mapping[str, Any] = {"merge": True}
"""The metadata of a result's field whose own fields are inlined in the JSON of the result."""
TEXT_ONLY: Mapping[str, Any] = {"skip": True}
"""The metadata of a result's field that only the text is made of."""

ATTRIBUTES: Mapping[str, str] = {
    "MemoryItem": "id type title content tags timestamp created updated origin trust importance pinned status expires "
    "supersedes links context metadata data conflicts path sha256",
    "Origin": "speaker? role? agent? session? sequence? task? tool? phase?",
    "AccessRecord": "time way door agent session ids question?",
    "Problem": "path line code message hint severity",
    "RecordedConflict": "field kept lost part? lost_sha256? by? time?",
    "Revision": "commit author email committer time subject body trailers paths",
    "Suggestion": "id source type=item.type title=item.title content=item.content data=item.data count evidence "
    "reason made decision",
    "Rule": "id action confidence",
    "BusyProcess": "pid name",
    "Disagreement": "ids reason linked reopened items",
    "DecisionResult": "id path fields record sha256 removed",
    "DocumentClash": "record=path document iteration field kept lost by timestamp",
    "FieldConflict": "field kept lost",
    "BisectResult": "good bad steps=culprit.steps commit=culprit.revision or_earlier=culprit.or_earlier expect before "
    "after agents=culprit.agents sessions=culprit.sessions sources=culprit.sources changes",
    "LearnedFrom": "author agent session time commit field value source tool subject path",
    "MergeOutcome": "path=open.path what=open.what outcome reason=undecided conflicts",
    "Open": "path what",
    "Convention": "id status title=item.title content=item.content owner scope supersedes=item.supersedes trust "
    "pinned=item.pinned path=item.path sha256=item.sha256",
    "ImportResult": "id there=arrival.key where=arrival.where type=arrival.item.type became reason near contradicts",
    "SkippedSource": "where reason",
    "ShareResult": "id=item.id shared_as=fate.id became=fate.became reason=fate.reason contradicts=fate.contradicts",
    "FlushResult": "commits adopted waiting reason skipped",
    "RetentionResult": "iterations=archived.iterations archives=archived.archives documents=archived.documents "
    "bytes=archived.bytes packed=archived.packed removed=archived.removed left=archived.left reason=archived.reason "
    "deleted",
    "Episode": "id outcome tool=action.tool did=action.description about=state.context files=state.files "
    "error=error_message warned timestamp",
    "DeliveryResult": "text texts ids repeated left_out problems",
    "MountState": "path folder items unread problem=problem.message hint=problem.hint",
    "Storage": "state reason free secondary secondary_reason waiting",
    "BackupManifest": "created waiting left_out files=count",
    "BackupResult": "path bytes waiting=manifest.waiting left_out=manifest.left_out removed whole "
    "files=manifest.count head=manifest.tip",
    "BackupState": "last age_seconds=age path interval_hours overdue=due error",
    "CheckpointStatus": "last age_seconds=age count damaged due update_late_seconds=update_late",
    "Weak": "id=item.id path=item.path importance reason",
    "Promotion": "id=item.id content=item.content why sources known",
    "Use": "access_count=count last_accessed=last relevance_score=relevance",
}
"""Attributes that JSON has of the library's values, by class.

One with a question mark is left out while it is empty. ``key=attribute`` has another name in JSON; the attribute may be
one of a value in it, as ``item.title``.
"""


def as_json(value: Any) -> Any:
    """A result, or any value in one, as JSON has it: dataclasses by field, times and paths as text, enums by value."""
    if (names := ATTRIBUTES.get(type(value).__name__)) is not None:
        return _attributes_json(value, names)
    if (fields := metadata_of(type(value))) is not None:
        return _fields_json(value, fields)
    if isinstance(value, Mapping):
        return {str(as_json(key)): as_json(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_json(part) for part in value]
    if isinstance(value, (set, frozenset)):
        return sorted(map(as_json, value))
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "isoformat"):
        return time_text(value) if hasattr(value, "hour") else value.isoformat()
    return getattr(value, "value", value)  # an enum


def merge(names: str) -> Mapping[str, Any]:
    """The metadata of a result's field whose named attributes JSON shows among the fields of the result."""
    return {"merge": names}


def keys(names: str) -> Iterator[tuple[str, str, bool]]:
    """The keys that a list of attributes gives JSON, each with its attribute and whether it is always there."""
    for written in names.split():
        key, _, attribute = written.rstrip("?").partition("=")
        yield key, attribute or key, not written.endswith("?")


def _attributes_json(value: Any, names: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, attribute, always in keys(names):
        part = value
        for name in attribute.split("."):
            part = None if part is None else getattr(part, name)
        if always or not _empty(part):
            found[key] = as_json(part)
    return found


def _fields_json(value: Any, fields: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, metadata in fields.items():
        part = getattr(value, name)
        if metadata.get("skip") or (metadata.get("omit") and _empty(part)):
            continue
        merged = metadata.get("merge")
        if not merged:
            found[name] = as_json(part)
        elif part is not None:
            found |= _attributes_json(part, merged) if isinstance(merged, str) else as_json(part)
    return found


def _empty(value: Any) -> bool:
    return value is None or value is False or (hasattr(value, "__len__") and not len(value))


def readable(value: Any) -> str:
    """A value of a free field on one line, as a person would write it."""
    if isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)) and not any(isinstance(part, (Mapping, list, tuple)) for part in value):
        return ", ".join(readable(part) for part in value)
    return json.dumps(as_json(value), ensure_ascii=False, default=str)


def time_text(moment: Any) -> str | None:
    """A point in time as text, None where there is none."""
    if moment is None:
        return None
    from memfs.model.time import format_time  # model is not loaded for --help

    return format_time(moment)


def day(item: MemoryItem) -> str:
    """The day an item belongs to."""
    moment = item.timestamp or item.created
    return moment.date().isoformat() if moment else ""


def print_problem(problem: Problem) -> None:
    """Print a problem: place, what is wrong, and what to do on a separate line."""
    place = problem.path + (f":{problem.line}" if problem.line else "")
    colour = "red" if problem.severity == "error" else "yellow"
    print_raw(f"{styled(place or 'workspace', bold=True)}: {styled(problem.severity, fg=colour)}: {problem.message}")
    if problem.hint:
        print_raw(styled(f"  {problem.hint}", dim=True))


def count(number: int, word: str, plural: str = "") -> str:
    """``1 problem``, ``1,200 problems``."""
    return f"{number:,} {word if number == 1 else plural or word + 's'}"


def size(number: float) -> str:
    """Bytes as people read them."""
    unit = 0
    while number >= 1000 and unit < len(_UNITS) - 1:
        number, unit = number / 1000, unit + 1
    return f"{number:.1f} {_UNITS[unit]}" if unit else f"{number:.0f} bytes"


# -- results ------------------------------------------------------------------------------------------------------
class Note(NamedTuple):
    """A remark on standard error, with or without ``--json``; below it, what to do about it."""

    text: str
    hint: str = ""


class Table(NamedTuple):
    """Rows in columns; those numbered in ``dim`` are faint."""

    rows: Sequence[Sequence[str]]
    dim: tuple[int, ...] = ()


class Block(NamedTuple):
    """A text of several lines, each after ``indent``."""

    text: str
    indent: str = ""


class Document(NamedTuple):
    """A value that people read as JSON, too."""

    value: Any


Text: TypeAlias = "Iterable[str | Table | Block | Document | Note | MemfsError | Problem]"
"""What a result looks like: lines, other parts, and what is said on standard error. Nothing in it need be clean."""


def document(result: Any) -> Text:
    """A result as people read it where no sentence says it better: its fields as YAML, without what is empty or 0."""
    from memfs.format import yaml_text

    found = _readable(as_json(result))
    if not found:
        yield "Nothing"
    elif isinstance(found, Mapping):
        yield Block(yaml_text.document(found).rstrip())
    else:
        yield from (line for one in found for line in yaml_text.element(one, 0))


def _readable(value: Any, weighs: bool = False) -> Any:
    if isinstance(value, dict):
        read = {key: _readable(one, weighs or "bytes" in key or key in _WEIGHTS) for key, one in value.items()}
        return {key: one for key, one in read.items() if one not in (None, "", [], {}) and (one or one is False)}
    if isinstance(value, list):
        row = (
            len(value) > 1 and all(one.__class__ is int for one in value) and value == [*range(value[0], value[-1] + 1)]
        )
        return f"from {value[0]} to {value[-1]}" if row else [_readable(one, weighs) for one in value]
    return size(value) if weighs and value.__class__ is int and value else value


def facts(rows: Mapping[str, str], width: int = 11) -> Iterator[str]:
    """A line for each fact that is not empty, its faint name before it."""
    return (f"{styled(name.ljust(width), dim=True)}{value}" for name, value in rows.items() if value)


def listed(label: str, rows: Iterable[str], shown: int = 10) -> Iterator[str]:
    """A line for each of the first rows, the label before it where there is one, and how many more there are."""
    found = list(rows)
    before = f"  {label} " if label else "    "
    yield from (f"{before}{row}" for row in found[:shown])
    if len(found) > shown:
        yield f"{before}and {len(found) - shown:,} more"


def render(result: Any, shown: Text, *, json: bool, more: Mapping[str, Any] = MappingProxyType({})) -> None:
    """Print a result: with ``json`` its fields as one document, else what it looks like; remarks in both cases.

    Args:
        more: what else the document holds.
    """
    if json:
        print_json({**as_json(result), **as_json(more)})
    for part in shown:
        if isinstance(part, Note):
            note(part.text, part.hint)
        elif json:
            continue
        elif isinstance(part, str):
            print_raw(part)
        elif isinstance(part, Table):
            print_table(part.rows, part.dim)
        elif isinstance(part, Block):
            print_text(*part)
        elif isinstance(part, Document):
            print_json(part.value)
        elif isinstance(part, MemfsError):
            write_error(part)
        else:
            print_problem(part)


def problems_note(number: int) -> str:
    """How many files need a look; "" where none does."""
    return f"{count(number, 'problem')} in the workspace; 'memfs check' names them" if number else ""


def partial_note(unread: Sequence[str]) -> str:
    """That something may be missing from an answer, and why."""
    files = ", ".join(unread[:3]) + (" and others" if len(unread) > 3 else "")
    reason = f"{count(len(unread), 'file')} cannot be read: {files}" if unread else "files kept changing"
    return f"results may be incomplete: {reason}" + ("; 'memfs check' says why" if unread else "")


# -- progress -----------------------------------------------------------------------------------------------------
@contextmanager
def progress(label: str) -> Iterator[Step]:
    """A bar on standard error, where that is a terminal; called with how much is done and how much there is."""
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    with click.progressbar(length=0, label=label, file=sys.stderr) as bar:

        def step(done: int, total: int) -> None:
            bar.length = total
            bar.update(done - bar.pos)

        yield step

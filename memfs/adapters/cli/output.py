"""Everything the command line prints: JSON, tables, errors, progress; and what is safe to show on a terminal.

Owns the shapes of the JSON that scripts rely on for items and problems. Knows nothing of where they come from.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import click

from memfs.adapters.cli.streams import write
from memfs.errors import MemfsError

if TYPE_CHECKING:
    from memfs.model import MemoryItem, Problem, RecordedConflict

# control characters, bidi controls, lone surrogates, tag characters and joiners between plain letters: what a terminal
# would obey, or a reader would not see
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f]"
    "|(?<![^\x00-\x7f\u2000-\u206f])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f\u2000-\u206f])"
)
Step = Callable[[int, int], None]


# -- text ---------------------------------------------------------------------------------------------------------
def clean(text: str) -> str:
    """The text with every character a terminal would obey or hide shown as an escape (faults row 17)."""
    return _HIDDEN.sub(lambda found: _escape(found[0]), text)


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def one_line(text: str, width: int = 0) -> str:
    """The text on one line, safe to show, cut to ``width`` where that is positive."""
    return _cut(clean(" ".join(text.split())), width)


def _cut(text: str, width: int) -> str:
    return text if width <= 0 or len(text) <= width else text[: max(width - 1, 1)].rstrip() + "…"


def say(text: str = "", **style: Any) -> None:
    """Print a line for a person; styled only on a terminal that wants colours."""
    write(click.style(clean(text), **style) if style else clean(text), color=_colours())


def note(text: str) -> None:
    """Print a remark on standard error; where that cannot be written there is nobody to tell."""
    with suppress(OSError):
        click.echo(f"memfs: {clean(text)}", err=True)


def complain(message: str, hint: str | None = None) -> None:
    """Print what went wrong, and what to do about it, on standard error."""
    note(message)
    if hint:
        with suppress(OSError):
            click.echo(f"  {clean(hint)}", err=True)


def write_error(error: MemfsError) -> None:
    """Print an error with its place, and its hint on a line of its own."""
    place = ":".join(str(part) for part in (error.path, error.line, error.column) if part is not None)
    complain(f"{place}: {error.sentence}" if place else error.sentence, hint=error.hint)


def width() -> int:
    """How wide lines may be: the terminal's width, 0 (no limit) when the output goes elsewhere."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0


def styled(text: str, **style: Any) -> str:
    """A piece of a line in a style, where the output is a terminal."""
    return click.style(clean(text), **style) if sys.stdout.isatty() and _colours() is not False else clean(text)


def print_raw(text: str) -> None:
    """Print a line that ``styled`` and ``clean`` have made safe already."""
    write(text, color=_colours())


def _colours() -> bool | None:
    import os

    return False if os.environ.get("NO_COLOR") else None


def print_table(rows: Sequence[Sequence[str]], dim: Iterable[int] = ()) -> None:
    """Print rows in columns; the last column is cut to the terminal's width."""
    if not rows:
        return
    shown = [[clean(" ".join(cell.splitlines())) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in shown) for column in range(len(shown[0]) - 1)]
    room = width() - sum(widths) - 2 * len(widths)
    faint = frozenset(dim)
    for row in shown:
        cells = [
            styled(cell.ljust(space), dim=True) if column in faint else cell.ljust(space)
            for column, (cell, space) in enumerate(zip(row, widths, strict=False))
        ]
        last = _cut(row[-1], max(room, 20)) if width() else row[-1]
        print_raw("  ".join((*cells, last)).rstrip())


# -- JSON ---------------------------------------------------------------------------------------------------------
def print_json(value: Any) -> None:
    """Print one JSON document; characters that hide or control are written as escapes."""
    text = json.dumps(value, ensure_ascii=False, indent=2, default=str)
    write(_HIDDEN.sub(_json_escape, text))


def print_json_line(value: Any) -> None:
    """Print one JSON document on one line, for streams."""
    write(_HIDDEN.sub(_json_escape, json.dumps(value, ensure_ascii=False, default=str)))


def _json_escape(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1] if ord(found[0]) > 0x7E else found[0]


def item_json(item: MemoryItem) -> dict[str, Any]:
    """All of an item, as ``show``, ``list`` and ``remember --file`` write and read it."""
    return {
        "id": item.id,
        "type": item.type,
        "title": item.title,
        "content": item.content,
        "tags": list(item.tags),
        "timestamp": time_text(item.timestamp),
        "created": time_text(item.created),
        "updated": time_text(item.updated),
        "origin": origin_json(item),
        "trust": item.trust,
        "importance": item.importance,
        "pinned": item.pinned,
        "status": item.status,
        "expires": time_text(item.expires),
        "supersedes": list(item.supersedes),
        "links": [{"to": link.to, "relation": link.relation} for link in item.links],
        "context": plain(item.context),
        "metadata": plain(item.metadata),
        "data": plain(item.data),
        "conflicts": [conflict_json(one) for one in item.conflicts],
        "path": item.path,
        "sha256": item.sha256,
    }


def conflict_json(conflict: RecordedConflict) -> dict[str, Any]:
    """What gave way in an item when branches were joined."""
    values = {
        "field": conflict.field,
        "kept": plain(conflict.kept),
        "lost": plain(conflict.lost),
        "part": conflict.part or None,
        "lost_sha256": conflict.lost_sha256 or None,
        "by": conflict.by or None,
        "time": time_text(conflict.time),
    }
    return {name: value for name, value in values.items() if value is not None}


def conflict_values(conflict: RecordedConflict, length: int) -> tuple[str, str]:
    """What stands and what gave way, each on one line."""
    absent = "a longer text than is kept here; 'memfs log' has it" if conflict.lost_sha256 else "nothing"
    values = (absent if value is None else readable(value) for value in (conflict.kept, conflict.lost))
    kept, lost = (one_line(value, length) for value in values)
    return kept, lost


def origin_json(item: MemoryItem) -> dict[str, Any]:
    """The known parts of an item's origin."""
    origin = item.origin
    values = {
        "speaker": origin.speaker,
        "role": origin.role,
        "agent": origin.agent,
        "session": origin.session,
        "sequence": origin.sequence,
        "task": origin.task,
        "tool": origin.tool,
        "phase": origin.phase,
    }
    return {name: value for name, value in values.items() if value not in ("", None)}


def plain(value: Any) -> Any:
    """Mappings and sequences of any class as the ones JSON knows."""
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    return value


def readable(value: Any) -> str:
    """A value of a free field on one line, as a person would write it."""
    if isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)) and not any(isinstance(part, (Mapping, list, tuple)) for part in value):
        return ", ".join(readable(part) for part in value)
    return json.dumps(plain(value), ensure_ascii=False, default=str)


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


def problem_json(problem: Problem) -> dict[str, Any]:
    """A problem as scripts read it."""
    return {
        "path": problem.path,
        "line": problem.line,
        "code": problem.code,
        "message": problem.message,
        "hint": problem.hint,
        "severity": problem.severity,
    }


def print_problem(problem: Problem) -> None:
    """Print a problem: place, what is wrong, and what to do on a line of its own."""
    place = problem.path + (f":{problem.line}" if problem.line else "")
    colour = "red" if problem.severity == "error" else "yellow"
    print_raw(
        f"{styled(place or 'workspace', bold=True)}: {styled(problem.severity, fg=colour)}: {clean(problem.message)}"
    )
    if problem.hint:
        print_raw(styled(f"  {problem.hint}", dim=True))


def count(number: int, word: str, plural: str = "") -> str:
    """``1 problem``, ``1,200 problems``."""
    return f"{number:,} {word if number == 1 else plural or word + 's'}"


def note_problems(problems: Sequence[Problem]) -> None:
    """Name how many files need a look, on standard error."""
    if problems:
        note(f"{count(len(problems), 'problem')} in the workspace; 'memfs check' names them")


def note_partial(unread: Sequence[str]) -> None:
    """Say on standard error that something may be missing from an answer, and why."""
    files = ", ".join(unread[:3]) + (" and others" if len(unread) > 3 else "")
    reason = f"{count(len(unread), 'file')} cannot be read as it is now: {files}" if unread else "it kept changing"
    note(f"something may be missing: {reason}")


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

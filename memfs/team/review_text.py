"""Write a review's report as Markdown, in one line, or as annotations for a runner of workflows.

Nothing that a memory holds can leave the place where it is quoted: texts of others are in code spans and code blocks
only, so that no link, mention, image, heading or HTML comes of them, and hidden characters are written as escapes.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from memfs.format.text import shown
from memfs.model.problem import ERROR, WARNING
from memfs.team.review_changes import (
    ADDED,
    ARCHIVED,
    CHANGED,
    KINDS_OF_CHANGE,
    MOVED,
    NOTE,
    REMOVED,
    RETURNED,
    SEVERITIES,
    SUPERSEDED,
    AnsweredQuestion,
    ConventionChange,
    FieldChange,
    ItemChange,
    Report,
    ReviewedDocument,
    ReviewFinding,
)

LONGEST = 60_000
"""So many characters a report has at most; a comment on a pull request takes 65,536."""
_LONGEST_TEXT = 1_200
_LONGEST_VALUE = 160
_LONGEST_PATH = 300
_LONGEST_LINE = 240
_LONGEST_CHANGE = 6_000
_MOST_ROWS = 100
_MOST_LINES = 60
_COMPARED = 20_000
_PLAIN_WORD = re.compile(r"[A-Za-z0-9.,;:'()!?%=-]+(?:/[A-Za-z0-9.,;:'()!?%=-]+)*")
_WORDS = re.compile(r"""(?<!\S)(?:'[^']{2,}'|"[^"]{2,}")(?!\S)|\S+""")
_WEB = re.compile(r"www\.|://|^[0-9A-Fa-f]{7,}$|^GH-", re.IGNORECASE)
_HEADINGS = {
    ADDED: "Added",
    CHANGED: "Changed",
    SUPERSEDED: "Superseded",
    MOVED: "Moved",
    REMOVED: "Removed",
    ARCHIVED: "Archived",
    RETURNED: "Brought back",
}
_TIMES = frozenset({"updated"})


def markdown(report: Report) -> str:
    """The report as Markdown (GitHub's flavour); shortened where it would be longer than a comment may be."""
    parts = [_head(report), *filter(None, (section(report) for section in _SECTIONS))]
    rooms = _rooms([len(part) for part in parts])
    return "\n".join(_fitted(part, room) for part, room in zip(parts, rooms, strict=True))


def _rooms(lengths: Sequence[int]) -> list[int]:
    """How long each part may be: short ones as they are, the long ones alike, so that none pushes another out."""
    rooms = [0] * len(lengths)
    left = LONGEST - len(lengths)
    for done, number in enumerate(sorted(range(len(lengths)), key=lambda number: lengths[number])):
        rooms[number] = min(lengths[number], left // (len(lengths) - done))
        left -= rooms[number]
    return rooms


def _fitted(part: str, room: int) -> str:
    """A section with as many of its rows as it has room for."""
    if len(part) <= room:
        return part
    text, *rows = re.split(r"\n(?=- )", part)
    for row in rows:
        if len(text) + len(row) > room - 100:
            return f"{text}\n- and more than there is room for: `memfs review --json` has all\n"
        text += f"\n{row}"
    return text


def summary(report: Report) -> str:
    """The report in one line of plain words: what changed, and what was found."""
    counts = [(name, sum(one.what == name for one in report.items)) for name in KINDS_OF_CHANGE]
    changed = [f"{count} {_HEADINGS[name].lower()}" for name, count in counts if count]
    documents = len(report.documents)
    changed += [f"{documents} other file{'s' if documents > 1 else ''}"] if documents else []
    found = [_counted(report.count(severity), severity) for severity in SEVERITIES if report.count(severity)]
    return f"{', '.join(changed) or 'no memory changed'}; {', '.join(found) or 'nothing found'}"


def _counted(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _head(report: Report) -> str:
    verdict = "It must not go in as it is" if report.failed() else "Nothing stands against it"
    if not report.failed() and report.count(WARNING):
        verdict = "It is worth a look"
    said = summary(report)
    commits = f" ({_counted(report.commits, 'commit')})" if report.commits else ""
    rows = [
        f"## Memory review of {code(report.title)}",
        "",
        f"**{said[:1].upper()}{said[1:]}.** {verdict}{commits}.",
    ]
    if report.empty:
        rows[2:] = ["No memory changed."]
    return "\n".join(rows) + "\n"


# -- sections -----------------------------------------------------------------------------------------------------
def _finding(one: ReviewFinding) -> str:
    where = f" in {code(_cut(one.path, _LONGEST_PATH) + (f':{one.line}' if one.line else ''))}" if one.path else ""
    names = f", {code(one.id)}" if one.id and one.id not in one.path else ""
    hint = f" _{words(one.hint)}_" if one.hint and _PLAIN_WORD.fullmatch(one.hint.replace(" ", "")) else ""
    hint = hint or (f" ({words(one.hint)})" if one.hint else "")
    return f"- **{one.severity}** {code(one.code)}{where}{names}: {words(one.message)}.{hint}"


def _items(report: Report) -> str:
    parts = []
    for what in KINDS_OF_CHANGE:
        rows = [_item(one) for one in report.items if one.what == what]
        if rows:
            parts += [f"**{_HEADINGS[what]}**", "", *_bounded(rows), ""]
    return "\n".join(["### Memories", "", *parts]) if parts else ""


def _item(one: ItemChange) -> str:
    facts = [one.type, f"trust {one.trust}" if one.trust else "", *_origin(one)]
    told = ", ".join(words(fact) for fact in facts if fact)
    title = f" {code(one.title)}" if one.title else ""
    place = f", from {code(one.before)}" if one.before else ""
    place += f", to {code(one.path)}" if one.before else ""
    place += f", replaced by {code(one.by)}" if one.by else ""
    lines = [f"- {code(one.id)}{title}{f' ({told})' if told else ''}{place}"]
    if one.what == ADDED and one.text:
        lines += _indented(block(_cut(one.text, _LONGEST_TEXT)))
    told_fields = [field for field in one.fields if field.field not in _TIMES] or one.fields
    lines += _told(told_fields)
    if one.what == CHANGED and not one.fields:
        lines.append("  - only its comments, its layout or what memfs cannot read")
    return "\n".join(lines)


def _told(fields: Sequence[FieldChange]) -> Iterator[str]:
    """What became of fields; of many or long ones the first."""
    size = 0
    for number, field in enumerate(fields):
        if size > _LONGEST_CHANGE:
            yield f"  - and {_counted(len(fields) - number, 'more field')}"
            return
        for line in _field(field):
            size += len(line)
            yield line


def _origin(one: ItemChange) -> Iterator[str]:
    for name in ("speaker", "agent", "session", "tool"):
        if value := one.origin.get(name):
            yield f"{name} {value}"


def _field(one: FieldChange) -> list[str]:
    before, after = (_written(value) for value in (one.before, one.after))
    if max(len(before), len(after)) <= _LONGEST_VALUE and "\n" not in before + after:
        sides = f"{code(before) if one.before is not None else 'nothing'} → "
        return [f"  - {code(one.field)}: {sides}{code(after) if one.after is not None else 'nothing'}"]
    return [f"  - {code(one.field)}:", *_indented(block(_diff(before, after), "diff"), 4)]


def _diff(before: str, after: str) -> str:
    old, new = (_cut(text, _COMPARED).split("\n") for text in (before, after))
    lines = list(difflib.unified_diff(old, new, lineterm="", n=2))[2:]
    kept = [line for line in lines if not line.startswith("@@")] if len(lines) < _MOST_LINES else lines[:_MOST_LINES]
    missing = [f"... {len(lines) - len(kept):,} more lines"] if len(lines) > _MOST_LINES else []
    return "\n".join([*(_cut(line, _LONGEST_LINE) for line in kept), *missing])


def _convention(one: ConventionChange) -> str:
    standing = f"{code(one.before) if one.before else 'nothing'} → {code(one.after) if one.after else 'gone'}"
    facts = [f"owner {code(one.owner)}" if one.owner else "no owner"]
    facts += [f"for {', '.join(map(code, one.scope))}" if one.scope else "for all files"]
    facts += [f"supersedes {', '.join(map(code, one.supersedes))}"] if one.supersedes else []
    return "\n".join([f"- {code(one.id)}: {standing} ({'; '.join(facts)})", *_indented(block(_cut(one.text, 400)))])


def _document(one: ReviewedDocument) -> str:
    return "\n".join([f"- {one.what}: {code(_cut(one.path, _LONGEST_PATH))}", *_told(one.fields[:20])])


def _questions(report: Report) -> str:
    told = [_answered(one) for one in report.questions if one.differs or one.missing]
    same = len(report.questions) - len(told)
    if not report.questions:
        return ""
    rows = [*told, *([f"- {_counted(same, 'question')} answered as before"] if same else [])]
    return _section("Pinned questions", rows)


def _answered(one: AnsweredQuestion) -> str:
    lines = [f"- {code(one.ask)}"]
    before = one.before or ()
    for place, name in enumerate(one.after, 1):
        was = before.index(name) + 1 if name in before else 0
        moved = "new" if not was else "" if was == place else f"was {was}."
        moved = moved or ("says something else" if name in one.changed else "")
        lines.append(f"  {place}. {code(name)}{f' ({moved})' if moved and one.before is not None else ''}")
    lines += [f"  - gone: {code(name)} (was {place}.)" for place, name in enumerate(before, 1) if name not in one.after]
    lines += [f"  - **expected, and missing**: {code(name)}" for name in one.missing]
    return "\n".join(lines)


def _section(title: str, rows: Iterable[str]) -> str:
    given = list(rows)
    return "\n".join([f"### {title}", "", *_bounded(given), ""]) if given else ""


def _bounded(rows: Sequence[str]) -> list[str]:
    more = [f"- and {len(rows) - _MOST_ROWS:,} more"] if len(rows) > _MOST_ROWS else []
    return [*rows[:_MOST_ROWS], *more]


_SECTIONS: tuple[Callable[[Report], str], ...] = (
    lambda report: _section("Found", map(_finding, report.findings)),
    _questions,
    lambda report: _section("Conventions", map(_convention, report.conventions)),
    _items,
    lambda report: _section("Other files", map(_document, report.documents)),
)


# -- quoting ------------------------------------------------------------------------------------------------------
def code(text: str) -> str:
    """A text of somebody else's as a code span on one line."""
    plain = " ".join(shown(text).split()) or " "
    fence = "`" * (max((len(run) for run in re.findall("`+", plain)), default=0) + 1)
    room = " " if "`" in plain else ""
    return f"{fence}{room}{plain}{room}{fence}"


def block(text: str, language: str = "text") -> list[str]:
    """A text of somebody else's as the lines of a code block, which nothing in it can end."""
    plain = shown(text.replace("\r\n", "\n").replace("\r", "\n"))
    fence = "`" * max(3, max((len(run) for run in re.findall("`+", plain)), default=0) + 1)
    return [f"{fence}{language}", *plain.split("\n"), fence]


def words(text: str) -> str:
    """A sentence in which what it quotes, and each word that could be more than a word, is in a code span."""
    told: list[str] = []
    risky: list[str] = []
    for word in _WORDS.findall(shown(text)):
        quoted = len(word) > 2 and word[0] == word[-1] and word[0] in "'\""
        if quoted or not _PLAIN_WORD.fullmatch(word) or _WEB.search(word):
            risky.append(word[1:-1] if quoted else word)
        else:
            told += [code(" ".join(risky)), word] if risky else [word]
            risky = []
    return " ".join([*told, *([code(" ".join(risky))] if risky else [])])


def _written(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False, default=str)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most].rstrip()}\u2026 ({len(text) - most:,} more characters)"


def _indented(lines: Iterable[str], depth: int = 2) -> list[str]:
    return [" " * depth + line if line else "" for line in lines]


_NAMES = {ERROR: "error", WARNING: "warning", NOTE: "notice"}
_MOST = 50
"""GitHub shows ten of each sort for a step; the others stand in the log."""


def commands(report: Report) -> Iterator[str]:
    """The lines to print: a command for each finding, the worst first, and a line that sums up."""
    for one in report.findings[:_MOST]:
        yield _command(one, report.prefix)
    if len(report.findings) > _MOST:
        yield f"and {len(report.findings) - _MOST} more findings"
    yield f"memfs: {_message(summary(report))}"


def _command(one: ReviewFinding, prefix: str) -> str:
    path = f"{prefix}/{one.path}" if prefix and one.path else one.path
    properties = {"file": path, "line": str(one.line or 1) if path else "", "title": f"memfs: {one.code}"}
    told = ",".join(f"{name}={_property(value)}" for name, value in properties.items() if value)
    hint = f" ({one.hint})" if one.hint else ""
    return f"::{_NAMES[one.severity]} {told}::{_message(one.message + hint)}"


def _message(text: str) -> str:
    return shown(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")

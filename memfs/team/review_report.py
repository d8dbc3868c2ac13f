"""What a review reports of a change between two sides, and the report as Markdown or in one line.

An item is followed by its id, whatever its path; differences are listed field by field. Nothing that a memory holds
can leave the place where it is quoted: texts of others are in code spans and code blocks only, so that no link,
mention, image, heading or HTML comes of them, and hidden characters are written as escapes.
"""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from memfs.config import kinds_in
from memfs.config_names import KINDS, SETTINGS_FILE
from memfs.dataclass import dataclass, field, replace
from memfs.errors import ERROR, WARNING, ContentError, MemfsError, Problem, SchemaRefForbidden, SettingInvalid
from memfs.format.codec import PRUNED, Codec, parse
from memfs.format.item_fields import values
from memfs.format.plain import DOCUMENT_PARTS
from memfs.format.text import shown
from memfs.git.objects import TreeEntry
from memfs.git.repository import Repository
from memfs.learning.conventions import Convention
from memfs.model import KindTable, MemoryItem
from memfs.model.ids import stem_of
from memfs.model.item import gist
from memfs.model.kinds import CONVENTION
from memfs.model.state_facts import texts
from memfs.recall import conflict_notes
from memfs.store.parts import CONTENT, ITEM_SUFFIXES, READ_LIMIT, is_item
from memfs.team.asof import RevisionFiles

NOTE = "note"
"""Worth knowing; it fails nothing."""
SEVERITIES = (ERROR, WARNING, NOTE)
ADDED, CHANGED, MOVED, SUPERSEDED, REMOVED = "added", "changed", "moved", "superseded", "removed"
KINDS_OF_CHANGE = (ADDED, CHANGED, SUPERSEDED, MOVED, REMOVED)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewFinding:
    """One thing a reviewer should know.

    Attributes:
        severity: ``error`` (fails the check), ``warning`` (fails it where that is asked for) or ``note``.
        code: its stable name; an error's class name where an error was behind it.
        message: what was found, in a sentence.
        path: the file, below the workspace; "" where it is about none.
        line: 1-based, None where there is none.
        id: the item it is about, "" where there is none.
        other: a second item, such as the one that says otherwise.
        hint: what to do.
    """

    severity: str
    code: str
    message: str
    path: str = ""
    line: int | None = None
    id: str = ""
    other: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldChange:
    """One field that differs: its dotted name, and its plain values; None where it was or is not there."""

    field: str
    before: Any = None
    after: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemChange:
    """What became of one item.

    Attributes:
        what: ``added``, ``changed``, ``moved`` (also into the archive, or back), ``superseded`` or ``removed``.
        id, type, title: of the item as it is, or as it was where it is gone.
        text: what it says; "" where its file cannot be read.
        path: where it is, or was.
        before: where it lay before, "" where that is the same or it was not there.
        by: the item that replaces a superseded one, "" where none says so.
        standing: of a convention its status and owner, what it supersedes, and its scope; "" of others.
        trust: who vouches for it.
        origin: who said it, by part.
        fields: what differs, in the order of the file; none for what was added or is gone.
    """

    what: str
    id: str
    type: str
    path: str
    title: str = ""
    text: str = ""
    before: str = ""
    by: str = ""
    standing: str = ""
    trust: str = ""
    origin: Mapping[str, Any] = field(default_factory=dict)
    fields: tuple[FieldChange, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewedDocument:
    """A file that is no item, such as settings or a state document: what became of it, and its keys that differ."""

    what: str
    path: str
    fields: tuple[FieldChange, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a change does to memory.

    Attributes:
        base, head: the commits that were compared; ``base`` is "" where there is none.
        title: what was asked for, such as ``main..work``.
        items, documents: what changed.
        findings: what a reviewer should know, the worst first.
        commits: how many commits the change consists of.
    """

    base: str
    head: str
    title: str
    items: tuple[ItemChange, ...] = ()
    documents: tuple[ReviewedDocument, ...] = ()
    findings: tuple[ReviewFinding, ...] = ()
    commits: int = 0

    @property
    def empty(self) -> bool:
        """Whether nothing of memory changed."""
        return not (self.items or self.documents or self.findings)

    def count(self, severity: str) -> int:
        """How many findings of a severity there are."""
        return sum(found.severity == severity for found in self.findings)

    def failed(self, *, strict: bool = False) -> bool:
        """Whether the change must not be merged as it is: there are errors, or, where strict, warnings."""
        return bool(self.count(ERROR) or (strict and self.count(WARNING)))


def in_order(found: list[ReviewFinding]) -> tuple[ReviewFinding, ...]:
    """Findings, the worst first, each once."""
    rank = {severity: number for number, severity in enumerate(SEVERITIES)}
    unique = dict.fromkeys(found)
    return tuple(sorted(unique, key=lambda one: (rank[one.severity], one.path, one.line or 0, one.code, one.other)))


_CODES = {
    ERROR: "ConflictMarkers DuplicateId HiddenInstruction LinkInMemory SecretInHistory SuspectName",
    WARNING: "AttributesChanged Contradiction MergeConflict NearDuplicate NotAsked NotLookedInto SecretAllowed "
    "TrustClaimed TrustRaised",
    NOTE: "HistoryNotRead InstructionQuoted NotCompared PossibleSecret",
}
CODES = {code: severity for severity, codes in _CODES.items() for code in codes.split()}
"""The severity of each code; ``docs/teams/review.md`` says what they mean."""


def finding(name: str, message: str, *, severity: str = "", **where: Any) -> ReviewFinding:
    """A finding of the table; ``severity`` only where this one is less grave than the table says."""
    return ReviewFinding(severity=severity or CODES[name], code=name, message=message, **where)


def of_error(error: MemfsError, path: str) -> ReviewFinding:
    """What an error says of a file."""
    return of_problem(Problem.of(error, path), path)


def of_problem(problem: Problem, path: str) -> ReviewFinding:
    """A problem as a finding."""
    severity = problem.severity if problem.severity in (ERROR, WARNING) else NOTE
    return ReviewFinding(
        severity=severity, code=problem.code, message=problem.message, path=path, line=problem.line, hint=problem.hint
    )


class Side:
    """One side of a comparison: the memory as a commit has it.

    Attributes:
        files: what it holds.
        time: when it was committed.
        kinds: the types of memory there were; ``broken_kinds`` says why they could not be read.
        codec: reads its files.
    """

    def __init__(self, repository: Repository, commit: str, invisible: bool) -> None:
        """
        Args:
            invisible: whether the workspace allows characters that nobody sees.

        Raises:
            HistoryUnavailable: the commit or its trees are not there, or damaged.
        """
        self.time = repository.commit_object(commit).time
        self.files = RevisionFiles(repository, commit, self.time)
        self.kinds, schemas = KindTable(), None
        self.broken_kinds: MemfsError | None = None
        try:
            self.kinds, schemas = kinds_in(self.data(KINDS), self.files.root)
        except (ContentError, SettingInvalid, SchemaRefForbidden) as error:
            self.broken_kinds = error
        self.codec = Codec(schemas, self.kinds, invisible)
        self._items: dict[str, MemoryItem | MemfsError] = {}

    # -- reading --------------------------------------------------------------------------------------------------
    @property
    def entries(self) -> Mapping[str, TreeEntry]:
        """What each path names."""
        return self.files.entries

    def data(self, path: str) -> bytes | None:
        """The content of a file; None where there is none, or it is larger than memfs reads."""
        return self.files.get(path) if self.files.size(path) <= READ_LIMIT else None

    def is_item(self, path: str) -> bool:
        """Whether a file at this path is an item that recall finds."""
        return is_item(path, self.kinds)

    def is_archived(self, path: str) -> bool:
        """Whether an item at this path made room for others."""
        return path.startswith(f"{PRUNED}/") and path.endswith(ITEM_SUFFIXES)

    @cached_property
    def items(self) -> tuple[str, ...]:
        """The paths of all items."""
        return tuple(path for path in self.entries if self.is_item(path))

    def item(self, path: str) -> MemoryItem | MemfsError | None:
        """The item in a file, or what is wrong with it; None where there is no such file."""
        data = self.data(path) if path not in self._items else None
        if data is None:
            return self._items.get(path)
        place = path
        try:
            if self.is_archived(path):  # its type is the folder it is in
                kind = self.kinds.get(path.removeprefix(f"{PRUNED}/").partition("/")[0])
                place = f"{CONTENT}/{kind.folder}/{path.rpartition('/')[2]}"
            self._items[path] = self.codec.read(data, place, self.time).replace(path=path)
        except MemfsError as error:
            self._items[path] = error
        return self._items[path]

    def readable(self, path: str) -> MemoryItem | None:
        """The item in a file that can be read."""
        found = self.item(path)
        return found if isinstance(found, MemoryItem) else None


_FREE = ("origin", "context", "metadata", "data")
_MOST_FIELDS = 60
_ABSENT: Any = object()
_UNREPORTED = (f"{CONTENT}/.schemas/", f"{CONTENT}/.gitattributes", f"{CONTENT}/.gitignore")


@dataclass(frozen=True, slots=True)
class ChangedPaths:
    """The paths that differ: those of items, those in the archive among them, and the others."""

    items: tuple[str, ...]
    others: tuple[str, ...]

    @property
    def every(self) -> tuple[str, ...]:
        """All of them, in order."""
        return tuple(sorted((*self.items, *self.others)))


def changed_between(before: Side, after: Side) -> ChangedPaths:
    """The paths at which the sides hold different contents, or different sorts of files."""
    differ = [
        path
        for path in before.entries.keys() | after.entries.keys()
        if before.entries.get(path) != after.entries.get(path)
    ]
    items = {path for path in differ if before.is_item(path) or after.is_item(path) or after.is_archived(path)}
    return ChangedPaths(tuple(sorted(items)), tuple(sorted({*differ} - items)))


# -- items --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class ReviewedItem:
    """What became of an item, and the item as it was and as it is; None where there is none, or none can be read."""

    change: ItemChange
    old: MemoryItem | None
    new: MemoryItem | None


def item_changes(before: Side, after: Side, changed: ChangedPaths) -> list[ReviewedItem]:
    """What became of each item, by id."""
    was, is_now = _by_id(before, changed.items), _by_id(after, changed.items)
    found = []
    for name in sorted(was.keys() | is_now.keys()):
        old, new = was.get(name), is_now.get(name)
        if old is not None and new is not None:
            moved = old != new
            found.append(_described(after, MOVED if moved else CHANGED, name, new, old if moved else ""))
        elif new is not None:
            found.append(_described(after, ADDED, name, new))
        elif old is not None:
            found.append(_described(before, REMOVED, name, old))
    replacing = [item for path in is_now.values() if (item := after.readable(path)) is not None]
    return [_compared(one, before, after, replacing) for one in found]


def _by_id(side: Side, paths: Iterable[str]) -> dict[str, str]:
    """Where each id is; of twins the first path."""
    found: dict[str, str] = {}
    for path in paths:
        if path in side.entries:
            found.setdefault(stem_of(path).casefold(), path)
    return found


def _compared(one: ItemChange, before: Side, after: Side, others: Iterable[MemoryItem]) -> ReviewedItem:
    """A change with its fields; of an item that is not what holds any more, as that."""
    old = before.readable(one.before or one.path)
    new = after.readable(one.path) if one.what != REMOVED else None
    if new is None or one.what not in (CHANGED, MOVED):
        return ReviewedItem(one, old, new)
    if old is not None:
        # What names no time itself has that of the revision: it did not change.
        untimed = (old.timestamp, new.timestamp) == (before.time, after.time)
        typed = (FieldChange(field="type", before=old.type, after=new.type),) if old.type != new.type else ()
        found = field_changes(values(old), values(new))
        one = replace(one, fields=typed + tuple(each for each in found if not (untimed and each.field == "timestamp")))
    if new.status == conflict_notes.SUPERSEDED and (old is None or old.status != new.status):
        by = next((link.to for link in new.links if link.relation == conflict_notes.SUPERSEDED_BY), "")
        by = by or next((other.id for other in others if new.id in other.supersedes), "")
        one = replace(one, what=SUPERSEDED, by=by)
    return ReviewedItem(one, old, new)


def _described(side: Side, what: str, name: str, path: str, before: str = "") -> ItemChange:
    item = side.readable(path)
    if item is None:
        return ItemChange(what=what, id=stem_of(path) or name, type="", path=path, before=before)
    return ItemChange(
        what=what,
        id=item.id,
        type=item.type,
        title=item.title,
        text=gist(item),
        path=path,
        before=before,
        standing=_agreed(item) if item.type == CONVENTION else "",
        trust=item.trust,
        origin=values(item)["origin"],
    )


def _agreed(item: MemoryItem) -> str:
    """The state of a convention: its status and owner, what it supersedes, and its scope."""
    owner, scope = item.data.get("owner", ""), Convention(item).scope
    facts = [item.status or "no status", f"owner {owner}" if owner else "no owner"]
    facts += [f"supersedes {', '.join(item.supersedes)}"] if item.supersedes else []
    facts += [f"for {', '.join(scope)}" if scope else "for all files"]
    return "; ".join(facts)


def field_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[FieldChange, ...]:
    """What differs, free fields leaf by leaf."""
    old, new = dict(_leaves(before)), dict(_leaves(after))
    order = dict.fromkeys((*new, *old))
    return tuple(
        FieldChange(field=name, before=old.get(name), after=new.get(name))
        for name in order
        if old.get(name, _ABSENT) != new.get(name, _ABSENT) and not (old.get(name) is None and new.get(name) is None)
    )[:_MOST_FIELDS]


def _leaves(mapping: Mapping[str, Any], above: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    for name, value in mapping.items():
        where = f"{above}.{name}" if above else str(name)
        if isinstance(value, Mapping) and (above or name in _FREE) and depth < 8:
            yield from _leaves(value, where, depth + 1)
        else:
            yield where, value


# -- documents ----------------------------------------------------------------------------------------------------
def document_changes(before: Side, after: Side, changed: ChangedPaths) -> list[ReviewedDocument]:
    """What became of settings, context and state documents; of one that cannot be read no keys."""
    found = []
    for path in changed.others:
        if path.startswith(_UNREPORTED):
            continue
        old, new = before.entries.get(path), after.entries.get(path)
        what = CHANGED if old and new else ADDED if new else REMOVED
        differ: tuple[FieldChange, ...] = ()
        if what == CHANGED:
            was, is_now = mapping_in(before.data(path), path), mapping_in(after.data(path), path)
            if was is not None and is_now is not None:
                changes = field_changes({"data": was}, {"data": is_now})
                differ = tuple(replace(one, field=one.field.removeprefix("data.")) for one in changes)
        found.append(ReviewedDocument(what=what, path=path, fields=differ))
    return found


def mapping_in(data: bytes | None, path: str) -> Mapping[str, Any] | None:
    """The keys and values of a document; none for one that is not there, None for one that cannot be read."""
    if data is None:
        return {}
    try:
        if path == SETTINGS_FILE:
            return tomllib.loads(data.decode("utf-8-sig"))
        return parse(data, path, allow_invisible=True, parts=DOCUMENT_PARTS).mapping
    except (MemfsError, ValueError, RecursionError):
        return None


def texts_of(item: MemoryItem) -> tuple[tuple[str, str], ...]:
    """The texts of an item that a model may come to read, with their fields."""
    found = [("title", item.title), ("content", item.content), ("tags", "\n".join(item.tags))]
    free = {name: getattr(item, name) for name in ("context", "metadata", "data")}
    for name, value in _leaves(free):
        found += [(name, text) for text in texts(value)]
    origin = item.origin
    found += [
        (f"origin.{name}", getattr(origin, name)) for name in ("speaker", "role", "agent", "task", "tool", "phase")
    ]
    return tuple((name, text) for name, text in found if text)


LONGEST = 60_000
"""The most characters of a report; a comment on a pull request takes 65,536."""
_LONGEST_TEXT = 1_200
_LONGEST_VALUE = 160
_LONGEST_PATH = 300
_LONGEST_LINE = 240
_LONGEST_CHANGE = 6_000
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
}
_TIMES = frozenset({"updated"})


def markdown(report: Report) -> str:
    """The report as Markdown (GitHub's flavour); shortened where it would be longer than a comment may be."""
    items: list[str] = []
    for what in KINDS_OF_CHANGE:
        rows = [_item(one) for one in report.items if one.what == what]
        items += [f"**{_HEADINGS[what]}**", "", *rows, ""] if rows else []
    files = [
        "\n".join([f"- {one.what}: {code(_cut(one.path, _LONGEST_PATH))}", *_field_lines(one.fields)])
        for one in report.documents
    ]
    sections = {
        "Found": [*map(_finding, report.findings), ""],
        "Memories": items,
        "Other files": [*files, ""],
    }
    parts = [_head(report), *("\n".join([f"### {title}", "", *rows]) for title, rows in sections.items() if any(rows))]
    room = LONGEST if sum(map(len, parts)) < LONGEST - len(parts) else LONGEST // len(parts) - 1
    return "\n".join(_fitted(part, room) for part in parts)


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
    verdict = "Do not merge it as it is" if report.failed() else "No objections"
    if not report.failed() and report.count(WARNING):
        verdict = "It is worth a look"
    text = summary(report)
    commits = f" ({_counted(report.commits, 'commit')})" if report.commits else ""
    rows = [f"## Memory review of {code(report.title)}", "", f"**{text[:1].upper()}{text[1:]}.** {verdict}{commits}."]
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


def _item(one: ItemChange) -> str:
    vouched = [f"trust {one.trust}"] if one.trust else []
    said = ((name, one.origin.get(name)) for name in ("speaker", "agent", "session", "tool"))
    vouched += [f"{name} {value}" for name, value in said if value]
    facts = ", ".join(words(fact) for fact in (one.type, one.standing, *vouched) if fact)
    title = f" {code(one.title)}" if one.title else ""
    place = f", from {code(one.before)}" if one.before else ""
    place += f", to {code(one.path)}" if one.before else ""
    place += f", replaced by {code(one.by)}" if one.by else ""
    lines = [f"- {code(one.id)}{title}{f' ({facts})' if facts else ''}{place}"]
    if one.what == ADDED and one.text:
        lines += _indented(block(_cut(one.text, _LONGEST_TEXT)))
    fields = [field for field in one.fields if field.field not in _TIMES] or one.fields
    lines += _field_lines(fields)
    if one.what == CHANGED and not one.fields:
        lines.append("  - only its comments, its layout or what memfs cannot read")
    return "\n".join(lines)


def _field_lines(fields: Sequence[FieldChange]) -> list[str]:
    """What became of fields; of many or long ones the first."""
    lines: list[str] = []
    for number, one in enumerate(fields):
        if sum(map(len, lines)) > _LONGEST_CHANGE:
            return [*lines, f"  - and {_counted(len(fields) - number, 'more field')}"]
        before, after = (_written(value) for value in (one.before, one.after))
        if max(len(before), len(after)) <= _LONGEST_VALUE and "\n" not in before + after:
            sides = f"{code(before) if one.before is not None else 'nothing'} → "
            lines.append(f"  - {code(one.field)}: {sides}{code(after) if one.after is not None else 'nothing'}")
        else:
            lines += [f"  - {code(one.field)}:", *_indented(block(_diff(before, after), "diff"), 4)]
    return lines


def _diff(before: str, after: str) -> str:
    old, new = (_cut(text, _COMPARED).split("\n") for text in (before, after))
    lines = list(difflib.unified_diff(old, new, lineterm="", n=2))[2:]
    kept = [line for line in lines if not line.startswith("@@")] if len(lines) < _MOST_LINES else lines[:_MOST_LINES]
    missing = [f"... {len(lines) - len(kept):,} more lines"] if len(lines) > _MOST_LINES else []
    return "\n".join([*(_cut(line, _LONGEST_LINE) for line in kept), *missing])


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
    parts: list[str] = []
    risky: list[str] = []
    for word in _WORDS.findall(shown(text)):
        quoted = len(word) > 2 and word[0] == word[-1] and word[0] in "'\""
        if quoted or not _PLAIN_WORD.fullmatch(word) or _WEB.search(word):
            risky.append(word[1:-1] if quoted else word)
        else:
            parts += [code(" ".join(risky)), word] if risky else [word]
            risky = []
    return " ".join([*parts, *([code(" ".join(risky))] if risky else [])])


def _written(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False, default=str)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most].rstrip()}\u2026 ({len(text) - most:,} more characters)"


def _indented(lines: Iterable[str], depth: int = 2) -> list[str]:
    return [" " * depth + line if line else "" for line in lines]

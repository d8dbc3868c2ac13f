"""Tells versions of a fact: whether two statements cannot both hold, and which of two items says it as it is now.

Decided offline: one denies what the other says, states another value of the same thing, or reverses a preference.
Precision comes before recall: two statements that may both be true are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import product

from memfs.dataclass import NamedTuple
from memfs.format.text import shortened, shown_line
from memfs.model import EarlierVersion, MemoryItem
from memfs.model.ids import of_mount
from memfs.model.item import VOUCHED, gist
from memfs.model.kinds import ACCEPTED, CONVENTION
from memfs.recall.conflict_notes import COMPATIBLE, CONTRADICTS, OVER, SUPERSEDED_BY
from memfs.recall.similarity import normalised
from memfs.resources import word_lists
from memfs.search.analyzer import terms
from memfs.startup import regex

LOOKED_INTO = 5_000
"""How many letters of a text are looked into."""
_MOST_SENTENCES = 8
_MOST_WORDS = 60
_MOST_CHANGED = 3

_WORD = regex(r"[\w$€£#~@/+-]+(?:[.,:'/@+-]\w+)*%?|[=]")
_SENTENCE = regex(r"(?<=[.!?;])\s+|\n+")
_WORDS = word_lists()["statements"]
_SHORT_FORMS: Mapping[str, str] = _WORDS["short_forms"]
_DENIALS = frozenset({"not", "never", "no", "nobody", "nothing", "none", "neither", "without"})
_IDLE, _NUMBERED, _HOLDS, _HAPPENED = (
    frozenset(_WORDS[name].split()) for name in ("idle", "numbered", "holds", "happened")
)
_FORMS = {"are": "is", "was": "is", "were": "is", "be": "is", "been": "is", "=": "is", "equals": "is"}
_OPPOSED = frozenset(frozenset(pair.split()) for pair in _WORDS["opposites"])
_CLASSES = tuple(frozenset(names.split()) for names in _WORDS["classes"])
# A number after a numbered word names a thing; another number then is another thing.
_FIGURE = regex(r"[$€£v~]?\d[\d.,:]*(?:%|[a-zA-Z]{1,3})?")
_NAME = regex(r".*[A-Z0-9_./:@].*")
_CONDITIONS = frozenset({"if", "when", "while", "unless", "until", "whether", "where"})
_FOR = frozenset({"for", "as", "in", "on", "when", "during", "instead", "by", "with"})
_ONE_ONLY = frozenset({"chosen", "choice", "default", "primary", "only", "main", "official", "standard"})
_OVER = regex(r"\b(?:over|rather than|instead of|, ?not|than|before)\b")
_FIRST_PERSON = regex(r"\b(?:i|my|me|mine|i'm|i've)\b", re.I)


class _Statement(NamedTuple):
    """A sentence: its significant words as written and as stems, whether it denies, how many words are a condition."""

    words: tuple[str, ...]
    stems: tuple[str, ...]
    denies: bool
    text: str
    condition: int = 0


def contradiction(one: str, other: str) -> str:
    """Why the two texts cannot both hold, in one sentence; "" where they can, or where that is unknown."""
    for first, second in product(_sentences(one[:LOOKED_INTO]), _sentences(other[:LOOKED_INTO])):
        if reason := _opposed(first, second):
            return reason
    return ""


def traces(text: str) -> frozenset[int]:
    """Numbers for a text: two texts share one wherever ``contradiction`` may have an answer; the same in one process.

    Two sentences that contradict each other have the same stems, or the same before and behind at most three words.
    """
    found: set[int] = set()
    for statement in _sentences(text[:LOOKED_INTO]):
        stems = statement.stems
        found.add(hash(tuple(sorted(stems))))
        for length in range(1, min(_MOST_CHANGED, len(stems) - 1) + 1):
            found.update(hash((stems[:at], None, stems[at + length :])) for at in range(len(stems) - length + 1))
    return frozenset(found)


def is_personal(text: str) -> bool:
    """Whether it speaks of its speaker, so that another speaker's words are about someone else."""
    return _FIRST_PERSON.search(text) is not None


def _opposed(one: _Statement, other: _Statement) -> str:
    if one.stems == other.stems:
        return "one denies what the other says" if one.denies != other.denies and len(one.stems) > 1 else ""
    if one.denies != other.denies:
        return ""
    if len(one.stems) == len(other.stems) and sorted(one.stems) == sorted(other.stems):
        if not (_OVER.search(one.text) and _OVER.search(other.text)):
            return ""
        differ = [place for place, pair in enumerate(zip(one.stems, other.stems, strict=True)) if pair[0] != pair[1]]
        swapped = len(differ) == 2 and one.stems[differ[0]] == other.stems[differ[1]]
        return "one reverses what the other prefers" if swapped else ""  # ``tabs over spaces`` and the reverse
    start, end = _common(one.stems, other.stems)
    mine, theirs = (each.words[start : len(each.words) - end] for each in (one, other))
    if not (0 < len(mine) <= _MOST_CHANGED and 0 < len(theirs) <= _MOST_CHANGED):
        return ""
    says, said = " ".join(mine), " ".join(theirs)
    opposed = frozenset({says.casefold(), said.casefold()}) in _OPPOSED and start + end > 0 and start >= one.condition
    least = 1 if _names_value(one.text) else 2
    if opposed or (start + end >= least and _is_another_value(one, mine, theirs, start, end)):
        return f"they disagree: {says} and {said}"
    return ""


def _common(one: Sequence[str], other: Sequence[str]) -> tuple[int, int]:
    """How many stems the two begin with, and how many they end with, in common."""
    most = min(len(one), len(other))
    start = next((index for index in range(most) if one[index] != other[index]), most)
    end = next((index for index in range(most - start) if one[-1 - index] != other[-1 - index]), most - start)
    return start, end


def _is_another_value(statement: _Statement, mine: Sequence[str], theirs: Sequence[str], start: int, end: int) -> bool:
    """Whether the changed words are two values of what can have one only."""
    if start < statement.condition:
        return False
    before = [word.casefold() for word in statement.words[:start]]
    after = [word.casefold() for word in statement.words[len(statement.words) - end :]] if end else []
    if not before or _HAPPENED & {*before, *after}:
        return False
    is_habit = before[-1] == "every" and not _FIRST_PERSON.search(statement.text)
    if not (is_habit or _HOLDS & {*before, *after} or _names_value(statement.text)):
        return False
    if all(_figures(part) for part in (mine, theirs)):
        return before[-1] not in _NUMBERED and _units(mine) == _units(theirs)
    if any(_figures(part) for part in (mine, theirs)) or _names_place(before):
        return False
    if len(mine) == len(theirs) == 1:
        values = {mine[0].casefold(), theirs[0].casefold()}
        if any(values <= names for names in _CLASSES) or ("is" in before and _ONE_ONLY & {*before, *after}):
            return True
    return all(_NAME.fullmatch(word) for word in (mine[0], theirs[0])) and _excludes(before, after)


def _names_place(before: Sequence[str]) -> bool:
    """Whether a value is given, so that what follows only says where or when it holds: ``is 5 s in staging``."""
    return before[-1] in _FOR and len(before) > 1 and any(_figures([word]) for word in before[:-1])


def _names_value(text: str) -> bool:
    return re.search(r"^[^:=]{2,60}[:=]\s", text) is not None


def _figures(words: Sequence[str]) -> list[str]:
    return [word for word in words if _FIGURE.fullmatch(word)]


def _units(words: Sequence[str]) -> list[str]:
    """What is beside the number: two values are of one thing only where that is the same."""
    beside = [word.casefold().rstrip("s") for word in words if not _FIGURE.fullmatch(word)]
    return beside + [re.sub(r"[\d.,:]+", "", word) for word in _figures(words)]


def _excludes(before: Sequence[str], after: Sequence[str]) -> bool:
    """Whether what comes before and after leaves room for one name only."""
    verb = next((word for word in reversed(before) if word in _HOLDS), "")
    if verb in ("use", "uses", "using"):
        return bool(after and after[0] in _FOR) or bool(_ONE_ONLY & {*before, *after})
    if verb in ("prefers", "prefer", "speaks", "contains", "requires", "needs", "holds", "owns"):
        return bool(_ONE_ONLY & {*before, *after})
    return bool(verb)


# -- sentences ----------------------------------------------------------------------------------------------------
@lru_cache(maxsize=512)
def _sentences(text: str) -> tuple[_Statement, ...]:
    parts = [part for part in _SENTENCE.split(text) if part.strip()]
    return tuple(statement for statement in map(_statement_of, parts[:_MOST_SENTENCES]) if len(statement.words) > 1)


def _statement_of(sentence: str) -> _Statement:
    words: list[str] = []
    denies = False
    written = _WORD.findall(sentence.replace("\u2019", "'"))
    for word in " ".join([_SHORT_FORMS.get(one.casefold(), one) for one in written]).split():
        folded = word.casefold()
        if folded in _DENIALS:
            denies = not denies
        elif folded not in _IDLE:
            words.append(word)
    words = words[:_MOST_WORDS]
    first, comma, _ = sentence.partition(",")
    condition = len(_statement_of(first).words) if comma and words and words[0].casefold() in _CONDITIONS else 0
    return _Statement(tuple(words), tuple(map(_stem, words)), denies, sentence, condition)


def _stem(word: str) -> str:
    folded = word.casefold()
    if folded in _FORMS:
        return _FORMS[folded]
    if not folded.isalpha():
        return folded
    return (terms(folded) or [folded])[0]


# -- items --------------------------------------------------------------------------------------------------------
MOMENTARY = frozenset({"conversation", "interaction", "error_log", "task_history", "pattern", "note", "entry"})
"""Items of these types describe their moment, and contradict no other."""
_OTHERS = MOMENTARY | {CONVENTION, "episodic", "prospective", "rule", "working"}
"""Types whose items are versions of one another only where they are linked so."""
_BRIEF = 300
"""The most letters of what is one statement or a few; what is longer has facts beside the one that changed."""
_SHOWN = 100
_CHANGES = (
    "moved|changed|switched|updated|raised|lowered|increased|decreased|reduced|extended|shortened|shifted|bumped|"
    "postponed|rescheduled|renamed"
)
_FROM = r"(?:\s+from\s+[^,.;]{1,40}?)?"
# What says a change as what holds since: "X moved from A to B" and "we moved X to B" as "X is B", "we moved to B for Y"
# as "we use B for Y".
_PASSIVE = regex(
    rf"\s+(?:(?:has|have|had|was|were|is|are|been|got|just|now|recently)\s+)*(?:{_CHANGES}){_FROM}\s+to\s+", re.I
)
_ACTIVE = regex(
    rf"^(?:we|i|they|he|she|you)\s+(?:(?:have|has|just|now|recently)\s+)*(?:{_CHANGES})\s+"
    rf"((?:the|our|my|its|their)\s+[^,.;]{{2,60}}?){_FROM}\s+to\s+",
    re.I,
)
_ADOPTED = regex(
    rf"^((?:we|i|they|he|she|you)\s+)(?:(?:have|has|just|now|recently)\s+)*(?:{_CHANGES}|migrated){_FROM}\s+to"
    r"(?=\s+[^,.;]{2,60}?\s(?:as|for)\s)",
    re.I,
)
_AT = regex(r"\b(is|are|was|were)\s+(?:at|in|on)\s+", re.I)
_PAST = regex(
    r"\b(?:before|previous(?:ly)?|former(?:ly)?|original(?:ly)?|initial(?:ly)?|earlier|past|history|used to|at first|"
    r"chang(?:e|es|ed)|old(?:er)?|prior|back then|at the time|until|previo\w*|anterior\w*|avant|antes|prima|eerder|"
    r"voorheen|fr\u00fcher\w*|vorher\w*|"
    r"bisher\w*|urspr\u00fcnglich\w*|\u0440\u0430\u043d\u044c\u0448\u0435|\u043f\u0440\u0435\u0436\u0434\u0435)\b|\u4ee5\u524d|\u4e4b\u524d",
    re.I,
)


def asks_for_earlier(question: str) -> bool:
    """Whether a question may be about what was, so that earlier versions answer it as well as the newest."""
    return _PAST.search(question) is not None


def is_earlier(older: MemoryItem, newer: MemoryItem) -> bool:
    """Whether an item is an earlier version of what another one says.

    It is where one of them says so (``supersedes``, ``superseded_by``), and where both are brief, of one type and
    matter, and of the later one each statement repeats the older one's or gives another value. What does not hold, or
    no one vouches for where the older is vouched for, replaces nothing.
    """
    if of_mount(older.id) != of_mount(newer.id) or not _holds(newer):
        return False
    if older.trust in VOUCHED and newer.trust not in VOUCHED:
        return False
    if older.id in newer.supersedes or _linked(older, newer, SUPERSEDED_BY):
        return True
    before, since = older.timestamp or older.created, newer.timestamp or newer.created
    if before is None or since is None or not before < since or not _of_one_matter(older, newer):
        return False
    statements = _sentences(_as_it_is(older.content))
    if len(statements) == 1 and (_linked(older, newer, CONTRADICTS) or _linked(newer, older, CONTRADICTS)):
        return True
    titles = normalised(older.title), normalised(newer.title)
    if all(titles) and titles[0] != titles[1] and not _replaces(newer.title, older.title):
        return False
    return _replaces(newer.content, older.content)


def version_of(item: MemoryItem) -> EarlierVersion:
    """An item as it is shown beneath the newest version of what it says."""
    text = shortened(" ".join(gist(item).split()), _SHOWN)
    return EarlierVersion(id=item.id, timestamp=item.timestamp or item.created, trust=item.trust, text=shown_line(text))


def _holds(item: MemoryItem) -> bool:
    status = item.status.strip()
    return status not in OVER and status != "proposed" and (item.type != CONVENTION or status == ACCEPTED)


def _linked(one: MemoryItem, other: MemoryItem, relation: str) -> bool:
    return any(link.to == other.id and link.relation == relation for link in one.links)


def _of_one_matter(one: MemoryItem, other: MemoryItem) -> bool:
    """Whether nothing about two items says that they are of different things, and both are brief."""
    if one.type != other.type or one.type in _OTHERS or one.data or other.data or not may_meet(one, other):
        return False
    if max(len(one.content), len(other.content)) > _BRIEF:
        return False
    tags, others = {*one.tags}, {*other.tags}
    speakers = {one.origin.speaker, other.origin.speaker} - {""}
    return (
        (tags <= others or others <= tags)
        and all(other.context.get(name, value) == value for name, value in one.context.items())
        and not (len(speakers) > 1 and is_personal(one.content))
        and one.origin.sequence is None is other.origin.sequence
        and not (_linked(one, other, COMPATIBLE) or _linked(other, one, COMPATIBLE))
    )


def _replaces(newer: str, older: str) -> bool:
    """Whether each statement of a text is repeated by the newer one, or has another value there; one at least has."""
    now, changed = _sentences(_as_it_is(newer)), False
    for statement in _sentences(_as_it_is(older)):
        if any(statement.stems == one.stems and statement.denies == one.denies for one in now):
            continue
        if not any(_opposed(statement, one) for one in now):
            return False
        changed = True
    return changed


def _as_it_is(text: str) -> str:
    """A text about what holds in place of one about how that changed."""
    parts = (_ADOPTED.sub(r"\1use", _ACTIVE.sub(r"\1 is ", part)) for part in _SENTENCE.split(text))
    return _AT.sub(r"\1 ", "\n".join(_PASSIVE.sub(" is ", part) for part in parts))


def project_of(item: MemoryItem) -> str:
    """The project that an item names, "" for none."""
    for values in (item.context, item.metadata):
        if isinstance(project := values.get("project"), str):
            return project
    return ""


def may_meet(draft: MemoryItem, item: MemoryItem) -> bool:
    """Whether both can be of one project: one that names none is of all."""
    return len({project_of(draft), project_of(item)} - {""}) < 2

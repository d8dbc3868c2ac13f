"""Finds the items that a draft repeats, nearly repeats, contradicts or is related to.

Whether two texts cannot both hold is decided offline: one denies what the other says, states another value of the same
thing, or reverses a preference. Precision comes before recall: two statements that may both be true are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import product
from typing import Any

from memfs.dataclass import NamedTuple
from memfs.model import Candidate, KindTable, Layer, MemoryItem, Query
from memfs.model.item import Link
from memfs.pattern import regex
from memfs.recall.conflict_notes import CONTRADICTS, FINISHED, OVER, disputes
from memfs.recall.similarity import SAME, TextShape, alike
from memfs.recall.tokens import gist
from memfs.search.analyzer import terms, tokens
from memfs.search.terms import COMMON_WORDS
from memfs.store.reader import Reader

_LOOKED_INTO = 5_000
"""So many letters of a text are looked into."""
_MOST_SENTENCES = 8
_MOST_WORDS = 60
_MOST_CHANGED = 3

_WORD = regex(r"[\w$€£#~@/+-]+(?:[.,:'/@+-]\w+)*%?|[=]")
_SENTENCE = regex(r"(?<=[.!?;])\s+|\n+")
_SHORT_FORMS = {
    "don't": "do not", "doesn't": "does not", "didn't": "did not", "isn't": "is not", "aren't": "are not",
    "wasn't": "was not", "weren't": "were not", "can't": "can not", "cannot": "can not", "won't": "will not",
    "shouldn't": "should not", "mustn't": "must not", "hasn't": "has not", "haven't": "have not", "it's": "it is",
    "dont": "do not", "doesnt": "does not", "needn't": "need not", "wouldn't": "would not", "couldn't": "could not",
}  # fmt: skip
_DENIALS = frozenset({"not", "never", "no", "nobody", "nothing", "none", "neither", "without"})
# Words that may come or go without changing what is said to hold.
_IDLE_WORDS = (
    "a an the we i you they it that do does did must may might should can could will would shall have has now "
    "currently actually already also just still please always anymore longer any more decided agreed chose to "
    "ever really simply today henceforth again our"
)
_IDLE = frozenset(_IDLE_WORDS.split())
_FORMS = {"are": "is", "was": "is", "were": "is", "be": "is", "been": "is", "=": "is", "equals": "is"}
_OPPOSITES = (
    "enabled disabled|enable disable|on off|true false|allowed forbidden|allowed prohibited|allow forbid|"
    "permitted forbidden|always never|required optional|mandatory optional|likes dislikes|like dislike|"
    "loves hates|love hate|likes hates|like hate|prefers avoids|prefer avoid|use avoid|uses avoids|"
    "accept reject|accepts rejects|public private|open closed|up down|active inactive|safe unsafe|"
    "supported unsupported|synchronous asynchronous|sync async|mutable immutable|sorted unsorted|"
    "encrypted unencrypted|tabs spaces|tab space|first last|before after|possible impossible|valid invalid|"
    "known unknown|stateless stateful|manual automatic|manually automatically|online offline|"
    "increases decreases|increase decrease|faster slower|fast slow|minimum maximum|include exclude|"
    "includes excludes|present absent|done pending|alive dead|single married|vegetarian carnivore|"
    "single-threaded multi-threaded|works fails|passes fails|works broken|stable unstable|green red|"
    "lower upper|lowercase uppercase|left right|ascending descending"
)
_OPPOSED = frozenset(frozenset(pair.split()) for pair in _OPPOSITES.split("|"))
_CLASSES = tuple(
    frozenset(names.split())
    for names in (
        "monday tuesday wednesday thursday friday saturday sunday",
        "january february march april may june july august september october november december",
        "red green blue yellow black white orange purple grey gray brown pink",
        "daily weekly monthly yearly hourly nightly quarterly",
        "staging production development",
        "low medium high critical",
    )
)
# A number after one of these names a thing; another number then is another thing.
_NUMBERED_WORDS = (
    "task issue ticket pr step chapter iteration session test case line row page day week month phase round "
    "run attempt item user node server host worker job build sprint experiment hypothesis customer order "
    "invoice commit bug release level part section figure table rule example note entry batch shard room bus "
    "flight episode season request"
)
_NUMBERED = frozenset(_NUMBERED_WORDS.split())
_FIGURE = regex(r"[$€£v~]?\d[\d.,:]*(?:%|[a-zA-Z]{1,3})?")
_NAME = regex(r".*[A-Z0-9_./:@].*")
_HOLDS_WORDS = (
    "is uses use using runs run listens takes expires costs keeps keep needs requires require defaults "
    "default starts ends lives stored belongs set limit limited at named called located hosted written built "
    "deployed contains holds lasts returns owns owned serves retries waits changes happens opens closes "
    "points connects prefers prefer speaks maximum minimum port version timeout retention"
)
_HOLDS = frozenset(_HOLDS_WORDS.split())
_HAPPENED_WORDS = (
    "added fixed met deployed shipped released migrated implemented merged removed created finished completed "
    "found saw went visited bought said asked reported tested ran wrote reviewed upgraded updated sent "
    "received failed crashed started joined left called opened closed processed handled imported exported "
    "tried discussed ate drank played watched read made took gave got moved logged resolved investigated"
)
_HAPPENED = frozenset(_HAPPENED_WORDS.split())
_CONDITIONS = frozenset({"if", "when", "while", "unless", "until", "whether", "where"})
_FOR = frozenset({"for", "as", "in", "on", "when", "during", "instead", "by", "with"})
_ONE_ONLY = frozenset({"chosen", "choice", "default", "primary", "only", "main", "official", "standard"})
_OVER = regex(r"\b(?:over|rather than|instead of|, ?not|than|before)\b")
_FIRST_PERSON = regex(r"\b(?:i|my|me|mine|i'm|i've)\b", re.I)


class _Statement(NamedTuple):
    """A sentence: its telling words as written and as stems, whether it denies, how many words are a condition."""

    words: tuple[str, ...]
    stems: tuple[str, ...]
    denies: bool
    text: str
    condition: int = 0


def contradiction(one: str, other: str) -> str:
    """Why the two texts cannot both hold, in one sentence; "" where they can, or where that is unknown."""
    for first, second in product(_sentences(one[:_LOOKED_INTO]), _sentences(other[:_LOOKED_INTO])):
        if reason := _opposed(first, second):
            return reason
    return ""


def traces(text: str) -> frozenset[int]:
    """Numbers, of which two texts share one wherever ``contradiction`` may have an answer; the same in one process.

    Two sentences that contradict each other have the same stems, or the same before and behind at most three words.
    """
    found: set[int] = set()
    for said in _sentences(text[:_LOOKED_INTO]):
        stems = said.stems
        found.add(hash(tuple(sorted(stems))))
        for length in range(1, min(_MOST_CHANGED, len(stems) - 1) + 1):
            found.update(hash((stems[:at], None, stems[at + length :])) for at in range(len(stems) - length + 1))
    return frozenset(found)


def is_personal(text: str) -> bool:
    """Whether it speaks of its speaker, so that another speaker's words are of somebody else."""
    return _FIRST_PERSON.search(text) is not None


def _opposed(one: _Statement, other: _Statement) -> str:
    if one.stems == other.stems:
        return "one denies what the other says" if one.denies != other.denies and len(one.stems) > 1 else ""
    if one.denies != other.denies:
        return ""
    if len(one.stems) == len(other.stems) and sorted(one.stems) == sorted(other.stems):
        return _turned_round(one, other)
    start, end = _common(one.stems, other.stems)
    mine, theirs = _between(one, start, end), _between(other, start, end)
    if not (0 < len(mine) <= _MOST_CHANGED and 0 < len(theirs) <= _MOST_CHANGED):
        return ""
    if _are_opposites(mine, theirs) and start + end > 0 and start >= one.condition:
        return f"one says {' '.join(mine)}, the other {' '.join(theirs)}"
    if start + end >= (1 if _names_value(one.text) else 2) and _is_another_value(one, mine, theirs, start, end):
        return f"one says {' '.join(mine)}, the other {' '.join(theirs)}"
    return ""


def _turned_round(one: _Statement, other: _Statement) -> str:
    """``tabs over spaces`` and ``spaces over tabs``."""
    if not (_OVER.search(one.text) and _OVER.search(other.text)):
        return ""
    differ = [index for index, (left, right) in enumerate(zip(one.stems, other.stems, strict=True)) if left != right]
    swapped = len(differ) == 2 and one.stems[differ[0]] == other.stems[differ[1]]
    return "one turns round what the other prefers" if swapped else ""


def _common(one: Sequence[str], other: Sequence[str]) -> tuple[int, int]:
    """How many stems the two begin with, and how many they end with, in common."""
    most = min(len(one), len(other))
    start = next((index for index in range(most) if one[index] != other[index]), most)
    end = next((index for index in range(most - start) if one[-1 - index] != other[-1 - index]), most - start)
    return start, end


def _between(said: _Statement, start: int, end: int) -> tuple[str, ...]:
    return said.words[start : len(said.words) - end]


def _are_opposites(mine: Sequence[str], theirs: Sequence[str]) -> bool:
    pair = frozenset({" ".join(mine).casefold(), " ".join(theirs).casefold()})
    return pair in _OPPOSED


def _is_another_value(said: _Statement, mine: Sequence[str], theirs: Sequence[str], start: int, end: int) -> bool:
    """Whether the changed words are two values of what can have one only."""
    if start < said.condition:
        return False
    before = [word.casefold() for word in said.words[:start]]
    after = [word.casefold() for word in said.words[len(said.words) - end :]] if end else []
    if not before or _HAPPENED & {*before, *after}:
        return False
    is_habit = before[-1] == "every" and not _FIRST_PERSON.search(said.text)
    if not (is_habit or _HOLDS & {*before, *after} or _names_value(said.text)):
        return False
    if all(_figures(part) for part in (mine, theirs)):
        return before[-1] not in _NUMBERED and _units(mine) == _units(theirs)
    if any(_figures(part) for part in (mine, theirs)):
        return False
    if _tells_where(before):
        return False
    folded = [part.casefold() for part in (mine[-1], theirs[-1])]
    if len(mine) == len(theirs) == 1 and any(folded[0] in names and folded[1] in names for names in _CLASSES):
        return True
    if len(mine) == len(theirs) == 1 and "is" in before and _ONE_ONLY & {*before, *after}:
        return True
    return _are_names(mine, theirs) and _excludes(before, after)


def _tells_where(before: Sequence[str]) -> bool:
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


def _are_names(mine: Sequence[str], theirs: Sequence[str]) -> bool:
    return all(_NAME.fullmatch(word) for word in (mine[0], theirs[0]))


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
    return tuple(said for said in map(_said, parts[:_MOST_SENTENCES]) if len(said.words) > 1)


def _said(sentence: str) -> _Statement:
    words: list[str] = []
    denies = False
    for word in _expanded(sentence):
        folded = word.casefold()
        if folded in _DENIALS:
            denies = not denies
        elif folded not in _IDLE:
            words.append(word)
    words = words[:_MOST_WORDS]
    first, comma, _ = sentence.partition(",")
    condition = len(_said(first).words) if comma and words and words[0].casefold() in _CONDITIONS else 0
    return _Statement(tuple(words), tuple(map(_stem, words)), denies, sentence, condition)


def _expanded(sentence: str) -> Iterator[str]:
    for word in _WORD.findall(sentence.replace("\u2019", "'")):
        yield from _SHORT_FORMS.get(word.casefold(), word).split()


def _stem(word: str) -> str:
    folded = word.casefold()
    if folded in _FORMS:
        return _FORMS[folded]
    if not folded.isalpha():
        return folded
    return (terms(folded) or [folded])[0]


SIMILAR = "similar"
RELATES = "relates"
_NEAREST = 8
"""So many of the items that the index finds nearest are looked at."""
_NEAR_ENOUGH = 0.25
"""This share of the nearest one's text score an item has at least."""
_ASKED_WORDS = 6
_MOST_QUERY_WORDS = 32
_CROWDED = 0.9
"""From this share on, the last one found is as near as the first, and the first need not be the nearest."""
_SURELY = 24
"""Of what is found by all words, so many are looked at, too: what says more of other things may come before the very
same."""
_MOST_LINKS = 5
_MOST_RELATED = 3
_RELATED_FROM = 0.3
_COMMON_NAMES = 2
_MOMENTARY = frozenset({"conversation", "interaction", "error_log", "task_history", "pattern", "note", "entry"})


class Neighbours(NamedTuple):
    """What existing items are to a draft, the nearest first.

    Attributes:
        repeated: the item of the same type and scope with the same text, None where there is none.
        near: items that say nearly the same.
        contradicts: items that say otherwise, each with why.
        related: items on the same matter.
    """

    repeated: MemoryItem | None = None
    near: tuple[MemoryItem, ...] = ()
    contradicts: tuple[tuple[MemoryItem, str], ...] = ()
    related: tuple[MemoryItem, ...] = ()

    def linked(self, own: tuple[Link, ...]) -> tuple[Link, ...]:
        """The draft's own links, and those to these items that it does not link yet, but for the one it repeats."""
        found = (
            *(Link(to=item.id, relation=CONTRADICTS) for item, _ in self.contradicts),
            *(Link(to=item.id, relation=SIMILAR) for item in self.near),
            *(Link(to=item.id, relation=RELATES) for item in self.related),
        )
        held = {link.to for link in own}
        return (*own, *(link for link in found if link.to not in held))

    def named(self) -> dict[str, Any]:
        """Ids of what says nearly the same, and of what says otherwise, as results tell them."""
        against = tuple(item.id for item, _ in self.contradicts)
        return {"near": tuple(item.id for item in self.near), "contradicts": against}


class Neighbourhood:
    """Finds neighbours in one workspace. May be used from several threads."""

    def __init__(self, store: Reader, kinds: KindTable) -> None:
        self._store = store
        self._short_lived = kinds.in_layers({Layer.SHORT_TERM.value})

    def of(self, draft: MemoryItem, now: datetime) -> Neighbours:
        """The neighbours of a draft among the items that hold at present.

        The index is asked for the draft's rarest words, or for all where these tell little, and a few items are read,
        whatever it finds: a neighbour that shares none of these words with it is missed.
        """
        return self.among(draft, self._nearest(draft, now))

    def among(self, draft: MemoryItem, items: Iterable[MemoryItem]) -> Neighbours:
        """What the given items, nearest first, are to a draft."""
        shape = TextShape(gist(draft))
        repeated: MemoryItem | None = None
        near, related = [], []
        against: list[tuple[MemoryItem, str]] = []
        for item in items:
            likeness = alike(shape, other := TextShape(gist(item)), _RELATED_FROM)
            if repeated is None and shape.plain == other.plain and self._is_repeated(draft, item):
                repeated = item
            elif reason := self.objection(draft, item):
                against.append((item, reason))
            elif likeness >= SAME:
                near.append(item)
            elif likeness >= _RELATED_FROM or _share_names(draft, item):
                related.append((likeness, item))
        related.sort(key=lambda row: (-row[0], row[1].id))
        return Neighbours(
            repeated=repeated,
            near=tuple(near[:_MOST_LINKS]),
            contradicts=tuple(against[:_MOST_LINKS]),
            related=tuple(item for _, item in related[:_MOST_RELATED]),
        )

    def against(self, item: MemoryItem, now: datetime) -> tuple[str, ...]:
        """Ids of the items that a stored item contradicts, or that contradict it, as their links say."""
        near = self._nearest(item, now)
        return tuple(disputes([item, *near]).get(item.id, ()))

    # -- finding --------------------------------------------------------------------------------------------------
    def _nearest(self, draft: MemoryItem, now: datetime) -> list[MemoryItem]:
        words = _words(gist(draft))
        found = self._found(words, _ASKED_WORDS, draft, _NEAREST)
        # where there are many, what says the very same may lie beyond: by all its words it is among the first
        surely = self._found(words, _MOST_QUERY_WORDS, draft, _SURELY) if len(found) >= _NEAREST else []
        if surely and found[-1].similarity >= found[0].similarity * _CROWDED:
            found = surely  # many say it of other things: all words tell which one
        close = [one for one in found if one.similarity >= found[0].similarity * _NEAR_ENOUGH][:_NEAREST]
        seen = {one.id for one in close}
        close = [*(one for one in surely if one.id not in seen), *close]
        items = [one.item for one in self._store.load_each(close) if one is not None and not one.stale]
        return [item for item in items if not item.has_expired(now) and may_meet(draft, item)]

    def _found(self, words: Mapping[str, str], count: int, draft: MemoryItem, limit: int) -> list[Candidate]:
        """What the index finds for so many of the rarest words, the nearest first."""
        asked = " ".join(words[stem] for stem in self._store.rarest(words, count))
        found = self._store.known(Query(text=asked, limit=limit + 1)) if asked else []
        return [one for one in found if one.id != draft.id]

    # -- judging --------------------------------------------------------------------------------------------------
    def _is_repeated(self, draft: MemoryItem, item: MemoryItem) -> bool:
        """Whether a draft with the same text is the same memory: same type and scope, and not done since."""
        return (
            draft.type == item.type
            and self._scope(draft) == self._scope(item)
            and (not draft.data or draft.data == item.data)
            and draft.origin.speaker == item.origin.speaker
            and draft.origin.sequence == item.origin.sequence
            and (draft.status or item.status) == item.status
            and item.status not in FINISHED
        )

    def _scope(self, item: MemoryItem) -> tuple[str, str]:
        """Project, and of what lives for a session also that."""
        return _project(item), item.origin.session if item.type in self._short_lived else ""

    @staticmethod
    def objection(draft: MemoryItem, item: MemoryItem) -> str:
        """Why the item speaks against the draft; "" where it does not."""
        if is_momentary(draft) or is_momentary(item) or item.id in draft.supersedes or item.status in OVER:
            return ""
        if "working" in (draft.type, item.type) and draft.origin.session != item.origin.session:
            return ""
        speakers = {draft.origin.speaker, item.origin.speaker} - {""}
        if len(speakers) > 1 and is_personal(draft.content):
            return ""
        return contradiction(gist(draft), gist(item))


def _project(item: MemoryItem) -> str:
    for values in (item.context, item.metadata):
        if isinstance(project := values.get("project"), str):
            return project
    return ""


def is_momentary(item: MemoryItem) -> bool:
    """Whether an item tells of its moment, as an episode does, so that it says nothing against another."""
    from memfs.intake.episode_item import episode_of  # who looks for what contradicts one item does without

    return item.type in _MOMENTARY or episode_of(item) is not None


def may_meet(draft: MemoryItem, item: MemoryItem) -> bool:
    """Whether both can be of one project: one that names none is of all."""
    projects = {_project(draft), _project(item)} - {""}
    return len(projects) < 2


def _words(text: str) -> dict[str, str]:
    """The words of a text by their stems; those that say little only where there are no others."""
    every = [(word, tuple(stems)) for word, stems in tokens(text[:_LOOKED_INTO])]
    telling = [row for row in every if row[0].casefold() not in COMMON_WORDS]
    found: dict[str, str] = {}
    for word, stems in telling if any(stems for _, stems in telling) else every:
        for stem in stems[:1]:
            found.setdefault(stem, word)
    return found


def _share_names(one: MemoryItem, other: MemoryItem) -> bool:
    return len(_names(one) & _names(other)) >= _COMMON_NAMES


def _names(item: MemoryItem) -> set[str]:
    """What extraction found, for an item that went through it."""
    names = item.metadata.get("entities", ())
    return {str(name).casefold() for name in names} if isinstance(names, (list, tuple)) else set()

"""What a person says of an agent's work: corrections, which become preferences, and whether an item helped.

Only preferences that a person vouched for and that hold now are returned; of two that contradict each other, one.

Of corrections precision comes before recall: a sentence that asks, speaks of somebody else or holds for this once is
not one. The wordings are cues, matched against a sentence in lower case with straight quotes from where it or one of
its clauses begins; each is bounded, so that no text takes long. A sentence is held against those of English, and of the
language that it, or the message around it, is in.

A signal that an item helped, or did not, makes a new version of it, whose importance stays within 0 to 10.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import chain, islice, zip_longest
from math import inf, log

from memfs.dataclass import dataclass
from memfs.errors import Conflict, ContentError, IdExists, ItemNotFound, QueryInvalid
from memfs.fs.lock import shared_property
from memfs.intake.contradictions import NeighbourSearch
from memfs.learning.conflicts import covers, record_of
from memfs.model import MemoryItem, Origin, Query
from memfs.model.ids import stable_id
from memfs.model.item import VOUCHED, Trust, gist
from memfs.model.learning import Source, Suggestion
from memfs.model.time import utc_now
from memfs.recall.conflict_notes import OVER, disputes
from memfs.recall.cues import Cues, cues_for_text, ends
from memfs.recall.similarity import normalised
from memfs.search.analyzer import folded, is_unspaced, terms
from memfs.search.terms import weights
from memfs.startup import TYPE_CHECKING, Any, regex
from memfs.store import Store
from memfs.store.access_log import HELPED, OFF, REFUSED, ServedLog
from memfs.store.parts import Fire, Parts
from memfs.store.plan import message_for_items
from memfs.store.store import retry_on_conflict
from memfs.usage import Usage

if TYPE_CHECKING:
    from memfs.intake.intake import Intake
    from memfs.learning.inbox import Inbox


# -- preferences that hold ------------------------------------------------------------------------------------------
KIND = "preference"
_NOT_HELD = frozenset({"proposed", "done", *OVER})
_LOOKED_INTO = 5_000
_COMMON = 0.5
_FEW = 8


def preferences_in_order(items: Iterable[MemoryItem], now: datetime, context: str = "") -> list[MemoryItem]:
    """Of preferences those that hold, in the order in which they are given.

    What fits the context comes first, the best first; then what is pinned, then by importance, then the newest. Of two
    of which one says that it contradicts the other, the newer holds.
    """
    holding = sorted(_holding(items, now), key=lambda item: item.id)
    against, given = disputes(holding), dict[str, MemoryItem]()
    for item in sorted(holding, key=lambda item: item.moment, reverse=True):
        if given.keys().isdisjoint(against.get(item.id, ())):  # none of them, which are newer, is given itself
            given[item.id] = item
    return _fitting_first(sorted(given.values(), key=lambda item: (not item.pinned, -item.importance)), context)


def _holding(items: Iterable[MemoryItem], now: datetime) -> list[MemoryItem]:
    """Those that a person vouches for, that are not over, and that none of them replaces."""
    present = [
        item
        for item in items
        if item.trust in VOUCHED and item.status.strip() not in _NOT_HELD and not item.has_expired(now)
    ]
    replaced = {name for item in present for name in item.supersedes}
    return [item for item in present if item.id not in replaced]


def _fitting_first(items: list[MemoryItem], context: str) -> list[MemoryItem]:
    """The items, those first that fit a context best: by the worth of the terms they share, the rarer the more.

    A term that half of them have says little, unless there are few.
    """
    asked = weights(context[:_LOOKED_INTO]) if context.strip() else {}
    if not asked:
        return items
    texts = (f"{item.title}\n{gist(item)}\n{' '.join(item.tags)}" for item in items)
    shared = [asked.keys() & set(terms(text[:_LOOKED_INTO])) for text in texts]
    held = Counter(chain.from_iterable(shared))
    most = _COMMON * len(items) if len(items) >= _FEW else inf
    worth = {term: asked[term] * log(1 + len(items) / many) for term, many in held.items() if many < most}
    fits = [sum(worth.get(term, 0.0) for term in one) for one in shared]
    return [items[place] for place in sorted(range(len(items)), key=lambda place: -fits[place])]


_SAID_AGAIN = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preference:
    """One thing a person wants; ``str`` of it is its text.

    Attributes:
        text: what is wanted, in the person's words.
        id, trust: of its item.
        origin: who said it.
        importance: what it counts for.
        timestamp: when it was said, for the last time.
    """

    text: str
    id: str
    trust: str
    origin: Origin
    importance: float
    timestamp: datetime

    def __str__(self) -> str:
        return self.text


class Preferences:
    """The preferences of one workspace. May be used from several threads."""

    def __init__(self, store: Store, parts: Parts, usage: Usage, fire: Fire) -> None:
        """
        Args:
            store, parts: where they are.
            usage: where saying something again counts as a use.
            fire: raises an occasion, as ``Behaviours.fire`` does.
        """
        self._store = store
        self._parts, self._usage, self._fire = parts, usage, fire
        self._neighbourhood = NeighbourSearch(store, parts.kinds)

    @shared_property
    def _intake(self) -> Intake:
        from memfs.intake.intake import Intake

        return Intake(self._store, self._parts, self._usage, None, fire=self._fire)

    # -- recording ------------------------------------------------------------------------------------------------
    def record(
        self,
        text: str,
        speaker: str = "",
        session: str = "",
        *,
        agent: str = "",
        task: str = "",
        context: Mapping[str, Any] | None = None,
        source: str = "correction",
        allow_secret: str = "",
    ) -> list[MemoryItem]:
        """Keep what a person's message corrects or prefers, as items of kind ``preference`` and trust ``human``.

        What was said before in the same words is united with it, and counts as said now where that was long ago or
        somebody has said otherwise since; what it contradicts is linked.

        Args:
            text: the message.
            speaker, session, agent, task: who said it, in which session, to which agent, at which task.
            context: circumstances in which it holds, such as ``{"project": "shop"}``.
            source: which door it came through, for the commit's trailers.
            allow_secret: why what looks like a secret may stay, as for ``Store.put``.

        Returns:
            The items as they are stored, one a correction.

        Raises:
            SchemaInvalid: the message is empty.
            ContentError: one cannot be kept, as when it holds what looks like a secret (``SecretDetected``); the others
                are. The first such error is raised.
            StorageIO: as ``Store.put``. What was kept stays, and giving the message again keeps nothing twice.
        """
        origin = Origin(speaker=speaker, role="user", agent=agent, session=session, task=task)
        stored: list[MemoryItem] = []
        refused: ContentError | None = None
        for draft in self._drafts(text, origin, context or {}):
            try:
                stored.append(self._recorded(draft, source, allow_secret))
            except ContentError as error:
                refused = refused or error
        if refused is not None:
            raise refused
        return stored

    def suggest(
        self, text: str, inbox: Inbox, *, session: str = "", agent: str = "", context: Mapping[str, Any] | None = None
    ) -> list[Suggestion]:
        """Suggest what a person's message corrects or prefers; what is a preference already is not suggested.

        Returns:
            The suggestions that are new.

        Raises:
            ContentError: one cannot be a memory, as when it holds what looks like a secret; none is suggested.
            CorruptRecord, FormatUnsupported, LockTimeout, StorageIO: none is suggested.
        """
        now, origin = self._parts.clock(), Origin(role="user", agent=agent, session=session)
        drafts = self._drafts(text, origin, context or {})
        fresh = [draft for draft in drafts if self._neighbourhood.of(draft, now).repeated is None]
        return inbox.add(
            Suggestion(
                item=draft.replace(id=_stable_id(draft)),
                source=Source.PREFERENCE,
                made=now,
                reason=f"said in session {session}" if session else "",
            )
            for draft in fresh
        )

    def _drafts(self, text: str, origin: Origin, context: Mapping[str, Any]) -> list[MemoryItem]:
        """What a message corrects or prefers, as items that are not stored; all of it where no part does."""
        said = corrections(text) or (text.strip(),)
        now, human = self._parts.clock(), Trust.HUMAN.value
        return [MemoryItem(one, KIND, origin=origin, trust=human, timestamp=now, context=dict(context)) for one in said]

    def _recorded(self, draft: MemoryItem, source: str, allow_secret: str) -> MemoryItem:
        """Store a draft under an id that follows from what it says, so that two processes that hear the same agree."""
        store = partial(self._intake.store, review=False, source=source, allow_secret=allow_secret)
        result = None
        if self._neighbourhood.of(draft, self._parts.clock()).repeated is None:
            try:
                result = store(draft.replace(id=_stable_id(draft)))
            except IdExists:  # somebody was quicker, or has changed what was said so before
                self._store.refresh()
        result = store(draft) if result is None else result
        found = self._store.get(result.memory_id or "")
        if found is None:  # removed by somebody at this very moment: it was stored, and is in git
            return draft.replace(id=result.memory_id or "")
        return self._renewed(found, draft, source) if result.merged_into else found

    def _renewed(self, item: MemoryItem, draft: MemoryItem, source: str) -> MemoryItem:
        """What was said before as said now: it counts as newer than what was said against it in between."""
        before, now = item.moment, draft.moment
        disputed = item.id in disputes(_holding(self._every(), now))
        if now <= before or (now - before < _SAID_AGAIN and not disputed):
            return item
        try:
            message = message_for_items("Repeat", [item])
            return self._store.put(item.replace(timestamp=now), expected=item.sha256, message=message, source=source)
        except Conflict:  # somebody changes it right now; what was said is stored
            return item

    # -- bringing back --------------------------------------------------------------------------------------------
    def get_relevant(
        self, context: str = "", limit: int = 10, *, beside: Iterable[MemoryItem] = ()
    ) -> list[Preference]:
        """The preferences that hold: those that fit the context first, then by importance, the newest first.

        Given is only what a person said or reviewed, and nothing twice. Of two that contradict one another, and of
        that is undecided, the newer is given. Each is read from its file.

        Args:
            context: what the agent is about to do; "" for none.
            limit: the most preferences.
            beside: preferences that hold elsewhere, in their order: they are given in turn with these.
        """
        given: list[MemoryItem] = []
        own = preferences_in_order(self._every(), self._parts.clock(), context) if limit > 0 else ()
        pairs = zip_longest(own, beside if limit > 0 else ())
        for item in (one for pair in pairs for one in pair if one is not None):
            given = self._joined(given, item)
            if len(given) == limit:
                break
        return [
            Preference(
                text=gist(item).strip(),
                id=item.id,
                trust=item.trust,
                origin=item.origin,
                importance=item.importance,
                timestamp=item.moment,
            )
            for item in given
        ]

    def _every(self) -> list[MemoryItem]:
        """All preferences as their files have them now, whether they hold or not."""
        loaded = map(self._store.load, self._store.every(Query(types=frozenset({KIND}))))
        return [one.item for one in loaded if one is not None and not one.stale]

    def _joined(self, given: list[MemoryItem], item: MemoryItem) -> list[MemoryItem]:
        """What is given with one more, unless it repeats one, or a newer one speaks against it.

        Links record contradictions that were found when something was recorded; what people write into files is
        compared here.
        """
        found = self._neighbourhood.among(item, given)
        if found.repeated is not None or found.near:
            return given
        against = [other for other, _ in found.contradicts if not covers(record_of(item, other), item, other)]
        if any(other.moment >= item.moment for other in against):
            return given
        return [*(one for one in given if one not in against), item]

    def count(self) -> int:
        """How many preferences hold."""
        return len(preferences_in_order(self._every(), self._parts.clock()))


def _stable_id(draft: MemoryItem) -> str:
    parts = normalised(draft.content), draft.origin.speaker, str(draft.context.get("project", ""))
    return stable_id(draft.content, *parts, otherwise=KIND)


# -- corrections -----------------------------------------------------------------------------------------------------
_LOOKED_AT = 20_000
_LONGEST = 500
_MOST = 20
_FEWEST_WORDS = 3
_FEWEST_LETTERS = 5
"""Of a sentence in a script without spaces."""
_MOST_CLAUSES = 8

_CODE = regex(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1|\Z)", re.M | re.S)
_QUOTED_LINE = regex(r"^[ \t]*>.*$", re.M)
_WRAPPED = regex(r"(?<![.!?:;\n])\n(?=[a-z])")
_TABLE = "corrections"
_ITEM = regex(r"(?:[-*+\u2022]|\d{1,3}[.)])\s+")
_STRAIGHT = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2013": "-", "\u2014": "-"})
_OTHERS_WORDS = regex(r'"[^"]{1,400}"|\u00ab[^\u00bb]{1,400}\u00bb')
_EMPHASIS = regex(r"\*+|__|`")


def corrections(text: str) -> tuple[str, ...]:
    """The sentences of a person's message that correct or prefer, as they are written, in order, each once.

    Quoted text and code are not the person's own words. A statement that follows a refusal ("No, that is wrong. The API
    base path is /v2.") corrects, too. Of a long message the first 20,000 characters are looked at and the first 20 such
    sentences count: it is a document. A sentence of more than 500 characters is none.
    """
    languages = cues_for_text(_TABLE, text[:_LOOKED_AT])
    found = dict.fromkeys(one for one, refused in _read(text, languages) if _corrects(one, languages, refused))
    return tuple(islice(found, _MOST))


def passed_over(text: str) -> tuple[str, ...]:
    """The other sentences of a message, as far as it is looked at, but a mere "no": that says nothing by itself."""
    kept = corrections(text)
    languages = cues_for_text(_TABLE, text[:_LOOKED_AT])
    left = (one for one, _ in _read(text, languages) if one not in kept and not _refuses(one, languages))
    return tuple(dict.fromkeys(left))


def is_correction(sentence: str) -> bool:
    """Whether one sentence corrects or prefers."""
    return len(sentence) <= _LONGEST and _corrects(sentence, cues_for_text(_TABLE, sentence), after_refusal=False)


def _corrects(sentence: str, languages: Sequence[Cues], after_refusal: bool) -> bool:
    """``after_refusal``: the sentence before it refuses what the agent said or did, and nothing else."""
    if len(sentence) > _LONGEST:
        return False
    short = len(sentence.split()) < _FEWEST_WORDS
    if short and (len(sentence) < _FEWEST_LETTERS or not any(map(is_unspaced, sentence))):
        return False
    own = _own(sentence)
    folded_text = folded(own.casefold())
    return any(_Reader(language).corrects(own, folded_text, after_refusal) for language in languages)


def _own(sentence: str) -> str:
    """A sentence without the words of others, in straight quotes and without marks of emphasis."""
    return " ".join(_EMPHASIS.sub("", _OTHERS_WORDS.sub('""', sentence.translate(_STRAIGHT))).split())


def _refuses(sentence: str, languages: Sequence[Cues]) -> bool:
    text = folded(_own(sentence[:_LONGEST]).casefold())
    return any(language.pattern(f"{_TABLE}.refused", flags=0).fullmatch(text) for language in languages)


def _read(text: str, languages: Sequence[Cues]) -> Iterator[tuple[str, bool]]:
    """The sentences of a message, each with whether it follows a mere refusal."""
    own = _WRAPPED.sub(" ", _QUOTED_LINE.sub("", _CODE.sub("\n", text[:_LOOKED_AT])))
    refused = False
    for part in ends().split(own):
        stripped = part.strip()
        if sentence := _without(_ITEM, stripped).strip():
            yield sentence, refused
            refused = _refuses(sentence, languages)


class _Reader:
    """Reads a sentence by the cues of one language."""

    def __init__(self, language: Cues) -> None:
        self._language = language

    def corrects(self, own: str, text: str, after_refusal: bool) -> bool:
        """Whether a sentence does, as it is written and in lower case."""
        if self._is("call_me", own):
            return True
        text = text.replace("dont ", "don't ")
        if text.endswith(("?", "\uff1f")):
            return self._is("asked", self._opened(text))
        if self._cue("from_now_on").search(text):
            return not self._reported(text)
        if self._cue("once").search(text):
            return False
        contrasts = self._is("contrast", self._opened(text)) and not self._reported(text)
        if contrasts or (after_refusal and self._states(text)):  # "the base path is /v2, not /v1" sets right by itself
            return True
        return any(map(self._clause_corrects, self._clauses(text)))

    def _clauses(self, text: str) -> Iterator[str]:
        """The sentence, and what follows where another main clause may begin, unless it is about somebody."""
        yield text
        for number, found in enumerate(self._cue("clause").finditer(text)):
            if number >= _MOST_CLAUSES or self._reported(text[: found.start()]):
                return
            yield text[found.end() :]

    def _clause_corrects(self, clause: str) -> bool:
        text = self._opened(clause)
        while (refused := self._cue("refusal").match(text)) is not None:  # "no, that's wrong, ..."
            text = self._opened(text[refused.end() :])
            if self._is("instead", text) or self._states(text):
                return True
        return self._asks(text) or self._asks(self._opened(_without(self._cue("circumstance"), text)))

    def _asks(self, text: str) -> bool:
        order = self._cue("order").match(text)
        if order is not None:
            named = (deed.partition(" ")[2] for deed in order.groupdict().values() if deed)
            return not any(one and self._cue("pointing").fullmatch(one) for one in named)
        found = self._cue("rule").match(text)
        return not self._reported(found.group()) if found is not None else self._is("personal", text)

    def _states(self, text: str) -> bool:
        """Whether a sentence states what holds, which after a refusal sets something right."""
        stated = self._opened(text)
        return self._is("states", stated) and not self._reported(text) and not self._cue("of_the_moment").search(stated)

    def _reported(self, text: str) -> bool:
        """Whether somebody else says so."""
        return self._cue("reported").search(text) is not None

    def _opened(self, text: str) -> str:
        return _without(self._cue("opening"), text)

    def _is(self, name: str, text: str) -> bool:
        return self._cue(name).match(text) is not None

    def _cue(self, name: str) -> re.Pattern[str]:
        return self._language.pattern(f"{_TABLE}.{name}", flags=0)


def _without(beginning: re.Pattern[str], text: str) -> str:
    found = beginning.match(text)
    return text[found.end() :] if found else text


HIGHEST = 10.0
_LIFT = 0.5
_DROP = 0.6
_LEAST_TO_LIFT = 0.1
_REASON_LIMIT = 300
SOURCE = "feedback"


def moved(importance: float, positive: bool) -> float:
    """The importance after one signal, within 0 to 10.

    A positive one adds a half, less the nearer it is to 10; a negative one takes two fifths away. Repeated signals
    converge to 10 or to 0.
    """
    bounded = min(max(importance, 0.0), HIGHEST)
    if positive:
        bounded = max(bounded, _LEAST_TO_LIFT)
        return round(min(HIGHEST, bounded * (1.0 + _LIFT * (1.0 - bounded / HIGHEST))), 4)
    return round(bounded * _DROP, 4)


class Feedback:
    """Takes signals about the items of one workspace."""

    def __init__(self, store: Store, served: ServedLog = OFF, clock: Callable[[], datetime] = utc_now) -> None:
        """``served``: where the signal is noted, for what is learned from it."""
        self._store, self._served, self._clock = store, served, clock

    def give(self, item_id: str, positive: bool, reason: str = "", *, source: str = SOURCE) -> MemoryItem:
        """Change an item's importance, as a new version of it.

        Args:
            item_id: the whole id.
            positive: whether it helped.
            reason: why, for the history.
            source: which door it came through, for the commit's trailers.

        Returns:
            The stored item.

        Raises:
            ItemNotFound: no item has that id.
            QueryInvalid: the signal is neither True nor False, or the reason no text of at most 300 characters.
            ContentError, StorageIO, Conflict: nothing was changed.
        """
        checked_reason = _checked(positive, reason)
        sign = "Good" if positive else "Bad"

        def given() -> MemoryItem:
            """Where somebody else's change came between, that is kept, and the signal applied to it."""
            item = self._store.get(item_id)
            if item is None:
                raise ItemNotFound(f"no memory has the id {item_id!r}", hint="'memfs list' shows what there is")
            changed = item.replace(importance=moved(item.importance, positive))
            message = message_for_items(f"{sign} feedback", [item], checked_reason)
            return self._store.put(changed, expected=item.sha256, message=message, source=source)

        stored = retry_on_conflict(given, tries=5)
        self._served.mark(HELPED if positive else REFUSED, stored.id, self._clock())
        return stored


def _checked(positive: object, reason: object) -> str:
    if not isinstance(positive, bool):
        raise QueryInvalid(f"expected True or False, got {ascii(positive)[:60]}", field="positive")
    if not isinstance(reason, str) or len(reason) > _REASON_LIMIT:
        raise QueryInvalid("expected a text of at most 300 characters", field="reason", hint="say it shorter")
    return " ".join(reason.split())

"""Finds what corrects an agent in a person's message, and takes signals that an item helped, or did not.

Precision comes before recall: a sentence that asks, speaks of somebody else or holds for this once is not one. The
wordings are cues, matched against a sentence in lower case with straight quotes from where it or one of its clauses
begins; each is bounded, so that no text takes long. A sentence is held against those of English, and of the language
that it, or the message around it, is in.

A signal makes a new version of the item, whose importance stays within 0 to 10.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from itertools import islice

from memfs.errors import ItemNotFound, QueryInvalid
from memfs.model import MemoryItem
from memfs.model.time import utc_now
from memfs.recall.cues import Cues, cues_for_text, ends
from memfs.search.analyzer import folded, is_unspaced
from memfs.startup import regex
from memfs.store import Store
from memfs.store.access_log import HELPED, OFF, REFUSED, ServedLog
from memfs.store.plan import message_for_items
from memfs.store.store import retry_on_conflict

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
    if len(sentence) > _LONGEST or _is_short(sentence):
        return False
    own = _own(sentence)
    folded_text = folded(own.casefold())
    return any(_Reader(language).corrects(own, folded_text, after_refusal) for language in languages)


def _is_short(sentence: str) -> bool:
    if len(sentence.split()) >= _FEWEST_WORDS:
        return False
    return len(sentence) < _FEWEST_LETTERS or not any(map(is_unspaced, sentence))


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
        if self._contrasts(text) or (after_refusal and self._states(text)):
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
            return not any(map(self._only_points, filter(None, order.groupdict().values())))
        found = self._cue("rule").match(text)
        return not self._reported(found.group()) if found is not None else self._is("personal", text)

    def _contrasts(self, text: str) -> bool:
        """Whether a statement sets right a name or a figure by itself: "the base path is /v2, not /v1"."""
        return self._is("contrast", self._opened(text)) and not self._reported(text)

    def _states(self, text: str) -> bool:
        """Whether a sentence states what holds, which after a refusal sets something right."""
        stated = self._opened(text)
        return self._is("states", stated) and not self._reported(text) and not self._cue("of_the_moment").search(stated)

    def _only_points(self, deed: str) -> bool:
        _, _, named = deed.partition(" ")
        return bool(named) and self._cue("pointing").fullmatch(named) is not None

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
_TRIES = 5
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

        stored = retry_on_conflict(given, tries=_TRIES)
        self._served.mark(HELPED if positive else REFUSED, stored.id, self._clock())
        return stored


def _checked(positive: object, reason: object) -> str:
    if not isinstance(positive, bool):
        raise QueryInvalid(f"expected True or False, got {ascii(positive)[:60]}", field="positive")
    if not isinstance(reason, str) or len(reason) > _REASON_LIMIT:
        raise QueryInvalid("expected a text of at most 300 characters", field="reason", hint="say it shorter")
    return " ".join(reason.split())

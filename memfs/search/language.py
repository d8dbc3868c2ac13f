"""Tells the language of a text by its function words, letters and endings: cheap, and always the same answer.

The words are those of ``memfs/languages/words.json``. Names of languages are ISO 639 codes. A text that shows no other
language is taken for English.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache, lru_cache

from memfs.resources import word_lists

MOST = 2
"""A short text may be in several languages: it is taken for at most so many."""

_ALSO_ENGLISH = 0.5
"""What a word counts that is an English one, too; any other counts 1."""
_SIGN = 0.7
"""What a letter or an ending counts."""
_SHARED = 0.5
"""What an English word counts for English that the other language has, too."""
_FEWEST = 1.0
_MORE = 1.5
"""What they must count together beside an English word, where all may be English."""
_CLOSE = 0.75
_SHORT = 12
_LONG = 6
"""Letters; an ending tells nothing of a word that has no more."""


def languages(words: Collection[str], text: str) -> tuple[str, ...]:
    """The languages that a text seems to be in, besides English, likeliest first; none for what may be English.

    At most two: those of a short text are not always told apart.

    Args:
        words: the words of the text, folded; in any case.
        text: the text itself.
    """
    plain, short = text.isascii() or _letter().search(text) is None, len(words) <= _SHORT
    # nearly all English texts: they are to cost nothing
    if plain and not (any(map(_may_tell, words)) if short else not _telling().isdisjoint(words)):
        return ()
    said = {word.lower() for word in words}
    bare = short and len(stop_words("en").intersection(said)) <= 1
    if plain and not bare and _telling().isdisjoint(said):
        return ()
    ended = [word for word in said if _has_ending(word)] if bare else []
    if plain and not ended and _function_words().isdisjoint(said):
        return ()
    english, letters = stop_words("en") & said, frozenset(text.casefold())
    least = _FEWEST if not english or not _telling().isdisjoint(said) else _MORE
    likely: dict[str, float] = {}
    for code in word_lists()["stop"]:
        own = _words(code) & said
        score = sum(1.0 if word in _telling() else _ALSO_ENGLISH for word in own)
        score += _SIGN * (len(_letters(code) & letters) + sum(word.endswith(_endings(code)) for word in ended))
        shared = len(english & own)
        if code != "en" and score >= least and score > len(english) - shared + _SHARED * shared:
            likely[code] = score
    close = [code for code, score in likely.items() if score >= _CLOSE * max(likely.values())]
    return tuple(sorted(close, key=lambda code: -likely[code])[:MOST])


def by_script(text: str) -> tuple[str, ...]:
    """The languages that the scripts of a text tell: Russian, Greek, Japanese, Chinese, Korean, Thai, Arabic, Hindi."""
    found = tuple(code for code, script in _scripts().items() if script.search(text))
    return tuple(code for code in found if code != "zh" or "ja" not in found)  # Japanese is written with both


@cache
def _scripts() -> dict[str, re.Pattern[str]]:
    return {code: re.compile(f"[{script}]") for code, script in word_lists()["scripts"].items()}


@cache
def in_latin_letters() -> tuple[str, ...]:
    """The languages that a text in Latin letters may be told to be in, but English."""
    return tuple(code for code in word_lists()["stop"] if code not in ("en", *word_lists()["scripts"]))


@cache
def stop_words(code: str) -> frozenset[str]:
    """The words of a language that say nothing, folded; empty for one whose are not known."""
    return frozenset(word_lists()["stop"].get(code, "").split())


@cache
def _words(code: str) -> frozenset[str]:
    return stop_words(code).union(word_lists()["orders"].get(code, "").split())


@cache
def _function_words() -> frozenset[str]:
    every = " ".join((*word_lists()["stop"].values(), *word_lists()["orders"].values()))
    return frozenset(every.split()) - stop_words("en")


@cache
def _telling() -> frozenset[str]:
    """The words that tell a language: that are no English words, too."""
    return _function_words().difference(word_lists()["english_too"].split())


@lru_cache(maxsize=1 << 16)
def _may_tell(word: str) -> bool:
    word = word.lower()
    return word in _function_words() or _has_ending(word)


def _has_ending(word: str) -> bool:
    return len(word) > _LONG and word.endswith(_endings())


@cache
def _letter() -> re.Pattern[str]:
    return re.compile(f"[{''.join(word_lists()['letters'])}]", re.IGNORECASE)


@cache
def _letters(code: str) -> frozenset[str]:
    return frozenset(
        letter for letters, codes in word_lists()["letters"].items() if code in codes.split() for letter in letters
    )


@cache
def _endings(code: str = "") -> tuple[str, ...]:
    """What a word of a language, or of any, may end in."""
    endings = word_lists()["endings"]
    return tuple((endings.get(code, "") if code else " ".join(endings.values())).split())

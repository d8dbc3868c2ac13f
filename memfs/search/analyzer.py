"""Turns text into terms, the same for every engine; the only module that imports the stemmers.

Terms are folded and stemmed, without stop words. They hold letters and digits only, never a space, a quote or ASCII
punctuation; engines may rely on it.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from hashlib import sha256
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from memfs.model import MemoryItem

VERSION = 3
TITLE_WEIGHT = 2.0
BODY_WEIGHT = 1.0
EXTRA_WEIGHT = 0.5
MOST_PASSAGES = 64
_PASSAGE = 400
_LONGEST_PASSAGE = 600
_BORDER = re.compile(r"(?<=[.!?:;])\s+|[\u3002\uff01\uff1f]|\n+")
_MAX_TERM = 64
_MEMO_LIMIT = 200_000

# Scripts written without spaces between words: kana, ideographs, Hangul, Thai, Lao, Burmese, Khmer.
_UNSPACED = (
    "\u0e01-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3041-\u3096\u30a1-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
# Vowel signs of Indic scripts are marks to Unicode, not letters, yet they belong to the word.
_LETTER = "(?:[^\\W_]|[\u0900-\u0963\u0971-\u0de5\u0df2\u0df3\u0f71-\u0fbc])"
_ASCII = "".join(one if one.isalnum() or one == "_" else " " for one in map(chr, range(128)))
"""A table for ``str.translate``: blanks for all between the words of ASCII text, far quicker than searching them."""
_HUMPS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^A-Za-z0-9]+")
# Accents of Latin, Greek and Cyrillic, points of Hebrew and Arabic.
_MARKS = re.compile("[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u0610-\u061a\u064b-\u065f\u0670]")
_LETTERS = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ð": "d", "æ": "ae", "œ": "oe", "þ": "th", "ı": "i"})

_STOP_WORDS = (
    "a about above after again all also am an and any are as at be because been before being below between both but "
    "by can cannot could d did do does doing don down during each few for from further had has have having he her "
    "here hers herself him himself his how i if in into is isn it its itself just ll m me more most my myself nor "
    "of off on once or other our ours ourselves out over own re s same shall she should so some such t than that "
    "the their theirs them themselves then there these they this those through to too under until up us ve very was "
    "wasn we were what when where which while who whom whose why will with would you your yours yourself yourselves"
)
STOP_WORDS = frozenset(_STOP_WORDS.split())


class PassageTerms(NamedTuple):
    """The terms of one passage of an item by field, in order, repeats kept."""

    title: Sequence[str]
    body: Sequence[str]
    extra: Sequence[str]

    @property
    def length(self) -> int:
        """How many terms it has in all."""
        return len(self.title) + len(self.body) + len(self.extra)


WeightedTerms = tuple[Mapping[str, float], int]
"""The weight of each term of a passage, and how many it has."""


def terms(text: str) -> list[str]:
    """The terms of a text, in order, repeats kept.

    Stop words are left out, unless nothing else would remain.
    """
    return _terms(text, alone=False)


def tokens(text: str) -> Iterator[tuple[str, Iterable[str]]]:
    """Each word of a text as it was written, with its terms; none for a stop word."""
    for token in _tokens(text):
        yield token, _cut(token, alone=False)


def passages(content: str) -> list[tuple[int, int]]:
    """Where the passages of a content begin and end, in characters: one where it is short, else about 400 each.

    They are cut between paragraphs, lines or sentences where there are any, and leave nothing out. A very long content
    has longer ones: never more than ``MOST_PASSAGES``.
    """
    if len(content) <= _LONGEST_PASSAGE:
        return [(0, len(content))]
    borders = [*(border.end() for border in _BORDER.finditer(content)), len(content)]
    size = _PASSAGE
    while len(found := _cut_at(borders, content, size)) > MOST_PASSAGES:
        size *= 2
    return found


def _cut_at(borders: Iterable[int], content: str, size: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    start = fitting = 0
    for border in borders:
        while border - start > size:
            if fitting <= start:  # a sentence or line that is too long
                if border - start <= size * 3 // 2:
                    break
                blank = content.rfind(" ", start + size // 2, start + size)
                fitting = blank + 1 if blank >= 0 else start + size
            found.append((start, fitting))
            start = fitting
        fitting = border
    if found and len(content) - start < size // 4:
        start, _ = found.pop()
    return [*found, (start, len(content))]


def richest_sentence(text: str, worth: Mapping[str, float]) -> int:
    """Where the sentence or line begins that holds most of some terms, each by its worth; 0 where none holds any."""
    starts = [0, *(border.end() for border in _BORDER.finditer(text))]
    ends = [*starts[1:], len(text)]

    def held(place: int) -> float:
        return sum(worth.get(term, 0.0) for term in {*terms(text[starts[place] : ends[place]])})

    return starts[max(range(len(starts)), key=held)]


def passage_terms(item: MemoryItem) -> list[PassageTerms]:
    """The terms of each passage of an item: title; content, tags and speaker; and, in the first one only, values of
    metadata, context and data with the agent.
    """
    title = _terms(item.title, alone=True)
    about = [term for words in (*item.tags, item.origin.speaker) for term in _terms(words, alone=True)]
    extra: list[str] = []
    for values in (item.metadata, item.context, item.data, item.origin.agent):
        for text in _texts(values):
            extra += _terms(text, alone=True)
    bodies = [_terms(item.content[start:end], alone=True) + about for start, end in passages(item.content)]
    return [PassageTerms(title, body, () if number else extra) for number, body in enumerate(bodies)]


def weighted_terms(item: MemoryItem) -> tuple[WeightedTerms, ...]:
    """For each passage of an item the weight of each term (2 for each time in the title, 1 in content, tags and
    speaker, 0.5 elsewhere), and how many terms it has in all.
    """
    return tuple(map(_weighted, passage_terms(item)))


def _weighted(found: PassageTerms) -> WeightedTerms:
    weights: dict[str, float] = {}
    for part, weight in ((found.title, TITLE_WEIGHT), (found.body, BODY_WEIGHT), (found.extra, EXTRA_WEIGHT)):
        for term in part:
            weights[term] = weights.get(term, 0.0) + weight
    return weights, found.length


@cache
def identity() -> str:
    """Names everything that decides which terms a text has; an index made under another name must be rebuilt.

    The stemmer in Python is named by the digest of its program, found without importing it.
    """
    return f"{VERSION}/{_stemmer_name()}/unicode-{unicodedata.unidata_version}"


def _stemmer_name() -> str:
    compiled = _compiled()
    if compiled is not None:
        return f"english-compiled-{compiled.version()}"
    package = importlib.util.find_spec("snowballstemmer")
    folders = package.submodule_search_locations if package is not None else None
    if not folders:
        return "unstemmed"
    program = (Path(next(iter(folders))) / "english_stemmer.py").read_bytes()
    return f"english-{sha256(program).hexdigest()[:12]}"


# -- from text to tokens ------------------------------------------------------------------------------------------
def _terms(text: str, alone: bool) -> list[str]:
    """``alone``: give single characters of unspaced scripts too, as documents must so that one can be asked for."""
    tokens = _tokens(text)
    cut: Callable[[str], Iterable[str]] = _memo.__getitem__ if text.isascii() else partial(_cut, alone=alone)
    found = list(chain.from_iterable(map(cut, tokens)))
    if found or not tokens:
        return found
    return [token.casefold() for token in tokens]


def _tokens(text: str) -> list[str]:
    """The words of a text as they were written, without underscores around them."""
    if not text.isascii():
        return _any_token().findall(_folded(text))
    words = text.translate(_ASCII).split()
    return [bare for word in words if (bare := word.strip("_"))] if "_" in text else words


# Large character classes take milliseconds to compile: a process that meets only ASCII text is spared them.
@cache
def _any_token() -> re.Pattern[str]:
    return re.compile(f"[{_UNSPACED}]+|(?:(?![{_UNSPACED}]){_LETTER})+(?:_+(?:(?![{_UNSPACED}]){_LETTER})+)*")


@cache
def _unspaced() -> re.Pattern[str]:
    return re.compile(f"[{_UNSPACED}]")


def _folded(text: str) -> str:
    """Compatibility forms unified and accents dropped; letter case is kept for the humps."""
    decomposed = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text))
    return unicodedata.normalize("NFC", _MARKS.sub("", decomposed))


class _Memo(dict[str, tuple[str, ...]]):
    """The terms of each word of a spaced script that was met."""

    def __missing__(self, token: str) -> tuple[str, ...]:
        if len(self) >= _MEMO_LIMIT:
            self.clear()
        plain = token.isascii() and token.isalpha() and (token.islower() or token[1:].islower())
        if plain:  # as ``_words``, for most words
            word = token.lower()
            cut: tuple[str, ...] = () if word in STOP_WORDS else (_stem(word)[:_MAX_TERM],)
        else:
            cut = tuple(_words(token))
        self[token] = cut
        return cut


_memo = _Memo()


def _cut(token: str, alone: bool) -> tuple[str, ...]:
    unspaced = not token.isascii() and _unspaced().match(token)
    return tuple(_pairs(token, alone)) if unspaced else _memo[token]


def _pairs(run: str, alone: bool) -> Iterator[str]:
    run = run.casefold()
    if alone or len(run) == 1:
        yield from run
    for start in range(len(run) - 1):
        yield run[start : start + 2]


def _words(token: str) -> Iterator[str]:
    """The stem of the whole word, then the stems of the parts of ``snake_case`` and ``camelCase``; no stop words."""
    whole = token.replace("_", "")
    yield from _word(whole)
    parts = [part for piece in token.split("_") if piece for part in _HUMPS.findall(piece)]
    if "_" in token or _humped(token):
        for part in parts:
            if len(part) > 1:
                yield from _word(part)


def _humped(token: str) -> bool:
    return not (token.islower() or token.isupper() or token[1:].islower()) and len(_HUMPS.findall(token)) > 1


def _word(word: str) -> Iterator[str]:
    folded = word.casefold().translate(_LETTERS)
    if folded not in STOP_WORDS:
        yield _stem(folded)[:_MAX_TERM]


# -- stems --------------------------------------------------------------------------------------------------------
def _stem(word: str) -> str:
    if not word.isascii() or not word.isalpha() or len(word) > _MAX_TERM:
        return word
    return _stemmer().stemWord(word) or word


@cache
def _compiled() -> ModuleType | None:
    """PyStemmer, where the extra ``fast`` installed it: the same rules in C, fifteen times quicker."""
    try:
        return importlib.import_module("Stemmer")
    except ImportError:
        return None


@cache
def _stemmer() -> Any:
    """The English Snowball stemmer, compiled or in Python.

    The one in Python is imported here because it costs a start that searches nothing 20 ms.
    """
    compiled = _compiled()
    if compiled is not None:
        return compiled.Stemmer("english")
    from snowballstemmer.english_stemmer import EnglishStemmer

    return EnglishStemmer()


# -- texts of structured values -----------------------------------------------------------------------------------
def _texts(value: Any) -> Iterator[str]:
    """Every text and number within nested values; keys, truth values and nothing are no texts."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _texts(inner)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield str(value)

"""Turns text into terms, the same for every engine.

Terms are folded and stemmed, without stop words. They hold letters and digits only, never a space, a quote or ASCII
punctuation; engines may rely on it. The words of a text in another language than English have the stem of that
language and, where it differs, the term that they have in English: names and borrowed words are found across
languages, and so is a text too short for its language to be detected.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import chain

from memfs.dataclass import NamedTuple
from memfs.model import MemoryItem
from memfs.resources import word_lists
from memfs.startup import Any, import_module, regex, sha256

LONGEST = 64
_LEAST_AGAIN = 4
_NAMES = {
    "en": "english", "de": "german", "fr": "french", "es": "spanish", "pt": "portuguese", "it": "italian",
    "nl": "dutch", "sv": "swedish", "da": "danish", "no": "norwegian", "fi": "finnish", "pl": "polish",
    "cs": "czech", "hu": "hungarian", "ro": "romanian", "tr": "turkish", "ca": "catalan", "id": "indonesian",
    "ru": "russian", "el": "greek", "ar": "arabic", "fa": "persian", "hi": "hindi", "ta": "tamil", "hy": "armenian",
}  # fmt: skip
# The first and the last character of a script, and the language whose rules its words are cut by.
_SCRIPTS = (
    ("\u0370", "\u03ff", "el"), ("\u0400", "\u052f", "ru"), ("\u0531", "\u0587", "hy"), ("\u0620", "\u06ff", "ar"),
    ("\u0904", "\u0939", "hi"), ("\u0b80", "\u0bff", "ta"), ("\u1f00", "\u1fff", "el"),
)  # fmt: skip
# Letters of Ukrainian, Belarusian, Serbian and Macedonian, which Snowball does not know, and of Persian.
_OTHER_CYRILLIC = frozenset("іїєґўђјљњћџѓќѕ")
_PERSIAN = frozenset("پچژکگی")


def language_of(word: str) -> str:
    """The language whose rules cut a word, by its script; "" for Latin letters, which many languages write, and for
    scripts whose words have no rules.

    Args:
        word: in lower case.
    """
    first = word[:1]
    code = next((code for begin, end, code in _SCRIPTS if begin <= first <= end), "")
    if code == "ru" and not _OTHER_CYRILLIC.isdisjoint(word):
        return ""
    return "fa" if code == "ar" and not _PERSIAN.isdisjoint(word) else code


def stem(word: str, code: str = "en") -> str:
    """The stem of a word in lower case, accents kept; the word itself where there are no rules for its language."""
    if len(word) > LONGEST:
        return word
    found = str(_stemmer(code)(word)) or word
    # the rules for Turkish stop at another ending in each form: where they cut again, the forms of a word meet
    while code == "tr" and len(shorter := str(_stemmer(code)(found))) >= _LEAST_AGAIN and shorter != found:
        found = shorter
    return found


@cache
def stemmer_name() -> str:
    """Names the rules in force, found without importing those in Python: by the names and sizes of their
    programs.
    """
    compiled = _compiled()
    if compiled is not None:
        return f"compiled-{compiled.version()}"
    from importlib.util import find_spec  # the compiled rules name themselves

    package = find_spec("snowballstemmer")
    folders = package.submodule_search_locations if package is not None else None
    if not folders:
        return "unstemmed"
    with os.scandir(next(iter(folders))) as entries:
        programs = sorted(
            f"{entry.name} {entry.stat().st_size}" for entry in entries if entry.name.endswith("_stemmer.py")
        )
    return sha256("\n".join(programs).encode()).hexdigest()[:12]


@cache
def _compiled() -> Any:
    try:
        return import_module("Stemmer")
    except ImportError:
        return None


@cache
def _stemmer(code: str) -> Callable[[str], Any]:
    """Importing one in Python costs up to 20 ms, which a start that searches nothing is spared.

    A compiled one keeps no words: what is cut is kept here.
    """
    called, compiled = _NAMES[code], _compiled()
    try:
        if compiled is not None:
            return compiled.Stemmer(called, 0).stemWord  # type: ignore[no-any-return]
        module = import_module(f"snowballstemmer.{called}_stemmer")
    except (ImportError, KeyError):  # an older Snowball knows fewer languages
        return str
    return getattr(module, f"{called.title()}Stemmer")().stemWord  # type: ignore[no-any-return]


_OTHER_LETTER = regex(f"[{''.join(word_lists()['letters'])}]", re.IGNORECASE)
_SCRIPT_LETTERS = {code: regex(f"[{script}]") for code, script in word_lists()["scripts"].items()}
"""By language the letters of its own script."""
MOST = 2
"""A short text may be in several languages: how many of them are assumed at most."""

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
"""Letters; an ending means nothing in a word that has no more."""


def _detect_languages(words: Sequence[str], text: str) -> tuple[str, ...]:
    """The languages that a text seems to be in, besides English, likeliest first; none for what may be English.

    At most two: those of a short text cannot always be distinguished.

    Args:
        words: the words of the text; in any case.
        text: the text itself.
    """
    if not text.isascii():
        words = [word if word.isascii() else folded(word) for word in words]
    plain, short = text.isascii() or _OTHER_LETTER.search(text) is None, len(words) <= _SHORT
    # nearly all English texts: they are to cost nothing
    if plain and not (any(map(_identifies.__getitem__, words)) if short else not _distinctive().isdisjoint(words)):
        return ()
    present = {word.lower() for word in words}
    bare = short and len(stop_words("en").intersection(present)) <= 1
    if plain and not bare and _distinctive().isdisjoint(present):
        return ()
    ended = [word for word in present if _has_ending(word)] if bare else []
    if plain and not ended and _function_words().isdisjoint(present):
        return ()
    english, letters = stop_words("en") & present, frozenset(text.casefold())
    least = _FEWEST if not english or not _distinctive().isdisjoint(present) else _MORE
    likely: dict[str, float] = {}
    for code in word_lists()["stop"]:
        own = _known_words(code) & present
        score = sum(1.0 if word in _distinctive() else _ALSO_ENGLISH for word in own)
        score += _SIGN * (len(_letters(code) & letters) + sum(word.endswith(_endings(code)) for word in ended))
        shared = len(english & own)
        if code != "en" and score >= least and score > len(english) - shared + _SHARED * shared:
            likely[code] = score
    close = [code for code, score in likely.items() if score >= _CLOSE * max(likely.values())]
    return tuple(sorted(close, key=lambda code: -likely[code])[:MOST])


@cache
def language_marks() -> Mapping[str, str]:
    """The languages that can be detected in a text in Latin letters, but English, by the ``mark`` of each."""
    return {mark(code): code for code in word_lists()["stop"] if code not in ("en", *word_lists()["scripts"])}


@cache
def stop_words(code: str) -> frozenset[str]:
    """The words of a language that say nothing, folded; empty for one whose are not known."""
    return frozenset(word_lists()["stop"].get(code, "").split())


@cache
def _known_words(code: str) -> frozenset[str]:
    return stop_words(code).union(word_lists()["orders"].get(code, "").split())


@cache
def _function_words() -> frozenset[str]:
    every = " ".join((*word_lists()["stop"].values(), *word_lists()["orders"].values()))
    return frozenset(every.split()) - stop_words("en")


@cache
def _distinctive() -> frozenset[str]:
    """The words that identify a language: those that are not also English."""
    return _function_words().difference(word_lists()["english_too"].split())


class _LanguageWords(dict[str, bool]):
    """Whether a word that was met may identify a language."""

    def __missing__(self, word: str) -> bool:
        if len(self) >= _MEMO_LIMIT:
            self.clear()
        plain = word.lower()
        tells = self[word] = plain in _function_words() or _has_ending(plain)
        return tells


_identifies = _LanguageWords()


def _has_ending(word: str) -> bool:
    return len(word) > _LONG and word.endswith(_endings())


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


VERSION = 8
TITLE_WEIGHT = 2.0
BODY_WEIGHT = 1.0
EXTRA_WEIGHT = 0.5
MOST_PASSAGES = 64
_PASSAGE = 400
_LONGEST_PASSAGE = 600
_BORDER = regex(r"(?<=[.!?:;])\s+|[\u3002\uff01\uff1f]|\n+")
_FEW = 4
_MEMO_LIMIT = 200_000

# Scripts written without spaces between words: kana, ideographs, Hangul, Thai, Lao, Burmese, Khmer.
_UNSPACED = (
    "\u0e01-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3041-\u3096\u30a1-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
# Vowel signs of Indic scripts are marks to Unicode, not letters, yet they belong to the word.
_LETTER = "(?:[^\\W_]|[\u0900-\u0963\u0971-\u0de5\u0df2\u0df3\u0f71-\u0fbc])"
# Large character classes take milliseconds to compile: a process that meets only ASCII text is spared them.
_ANY_TOKEN = regex(f"[{_UNSPACED}]+|(?:(?![{_UNSPACED}]){_LETTER})+(?:_+(?:(?![{_UNSPACED}]){_LETTER})+)*")
_UNSPACED_LETTER = regex(f"[{_UNSPACED}]")
_ASCII = bytes(one if chr(one).isalnum() or one == ord("_") else ord(" ") for one in range(128)).ljust(256)
"""A table for ``bytes.translate``: blanks for all between the words of ASCII text, far quicker than searching them."""
_HUMPS = regex(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^A-Za-z0-9]+")
# Accents of Latin, Greek and Cyrillic, points of Hebrew and Arabic.
_MARKS = regex("[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u0610-\u061a\u064b-\u065f\u0670]")
_LETTERS = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ð": "d", "æ": "ae", "œ": "oe", "þ": "th", "ı": "i"})

STOP_WORDS = stop_words("en")


class PassageTerms(NamedTuple):
    """The terms of one passage of an item by field, in order, repeats kept."""

    title: Sequence[str]
    body: Sequence[str]
    extra: Sequence[str]


WeightedTerms = tuple[Mapping[str, float], int]
"""The weight of each term of a passage, and how many it has."""


class Word(NamedTuple):
    """A word of a text.

    Attributes:
        text: as it was written, without accents.
        terms: its terms; none for a stop word.
        others: what its terms are in English, where the text is in another language and they differ.
    """

    text: str
    terms: tuple[str, ...]
    others: tuple[str, ...] = ()


def terms(text: str) -> list[str]:
    """The terms of a text, in order, repeats kept.

    Stop words are left out, unless nothing else would remain.
    """
    tokens = _tokens(text)
    return _cut_all(tokens, _detect_languages(tokens, text), text.isascii(), alone=False) if tokens else []


def tokens(text: str) -> Iterator[tuple[str, Iterable[str]]]:
    """Each word of a text as it was written, with its terms; none for a stop word."""
    for word in words(text):
        yield word.text, word.terms + word.others


def words(text: str, languages: tuple[str, ...] | None = None) -> Iterator[Word]:
    """Each word of a text.

    Args:
        languages: what ``languages`` returned for the text that this one is a part of.
    """
    tokens = _tokens(text)
    detected = _detect_languages(tokens, text) if languages is None else languages
    for token in tokens:
        if is_unspaced(token):
            yield Word(folded(token), tuple(_pairs(folded(token), alone=False)))
        elif detected:
            yield Word(folded(token), *_cut(token, detected))
        else:
            yield Word(token if token.isascii() else folded(token), _memo[token])


@lru_cache(maxsize=4096)
def certain_terms(word: str) -> frozenset[str]:
    """The terms that every text with a word has, in whatever language; none where that is not certain."""
    if not word.isascii() or word in _function_words():
        return frozenset()
    return frozenset(term for found in words(word, ()) for term in found.terms)


@lru_cache(maxsize=64)  # several parts ask for those of one question
def languages(text: str) -> tuple[str, ...]:
    """The languages, by code, whose rules cut the words of a text besides those of English; mostly none or one."""
    return _detect_languages(_tokens(text), text)


def mark(code: str) -> str:
    """The term that every passage in a language has: by it an index knows which languages there are.

    It begins with a digit, so that no word is taken for a slip of it.
    """
    return f"0language0{code}"


def in_languages(text: str, codes: Collection[str]) -> dict[str, tuple[str, ...]]:
    """The stems that the words of a text have in some languages, for each word that has others than in English."""
    found: dict[str, tuple[str, ...]] = {}
    for token in _tokens(text):
        if not is_unspaced(token):
            own, others = _cut(token, tuple(codes))
            found |= {token: own} if others or len(own) > 1 else {}  # one of them may leave a word as English does
    return found


def has_no_language(text: str) -> bool:
    """Whether a text is a few words, none of which identifies a language: ``Verbindung``, ``connection pool``."""
    tokens = _tokens(text)
    few = 0 < len(tokens) <= _FEW and STOP_WORDS.isdisjoint(token.lower() for token in tokens)
    return few and not languages(text)


def text_languages(text: str) -> tuple[str, ...]:
    """The languages, by code, that a text is in, those of its scripts included; none for English."""
    if text.isascii():
        return languages(text)
    found = [code for code, letters in _SCRIPT_LETTERS.items() if letters.search(text)]
    by_script = (code for code in found if code != "zh" or "ja" not in found)  # Japanese is written with both
    return tuple(dict.fromkeys((*languages(text), *by_script)))


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

    All are in the language of title and content, of which each passage has the mark.
    """
    pieces = [item.title, *(item.content[start:end] for start, end in passages(item.content))]
    cut = [*map(_tokens, pieces)]
    detected = _detect_languages(cut[0] + cut[1] if len(cut) == 2 else [*chain.from_iterable(cut)], "\n".join(pieces))
    title, *bodies = (
        _cut_all(found, detected, piece.isascii(), alone=True) for found, piece in zip(cut, pieces, strict=True)
    )
    about: list[str] = []
    for words in (*item.tags, item.origin.speaker):
        about += _cut_all(_tokens(words), detected, words.isascii(), alone=True)
    extra: list[str] = []
    for values in (item.metadata, item.context, item.data, item.origin.agent):
        for text in _texts(values):
            extra += _cut_all(_tokens(text), detected, text.isascii(), alone=True)
    marks = [mark(code) for code in detected]
    return [PassageTerms(title, body + about, marks if number else marks + extra) for number, body in enumerate(bodies)]


def weighted_terms(item: MemoryItem) -> tuple[WeightedTerms, ...]:
    """For each passage of an item the weight of each term (2 for each time in the title, 1 in content, tags and
    speaker, 0.5 elsewhere), and how many terms it has in all.
    """
    rows = []
    for found in passage_terms(item):
        weights: dict[str, float] = {}
        for part, weight in zip(found, (TITLE_WEIGHT, BODY_WEIGHT, EXTRA_WEIGHT), strict=True):
            for term in part:
                weights[term] = weights.get(term, 0.0) + weight
        rows.append((weights, sum(map(len, found))))
    return tuple(rows)


@cache
def identity() -> str:
    """Names everything that decides which terms a text has; an index made under another name must be rebuilt."""
    return f"{VERSION}/{stemmer_name()}/unicode-{unicodedata.unidata_version}"


# -- from text to tokens ------------------------------------------------------------------------------------------
def _cut_all(tokens: Sequence[str], detected: tuple[str, ...], plain: bool, alone: bool) -> list[str]:
    """The terms of tokens.

    Args:
        plain: all are ASCII.
        alone: give what documents must have so that it can be asked for: single characters of unspaced scripts, and
            a name that is a stop word of a language that a short text is only taken for, such as Kim, Mia or ES.
    """
    if not tokens:
        return []
    memo = _memo_of(detected, alone) if detected else _memo
    parts: Iterable[Iterable[str]] = map(memo.__getitem__, tokens)
    if not plain:
        parts = (_pairs(folded(token), alone) if is_unspaced(token) else memo[token] for token in tokens)
    return list(chain.from_iterable(parts)) or [folded(token).casefold() for token in tokens]


def _tokens(text: str) -> list[str]:
    """The words of a text as they were written, accents kept, without underscores around them."""
    if not text.isascii():
        return _ANY_TOKEN.findall(_MARKS.sub("", unicodedata.normalize("NFKC", text)))
    plain = text.encode().translate(_ASCII).decode()
    words = plain.split()
    if "_" not in plain or not ("_ " in plain or " _" in plain or plain[0] == "_" or plain[-1] == "_"):
        return words
    return [bare for word in words if (bare := word.strip("_"))]


def is_unspaced(token: str) -> bool:
    """Whether a word begins in a script that is written without spaces between words."""
    return not token.isascii() and _UNSPACED_LETTER.match(token) is not None


def folded(text: str) -> str:
    """Accents dropped; letter case is kept for the humps."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _MARKS.sub("", unicodedata.normalize("NFD", text)))


class _Memo(dict[str, tuple[str, ...]]):
    """The terms of each word of a spaced script that was met in texts of some languages; see ``_cut_all``."""

    def __init__(self, detected: tuple[str, ...], alone: bool = False) -> None:
        self._detected, self._alone = detected, alone

    def __missing__(self, token: str) -> tuple[str, ...]:
        if len(self) >= _MEMO_LIMIT:
            self.clear()
        if token.isascii() and not self._detected:
            if token.isalpha() and (token.islower() or token[1:].islower()):  # as ``_words``, for most words
                word = token.lower()
                cut: tuple[str, ...] = () if word in STOP_WORDS else (stem(word)[:LONGEST],)
            else:
                cut = tuple(_words(token))
        else:
            own, others = _cut(token, self._detected)
            cut = own + others
            if self._alone and not cut and token[:1].isupper():
                cut = tuple(dict.fromkeys((*_words(folded(token)), folded(token).casefold())))
        self[token] = cut
        return cut


_memo = _Memo(())


_memo_of = cache(_Memo)


def _cut(token: str, detected: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The terms of a token: of a word in letters that one language writes, or whose text is in another language than
    English, by the rules of that language; and those that it has in English where they differ.
    """
    word = token.casefold()
    script = language_of(word) if not token.isascii() else ""
    spoken = (script,) if script else detected
    bare = folded(token)
    if not spoken or _camel_case_parts(bare) or not (script or bare.isalpha()):
        return tuple(_words(bare)), ()
    plain = folded(word).translate(_LETTERS)
    if any(plain in stop_words(code) for code in spoken):
        return (), ()
    own = dict.fromkeys(folded(stem(word, code)).translate(_LETTERS)[:LONGEST] for code in spoken)
    if script:
        return tuple(own), ()
    return tuple(own), tuple(one for one in _words(bare) if one not in own)


def _pairs(run: str, alone: bool) -> Iterator[str]:
    run = run.casefold()
    if alone or len(run) == 1:
        yield from run
    for start in range(len(run) - 1):
        yield run[start : start + 2]


def _words(token: str) -> list[str]:
    """The stem of the whole word, then the stems of the parts of ``snake_case`` and ``camelCase``; no stop words."""
    found = [*_word(token.replace("_", ""))]
    if "_" in token or _camel_case_parts(token):
        for piece in token.split("_"):
            whole = piece.islower() and piece.isascii() and piece.isalpha()
            for part in (piece,) if whole else _HUMPS.findall(piece):
                if len(part) > 1:
                    found += _word(part)
    return found


def _camel_case_parts(token: str) -> bool:
    return not (token.islower() or token.isupper() or token[1:].islower()) and len(_HUMPS.findall(token)) > 1


def _word(word: str) -> Iterable[str]:
    lower = word.lower() if word.isascii() else word.casefold().translate(_LETTERS)  # which takes its time
    if lower.isascii() and lower.isalpha():
        return _memo[lower]
    return () if lower in STOP_WORDS else (lower[:LONGEST],)


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

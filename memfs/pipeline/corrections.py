"""Corrections: which sentences of a person's message correct an agent or say how things are to be done (seed 004, P4).

Owns how a message is taken apart, and what keeps a sentence from being one: it is asked, told of somebody else, or
holds for this once. It is precise rather than greedy. The signs are ``memfs.pipeline.phrases``' business; what becomes
of a correction, ``memfs.pipeline.preferences``'.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from memfs.pipeline import phrases

_LOOKED_AT = 20_000
_LONGEST = 500
_MOST = 20
_FEWEST_WORDS = 3
_MOST_CLAUSES = 8

_CODE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1|\Z)", re.M | re.S)
_QUOTED_LINE = re.compile(r"^[ \t]*>.*$", re.M)
_WRAPPED = re.compile(r"(?<![.!?:;\n])\n(?=[a-z])")
_END = re.compile(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)(?<!etc\.)(?<!\svs\.)[\"')\]]{0,3}\s+|\n+")
_ITEM = re.compile(r"(?:[-*+\u2022]|\d{1,3}[.)])\s+")
_STRAIGHT = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2013": "-", "\u2014": "-"})
_OTHERS_WORDS = re.compile(r'"[^"]{1,400}"|\u00ab[^\u00bb]{1,400}\u00bb')
_EMPHASIS = re.compile(r"\*+|__|`")
_CLAUSE = re.compile(r"(?:, (?:but|and|so)|;|:| -+) |, (?=we )")
# It holds for this once, or is explained by what somebody is doing.
_ONCE = re.compile(
    r"\b(?:yet|for now|right now|this time|(?:for )?this one|just (?:this )?once|at the moment|for the moment|so far|"
    r"today|tonight|tomorrow|until|till|i(?:'m| am) (?:still|just|currently)|"
    r"(?:for|in) this (?:case|request|task|run|change|pr|commit|ticket|issue|call|step|branch|session))\b|\bnow[.!]*$"
)
# Somebody else says so.
_REPORTED = re.compile(
    r"\b(?<!i )(?<!i already )(?<!i just )(?:says?|said|complains?|complained|claims|claimed|warns|warned|thinks|"
    r"(?:reports?|states?|claims?) that|reported|stated|told (?:me|us|him|her|them)|suggests?|recommend(?:s|ed)?)\b"
)
# What names nothing: ``don't do that again`` tells nobody anything who was not there.
_POINTING = re.compile(r"(?:\s*\b(?:it|that|this|so|them|those|these|anything|again|please|ever|either|do|like)\b)*\W*")


def corrections(text: str) -> tuple[str, ...]:
    """The sentences of a person's message that correct or prefer, as they are written, in order, each once.

    Quoted text and code are not the person's own words. English is understood. Of a long message the first 20,000
    characters are looked at and the first 20 such sentences count: it is a document. A sentence of more than 500
    characters is none.
    """
    found = dict.fromkeys(one for one in _sentences(text[:_LOOKED_AT]) if is_correction(one))
    return tuple(islice(found, _MOST))


def passed_over(text: str) -> tuple[str, ...]:
    """The other sentences of a message, as far as it is looked at: those that neither correct nor prefer."""
    kept = corrections(text)
    return tuple(dict.fromkeys(one for one in _sentences(text[:_LOOKED_AT]) if one not in kept))


def is_correction(sentence: str) -> bool:
    """Whether one sentence corrects or prefers."""
    if len(sentence) > _LONGEST or len(sentence.split()) < _FEWEST_WORDS:
        return False
    own = " ".join(_EMPHASIS.sub("", _OTHERS_WORDS.sub('""', sentence.translate(_STRAIGHT))).split())
    if phrases.CALL_ME.match(own):
        return True
    said = own.casefold().replace("dont ", "don't ")
    if said.endswith("?"):
        return phrases.ASKED.match(_without(phrases.OPENING, said)) is not None
    if phrases.FROM_NOW_ON.search(said):
        return not _REPORTED.search(said)
    return not _ONCE.search(said) and any(map(_corrects, _clauses(said)))


def _sentences(text: str) -> Iterator[str]:
    own = _WRAPPED.sub(" ", _QUOTED_LINE.sub("", _CODE.sub("\n", text)))
    for part in _END.split(own):
        stripped = part.strip()
        if sentence := _without(_ITEM, stripped).strip():
            yield sentence


def _clauses(said: str) -> Iterator[str]:
    """The sentence, and what follows where another main clause may begin, unless it is told of somebody."""
    yield said
    for number, found in enumerate(_CLAUSE.finditer(said)):
        if number >= _MOST_CLAUSES or _REPORTED.search(said[: found.start()]):
            return
        yield said[found.end() :]


def _corrects(clause: str) -> bool:
    said = _without(phrases.OPENING, clause)
    refused = phrases.REFUSAL.match(said)
    if refused is not None:
        said = _without(phrases.OPENING, said[refused.end() :])
        if phrases.INSTEAD.match(said):
            return True
    return _asks(said) or _asks(_without(phrases.OPENING, _without(phrases.CIRCUMSTANCE, said)))


def _asks(said: str) -> bool:
    order = phrases.ORDER.match(said)
    if order is not None:
        return not _only_points(order["deed"] or order["doing"] or "")
    found = phrases.RULE.match(said)
    if found is not None:
        return not _REPORTED.search(found.group())
    return phrases.PERSONAL.match(said) is not None


def _only_points(deed: str) -> bool:
    _, _, named = deed.partition(" ")
    return bool(named) and _POINTING.fullmatch(named) is not None


def _without(beginning: re.Pattern[str], said: str) -> str:
    found = beginning.match(said)
    return said[found.end() :] if found else said

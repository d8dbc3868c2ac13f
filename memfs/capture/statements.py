"""Statements: which sentences of an agent's message decide or state something that lasts (seed 003, C6).

Owns what makes a sentence a decision or a piece of knowledge, and of which sort. It is precise rather than greedy: most
of what an agent says is about the moment, and is passed over. The wordings are cues.
"""

from __future__ import annotations

from dataclasses import dataclass

from memfs.capture.sentences import sentences
from memfs.pipeline.corrections import is_correction
from memfs.pipeline.cues import Cues, spoken

MOST = 5
"""Of one message, so many decisions and so many pieces of knowledge at most."""
_FEWEST_WORDS, _MOST_WORDS, _LONGEST = 5, 60, 400
_TOLD_BY_PERSONS = frozenset({"location", "fact"})
_FEWEST_NAMING = 4  # a path says more than a word

_TABLE = "statements"


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence that lasts.

    Attributes:
        text: the sentence.
        decides: whether it tells a decision; else a piece of knowledge.
        sort: of a decision ``choice``, ``change``, ``rejection``, ``deferral``; of knowledge ``cause``, ``lesson``,
            ``constraint``, ``location``, ``fact``.
    """

    text: str
    decides: bool
    sort: str


def statements(text: str) -> list[Statement]:
    """What a message decides or states, in order; of each at most ``MOST``."""
    found = [one for sentence in sentences(text) if (one := statement(sentence)) is not None]
    decided = [one for one in found if one.decides][:MOST]
    known = [one for one in found if not one.decides][:MOST]
    return [one for one in found if one in decided or one in known]


def facts_in(text: str) -> list[Statement]:
    """What a person's message tells of the work that lasts: where something is, and what the project is made of.

    What must be or cannot be is as a rule what the message is to change, and how things are done, preferences keep.
    """
    found = (one for one in map(statement, sentences(text)) if one is not None and one.sort in _TOLD_BY_PERSONS)
    return [one for one in found if not is_correction(one.text)][:MOST]


def reports(text: str) -> list[str]:
    """The sentences of a message that report something as done."""
    return [one for one in sentences(text) if _reports(one.replace("\u2019", "'"))]


def _reports(sentence: str) -> bool:
    return len(sentence) <= _LONGEST and any(
        language.pattern(f"{_TABLE}.reported").match(sentence)
        and not language.pattern(f"{_TABLE}.not_done", r"\b{}\b").search(sentence)
        for language in spoken(_TABLE)
    )


def statement(sentence: str) -> Statement | None:
    """What one sentence decides or states, None where that is nothing that lasts."""
    words = len(sentence.split())
    if not _FEWEST_NAMING <= words <= _MOST_WORDS or len(sentence) > _LONGEST or sentence.endswith(("?", ":")):
        return None
    plain = sentence.replace("\u2019", "'")
    return next((found for one in spoken(_TABLE) if (found := _stated(one, sentence, plain, words)) is not None), None)


def _stated(language: Cues, sentence: str, plain: str, words: int) -> Statement | None:
    if language.pattern(f"{_TABLE}.passing").search(plain):
        return None
    for decides, table in ((True, f"{_TABLE}.decisions"), (False, f"{_TABLE}.knowledge")):
        for sort in language.names(table):
            fewest = _FEWEST_NAMING if sort == "location" else _FEWEST_WORDS
            if words >= fewest and language.pattern(f"{table}.{sort}").search(plain):
                return Statement(sentence, decides, sort)
    return None

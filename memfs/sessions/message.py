"""Take a message apart into sentences, and recognise wishes to remember, intentions and priorities.

Code, quoted lines, tables, headings and marks of Markdown are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from memfs.intake.filter import TrivialFilter
from memfs.recall.cues import ends, spoken
from memfs.sessions.event import SessionEvent

_LOOKED_AT = 20_000
_CODE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[^\n]*$|\Z)", re.M | re.S)
_LEFT_OUT = re.compile(r"^[ \t]*(?:>|\||#{1,6} |<!--|[-=*_]{3,}[ \t]*$).*$", re.M)
_WRAPPED = re.compile(r"(?<![.!?:;\n])\n[ \t]*(?=[a-z])")
_MARK = re.compile(r"(?:[-*+\u2022\u2713\u2705]|\d{1,3}[.)]|\[[ xX]\])\s+")
_EMPHASIS = re.compile(r"(?<!\w)[*_]{1,3}(?=\S)|(?<=\S)[*_]{1,3}(?!\w)")


def sentences(text: str) -> list[str]:
    """The sentences of a message in order, each once; of a long one, those of its first 20,000 characters."""
    plain = _WRAPPED.sub(" ", _LEFT_OUT.sub("", _CODE.sub("\n", text[:_LOOKED_AT])))
    found: dict[str, None] = {}
    for part in ends().split(plain):
        sentence = part.strip()
        while mark := _MARK.match(sentence):
            sentence = sentence[mark.end() :].strip()
        sentence = _EMPHASIS.sub("", sentence).strip()
        if sentence:
            found[" ".join(sentence.split())] = None
    return list(found)


QUOTED = 20
"""So many characters in a row are a quotation."""
HIGH, MEDIUM, LOW = "high", "medium", "low"
PRIORITIES = (HIGH, MEDIUM, LOW)
_SHORT = 400
_LONGEST = 1_000

_TABLE = "intentions"
_HASH = re.compile(r"[#\uff03][ \t\u3000]+(?=[\w\"'`(@/\u00ab\u201c\u201e\u300c])(\S[^\r\n]*)")
_COMMAND = re.compile(r"\s*/[A-Za-z][\w:-]*(?:\s|$)")
_MARKUP = re.compile(r"<(?:command-(?:name|message|args)|local-command-\w+|system-reminder|task-notification)>")


def own_words(event: SessionEvent) -> str:
    """What a person said in a prompt; "" where a program said it, or it is a command to the program."""
    text = event.text("prompt").strip()
    if event.fields.get("is_command") is True or _COMMAND.match(text) or _MARKUP.match(text):
        return ""
    return text if event.text("source") in ("", "user", "sdk") else ""


def by_person(event: SessionEvent) -> bool:
    """Whether a person typed it, and not a program that drives the agent."""
    return event.text("source") in ("", "user")


def pieces(value: object) -> Iterator[str]:
    """All that a quotation of a text, or of the texts in a value, would have in common with it: ``QUOTED`` characters
    in a row, whatever the letter case and the blanks.
    """
    if isinstance(value, str):
        plain = " ".join(value.casefold().split())
        yield from (plain[at : at + QUOTED] for at in range(len(plain) - QUOTED + 1))
    elif isinstance(value, Mapping):
        yield from pieces([*value.keys(), *value.values()])
    elif isinstance(value, Iterable):
        for one in value:
            yield from pieces(one)


def note(text: str) -> str:
    """What a message asks to be kept as it is, in whatever language; "" where it asks for nothing of the sort.

    It does by ``remember:`` at its beginning, before as many lines as there are, or by ``#`` and a blank before the one
    line that it has. ``#123``, ``#hashtag``, ``#!/bin/sh``, ``## a heading`` and a document that begins with a heading
    are no notes.
    """
    said = text.strip()
    found = _HASH.fullmatch(said)
    if found is not None:
        return "" if TrivialFilter().is_trivial(found[1]) else found[1].strip()
    for language in spoken("notes"):
        begun = language.pattern("notes.remember", r"{}[ \t]*[:\uff1a]\s*").match(said)
        if begun is not None:
            return said[begun.end() :].strip()
    return ""


def intention(text: str) -> str:
    """What a message says of work to be done later, in its own words; "" where it says nothing of that.

    A short message is given as a whole, of a longer one the sentences that say so.
    """
    found = [one for one in sentences(text) if _intends(one)]
    if not found:
        return ""
    return text.strip() if len(text) <= _SHORT else "\n".join(found)[:_LONGEST]


def _intends(sentence: str) -> bool:
    """Whether a sentence tells of later work, by words that do not mean something else here."""
    return any(
        language.pattern(f"{_TABLE}.later", r"\b{}\b").search(
            language.pattern(f"{_TABLE}.otherwise").sub(" ", sentence)
        )
        for language in spoken(_TABLE)
    )


def priority(text: str) -> str:
    """How urgent a message says that is: ``high``, ``medium`` or ``low``."""
    if _any("not_urgent", text):
        return LOW
    return HIGH if _any("urgent", text) else MEDIUM


def _any(name: str, text: str) -> bool:
    return any(language.pattern(f"{_TABLE}.{name}", r"\b{}\b").search(text) for language in spoken(_TABLE))

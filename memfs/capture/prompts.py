"""Prompts: what a person's message to an agent says of later work, and how urgent that is (seed 003, C6).

Owns which messages are a person's own words, which sentences of them tell of something to do later, and the words of
each priority. English is understood. What becomes of an intention, ``memfs.capture.memories`` says.
"""

from __future__ import annotations

import re

from memfs.capture.event import SessionEvent
from memfs.capture.sentences import sentences

HIGH, MEDIUM, LOW = "high", "medium", "low"
PRIORITIES = (HIGH, MEDIUM, LOW)
_SHORT = 400
_LONGEST = 1_000

_INTENDED = re.compile(r"\b(?:to-?dos?|later|needs? to|plan(?:s|ning)? to)\b", re.I)
# The same words where nobody intends anything: ``3.11 or later``, ``two days later``, ``no need to ask``.
_OTHERWISE = re.compile(
    r"\b(?:or|and|much|years?|months?|weeks?|days?|hours?|minutes?|seconds?|sooner or|no|see you|talk to you) later\b|"
    r"\blater (?:than|versions?|releases?)\b|\b(?:no|not|don'?t|doesn'?t|didn'?t|won'?t|without the|any|why|will|would|"
    r"do (?:i|we|you)) (?:\w+ )?needs? to\b|\bneed(?:s)? to know\b|"
    r"\b(?:what|which|who|how|whether|where) (?:\w+ ){0,2}needs? to\b",
    re.I,
)
_NOT_URGENT = re.compile(
    r"\b(?:low[- ]prio(?:rity)?|not (?:that |very |so )?(?:urgent|important|critical)|no (?:rush|hurry)|"
    r"nice[- ]to[- ]have|some ?day|eventually|whenever|when (?:you|i|we) (?:have|get) (?:some )?time|minor|"
    r"optional(?:ly)?|p[34])\b",
    re.I,
)
_URGENT = re.compile(
    r"\b(?:urgent(?:ly)?|asap|a\.s\.a\.p|as soon as possible|critical(?:ly)?|immediately|right away|"
    r"(?:high|top)[- ]prio(?:rity)?|important(?:ly)?|blocker|blocking|must[- ]have|before (?:the )?(?:release|"
    r"launch|deploy\w*)|"
    r"by (?:today|tonight|tomorrow)|p[01])\b",
    re.I,
)
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


def intention(text: str) -> str:
    """What a message says of work to be done later, in its own words; "" where it says nothing of that.

    A short message is given as a whole, of a longer one the sentences that say so.
    """
    found = [one for one in sentences(text) if _INTENDED.search(_OTHERWISE.sub(" ", one))]
    if not found:
        return ""
    return text.strip() if len(text) <= _SHORT else "\n".join(found)[:_LONGEST]


def priority(text: str) -> str:
    """How urgent a message says that is: ``high``, ``medium`` or ``low``."""
    if _NOT_URGENT.search(text):
        return LOW
    return HIGH if _URGENT.search(text) else MEDIUM

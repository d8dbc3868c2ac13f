"""Advice: a rule's words, made of what episodes tell (seed 004, P4).

Owns the sentences. What an episode says may come from anywhere, so it stands in them only as a quotation: on one line,
cut, without quotation marks of its own, and with characters that hide text as escapes. No word of it becomes an
instruction of ours.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from memfs.files.textguard import shown
from memfs.index.analyzer import tokens
from memfs.model.triggerrow import TriggerRow

_SHARED = 0.7
_NUMBERS = re.compile(r"\S*\d\S*")
_DID, _ERROR, _BRIEF, _WHOLE = 120, 160, 60, 400
QUOTES = str.maketrans({'"': "'", "\u201c": "'", "\u201d": "'", "\u201e": "'", "`": "'"})
_TELLING = re.compile(
    r"error|exception|fail|fatal|denied|refused|not found|cannot|can't|could not|unable|invalid|missing|timed? ?out|"
    r"expected|must",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Advice:
    """A rule in words: what to do, a name, and what goes wrong otherwise."""

    action: str
    title: str
    error: str


def advise(failures: Sequence[TriggerRow], remedies: Sequence[TriggerRow], place: str, quoting: bool = True) -> Advice:
    """What to tell an agent.

    Args:
        failures: what went wrong, at least one, oldest first.
        remedies: what went well afterwards.
        place: where, in the rule's own words.
        quoting: whether words of the episodes may be quoted at all.
    """
    newest = failures[-1]
    error = quote(telling_line(newest.error), _ERROR) if quoting else ""
    did = quote(_usual(failures), _DID) if quoting else ""
    worked = quote(_usual(_about_it(remedies, failures), besides=failures), _DID) if quoting else ""
    wrong = f"went wrong with {error}" if error else "went wrong"
    if worked:
        action = f"Consider {worked}: it worked where {did or 'another way'} {wrong}."
    else:
        action = f"Check first: {did or 'this'} {wrong} here before, more than once."
    brief = quote(telling_line(newest.error), _BRIEF)[1:-1] if quoting else ""
    where = quote(place, _BRIEF)[1:-1] or "again and again"
    whole = quote(telling_line(newest.error), _WHOLE)[1:-1] if quoting else ""
    return Advice(action, f"{where}: {brief}" if brief else f"{where}: goes wrong", whole)


def quote(text: str, most: int) -> str:
    """A text as a quotation of at most so many characters, "" for none."""
    line = shown(" ".join(text[: 20 * most].translate(QUOTES).split()))
    if not line:
        return ""
    return f'"{line if len(line) <= most else line[: most - 3].rstrip() + "..."}"'


def telling_line(error: str) -> str:
    """The line of an error message that says what happened: a traceback's last, else the first that sounds like it."""
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    if not lines:
        return ""
    if any(line.startswith("Traceback") for line in lines):
        return lines[-1]
    return next((line for line in lines if _TELLING.search(line)), lines[0])


def pattern_of(words: Collection[str], failures: Sequence[TriggerRow]) -> str:
    """The words that these terms come from, as the newest failure writes them, else as any does."""
    written: dict[str, str] = {}
    for row in failures:
        for word, stems in tokens(row.context):
            for stem in stems:
                if stem in words:
                    written[stem] = word
    newest = [stem for _, stems in tokens(failures[-1].context) for stem in stems]
    order = [*newest, *sorted(written)]
    return " ".join(dict.fromkeys(written[stem].casefold() for stem in order if stem in written))


def _about_it(remedies: Sequence[TriggerRow], failures: Sequence[TriggerRow]) -> Sequence[TriggerRow]:
    """What went well about the very matter that went wrong: in one file there may be several."""
    counted = Counter(word for row in failures for word in row.words)
    matter = {word for word, count in counted.items() if count >= _SHARED * len(failures)}
    return [row for row in remedies if 2 * len(matter.intersection(row.words)) >= len(matter)] or remedies


def _usual(rows: Sequence[TriggerRow], besides: Sequence[TriggerRow] = ()) -> str:
    """What was done most often, numbers aside, of equals the newest; "" where it was nothing else than ``besides``."""
    known = {row.did.casefold() for row in besides}
    others = [row.did for row in rows if row.did and row.did.casefold() not in known]
    if not others:
        return ""
    done = Counter(map(_without_numbers, others))
    newest = {_without_numbers(did): (place, did) for place, did in enumerate(others)}
    return newest[max(done, key=lambda deed: (done[deed], newest[deed][0]))][1]


def _without_numbers(text: str) -> str:
    return _NUMBERS.sub(" ", text.casefold())

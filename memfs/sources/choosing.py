"""Choosing: which of the sources' entries are told.

Owns what is left out: what the agent has already, what an earlier source said, and what has no room in a budget of
tokens. What a source selects, and how it is handed over, it does not know.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from memfs.files.textguard import shown
from memfs.model.episode import StateSnapshot
from memfs.pipeline.fence import QUOTE
from memfs.pipeline.likeness import SAME, Shape, alike
from memfs.pipeline.tokens import count_tokens
from memfs.sources.plugin import Entry, Selection

_COMPARED = 200
_LONGEST_SHARE = 2
_LONGEST_FACT = 200
_LONGEST_UNDECIDED = 600
_LONGEST_REMARK = 3 * _LONGEST_FACT + _LONGEST_UNDECIDED
LETTERS_A_TOKEN = 40
_REMARK = re.compile(r" \[[^\[\]]*\btrust: [^\[\]]*\]$")
_BLANKS = re.compile(r"[ \t]{9,}")
_FEW_BLANKS = " " * 8
SHORTENED = " … (shortened)"
_TRUST_IN_WORDS = {
    "human": "human",
    "reviewed": "reviewed",
    "agent": "agent, not reviewed",
    "tool": "tool, UNTRUSTED",
    "plugin": "plugin, UNTRUSTED",
}


MISSING = "({:,} more had no room)"
"""What is said of entries that had no room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What one source has to say, and after choosing what of it is told.

    Attributes:
        source: its name.
        selection: its heading and entries.
        fenced: whether its entries are quoted data between marks already.
        repeated: entries that were left out because the agent has them already.
        left_out: how many had no room.
        given: is told the situation once something of it is handed over; None where nobody wants to know.
    """

    source: str
    selection: Selection = field(default_factory=Selection)
    fenced: bool = False
    repeated: tuple[Entry, ...] = ()
    left_out: int = 0
    given: Callable[[StateSnapshot], None] | None = None

    def lines(self) -> list[str]:
        """Heading and bullets, and how many are missing; nothing where nothing is told."""
        if not self.selection.entries:
            return []
        heading = [self.selection.heading] if self.selection.heading else []
        bullets = [bullet(entry) for entry in self.selection.entries]
        return [*heading, *bullets, *([MISSING.format(self.left_out)] if self.left_out else [])]


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """How many tokens there are, and what of them is spent on more than bullets.

    Attributes:
        tokens: all of them; None where there is no bound.
        once: what the text around everything takes.
        each: what a source that says anything takes besides its bullets.
    """

    tokens: int | None
    once: int = 0
    each: int = 0


def bullet(entry: Entry) -> str:
    """An entry as it is told: the seed's bullet, and behind it where it comes from and who vouches for it.

    Only the first line of an entry begins with a dash, and what stands last in brackets is ours: no text can pass for
    another entry, or lend itself another's trust.
    """
    first, *rest = shown(_BLANKS.sub(_FEW_BLANKS, entry.text.strip())).split("\n")
    told = "\n".join([f"- {first}", *(f"  {line}" for line in rest)])
    facts = {
        "": _fact(entry.id),
        "trust: ": _TRUST_IN_WORDS.get(entry.trust, "unknown, UNTRUSTED") if entry.trust else "",
        "from ": _fact(entry.origin),
        "undecided: ": _fact(entry.undecided, _LONGEST_UNDECIDED),
    }
    written = "; ".join(name + value for name, value in facts.items() if value)
    return f"{told} [{written}]" if written else told


def unquoted(prompt: str) -> str:
    """A prompt with what was told in it earlier as plain text: without marks of quotation, and without our remarks."""
    if QUOTE not in prompt:
        return prompt
    return "\n".join(_plain(line) if line.startswith(QUOTE) else line for line in prompt.split("\n"))


def _plain(line: str) -> str:
    rest = max(len(QUOTE), len(line) - _LONGEST_REMARK)
    return line[len(QUOTE) : rest] + _REMARK.sub("", line[rest:])


def _fact(text: str, most: int = _LONGEST_FACT) -> str:
    line = shown(" ".join(text.split())).replace("[", "(").replace("]", ")").replace(";", ",")
    return line if len(line) <= most else line[: most - 1] + "…"


def choose(said: Sequence[Said], known: Callable[[str], bool], room: Room, had: Collection[str] = ()) -> list[Said]:
    """What of all that sources said is told, source by source; ``had`` are ids of what the agent has already.

    What is known or repeats an earlier source is left out first. Then the budget is spent in turns: the first entry of
    every source, then the second of each, so that none takes all of it. One that would take more than half of it beside
    others is shortened, and so is one that is alone and too long.
    """
    fresh = [replace(one, **kept) for one, kept in zip(said, _fresh(said, known, had), strict=True)]
    told = []
    for one, taken in zip(fresh, _spent(fresh, room), strict=True):
        entries = tuple(entry for _, entry in sorted(taken.items()))
        missing = len(one.selection.entries) - len(entries)
        told.append(replace(one, selection=replace(one.selection, entries=entries), left_out=missing))
    return told


def first_of(told: Sequence[Said], most: int) -> list[Said]:
    """``most`` entries of what is told, of all sources together: the first of every source before second ones."""
    places = sorted((place, number) for number, one in enumerate(told) for place in range(len(one.selection.entries)))
    kept = [sum(number == source for _, source in places[:most]) for number in range(len(told))]
    return [
        replace(one, selection=replace(one.selection, entries=tuple(one.selection.entries[:count])))
        for one, count in zip(told, kept, strict=True)
    ]


def _fresh(said: Sequence[Said], known: Callable[[str], bool], had: Collection[str] = ()) -> Iterator[dict[str, Any]]:
    """For each source the entries that say something the agent does not have."""
    ids = set(had)
    shapes: list[Shape] = []
    for one in said:
        kept: list[Entry] = []
        for entry in one.selection.entries:
            shape = Shape(entry.text)
            if (entry.id and entry.id in ids) or not entry.text.strip() or _repeats(shape, shapes) or known(entry.text):
                continue
            kept.append(entry)
            ids.add(entry.id)
            if len(shapes) < _COMPARED:
                shapes.append(shape)
        repeated = tuple(entry for entry in one.selection.entries if entry not in kept)
        yield {"selection": replace(one.selection, entries=tuple(kept)), "repeated": repeated}


def _repeats(shape: Shape, shapes: Sequence[Shape]) -> bool:
    return any(alike(shape, other, SAME) >= SAME for other in shapes)


def _spent(said: Sequence[Said], room: Room) -> list[dict[int, Entry]]:
    """For each source what fits, by its place."""
    if room.tokens is None:
        return [dict(enumerate(one.selection.entries)) for one in said]
    taken: list[dict[int, Entry]] = [{} for _ in said]
    left = room.tokens - room.once
    alone = sum(len(one.selection.entries) for one in said) == 1
    for place, number in _turns(said):
        heading, entry = said[number].selection.heading, said[number].selection.entries[place]
        first = 0 if taken[number] else room.each + cost_of(heading)
        entry = _shortened(entry, left - first if alone else room.tokens // _LONGEST_SHARE)
        cost = first + cost_of(bullet(entry))
        if cost <= left:
            taken[number][place] = entry
            left -= cost
    return taken


def _turns(said: Sequence[Said]) -> Iterator[tuple[int, int]]:
    """Place and source of each entry: the first of every source, then the second of each."""
    for place in range(max((len(one.selection.entries) for one in said), default=0)):
        for number, one in enumerate(said):
            if place < len(one.selection.entries):
                yield place, number


def cost_of(text: str) -> int:
    """What quoted lines take."""
    return sum(count_tokens(f"| {line}\n") for line in text.split("\n"))


def _shortened(entry: Entry, most: int) -> Entry:
    """An entry that takes no more than ``most`` tokens, cut at a blank."""
    if cost_of(bullet(entry)) <= most:
        return entry
    low, high = 0, min(len(entry.text), LETTERS_A_TOKEN * max(most, 0))
    while low < high:
        middle = (low + high + 1) // 2
        fits = cost_of(bullet(replace(entry, text=entry.text[:middle] + SHORTENED))) <= most
        low, high = (middle, high) if fits else (low, middle - 1)
    kept = entry.text[:low]
    return replace(entry, text=(kept.rpartition(" ")[0] or kept) + SHORTENED) if kept.strip() else entry

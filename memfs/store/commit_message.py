"""Writes the commit messages: what was remembered, changed or forgotten, in the memory's own words.

A message begins with one line, which holds no secret and no character that a terminal would obey.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memfs.format.secrets import find, reason_in
from memfs.format.text import shown
from memfs.model import MemoryItem
from memfs.model.ids import stem_of
from memfs.store.plan import FilePlan

WIDTH = 50
"""So many characters of a text a sentence holds at most: with its verb and what follows it fits in 72 columns."""
_SHORTEST = 30


def excerpt(item: MemoryItem) -> str:
    """What an item is called in a sentence: its title, else its first line, without the full stop, cut to ``WIDTH``.

    Where a person allowed the item to hold a secret, or its words look like one, it is the item's id.
    """
    line = " ".join((item.title.strip() or item.content.strip().partition("\n")[0]).split())
    if not line or reason_in(item.metadata) or find(line):
        return item.id
    return _cut(shown(line.removesuffix(".")))


def describe(plans: Sequence[FilePlan]) -> str:
    """The sentence for a commit that carries these plans."""
    first = plans[0]
    ids = dict.fromkeys(stem_of(plan.path).casefold() for plan in plans)
    verb = "Forget" if first.after is None else "Remember" if first.before is None and not _moves(plans) else "Update"
    note = " (comments could not be kept)" if first.rewritten else ""
    return f"{verb}: {called(first)}{and_more(len(ids))}{note}"


def gathered(sentences: Sequence[str], message: str = "") -> str:
    """The message of a commit that carries several changes, each with a sentence of its own.

    Args:
        message: what the person says of them; "" to name the first, and how many there are.
    """
    if len(sentences) == 1 and sentences[0].startswith(message):
        return sentences[0]
    rows = [f"- {sentence}" for sentence in sentences if sentence != message]
    return "\n\n".join(filter(None, (message or f"{sentences[0]}{and_more(len(sentences))}", "\n".join(rows))))


def of_items(verb: str, items: Iterable[MemoryItem], reason: str = "") -> str:
    """The sentence for what was done to some items, such as ``Forget: We use tabs and 2 more (outdated)``."""
    found = list(items)
    named = excerpt(found[0]) if found else "nothing"
    return f"{verb}: {named}{and_more(len(found))}" + because(reason)


def because(reason: str) -> str:
    """How a sentence ends that has a reason, "" where there is none."""
    return f" ({said})" if (said := " ".join(reason.split())) else ""


def called(plan: FilePlan) -> str:
    """What a plan's item is called: its words, or its id where they cannot be read or are not to be shown."""
    return stem_of(plan.path) if plan.item is None or plan.reason else excerpt(plan.item)


def _moves(plans: Sequence[FilePlan]) -> bool:
    """Whether the first plan's item had another place until now, as where its type changes."""
    stem = stem_of(plans[0].path).casefold()
    return any(plan.after is None and stem_of(plan.path).casefold() == stem for plan in plans[1:])


def and_more(number: int) -> str:
    """How a sentence goes on that names the first of so many."""
    return f" and {number - 1:,} more" if number > 1 else ""


def _cut(text: str) -> str:
    if len(text) <= WIDTH:
        return text
    kept = text[: WIDTH - 1]
    words = kept.rpartition(" ")[0]
    return (words if len(words) >= _SHORTEST else kept).rstrip(" ,;:-") + "…"

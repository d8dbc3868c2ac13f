"""Says what became of one memory in the answer to a question, and what filters left out of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memfs.dataclass import dataclass, field, replace
from memfs.format.text import shortlist
from memfs.model import HitPassage, KindTable, MemoryItem, Query
from memfs.model.ids import of_mount
from memfs.model.time import format_time
from memfs.search import analyzer
from memfs.search.documents import Filter, row_of
from memfs.search.terms import held_terms
from memfs.startup import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from memfs.recall.ranking import HitSelection

FILTERS = ("types", "layers", "tags", "agents", "sessions", "phases", "since", "until", "path")
"""The fields of a query that restrict what is found."""
_SHOWN = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyNot:
    """What became of one memory in the answer to a question.

    Attributes:
        id: the memory.
        reason: ``hit``: it is one; ``rank``: others are better; ``filter``: it does not pass the filters; ``words``: it
            shares no word with the question; ``repeat``: it says what a better hit says; ``version``: it is an earlier
            version of what a hit says; ``budget``: it has no room;
            ``trust``: no agent is given it; ``invalid``: its file cannot be read; ``pruned``: it is in the archive;
            ``missing``: there is none; ``unindexed``: the index lacks it.
        explanation: that in a sentence.
        rank: its place among all that was found, from 1; None where it was not found.
        found: how many memories were found, ``rank`` being one of them.
        score: what it was ranked by; None where it was not found.
        needed: the score of the last hit; None where there is none.
        reasons: the factors and shares that made its score, by name.
        passage: what of a long content answers best.
        shared, lacking: words of the question that it has, and has not, as they were asked.
        filters: the filters that it does not pass.
        repeats: the id of the hit that says the same, or says it later.
        notes: what else is to be known of it: that it was superseded, has expired, or is in another language.
    """

    id: str
    reason: str
    explanation: str
    rank: int | None = None
    found: int = 0
    score: float | None = None
    needed: float | None = None
    reasons: Mapping[str, float] = field(default_factory=dict)
    passage: HitPassage | None = None
    shared: Sequence[str] = ()
    lacking: Sequence[str] = ()
    filters: Sequence[str] = ()
    repeats: str = ""
    notes: Sequence[str] = ()


def failed_filters(query: Query, item: MemoryItem, kinds: KindTable | None) -> tuple[str, ...]:
    """The filters of a query that an item does not pass, by their names on the command line."""
    return tuple(name.removesuffix("s") for name in FILTERS if not _passes(query, name, item, kinds))


def _passes(query: Query, name: str, item: MemoryItem, kinds: KindTable | None) -> bool:
    wanted = getattr(query, name)
    if not wanted:
        return True
    if name == "layers":
        return kinds is None or item.type in kinds.in_layers(wanted)
    if name == "path" and of_mount(item.id):  # a path is one of the workspace's own
        return False
    return Filter.of(Query(**{name: wanted})).accepts(row_of(item))


def words_of(text: str, item: MemoryItem) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The words of a question that an item has, and those that it has not; stop words are neither."""
    held = held_terms(text, item)
    shared: dict[str, None] = {}
    lacking: dict[str, None] = {}
    for word, terms in analyzer.tokens(text):
        if found := list(terms):
            (shared if held.intersection(found) else lacking)[word] = None
    return tuple(shared), tuple(lacking)


def notes_of(item: MemoryItem, status: str, now: datetime) -> tuple[str, ...]:
    """What is to be known of an item that does not hold any more.

    Args:
        status: the factor that halves its score therefore, "" for none.
    """
    notes = [f"it is {status}, which halves its score"] if status else []
    if item.has_expired(now) and item.expires is not None:
        notes.append(f"it expired on {format_time(item.expires)}; no prompt brings it up, but a question may")
    return tuple(notes)


def judged(miss: WhyNot, chosen: HitSelection, query: Query) -> WhyNot:
    """What became of a memory that was found at a place, by what was chosen before it."""
    hits = [hit.item.id for hit in chosen.hits]
    best = "best" if query.text.strip() else "newest"
    if miss.id in hits:
        place = hits.index(miss.id) + 1
        return replace(miss, reason="hit", explanation=f"it is hit {place} of {len(hits)}")
    if other := chosen.versions.get(miss.id):
        why = f"it is an earlier version of the hit {other}"
        return replace(miss, reason="version", repeats=other, explanation=why)
    if other := chosen.duplicates.get(miss.id):
        return replace(miss, reason="repeat", repeats=other, explanation=f"it says what the hit {other} says")
    if query.max_tokens is not None and (miss.id in chosen.misfits or len(hits) < query.limit):
        why = f"the budget of {query.max_tokens:,} tokens has no room for it: the hits take {chosen.tokens:,}"
        return replace(miss, reason="budget", explanation=why)
    why = f"it is number {miss.rank:,} of {miss.found:,} that were found, and the answer has the {best} {len(hits):,}"
    return replace(miss, reason="rank", explanation=why)


def unfound(miss: WhyNot, text: str, content: str, *, semantic: bool) -> WhyNot:
    """What became of a memory of that content that was not found, by its words and those of the question's text."""
    if miss.shared:
        why = f"the index does not have it as it is now, with {listed(miss.shared)}; memfs check says more"
        return replace(miss, reason="unindexed", explanation=why)
    words = f"it does not contain {listed(miss.lacking)}" if miss.lacking else "the question has no word to look for"
    meaning = ", and others are nearer to what the question means" if semantic else ""
    notes = miss.notes
    asked, said = (analyzer.text_languages(one) for one in (text, content))
    if (asked or not analyzer.has_no_language(text)) and not {*(asked or ("en",))} & {*(said or ("en",))}:
        spoken = "/".join(said or ("en",)), "/".join(asked or ("en",))
        notes = (*notes, f"it is in {spoken[0]}, the question in {spoken[1]}: no word is translated")
    return replace(miss, reason="words", explanation=f"{words}{meaning}", notes=notes)


def listed(words: Sequence[str]) -> str:
    """Words as a list, the first few of many."""
    return shortlist(map(repr, words), _SHOWN)

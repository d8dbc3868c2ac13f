"""Recalling: the answer to a question that an agent asks.

Owns that items and what further sources say stand in one answer, within one budget, and that nothing in it repeats the
prompt. Which items fit best is retrieval's business.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from memfs.files.textguard import shown
from memfs.model import Hit, MemoryItem, Query, Recall
from memfs.model.triggerrow import RULE
from memfs.pipeline.conventions import withheld
from memfs.pipeline.episodeitem import episode_of
from memfs.pipeline.failures import signature
from memfs.pipeline.fence import QUOTE, around, frame, quoted
from memfs.pipeline.likeness import normalised
from memfs.pipeline.tokens import count_tokens
from memfs.pipeline.wording import gist, whole
from memfs.sources.choosing import LETTERS_A_TOKEN, MISSING, SHORTENED, Room, Said, choose, cost_of

if TYPE_CHECKING:
    from memfs.pipeline.retrieval import Recaller

_SHARE = 3
"""Further sources may take the third part of a budget, and what the items leave."""
_RULES = 3
_LIKE_IT = "(and {} more like it)"
_MORE = "(more was found, and had no room)"
_FADING = "fading"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked.

    Attributes:
        text: in natural words.
        limit: at most so many items.
        tokens: the budget; None where there is no bound.
        decay: whether what is old and unused sinks.
        known: tells what the agent has already.
        within: whose filters restrict the items; its text, limit and budget do not count.
    """

    text: str
    limit: int
    tokens: int | None
    decay: bool
    known: Callable[[str], bool]
    within: Query = field(default_factory=Query)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """The answer: its text, "" where nothing is found, the ids in it, and how much had no room."""

    text: str = ""
    ids: tuple[str, ...] = ()
    left_out: int = 0


def recalled(recall: Recaller, said: Sequence[Said], question: Question) -> Recalled:
    """The items that answer a question best, and what further sources say, as quoted data.

    Raises:
        QueryInvalid: the question cannot be understood.
    """
    wanted = sum(cost_of("\n".join(one.lines())) for one in said)
    answer = _found(recall, _query(question, wanted), question)
    spent = (answer.tokens or count_tokens(frame())) + cost_of(_MORE)
    left = None if question.tokens is None else question.tokens - spent
    blocks, left = _told(answer, left)
    same = {normalised(gist(hit.item)) for hit in answer.hits}
    told = choose(
        said,
        lambda text: normalised(text) in same or question.known(text),
        Room(tokens=left, once=cost_of(MISSING.format(1_000))),
    )
    lines = [f"{QUOTE}{line}" for one in told for text in one.lines() for line in shown(text).split("\n")]
    blocks += ["\n".join(lines)] if lines else []
    if blocks and answer.cut:
        blocks.append(QUOTE + _MORE)
    return Recalled(
        text=around("\n\n".join(blocks)) if blocks else "",
        ids=tuple(hit.item.id for hit in answer.hits),
        left_out=sum(one.left_out for one in told),
    )


def _found(recall: Recaller, query: Query, question: Question) -> Recall:
    """The hits that have room; where none has, the best one, shortened: it is found, and must not pass for missing."""
    search = partial(recall.search, fenced=True, leave_out=partial(_left_out, question.known), mark=_mark)
    answer = search(query)
    if answer.duplicates and not any(hit.item.type == RULE for hit in answer.hits):
        answer = _with_rules(answer, query, search)
    if answer.hits or not answer.cut or query.max_tokens is None:
        return answer
    best = search(replace(query, max_tokens=None, limit=1)).hits[:1]
    hits = [short for hit in best if (short := _shortened(hit, query.max_tokens)) is not None]
    return replace(answer, hits=tuple(hits), tokens=sum(map(_cost, hits)))


def _with_rules(answer: Recall, query: Query, search: Callable[[Query], Recall]) -> Recall:
    """With rules that fit the question: more episodes than are looked at may stand before what they taught."""
    most = query.max_tokens
    room = None if most is None else most - answer.tokens
    free = min(query.limit - len(answer.hits), _RULES)
    if free <= 0 or (room is not None and room <= 0) or (query.types and RULE not in query.types):
        return answer
    rules = search(replace(query, types=frozenset({RULE}), limit=free, max_tokens=room))
    hits = sorted((*answer.hits, *rules.hits), key=lambda hit: -hit.score)
    return replace(answer, hits=tuple(hits), tokens=answer.tokens + rules.tokens)


def _shortened(hit: Hit, most: int) -> Hit | None:
    """A hit that takes no more than ``most`` tokens with the marks around it, cut at a blank; None if none does."""
    content = hit.item.content

    def cut(length: int) -> Hit:
        kept = content[:length]
        return replace(hit, item=hit.item.replace(content=(kept.rpartition(" ")[0] or kept) + SHORTENED))

    low = bisect_right(range(1, min(len(content), LETTERS_A_TOKEN * most)), most, key=lambda length: _cost(cut(length)))
    return cut(low) if low else None


def _cost(hit: Hit) -> int:
    return count_tokens(around(f"{quoted(hit)}\n\n{QUOTE}{_MORE}"))


def _mark(item: MemoryItem) -> Hashable:
    """What episodes have in common of which one says enough: where, with what, how it ended, and with what error."""
    episode = episode_of(item)
    if episode is None:
        return None
    places = frozenset(file.rpartition("/")[0] for file in episode.state.files)
    said = signature(episode.error_message or episode.action.description)
    return (episode.outcome, episode.action.tool, places, said) if said else None


def _told(answer: Recall, left: int | None) -> tuple[list[str], int | None]:
    """The hits as they stand between the marks, with how many more are like each, and how many tokens are left."""
    more = Counter(answer.duplicates.values())
    blocks = []
    for hit in answer.hits:
        block = quoted(hit)
        if more[hit.item.id]:
            line = QUOTE + _LIKE_IT.format(more[hit.item.id])
            cost = cost_of(line)
            if left is None or cost <= left:
                block, left = f"{block}\n{line}", None if left is None else left - cost
        blocks.append(block)
    return blocks, left


def _query(question: Question, wanted: int) -> Query:
    tokens = question.tokens
    most = None if tokens is None else max(1, tokens - min(wanted, tokens // _SHARE) - cost_of(_MORE))
    return replace(
        question.within,
        text=question.text,
        limit=question.limit,
        max_tokens=most,
        deduplicate=True,
        strategy=_FADING if question.decay else "",
    )


def _left_out(known: Callable[[str], bool], item: MemoryItem) -> bool:
    """Whether an item is none for this agent: it has it already, or agents are not given it (K8)."""
    return withheld(item) or known(gist(item)) or known(whole(item))

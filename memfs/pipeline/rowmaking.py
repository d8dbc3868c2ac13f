"""Row making: what is kept of an item for finding it by a situation.

Owns which items are episodes and rules, and what of them a row holds.
"""

from __future__ import annotations

from datetime import UTC, datetime

from memfs.index.analyzer import identity
from memfs.model import MemoryItem
from memfs.model.body import text_in, texts_in
from memfs.model.item import VOUCHED
from memfs.model.triggerrow import EPISODE, RULE, TriggerRow
from memfs.pipeline.episodeitem import EPISODIC, episode_of
from memfs.pipeline.situations import plain_files, words_of

KINDS = frozenset({EPISODIC, RULE})
"""The types whose items may be episodes or rules."""
_VERSION = 1
_TEXT = 300
_MOST_IDS = 100
_UNTOLD = 0.5
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()


def maker() -> str:
    """Names the rules by which rows are made."""
    return f"{_VERSION}/{identity()}"


def row_of(item: MemoryItem, blob: str) -> TriggerRow:
    """The row of an item; of one that is neither an episode nor a rule, ``sort`` is "".

    Args:
        blob: what its file held.
    """
    made = _rule_row(item) if item.type == RULE else _episode_row(item)
    return made._replace(
        blob=blob,
        trust=item.trust,
        status=item.status,
        pinned=item.pinned,
        supersedes=item.supersedes[:_MOST_IDS],
        expires=_seconds(item.expires) if item.expires else 0.0,
    )


def _episode_row(item: MemoryItem) -> TriggerRow:
    episode = episode_of(item)
    if episode is None:
        return TriggerRow(id=item.id, path=item.path, blob="", sort="")
    state = episode.state
    return TriggerRow(
        id=item.id,
        path=item.path,
        blob="",
        sort=EPISODE,
        outcome=episode.outcome.value,
        tool=episode.action.tool or state.tool,
        files=plain_files(state.files),
        words=words_of(state.context),
        deeds=words_of(episode.action.description),
        context=_short(state.context),
        did=_short(episode.action.description),
        error=_ends(episode.error_message),
        time=_seconds(episode.timestamp),
        warned=episode.warned[:_MOST_IDS],
        agent=state.agent,
        session=state.session,
        task=state.task,
    )


def _rule_row(item: MemoryItem) -> TriggerRow:
    data = item.data
    pattern = text_in(data.get("pattern"))
    return TriggerRow(
        id=item.id,
        path=item.path,
        blob="",
        sort=RULE,
        tool=text_in(data.get("tool")),
        files=plain_files(texts_in(data.get("files"))),
        words=words_of(pattern or ("" if data.get("files") or data.get("tool") else item.title or item.content)),
        context=_short(pattern),
        did=_short(text_in(data.get("action")) or item.content or item.title),
        time=_seconds(item.updated or item.timestamp or item.created or _EPOCH),
        confidence=confidence_of(item),
    )


def confidence_of(item: MemoryItem) -> float:
    """How sure a rule is, 0 to 1: one without a figure is believed where a person stands behind it."""
    told = item.data.get("confidence")
    if isinstance(told, (int, float)) and not isinstance(told, bool):
        return min(max(float(told), 0.0), 1.0)
    return 1.0 if item.trust in VOUCHED else _UNTOLD


def _ends(text: str) -> str:
    """How a long text begins and ends: the last line of a traceback says what happened."""
    return text if len(text) <= _TEXT else f"{text[: _TEXT // 3]}\n{text[-(_TEXT - _TEXT // 3 - 1) :]}"


def _seconds(moment: datetime) -> float:
    """Seconds since 1970, so that they can be turned back: rounding goes beyond no calendar."""
    return min(moment.timestamp(), _LAST)


def _short(text: str) -> str:
    return " ".join(text[:1_200].split())[:_TEXT]

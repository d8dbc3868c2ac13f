"""Converts an episode to an item, and back.

Neither a secret nor a character that hides text keeps an episode from being stored: they are replaced, and long texts
are shortened to head and tail.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from math import isfinite

from memfs.dataclass import replace
from memfs.errors import SchemaInvalid, SecretDetected
from memfs.format.text import shortlist, shown
from memfs.model import MemoryItem, Origin
from memfs.model.episode import Action, Episode, Outcome, StateSnapshot
from memfs.model.item import Trust
from memfs.model.shape import text_in, texts_in
from memfs.startup import Any, regex

EPISODIC = "episodic"
MOST_ERROR = 4_000
MOST_TEXT = 2_000
MOST_FILES = 100
_HEAD_SHARE = 0.6
_TITLE = 90
_SHORT = 300
_ERROR_SHOWN = 600
_MOST_ENTRIES = 50
_MOST_WARNED = 100
_DEEPEST = 3
_LOOKED_AT = 100_000
_OUTCOME_WORDS = {Outcome.SUCCESS: "went well", Outcome.FAILURE: "failed", Outcome.PARTIAL: "worked in part"}
_COLOURS = regex(r"\x1b\[[0-9;?]{0,16}[ -/]{0,4}[@-~]")
_BREAKS = regex(r"\r\n?|[\x85\u2028\u2029]")
_TRIES = 60
_OUTCOMES = tuple(one.value for one in Outcome)


def item_of(episode: Episode, trust: str = Trust.AGENT.value) -> MemoryItem:
    """The item of an episode, fit to be stored: secrets are replaced, long texts kept by head and tail.

    What looks like a secret is replaced by the name of the rule that found it: an episode is worth more without it
    than not at all, and a warning does not need the value.
    """
    episode = clean(episode)
    state, action = episode.state, episode.action
    done = {"tool": action.tool, "description": action.description}
    data: dict[str, Any] = {
        "outcome": episode.outcome.value,
        "action": {key: value for key, value in done.items() if value},
        "files": list(state.files),
        "situation": state.context,
        "tool": state.tool if state.tool != action.tool else "",
        "error": episode.error_message,
        "warned": list(episode.warned),
        "circumstances": dict(state.circumstances),
    }
    return _without_secrets(
        MemoryItem(
            content=_content(episode),
            memory_type=EPISODIC,
            id=episode.id,
            title=_title(episode),
            timestamp=episode.timestamp,
            origin=Origin(agent=state.agent, session=state.session, task=state.task, tool=action.tool or state.tool),
            trust=trust,
            data={key: value for key, value in data.items() if value},
        )
    )


def episode_of(item: MemoryItem) -> Episode | None:
    """The episode that an item is, None for one that says too little or something else."""
    data = item.data
    done = data.get("action")
    done = {"description": done} if isinstance(done, str) else done
    if item.type != EPISODIC or data.get("outcome") not in _OUTCOMES or not isinstance(done, Mapping):
        return None
    with suppress(SchemaInvalid):  # an action that names neither tool nor deed
        action = Action(text_in(done.get("tool")), text_in(done.get("description")))
        error, when = text_in(data.get("error")), item.timestamp or item.created
        warned = texts_in(data.get("warned"))
        origin, circumstances = item.origin, data.get("circumstances")
        state = StateSnapshot.create(
            texts_in(data.get("files")),
            text_in(data.get("situation")),
            tool=text_in(data.get("tool")) or action.tool,
            agent=origin.agent,
            session=origin.session,
            task=origin.task,
            circumstances=circumstances if isinstance(circumstances, Mapping) else None,
        )
        made = Episode.create(state, action, data["outcome"], error, timestamp=when, warned=warned)
        return replace(made, id=item.id)
    return None


# -- wording ------------------------------------------------------------------------------------------------------
def _title(episode: Episode) -> str:
    """What was done and how it ended, in a few words."""
    done = " ".join((episode.action.description or episode.action.tool).split())
    end = _OUTCOME_WORDS[episode.outcome]
    return f"{done if len(done) <= _TITLE else done[: _TITLE - 3].rstrip() + '...'} ({end})"


def _content(episode: Episode) -> str:
    """What search finds: the deed, the files, the outcome, the error."""
    state, action = episode.state, episode.action
    done = " ".join((action.description or action.tool).split())
    files = shortlist(state.files, 10)
    by = ", ".join(part for part in (action.tool if action.description else "", files) if part)
    deeds = f"{done} ({by})" if by else done
    lines = [f"{deeds}: {_OUTCOME_WORDS[episode.outcome]}."]
    if state.context.strip() and state.context.strip() != action.description.strip():
        lines.append(f"It was about: {' '.join(state.context.split())}")
    if episode.error_message:
        lines.append(f"Error: {shortened(episode.error_message, _ERROR_SHOWN)}")
    return "\n".join(lines)


# -- cleaning -----------------------------------------------------------------------------------------------------
def clean(episode: Episode) -> Episode:
    """The episode as it is stored: bounded, without secrets, without characters that hide text."""
    state, action = episode.state, episode.action
    tool, description = _clean_name(action.tool), clean_text(action.description)
    cleaned = Episode.create(
        StateSnapshot.create(
            [_clean_file(file) for file in state.files[:MOST_FILES]],
            clean_text(state.context),
            tool=_clean_name(state.tool),
            agent=_clean_name(state.agent),
            session=_clean_name(state.session),
            task=_clean_name(state.task),
            circumstances=_plain_mapping(state.circumstances),
        ),
        Action(tool, description or ("" if tool else "something that cannot be shown")),
        episode.outcome,
        clean_text(episode.error_message, MOST_ERROR),
        timestamp=episode.timestamp,
        warned=[one for one in episode.warned if one and one == _clean_name(one)][:_MOST_WARNED],
    )
    return replace(cleaned, id=episode.id)


def clean_text(text: str, most: int = MOST_TEXT) -> str:
    """A text from outside, fit to be stored: no terminal colours, no hidden characters, no secrets, not too long.

    Of a very long one, beginning and end are looked at, each by far longer than what is kept of it: a secret that is
    cut in two where they stop cannot be in that.
    """
    if len(text) <= 2 * _LOOKED_AT:
        return shortened(_shown(text).strip(), most)
    gap = f"\n[... more than {(len(text) - most) // 1_000 * 1_000} characters left out ...]\n"
    head = int((most - len(gap)) * _HEAD_SHARE)
    ending = _shown(text[-_LOOKED_AT:]).rstrip()
    return _shown(text[:_LOOKED_AT]).lstrip()[:head] + gap + ending[len(ending) - (most - len(gap) - head) :]


def _clean_name(text: str) -> str:
    """A name on one line."""
    return " ".join(clean_text(text, _SHORT).split())


def _clean_file(file: str) -> str:
    """A path on one line; of a very long one its end, by which it is recognised."""
    whole = " ".join(_shown(file[-_LOOKED_AT:]).split())
    return whole if len(whole) <= _SHORT else whole[-_SHORT:].partition("/")[2] or whole[-_SHORT:]


def _shown(text: str) -> str:
    from memfs.format.secrets import redacted  # who only reads episodes does without

    return shown(redacted(_BREAKS.sub("\n", _COLOURS.sub("", text))))


def shortened(text: str, most: int) -> str:
    """Head and tail of a text that is too long, with how much is left out between them."""
    if len(text) <= most:
        return text
    gap = f"\n[... {len(text) - most + 40} characters left out ...]\n"
    head = int((most - len(gap)) * _HEAD_SHARE)
    return text[:head] + gap + text[len(text) - (most - len(gap) - head) :]


def _plain_mapping(values: Mapping[Any, Any], depth: int = 0) -> dict[str, Any]:
    entries = list(values.items())[:_MOST_ENTRIES]
    return {clean_text(str(key), 100): _plain(value, depth + 1) for key, value in entries}


def _plain(value: Any, depth: int) -> Any:
    """A fact as a file can hold it: texts, numbers, lists and mappings, not too deep."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value if value.bit_length() < 64 else f"a number of {value.bit_length()} bits"
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Mapping) and depth < _DEEPEST:
        return _plain_mapping(value, depth)
    if isinstance(value, (list, tuple, set, frozenset)) and depth < _DEEPEST:
        return [_plain(one, depth + 1) for one in list(value)[:_MOST_ENTRIES]]
    return clean_text(value if isinstance(value, str) else str(value), _SHORT)


def _without_secrets(item: MemoryItem) -> MemoryItem:
    """The item without what is a secret only beside its key or neighbour: the whole field goes.

    Raises:
        SecretDetected: one remains nevertheless.
    """
    from memfs.format.secrets import refuse_item  # as above

    for _ in range(_TRIES):
        try:
            refuse_item(item)
        except SecretDetected as error:
            item = _blanked(item, (error.field or "").split("."), error)
        else:
            return item
    refuse_item(item)
    return item


def _blanked(item: MemoryItem, field: list[str], error: SecretDetected) -> MemoryItem:
    from memfs.format.secrets import HIDDEN  # as above

    name, *keys = field
    if name in ("content", "title"):
        return item.replace(**{name: HIDDEN})
    if name == "origin":
        return item.replace(origin=Origin())
    if name != "data" or not keys or keys[0] == "outcome":
        raise error
    if keys[0] == "action":
        return item.replace(data={**item.data, "action": {"description": HIDDEN}})
    return item.replace(data={key: value for key, value in item.data.items() if key != keys[0]})

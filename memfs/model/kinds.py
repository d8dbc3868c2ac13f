"""Kinds: one row of facts about each type of memory, found by type, folder or layer.

The built-in table always applies; a workspace can add kinds in ``configuration/kinds.yaml``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType

from memfs.dataclass import dataclass
from memfs.errors import SettingInvalid

ITEM_LIMIT = 1024 * 1024
CONVENTION = "convention"
PROPOSED, ACCEPTED, RETIRED = "proposed", "accepted", "retired"
"""The statuses of a convention."""


class Layer(StrEnum):
    """How long a memory lives."""

    SHORT_TERM = "short-term"
    EPISODIC = "episodic"
    SEMANTIC = "semantic"


class MemoryType(StrEnum):
    """The built-in types by name, for convenience; the kind table is the rule."""

    CONTEXT = "context"
    WORKING = "working"
    PROSPECTIVE = "prospective"
    INTERACTION = "interaction"
    CONVERSATION = "conversation"
    TASK_HISTORY = "task_history"
    ERROR_LOG = "error_log"
    EPISODIC = "episodic"
    KNOWLEDGE = "knowledge"
    DOCUMENTATION = "documentation"
    SEMANTIC = "semantic"
    PROCEDURAL = "procedural"
    PATTERN = "pattern"
    RULE = "rule"
    PREFERENCE = "preference"
    CONVENTION = "convention"
    NOTE = "note"
    ENTRY = "entry"


PRIORITIES = HIGH, MEDIUM, LOW = "high", "medium", "low"
"""Of intentions, the most urgent first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """The facts about one type.

    Attributes:
        name: the type's name, lower case.
        layer: which layer its items belong to.
        description: one sentence on what it is for.
        folder: folder below ``ContextMemory/`` that holds its items, "/" separated.
        dated: whether items go into a ``YYYY-MM`` folder below it.
        body: name of the schema of ``data``, "" when ``data`` is free.
        half_life_days: after this many days without use an item counts half; 0 means it does not fade.
        retention_days: this many days after it happened and was stored, an item is due for the archive; 0 means never.
    """

    name: str
    layer: Layer
    description: str
    folder: str
    dated: bool = True
    body: str = ""
    half_life_days: float = 0
    retention_days: int = 0


def _kind(name: str, layer: Layer, half_life: float, retention: int, description: str, body: str = "") -> Kind:
    return Kind(
        name=name,
        layer=layer,
        description=description,
        folder=f"memories/{name}",
        body=body,
        half_life_days=half_life,
        retention_days=retention,
    )


BUILT_IN: tuple[Kind, ...] = (
    _kind("context", Layer.SHORT_TERM, 7, 30, "Circumstances of the work at hand."),
    _kind("working", Layer.SHORT_TERM, 1, 0, "What a session is busy with; consolidated when the session ends."),
    _kind("prospective", Layer.SHORT_TERM, 30, 0, "Something to do or check later."),
    _kind("interaction", Layer.SHORT_TERM, 7, 30, "One exchange between a person and an agent."),
    _kind("conversation", Layer.SHORT_TERM, 7, 30, "A turn or a passage of a conversation."),
    _kind("task_history", Layer.EPISODIC, 90, 365, "What was done in a task, and how it ended."),
    _kind("error_log", Layer.EPISODIC, 90, 365, "An error that happened, and what it came from."),
    _kind("episodic", Layer.EPISODIC, 90, 365, "An event: what happened, when, with what outcome.", body="episode"),
    _kind("knowledge", Layer.SEMANTIC, 0, 0, "A fact that stays true until it is replaced."),
    _kind("documentation", Layer.SEMANTIC, 0, 0, "A passage of reference material."),
    _kind("semantic", Layer.SEMANTIC, 0, 0, "General knowledge distilled from experience."),
    _kind("procedural", Layer.SEMANTIC, 0, 0, "How to do something, step by step."),
    _kind("pattern", Layer.SEMANTIC, 0, 0, "A template that several memories share.", body="pattern"),
    _kind("rule", Layer.SEMANTIC, 0, 0, "Advice learned from outcomes, with its confidence.", body="rule"),
    _kind("preference", Layer.SEMANTIC, 0, 0, "How a person wants things done."),
    _kind("note", Layer.SEMANTIC, 0, 0, "A page that an agent or a person keeps under a path."),
    _kind("entry", Layer.SEMANTIC, 0, 0, "A value that a framework keeps under a namespace and a key."),
    Kind(
        name="convention",
        layer=Layer.SEMANTIC,
        description="A rule the team agreed on, reviewed in pull requests.",
        folder="conventions",
        dated=False,
        body="convention",
    ),
)


OFFERED: Mapping[str, str] = MappingProxyType(
    {
        "semantic": "what holds: facts, decisions, knowledge",
        "procedural": "how to do something, step by step",
        "preference": "how a person wants things done",
        "convention": "a rule the team agrees on, for pull requests",
        "episodic": "what happened, and how it ended",
        "prospective": "something to do or check later",
    }
)
"""The built-in kinds that a person is offered, each with when to choose it; the others are for programs and imports."""


class KindTable:
    """The kinds a workspace knows, by name and by folder."""

    def __init__(self, kinds: Iterable[Kind] = BUILT_IN) -> None:
        self._by_name: dict[str, Kind] = {}
        for kind in kinds:
            if kind.name in self._by_name:
                raise SettingInvalid(f"kind {kind.name!r} is defined twice", field=kind.name, hint="rename one of them")
            self._by_name[kind.name] = kind
        self._by_folder = {kind.folder: kind for kind in self._by_name.values()}

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._by_name.values())

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def get(self, name: str) -> Kind:
        """The kind of that name.

        Raises:
            SettingInvalid: no such kind; the hint names the nearest one.
        """
        kind = self._by_name.get(name)
        if kind is None:
            meant = nearest(name, self._by_name)
            others = [kind.name for kind in self if kind.name not in OFFERED]
            known = f"the usual types are {', '.join(OFFERED)}; others {', '.join(others)}"
            raise SettingInvalid(
                f"unknown memory type {name!r}", field="type", hint=f"{meant} {known}" if meant else known
            )
        return kind

    def at(self, path: str) -> Kind | None:
        """The kind whose folder holds ``path`` ("/" separated, below ``ContextMemory/``), None where none does."""
        first, within, rest = path.partition("/")
        second, deeper, _ = rest.partition("/")
        kind = self._by_folder.get(f"{first}/{second}") if deeper else None
        return kind or (self._by_folder.get(first) if within else None)

    def in_layers(self, layers: Iterable[str]) -> frozenset[str]:
        """Names of the types that belong to any of the layers."""
        wanted = set(layers)
        return frozenset(kind.name for kind in self if kind.layer.value in wanted)


def nearest(name: str, known: Iterable[str]) -> str:
    """``did you mean 'x'?`` for the closest known name, "" when none is close."""
    import difflib  # costs start-up time and is wanted only when something is wrong

    close = difflib.get_close_matches(str(name), list(known), n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else ""

"""MemoryContext: add memories, recall them, and learn from feedback about them.

Also finds patterns in memories (``PatternDetector``) and adds what is remembered about a situation to a context
(``MemoryInjector``).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Unpack

from memfs.admin.prune import PruneResult
from memfs.errors import IdInvalid, ItemNotFound, MemfsError, QueryInvalid, SchemaInvalid
from memfs.facades.open_workspaces import Facade, PathName, Where, aside
from memfs.facades.pipelines import Memory, memories_of, memory_of
from memfs.learning import patterns
from memfs.learning.learner import as_program
from memfs.learning.patterns import Pattern
from memfs.model import Layer, MemoryItem, Phase, Query, Trust
from memfs.model.item import lower_trust
from memfs.model.kinds import nearest
from memfs.model.learning import MemoryConfig
from memfs.recall.fence import withheld
from memfs.state.reader import DEFAULT
from memfs.usage import NEVER

USUAL_TYPE = "interaction"
_ALIASES = {"type": "memory_type"}
_NOT_GIVEN = frozenset({"path", "sha256", "durability", "created", "updated"})
FIELDS = tuple(name for name in MemoryItem.__dataclass_fields__ if name not in _NOT_GIVEN)


def draft(memory: Any) -> MemoryItem:
    """A memory as an item: a text, a mapping with ``content`` and other fields of an item, or a value of memfs.

    Its type is ``interaction``, and an agent vouches for it, unless it says otherwise.

    Raises:
        SchemaInvalid: an unknown field, or a value of the wrong sort; ``field`` names it.
    """
    if isinstance(memory, MemoryItem):
        return memory
    if isinstance(memory, Memory):
        names = ("content", "type", "id", "timestamp", "metadata", "context")
        return draft({name: getattr(memory, name) for name in names})
    if isinstance(memory, str):
        return draft({"content": memory})
    if not isinstance(memory, Mapping):
        hint = 'write {"content": "what to remember"}'
        raise SchemaInvalid(f"expected a memory, got {ascii(memory)[:60]}", field="memory", hint=hint)
    return MemoryItem(**{"memory_type": USUAL_TYPE, "trust": Trust.AGENT.value, **known(memory)})


def known(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields by their names in an item.

    Raises:
        SchemaInvalid: an item has no such field, or memfs sets it.
    """
    named = {_ALIASES.get(name, name): value for name, value in fields.items()}
    for name in named:
        if name not in FIELDS:
            hint = nearest(str(name), FIELDS) or f"the fields are {', '.join(FIELDS)}"
            raise SchemaInvalid(f"a memory has no field {name!r} to set", field=str(name), hint=hint)
    return {name: {} if value is None and name in ("context", "metadata") else value for name, value in named.items()}


SOURCE = "memory_context"
STRATEGY = "learning"
_PATIENCE = 2.0
"""Seconds a recall waits for patterns in what was just added; what takes longer is there next time."""


class MemoryContext(Facade):
    """Adds memories, recalls them, and learns from what becomes of them. May be used from several threads."""

    teaches = True

    def __init__(
        self, config: MemoryConfig | Mapping[str, Any] | PathName = None, path: PathName = None, **where: Unpack[Where]
    ) -> None:
        """As ``Facade``.

        Args:
            config: what wins over the workspace's memory context, such as ``{"pattern_threshold": 4}``; a path is
                taken for ``path``.

        Raises:
            SettingInvalid, SchemaInvalid: ``config`` has an unknown name or a wrong value.
        """
        if isinstance(config, (str, os.PathLike)):
            config, path = None, path if path is not None else config
        super().__init__(path, config=config, **where)

    @property
    def config(self) -> MemoryConfig:
        """How it learns, with everything filled in."""
        return self.workspace.memory_config

    def add_memory(self, memory: str | Mapping[str, Any] | MemoryItem) -> str:
        """Store a memory, linked to related ones, without judging it; what it shows of patterns is learned.

        Args:
            memory: a text, an item, or a mapping with ``content`` and any other field of an item; ``type`` is
                ``interaction`` unless given.

        Returns:
            Its id.

        Raises:
            SchemaInvalid: an unknown field or a wrong value.
            SecretDetected, IdExists, StorageIO: as ``Store.put``; nothing was stored.
        """
        workspace = self.workspace
        with as_program():
            result = workspace.intake.store(draft(memory), review=False, merge=False, source=SOURCE)
        assert result.memory_id is not None  # it was not reviewed, so it was not refused
        self._make_room()
        return result.memory_id

    def recall(
        self, query: str, context: Mapping[str, Any] | None = None, limit: int = 10, **more: Any
    ) -> list[Memory]:
        """The memories that matter most, the best first.

        Args:
            query: natural words.
            context: the circumstances of the moment; what shares one of them counts for more.
            limit: the most items.
            more: other fields of ``Query``; ``strategy`` is ``learning`` unless given.

        Returns:
            Memories whose metadata also has ``access_count``, ``last_accessed`` and ``relevance_score``.
        """
        workspace = self.workspace
        workspace.patterns.settle(_PATIENCE)
        asked = Query(text=query, context=context or {}, limit=limit, **{"strategy": STRATEGY, **more})
        hits = workspace.recaller.search(asked, leave_out=withheld).hits
        return memories_of(hits, bool(query.strip()), workspace.usage.of(hit.item.id for hit in hits))

    async def add_memory_async(self, memory: str | Mapping[str, Any] | MemoryItem) -> str:
        """``add_memory`` on a thread, so that an event loop runs on meanwhile."""
        return await aside(self.add_memory, memory)

    async def recall_async(self, query: str, *arguments: Any, **named: Any) -> list[Memory]:
        """``recall`` on a thread."""
        return await aside(self.recall, query, *arguments, **named)

    def get(self, memory_id: str) -> Memory | None:
        """The memory of that id, None where there is none."""
        item = self.workspace.store.get(memory_id)
        if item is not None:
            self.workspace.usage.served.note("read", [item.id], self.workspace.parts.clock())
        return None if item is None else memory_of(item, use=self.workspace.usage.of([item.id]).get(item.id, NEVER))

    def update(self, memory_id: str, **changes: Any) -> Memory:
        """Replace fields of a memory, such as ``content``; returns it as it is now.

        Where its words change, no one vouches for it any more, unless the changes name its ``trust``.

        Raises:
            ItemNotFound, SchemaInvalid, SecretDetected, Conflict, StorageIO: nothing was changed.
        """
        store = self.workspace.store
        found = store.get(memory_id)
        if found is None:
            raise ItemNotFound(f"no memory has the id {memory_id!r}", hint="recall gives the ids there are")
        changed = found.replace(**known(changes))
        if "trust" not in changes and (changed.title, changed.content) != (found.title, found.content):
            changed = changed.replace(trust=lower_trust(found.trust, Trust.AGENT.value))
        return memory_of(store.put(changed, found.sha256, source=SOURCE))

    def delete(self, memory_id: str) -> bool:
        """Remove a memory; history keeps it. False where there is none of that id."""
        try:
            self.workspace.store.delete(memory_id, source=SOURCE)
        except (ItemNotFound, IdInvalid):
            return False
        return True

    def feedback(self, memory_id: str, positive: bool, reason: str = "") -> float:
        """Say whether a memory helped; returns its new importance, 0 to 10.

        Raises:
            ItemNotFound, QueryInvalid, Conflict, StorageIO: nothing was changed.
        """
        changed = self.workspace.feedback.give(memory_id, positive, reason)
        self._make_room(changed)
        return changed.importance

    def _make_room(self, changed: MemoryItem | None = None) -> None:
        """Prune where it is time. What keeps that from being done is a problem of the store, not of what was stored."""
        try:
            self.workspace.pruner.keep_up(changed)
        except MemfsError as error:
            self.workspace.store.note_failure(error)

    def prune(self, dry_run: bool = False) -> PruneResult:
        """Move weak memories into the archive, or only say which. ``add_memory`` does so by itself."""
        return self.workspace.pruner.prune(dry_run)

    def patterns(self, query: str = "", context: Mapping[str, Any] | None = None, limit: int = 10) -> list[Memory]:
        """The patterns that may help with what is at hand; without a question or context the most frequent."""
        workspace = self.workspace
        workspace.patterns.settle(_PATIENCE)
        if query.strip() or context:
            return memories_of(workspace.patterns.suggest(query, context, limit))
        return [memory_of(item) for item in workspace.patterns.all()[:limit]]


Shape = MemoryItem | Mapping[str, Any] | str


def _drafts(memories: Iterable[Any]) -> Iterator[MemoryItem]:
    """Memories in whatever shape as items.

    Raises:
        SchemaInvalid: one of them is none, or one memory was given instead of several.
    """
    if isinstance(memories, (str, Mapping, MemoryItem)):
        what = f"expected several memories, got {ascii(memories)[:60]}"
        raise SchemaInvalid(what, field="memories", hint="write them in a list")
    return map(draft, memories)


class PatternDetector(patterns.PatternFinder):
    """Finds what memories have in common: items, ``Memory`` values, texts, or mappings with ``content``.

    The arguments are ``threshold`` (3), ``similarity`` (0.5) and ``min_common_words`` (2).
    """

    def detect_all(self, memories: Iterable[Any]) -> list[Pattern]:
        """Every pattern among these memories, the oldest first; each memory belongs to one at most."""
        return super().detect_all(_drafts(memories))

    def group_by_similarity(self, memories: Iterable[Any]) -> list[list[MemoryItem]]:
        """The memories that are similar to another, in groups."""
        return super().group_by_similarity(_drafts(memories))

    def are_similar(self, one: Any, other: Any) -> bool:
        """Whether two memories are of one type and share enough of their words."""
        return super().are_similar(draft(one), draft(other))

    def extract_pattern(self, group: Iterable[Any]) -> Pattern | None:
        """What a group has in common; None where too little or too few remain."""
        return super().extract_pattern(_drafts(group))


class MemoryInjector:
    """Adds what is remembered about a situation to a context."""

    def __init__(self, memory_context: MemoryContext) -> None:
        """``memory_context``: where to look; it stays the caller's to close."""
        self.memory = memory_context

    def inject(self, context: Mapping[str, Any], situation: Mapping[str, Any]) -> dict[str, Any]:
        """A copy of a context with ``relevant_memories`` added, at most five, the best first.

        Args:
            context: what the agent is about to be given.
            situation: ``tool`` and the ``intent`` of ``params`` are what is asked, all of it the circumstances.

        Returns:
            The context with ``relevant_memories``, each with type, content, relevance and context; as it was where
            nothing is found, or no rule for ``context_accessed`` injects memories.
        """
        return self.memory.workspace.reactions.access(context, situation)

    inject_memories = inject


class MultiLayeredMemorySystem(Facade):
    """Memory in layers. Each item is in exactly one, chosen by its type; threads may share it."""

    def store(self, item: MemoryItem) -> str:
        """Store an item, durable on return; one with the id of a stored item replaces that, whichever layer it is in.

        Args:
            item: without an id it gets one; its ``memory_type`` decides its layer.

        Returns:
            The item's id.

        Raises:
            SettingInvalid: there is no such type.
            IdInvalid, Conflict, ContentError, StorageIO: nothing was changed.
        """
        workspace = self.workspace
        stored = workspace.store.put(item, source="layered")
        workspace.behaviours.fire("memory_stored", {"item": stored})
        return stored.id

    def retrieve(self, item_id: str) -> MemoryItem | None:
        """The latest version of an item, whichever layer holds it; None when there is none.

        Raises:
            ContentError: its file is invalid at present.
        """
        found = self.workspace.store.get(item_id)
        self._served([] if found is None else [found])
        return found

    def get_items_by_layer(self, layer: Layer | str, *, phase: str = "") -> list[MemoryItem]:
        """Every item of a layer, newest first.

        Args:
            layer: ``short-term``, ``episodic`` or ``semantic``.
            phase: only items of this phase of the work, such as ``refine``.

        Raises:
            QueryInvalid: there is no such layer or phase; the hint names the nearest.
        """
        store = self.workspace.store
        chosen = _known("layer", str(layer).lower().replace("_", "-"), Layer)
        asked = Query(layers={chosen}, phases={_known("phase", phase, Phase)} if phase else ())
        items = store.readable(store.every(asked))
        self._served(items)
        return items

    def _served(self, items: Sequence[MemoryItem]) -> None:
        """Note which items were handed out."""
        self.workspace.usage.served.note("read", [item.id for item in items], self.workspace.parts.clock())

    def layer_of(self, item: MemoryItem) -> Layer:
        """The layer an item belongs to.

        Raises:
            SettingInvalid: there is no such type.
        """
        return self.workspace.kinds.get(item.memory_type).layer


def _known(field: str, name: str, known: type[StrEnum]) -> str:
    """The name, if it is one of those.

    Raises:
        QueryInvalid: it is none; the hint names the nearest.
    """
    names = [one.value for one in known]
    if name not in names:
        hint = nearest(name, names) or f"the {field}s are {', '.join(names)}"
        raise QueryInvalid(f"there is no {field} {name!r}", field=field, hint=hint)
    return name


class SimpleContextManager(Facade):
    """The circumstances of a session or workflow. Writing memories never disturbs them, nor they the memories."""

    def __init__(self, path: PathName = None, *, name: str = DEFAULT, **where: Unpack[Where]) -> None:
        """Choose the workspace, as every facade does, and the context in it.

        Args:
            name: which context, ``ContextMemory/context/<name>.yaml``; it is made with its first key.

        Raises:
            WorkspaceNotFound: see ``path``.
        """
        super().__init__(path, **where)
        self.name = name

    def add_to_context(self, key: str, value: Any) -> None:
        """Give a key a value, durable on return; the other keys stay.

        Raises:
            ContentError: YAML cannot hold the value, or it looks like a secret.
            IdInvalid, StorageIO: nothing was changed.
        """
        self.workspace.contexts.set({key: value}, self.name, source="context")

    def get_from_context(self, key: str, default: Any = None) -> Any:
        """The latest value of a key; ``default`` where there is none.

        Raises:
            ContentError: the context's file is invalid at present.
        """
        return self.get_full_context().get(key, default)

    def get_full_context(self) -> dict[str, Any]:
        """All keys with their latest values.

        Raises:
            ContentError: the context's file is invalid at present.
        """
        return self.workspace.contexts.read(self.name)

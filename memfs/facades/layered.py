"""The layered memory of seed 000: items in short-term, episodic and semantic layers.

Owns the seed's names for storing and reading by layer. Which layer a type belongs to is the kind table's business.
"""

from __future__ import annotations

from collections.abc import Sequence

from memfs.errors import QueryInvalid
from memfs.facades.opening import Facade
from memfs.model import Layer, MemoryItem, Phase, Query
from memfs.model.kinds import nearest


class MultiLayeredMemorySystem(Facade):
    """Memory in layers (L1-L3, L6). Each item lies in exactly one, chosen by its type; threads may share it."""

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
        phases = [one.value for one in Phase]
        if phase and phase not in phases:
            hint = nearest(str(phase), phases) or f"the phases are {', '.join(phases)}"
            raise QueryInvalid(f"there is no phase {phase!r}", field="phase", hint=hint)
        asked = Query(layers=frozenset({_layer(layer).value}), phases=frozenset({phase} if phase else ()))
        loaded = [store.load(candidate) for candidate in store.seeking.every(asked)]
        items = [found.item for found in loaded if found is not None]
        self._served(items)
        return items

    def _served(self, items: Sequence[MemoryItem]) -> None:
        """Note which items were handed out."""
        paths = {item.id: item.path for item in items}
        self.workspace.usage.served.note("read", paths, self.workspace.parts.clock(), paths=paths)

    def layer_of(self, item: MemoryItem) -> Layer:
        """The layer an item belongs to.

        Raises:
            SettingInvalid: there is no such type.
        """
        return self.workspace.kinds.get(item.memory_type).layer


def _layer(layer: Layer | str) -> Layer:
    name = str(layer).lower().replace("_", "-")
    known = [one.value for one in Layer]
    if name not in known:
        hint = nearest(name, known) or f"the layers are {', '.join(known)}"
        raise QueryInvalid(f"there is no layer {layer!r}", field="layer", hint=hint)
    return Layer(name)

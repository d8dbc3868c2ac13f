"""Memory in short-term, episodic and semantic layers, and the context of a session.

Each item lies in exactly one layer, chosen by its type. A context and the memories never disturb each other.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from memfs.errors import QueryInvalid
from memfs.facades.open_workspaces import Facade
from memfs.model import Layer, MemoryItem, Phase, Query
from memfs.model.kinds import nearest
from memfs.store.context import DEFAULT
from memfs.workspace import Workspace


class MultiLayeredMemorySystem(Facade):
    """Memory in layers. Each item lies in exactly one, chosen by its type; threads may share it."""

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
        items = [found.item for found in store.load_each(list(store.every(asked))) if found is not None]
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

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        name: str = DEFAULT,
        db_path: str | os.PathLike[str] | None = None,
        workspace: Workspace | None = None,
    ) -> None:
        """Choose the workspace, as every facade does, and the context in it.

        Args:
            name: which context, ``ContextMemory/context/<name>.yaml``; it is made with its first key.

        Raises:
            WorkspaceNotFound: see ``path``.
        """
        super().__init__(path, db_path=db_path, workspace=workspace)
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

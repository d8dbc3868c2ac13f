"""The context manager of seed 000: keys and values that stand beside the memory and survive it.

Owns the seed's names for reading and changing a context. Where it lies is the store's business.
"""

from __future__ import annotations

import os
from typing import Any

from memfs.facades.opening import Facade
from memfs.store.context import DEFAULT
from memfs.workspace import Workspace


class SimpleContextManager(Facade):
    """The circumstances of a session or workflow (L4). Writing memories never disturbs them, nor they the memories."""

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

"""Naming: what a person means by an id, by the beginning of one, or by a path.

Owns that reading of names; which file holds which id is ``following``'s business.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from memfs.errors import ItemNotFound
from memfs.model import KindTable, MemoryItem, Query
from memfs.model.ids import of_mount
from memfs.model.kinds import nearest
from memfs.store.parts import CONTENT, ITEM_SUFFIXES

if TYPE_CHECKING:
    from memfs.store.store import Store


def find(store: Store, reference: str) -> MemoryItem:
    """See ``Store.find``."""
    if "/" in reference or reference.endswith(ITEM_SUFFIXES):
        with contextlib.suppress(FileNotFoundError):
            return store.read(path_of(reference))
    found = store.get(reference)
    if found is not None:
        return found
    ids = store.following.ids()
    starting = [item_id for item_id in ids if item_id.casefold().startswith(reference.casefold())]
    if len(starting) == 1 and (only := store.get(starting[0])) is not None:
        return only
    raise not_found(reference, starting, ids)


def path_of(reference: str) -> str:
    """The path below the workspace that a person's path means, whether or not it begins with ``ContextMemory/``."""
    cleaned = reference.removeprefix("./")
    return cleaned if cleaned.startswith((CONTENT + "/", "memfs.toml")) else f"{CONTENT}/{cleaned}"


def in_types(query: Query, kinds: KindTable) -> Query:
    """The query with its layers written out as types."""
    types = query.types
    if query.layers:
        in_layers = kinds.in_layers(query.layers)
        types = (types & in_layers if types else in_layers) or frozenset({""})
    return Query(**{name: getattr(query, name) for name in Query.__slots__} | {"types": types})


def not_found(reference: str, starting: Sequence[str], ids: Iterable[str]) -> ItemNotFound:
    """The error for a name that no item, or more than one, answers to."""
    if starting:
        hint = "it could be " + ", ".join(sorted(starting)[:5])
    else:
        hint = nearest(reference, known := list(ids)) or "memfs list shows what there is"
        if (mount := of_mount(reference)) and not any(map(of_mount, known)):  # asked for where mounts are not looked at
            hint = f"what is mounted is only read and shown: change it in the workspace that {mount!r} names"
    return ItemNotFound(f"no memory is called {reference!r}", hint=hint)

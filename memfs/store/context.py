"""Contexts: the circumstances of a session or a workflow, as keys and values in a document each.

A document is ``ContextMemory/context/<name>.yaml``; single keys of it are changed, and the rest stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from memfs.errors import SchemaInvalid
from memfs.format.codec import CONTEXTS
from memfs.format.text import shortlist
from memfs.fs.atomic_replace import sha256
from memfs.fs.tree import View
from memfs.model.ids import check_id, stem_of
from memfs.store.parts import ITEM_SUFFIXES, READ_LIMIT, Parts
from memfs.store.store import Store, retry_on_conflict

DEFAULT = "session"
"""The context that is meant where none is named."""
_SCHEMA = "context"

Change = Callable[[dict[str, Any]], dict[str, Any] | None]


class Contexts:
    """The named contexts of one workspace. May be used from several threads and processes."""

    def __init__(self, store: Store, parts: Parts, files: View | None = None) -> None:
        """``files``: of another time, to be read instead of those that there are."""
        self._store, self._parts, self._files = store, parts, files

    def names(self) -> list[str]:
        """The names of the contexts there are, sorted."""
        entries = (self._files or self._parts.seen).scan(CONTEXTS)
        paths = (entry.path for entry in entries if entry.regular and entry.path.endswith(ITEM_SUFFIXES))
        return sorted({stem_of(path) for path in paths if path.count("/") == CONTEXTS.count("/") + 1})

    def read(self, name: str = DEFAULT) -> dict[str, Any]:
        """All keys of a context with their latest values; none where there is no such context.

        Raises:
            IdInvalid: the name could not be a file's.
            ContentError: its file is invalid at present.
        """
        path, data = self._found(name)
        return self._mapping(path, data)

    def set(self, values: Mapping[str, Any], name: str = DEFAULT, *, source: str = "") -> dict[str, Any]:
        """Give keys new values and leave the others alone; durable on return.

        Args:
            values: by key; anything that YAML can hold.
            name: which context; it is made where there is none.
            source: which door it came through, for the commit's trailers.

        Returns:
            All keys as they are now.

        Raises:
            IdInvalid, ContentError (as ``SecretDetected`` too), StorageIO: nothing was changed.
        """
        if not isinstance(values, Mapping):
            raise SchemaInvalid("expected keys and values", field="values", hint='write {"branch": "main"}')
        return self._change(
            name, f"Set {shortlist(map(str, values), 3)} of the context {name}", source, lambda old: {**old, **values}
        )

    def unset(self, keys: Iterable[str], name: str = DEFAULT, *, source: str = "") -> dict[str, Any]:
        """Take keys away, those that are not there included; what is left is returned.

        Raises:
            IdInvalid, ContentError, StorageIO: nothing was changed.
        """
        gone = set(keys)
        message = f"Take {shortlist(sorted(gone), 3)} from the context {name}"
        return self._change(
            name, message, source, lambda old: {key: value for key, value in old.items() if key not in gone}
        )

    def remove(self, name: str, *, source: str = "") -> None:
        """Remove a whole context, which may be gone already; git keeps its history.

        Raises:
            IdInvalid, StorageIO: nothing was changed.
        """
        self._change(name, f"Remove the context {name}", source, lambda _: None)

    # -- internal -------------------------------------------------------------------------------------------------
    def _change(self, name: str, message: str, source: str, change: Change) -> dict[str, Any]:
        return retry_on_conflict(lambda: self._changed(name, message, source, change))

    def _changed(self, name: str, message: str, source: str, change: Change) -> dict[str, Any]:
        path, before = self._found(name)
        wanted = change(self._mapping(path, before))
        if before is None and not wanted:
            return {}
        after = None if wanted is None else self._parts.codec.write_document(wanted, path, _SCHEMA, before)
        # what is replaced was read just now, and stays but for the keys that change: an edit by hand is not lost
        expected = "" if before is None else sha256(before)
        self._store.put_documents([(path, after, expected)], message, source=source, alone=True)
        return self._mapping(path, after)

    def _found(self, name: str) -> tuple[str, bytes | None]:
        """The path of a context's file, and its bytes where there is one."""
        paths = [f"{CONTEXTS}/{check_id(name)}{suffix}" for suffix in ITEM_SUFFIXES]
        for path in paths:
            try:
                return path, (self._files or self._parts.seen).read(path, READ_LIMIT).data
            except FileNotFoundError:
                continue
        return paths[0], None

    def _mapping(self, path: str, data: bytes | None) -> dict[str, Any]:
        return {} if data is None else self._parts.codec.read_document(data, path, _SCHEMA)

"""Meanings: whether a workspace is searched by meaning, and with which embedder.

Owns the choice that the settings and the memory context make, which may change while the workspace is open, and where
the vectors of a model lie: in the user's cache, beside the index. What meaning adds to an answer is not known here.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from memfs.errors import MemfsError, WorkspaceClosed
from memfs.files.forked import renewed_in_child
from memfs.index.layers import SearchIndex
from memfs.model.memory_config import VECTOR_DB, MemoryConfig
from memfs.store import Store

if TYPE_CHECKING:
    from memfs.endpoint import Endpoint
    from memfs.pipeline.meaning import Meaning

FOLDER = "vectors"
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


class Meanings:
    """The meaning of one workspace as its memory context asks for it at present, which may change while it is open.

    May be used from several threads.
    """

    def __init__(
        self, store: Store, index: SearchIndex, config: Callable[[], MemoryConfig], *, resident: bool = True
    ) -> None:
        """
        Args:
            config: gives the memory context; an endpoint in it is one that the user trusts.
            resident: whether items may be embedded behind the scenes; else only questions are.
        """
        self._store = store
        self._index = index
        self._config = config
        self._resident = resident
        self._current: tuple[tuple[str, str], Meaning] | None = None
        self._service: Endpoint | None = None
        self._changing = threading.RLock()
        renewed_in_child(self)

    def current(self) -> Meaning | None:
        """What finds by meaning; None where the memory context asks for none, or for what cannot be had.

        Why it cannot be had is told among the store's problems.
        """
        try:
            return self.wanted()
        except WorkspaceClosed:
            raise
        except MemfsError as error:
            self._store.note_failure(error)
            return None

    def wanted(self) -> Meaning | None:
        """What finds by meaning; None where the memory context asks for none.

        Raises:
            SettingInvalid: it names no embedder that there is.
            ExtraMissing: its packages are not installed.
            ContentError: the memory context is not valid.
        """
        config = self._config()
        key = config.embedding_model, config.embedding_endpoint
        current = self._current
        if config.storage_type == VECTOR_DB and current is not None and current[0] == key:
            return current[1]
        with self._changing:
            if config.storage_type != VECTOR_DB:
                self.close()
                return None
            if self._current is None or self._current[0] != key:
                self.close()
                self._current = key, self._made(*key)
            return self._current[1]

    def _made(self, model: str, address: str) -> Meaning:
        # what only this needs is brought in here: a recall by words alone is spared it
        from memfs.index.embedder import embedder
        from memfs.index.vectors import VectorStore
        from memfs.pipeline.embeddings import Embeddings
        from memfs.pipeline.meaning import Meaning

        self._service = service_of(address) if address else None
        chosen = embedder(model, self._service)
        vectors = VectorStore(self._index.folder / FOLDER / file_name(chosen.name), chosen.name)
        made = Embeddings(chosen, vectors, self._index, self._store.read, self._store.note_failure)
        return Meaning(self._store, made, resident=self._resident)

    def close(self) -> None:
        """Stop embedding and release the vectors; the next question begins anew."""
        with self._changing:
            current, self._current = self._current, None
            service, self._service = self._service, None
            if current is not None:
                current[1].embeddings.close()
            if service is not None:
                service.close()


def file_name(model: str) -> str:
    """The name of the file that keeps a model's vectors."""
    digest = hashlib.sha256(model.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{_UNSAFE.sub('-', model)[:60]}-{digest}.sqlite"


def service_of(address: str) -> Endpoint:
    """The service at an address, asked with this user's key."""
    from memfs.endpoint import EMBEDDING_KEY, Endpoint, key_of  # only a service needs it

    return Endpoint(address, key_of(EMBEDDING_KEY))

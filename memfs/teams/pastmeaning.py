"""PastMeaning: finding by meaning in a revision, where the memory context of today asks for it (M5).

Owns the vectors of what was, kept by the id of the content they were made of, so that each is made once for all
revisions. A revision is searched by meaning when every item of it has its vector, else by words alone: with half of
them an answer's order would depend on what happens to be known.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, cast
from weakref import WeakKeyDictionary

from memfs.errors import MemfsError
from memfs.index.vectorfile import Kept
from memfs.index.vectors import Near, VectorStore
from memfs.model import Query
from memfs.pipeline.embeddings import Embeddings, embedded
from memfs.pipeline.meaning import Meaning, Together
from memfs.pipeline.meanings import FOLDER, file_name, service_of
from memfs.pipeline.wording import whole
from memfs.teams.paststore import PastStore

if TYPE_CHECKING:
    from memfs.endpoint import Endpoint
    from memfs.index.embedder import Embedder, Vector
    from memfs.model.memory_config import MemoryConfig
    from memfs.store import Store

PATIENCE_SECONDS = 5.0
_AT_ONCE = 16
_MOST = 50_000


class PastVectors:
    """The vectors of one revision's items, by id."""

    def __init__(self, kept: VectorStore, store: PastStore) -> None:
        """``kept``: vectors of any revision's contents, by content id."""
        self._kept = kept
        self._store = store

    def search(self, vector: Vector, limit: int, threshold: float) -> list[Near]:
        """The nearest, best first, ties by id; see ``VectorStore.search``."""
        found = self.similarities(vector, self._store.index.blobs)
        near = sorted((-cosine, key) for key, cosine in found.items() if cosine >= threshold)
        return [Near(key, -less) for less, key in near[:limit]]

    def similarities(self, vector: Vector, ids: Collection[str]) -> dict[str, float]:
        """The cosine of each of these ids that has a vector."""
        blobs = self._store.index.blobs
        known = {key: blobs[key] for key in ids if key in blobs}
        cosines = self._kept.similarities(vector, set(known.values()))
        return {key: cosines[blob] for key, blob in known.items() if blob in cosines}


class PastEmbeddings:
    """What ``Meaning`` asks of the vectors of a revision (``memfs.pipeline.embeddings.Embeddings``)."""

    def __init__(self, embedder: Embedder, kept: VectorStore, present: VectorStore, store: PastStore) -> None:
        """``present``: the vectors of the workspace as it is."""
        self.embedder = embedder
        self.vectors = PastVectors(kept, store)
        self._kept = kept
        self._present = present
        self._store = store
        self.lacking = -1

    def keep_up(self, patience: float = 0.0) -> None:  # noqa: ARG002  a revision is searched whole, or not at all
        """Make what is lacking, for some seconds at most."""
        if self.lacking == 0:
            return
        paths = {blob: path for path, _, blob, _ in self._store.index.files()}
        lacking = paths.keys() - self._kept.marks().keys()
        try:
            lacking -= self._taken_over(lacking)
            lacking -= self._made({blob: paths[blob] for blob in sorted(lacking)})
        except (MemfsError, OSError) as error:
            self._store.note_failure(error)
        self.lacking = len(lacking)
        if self._kept.count() > _MOST:
            self._kept.forget(self._kept.marks().keys() - paths.keys())

    def _taken_over(self, lacking: Collection[str]) -> set[str]:
        """Take the vectors that the workspace has already."""
        marks = {blob: key for key, blob in self._present.marks().items() if blob in lacking}
        vectors = {blob: self._present.get(key) for blob, key in marks.items()}
        still = self._present.marks()  # another process may have given one of them the vector of its next text
        rows = [
            Kept(blob, vector, blob, b"")
            for blob, vector in vectors.items()
            if vector is not None and still.get(marks[blob]) == blob
        ]
        if rows:
            self._kept.store_all(rows)
        return {row.id for row in rows}

    def _made(self, paths: dict[str, str]) -> set[str]:
        """Embed what there is time for."""
        until = time.monotonic() + PATIENCE_SECONDS
        made: set[str] = set()
        rows = iter(paths.items())
        while time.monotonic() < until and (some := list(islice(rows, _AT_ONCE))):
            texts = [whole(self._store.read(path)) for _, path in some]
            vectors = self.embed(texts)
            self._kept.store_all(
                Kept(blob, vector, blob, hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())
                for (blob, _), vector, text in zip(some, vectors, texts, strict=True)
            )
            made.update(blob for blob, _ in some)
        return made

    def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """What the embedder makes of texts."""
        return embedded(self.embedder, texts)


class PastMeaning(Meaning):
    """Finds by meaning in one revision, once all of it has vectors."""

    def __init__(self, store: PastStore, embeddings: PastEmbeddings) -> None:
        # of both, Meaning asks for no more than these have
        super().__init__(cast("Store", store), cast(Embeddings, embeddings))
        self._vectors = embeddings

    def joined(self, together: Together, query: Query) -> Together:
        """See ``Meaning.joined``."""
        return super().joined(together, query) if self._vectors.lacking == 0 else together

    def knows(self, query: Query) -> bool:
        """See ``Meaning.knows``."""
        return super().knows(query) and self._vectors.lacking == 0

    def behind(self) -> bool:
        """See ``Meaning.behind``."""
        return self._vectors.lacking > 0

    def notes(self) -> Iterable[str]:
        """What to say of an answer that was found by words alone."""
        if self._vectors.lacking > 0:
            yield (
                f"found by words alone: {self._vectors.lacking:,} memories of that time have no vector yet; "
                "each question makes some more"
            )


class PastMeanings:
    """The meaning of every revision, with the embedder that a memory context names."""

    def __init__(self, config: MemoryConfig, present: Path, folder: Path | None) -> None:
        """
        Args:
            config: the memory context of today; an endpoint in it is one that the user trusts.
            present: where the workspace's index lies, and with it the vectors of what is.
            folder: where those of what was are kept; None keeps them in memory.

        Raises:
            SettingInvalid: it names no embedder that there is.
            ExtraMissing: its packages are not installed.
        """
        from memfs.index.embedder import embedder  # brings what only a search by meaning needs

        self._service: Endpoint | None = service_of(config.embedding_endpoint) if config.embedding_endpoint else None
        self._embedder = embedder(config.embedding_model, self._service)
        name = file_name(self._embedder.name)
        self._present = VectorStore(present / FOLDER / name, self._embedder.name)
        self._kept = VectorStore(folder / f"{FOLDER}-{name}" if folder else None, self._embedder.name)
        self._made: WeakKeyDictionary[PastStore, PastMeaning] = WeakKeyDictionary()

    def of(self, store: PastStore) -> PastMeaning:
        """The meaning of a revision."""
        found = self._made.get(store)
        if found is None:
            found = PastMeaning(store, PastEmbeddings(self._embedder, self._kept, self._present, store))
            self._made[store] = found
        return found

    def close(self) -> None:
        """Release the vectors."""
        self._present.close()
        self._kept.close()
        if self._service is not None:
            self._service.close()

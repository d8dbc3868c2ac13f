"""Ask the memory as it was at a revision: recall, read and count with its files, kinds and ``[recall]`` settings.

The time of the revision counts as the present. Reading the past writes nothing but this user's cache.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, cast
from weakref import WeakKeyDictionary

from memfs.admin.format import check_format
from memfs.admin.usage_by_area import MemoryTally
from memfs.config import load_kinds, recall_elsewhere
from memfs.config_names import SETTINGS_FILE
from memfs.errors import MemfsError
from memfs.format.codec import Codec
from memfs.fs.lock import renewed_in_child
from memfs.git.objects import TreeEntry
from memfs.git.quarantine import require_clean
from memfs.git.repository import Repository
from memfs.model import KindTable, Query
from memfs.model.memory_config import VECTOR_DB
from memfs.model.time import given_time
from memfs.recall.embeddings import FOLDER, Embeddings, embedded, file_name, service_of
from memfs.recall.recaller import Helpers, Recaller
from memfs.recall.rerank import Relevance, relevance_of
from memfs.recall.tokens import whole
from memfs.recall.vector_search import Together, VectorSearch
from memfs.search import analyzer
from memfs.search.cache_folders import past_folder
from memfs.search.revision_index import DocumentCache
from memfs.search.vectors import Near, VectorRow, VectorStore
from memfs.settings import RecallSettings, Settings
from memfs.store.parts import below_content
from memfs.team.revision_reader import PastFiles, PastStore, Progress
from memfs.version import __version__

if TYPE_CHECKING:
    from memfs.learning.conventions import Conventions
    from memfs.model.episode import TriggerRow
    from memfs.model.memory_config import MemoryConfig
    from memfs.model.state_query import Iteration
    from memfs.search.embedder import Embedder, Vector
    from memfs.store import Store


_OPEN = 3
_MOUNTS = "mounted workspaces were not asked: each has a history of its own"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Past:
    """The memory at one revision. Reading it writes nothing but this user's cache.

    Attributes:
        commit: the revision, all 40 digits; "" where no commit has it yet.
        tree: the id of what ``ContextMemory`` was there; equal trees give equal answers when asked at equal times.
            "" where there was none, or no commit has it yet.
        time: when the commit was made; also what counts as the present, unless ``at`` says otherwise.
        now: what counts as the present.
        store: lists, finds and loads its items (``memfs.store.reader.Readable`` and ``Browsable``).
        recall: answers questions with the full ranking; uses count for nothing and are not counted.
        files: every file as it was.
        kinds: the types of memory there were.
        settings: how recall was set in its ``memfs.toml``.
        tell: gives ``notes``.
    """

    commit: str
    tree: str
    time: datetime
    now: datetime
    store: PastStore
    recall: Recaller
    files: PastFiles
    kinds: KindTable
    settings: RecallSettings
    tell: Callable[[], tuple[str, ...]] = tuple

    @property
    def conventions(self) -> Conventions:
        """What was agreed on."""
        from memfs.learning.conventions import Conventions

        return Conventions(self.store, lambda: self.now)

    def episodes(self) -> list[TriggerRow]:
        """What was recorded of what agents did, the newest first."""
        from memfs.learning.situations import row_of
        from memfs.model.episode import EPISODE

        found = (self.store.load(one) for one in self.store.searcher.every(Query(types=frozenset({"episodic"}))))
        rows = [row_of(one.item, "") for one in found if one is not None]
        return sorted((row for row in rows if row.sort == EPISODE), key=lambda row: (-row.time, row.id))

    def iterations(self) -> list[Iteration]:
        """The rounds of work that there were, archived ones too."""
        from memfs.state.iterations import iterations_in

        return iterations_in(self.files)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the answers until now lack that those of today have, in sentences; usually nothing."""
        return self.tell()


class Travel:
    """Goes to revisions of one workspace. May be used from several threads."""

    def __init__(
        self,
        repository: Repository,
        settings: Settings,
        memory_config: Callable[[], MemoryConfig] | None = None,
        index_folder: Path | None = None,
    ) -> None:
        """
        Args:
            settings: the workspace's at present.
            memory_config: gives the memory context that holds at present; None: words alone find.
            index_folder: where the workspace's index lies, and with it the vectors of what is.
        """
        self._repository = repository
        self._settings = settings
        self._memory_config = memory_config
        self._index_folder = index_folder
        self._meanings: tuple[tuple[str, str], RevisionEmbeddings] | None = None
        self._turn = threading.RLock()
        renewed_in_child(self)
        self._open: OrderedDict[tuple[str, datetime], Past] = OrderedDict()

    def at(
        self,
        revision: str,
        *,
        now: datetime | None = None,
        quarantined: bool = False,
        progress: Progress | None = None,
    ) -> Past:
        """The memory at a revision.

        Args:
            revision: anything git knows, such as a commit, branch, tag or ``HEAD~3``; a date such as ``2026-03-01``; or
                an age such as ``3 days ago``: the newest commit of the checked out line that is not younger. A day
                means the whole of it, in UTC.
            now: what counts as the present instead of the commit's time, so that two revisions can be compared.
            quarantined: also what only a quarantined branch holds: for a person who looks at it, never for an agent.
            progress: called with how many of how many files were read, where that takes a while.

        Raises:
            HistoryUnavailable: there is no such revision, or it cannot be read.
            BranchQuarantined: only a quarantined branch holds it, or such a branch is checked out.
            FormatUnsupported: a newer memfs wrote it.
            ContentError, SettingInvalid: its ``kinds.yaml`` or the ``[recall]`` of its ``memfs.toml`` is invalid.
        """
        commit = self._repository.resolve(revision)
        if not quarantined:
            self._repository.require_readable()
            require_clean(self._repository, commit)
        time = self._repository.commit_object(commit).time
        moment = given_time(now) if now is not None else time
        with self._turn:
            past = self._open.get((commit, moment))
            if past is None:
                past = self._opened(PastFiles(self._repository, commit, moment), time, moment, progress)
            self._keep((commit, moment), past)
        return past

    def staged(self, files: Mapping[str, TreeEntry], *, now: datetime) -> Past:
        """The memory as the next commit will have it, for the person whose index that is; no commit is made.

        Args:
            files: what each path of the workspace names.
            now: what counts as the present.

        Raises:
            HistoryUnavailable, FormatUnsupported, ContentError, SettingInvalid: as ``at``.
        """
        with self._turn:
            past = self._opened(PastFiles(self._repository, "", now, files), now, now, None)
            self._keep(("", now), past)
        return past

    def _keep(self, key: tuple[str, datetime], past: Past) -> None:
        self._open[key] = past
        self._open.move_to_end(key)
        if len(self._open) > _OPEN:
            self._open.popitem(last=False)  # not closed: somebody may still ask it

    def _opened(self, files: PastFiles, time: datetime, now: datetime, progress: Progress | None) -> Past:
        try:
            check_format(files)
            kinds, schemas = load_kinds(files)
            settings = recall_elsewhere(files.get(SETTINGS_FILE), self._settings)
        except MemfsError as error:
            error.message = f"{error.message} ({f'at {files.commit[:10]}' if files.commit else 'as staged'})"
            raise
        codec = Codec(schemas, kinds, self._settings.security.allow_invisible)
        store = PastStore(files, codec, self._documents, now, progress)
        helpers = Helpers(relevance=lambda: self._relevance, meaning=partial(self._meaning, store))
        recall = Recaller(store, settings.preset, lambda: now, kinds, helpers=helpers)
        return Past(
            commit=files.commit,
            tree=files.tree,
            time=time,
            now=now,
            store=store,
            recall=recall,
            files=files,
            kinds=kinds,
            settings=settings,
            tell=partial(self._notes, store),
        )

    # -- what is shared by all revisions ----------------------------------------------------------------------------
    @cached_property
    def _folder(self) -> Path | None:
        with suppress(MemfsError, OSError):
            return past_folder(self._repository.common_dir)
        return None

    @cached_property
    def _documents(self) -> DocumentCache:
        rules = f"{__version__} {analyzer.identity()} {self._settings.security.allow_invisible}"
        return DocumentCache(self._folder, rules)

    @cached_property
    def _relevance(self) -> Relevance:
        return relevance_of(self._settings.review)

    def _meaning(self, store: PastStore) -> RevisionVectorSearch | None:
        """What finds by meaning in a revision; None where nothing does, or it cannot be had: the store says why."""
        try:
            config = self._memory_config() if self._memory_config is not None else None
            if config is None or config.storage_type != VECTOR_DB or self._index_folder is None:
                return None
            return self._meanings_by(config, self._index_folder).of(store)
        except MemfsError as error:
            store.note_failure(error)
            return None

    def _meanings_by(self, config: MemoryConfig, index_folder: Path) -> RevisionEmbeddings:

        key = config.embedding_model, config.embedding_endpoint
        with self._turn:
            if self._meanings is None or self._meanings[0] != key:
                self._meanings = key, RevisionEmbeddings(config, index_folder, self._folder)
            return self._meanings[1]

    def _notes(self, store: PastStore) -> tuple[str, ...]:
        meaning = self._meaning(store)
        return (*((_MOUNTS,) if self._settings.mounts else ()), *(meaning.notes() if meaning is not None else ()))

    def close(self) -> None:
        """Release what was opened. May be repeated."""
        with self._turn:
            opened, self._open = self._open, OrderedDict()
        for past in opened.values():
            past.recall.close()  # waits for threads that may need the turn
        with self._turn:
            if "_documents" in self.__dict__:
                self._documents.close()
            meanings, self._meanings = self._meanings, None
            if meanings is not None:
                meanings[1].close()


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
    """What ``Meaning`` asks of the vectors of a revision (``memfs.recall.embeddings.Embeddings``)."""

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
            VectorRow(blob, vector, blob, b"")
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
                VectorRow(blob, vector, blob, hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())
                for (blob, _), vector, text in zip(some, vectors, texts, strict=True)
            )
            made.update(blob for blob, _ in some)
        return made

    def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """What the embedder makes of texts."""
        return embedded(self.embedder, texts)


class RevisionVectorSearch(VectorSearch):
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
        if lacking := self._vectors.lacking:
            some = f"{lacking:,} memories of that time have" if lacking > 1 else "1 memory of that time has"
            yield f"found by words alone: {some} no vector yet; each question makes some more"


class RevisionEmbeddings:
    """The embeddings of every revision, with the embedder that a memory context names."""

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
        from memfs.search.embedder import embedder

        service = service_of(config.embedding_endpoint) if config.embedding_endpoint else None
        self._embedder = embedder(config.embedding_model, service)
        name = file_name(self._embedder.name)
        self._present = VectorStore(present / FOLDER / name, self._embedder.name)
        self._kept = VectorStore(folder / f"{FOLDER}-{name}" if folder else None, self._embedder.name)
        self._made: WeakKeyDictionary[PastStore, RevisionVectorSearch] = WeakKeyDictionary()

    def of(self, store: PastStore) -> RevisionVectorSearch:
        """The meaning of a revision."""
        found = self._made.get(store)
        if found is None:
            found = RevisionVectorSearch(store, PastEmbeddings(self._embedder, self._kept, self._present, store))
            self._made[store] = found
        return found

    def close(self) -> None:
        """Release the vectors."""
        self._present.close()
        self._kept.close()


def past_tally(past: Past) -> MemoryTally:
    """Count and measure the items of a revision; nothing is said of its history and its index."""
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    layers: Counter[str] = Counter()
    for path, _, _, size in past.store.index.files():
        kind = past.kinds.at(below_content(path))
        if kind is not None:
            counts[kind.name] += 1
            sizes[kind.name] += size
            layers[kind.layer.value] += 1
    return MemoryTally(
        items=sum(counts.values()),
        types=dict(counts.most_common()),
        layers=dict(layers.most_common()),
        type_bytes=dict(sizes),
        content_bytes=sum(sizes.values()),
        repository_bytes=0,
        index_bytes=0,
    )

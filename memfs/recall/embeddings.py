"""Embeds every item in the background, and adds what an embedder says of a query to the scores of its words.

Vectors are made in small batches, each stored at once, so that an interrupted run goes on where it stopped. A caller
waits no longer than a moment; recall uses what is there. The similarity of a candidate is measured against that of all
candidates, smoothed over neighbours in a conversation, and added in the unit of text scores (see
``benchmarks/README.md``). Where the embedder does not answer, the words decide alone.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from math import sqrt
from operator import add
from weakref import ref

from memfs.config_names import VECTOR_DB
from memfs.dataclass import NamedTuple, dataclass
from memfs.errors import EndpointFailed, MemfsError, WorkspaceClosed
from memfs.format.secrets import find
from memfs.fs.executor import Worker
from memfs.fs.lock import reset_on_fork
from memfs.model import Candidate, MemoryItem, Query
from memfs.model.ids import stem_of
from memfs.model.item import whole
from memfs.model.learning import MemoryConfig
from memfs.recall.ranking import NOTHING, Shares
from memfs.search import terms
from memfs.search.columns import StampTable
from memfs.search.embedder import Embedder, EndpointEmbedder, Vector, embedder
from memfs.search.search_index import SearchIndex
from memfs.search.vectors import VectorStore, VectorTable
from memfs.store import Store

Progress = Callable[[int, int], None]
Lacking = tuple[str, str, str]
"""Id, path and content id of an item without the vector of that content."""

_AT_ONCE = 16
_FEW = 32
_SINGLY = 200
_REST_SECONDS = 30.0
_END_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingStatus:
    """How far the embeddings are.

    Attributes:
        model: the embedder's name.
        items: how many items there are.
        embedded: how many of them have the vector of what they say now.
        bytes: what the file of the vectors weighs.
        running: whether this process is making the others'.
        problem: why the last try failed, "" where it did not.
    """

    model: str
    items: int
    embedded: int
    bytes: int
    running: bool
    problem: str


class Embeddings:
    """The vectors of one workspace. May be used from several threads."""

    def __init__(
        self,
        embedder: Embedder,
        table: VectorTable,
        index: SearchIndex,
        read: Callable[[str], MemoryItem],
        report: Callable[[Exception], None],
        *,
        brief: bool = False,
    ) -> None:
        """
        Args:
            embedder: makes them.
            table: keeps them.
            index: says which items there are.
            read: gives the item in a file.
            report: called with what went wrong in the background.
            brief: whether the process asks little and ends: it reads the vectors of the index's base in one piece, and
                NumPy, which takes longer to load than the answer takes, is spared.
        """
        self.embedder = embedder
        self._table, self._brief = table, brief
        self._vectors, self._held, self._missing = VectorStore(brief=brief), dict[str, str](), dict[str, Lacking]()
        self._index, self._read, self._report = index, read, report
        self._turn = threading.Lock()
        self._step = threading.RLock()
        reset_on_fork(self)
        self._worker = Worker("memfs-embeddings", self._work, report)
        self._ending = threading.Event()
        self._generation = -1
        self._followed: Callable[[], StampTable | None] = lambda: None
        self._tried = 0.0
        self._unfit: set[tuple[str, str]] = set()
        self.problem = ""

    # -- in the background ------------------------------------------------------------------------------------------
    def after_fork(self) -> None:
        """Begin with a thread of its own."""
        if not self._ending.is_set():
            self._ending = threading.Event()

    def keep_up(self, patience: float = 0.0) -> None:
        """Have what is lacking made by a thread of its own, and wait for it for at most ``patience`` seconds."""
        resting = bool(self.problem) and time.monotonic() - self._tried < _REST_SECONDS
        if not (self._worker.busy or self._ending.is_set() or resting) and self._wanted():
            self._worker.wake()
            self._worker.settle(patience)

    def _work(self) -> None:
        try:
            self.catch_up()
        except (MemfsError, OSError) as error:
            self._report(error)

    @property
    def behind(self) -> bool:
        """Whether vectors are lacking: they are being made, or could not be."""
        return bool(self.problem) or self._worker.busy

    def settle(self) -> None:
        """Wait until the thread has made what it is at."""
        self._worker.settle()

    def close(self) -> None:
        """Stop after the batch that is being made, and release the vectors."""
        self._ending.set()
        self._worker.close(_END_SECONDS)
        self._table.close()

    # -- making -----------------------------------------------------------------------------------------------------
    def catch_up(self, progress: Progress | None = None) -> int:
        """Make every vector that is lacking, now; return how many were made.

        Args:
            progress: called with how many of how many items were looked at.

        Raises:
            EndpointFailed: the service did not answer; what was made until then is kept.
            CorruptRecord: the model's file is damaged.
            StorageIO: the vectors cannot be written.
        """
        with self._turn:
            try:
                lacking, made = self._wanted(), 0
                for start in range(0, len(lacking), _AT_ONCE):
                    if self._ending.is_set():
                        break
                    part = lacking[start : start + _AT_ONCE]
                    made += self._made(part)
                    if progress is not None:
                        progress(start + len(part), len(lacking))
                if made:
                    self._table.sweep(set(self._held.values()))
                    self._keep_together()
            except MemfsError as error:
                self.problem, self._tried = error.message, time.monotonic()
                raise
            self.problem = ""
            return made

    def catch_up_few(self) -> None:
        """Make the vectors of a few new items, where the model takes a moment for them; of many none.

        Raises:
            StorageIO: they cannot be written.
        """
        with self._turn:
            lacking = self._wanted() if self.embedder.light else []
            if 0 < len(lacking) <= _FEW:
                self._made(lacking)

    def _made(self, lacking: Sequence[Lacking]) -> int:
        """Make the vectors of items but those whose vector is kept from before; return how many were made."""
        texts = []
        for key, path, blob in lacking:
            try:
                text = whole(self._read(path))
            except (MemfsError, OSError):  # it was removed, or is not valid: the store names it
                self._unfit.add((path, blob))
                continue
            texts.append(_Text(key, blob, text, hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()))
        known = self._table.found({text.digest for text in texts}, of="text")
        fresh = {text.digest: text.text for text in texts if text.digest not in known}
        if fresh:
            made = zip(fresh, self.embed(list(fresh.values())), strict=True)
            known |= {digest: self._vectors.packed(vector) for digest, vector in made}
        self._table.keep([(text.blob, text.digest, known[text.digest]) for text in texts])
        self._take({text.id: (text.blob, known[text.digest]) for text in texts})
        return len(fresh)

    def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """What the embedder makes of texts; of one that holds a secret, and would go to a service, only zeros.

        Raises:
            EndpointFailed: it failed, whatever it says of itself.
            CorruptRecord: the model's file is damaged.
        """
        if isinstance(self.embedder, EndpointEmbedder):
            texts = ["" if find(text) else text for text in texts]
        try:
            if self._brief and self.embedder.light and len(texts) <= _FEW:
                return [self.embedder.embed([text])[0] for text in texts]  # which spares NumPy
            return self.embedder.embed(texts)
        except MemfsError:
            raise
        except Exception as error:
            raise EndpointFailed(
                f"the embedder {self.embedder.name} failed: {type(error).__name__}: {error}",
                field="embedding_model",
                hint="choose another model, or 'memfs semantic off'",
            ) from error

    # -- in step with the items -------------------------------------------------------------------------------------
    @property
    def vectors(self) -> VectorStore:
        """The vectors of the items as they are now, as far as they were made, by whichever process."""
        self._lacking()
        return self._vectors

    def _wanted(self) -> list[Lacking]:
        return [one for one in self._lacking() if one[1:] not in self._unfit]

    def _lacking(self) -> list[Lacking]:
        """Items without the vector of what they say; those that are gone are forgotten on a full check."""
        with self._step:
            generation, stamps = self._index.generation, self._index.stamps()
            if stamps is not self._followed() or generation != self._generation:
                self._compare(stamps, whole=generation != self._generation)
                self._generation, self._followed = generation, ref(stamps)
            if self._missing:
                found = self._table.found({blob for _, _, blob in self._missing.values()})
                rows = [(key, blob) for key, _, blob in self._missing.values() if blob in found]
                self._take({key: (blob, found[blob]) for key, blob in rows})
                if len(rows) > _SINGLY:
                    self._keep_together()
            return list(self._missing.values())

    def _compare(self, stamps: StampTable, whole: bool) -> None:
        """Note which items lack the vector of what they say."""
        if whole:
            if not self._held and (base := self._base()) and (packed := self._table.together(base)):
                contents = self._contents()
                self._held = {key: contents[key] for key in self._vectors.unpack(list(contents), packed)}
            rows = [(key, path, blob) for (path, key), (_, blob) in zip(stamps.ids(), stamps.blobs(), strict=True)]
            gone = self._held.keys() - {key for key, _, _ in rows}
            self._vectors.take(dict.fromkeys(gone))
            for key in gone:
                del self._held[key]
            self._missing = {}
        else:
            rows = [(stem_of(path), path, stamp.blob) for path, stamp in self._index.overlay_stamps().items()]
        missing = self._missing | {row[0]: row for row in rows if self._held.get(row[0]) != row[2]}
        self._missing = {key: row for key, row in missing.items() if stamps.blob(row[1]) == row[2]}
        if self._brief:  # the vector of what a changed item says now is not made before the process ends
            before = self._held.keys() & self._missing.keys()
            self._vectors.take(dict.fromkeys(before))
            self._held = {key: blob for key, blob in self._held.items() if key not in before} if before else self._held

    def _keep_together(self) -> None:
        """Keep the vectors of the index's base in one piece, for the next process that asks."""
        if base := self._base():
            ids = [key if self._held.get(key) == blob else "" for key, blob in self._contents().items()]
            self._table.keep_together(base, self._vectors.pack(ids))

    def _contents(self) -> dict[str, str]:
        """The content ids of the items of the index's base by id, in an order that a base has for good."""
        stamps = self._index.base_stamps()
        return {key: blob for (_, key), (_, blob) in zip(stamps.ids(), stamps.blobs(), strict=True)}

    def _base(self) -> str:
        """Names the index's base, "" where vectors are not read in one piece."""
        number, digest = self._index.base
        return f"{number} {digest}" if self._brief and number else ""

    def _take(self, made: Mapping[str, tuple[str, bytes]]) -> None:
        """Put vectors beside those that are held, each with the content it is of."""
        with self._step:
            self._vectors.take({key: numbers for key, (_, numbers) in made.items()})
            for key, (blob, _) in made.items():
                self._held[key] = blob
                if key in self._missing and self._missing[key][2] == blob:
                    del self._missing[key]

    def any(self) -> bool:
        """Whether any item has a vector."""
        self._lacking()
        return bool(self._held)

    def status(self) -> EmbeddingStatus:
        """How far they are, by checking every item."""
        lacking, stamps = len(self._lacking()), self._index.stamps()
        return EmbeddingStatus(
            model=self.embedder.name,
            items=len(stamps),
            embedded=len(stamps) - lacking,
            bytes=self._vectors.size(),
            running=self._worker.busy,
            problem=self.problem,
        )


class _Text(NamedTuple):
    """What an item says: its id, content id, the text to embed and that text's digest."""

    id: str
    blob: str
    text: str
    digest: str


Together = Sequence[tuple[Candidate, Shares]]

_JOINING = 50
_LOOKED_AT = 1_000
_NEIGHBOURS: Sequence[float] = (0.3,)
_WIDE_NEIGHBOURS = 0.6, 0.36
"""What those right beside a turn of a talk lend of their nearness, and the next ones; and so of means of words."""
_FLOOR = 0.05
_SURE, _BOUND = 0.5, 0.5
"""The most of its weight that what words found gains or loses beside an embedder of less weight than the first."""
_KNOWS_SENSES, _IN_TRANSCRIPT, _MEANS_IN_TRANSCRIPT = 0.15, 0.8, 1.5
"""From what weight on an embedder counts so much, at least, where a talk is the question; and one that takes means."""
_PATIENCE_SECONDS = 0.05
_QUESTION_REST_SECONDS = 10.0
_REMEMBERED = 64
_ALIKE = 0.8


class VectorSearch:
    """Finds by meaning in one workspace. May be used from several threads."""

    def __init__(self, store: Store, embeddings: Embeddings, *, background: bool = True) -> None:
        """
        Args:
            embeddings: the vectors of the store's items.
            background: whether items are embedded in the background, as in a long-lived process. Else a question embeds
                itself and a few new items first, unless no item has a vector yet: the model is not loaded for an answer
                that it cannot change.
        """
        self.embeddings, self._background, self._store = embeddings, background, store
        self._asked: OrderedDict[str, Vector | None] = OrderedDict()
        self._failed = float("-inf")

    @property
    def knows_senses(self) -> bool:
        """Whether the model distinguishes the senses of words, not their spelling alone."""
        return self.embeddings.embedder.weight >= _KNOWS_SENSES

    @property
    def _takes_means(self) -> bool:
        """Whether the vector of a text is the mean of its words: all have much in common, and each is vague."""
        return self.embeddings.embedder.light and self.knows_senses

    def prepare(self, queries: Iterable[Query]) -> None:
        """Do what may take a moment: see that new items get their vectors, and embed the questions."""
        try:
            if self._background:
                self.embeddings.keep_up(_PATIENCE_SECONDS)
            else:
                self.embeddings.catch_up_few()
                if not self.embeddings.any():
                    return
            texts = dict.fromkeys(query.text for query in queries if query.text)
            fresh = [text for text in texts if text not in self._asked]
            if not fresh or time.monotonic() - self._failed < _QUESTION_REST_SECONDS:
                return
            light = self.embeddings.embedder.light  # a model that reads sentences weighs the turns of a talk itself
            turns = [(one, turn) for one in fresh for turn in (terms.turns(one) if light else [terms.Turn(one)])]
            made = self.embeddings.embed([turn.text for _, turn in turns])
        except MemfsError as error:
            self._failed = time.monotonic()
            self._store.note_failure(error)
            return
        vectors: dict[str, Vector] = {}
        for (text, turn), vector in zip(turns, made, strict=True):
            part = [turn.worth * number for number in vector] if turn.speaker else vector
            vectors[text] = list(map(add, vectors[text], part)) if text in vectors else part
        self._asked.update(vectors)
        while len(self._asked) > max(_REMEMBERED, len(texts)):
            self._asked.popitem(last=False)

    def behind(self) -> bool:
        """Whether some items have no vector yet, or the last question has none: words alone find those."""
        if self._background:
            late = self.embeddings.behind
        else:
            status = self.embeddings.status()
            late = status.embedded < status.items
        return late or time.monotonic() - self._failed < _QUESTION_REST_SECONDS

    def knows(self, query: Query) -> bool:
        """Whether the question has a vector, without which words alone decide."""
        return self._asked.get(query.text) is not None

    def like(self, item: MemoryItem, limit: int, threshold: float = _ALIKE) -> list[str]:
        """The ids of items that mean nearly the same as another, the nearest first; as far as they have their vectors.

        Args:
            threshold: how near they must be, -1 to 1.
        """
        try:
            if self._background:
                vector: Vector = self.embeddings.embed([whole(item)])[0]
            else:  # where items are not embedded here, the one that is kept for it, if any
                vector = (self.embeddings.vectors.get(item.id) if item.id else None) or ()
            near = self.embeddings.vectors.search(vector, limit + 1, threshold) if any(vector) else []
        except MemfsError as error:
            self._store.note_failure(error)
            return []
        return [one.id for one in near if one.id != item.id][:limit]

    def joined(self, together: Together, query: Query) -> Together:
        """The candidates of the text search, joined by those of similar meaning only, with what meaning adds to each.

        Without a vector of the question (see ``prepare``) they stay as they are.
        """
        vector = self._asked.get(query.text)
        if vector is None or not any(vector):
            return together
        try:
            more = self._nearby(vector, query, {one.id for one, _ in together})
            # those without a word of the question have the share of their session
            talks = {one.session: shares.session for one, shares in together if one.sequence is not None}
            sessions = [one.session if one.sequence is not None else None for one in more]
            beside = [Shares(session=talks[one]) if one in talks else NOTHING for one in sessions]
            everyone = [*together, *zip(more, beside, strict=True)]
            cosines = self.embeddings.vectors.similarities(vector, [one.id for one, _ in everyone])
            nearness, lent = cosines, _NEIGHBOURS
            if self._takes_means:
                worth = {one.id: _text_score(one, shares) for one, shares in everyone if one.id in cosines}
                nearness, lent = self.embeddings.vectors.contrasts(vector, worth), _WIDE_NEIGHBOURS
        except (MemfsError, OSError) as error:
            self._store.note_failure(error)
            return together
        weight = self.embeddings.embedder.weight
        if self.knows_senses and len(terms.turns(query.text)) > 1:
            weight = max(weight, _MEANS_IN_TRANSCRIPT if self._takes_means else _IN_TRANSCRIPT)
        return _weighed(everyone, cosines, _smoothed(everyone, nearness, lent), weight) if cosines else together

    def _nearby(self, vector: Vector, query: Query, known: Collection[str]) -> list[Candidate]:
        """The nearest items that pass the query's filters and are not known yet."""
        least = self.embeddings.embedder.least
        filtered = query != Query(text=query.text, limit=query.limit, related=query.related)
        count = max(_JOINING, query.limit)
        found: list[Candidate] = []
        for many in (2 * count, _LOOKED_AT) if filtered else (count,):
            near = self.embeddings.vectors.search(vector, many, least, known)
            passing = {one.id: one for one in self._store.among([one.id for one in near], query)}
            found = [passing[one.id] for one in near if one.id in passing][:count]
            if len(found) == count or len(near) < many:
                break
        return found


def _text_score(candidate: Candidate, shares: Shares) -> float:
    return candidate.similarity + shares.neighbours + shares.session


def _weighed(
    everyone: Together, cosines: Mapping[str, float], nearness: Mapping[str, float], weight: float
) -> Together:
    """What each gains or loses by its meaning, in the unit of the text scores; none falls to nothing.

    One without a vector neither gains nor loses. A model that counts little moves what words found by a part of its
    text score at most: what has the words keeps its place beside what merely sounds like the question.
    """
    texts = [_text_score(candidate, shares) for candidate, shares in everyone]
    unit = _spread(texts) or max(texts) or 1.0
    middle, spread = _mean(nearness.values()), _spread(nearness.values()) or 1.0
    judged = []
    for (candidate, shares), text in zip(everyone, texts, strict=True):
        if candidate.id in nearness:
            share = weight * unit * (nearness[candidate.id] - middle) / spread
            if text > 0 and weight < _SURE:
                share = max(-_BOUND * weight * text, min(share, _BOUND * weight * text))
            least = _FLOOR * (text or unit * cosines[candidate.id])
            candidate = candidate._replace(meaning=cosines[candidate.id])
            shares = shares._replace(meaning=max(share, least - text))
        judged.append((candidate, shares))
    return judged


def _mean(values: Collection[float]) -> float:
    return sum(values) / len(values)


def _spread(values: Collection[float]) -> float:
    """The standard deviation."""
    middle = _mean(values)
    return sqrt(sum((value - middle) ** 2 for value in values) / len(values))


def _smoothed(everyone: Together, nearness: Mapping[str, float], lent: Sequence[float]) -> dict[str, float]:
    """Each nearness with parts of those before and after it in the talk: what the next lend, then the next but one."""
    places = {
        (candidate.session, candidate.sequence): nearness[candidate.id]
        for candidate, _ in everyone
        if candidate.sequence is not None and candidate.id in nearness
    }
    smoothed = dict(nearness)
    for candidate, _ in everyone:
        session, at = candidate.session, candidate.sequence
        if at is not None and candidate.id in nearness:
            for step, share in enumerate(lent, 1):
                beside = places.get((session, at - step), 0.0) + places.get((session, at + step), 0.0)
                smoothed[candidate.id] += share * beside
    return smoothed


class EmbeddingIndex:
    """The embeddings of one workspace under the model that its settings ask for, which may change while it is open.

    May be used from several threads.
    """

    def __init__(
        self, store: Store, index: SearchIndex, config: Callable[[], MemoryConfig], *, background: bool = True
    ) -> None:
        """
        Args:
            config: gives the memory context; an endpoint in it is one that the user trusts.
            background: whether items may be embedded in the background; else questions are, and a few new items with
                them.
        """
        self._store, self._index, self._config = store, index, config
        self._background = background
        self._current: tuple[tuple[str, str], VectorSearch] | None = None
        self._changing = threading.RLock()
        reset_on_fork(self)

    def current(self) -> VectorSearch | None:
        """What finds by meaning; None where the memory context asks for none, or for what is not available.

        Why it is not available is among the store's problems.
        """
        try:
            return self.wanted()
        except WorkspaceClosed:
            raise
        except MemfsError as error:
            self._store.note_failure(error)
            return None

    def wanted(self) -> VectorSearch | None:
        """What finds by meaning; None where the memory context asks for none.

        Raises:
            SettingInvalid: it names no embedder that there is.
            ExtraMissing: its packages are not installed.
            ContentError: the memory context is not valid.
        """
        config = self._config()
        key = config.embedding_model, config.embedding_endpoint
        with self._changing:
            if config.storage_type != VECTOR_DB:
                self.close()
                return None
            if self._current is None or self._current[0] != key:
                self.close()
                self._current = key, self._made(*key)
            return self._current[1]

    def _made(self, model: str, address: str) -> VectorSearch:
        service = None
        if address:
            from memfs.config_names import EMBEDDING_KEY
            from memfs.endpoint import Endpoint, key_of  # only a service needs it

            service = Endpoint(address, key_of(EMBEDDING_KEY))  # asked with this user's key
        chosen = embedder(model, service)
        table, report = VectorTable(self._index.folder, chosen.name), self._store.note_failure
        made = Embeddings(chosen, table, self._index, self._store.read, report, brief=not self._background)
        return VectorSearch(self._store, made, background=self._background)

    def close(self) -> None:
        """Stop embedding and release the vectors; the next query starts over."""
        with self._changing:
            current, self._current = self._current, None
            if current is not None:
                current[1].embeddings.close()

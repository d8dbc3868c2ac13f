"""Past: the workspace's memory as it was at a revision, asked in full (B1).

Owns which revision is meant, and what of that revision counts: its files, its kinds, its ``[recall]`` settings, and its
time as the present. How an answer is made is the pipeline's business; how the past is read that of ``paststore``.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memfs import setting_values
from memfs.errors import MemfsError, SettingInvalid
from memfs.files import tomltext
from memfs.files.codec import Codec
from memfs.files.forked import renewed_in_child
from memfs.history.objects import Entry
from memfs.history.quarantine import require_clean
from memfs.history.repository import Repository
from memfs.index import analyzer
from memfs.index.documentcache import DocumentCache
from memfs.index.place import past_folder
from memfs.index.rows import micros
from memfs.index.treeshelf import TreeShelf
from memfs.model import KindTable, Query
from memfs.model.memory_config import VECTOR_DB
from memfs.model.time import given_time
from memfs.pipeline.finding import Helpers
from memfs.pipeline.relevance import Relevance, relevance_of
from memfs.pipeline.retrieval import Recaller
from memfs.settings import RecallSettings, Settings, spec_of
from memfs.teams.pastfiles import PastFiles
from memfs.teams.pastindex import Built, built
from memfs.teams.pastreading import PastReading, Progress
from memfs.teams.paststore import PastStore
from memfs.upkeep.format import check_format
from memfs.upkeep.kindfile import load_kinds
from memfs.version import __version__

if TYPE_CHECKING:
    from memfs.model.memory_config import MemoryConfig
    from memfs.model.triggerrow import TriggerRow
    from memfs.pipeline.conventions import Conventions
    from memfs.states.iterations import Iteration
    from memfs.teams.pastmeaning import PastMeaning, PastMeanings

_OPEN = 8
_MOUNTS = "mounted workspaces were not asked: each has a history of its own"
_FROM_THE_PERSON = ("argument", "MEMFS_")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Past:
    """The memory at one revision. Reading it writes nothing but this user's cache.

    Attributes:
        commit: the revision, all 40 digits; "" where no commit has it yet.
        tree: the id of what ``ContextMemory`` was there; equal trees give equal answers when asked at equal times.
            "" where there was none.
        time: when the commit was made; also what counts as the present, unless ``at`` was told otherwise.
        now: what counts as the present.
        store: lists, finds and loads its items (``memfs.store.readable.Readable`` and ``Browsable``).
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
        from memfs.pipeline.conventions import Conventions  # most questions are about other things

        return Conventions(self.store, lambda: self.now)

    def episodes(self) -> list[TriggerRow]:
        """What was recorded of what agents did, the newest first."""
        from memfs.model.triggerrow import EPISODE
        from memfs.pipeline.rowmaking import row_of

        found = (self.store.load(one) for one in self.store.seeking.every(Query(types=frozenset({"episodic"}))))
        rows = [row_of(one.item, "") for one in found if one is not None]
        return sorted((row for row in rows if row.sort == EPISODE), key=lambda row: (-row.time, row.id))

    def iterations(self) -> list[Iteration]:
        """The rounds of work that there were, archived ones too."""
        from memfs.states.iterations import iterations_in

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
        self._meanings: tuple[tuple[str, str], PastMeanings] | None = None
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
        """The memory at a revision (B1).

        Args:
            revision: anything git knows, such as a commit, branch, tag or ``HEAD~3``; a date such as ``2026-03-01``; or
                an age such as ``3 days ago``: the newest commit of the checked out line that is not younger. A day
                means the whole of it, in UTC.
            now: what counts as the present instead of the commit's time, so that two revisions can be compared.
            quarantined: also what only a quarantined branch holds: for a person who looks at it, never for an agent.
            progress: told how many of how many files were read, where that takes a while.

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

    def staged(self, files: Mapping[str, Entry], *, now: datetime) -> Past:
        """The memory as the next commit will have it, for the person whose index that is; no commit is made (B4).

        Args:
            files: what each path of the workspace names.
            now: what counts as the present.

        Raises:
            HistoryUnavailable, FormatUnsupported, ContentError, SettingInvalid: as ``at``.
        """
        with self._turn:
            past = self._opened(PastFiles(self._repository, "", now, files), now, now, None)
            self._keep((past.tree, now), past)
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
            settings = self._recall_settings(files)
        except MemfsError as error:
            error.message = f"{error.message} ({f'at {files.commit[:10]}' if files.commit else 'as staged'})"
            raise
        codec = Codec(schemas, kinds, self._settings.security.allow_invisible)
        reading = PastReading(files, codec, kinds, self._documents, now)
        store = PastStore(files, reading, kinds, partial(self._built, files, reading, now, progress), lambda: now)
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

    def _built(self, files: PastFiles, reading: PastReading, now: datetime, progress: Progress | None) -> Built:
        with self._turn:
            documents = partial(reading.documents, progress=progress)
            return built(self._shelf, files.tree, reading.candidates(), documents, micros(now))

    # -- what is shared by all revisions ----------------------------------------------------------------------------
    @cached_property
    def _made_by(self) -> str:
        """Names the rules by which files are read."""
        return f"{__version__} {analyzer.identity()} {self._settings.security.allow_invisible}"

    @cached_property
    def _folder(self) -> Path | None:
        with suppress(MemfsError, OSError):
            return past_folder(self._repository.common_dir)
        return None

    @cached_property
    def _documents(self) -> DocumentCache:
        return DocumentCache(self._folder, self._made_by)

    @cached_property
    def _shelf(self) -> TreeShelf:
        return TreeShelf(self._folder, self._made_by)

    @cached_property
    def _relevance(self) -> Relevance:
        return relevance_of(self._settings.review)

    def _meaning(self, store: PastStore) -> PastMeaning | None:
        """What finds by meaning in a revision; None where nothing does, or it cannot be had: the store says why."""
        try:
            config = self._memory_config() if self._memory_config is not None else None
            if config is None or config.storage_type != VECTOR_DB or self._index_folder is None:
                return None
            return self._meanings_by(config, self._index_folder).of(store)
        except MemfsError as error:
            store.note_failure(error)
            return None

    def _meanings_by(self, config: MemoryConfig, index_folder: Path) -> PastMeanings:
        from memfs.teams.pastmeaning import PastMeanings  # a question by words alone is spared it

        key = config.embedding_model, config.embedding_endpoint
        with self._turn:
            if self._meanings is None or self._meanings[0] != key:
                self._meanings = key, PastMeanings(config, index_folder, self._folder)
            return self._meanings[1]

    def _notes(self, store: PastStore) -> tuple[str, ...]:
        meaning = self._meaning(store)
        return (*((_MOUNTS,) if self._settings.mounts else ()), *(meaning.notes() if meaning is not None else ()))

    def _recall_settings(self, files: PastFiles) -> RecallSettings:
        """How recall was set then; what this process was told by argument or environment goes before."""
        then = _written(files.get(tomltext.FILE))
        chosen: dict[str, Any] = {}
        for field in fields(RecallSettings):
            key = f"recall.{field.name}"
            if self._settings.origins.get(key, "").startswith(_FROM_THE_PERSON):
                chosen[field.name] = getattr(self._settings.recall, field.name)
            elif field.name in then:
                chosen[field.name] = setting_values.checked(then[field.name], spec_of(key))
        return RecallSettings(**chosen)

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


def _written(data: bytes | None) -> Mapping[str, Any]:
    """The table ``[recall]`` of a ``memfs.toml``.

    Raises:
        SettingInvalid: it is none.
    """
    try:
        tables = tomltext.parse((data or b"").decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise SettingInvalid("not UTF-8 text", path=tomltext.FILE, hint="ask at another revision") from error
    found = tables.get("recall", {})
    return found if isinstance(found, Mapping) else {}

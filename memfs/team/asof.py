"""Ask the memory as it was at a revision: recall, read and count with its files, kinds and ``[recall]`` settings.

The time of the revision counts as the present. Reading the past writes nothing but this user's cache.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from memfs.admin.format import check_format
from memfs.admin.usage_by_area import MemoryTally, tally_of
from memfs.catalog.facts import Catalog
from memfs.catalog.items import ItemCatalog
from memfs.config import load_kinds, recall_elsewhere
from memfs.config_names import SETTINGS_FILE
from memfs.errors import MemfsError
from memfs.format.codec import Codec
from memfs.fs.lock import renewed_in_child
from memfs.git.objects import TreeEntry
from memfs.git.quarantine import require_clean
from memfs.git.repository import Repository
from memfs.model import KindTable, Query
from memfs.model.time import given_time
from memfs.recall.recaller import Helpers, Recaller
from memfs.recall.rerank import Relevance, relevance_of
from memfs.search import analyzer
from memfs.search.cache_folders import shared_folder
from memfs.settings import RecallSettings, Settings
from memfs.store.reader import Reader
from memfs.team.revision_reader import DocumentCache, Progress, RevisionFiles, RevisionItems
from memfs.version import __version__

if TYPE_CHECKING:
    from memfs.learning.conventions import Conventions
    from memfs.model.episode import TriggerRow


_OPEN = 3
_MOUNTS = "mounted workspaces were not asked: each has a history of its own"
_WORDS = "found by words alone: only memories as they are now have vectors"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Past:
    """The memory at one revision. Reading it writes nothing but this user's cache.

    Attributes:
        commit: the revision, all 40 digits; "" where no commit has it yet.
        tree: the id of what ``ContextMemory`` was there; equal trees give equal answers when asked at equal times.
            "" where there was none, or no commit has it yet.
        time: when the commit was made; also what counts as the present, unless ``at`` says otherwise.
        now: what counts as the present.
        items: what is known of them.
        store: lists, finds and loads its items.
        recall: answers questions with the full ranking; uses count for nothing and are not counted.
        settings: how recall was set in its ``memfs.toml``.
        tell: gives ``notes``.
    """

    commit: str
    tree: str
    time: datetime
    now: datetime
    items: RevisionItems
    store: Reader
    recall: Recaller
    settings: RecallSettings
    tell: Callable[[], tuple[str, ...]] = tuple

    @property
    def files(self) -> RevisionFiles:
        """Every file as it was."""
        return self.items.files

    @property
    def kinds(self) -> KindTable:
        """The types of memory there were."""
        return self.items.kinds

    @property
    def conventions(self) -> Conventions:
        """What was agreed on."""
        from memfs.learning.conventions import Conventions

        return Conventions(self.store, lambda: self.now)

    def episodes(self) -> list[TriggerRow]:
        """What was recorded of what agents did, the newest first."""
        from memfs.learning.situations import row_of
        from memfs.model.episode import EPISODE

        found = (self.store.load(one) for one in self.store.every(Query(types=frozenset({"episodic"}))))
        rows = [row_of(one.item, "") for one in found if one is not None]
        return sorted((row for row in rows if row.sort == EPISODE), key=lambda row: (-row.time, row.id))

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
        by_meaning: Callable[[], bool] = lambda: False,
    ) -> None:
        """
        Args:
            settings: the workspace's at present.
            by_meaning: whether the present is searched by meaning, too.
        """
        self._repository = repository
        self._settings = settings
        self._by_meaning = by_meaning
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
                past = self._opened(RevisionFiles(self._repository, commit, moment), time, moment, progress)
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
            past = self._opened(RevisionFiles(self._repository, "", now, files), now, now, None)
            self._keep(("", now), past)
        return past

    def _keep(self, key: tuple[str, datetime], past: Past) -> None:
        self._open[key] = past
        self._open.move_to_end(key)
        if len(self._open) > _OPEN:
            self._open.popitem(last=False)  # not closed: somebody may still ask it

    def _opened(self, files: RevisionFiles, time: datetime, now: datetime, progress: Progress | None) -> Past:
        try:
            check_format(files)
            kinds, schemas = load_kinds(files)
            settings = recall_elsewhere(files.get(SETTINGS_FILE), self._settings)
        except MemfsError as error:
            error.message = f"{error.message} ({f'at {files.commit[:10]}' if files.commit else 'as staged'})"
            raise
        codec = Codec(schemas, kinds, self._settings.security.allow_invisible)
        items = RevisionItems(files, codec, self._documents, progress)
        store = Reader(items, ItemCatalog(self._catalog, codec))
        helpers = Helpers(relevance=lambda: self._relevance)
        recall = Recaller(store, settings.preset, lambda: now, kinds, helpers=helpers)
        return Past(
            commit=files.commit,
            tree=files.tree,
            time=time,
            now=now,
            items=items,
            store=store,
            recall=recall,
            settings=settings,
            tell=self._notes,
        )

    # -- what is shared by all revisions ----------------------------------------------------------------------------
    @cached_property
    def _documents(self) -> DocumentCache:
        rules = f"{__version__} {analyzer.identity()} {self._settings.security.allow_invisible}"
        return DocumentCache(self._catalog, rules)

    @cached_property
    def _catalog(self) -> Catalog:
        return Catalog(shared_folder(self._repository.common_dir), self._settings.index.texts)

    @cached_property
    def _relevance(self) -> Relevance:
        return relevance_of(self._settings.review)

    def _notes(self) -> tuple[str, ...]:
        return (*((_MOUNTS,) if self._settings.mounts else ()), *((_WORDS,) if self._by_meaning() else ()))

    def close(self) -> None:
        """Release what was opened. May be repeated."""
        with self._turn:
            opened, self._open = self._open, OrderedDict()
        for past in opened.values():
            past.recall.close()  # waits for threads that may need the turn
        with self._turn:
            if "_catalog" in self.__dict__:
                self._catalog.close()


def past_tally(past: Past) -> MemoryTally:
    """Count and measure the items of a revision; nothing is said of its history and its index."""
    return tally_of(((one.row.path, one.size) for one in past.items.index.documents.values()), past.kinds)

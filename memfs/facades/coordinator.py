"""MemoryCoordinator: store and retrieve memories of one workspace, from threads or an event loop.

``*_async`` calls do their work on a thread, and never hold up the loop.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from memfs.admin.usage_by_area import numbers
from memfs.errors import IdInvalid, ItemNotFound
from memfs.facades.open_workspaces import Facade
from memfs.facades.pipelines import (
    SOURCE,
    AgentReview,
    Memory,
    MemoryStats,
    RetrievalPipeline,
    StoragePipeline,
    memory_of,
)
from memfs.fs.executor import Pools
from memfs.model.review import StoreResult
from memfs.workspace import Workspace

if TYPE_CHECKING:
    from concurrent.futures import Future

    from memfs.model.query import QueryFields


class MemoryCoordinator(Facade):
    """Stores and retrieves memories. May be used from several threads; ``*_async`` from an event loop."""

    teaches = True

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        db_path: str | os.PathLike[str] | None = None,
        workspace: Workspace | None = None,
        agent_review: AgentReview | None = None,
        storage: type[StoragePipeline] = StoragePipeline,
        retrieval: type[RetrievalPipeline] = RetrievalPipeline,
    ) -> None:
        """As ``Facade``.

        Args:
            agent_review: who judges drafts and answers, instead of the reviewers that the settings name.
            storage, retrieval: the pipelines, where a subclass reads or ranks memories in its own way.
        """
        super().__init__(path, db_path=db_path, workspace=workspace)
        self._agent_review = agent_review
        self._pipelines = storage, retrieval
        self._storage: StoragePipeline | None = None
        self._retrieval: RetrievalPipeline | None = None
        self._later = Pools(threads=1)

    @property
    def storage(self) -> StoragePipeline:
        """What stores, the same object each time; another may be set, and works in this workspace then."""
        workspace = self.workspace
        if self._storage is None:
            self._storage = self._pipelines[0](workspace=workspace, agent_review=self._agent_review)
        return self._storage.working_in(workspace)

    @storage.setter
    def storage(self, pipeline: StoragePipeline) -> None:
        self._storage = pipeline

    @property
    def retrieval(self) -> RetrievalPipeline:
        """What retrieves, as ``storage``."""
        workspace = self.workspace
        if self._retrieval is None:
            self._retrieval = self._pipelines[1](workspace=workspace, agent_review=self._agent_review)
        return self._retrieval.working_in(workspace)

    @retrieval.setter
    def retrieval(self, pipeline: RetrievalPipeline) -> None:
        self._retrieval = pipeline

    @property
    def agent_review(self) -> AgentReview | None:
        """Who judges drafts and answers, None for the reviewers that the settings name; setting it counts for both."""
        return self._agent_review

    @agent_review.setter
    def agent_review(self, review: AgentReview | None) -> None:
        self._agent_review = self.storage.agent_review = self.retrieval.agent_review = review

    def store(
        self,
        content: str,
        memory_type: str = "semantic",
        metadata: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> StoreResult:
        """Store a text if it is worth it; see ``StoragePipeline.store``."""
        return self.storage.store(content, memory_type, metadata, context)

    async def store_async(self, content: str, *facts: Any, **named: Any) -> StoreResult:
        """``store`` on a thread, so that an event loop goes on meanwhile."""
        from asyncio import to_thread  # costs start-up time, and callers without a loop do not need it

        return await to_thread(self.store, content, *facts, **named)

    def store_in_background(self, content: str, *facts: Any, **named: Any) -> Future[StoreResult]:
        """``store`` later, in the order of the calls.

        ``close``, and the end of the program, wait until all is stored. What could not be is also reported by
        ``Store.problems``.
        """
        note = self.workspace.store.note_failure

        def report(done: Future[StoreResult]) -> None:
            if not done.cancelled() and isinstance(error := done.exception(), Exception):
                note(error)

        doing = self._later.submit("later", partial(self.store, content, *facts, **named))
        doing.add_done_callback(report)
        return doing

    def retrieve(
        self, query: str = "", memory_types: Iterable[str] | None = None, **more: Unpack[QueryFields]
    ) -> list[Memory]:
        """The memories that answer a question best; see ``RetrievalPipeline.retrieve``."""
        return self.retrieval.retrieve(query, memory_types, **more)

    async def retrieve_async(
        self, query: str = "", memory_types: Iterable[str] | None = None, **more: Unpack[QueryFields]
    ) -> list[Memory]:
        """``retrieve`` on a thread."""
        from asyncio import to_thread

        return await to_thread(self.retrieve, query, memory_types, **more)

    def batch_retrieve(
        self, queries: Iterable[str], memory_types: Iterable[str] | None = None, **more: Unpack[QueryFields]
    ) -> dict[str, list[Memory]]:
        """``retrieve`` for several questions over one state of the index; the answers by question."""
        return self.retrieval.batch_retrieve(queries, memory_types, **more)

    def stats(self) -> MemoryStats:
        """How many memories there are, and how many of each type."""
        workspace = self.workspace
        types = numbers(workspace.store, workspace.parts).types
        return MemoryStats(total_count=sum(types.values()), by_type=types)

    def delete_memory(self, memory_id: str) -> bool:
        """Remove a memory; history keeps it. False where there is none of that id.

        Raises:
            Conflict, StorageIO: nothing was removed.
        """
        try:
            self.workspace.store.delete(memory_id, source=SOURCE)
        except (ItemNotFound, IdInvalid):
            return False
        return True

    def clear_working_memory(self, session_id: str) -> int:
        """Remove the working memory of a session without keeping any of it; returns how many there were.

        What is worth keeping is kept by ``end_session``.
        """
        return self.workspace.consolidation.clear(session_id)

    def end_session(self, session_id: str) -> list[Memory]:
        """Keep what matters of a session's working memory as semantic memory, and clear the rest of it.

        Returns:
            What was kept; see ``Workspace.consolidation``. A second call finds nothing.

        Raises:
            QueryInvalid: no session is named.
            Conflict, StorageIO: nothing was changed.
        """
        return [memory_of(one.item) for one in self.workspace.consolidation.run(session_id).promoted]

    def close(self) -> None:
        """Store what waits, then end as every facade does."""
        self._later.close(give_up=False)
        super().close()

"""MemoryCoordinator, and its pipelines from texts to stored memories, and from a question to memories.

Retrieval never returns a convention that is not accepted. ``AgentReview`` judges memories, for either pipeline. A
``Memory`` is a copy: changing it changes nothing that is stored. The functions
to call at the events of an agent's session are here, too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

from memfs.admin.quota import numbers
from memfs.dataclass import dataclass, field
from memfs.errors import IdInvalid, ItemNotFound, SchemaInvalid
from memfs.facades.open_workspaces import Facade, PathName, Where, aside
from memfs.fs.executor import Pools
from memfs.learning.learner import as_program
from memfs.model import Hit, MemoryItem, MemoryType, Query, Recall
from memfs.model.item import Trust, count_tokens, gist
from memfs.model.learning import ReviewResult, StoreResult
from memfs.model.time import EARLIEST, Moment, format_time
from memfs.recall import ranking, reviewers
from memfs.recall.conflict_notes import unresolved_note
from memfs.recall.cues import TrivialFilter
from memfs.recall.fence import withheld
from memfs.recall.review import Relevance, Review, relevances
from memfs.sessions.respond import MOST_REMINDERS, Reminder, pending
from memfs.sessions.spool import (
    PROMPT,
    SESSION_END,
    STOP,
    TASK_DONE,
    SessionEvent,
    SessionLocation,
    Spool,
    bounded,
    find_place,
)
from memfs.sessions.store import Drain, DrainResult
from memfs.usage import NEVER, Use
from memfs.workspace import Workspace

if TYPE_CHECKING:
    from concurrent.futures import Future

    from memfs.model.query import QueryFields
    from memfs.recall.recaller import Recaller


@dataclass(frozen=True, slots=True)
class Memory:
    """One remembered thing, as it was when it was asked for.

    Attributes:
        id: the item's id.
        type: its type: a ``MemoryType``, or plain text where the workspace added the type.
        content: its text; the title where it has no other.
        timestamp: when it happened, in UTC; ``memfs.model.time.Moment``, which compares with ``datetime.now()``, too.
        token_count: about how many tokens the content is (``memfs.model.item``).
        metadata: free facts.
        context: the circumstances it belongs to.
        relevance_score: how well it answers the question it was found with, 0 to 1; 1 where nothing was asked.
        undecided: what a merge left open, with the other value; "" where nothing is.
    """

    id: str
    type: MemoryType | str
    content: str
    timestamp: datetime
    token_count: int
    metadata: Mapping[str, Any] = field(default_factory=dict)
    context: Mapping[str, Any] = field(default_factory=dict)
    relevance_score: float | None = None
    undecided: str = ""

    @property
    def relevance(self) -> float:
        """``relevance_score`` under its short name; 0 where it was not found by a question."""
        return self.relevance_score or 0.0


@dataclass(frozen=True, slots=True)
class MemoryStats:
    """How many memories there are, and how many of each type."""

    total_count: int
    by_type: Mapping[str, int] = field(default_factory=dict)


def memory_of(item: MemoryItem, relevance: float | None = None, use: Use | None = None) -> Memory:
    """An item as a memory.

    Args:
        relevance: how well it answers, 0 to 1.
        use: how it was used, reported in ``metadata`` beside the item's own facts.
    """
    content = gist(item)
    known = item.memory_type in MemoryType.__members__.values()
    metadata = dict(item.metadata)
    if use is not None:
        last = None if use.last is None else format_time(use.last)
        metadata |= {"access_count": use.count, "last_accessed": last, "relevance_score": round(use.relevance, 4)}
    return Memory(
        id=item.id,
        type=MemoryType(item.memory_type) if known else item.memory_type,
        content=content,
        timestamp=Moment.of(item.timestamp or item.created or EARLIEST),
        token_count=count_tokens(content),
        metadata=metadata,
        context=dict(item.context),
        relevance_score=relevance,
        undecided=unresolved_note(item),
    )


def memories_of(hits: Sequence[Hit], asked: bool = True, uses: Mapping[str, Use] | None = None) -> list[Memory]:
    """The hits of an answer as memories, those that had no room by their passages; with ``uses``, by id, each also
    says how it was used.
    """
    items = [hit.item.replace(content=hit.text) if hit.shortened else hit.item for hit in hits]
    return [
        memory_of(item, relevance, None if uses is None else uses.get(item.id, NEVER))
        for item, relevance in zip(items, relevances(hits, asked), strict=True)
    ]


Judged = Memory | MemoryItem | str


class AgentReview:
    """What several reviewers say of a memory, alone and together.

    A subclass may name other judges in ``STORAGE_AGENTS`` and ``RETRIEVAL_AGENTS``, registered ones
    (``memfs.recall.reviewers.register_reviewer``) or its own, whom it scores in ``_score_storage`` and
    ``_score_relevance``.
    """

    STORAGE_AGENTS: ClassVar[Sequence[str]] = list(reviewers.STORAGE_REVIEWERS)
    RETRIEVAL_AGENTS: ClassVar[Sequence[str]] = list(reviewers.RELEVANCE_REVIEWERS)

    def __init__(self, seconds: float = 5.0, relevance_seconds: float = 2.0) -> None:
        """``seconds``, ``relevance_seconds``: how long the judges may take over a draft, and over an answer."""
        self._seconds, self._relevance_seconds = seconds, relevance_seconds
        self._reviews: dict[tuple[str, ...], Review] = {}

    def review_storage(self, memory: Judged) -> ReviewResult:
        """What the storage judges say of a draft: each one's score and reason, 0 to 10, and their mean."""
        return self._review("storage", self.STORAGE_AGENTS, self._seconds).storage(item_of(memory))

    def score_relevance(self, memory: Judged, query: str) -> float:
        """How much a memory has to do with a question, 0 to 1: the mean of the retrieval judges."""
        review = self._review("relevance", self.RETRIEVAL_AGENTS, self._relevance_seconds)
        return review.relevance_result([item_of(memory)], query).scores[0]

    def _review(self, question: str, names: Sequence[str], seconds: float) -> Review:
        """The same one for the same judges, so that it knows which of them are still busy."""
        judges = [_Judge(self, name) for name in names]
        return self._reviews.setdefault((question, *names), Review(judges, seconds))

    def _score_storage(self, memory: MemoryItem, agent_type: str) -> tuple[float, str]:
        (reviewer,) = reviewers.reviewers_named([agent_type])
        if not isinstance(reviewer, reviewers.Reviewer):
            return 0.0, "it judges no drafts"
        score = reviewer.score_storage(memory)
        return score.value, score.reason

    def _score_relevance(self, memory: MemoryItem, query: str, agent_type: str) -> float:
        (reviewer,) = reviewers.reviewers_named([agent_type])
        return (
            reviewer.score_relevance(memory, query).value if isinstance(reviewer, reviewers.RelevanceReviewer) else 0.0
        )


class _Whole:
    """A review as one judge of answers."""

    name = "agent_review"

    def __init__(self, review: AgentReview) -> None:
        self._review = review

    def score_relevance(self, item: MemoryItem, query: str) -> reviewers.Score:
        return reviewers.Score(self._review.score_relevance(item, query))


class _Judge:
    """One of the judges an ``AgentReview`` names, as a reviewer."""

    def __init__(self, review: AgentReview, name: str) -> None:
        self.name, self._review = name, review

    def score_storage(self, item: MemoryItem) -> reviewers.Score:
        return reviewers.Score(*self._review._score_storage(item, self.name))

    def score_relevance(self, item: MemoryItem, query: str) -> reviewers.Score:
        return reviewers.Score(self._review._score_relevance(item, query, self.name))


def item_of(memory: Judged) -> MemoryItem:
    """A memory, or a text alone, as an item."""
    if isinstance(memory, MemoryItem):
        return memory
    if isinstance(memory, str):
        return MemoryItem(memory)
    return MemoryItem(
        memory.content, memory.type, timestamp=memory.timestamp, metadata=memory.metadata, context=memory.context
    )


class ReviewedFacade(Facade):
    """A facade for which somebody's own judges may speak.

    Attributes:
        agent_review: who judges drafts and orders answers, None for the reviewers that the settings name.
    """

    def __init__(
        self, path: PathName = None, *, agent_review: AgentReview | None = None, **where: Unpack[Where]
    ) -> None:
        """As ``Facade``, and ``agent_review``: see above."""
        super().__init__(path, **where)
        self.agent_review = agent_review


class RetrievalPipeline(ReviewedFacade):
    """Finds memories of one workspace; an ``agent_review`` orders answers by its own ``score_relevance``."""

    @property
    def _recall(self) -> Recaller:
        recall, review = self.workspace.recaller, self.agent_review
        names = ("score_relevance", "_score_relevance", "RETRIEVAL_AGENTS")
        usual = isinstance(review, AgentReview) and all(
            getattr(type(review), name) is getattr(AgentReview, name) for name in names
        )
        if review is None or usual:  # it would judge answers as the workspace does anyway
            return recall
        seconds = self.workspace.settings.review.relevance_seconds
        return recall.reviewed_by(Relevance([_Whole(review)], seconds, alone=True))

    def retrieve(
        self, query: str = "", memory_types: Iterable[str] | None = None, **more: Unpack[QueryFields]
    ) -> list[Memory]:
        """The memories that answer a question best, the best first; without a question the newest first.

        Args:
            query: natural words.
            memory_types: only these types; None means all.
            more: fields of ``Query``: ``limit`` (10), ``max_tokens``, ``since``, ``deduplicate`` with
                ``similarity_threshold``, ``context``, ``sessions``, ``strategy``, ``seconds`` and the others.

        Raises:
            QueryInvalid: an argument cannot be understood; ``field`` names it.
        """
        return _memories(self._recall.search(_query(query, memory_types, more), leave_out=withheld))

    def batch_retrieve(
        self, queries: Iterable[str], memory_types: Iterable[str] | None = None, **more: Unpack[QueryFields]
    ) -> dict[str, list[Memory]]:
        """``retrieve`` for several questions over one state of the index; the answers by question."""
        asked = [_query(text, memory_types, more) for text in dict.fromkeys(queries)]
        found = self._recall.search_many(asked, leave_out=withheld)
        return {text: _memories(answer) for text, answer in found.items()}


def _query(text: str, memory_types: Iterable[str] | None, more: QueryFields) -> Query:
    return Query(text=text, **({} if memory_types is None else {"types": memory_types}), **more)


class TimeWeightedRetrieval(Facade):
    """Finds memories by relevance mixed with recency."""

    def retrieve_time_weighted(self, query: str, recency_weight: float = 0.3, limit: int = 10) -> list[Memory]:
        """The best by ``relevance x (1 - weight) + recency x weight``, the best first.

        Relevance, returned as ``relevance_score``, is the score over that of the best match; recency is
        ``1 / (1 + 0.1 x days)``.

        Raises:
            QueryInvalid: the weight is not from 0 to 1, or another argument cannot be understood.
        """
        mixing = ranking.TimeWeightedSearch(self.workspace.recaller.search, self.workspace.parts.clock)
        found = mixing.retrieve_time_weighted(query, recency_weight, limit)
        return [memory_of(hit.item, hit.reasons["relevance"]) for hit in found if not withheld(hit.item)]


def _memories(answer: Recall) -> list[Memory]:
    return memories_of(answer.hits, bool(answer.query.text))


SOURCE = "coordinator"


class StoragePipeline(ReviewedFacade):
    """Filters, reviews and stores texts in one workspace; an ``agent_review`` judges instead of the reviewers."""

    teaches = True
    trivial_filter = TrivialFilter()

    @property
    def consensus_threshold(self) -> float:
        """The mean score from which a text is stored: the setting ``review.threshold``."""
        return self.workspace.settings.review.threshold

    def store(
        self,
        content: str,
        memory_type: str = "semantic",
        metadata: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> StoreResult:
        """Store a text if it is worth it.

        Args:
            content: what to remember.
            memory_type: name of its type, also as ``MemoryType``.
            metadata: free facts; ``session_id`` names the session it belongs to.
            context: the circumstances, matched at recall.

        Returns:
            What became of it, with score and reasons; of a trivial text the reason holds "trivial".

        Raises:
            SettingInvalid: there is no such type.
            SchemaInvalid, SecretDetected, StorageIO: as ``Store.put``; nothing was stored.
        """
        workspace = self.workspace
        workspace.kinds.get(str(memory_type))
        if trivial := self.trivial_filter.reason(content):  # before all else: an empty text makes no item
            return StoreResult(stored=False, memory_id=None, consensus_score=0.0, reason=trivial)
        extracted = self._extract_memory(content, str(memory_type), metadata, context)
        item = item_of(extracted).replace(trust=Trust.AGENT.value)
        intake = workspace.intake
        if self.agent_review is not None:
            intake = intake.reviewed_by(self.agent_review.review_storage)
        with as_program():
            return intake.store(item, source=SOURCE)

    def _extract_memory(
        self, content: str, memory_type: str, metadata: Mapping[str, Any] | None, context: Mapping[str, Any] | None
    ) -> MemoryItem | Memory:
        """The draft that a text makes; a subclass may read more out of it, by type.

        Title, keywords, names and dates are filled in afterwards, where they are missing.
        """
        return MemoryItem(content, memory_type, metadata=metadata or {}, context=context or {})


class MemoryCoordinator(Facade):
    """Stores and retrieves memories. May be used from several threads; ``*_async`` from an event loop."""

    teaches = True

    def __init__(
        self,
        path: PathName = None,
        *,
        agent_review: AgentReview | None = None,
        storage: type[StoragePipeline] = StoragePipeline,
        retrieval: type[RetrievalPipeline] = RetrievalPipeline,
        **where: Unpack[Where],
    ) -> None:
        """As ``Facade``.

        Args:
            agent_review: who judges drafts and answers, instead of the reviewers that the settings name.
            storage, retrieval: the pipelines, where a subclass reads or ranks memories in its own way.
        """
        super().__init__(path, **where)
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
        """``store`` on a thread, so that an event loop runs on meanwhile."""
        return await aside(self.store, content, *facts, **named)

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
        return await aside(self.retrieve, query, memory_types, **more)

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


CLIENT = "hooks"
HEADING = "Pending tasks:"
_TEXTS = ("last_assistant_message", "summary")


def on_user_prompt_submit(
    prompt: str, context: Mapping[str, Any] | None = None, *, path: PathName = None
) -> DrainResult:
    """Keep what a person asks: working memory of the session; what is to be done later; what corrects the agent.

    Args:
        prompt: the message.
        context: ``session_id``, ``agent`` and ``cwd``, as far as they are known.
        path: the workspace, as for ``MemoryCoordinator``; None means the project's private memory.

    Returns:
        The ids of what was stored, and why something was not: ``stored``, ``refused``.

    Raises:
        SchemaInvalid: an argument is of the wrong sort.
        StorageIO, LockTimeout: nothing could be kept.
    """
    return _drained(path, [_event(PROMPT, context, prompt=_text("prompt", prompt))])


def on_todo_write_complete(
    todo_item: Mapping[str, Any], context: Mapping[str, Any] | None = None, *, path: PathName = None
) -> DrainResult:
    """Keep how a todo was done once its ``status`` is ``completed``, and close the intention that it carries out.

    Args:
        todo_item: ``content`` and ``status``; ``task_type``, ``duration`` in minutes and ``steps``, a list of texts,
            where they are known.
        context, path: as for ``on_user_prompt_submit``.

    Returns, Raises:
        As ``on_user_prompt_submit``.
    """
    todo = _mapping("todo_item", todo_item)
    if todo.get("status") != "completed":
        return DrainResult()
    named = next((todo[key] for key in ("content", "subject", "task", "title", "description") if todo.get(key)), None)
    fields = {
        "task_subject": _text("todo_item.content", named),
        "task_id": str(todo.get("id") or ""),
        "task_type": todo.get("task_type"),
        "duration_minutes": todo.get("duration", todo.get("duration_minutes")),
        "steps": todo.get("steps"),
    }
    return _drained(path, [_event(TASK_DONE, context, **fields)])


def on_session_stop(session_data: Mapping[str, Any], *, path: PathName = None) -> DrainResult:
    """Keep what a session decided (episodic) and found out (semantic), and consolidate its working memory.

    Args:
        session_data: ``session_id``; what the agent said: ``last_assistant_message``, ``summary``, or ``messages``, a
            list of ``{"role", "content"}``; ``events``, a list of ``{"description", "type"}``, and ``concepts``, of
            ``{"description", "category"}``, where somebody has found them already.
        path: as for ``on_user_prompt_submit``.

    Returns, Raises:
        As ``on_user_prompt_submit``.
    """
    data = _mapping("session_data", session_data)
    explicit = {key: data[key] for key in ("events", "concepts") if isinstance(data.get(key), list | tuple)}
    events = [_event(STOP, data, last_assistant_message=text) for text in _agent_texts(data)]
    events += [_event(STOP, data, **explicit)] if explicit else []
    return _drained(path, [*events, _event(SESSION_END, data, reason="other")])


def on_session_start(
    *, path: PathName = None, limit: int = MOST_REMINDERS, write: Callable[[str], object] | None = print
) -> tuple[Reminder, ...]:
    """Remind of what is still to be done: ``[PRIORITY] text``, the most urgent first, medium where none is stated.

    Args:
        path: as for ``on_user_prompt_submit``.
        limit: the most reminders.
        write: is given each line, as a program takes what its hook prints; None: nothing is written.

    Returns:
        The reminders.
    """
    found = pending(MemoryCoordinator(find_place().read if path is None else path).workspace, limit)
    if found and write is not None:
        write(HEADING)
        for one in found:
            write(f"  {one}")
    return found


def consolidate_session_memory(session_id: str, *, path: PathName = None) -> list[Memory]:
    """Keep what matters of a session's working memory as semantic memory, and clear the rest of it.

    Returns:
        What was kept; a second call finds nothing.

    Raises:
        QueryInvalid: no session is named.
        Conflict, StorageIO: nothing was changed.
    """
    workspace, place = _workspace(path)
    if session_id:
        with as_program():
            Drain(workspace, place.folder if place else None).run(session_id)
    return MemoryCoordinator(workspace=workspace).end_session(session_id)


# -- inside -------------------------------------------------------------------------------------------------------
def _drained(path: PathName, events: list[SessionEvent]) -> DrainResult:
    """Keep events, and make memories of them at once."""
    workspace, place = _workspace(path)
    spool = Spool(workspace.repository.state)
    for event in events:
        spool.append(event)
    with as_program():
        return Drain(workspace, place.folder if place else None).run(bounded(events[-1]).session)


def _workspace(path: PathName) -> tuple[Workspace, SessionLocation | None]:
    """The workspace at a path, else the project's private memory, with its place."""
    place = find_place() if path is None else None
    return MemoryCoordinator(path if place is None else place.root).workspace, place


def _event(name: str, context: Mapping[str, Any] | None, **fields: Any) -> SessionEvent:
    known = _mapping("context", context or {})
    session, cwd, agent = (known.get(key) for key in ("session_id", "cwd", "agent"))
    given = {key: value for key, value in fields.items() if value is not None and value != ""}
    return SessionEvent(
        name,
        session=session if isinstance(session, str) else "",
        cwd=cwd if isinstance(cwd, str) else os.getcwd(),
        client=CLIENT,
        fields={**given, **({"agent_type": agent} if isinstance(agent, str) else {})},
    )


def _agent_texts(data: Mapping[str, Any]) -> list[str]:
    """What the agent said, each text once."""
    found: list[Any] = [data.get(key) for key in _TEXTS]
    messages = data.get("messages")
    for message in messages if isinstance(messages, list | tuple) else ():
        if isinstance(message, Mapping) and message.get("role") == "assistant":
            content = message.get("content")
            parts = content if isinstance(content, list) else [content]
            found += [part.get("text") if isinstance(part, Mapping) else part for part in parts]
    return list(dict.fromkeys(text for text in found if isinstance(text, str) and text.strip()))


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise SchemaInvalid(f"expected text, got {ascii(value)[:60]}", field=name)
    return value


def _mapping(name: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise SchemaInvalid(f"expected a mapping, got {ascii(value)[:60]}", field=name)
    return value

"""ContextMemory: keep the state of a long-running multi-agent system.

It covers iterations, outputs, feedback, shared documents, checkpoints and archives.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from memfs.dataclass import replace
from memfs.facades.open_workspaces import Facade
from memfs.model.state_documents import (
    Acknowledgement,
    AgentOutput,
    FeedbackData,
    MetaReviewStorage,
    RecoveryState,
    RetrievedState,
    StateUpdate,
)

if TYPE_CHECKING:
    from memfs.model.state_documents import AgentFeedback, Analysis, TrendReport
    from memfs.model.state_facts import Iteration
    from memfs.state.aggregates import HypothesisHistory
    from memfs.state.archives import RetentionResult
    from memfs.state.checkpoint_store import Checkpoint
    from memfs.state.parts import States
    from memfs.state.retrieval import SimilarState, StateHit
    from memfs.state.transfer import ExportResult, Sink

Moment = datetime | str
Mapped = Mapping[str, Any]


class ContextMemory(Facade):
    """Keeps the state of a supervisor, its agents and its meta-reviewer. Threads and processes may share it.

    Calls take the seed's shapes, or mappings with the same keys; a wrong value is a ``SchemaInvalid`` that names the
    field. What a call has stored is durable when it returns, and every handle of every process finds it at once.
    """

    @property
    def _states(self) -> States:
        return self.workspace.states

    # -- iterations -----------------------------------------------------------------------------------------------
    def start_iteration(self, iteration: int | None = None) -> Iteration:
        """Open an iteration; without a number, the one after the newest. What is stored from then on belongs to it.

        Raises:
            IterationInvalid: it was closed already, or the number is not a positive one.
        """
        return self._states.iterations.start(iteration)

    def close_iteration(self, iteration: int | None = None) -> Iteration:
        """Close an iteration and sum it up: the answer's ``statistics``. Without a number, the newest open one.

        Raises:
            IterationInvalid: there is none to be closed.
        """
        return self._states.iterations.close(iteration)

    def list_iterations(self) -> list[Iteration]:
        """Every iteration, the oldest first, archived ones too."""
        return self._states.iterations.list()

    # -- writing --------------------------------------------------------------------------------------------------
    def store_state_update(self, update: StateUpdate | Mapped) -> Acknowledgement:
        """Store the supervisor's state.

        A ``checkpoint`` update creates a checkpoint, whose id the acknowledgement carries; a ``critical`` one is
        committed at once, and lands even where a quota is full.

        Raises:
            SchemaInvalid, SecretDetected, QuotaExceeded, StorageIO: nothing was stored.
        """
        return self._states.recorder.state_update(update)

    def store_agent_output(self, output: AgentOutput | Mapped) -> Acknowledgement:
        """Store what an agent made of a task; with ``state_data``, the acknowledgement carries a token to resume.

        Raises:
            SchemaInvalid, SecretDetected, QuotaExceeded, StorageIO: nothing was stored.
        """
        return self._states.recorder.agent_output(output)

    def store_meta_review(self, review: MetaReviewStorage | Mapped) -> Acknowledgement:
        """Store the meta-review of an iteration; agents are given its feedback from then on.

        Raises:
            SchemaInvalid, SecretDetected, QuotaExceeded, StorageIO: nothing was stored.
        """
        return self._states.recorder.meta_review(review)

    def store_hypothesis(
        self, hypothesis: Mapped, parents: Iterable[str] | str = (), *, base: Mapped | None = None
    ) -> Acknowledgement:
        """Store a hypothesis, or bring it up to date.

        Fields that are left out stay as they are. With ``base``, what somebody else changed since holds, too: counters
        add up, fields that only one of them changed keep that change; of a field that both changed, this call's value
        wins, the other stays in history, and the acknowledgement's ``conflicts`` names the field.

        Args:
            hypothesis: ``id`` and, as there are, ``state``, ``rating``, ``agent``, and any keys of your own.
            parents: ids of the hypotheses it came from, or the id of one.
            base: the version it was made from, as ``retrieve_state`` or ``hypothesis_history`` gave it.

        Raises:
            SchemaInvalid, SecretDetected, QuotaExceeded, StorageIO: nothing was stored.
        """
        return self._states.recorder.hypothesis(hypothesis, parents, base=base)

    def store_tournament_result(self, result: Mapped) -> Acknowledgement:
        """Store one result of the tournament: ``participants``, ``winner`` and, as there are, ``id``, ``ratings``.

        Raises:
            SchemaInvalid, SecretDetected, QuotaExceeded, StorageIO: nothing was stored.
        """
        return self._states.recorder.tournament_result(result)

    # -- reading --------------------------------------------------------------------------------------------------
    def retrieve_state(
        self,
        request_type: str = "full",
        start: Moment | None = None,
        end: Moment | None = None,
        agents: Sequence[str] | None = None,
        components: Sequence[str] | None = None,
        hypotheses: Sequence[str] | None = None,
        iterations: Sequence[int] | None = None,
        metrics: Sequence[str] | None = None,
        deadline: float | None = None,
    ) -> RetrievedState:
        """The system's state, now or at another time.

        Args:
            request_type: ``full``, all content; ``partial``, only what the arguments name; ``summary``, figures only.
            start, end: the first and the last moment; a time without an offset is local time.
            agents, components, hypotheses, metrics: only these, by name.
            iterations: only these, by number; archived ones too.
            deadline: seconds; what is not found by then is named in the answer's ``missing``. By default the setting
                ``recall.state_seconds``, half a second; ``math.inf`` for the whole, however long that takes.

        Raises:
            QueryInvalid: an argument cannot be understood; ``field`` names it.
        """
        named = {"agents": agents, "components": components, "hypotheses": hypotheses, "metrics": metrics}
        span = {"start": start, "end": end, "iterations": iterations}
        return self._states.retrieval.retrieve(request_type, deadline=deadline, **span, **named)

    def get_feedback(self, iteration: int | str = "latest", agent_type: str | None = None) -> FeedbackData:
        """What the meta-review of an iteration says to everybody and to each agent.

        Args:
            iteration: its number; ``latest`` is the newest one that has a meta-review, open or closed.
            agent_type: only this agent's.

        Raises:
            QueryInvalid: the iteration is neither a number nor ``latest``.
        """
        return self._states.feedback.get(iteration, agent_type)

    def feedback_for(self, agent: str) -> AgentFeedback:
        """The newest feedback for an agent: ``text`` is ready for its prompt, "" where there is none.

        That it was given, and in which version, is recorded once an iteration; ``analyze_agent`` measures its effect.
        """
        return self._states.feedback.for_agent(agent)

    def hypothesis_history(self, hypothesis_id: str) -> HypothesisHistory:
        """How a hypothesis came about, how it changed, and what came of it: ancestors, versions, descendants."""
        from memfs.state.aggregates import hypothesis_history

        return hypothesis_history(self._states.reading, hypothesis_id)

    def find_similar_states(self, state: StateUpdate | Mapped, limit: int = 5) -> list[SimilarState]:
        """Past states of the system that resemble one, the most similar first."""
        from memfs.state.retrieval import find_similar_states

        return find_similar_states(self._states.reading, state, limit)

    def search(
        self,
        text: str,
        limit: int = 10,
        *,
        kinds: Sequence[str] = (),
        agents: Sequence[str] = (),
        iterations: Sequence[int] = (),
        start: datetime | str | None = None,
        end: datetime | str | None = None,
    ) -> list[StateHit]:
        """Documents by their words, those of archived iterations too; see ``memfs.state.retrieval``."""
        from memfs.state.retrieval import search_states

        return search_states(
            self._states.reading, text, limit, kinds=kinds, agents=agents, iterations=iterations, start=start, end=end
        )

    def analyze_agent(self, name: str, iterations: int = 10) -> Analysis:
        """How well an agent did over the last iterations, and the weight that this suggests, with reasons."""
        return self._states.analysis.analyze(name, iterations)

    def trends(self) -> TrendReport:
        """How the patterns of the meta-reviews come and go."""
        from memfs.state.aggregates import pattern_trends

        return pattern_trends(self._states.reading)

    def get_configuration(self) -> dict[str, Mapped]:
        """``system_config`` and ``retention_policy`` as they are now.

        Raises:
            ContentError: one of the files is invalid at present.
        """
        from memfs.config import read_documents

        return read_documents(self.workspace.parts.seen, self.workspace.parts.codec)

    def cache_statistics(self) -> Mapped:
        """How many of the documents that this process read came from the cache."""
        return self._states.retrieval.cache_statistics()

    # -- checkpoints and continuation -----------------------------------------------------------------------------
    def create_checkpoint(self, update: StateUpdate | Mapped | None = None) -> str:
        """Take a checkpoint of the whole state, read it back and verify it; returns its id.

        Args:
            update: the supervisor's state at this moment, stored with it; None means that the latest one counts.

        Raises:
            SchemaInvalid: nothing was stored.
            StorageIO, LockTimeout, QuotaExceeded, CheckpointInvalid: there is no such checkpoint; the update is stored.
        """
        if update is None:
            return self._states.checkpoints.create(reason="asked").id
        given = replace(StateUpdate.from_dict(update), update_type="checkpoint")
        made = self._states.recorder.state_update(given).checkpoint_id
        return made or self._states.checkpoints.create(given, reason="asked").id  # which says why there is none

    def list_checkpoints(self) -> list[Checkpoint]:
        """Every checkpoint, the newest first."""
        return self._states.checkpoints.list()

    def verify_checkpoints(self, checkpoint_id: str | None = None) -> list[Checkpoint]:
        """Read checkpoints whole, all or one; the ``problem`` of each says why it cannot be used, "" where it can."""
        return list(self._states.checkpoints.verify(checkpoint_id))

    def recover(
        self,
        checkpoint_id: str | None = None,
        components: Sequence[str] | None = None,
        restore: bool = False,
    ) -> RecoveryState:
        """What to continue from after a crash: only ``active_tasks`` have to be done again.

        Args:
            checkpoint_id: None means the newest that verifies whole; ``data_integrity`` names those rejected.
            components: only the resume points of these.
            restore: also bring back files that are missing or differ.

        Raises:
            CheckpointInvalid: the checkpoint named, or every one there is, cannot be relied on.
        """
        return self._states.checkpoints.recover(checkpoint_id, components, restore)

    def save_continuation(
        self, agent: str, task_id: str, state: Any, expires: datetime | timedelta | None = None
    ) -> str:
        """Keep where an agent is within a task; returns the token to continue with, in any process.

        Args:
            state: anything that JSON can hold.
            expires: when the token ends, or after how long; None means what ``system_config`` says.
        """
        return self._states.continuations.save(agent, task_id, state, expires)

    def resume(self, token: str) -> Any:
        """The state kept under a token, as often as needed until newer state or the final output supersedes it.

        Raises:
            TokenInvalid: it is unknown, superseded or expired; the message says which.
        """
        return self._states.continuations.resume(token)

    # -- capacity -------------------------------------------------------------------------------------------------
    def archive(self, dry_run: bool = False) -> RetentionResult:
        """Do what the retention policy says is due: archive closed iterations, delete the archives it lets go.

        Raises:
            ContentError: the policy is invalid at present.
            LockTimeout, StorageIO, HistoryError: what was not archived is where it was.
        """
        return self._states.archiver.run(dry_run=dry_run)

    def export(
        self,
        target: str | os.PathLike[str] | Sink,
        format: str = "",  # noqa: A002  what people call it
        *,
        types: Iterable[str] = (),
        agents: Iterable[str] = (),
        iterations: Iterable[int] = (),
        since: Moment | None = None,
        until: Moment | None = None,
        replace: bool = False,
    ) -> ExportResult:
        """Write documents out for analysis elsewhere, as ``jsonl``, ``csv`` or ``parquet``.

        Args:
            target: a file's path, or an open binary file.
            format: "" means as the file's ending says, else JSON Lines.
            types, agents, iterations, since, until: only these; ``memory`` is the type of memories.
            replace: whether the file may take the place of another one.

        Raises:
            QueryInvalid: an argument cannot be understood.
            Conflict: something is at the path already, or it is no place for an export.
            ExtraMissing: Parquet needs the extra ``parquet``.
            StorageIO: the target takes no more.
        """
        from memfs.state.transfer import export_query

        query = export_query(types, agents, iterations, since, until)
        return self._states.exporter.export(target, format, query, replace=replace)

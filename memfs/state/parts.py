"""Wire the parts that keep a multi-agent system's state, each made, and most imported, when it is first used.

Archiving, pruning and checkpoints that are due run on the occasions that they react to.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack

from memfs.dataclass import dataclass, replace
from memfs.errors import MemfsError
from memfs.fs.lock import shared_property
from memfs.search.state_index import StateIndex
from memfs.startup import TYPE_CHECKING, Any
from memfs.state.archives import Archiver, Archives
from memfs.state.reader import RevisionScan, StateFiles, StateReader, StateScan

if TYPE_CHECKING:
    from memfs.fs.tree import View
    from memfs.settings import Settings
    from memfs.state.aggregates import Aggregates
    from memfs.state.checkpoints import Checkpoints
    from memfs.state.feedback import FeedbackStore
    from memfs.state.metrics import AgentAnalyst
    from memfs.state.record import Continuations, Iterations, StateRecorder
    from memfs.state.retrieval import Retrieval
    from memfs.state.threads import Threads
    from memfs.state.transfer import Exporter
    from memfs.store import Store
    from memfs.store.parts import Fire, Parts


@dataclass(frozen=True, kw_only=True, repr=False)
class States:
    """The parts that keep a multi-agent system's state in one workspace, each made when it is first used.

    Attributes:
        store, parts, settings: the workspace's.
        fire: raises an occasion (``memfs.workspace.Behaviours.fire``).
        revision: the files of a revision, whose documents are read in place of the present ones; None for these.
    """

    store: Store
    parts: Parts
    settings: Settings
    fire: Fire
    revision: View | None = None

    def at(self, revision: View) -> States:
        """The parts that read the state as a revision has it. They are not for writing."""
        return replace(self, revision=revision)

    # -- documents on disk ----------------------------------------------------------------------------------------
    @shared_property
    def files(self) -> StateFiles:
        """Reads and writes state documents."""
        return StateFiles(self.store, self.parts, self.index, self.revision)

    # -- reading --------------------------------------------------------------------------------------------------
    @shared_property
    def index(self) -> StateIndex:
        """Knows where each document lies and what it is about."""
        return StateIndex(self.parts.index.folder if self.revision is None else None)

    @shared_property
    def reading(self) -> StateReader:
        """Finds and loads documents, those of archived iterations too."""
        made = (StateScan if self.revision is None else RevisionScan)(self.files, self.index, self.archives, self.parts)
        return StateReader(self.files, self.index, self.archives, self.parts, made)

    @shared_property
    def retrieval(self) -> Retrieval:
        """Answers questions for the system's state."""
        from memfs.state.retrieval import Retrieval

        return Retrieval(self.reading, self.settings.recall.state_seconds or None)

    # -- writing --------------------------------------------------------------------------------------------------
    @shared_property
    def iterations(self) -> Iterations:
        """Starts, closes and lists iterations."""
        from memfs.state.record import Iterations

        return Iterations(self.reading, self.fire, self.parts.clock)

    @shared_property
    def recorder(self) -> StateRecorder:
        """Takes in what the agents hand over."""
        from memfs.state.record import StateRecorder

        return StateRecorder(self.iterations, self.continuations, lambda update: self.checkpoints.create(update).id)

    @shared_property
    def continuations(self) -> Continuations:
        """Keeps an agent's state under a token."""
        from memfs.state.record import Continuations

        return Continuations(self.iterations)

    # -- checkpoints ----------------------------------------------------------------------------------------------
    @shared_property
    def checkpoints(self) -> Checkpoints:
        """Creates, verifies and recovers checkpoints."""
        from memfs.state.checkpoints import Checkpoints

        return Checkpoints(self.store, self.parts, self.reading)

    # -- graphs ---------------------------------------------------------------------------------------------------
    @shared_property
    def threads(self) -> Threads:
        """Keeps the checkpoints of agent graphs."""
        from memfs.state.threads import Threads

        return Threads(self.files, self.parts.clock)

    # -- feedback and analysis ------------------------------------------------------------------------------------
    @shared_property
    def aggregates(self) -> Aggregates:
        """Sums up iterations."""
        from memfs.state.aggregates import Aggregates

        return Aggregates(self.reading)

    @shared_property
    def feedback(self) -> FeedbackStore:
        """Gives the meta-review's feedback to agents."""
        from memfs.state.feedback import FeedbackStore

        return FeedbackStore(self.reading, self.aggregates)

    @shared_property
    def analysis(self) -> AgentAnalyst:
        """Says how well an agent does."""
        from memfs.state.metrics import AgentAnalyst

        return AgentAnalyst(self.reading, self.aggregates, self.feedback)

    # -- archive --------------------------------------------------------------------------------------------------
    @shared_property
    def archives(self) -> Archives:
        """Reads what archives hold."""
        return Archives(self.parts, self.revision)

    @shared_property
    def archiver(self) -> Archiver:
        """Packs closed iterations, as the retention policy says, and unpacks them."""
        return Archiver(self.store, self.reading, self.archives)

    # -- transfer -------------------------------------------------------------------------------------------------
    @shared_property
    def exporter(self) -> Exporter:
        """Writes documents and memories to a stream, for analysis elsewhere."""
        from memfs.state.transfer import Exporter

        return Exporter(self.reading, self.store)

    # -- occasions and upkeep -------------------------------------------------------------------------------------
    def react(self, occasion: str, facts: Mapping[str, Any]) -> None:
        """Pass an occasion on to the parts that act on it."""
        self.parts.require_open()
        if occasion == "state_stored":
            self.checkpoints.stored()
        self.aggregates.react(occasion, facts)

    def keep_up(self) -> None:
        """Do what is due from time to time."""
        self.parts.require_open()
        try:
            if not self.store.by_hand:
                self.archiver.keep_up()
        except MemfsError as error:  # what is due stays due; a write or close is not to fail for it
            self.store.note_failure(error)

    def close(self) -> None:
        """Close whatever was opened. May be repeated."""
        with ExitStack() as ending:  # one that cannot be closed keeps no other open
            for name in ("index", "checkpoints"):
                closing = getattr(self.__dict__.get(name), "close", None)
                if closing is not None:
                    ending.callback(closing)

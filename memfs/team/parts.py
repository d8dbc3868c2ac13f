"""Wire what a team does with the memory of one workspace; each part is made when it is first used."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memfs.admin.store_builder import has_states
from memfs.dataclass import dataclass
from memfs.fs.lock import shared_property
from memfs.git.process import surely_merged
from memfs.recall.conflict_notes import MarkedItems
from memfs.startup import TYPE_CHECKING
from memfs.store.recovery import is_merge_due

if TYPE_CHECKING:
    from memfs.admin.history import History, RecoveryCopies
    from memfs.context.agents_md import AgentsBlock
    from memfs.settings import Settings
    from memfs.state.parts import States
    from memfs.store import Store
    from memfs.store.parts import Parts
    from memfs.team.asof import Travel
    from memfs.team.bisect import Bisect
    from memfs.team.blame import Blame
    from memfs.team.deinit import Deinit
    from memfs.team.history_merge import Merger
    from memfs.team.resolve import Resolver
    from memfs.team.review import Reviews
    from memfs.team.sync import Syncer
    from memfs.team.undo import Undo
    from memfs.team.verify import Signatures


@dataclass(frozen=True, kw_only=True, repr=False)
class Teams:
    """What a team does with the memory of one workspace; each part is made when it is first used.

    Attributes:
        store, parts, settings: the workspace's.
        history, states: give the workspace's, made when first asked for.
        by_meaning: whether the present is searched by meaning, too.
    """

    store: Store
    parts: Parts
    settings: Settings
    history: Callable[[], History]
    states: Callable[[], States]
    by_meaning: Callable[[], bool]

    @shared_property
    def merger(self) -> Merger:
        """Joins another line of history into the branch that is checked out."""
        from memfs.team.history_merge import Merger

        return Merger(self.store, self.parts, self._sum_up)

    def _sum_up(self, changed: Sequence[str]) -> None:
        """Bring the aggregates up to date where there are some, after a merge that changed what they come from."""
        from memfs.model.state_paths import AGGREGATE_NAMES, ITERATIONS, aggregate_path

        made = (self.parts.tree.entry(aggregate_path(name)) for name in AGGREGATE_NAMES)
        if any(path.startswith(f"{ITERATIONS}/") for path in changed) and any(made):
            self.states().aggregates.update()

    @shared_property
    def syncer(self) -> Syncer:
        """Exchanges a branch's memory with a remote."""
        from memfs.team.sync import Syncer

        return Syncer(self.store, self.parts, self.merger)

    def deinit(
        self, recovered: RecoveryCopies, block: AgentsBlock, *, purge: bool, losses: Sequence[tuple[str, str]] = ()
    ) -> Deinit:
        """Takes memfs out of the repository."""
        from memfs.team.deinit import Deinit

        self.store.require_open()
        return Deinit(self.store, self.parts, recovered=recovered, block=block, purge=purge, losses=losses)

    @shared_property
    def past(self) -> Travel:
        """Asks the memory as it was at a revision."""
        from memfs.team.asof import Travel

        return Travel(self.parts.repository, self.settings, self.by_meaning)

    @shared_property
    def signatures(self) -> Signatures:
        """Verifies who signed the commits of the memory."""
        from memfs.team.verify import Signatures

        return Signatures(self.parts.repository)

    @shared_property
    def blame(self) -> Blame:
        """Traces who taught each field of an item."""
        from memfs.team.blame import Blame

        return Blame(self.parts, self.history())

    @shared_property
    def undo(self) -> Undo:
        """Takes back what a session, an agent or a commit wrote."""
        from memfs.team.undo import Undo

        return Undo(self.store, self.parts, self.history())

    @shared_property
    def bisect(self) -> Bisect:
        """Finds the commit that broke an answer."""
        from memfs.team.bisect import Bisect

        return Bisect(self.past, self.parts.repository)

    @shared_property
    def resolver(self) -> Resolver:
        """Lists what merges could not decide, and brings it to an end."""
        from memfs.team.resolve import Resolver

        return Resolver(self.store, self.parts, self.states)

    def waiting(self) -> int:
        """How many decisions wait; what lists them is loaded only where one may.

        Raises:
            GitFailed, HistoryUnavailable: git's files cannot be read.
        """
        repository = self.parts.repository
        surely_none = (
            not is_merge_due(repository)
            and not has_states(self.parts.seen)
            and surely_merged(repository.git_dir / "index")
            and not self._may_have_conflicts()
        )
        return 0 if surely_none else self.resolver.waiting().count

    def _may_have_conflicts(self) -> bool:
        """Whether an item may carry a conflict of a merge. Most that are marked only have the word in their text."""
        self.store.follow()
        paths = MarkedItems(self.store, self.parts).paths()
        loaded = [item for _, item, _ in self.store.load_all(self.store.index_sync.stamps_of(paths))]
        return len(loaded) < len(paths) or any(item.conflicts for item in loaded)

    @shared_property
    def review(self) -> Reviews:
        """Reviews what a change does to memory before it is merged."""
        from memfs.team.review import Reviews

        return Reviews(self.parts.repository, self.settings, self.past)

    def close(self) -> None:
        """Close whatever was opened. May be repeated."""
        for name, part in list(self.__dict__.items()):
            closing = getattr(part, "close", None)
            if closing is not None and name in type(self).__dict__:
                closing()

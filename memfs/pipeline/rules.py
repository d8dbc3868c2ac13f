"""Rules: advice learned from outcomes, kept as items, and found when a situation calls for it (seed 004, P4).

Owns adding and finding them, and when it is time to analyse failures: after every ``EVERY`` recorded episodes,
whichever processes recorded them. How a rule looks as an item is ``ruleitem``'s business, what failures teach
``analysis``'.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from memfs.errors import Conflict, IdExists, LockTimeout, QueryInvalid
from memfs.files.lock import FileLock
from memfs.files.tally import Tally
from memfs.model import MemoryItem
from memfs.model.episode import StateSnapshot
from memfs.model.memory_config import MemoryConfig
from memfs.model.rule import Rule
from memfs.model.suggestion import Keep
from memfs.model.triggerrow import RULE
from memfs.pipeline.ruleitem import SOURCE, item_of, rule_of, stable_id, updated
from memfs.pipeline.triggers import THRESHOLD, Triggers
from memfs.store import Store
from memfs.store.parts import Parts

if TYPE_CHECKING:
    from memfs.pipeline.analysis import Analysis
    from memfs.pipeline.inbox import Inbox

EVERY = 100
"""After so many episodes failures are analysed."""
_COUNT = "episodes.count"
_LOCK = "rules.lock"
_WAIT_SECONDS = 60.0
_TRIES = 5


class Rules:
    """The rules of one workspace. May be used from several threads and processes."""

    def __init__(
        self,
        store: Store,
        parts: Parts,
        triggers: Triggers,
        config: Callable[[], MemoryConfig],
        inbox: Callable[[], Inbox],
    ) -> None:
        """Begin with what the files hold.

        Args:
            triggers: knows which rules apply, and what is known of each episode.
            config: says how many failures alike make a rule (``pattern_threshold``).
            inbox: gives where rules are suggested that are not written.
        """
        self._inbox = inbox
        self._store = store
        self._triggers = triggers
        self._parts = parts
        self._config = config
        self._tally = Tally(parts.repository.state / _COUNT)
        self._lock = FileLock(parts.repository.state / _LOCK, home=parts.repository.common_dir)

    # -- keeping and finding ------------------------------------------------------------------------------------------
    def add_rule(self, rule: Rule, *, source: str = SOURCE) -> Rule:
        """Store a rule, once: one with the same id, or the same advice for the same situation, is brought up to date.

        A rule that is better vouched for than the given one stays as it is.

        Args:
            rule: without an id it gets one that follows from what it says.
            source: which door it came through, for the commit's trailers.

        Returns:
            The rule as it is stored, with its id.

        Raises:
            IdInvalid, IdExists: its id cannot be had; something else has it.
            Conflict: the rule's file kept changing.
            ContentError, StorageIO: as ``Store.put``.
        """
        rule_id = rule.id or stable_id(rule)
        for _ in range(_TRIES):
            known = self._store.get(rule_id)
            if known is not None and known.type != RULE:
                raise IdExists(f"{rule_id} is no rule", path=known.path, hint="choose another id")
            wanted = item_of(rule) if known is None else updated(known, rule)
            if known is not None and wanted == known:
                return _rule(known)
            try:
                expected = "" if known is None else known.sha256
                verb = "Add" if known is None else "Change"
                return _rule(self._store.put(wanted, expected, message=f"{verb} the rule {rule_id}", source=source))
            except (Conflict, IdExists):  # somebody else's came between: the rule is brought up to date with it
                continue
        raise Conflict("the rule keeps changing", path=self._store.locate(rule_id), hint="try again")

    def find_matching_rules(self, context: str | StateSnapshot, min_confidence: float = THRESHOLD) -> list[Rule]:
        """The rules that apply to a situation and hold, the surest first, as their files have them now.

        Args:
            context: the situation, or what is told of it in words.
            min_confidence: how sure they must be, 0 to 1.

        Raises:
            SchemaInvalid: ``context`` is neither.
            QueryInvalid: ``min_confidence`` is out of range.
        """
        if not isinstance(min_confidence, (int, float)) or not 0 <= min_confidence <= 1:
            raise QueryInvalid("expected a number from 0 to 1", field="min_confidence", hint="0.7 is usual")
        state = context if isinstance(context, StateSnapshot) else StateSnapshot.create(context=context)
        matches = self._triggers.rules(state, min_confidence)
        rules = (rule_of(item) for match in matches if (item := self._triggers.load(match)) is not None)
        return [rule for rule in rules if rule is not None and rule.holds and rule.confidence >= min_confidence]

    def read(self, rule_id: str) -> Rule | None:
        """The rule with that id, None where there is none.

        Raises:
            ContentError: its file is invalid at present.
        """
        item = self._store.get(rule_id)
        return rule_of(item) if item is not None else None

    @staticmethod
    def of(item: MemoryItem) -> Rule | None:
        """The rule that an item is, None where it is none."""
        return rule_of(item)

    # -- learning -----------------------------------------------------------------------------------------------------
    def analyze_failures(self) -> list[Rule]:
        """Learn from all episodes now; return the rules that this made (P4). Raises as ``analyze``."""
        return list(self.analyze().found)

    def analyze(self, seconds: float = _WAIT_SECONDS, keep: Keep = Keep.WRITE) -> Analysis:
        """Learn from all episodes now: make rules, bring those there are up to date, retire those that stopped holding.

        Args:
            seconds: how long to wait for another process that does so.
            keep: whether that is written; else rules are suggested, and those there are stay as they are.

        Raises:
            LockTimeout: another process was at it for too long.
            Conflict: others kept changing the rules.
            ContentError, StorageIO: as ``Store.put``.
        """
        from memfs.pipeline.analysis import Analyst  # whoever only asks for rules is spared what learning them takes

        with self._lock.hold("analysing failures", seconds):
            counted = self._tally.count()
            try:
                analyst = Analyst(self._store, self._parts, self._triggers, self._config, self._inbox())
                return analyst.run() if keep is Keep.WRITE else analyst.suggest()
            finally:
                self._tally.take_off(counted)

    def due(self) -> bool:
        """Whether ``EVERY`` episodes were recorded since failures were last analysed, by whatever process."""
        self._store.require_open()
        return self._tally.count() >= EVERY

    def count(self, *, analyze: bool) -> None:
        """Count an episode that was recorded; ``analyze``: analyse failures now, and write what they teach, if due."""
        self._tally.add()
        if analyze and self.due():
            try:
                self.analyze(seconds=0.0)
            except LockTimeout:  # another process analyses at this moment
                return


def rules_of(
    store: Store,
    parts: Parts,
    triggers: Triggers,
    config: Callable[[], MemoryConfig],
    inbox: Callable[[], Inbox],
) -> Rules:
    """The rules of a workspace."""
    return Rules(store, parts, triggers, config, inbox)


def _rule(item: MemoryItem) -> Rule:
    rule = rule_of(item)
    assert rule is not None, "a rule's item is a rule"
    return rule

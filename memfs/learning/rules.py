"""Rules: advice learned from outcomes, converted to items and back, and found when a situation calls for it.

Failures are analysed after every ``EVERY`` recorded episodes, whichever processes recorded them. What a person wrote or
vouched for is never replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from memfs.dataclass import dataclass
from memfs.errors import Conflict, IdExists, LockTimeout, QueryInvalid
from memfs.fs.append_log import SharedCounter
from memfs.fs.lock import FileLock
from memfs.learning.situations import confidence_of
from memfs.learning.triggers import THRESHOLD, Triggers
from memfs.model import Link, MemoryItem
from memfs.model.episode import RULE, StateSnapshot
from memfs.model.ids import stable_id
from memfs.model.item import VOUCHED, trust_rank
from memfs.model.memory_config import MemoryConfig
from memfs.model.rule import Rule
from memfs.model.shape import count_in, text_in, texts_in
from memfs.model.suggestion import Keep
from memfs.store import Store
from memfs.store.parts import Parts
from memfs.store.store import retry_on_conflict

if TYPE_CHECKING:
    from memfs.learning.inbox import Inbox
    from memfs.learning.rule_analysis import FailureAnalysis


SOURCE = "rules"
"""The door through which what failures teach comes, for commits' trailers."""
MADE_FROM = "made_from"
"""The key of ``metadata`` that says what a rule was made from; patterns are not learned from what has it."""
FAILURES = "failures"
RETIRED_ON = "retired"
TAUGHT = "taught"
"""The key of an episode's ``metadata`` that names the rule it taught."""
MOST_EVIDENCE = 100
LINKED = 3
_TITLE = 80
_OPTIONAL = frozenset({"files", "tool", "error", "learned_from"})
_READERS: Mapping[str, Callable[[object], Any]] = {
    "files": texts_in,
    "tool": text_in,
    "error": text_in,
    "support": count_in,
    "against": count_in,
    "helped": count_in,
    "learned_from": texts_in,
}


def item_of(rule: Rule) -> MemoryItem:
    """The item of a rule that is not stored yet."""
    return MemoryItem(
        rule.action,
        RULE,
        id=rule.id or id_of(rule),
        title=_title(rule),
        trust=rule.trust,
        status=rule.status,
        pinned=rule.pinned,
        data=_data(rule, {}),
        links=_links(rule),
    )


def rule_of(item: MemoryItem) -> Rule | None:
    """The rule that an item is, None for one of another type; what it does not say is taken from its text."""
    if item.type != RULE:
        return None
    said = {name: read(item.data.get(name)) for name, read in _READERS.items()}
    action = text_in(item.data.get("action")) or item.content or item.title
    pattern = text_in(item.data.get("pattern"))
    if not (pattern or said["files"] or said["tool"].strip()):
        pattern = item.title or item.content
    own = {name: getattr(item, name) for name in ("id", "trust", "status", "pinned")}
    return Rule(pattern, action, confidence_of(item), **said, **own)


def updated(item: MemoryItem, rule: Rule) -> MemoryItem:
    """An item with what a caller says of its rule; the item itself where a better trusted one is there."""
    known = rule_of(item)
    if known is None or known == rule or trust_rank(rule.trust) < trust_rank(item.trust):
        return item
    same_words = known.action == rule.action or item.content != known.action
    return item.replace(
        content=item.content if same_words else rule.action,
        trust=rule.trust,
        status=rule.status or item.status,
        pinned=rule.pinned or item.pinned,
        data=_data(rule, item.data),
    )


def id_of(rule: Rule) -> str:
    """The id of a rule that has none: the same for the same advice in the same situation."""
    return stable_id(rule.action, rule.pattern, rule.tool, rule.action, *rule.files, otherwise=RULE)


# -- what analysis may change ---------------------------------------------------------------------------------------
def made_by_analysis(item: MemoryItem) -> bool:
    """Whether failures taught it."""
    return item.metadata.get(MADE_FROM) == FAILURES


def is_kept(item: MemoryItem) -> bool:
    """Whether a person stands behind it: then neither its figures nor its words are changed, nor is it retired."""
    return item.pinned or item.trust in VOUCHED


def learned(rule: Rule, title: str) -> MemoryItem:
    """The item of a rule that failures taught."""
    return item_of(rule).replace(title=title[:_TITLE], metadata={MADE_FROM: FAILURES})


def with_figures(item: MemoryItem, figures: Mapping[str, float], evidence: tuple[str, ...]) -> MemoryItem:
    """An item with other figures and further evidence, of which it names the newest."""
    known = texts_in(item.data.get("learned_from"))
    newest = list(dict.fromkeys((*known, *evidence)))[-MOST_EVIDENCE:]
    return item.replace(data={**item.data, **figures, "learned_from": newest})


def _data(rule: Rule, known: Mapping[str, Any]) -> dict[str, Any]:
    """The body of a rule's item: what is known, with what the rule says of it."""
    ids = tuple(dict.fromkeys((*known.get("learned_from", ()), *rule.learned_from)))[-MOST_EVIDENCE:]
    said = {name: getattr(rule, name) for name in ("pattern", "action", "confidence", *_READERS)}
    said["learned_from"] = ids
    written = {name: list(value) if isinstance(value, tuple) else value for name, value in said.items()}
    kept = {name: value for name, value in known.items() if name not in written}
    return {name: value for name, value in written.items() if value or name not in _OPTIONAL} | kept


def _title(rule: Rule) -> str:
    words = " ".join((rule.pattern or ", ".join(rule.files) or rule.tool).split())
    return words if len(words) <= _TITLE else words[: _TITLE - 3].rstrip() + "..."


def _links(rule: Rule) -> tuple[Link, ...]:
    return tuple(Link(to=one, relation="learned_from") for one in rule.learned_from[-LINKED:] if one)


EVERY = 100
"""After so many episodes failures are analysed."""
_COUNT = "episodes.count"
_LOCK = "rules.lock"
_WAIT_SECONDS = 60.0
_TRIES = 5


@dataclass(eq=False, repr=False)
class Rules:
    """The rules of one workspace. May be used from several threads and processes.

    Attributes:
        triggers: knows which rules apply, and what is known of each episode.
        config: says how many failures alike make a rule (``pattern_threshold``).
        inbox: gives where rules are suggested that are not written.
    """

    store: Store
    parts: Parts
    triggers: Triggers
    config: Callable[[], MemoryConfig]
    inbox: Callable[[], Inbox]

    def __post_init__(self) -> None:
        state = self.parts.repository.state
        self._tally = SharedCounter(state / _COUNT)
        self._lock = FileLock(state / _LOCK, home=self.parts.repository.common_dir)

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
        rule_id = rule.id or id_of(rule)

        def added() -> MemoryItem:
            """Where somebody else's came between, that is brought up to date."""
            known = self.store.get(rule_id)
            if known is None:
                return self.store.put(item_of(rule), "", message=f"Add the rule {rule_id}", source=source)
            if known.type != RULE:
                raise IdExists(f"{rule_id} is no rule", path=known.path, hint="choose another id")
            if (wanted := updated(known, rule)) == known:
                return known
            return self.store.put(wanted, known.sha256, message=f"Change the rule {rule_id}", source=source)

        stored = rule_of(retry_on_conflict(added, tries=_TRIES, on=(Conflict, IdExists)))
        assert stored is not None, "a rule's item is a rule"
        return stored

    def find_matching_rules(self, context: str | StateSnapshot, min_confidence: float = THRESHOLD) -> list[Rule]:
        """The rules that apply to a situation and hold, the surest first, as their files have them now.

        Args:
            context: the situation, or what is said of it in words.
            min_confidence: how sure they must be, 0 to 1.

        Raises:
            SchemaInvalid: ``context`` is neither.
            QueryInvalid: ``min_confidence`` is out of range.
        """
        if not isinstance(min_confidence, (int, float)) or not 0 <= min_confidence <= 1:
            raise QueryInvalid("expected a number from 0 to 1", field="min_confidence", hint="0.7 is usual")
        state = context if isinstance(context, StateSnapshot) else StateSnapshot.create(context=context)
        matches = self.triggers.rules(state, min_confidence)
        rules = (rule_of(item) for match in matches if (item := self.triggers.load(match)) is not None)
        return [rule for rule in rules if rule is not None and rule.holds and rule.confidence >= min_confidence]

    def read(self, rule_id: str) -> Rule | None:
        """The rule with that id, None where there is none.

        Raises:
            ContentError: its file is invalid at present.
        """
        item = self.store.get(rule_id)
        return rule_of(item) if item is not None else None

    # -- learning -----------------------------------------------------------------------------------------------------
    def analyze_failures(self) -> list[Rule]:
        """Learn from all episodes now; return the rules that this made. Raises as ``analyze``."""
        return list(self.analyze().found)

    def analyze(self, seconds: float = _WAIT_SECONDS, keep: Keep = Keep.WRITE) -> FailureAnalysis:
        """Learn from all episodes now: make rules, bring those there are up to date, retire those that stopped holding.

        Args:
            seconds: how long to wait for another process that does so.
            keep: whether that is written; else rules are suggested, and those there are stay as they are.

        Raises:
            LockTimeout: another process was at it for too long.
            Conflict: others kept changing the rules.
            ContentError, StorageIO: as ``Store.put``.
        """
        from memfs.learning.rule_analysis import FailureAnalyst

        with self._lock.hold("analysing failures", seconds):
            counted = self._tally.count()
            try:
                analyst = FailureAnalyst(self.store, self.parts, self.triggers, self.config, self.inbox())
                return analyst.run() if keep is Keep.WRITE else analyst.suggest()
            finally:
                self._tally.take_off(counted)

    def due(self) -> bool:
        """Whether ``EVERY`` episodes were recorded since failures were last analysed, by whatever process."""
        self.store.require_open()
        return self._tally.count() >= EVERY

    def count(self, *, analyze: bool) -> None:
        """Count an episode that was recorded; ``analyze``: analyse failures now, and write what they teach, if due."""
        self._tally.add()
        if analyze and self.due():
            try:
                self.analyze(seconds=0.0)
            except LockTimeout:  # another process analyses at this moment
                return

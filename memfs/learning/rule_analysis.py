"""Makes rules of what failures teach, keeps them up to date, and retires those that no longer hold.

All of it follows from the files: a second analysis of the same episodes changes nothing. Only rules that failures
taught are changed, and of these none that a person vouched for (trust ``human`` or ``reviewed``, or pinned); words that
somebody changed stay. Each failure that taught a rule says so in its ``metadata``, so that a rule which is gone is not
learned from it again.

It ends: at most the newest ``MOST_EPISODES`` episodes and ``MOST_RULES`` rules are looked at, and twice
``MOST_COMPARED`` comparisons and ``MOST_FOUND`` rules made; where others write meanwhile it starts over, at most
``_TRIES`` times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from memfs.dataclass import dataclass
from memfs.errors import ContentError, IdExists
from memfs.format.secrets import refuse_item
from memfs.intake.episode_item import EPISODIC
from memfs.learning.failures import (
    MOST_COMPARED,
    MOST_FOUND,
    Advice,
    Casebook,
    FailureCondition,
    RuleVerdict,
    advise,
    is_unremedied,
    look,
    signature,
    speaks_for,
)
from memfs.learning.inbox import Inbox
from memfs.learning.rules import (
    MOST_EVIDENCE,
    RETIRED_ON,
    SOURCE,
    TAUGHT,
    is_kept,
    learned,
    made_by_analysis,
    rule_of,
    with_figures,
)
from memfs.learning.situations import row_of
from memfs.learning.triggers import THRESHOLD, Triggers
from memfs.model import MemoryItem, Query
from memfs.model.episode import EPISODE, RULE, TriggerRow
from memfs.model.ids import stable_id
from memfs.model.item import Trust, lower_trust
from memfs.model.memory_config import MemoryConfig
from memfs.model.query import MOST
from memfs.model.rule import ENDED, RETIRED, Rule
from memfs.model.suggestion import Source, Suggestion, SuggestionDecision
from memfs.model.time import format_time
from memfs.store import Store
from memfs.store.parts import Parts
from memfs.store.store import retry_on_conflict

MOST_EPISODES = 10_000
MOST_RULES = 1_000
RETIRE_BELOW = 0.4
"""A rule less sure than that is retired, where enough went well without it since it last went wrong."""
_MARKED = 40
_OUTLIVES = 2
"""A rule is forgotten so many times slower than the episodes that taught it."""
_DRIFT = 0.02
_TRIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureAnalysis:
    """What analysing failures came to.

    Attributes:
        read: how many episodes were looked at.
        found: rules that were made.
        changed: ids of rules that were brought up to date, those included that hold again.
        retired: ids of rules that stopped holding.
        doubted: ids of rules that outcomes speak against, and that are left as they are: people stand behind them, or
            nothing is to be written.
    """

    read: int = 0
    found: tuple[Rule, ...] = ()
    changed: tuple[str, ...] = ()
    retired: tuple[str, ...] = ()
    doubted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _RuleOutcome:
    """A rule's item, what the episodes say of it, and how it should be."""

    item: MemoryItem
    verdict: RuleVerdict
    wanted: MemoryItem

    @property
    def retires(self) -> bool:
        return self.wanted.status == RETIRED != self.item.status


class FailureAnalyst:
    """Analyses the failures of one workspace, once. One at a time: the caller sees to that."""

    def __init__(
        self, store: Store, parts: Parts, triggers: Triggers, config: Callable[[], MemoryConfig], inbox: Inbox
    ) -> None:
        self._store, self._inbox = store, inbox
        self._parts = parts
        self._triggers = triggers
        self._config = config
        self._tops = (str(parts.repository.work_tree), str(parts.tree.root))
        self._half_life = _OUTLIVES * parts.kinds.get(EPISODIC).half_life_days
        # by id: where others write meanwhile, it takes several tries
        self._found: dict[str, Rule] = {}
        self._changed: dict[str, None] = {}
        self._retired: dict[str, None] = {}
        self._doubtful: dict[str, None] = {}

    def run(self) -> FailureAnalysis:
        """Learn from all episodes.

        Raises:
            Conflict: others kept changing the rules.
            ContentError, StorageIO: as ``Store.put``; what was done until then stays done.
        """
        return FailureAnalysis(
            read=retry_on_conflict(self._once, tries=_TRIES),
            found=tuple(self._found.values()),
            changed=tuple(self._changed),
            retired=tuple(self._retired),
            doubted=tuple(self._doubtful),
        )

    def suggest(self) -> FailureAnalysis:
        """Suggest what the episodes teach; no file is changed, and rules that should be retired are named as doubted.

        A suggestion that the episodes no longer bear out is withdrawn.

        Raises:
            CorruptRecord, FormatUnsupported, LockTimeout, StorageIO: nothing was suggested.
        """
        book = self._book()
        judged, accounted = self._rules_there_are(book)
        earlier = [one for one in self._inbox.all() if one.source is Source.RULE]
        decided = [one for one in earlier if one.decision]
        new = list(self._new(book, accounted, decided))
        found = [one for one in map(self._suggestion, new) if one is not None]
        fresh = self._inbox.add(found)
        if len(new) < MOST_FOUND:
            self._inbox.drop({one.id for one in earlier} - {one.id for one in found})
        rules = [rule for one in fresh if (rule := rule_of(one.item)) is not None]
        doubted = [one.item.id for one in judged if one.retires or self._doubted(one)]
        return FailureAnalysis(read=len(book.rows), found=tuple(rules), doubted=tuple(doubted))

    def _suggestion(self, found: FailureCondition) -> Suggestion | None:
        item = self._item(found)
        if item is None:
            return None
        failures = found.verdict.failures
        return Suggestion(
            item=item,
            source=Source.RULE,
            made=self._parts.clock(),
            count=len(failures),
            evidence=tuple(row.id for row in failures)[-MOST_EVIDENCE:],
        )

    def _book(self) -> Casebook:
        rows = [row for row in self._triggers.rows(EPISODE) if row.status not in ENDED][-MOST_EPISODES:]
        return Casebook(rows, now=self._parts.clock().timestamp(), half_life_days=self._half_life)

    def _once(self) -> int:
        """One try; returns how many episodes were looked at."""
        book = self._book()
        judged, accounted = self._rules_there_are(book)
        self._doubtful.update((one.item.id, None) for one in judged if self._doubted(one))
        self._bring_up_to_date(judged)
        refused = [one for one in self._inbox.all() if one.decision is SuggestionDecision.REFUSED]
        for found in self._new(book, accounted, refused):
            if (rule := self._learn(found)) is not None:
                self._found[rule.id] = rule
        return len(book.rows)

    def _new(self, book: Casebook, accounted: set[str], decided: Sequence[Suggestion]) -> Iterator[FailureCondition]:
        """What failures teach that no rule tells, and that nobody decided about."""
        known = accounted | {name for one in decided for name in one.evidence}
        for found in look(book, known, self._threshold, self._void):
            if not _is_known(found, decided):
                yield found

    @property
    def _threshold(self) -> int:
        return self._config().pattern_threshold

    # -- rules there are ----------------------------------------------------------------------------------------------
    def _rules_there_are(self, book: Casebook) -> tuple[list[_RuleOutcome], set[str]]:
        """The newest rules with what the episodes say of them, and the ids of the failures that they account for."""
        items = self._store.select(Query(types=frozenset({RULE}), limit=MOST))
        accounted = {str(told) for item in items for told in item.data.get("learned_from", ())}
        judged: list[_RuleOutcome] = []
        for item in items[:MOST_RULES]:
            rule = rule_of(item)
            if rule is None or book.compared >= MOST_COMPARED:
                continue
            cases = book.cases(row_of(item, ""))
            error = rule.error or (_taught_by(rule, cases) if made_by_analysis(item) else None)
            verdict = book.weigh(cases, speaks_for(error), {item.id, *rule.learned_from})
            if error is not None or made_by_analysis(item):
                accounted.update(row.id for row in verdict.failures)
            over = item.status in ENDED and item.status != RETIRED
            ours = made_by_analysis(item) and not is_kept(item) and not over
            judged.append(_RuleOutcome(item, verdict, self._revised(item, verdict) if ours else item))
        return judged, accounted

    def _revised(self, item: MemoryItem, verdict: RuleVerdict) -> MemoryItem:
        """The item of a rule that failures taught as the episodes would have it."""
        if not (verdict.failures or verdict.against or verdict.helped):
            return item
        figures = {"support": len(verdict.failures), "against": verdict.against, "helped": verdict.helped}
        same = all(item.data.get(name) == number for name, number in figures.items())
        if same and abs(item.data.get("confidence", 0.0) - verdict.confidence) < _DRIFT:
            return self._reworded(item, verdict)
        evidence = tuple(row.id for row in verdict.failures)
        changed = with_figures(item, {"confidence": verdict.confidence, **figures}, evidence)
        trust = _lowest(item.trust, *(row.trust for row in verdict.failures))
        return self._staged(self._reworded(changed.replace(trust=trust), verdict), verdict)

    def _staged(self, item: MemoryItem, verdict: RuleVerdict) -> MemoryItem:
        """Retired where it stopped holding, taken up again where it was retired and holds. A person's word stays."""
        ours = RETIRED_ON in item.metadata
        if item.status == RETIRED and ours and verdict.confidence >= THRESHOLD:
            metadata = {name: value for name, value in item.metadata.items() if name != RETIRED_ON}
            return item.replace(status="", metadata=metadata)
        ended = verdict.confidence < RETIRE_BELOW and verdict.since >= self._threshold
        if item.status != RETIRED and ended and not ours:
            told = f"{format_time(self._parts.clock())[:10]}: {_why(verdict)}"
            return item.replace(status=RETIRED, metadata={**item.metadata, RETIRED_ON: told})
        return item

    @staticmethod
    def _reworded(item: MemoryItem, verdict: RuleVerdict) -> MemoryItem:
        """With what was found to work, where the advice knew of nothing and nobody changed its words."""
        if item.content != item.data.get("action") or not is_unremedied(item.content):
            return item
        if not (verdict.failures and verdict.remedies):
            return item
        advice = advise(verdict.failures, verdict.remedies, "", quoting=bool(item.data.get("error")))
        if is_unremedied(advice.action):
            return item
        trust = _lowest(item.trust, *(row.trust for row in verdict.remedies))
        return item.replace(content=advice.action, data={**item.data, "action": advice.action}, trust=trust)

    def _doubted(self, one: _RuleOutcome) -> bool:
        ended = one.verdict.confidence < RETIRE_BELOW and one.verdict.since >= self._threshold
        return is_kept(one.item) and one.item.status not in ENDED and ended

    def _bring_up_to_date(self, judged: Sequence[_RuleOutcome]) -> None:
        """Write the rules that changed: in one commit, but a rule that retires or comes back in one of its own."""
        rest = []
        for one in judged:
            if one.retires:
                self._write([one], f"Retire the rule {one.item.id}: {_why(one.verdict)}")
                self._retired[one.item.id] = None
            elif one.wanted.status != one.item.status:
                self._write([one], f"Take up the rule {one.item.id} again: {_why(one.verdict)}")
                self._changed[one.item.id] = None
            elif one.wanted != one.item:
                rest.append(one)
        if rest:
            many = f"the rule {rest[0].item.id}" if len(rest) == 1 else f"{len(rest)} rules"
            self._write(rest, f"Bring {many} up to date with what happened")
            self._changed.update((one.item.id, None) for one in rest)

    def _write(self, changed: Sequence[_RuleOutcome], message: str) -> None:
        with self._store.batch(message, source=SOURCE) as batch:
            marked: set[str] = set()
            for one in changed:
                batch.put(one.wanted, expected=one.item.sha256)
                newest = self._loaded(one.verdict.failures[-1:])
                for episode in newest:
                    if TAUGHT not in episode.metadata and episode.id not in marked:
                        marked.add(episode.id)
                        batch.put(_marked(episode, one.item.id), expected=episode.sha256)

    # -- rules there are not ------------------------------------------------------------------------------------------
    def _void(self, found: FailureCondition) -> set[str]:
        """The failures that taught a rule which is gone, and what was before the newest of them."""
        episodes = {item.id: item for item in self._loaded(found.verdict.failures[-_MARKED:])}
        spent = 0.0
        for row in found.verdict.failures:
            rule_id = str(episodes[row.id].metadata.get(TAUGHT, "")) if row.id in episodes else ""
            if rule_id and not self._store.locate(rule_id):
                spent = max(spent, row.time)
        return {row.id for row in found.verdict.failures if row.time <= spent}

    def _item(self, found: FailureCondition) -> MemoryItem | None:
        """The item of the rule that was found; None where even without quotations it may not be stored."""
        verdict = found.verdict
        condition = found.condition._replace(files=tuple(_below(glob, self._tops) for glob in found.condition.files))
        place = ", ".join(condition.files) or condition.context
        for quoting in (True, False):
            advice = advise(verdict.failures, verdict.remedies, place, quoting)
            quoted = (*verdict.failures, *(() if is_unremedied(advice.action) else verdict.remedies))
            item = learned(_rule(condition, verdict, advice, _lowest(*(row.trust for row in quoted))), advice.title)
            try:
                refuse_item(item)
            except ContentError as error:  # the words of several episodes together look like a secret
                failed = error
            else:
                return item
        self._store.note_failure(failed)
        return None

    def _learn(self, found: FailureCondition) -> Rule | None:
        """Store the rule that was found; None where it may not be, or its id is taken by what a person made of it."""
        item = self._item(found)
        if item is None:
            return None
        failures = found.verdict.failures
        episodes = self._loaded(failures[-_MARKED:])
        message = f"Learn a rule from {len(failures)} failures: {item.title}"
        try:
            with self._store.batch(message, source=SOURCE) as batch:
                batch.put(item, expected="")
                for episode in episodes:
                    if TAUGHT not in episode.metadata:
                        batch.put(_marked(episode, item.id), expected=episode.sha256)
        except IdExists:
            return None
        return rule_of(item)

    def _loaded(self, rows: Iterable[TriggerRow]) -> list[MemoryItem]:
        """The episodes behind rows, as far as their files can be read."""
        found = (self._store.peek(row.id) for row in rows)
        return [item for item in found if item is not None and item.type == EPISODIC]


def _below(glob: str, tops: Iterable[str]) -> str:
    """A glob as it is named from the top of the work tree, so that it holds in every clone."""
    start = "**/" if glob.startswith("**/") else ""
    for top in tops:
        if glob.startswith(f"{start}{top}/"):
            return start + glob[len(start) + len(top) + 1 :]
    return glob


def _rule(condition: TriggerRow, verdict: RuleVerdict, advice: Advice, trust: str) -> Rule:
    told = condition.tool, *condition.files, *(() if condition.files else condition.words)
    said = (*told, *sorted(signature(verdict.failures[-1].error)))
    return Rule(
        condition.context,
        advice.action,
        verdict.confidence,
        files=condition.files,
        tool=condition.tool,
        error=advice.error,
        support=len(verdict.failures),
        against=verdict.against,
        helped=verdict.helped,
        learned_from=tuple(row.id for row in verdict.failures)[-MOST_EVIDENCE:],
        id=stable_id(advice.title, *said, otherwise=RULE),
        trust=trust,
    )


def _taught_by(rule: Rule, cases: Iterable[TriggerRow]) -> str | None:
    """The error of the newest failure that taught a rule which names none; None where all of them are gone."""
    taught = set(rule.learned_from)
    return next((row.error for row in reversed(list(cases)) if row.id in taught), None)


def _marked(episode: MemoryItem, rule_id: str) -> MemoryItem:
    return episode.replace(metadata={**episode.metadata, TAUGHT: rule_id})


def _lowest(*trusts: str) -> str:
    """The trust of what nobody has looked through: an agent's at most, and not more than the least trusted source."""
    return lower_trust(Trust.AGENT.value, *trusts)


def _is_known(found: FailureCondition, decided: Iterable[Suggestion]) -> bool:
    """Whether it is about what somebody decided about: most of the failures that were evidence then are so again."""
    failures = {row.id for row in found.verdict.failures}
    return any(one.evidence and 2 * len(failures & {*one.evidence}) >= len(one.evidence) for one in decided)


def _why(verdict: RuleVerdict) -> str:
    if verdict.since:
        return f"it went well {verdict.since} times without it since it last went wrong"
    return f"it went wrong {len(verdict.failures)} times"

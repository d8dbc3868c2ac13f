"""Makes rules of what failures teach, keeps them up to date, and retires those that no longer hold.

All of it follows from the files: a second analysis of the same episodes changes nothing. A rule that a person vouched
for (trust ``human`` or ``reviewed``, or pinned) is left alone; of any other, words that somebody changed stay. Each
failure that taught a rule says so in its ``metadata``, so that a rule which is gone is not learned from it again.

It ends: at most the newest ``MOST_EPISODES`` episodes and ``MOST_RULES`` rules are looked at, and twice
``MOST_COMPARED`` comparisons and ``MOST_FOUND`` rules made; where others write meanwhile it starts over, at most
``_TRIES`` times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256

from memfs.errors import Conflict, ContentError, IdExists, MemfsError
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
    is_untouched,
    learned,
    made_by_analysis,
    rule_of,
    stated_of,
    with_figures,
    worded,
)
from memfs.learning.situations import row_of
from memfs.learning.triggers import THRESHOLD, Triggers
from memfs.model import MemoryItem, Query
from memfs.model.episode import EPISODE, RULE, TriggerRow
from memfs.model.ids import slug
from memfs.model.item import Trust, lower_trust
from memfs.model.memory_config import MemoryConfig
from memfs.model.query import MOST
from memfs.model.rule import ENDED, RETIRED, Rule
from memfs.model.suggestion import Source, Suggestion, SuggestionDecision
from memfs.model.time import format_time
from memfs.store import Store
from memfs.store.parts import Parts

MOST_EPISODES = 10_000
MOST_RULES = 1_000
RETIRE_BELOW = 0.4
"""A rule less sure than that is retired, where enough went well without it since it last went wrong."""
_MARKED = 40
_OUTLIVES = 2
"""A rule is forgotten so many times slower than the episodes that taught it."""
_DRIFT = 0.02
_TRIES = 5
_UNREMEDIED = "Check first: "


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureAnalysis:
    """What analysing failures came to.

    Attributes:
        read: how many episodes were looked at.
        found: rules that were made.
        changed: ids of rules whose figures or words were brought up to date.
        retired: ids of rules that stopped holding.
        revived: ids of retired rules that hold again.
        doubted: ids of rules that people stand behind, and that outcomes speak against; they are left as they are.
    """

    read: int = 0
    found: tuple[Rule, ...] = ()
    changed: tuple[str, ...] = ()
    retired: tuple[str, ...] = ()
    revived: tuple[str, ...] = ()
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

    @property
    def revives(self) -> bool:
        return self.item.status == RETIRED != self.wanted.status


class FailureAnalyst:
    """Analyses the failures of one workspace. One at a time: the caller sees to that."""

    def __init__(
        self, store: Store, parts: Parts, triggers: Triggers, config: Callable[[], MemoryConfig], inbox: Inbox
    ) -> None:
        self._store, self._inbox = store, inbox
        self._parts = parts
        self._triggers = triggers
        self._config = config
        self._tops = (str(parts.repository.work_tree), str(parts.tree.root))
        self._half_life = _OUTLIVES * parts.kinds.get(EPISODIC).half_life_days

    def run(self) -> FailureAnalysis:
        """Learn from all episodes.

        Raises:
            Conflict: others kept changing the rules.
            ContentError, StorageIO: as ``Store.put``; what was done until then stays done.
        """
        done: list[FailureAnalysis] = []
        for attempt in range(_TRIES):
            try:
                self._once(done)
                break
            except Conflict:
                if attempt == _TRIES - 1:
                    raise
        return _together(done)

    def suggest(self) -> FailureAnalysis:
        """Suggest what the episodes teach; no file is changed, and rules that should be retired are named as doubted.

        A suggestion that the episodes no longer bear out is withdrawn.

        Raises:
            CorruptRecord, FormatUnsupported, LockTimeout, StorageIO: nothing was suggested.
        """
        book, items = self._book(), self._store.select(Query(types=frozenset({RULE}), limit=MOST))
        judged = list(self._judged(book, items))
        earlier = [one for one in self._inbox.all() if one.source is Source.RULE]
        decided = [one for one in earlier if one.decision]
        known = _accounted(items, judged) | _evidence(decided)
        new = [one for one in look(book, known, self._threshold, self._void) if not _is_known(one, decided)]
        found = [one for one in map(self._suggestion, new) if one is not None]
        fresh = self._inbox.add(found)
        if len(new) < MOST_FOUND:
            self._inbox.drop({one.id for one in earlier} - {one.id for one in found})
        rules = [rule for one in fresh if (rule := rule_of(one.item)) is not None]
        doubted = [one.item.id for one in judged if one.retires or self._doubted(one)]
        return FailureAnalysis(read=len(book.rows), found=tuple(rules), doubted=tuple(doubted))

    def _suggestion(self, found: FailureCondition) -> Suggestion | None:
        failures = tuple(row.id for row in found.verdict.failures)[-MOST_EVIDENCE:]
        for quoting in (True, False):
            item = self._item(found, quoting)
            try:
                refuse_item(item)
            except ContentError as error:  # the words of several episodes together look like a secret
                failed = error
                continue
            return Suggestion(
                item=item,
                source=Source.RULE,
                made=self._parts.clock(),
                count=len(found.verdict.failures),
                evidence=failures,
            )
        self._note(failed)
        return None

    def _book(self) -> Casebook:
        rows = [row for row in self._triggers.rows(EPISODE) if row.status not in ENDED][-MOST_EPISODES:]
        return Casebook(rows, now=self._parts.clock().timestamp(), half_life_days=self._half_life)

    def _once(self, done: list[FailureAnalysis]) -> None:
        book = self._book()
        done.append(FailureAnalysis(read=len(book.rows)))
        items = self._store.select(Query(types=frozenset({RULE}), limit=MOST))
        judged = list(self._judged(book, items))
        done.append(FailureAnalysis(doubted=tuple(one.item.id for one in judged if self._doubted(one))))
        self._bring_up_to_date(judged, done)
        refused = [one for one in self._inbox.all() if one.decision is SuggestionDecision.REFUSED]
        known = _accounted(items, judged) | _evidence(refused)
        for found in look(book, known, self._threshold, self._void):
            rule = None if _is_known(found, refused) else self._learn(found)
            done.append(FailureAnalysis(found=(rule,) if rule is not None else ()))

    @property
    def _threshold(self) -> int:
        return self._config().pattern_threshold

    # -- rules there are ----------------------------------------------------------------------------------------------
    def _judged(self, book: Casebook, items: Sequence[MemoryItem]) -> Iterator[_RuleOutcome]:
        """The newest rules with what the episodes say of them."""
        for item in items[:MOST_RULES]:
            if book.compared < MOST_COMPARED:
                yield self._judge(book, item)

    def _judge(self, book: Casebook, item: MemoryItem) -> _RuleOutcome:
        rule = rule_of(item)
        assert rule is not None, "only rules were asked for"
        own = made_by_analysis(item)
        cases = book.cases(row_of(item, ""))
        if not own:  # its author knew what was before
            since = item.created.timestamp() if item.created else 0.0
            told = set(rule.learned_from)
            cases = [row for row in cases if row.time > since and row.id not in told]
        stated = None if own else stated_of(item)
        error = rule.error or (_taught_by(rule, cases) if own else None)
        verdict = book.weigh(cases, speaks_for(error), {item.id, *rule.learned_from}, stated)
        over = item.status in ENDED and item.status != RETIRED
        return _RuleOutcome(item, verdict, item if over or is_kept(item) else self._revised(item, verdict))

    def _revised(self, item: MemoryItem, verdict: RuleVerdict) -> MemoryItem:
        """A rule's item as the episodes would have it."""
        if not (verdict.failures or verdict.against or verdict.helped):
            return item
        base = {} if made_by_analysis(item) else stated_of(item)
        counts = {"support": len(verdict.failures), "against": verdict.against, "helped": verdict.helped}
        figures = {name: number + int(base.get(name, 0)) for name, number in counts.items()}
        same = all(item.data.get(name) == number for name, number in figures.items())
        if same and abs(item.data.get("confidence", 0.0) - verdict.confidence) < _DRIFT:
            return self._reworded(item, verdict)
        evidence = tuple(row.id for row in verdict.failures)
        changed = with_figures(item, {"confidence": verdict.confidence, **figures}, evidence)
        if made_by_analysis(item):  # whatever speaks for it from here on has taught it
            changed = changed.replace(trust=_lowest(item.trust, *(row.trust for row in verdict.failures)))
        return self._staged(self._reworded(changed, verdict), verdict)

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
        action = str(item.data.get("action", ""))
        unsure = made_by_analysis(item) and is_untouched(item) and action.startswith(_UNREMEDIED)
        if not (unsure and verdict.failures and verdict.remedies):
            return item
        advice = advise(verdict.failures, verdict.remedies, "", quoting=bool(item.data.get("error")))
        if advice.action.startswith(_UNREMEDIED):
            return item
        trust = _lowest(item.trust, *(row.trust for row in verdict.remedies))
        return worded(item.replace(content=advice.action, data={**item.data, "action": advice.action}, trust=trust))

    def _doubted(self, one: _RuleOutcome) -> bool:
        ended = one.verdict.confidence < RETIRE_BELOW and one.verdict.since >= self._threshold
        return is_kept(one.item) and one.item.status not in ENDED and ended

    def _bring_up_to_date(self, judged: Sequence[_RuleOutcome], done: list[FailureAnalysis]) -> None:
        """Write the rules that changed: in one commit, but a rule that retires or comes back in one of its own."""
        changed = [one for one in judged if one.wanted != one.item]
        for one in changed:
            if one.retires or one.revives:
                says = f"Retire the rule {one.item.id}" if one.retires else f"Take up the rule {one.item.id} again"
                self._write([one], f"{says}: {_why(one.verdict)}")
                ids = (one.item.id,)
                done.append(FailureAnalysis(retired=ids) if one.retires else FailureAnalysis(revived=ids))
        rest = [one for one in changed if not (one.retires or one.revives)]
        if rest:
            many = f"the rule {rest[0].item.id}" if len(rest) == 1 else f"{len(rest)} rules"
            self._write(rest, f"Bring {many} up to date with what happened")
            done.append(FailureAnalysis(changed=tuple(one.item.id for one in rest)))

    def _write(self, changed: Sequence[_RuleOutcome], message: str) -> None:
        with self._store.batch(message, source=SOURCE) as batch:
            marked: set[str] = set()
            for one in changed:
                batch.put(one.wanted, expected=one.item.sha256)
                newest = self._loaded(one.verdict.failures[-1:])
                for episode in newest:
                    if TAUGHT not in episode.metadata and episode.id not in marked and made_by_analysis(one.item):
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

    def _learn(self, found: FailureCondition) -> Rule | None:
        """Store the rule that was found; None where its id is taken, by whatever a person made of it."""
        for quoting in (True, False):
            try:
                return self._stored(found, quoting)
            except IdExists:
                return None
            except ContentError as error:  # the words of several episodes together look like a secret
                failed = error
        self._note(failed)
        return None

    def _item(self, found: FailureCondition, quoting: bool) -> MemoryItem:
        """The item of the rule that was found."""
        verdict = found.verdict
        condition = found.condition._replace(files=tuple(_below(glob, self._tops) for glob in found.condition.files))
        place = ", ".join(condition.files) or condition.context
        advice = advise(verdict.failures, verdict.remedies, place, quoting)
        quoted = verdict.failures if advice.action.startswith(_UNREMEDIED) else (*verdict.failures, *verdict.remedies)
        return learned(_rule(condition, verdict, advice, _lowest(*(row.trust for row in quoted))), advice.title)

    def _stored(self, found: FailureCondition, quoting: bool) -> Rule:
        item = self._item(found, quoting)
        failures = found.verdict.failures
        episodes = self._loaded(failures[-_MARKED:])
        with self._store.batch(f"Learn a rule from {len(failures)} failures: {item.title}", source=SOURCE) as batch:
            batch.put(item, expected="")
            for episode in episodes:
                if TAUGHT not in episode.metadata:
                    batch.put(_marked(episode, item.id), expected=episode.sha256)
        rule = rule_of(item)
        assert rule is not None, "a rule was made"
        return rule

    def _loaded(self, rows: Iterable[TriggerRow]) -> list[MemoryItem]:
        """The episodes behind rows, as far as their files can be read."""
        found = []
        for row in rows:
            try:
                item = self._store.get(row.id)
            except ContentError:  # it is named among the workspace's problems
                continue
            if item is not None and item.type == EPISODIC:
                found.append(item)
        return found

    def _note(self, error: MemfsError) -> None:
        self._store.note_failure(error)


def _below(glob: str, tops: Iterable[str]) -> str:
    """A glob as it is named from the top of the work tree, so that it holds in every clone."""
    start = "**/" if glob.startswith("**/") else ""
    for top in tops:
        if glob.startswith(f"{start}{top}/"):
            return start + glob[len(start) + len(top) + 1 :]
    return glob


def _rule(condition: TriggerRow, verdict: RuleVerdict, advice: Advice, trust: str) -> Rule:
    told = condition.tool, *condition.files, *(() if condition.files else condition.words)
    basis = "\0".join((*told, *sorted(signature(verdict.failures[-1].error))))
    digest = sha256(basis.encode("utf-8", "surrogatepass")).hexdigest()[:8]
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
        id=f"{slug(advice.title) or RULE}-{digest}",
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


def _accounted(items: Iterable[MemoryItem], judged: Iterable[_RuleOutcome]) -> set[str]:
    """The failures that rules there are account for."""
    told = {str(told) for item in items for told in item.data.get("learned_from", ())}
    return told | {row.id for one in judged if _has_error(one.item) for row in one.verdict.failures}


def _evidence(suggestions: Iterable[Suggestion]) -> set[str]:
    return {name for one in suggestions for name in one.evidence}


def _is_known(found: FailureCondition, decided: Iterable[Suggestion]) -> bool:
    """Whether it is about what somebody decided about: most of the failures that were evidence then are so again."""
    failures = {row.id for row in found.verdict.failures}
    return any(one.evidence and 2 * len(failures & {*one.evidence}) >= len(one.evidence) for one in decided)


def _has_error(item: MemoryItem) -> bool:
    """Whether a rule accounts for the failures that speak for it: it says which error it is about, or knows of none."""
    return made_by_analysis(item) or bool(item.data.get("error"))


def _why(verdict: RuleVerdict) -> str:
    if verdict.since:
        return f"it went well {verdict.since} times without it since it last went wrong"
    return f"it went wrong {len(verdict.failures)} times"


def _together(done: Sequence[FailureAnalysis]) -> FailureAnalysis:
    """What several steps came to, each rule once."""
    return FailureAnalysis(
        read=max((one.read for one in done), default=0),
        found=tuple({rule.id: rule for one in done for rule in one.found}.values()),
        changed=tuple(dict.fromkeys(id_ for one in done for id_ in one.changed)),
        retired=tuple(dict.fromkeys(id_ for one in done for id_ in one.retired)),
        revived=tuple(dict.fromkeys(id_ for one in done for id_ in one.revived)),
        doubted=tuple(dict.fromkeys(id_ for one in done for id_ in one.doubted)),
    )

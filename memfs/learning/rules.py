"""Rules: advice learned from outcomes, converted to items and back, found when they apply, and kept up to date.

Failures are analysed after every ``EVERY`` recorded episodes, whichever processes recorded them. All of it follows
from the files: a second analysis of the same episodes changes nothing. Only rules that failures taught are changed,
and of these none that a person vouched for (trust ``human`` or ``reviewed``, or pinned); words that somebody changed
stay. What was learned is noted in the inbox, so that a rule which is gone is not learned from the same failures again.

It ends: at most the newest ``MOST_EPISODES`` episodes and ``MOST_RULES`` rules are looked at, and twice
``MOST_COMPARED`` comparisons and ``MOST_FOUND`` rules made; where others write meanwhile it starts over, at most
``_TRIES`` times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial

from memfs.dataclass import dataclass
from memfs.errors import Conflict, ContentError, IdExists, LockTimeout, QueryInvalid
from memfs.format.secrets import refuse_item
from memfs.fs.append_log import SharedCounter
from memfs.fs.lock import FileLock
from memfs.learning.failures import (
    MOST_COMPARED,
    MOST_FOUND,
    Advice,
    FailureCondition,
    RuleEvidence,
    RuleVerdict,
    advise,
    is_unremedied,
    look,
    signature,
    speaks_for,
)
from memfs.learning.situations import confidence_of, row_of
from memfs.learning.triggers import Triggers
from memfs.model import Link, MemoryItem, Query
from memfs.model.episode import ENDED, EPISODE, RETIRED, RULE, THRESHOLD, Rule, StateSnapshot, TriggerRow
from memfs.model.ids import stable_id
from memfs.model.item import VOUCHED, Trust, lower_trust, trust_rank
from memfs.model.learning import Keep, MemoryConfig, Source, Suggestion
from memfs.model.query import MOST
from memfs.model.shape import count_in, text_in, texts_in
from memfs.model.time import format_time
from memfs.startup import TYPE_CHECKING, Any
from memfs.store import Store
from memfs.store.parts import Parts
from memfs.store.store import retry_on_conflict

if TYPE_CHECKING:
    from memfs.learning.inbox import Inbox

MOST_EPISODES = 10_000
MOST_RULES = 1_000
RETIRE_BELOW = 0.4
"""A rule less sure than that is retired, where enough went well without it since it last went wrong."""
_DRIFT = 0.02
_Judged = tuple[MemoryItem, RuleVerdict, MemoryItem]  # a rule, what the episodes say of it, how it should be


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureAnalysis:
    """What analysing failures came to.

    Attributes:
        read: how many episodes were looked at.
        found: rules that were made.
        changed: ids of rules that were brought up to date, those included that hold again.
        retired: ids of rules that stopped holding.
    """

    read: int = 0
    found: tuple[Rule, ...] = ()
    changed: tuple[str, ...] = ()
    retired: tuple[str, ...] = ()


def _below(glob: str, tops: Iterable[str]) -> str:
    """A glob as it is named from the top of the work tree, so that it holds in every clone."""
    start = "**/" if glob.startswith("**/") else ""
    for top in tops:
        if glob.startswith(f"{start}{top}/"):
            return start + glob[len(start) + len(top) + 1 :]
    return glob


def _rule(condition: TriggerRow, verdict: RuleVerdict, advice: Advice, trust: str) -> Rule:
    conditions = condition.tool, *condition.files, *(() if condition.files else condition.words)
    parts = (*conditions, *sorted(signature(verdict.failures[-1].error)))
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
        id=stable_id(advice.title, *parts, otherwise=RULE),
        trust=trust,
    )


def _lowest(*trusts: str) -> str:
    """The trust of what no one has reviewed: an agent's at most, and not more than the least trusted source."""
    return lower_trust(Trust.AGENT.value, *trusts)


def _is_known(found: FailureCondition, decided: Iterable[Suggestion]) -> bool:
    """Whether it is about what somebody decided about: most of the failures that were evidence then are so again."""
    failures = {row.id for row in found.verdict.failures}
    return any(one.evidence and 2 * len(failures & {*one.evidence}) >= len(one.evidence) for one in decided)


def _why(verdict: RuleVerdict) -> str:
    if verdict.since:
        return f"it went well {verdict.since} times without it since it last went wrong"
    return f"it went wrong {len(verdict.failures)} times"


SOURCE = "rules"
"""The door through which what failures teach comes, for commits' trailers."""
MADE_FROM = "made_from"
"""The key of ``metadata`` that says what a rule was made from; patterns are not learned from what has it."""
FAILURES = "failures"
RETIRED_ON = "retired"
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
    words = " ".join((rule.pattern or ", ".join(rule.files) or rule.tool).split())
    return MemoryItem(
        rule.action,
        RULE,
        id=rule.id or id_of(rule),
        title=words if len(words) <= _TITLE else words[: _TITLE - 3].rstrip() + "...",
        trust=rule.trust,
        status=rule.status,
        pinned=rule.pinned,
        data=_data(rule, {}),
        links=tuple(Link(to=one, relation="learned_from") for one in rule.learned_from[-LINKED:] if one),
    )


def rule_of(item: MemoryItem) -> Rule | None:
    """The rule that an item is, None for one of another type; what it does not say is taken from its text."""
    if item.type != RULE:
        return None
    fields = {name: read(item.data.get(name)) for name, read in _READERS.items()}
    action = text_in(item.data.get("action")) or item.content or item.title
    pattern = text_in(item.data.get("pattern"))
    if not (pattern or fields["files"] or fields["tool"].strip()):
        pattern = item.title or item.content
    own = {name: getattr(item, name) for name in ("id", "trust", "status", "pinned")}
    return Rule(pattern, action, confidence_of(item), **fields, **own)


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


def with_figures(item: MemoryItem, figures: Mapping[str, float], evidence: tuple[str, ...]) -> MemoryItem:
    """An item with other figures and further evidence; it names the newest."""
    known = texts_in(item.data.get("learned_from"))
    newest = list(dict.fromkeys((*known, *evidence)))[-MOST_EVIDENCE:]
    return item.replace(data={**item.data, **figures, "learned_from": newest})


def _data(rule: Rule, known: Mapping[str, Any]) -> dict[str, Any]:
    """The body of a rule's item: what is known, with what the rule says of it."""
    ids = tuple(dict.fromkeys((*known.get("learned_from", ()), *rule.learned_from)))[-MOST_EVIDENCE:]
    fields = {name: getattr(rule, name) for name in ("pattern", "action", "confidence", *_READERS)}
    fields["learned_from"] = ids
    written = {name: list(value) if isinstance(value, tuple) else value for name, value in fields.items()}
    kept = {name: value for name, value in known.items() if name not in written}
    return {name: value for name, value in written.items() if value or name not in _OPTIONAL} | kept


EVERY = 100
"""After how many episodes failures are analysed."""
_SMALL = 500
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
        self._tally = SharedCounter(state / "episodes.count")
        self._lock = FileLock(state / "rules.lock", root=self.parts.repository.common_dir)

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
            IdInvalid, IdExists: its id is invalid; something else has it.
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
                raise IdExists(f"{rule_id} is not a rule", path=known.path, hint="choose another id")
            if (changed := updated(known, rule)) == known:
                return known
            return self.store.put(changed, known.sha256, message=f"Change the rule {rule_id}", source=source)

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
            CorruptRecord, FormatUnsupported: suggestions cannot be read.
            ContentError, StorageIO: as ``Store.put``; what was done until then stays done.
        """
        found: dict[str, Rule] = {}  # by id: where others write meanwhile, it takes several tries
        changed: dict[str, None] = {}
        retired: dict[str, None] = {}
        with self._lock.hold("analysing failures", seconds):
            counted = self._tally.count()
            try:
                once = partial(self._analyzed, keep is Keep.WRITE, found, changed, retired)
                read = retry_on_conflict(once, tries=_TRIES)
            finally:
                self._tally.take_off(counted)
        return FailureAnalysis(read=read, found=tuple(found.values()), changed=tuple(changed), retired=tuple(retired))

    def due(self) -> bool:
        """Whether ``EVERY`` episodes were recorded since failures were last analysed, by whatever process."""
        self.store.require_open()
        return self._tally.count() >= EVERY

    def has_news(self) -> bool:
        """Whether failures are worth a look: they are ``due``, or anything is new in a small memory."""
        return self.due() or (self._tally.count() > 0 and self.store.count() <= _SMALL)

    def count(self, *, analyze: bool) -> None:
        """Count an episode that was recorded; ``analyze``: analyse failures now, and write what they teach, if due."""
        self._tally.add()
        if analyze and self.due():
            try:
                self.analyze(seconds=0.0)
            except LockTimeout:  # another process analyses at this moment
                return

    def _analyzed(self, write: bool, found: dict[str, Rule], changed: dict[str, None], retired: dict[str, None]) -> int:
        """One try: enter by id what became of rules; returns how many episodes were looked at."""
        rows = [row for row in self.triggers.rows(EPISODE) if row.status not in ENDED][-MOST_EPISODES:]
        book = RuleEvidence(rows)
        judged, accounted = self._rules_there_are(book)
        rest = []
        for item, verdict, target in judged if write else ():
            if target.status != item.status:
                retires = target.status == RETIRED
                words = f"Retire the rule {item.id}" if retires else f"Take up the rule {item.id} again"
                self._write([(item, target)], f"{words}: {_why(verdict)}")
                (retired if retires else changed)[item.id] = None
            elif target != item:
                rest.append((item, target))
        if rest:
            many = f"the rule {rest[0][0].id}" if len(rest) == 1 else f"{len(rest)} rules"
            self._write(rest, f"Bring {many} up to date with what happened")
            changed.update((item.id, None) for item, _ in rest)
        inbox = self.inbox()
        earlier = [one for one in inbox.all() if one.source is Source.RULE]
        decided = [one for one in earlier if one.decision]
        known = accounted.union(*(one.evidence for one in decided))
        conditions = look(book, known, self.config().pattern_threshold)
        new = [one for one in conditions if not _is_known(one, decided)]
        suggested = [one for one in map(self._suggestion, new) if one is not None]
        fresh = inbox.add(suggested)
        if len(new) < MOST_FOUND:
            inbox.drop({one.id for one in earlier} - {one.id for one in suggested})
        for one in suggested if write else fresh:
            with suppress(IdExists):  # its id is taken by what a person made of it
                if write:
                    inbox.accept([one], trust="", source=SOURCE, verb="Learn")
                if (rule := rule_of(one.item)) is not None:
                    found[rule.id] = rule
        return len(rows)

    # -- rules there are ----------------------------------------------------------------------------------------------
    def _rules_there_are(self, book: RuleEvidence) -> tuple[list[_Judged], set[str]]:
        """The newest rules with what the episodes say of them, and the ids of the failures that they account for."""
        items = self.store.select(Query(types=frozenset({RULE}), limit=MOST))
        accounted = {str(name) for item in items for name in item.data.get("learned_from", ())}
        judged: list[_Judged] = []
        for item in items[:MOST_RULES]:
            rule = rule_of(item)
            if rule is None or book.compared >= MOST_COMPARED:
                continue
            cases = book.cases(row_of(item, ""))
            ours, taught, error = made_by_analysis(item), set(rule.learned_from), rule.error or None
            if ours and error is None:  # that of the newest failure which taught it, unless all of them are gone
                error = next((row.error for row in reversed(cases) if row.id in taught), None)
            verdict = book.weigh(cases, speaks_for(error), {item.id, *taught})
            if error is not None or ours:
                accounted.update(row.id for row in verdict.failures)
            # where a person vouches for it neither its figures nor its words are changed, nor is it retired
            kept = item.pinned or item.trust in VOUCHED or (item.status in ENDED and item.status != RETIRED)
            judged.append((item, verdict, self._revised(item, verdict) if ours and not kept else item))
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
        ended = verdict.confidence < RETIRE_BELOW and verdict.since >= self.config().pattern_threshold
        if item.status != RETIRED and ended and not ours:
            explanation = f"{format_time(self.parts.clock())[:10]}: {_why(verdict)}"
            return item.replace(status=RETIRED, metadata={**item.metadata, RETIRED_ON: explanation})
        return item

    @staticmethod
    def _reworded(item: MemoryItem, verdict: RuleVerdict) -> MemoryItem:
        """With what was found to work, where the advice knew of nothing and its words were not changed."""
        if item.content != item.data.get("action") or not is_unremedied(item.content):
            return item
        if not (verdict.failures and verdict.remedies):
            return item
        advice = advise(verdict.failures, verdict.remedies, "", quoting=bool(item.data.get("error")))
        if is_unremedied(advice.action):
            return item
        trust = _lowest(item.trust, *(row.trust for row in verdict.remedies))
        return item.replace(content=advice.action, data={**item.data, "action": advice.action}, trust=trust)

    def _write(self, changed: Sequence[tuple[MemoryItem, MemoryItem]], message: str) -> None:
        with self.store.batch(message, source=SOURCE) as batch:
            for item, target in changed:
                batch.put(target, expected=item.sha256)

    # -- rules there are not ------------------------------------------------------------------------------------------
    def _suggestion(self, found: FailureCondition) -> Suggestion | None:
        """The rule that was found; None where even without quotations it may not be stored."""
        verdict, tops = found.verdict, (str(self.parts.repository.work_tree), str(self.parts.tree.root))
        condition = found.condition._replace(files=tuple(_below(glob, tops) for glob in found.condition.files))
        place = ", ".join(condition.files) or condition.context
        for quoting in (True, False):
            advice = advise(verdict.failures, verdict.remedies, place, quoting)
            quoted = (*verdict.failures, *(() if is_unremedied(advice.action) else verdict.remedies))
            rule = _rule(condition, verdict, advice, _lowest(*(row.trust for row in quoted)))
            item = item_of(rule).replace(title=advice.title[:_TITLE], metadata={MADE_FROM: FAILURES})
            try:
                refuse_item(item)
            except ContentError as error:  # the words of several episodes together look like a secret
                failed = error
            else:
                ids = tuple(row.id for row in verdict.failures)
                count, made = len(ids), self.parts.clock()
                return Suggestion(item=item, source=Source.RULE, made=made, count=count, evidence=ids[-MOST_EVIDENCE:])
        self.store.note_failure(failed)
        return None

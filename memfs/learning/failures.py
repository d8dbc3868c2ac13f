"""Finds what repeated failures teach: the condition under which they occur together, and the advice in words.

Failures are alike if their errors say the same. Of those that are, each condition that most of them share (a file, a
folder, words, a tool) is tried and held against all episodes: where things go well as often, it is no rule. A rule
needs two failures, and three (the memory context's ``pattern_threshold``) together with the times that a warning of
them was heeded.

Everything here ends: at most ``MOST_FOUND`` rules are found, after at most ``_ROUNDS`` rounds for each group of
failures, each of which tries a bounded number of conditions and leaves fewer failures; no group is begun after
``MOST_COMPARED`` comparisons.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain

from memfs.dataclass import dataclass, field
from memfs.format.text import shown
from memfs.intake.episode_item import MOST_ERROR
from memfs.learning import situations
from memfs.model.episode import RULE, Outcome, TriggerRow, is_wild, literal_part
from memfs.search.analyzer import terms, tokens
from memfs.search.terms import generic_terms
from memfs.startup import regex

RECENT = 0.9
"""What an episode still counts after each later one that speaks for or against the rule."""
_MENDED_WITHIN = 3_600.0
_GENERIC_WORTH = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleVerdict:
    """What the episodes say of a rule.

    Attributes:
        confidence: how sure it is, 0 to 1.
        failures: those that speak for it, oldest first.
        against: how many successes speak against it.
        helped: how many came after a warning.
        since: how many spoke against it since it last went wrong.
        remedies: successes that mended a failure or heeded a warning, oldest first.
    """

    confidence: float
    failures: tuple[TriggerRow, ...] = ()
    against: int = 0
    helped: int = 0
    since: int = 0
    remedies: tuple[TriggerRow, ...] = field(default=(), repr=False)


def worth(word: str) -> float:
    """What a term of a pattern is worth: a quarter for one that says little."""
    return _GENERIC_WORTH if word in generic_terms() else 1.0


def has_failed(row: TriggerRow) -> bool:
    """Whether something went wrong in an episode: what worked in part counts where it names an error."""
    return row.outcome == Outcome.FAILURE.value or (row.outcome == Outcome.PARTIAL.value and bool(row.error))


class RuleEvidence:
    """Episodes, found by the situations in which a rule applies.

    A failure in a situation in which the rule applies, with its error, speaks for it; a success without a warning
    speaks against it. A success after a warning with the rule, or with one of the failures that taught it, counts as
    ``helped``: it says nothing against a rule that it was heeded. Nor does the one success that mends a failure.

    With each episode that speaks for or against a rule, what was before counts a tenth less. The confidence is
    ``(for + 1) / (for + against + 2)``.
    """

    def __init__(self, rows: Sequence[TriggerRow]) -> None:
        """Begin with these episodes, the oldest first."""
        self.rows = rows
        self.compared = 0
        """In how many situations it was asked so far whether a rule applies."""
        self._asked: dict[int, situations.PreparedSituation] = {}
        self._by_file: dict[str, list[int]] = {}
        self._by_word: dict[str, list[int]] = {}
        self._without_files: dict[str, list[int]] = {}
        for place, row in enumerate(rows):
            for file in row.files:
                self._by_file.setdefault(file, []).append(place)
            for word in row.words:
                self._by_word.setdefault(word, []).append(place)
                if not row.files:
                    self._without_files.setdefault(word, []).append(place)

    def cases(self, rule: TriggerRow) -> list[TriggerRow]:
        """The episodes in whose situation a rule applies, oldest first."""
        places = set(self._sharing_words(rule))
        for glob in rule.files:
            part = literal_part(glob if is_wild(glob) else glob.rpartition("/")[2])  # it may be written from further up
            for file, touching in self._by_file.items():
                if part in file and situations.means(glob, file):
                    places.update(touching)
        self.compared += len(places)
        found = []
        for place in sorted(places):
            if place not in self._asked:
                self._asked[place] = situations.asked_again(self.rows[place])
            if situations.fit(self._asked[place], rule, worth):
                found.append(self.rows[place])
        return found

    def _sharing_words(self, rule: TriggerRow) -> Iterable[int]:
        """Episodes that may have enough of a rule's words: of those it needs, all but so many must be there.

        Where a rule names files, words count only in a situation that names none.
        """
        holders = self._without_files if rule.files else self._by_word
        by_rarity = sorted(set(rule.words), key=lambda word: (len(holders.get(word, ())), word))
        spare = sum(map(worth, by_rarity)) * (1.0 - situations.APPLIES)
        passed = 0.0
        for word in by_rarity:
            if passed > spare + 1e-9:
                return
            passed += worth(word)
            yield from holders.get(word, ())

    # -- weighing -----------------------------------------------------------------------------------------------------
    def weigh(
        self, cases: Sequence[TriggerRow], speaks: Callable[[TriggerRow], bool], warnings: Collection[str] = ()
    ) -> RuleVerdict:
        """What episodes say of a rule.

        Args:
            cases: those in which it applied, oldest first.
            speaks: whether a failure is what the rule is about.
            warnings: ids with which an agent is warned of it, besides those of the failures themselves.
        """
        warned, events = set(warnings), list[bool]()
        failures, remedies = list[TriggerRow](), list[TriggerRow]()
        open_, helped, since = None, 0, 0
        for row in cases:
            if has_failed(row):
                if speaks(row):
                    events.append(False)
                    failures.append(row)
                    warned.add(row.id)
                    open_, since = row, 0
            elif row.outcome == Outcome.SUCCESS.value:
                heeded = not warned.isdisjoint(row.warned)
                if heeded or (open_ is not None and _mends(open_, row)):
                    remedies.append(row)
                    helped += heeded
                else:
                    events.append(True)
                    since += 1
                open_ = None
        weights = [RECENT**age for age in range(len(events) - 1, -1, -1)]
        against = sum(weight for weight, good in zip(weights, events, strict=True) if good)
        return RuleVerdict(
            confidence=round((sum(weights) - against + 1.0) / (sum(weights) + 2.0), 2),
            failures=tuple(failures),
            against=sum(events),
            helped=helped,
            since=since,
            remedies=tuple(remedies),
        )


def _mends(failed: TriggerRow, row: TriggerRow) -> bool:
    """Whether a success is the next try at what has just failed."""
    if failed.task and row.task:
        return failed.task == row.task and failed.session == row.session
    if failed.session and row.session:
        return failed.session == row.session
    return row.time - failed.time <= _MENDED_WITHIN


_SHARED = 0.7
_NUMBERS = regex(r"(?<!\S)[^\s\d]*\d\S*")  # from the beginning of a word alone: a long one takes no time
_UNREMEDIED, _REPEATED = "Check first: ", " here before, more than once."
_DID, _ERROR, _BRIEF, _WHOLE = 120, 160, 60, 400
QUOTES = str.maketrans({'"': "'", "\u201c": "'", "\u201d": "'", "\u201e": "'", "`": "'"})
_ADVISED = regex(
    r"error|exception|fail|fatal|denied|refused|not found|cannot|can't|could not|unable|invalid|missing|timed? ?out|"
    r"expected|must",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Advice:
    """A rule in words: what to do, a name, and what goes wrong otherwise."""

    action: str
    title: str
    error: str


def advise(failures: Sequence[TriggerRow], remedies: Sequence[TriggerRow], place: str, quoting: bool = True) -> Advice:
    """What to say to an agent.

    What an episode says may come from anywhere, so it appears only as a quotation: on one line, cut, without quotation
    marks inside, and with characters that hide text as escapes. No word of it becomes an instruction of ours.

    Args:
        failures: what went wrong, at least one, oldest first.
        remedies: what went well afterwards.
        place: where, in the rule's own words.
        quoting: whether words of the episodes may be quoted at all.
    """
    newest = failures[-1]
    error = quote(key_line(newest.error), _ERROR) if quoting else ""
    did = quote(_usual(failures), _DID) if quoting else ""
    worked = quote(_usual(_about_it(remedies, failures), besides=failures), _DID) if quoting else ""
    wrong = f"went wrong with {error}" if error else "went wrong"
    if worked:
        action = f"Consider {worked}: it worked where {did or 'another way'} {wrong}."
    else:
        action = f"{_UNREMEDIED}{did or 'this'} {wrong}{_REPEATED}"
    brief = quote(key_line(newest.error), _BRIEF)[1:-1] if quoting else ""
    where = quote(place, _BRIEF)[1:-1] or "again and again"
    whole = quote(key_line(newest.error), _WHOLE)[1:-1] if quoting else ""
    return Advice(action, f"{where}: {brief}" if brief else f"{where}: goes wrong", whole)


def is_unremedied(action: str) -> bool:
    """Whether an advice is ours, and knows of nothing that works."""
    return action.startswith(_UNREMEDIED) and action.endswith(_REPEATED)


def quote(text: str, most: int) -> str:
    """A text as a quotation of limited length, "" for none."""
    line = shown(" ".join(text[: 20 * most].translate(QUOTES).split()))
    if not line:
        return ""
    return f'"{line if len(line) <= most else line[: most - 3].rstrip() + "..."}"'


def key_line(error: str) -> str:
    """The line of an error message that says what happened: a traceback's last, else the first that sounds like it."""
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    if not lines:
        return ""
    if any(line.startswith("Traceback") for line in lines):
        return lines[-1]
    return next((line for line in lines if _ADVISED.search(line)), lines[0])


def pattern_of(words: Collection[str], failures: Sequence[TriggerRow]) -> str:
    """The words that these terms come from, as the newest failure writes them, else as any does."""
    written: dict[str, str] = {}
    for row in failures:
        for word, stems in tokens(row.context):
            for stem in stems:
                if stem in words:
                    written[stem] = word
    newest = [stem for _, stems in tokens(failures[-1].context) for stem in stems]
    order = [*newest, *sorted(written)]
    return " ".join(dict.fromkeys(written[stem].casefold() for stem in order if stem in written))


def _about_it(remedies: Sequence[TriggerRow], failures: Sequence[TriggerRow]) -> Sequence[TriggerRow]:
    """What went well about the very matter that went wrong: in one file there may be several."""
    counted = Counter(word for row in failures for word in row.words)
    matter = {word for word, count in counted.items() if count >= _SHARED * len(failures)}
    return [row for row in remedies if 2 * len(matter.intersection(row.words)) >= len(matter)] or remedies


def _usual(rows: Sequence[TriggerRow], besides: Sequence[TriggerRow] = ()) -> str:
    """What was done most often, numbers aside, of equals the newest; "" where it was nothing else than ``besides``."""
    known = {row.did.casefold() for row in besides}
    others = [row.did for row in rows if row.did and row.did.casefold() not in known]
    if not others:
        return ""
    done = Counter(map(_without_numbers, others))
    newest = {_without_numbers(did): (place, did) for place, did in enumerate(others)}
    return newest[max(done, key=lambda deed: (done[deed], newest[deed][0]))][1]


def _without_numbers(text: str) -> str:
    return _NUMBERS.sub(" ", text.casefold())


MOST_FOUND = 20
MOST_COMPARED = 500_000
LEAST_CONFIDENCE = 0.6
"""A rule less sure than that is not made."""
LEAST_FAILURES = 2
_ROUNDS = 20
_SAME_ERROR = 0.6
_COMPARED = 64
_PLACES = 3
_FILES = 20
_TERMS = 24
_MOST_WORDS = 10
_SURE = 0.8
_NOISE = regex(r"'[^'\n]{0,200}'|[\w.~-]{0,200}[/\\][\w.~/\\-]*|[^\s\d]{0,200}\d\S*")
_WITHIN_WORD = regex(r"(?<=\w)'(?=\w)")


@dataclass(frozen=True, slots=True)
class FailureCondition:
    """A condition under which failures come together, as the row of a rule would have it, and what speaks for it."""

    condition: TriggerRow
    verdict: RuleVerdict


@lru_cache(maxsize=20_000)
def signature(error: str) -> frozenset[str]:
    """The terms of what an error message says, without names, numbers and paths, which differ each time.

    They are the same for the message as a rule quotes it.
    """
    telling = key_line(error)[:MOST_ERROR]  # a file written by hand may hold more than is ever recorded
    line = _WITHIN_WORD.sub("", " ".join(telling.translate(QUOTES).split()))
    return frozenset(terms(_NOISE.sub(" ", line))[:_TERMS]) or frozenset(terms(line)[:_TERMS])


def same_error(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two errors say the same; where neither says anything, they do."""
    if not one or not other:
        return not one and not other
    return len(one & other) >= _SAME_ERROR * len(one | other)


def speaks_for(error: str | None) -> Callable[[TriggerRow], bool]:
    """Whether a failure is what a rule with this error is about; any is, where that is unknown."""
    expected = signature(error or "")
    return lambda row: error is None or same_error(signature(row.error), expected)


def look(book: RuleEvidence, known: Collection[str], threshold: int) -> Iterator[FailureCondition]:
    """What failures teach that no rule says yet, the most frequent first.

    Args:
        known: ids of failures that taught a rule there is.
        threshold: how many failures and heeded warnings make a rule.
    """
    fresh = [row for row in book.rows if has_failed(row) and row.id not in known]
    count, most = 0, book.compared + MOST_COMPARED
    for left in _alike(fresh):
        if book.compared > most:
            return
        for _ in range(_ROUNDS):
            best = _best(book, left, threshold) if len(left) >= LEAST_FAILURES else None
            if best is None:
                break
            yield best
            count += 1
            if count >= MOST_FOUND:
                return
            ids = {row.id for row in best.verdict.failures}
            left = [row for row in left if row.id not in ids]


# -- alike ----------------------------------------------------------------------------------------------------------
def _alike(failures: Iterable[TriggerRow]) -> list[list[TriggerRow]]:
    """Failures in groups with the same error, the largest group first."""
    exact: dict[frozenset[str], list[TriggerRow]] = {}
    for row in failures:
        exact.setdefault(signature(row.error), []).append(row)
    leaders: dict[frozenset[str], list[TriggerRow]] = {}
    holders: dict[str, list[frozenset[str]]] = {}
    for mark in sorted(exact, key=lambda mark: (-len(exact[mark]), sorted(mark))):
        near = dict.fromkeys(chain.from_iterable(holders.get(term, ())[:_COMPARED] for term in sorted(mark)))
        leader = next((other for other in near if same_error(mark, other)), None)
        if leader is None:
            leaders[mark] = list(exact[mark])
            for term in mark:
                holders.setdefault(term, []).append(mark)
        else:
            leaders[leader] += exact[mark]
    groups = [sorted(group, key=lambda row: (row.time, row.id)) for group in leaders.values()]
    return sorted((group for group in groups if len(group) >= LEAST_FAILURES), key=lambda group: -len(group))


# -- conditions -----------------------------------------------------------------------------------------------------
def _best(book: RuleEvidence, left: Sequence[TriggerRow], threshold: int) -> FailureCondition | None:
    """The condition that is sure enough and explains most; of equals the one that was tried first."""
    fresh = {row.id for row in left}
    speaks = speaks_for(left[-1].error)
    best: tuple[tuple[float, int], FailureCondition] | None = None
    for condition in _tried(left):
        verdict = book.weigh(book.cases(condition), speaks)
        new = sum(row.id in fresh for row in verdict.failures)
        if new < LEAST_FAILURES or new + verdict.helped < threshold or verdict.confidence < LEAST_CONFIDENCE:
            continue
        value = (min(verdict.confidence, _SURE), new)
        if best is None or value > best[0]:
            best = value, FailureCondition(condition, verdict)
    return best[1] if best is not None else None


def _tried(left: Sequence[TriggerRow]) -> Iterator[TriggerRow]:
    """Conditions that some of the failures share: places first, with and without words, then words alone."""
    seen = set()
    for files, members in (*_folders(left), *_files(left), ((), left)):
        if len(members) < LEAST_FAILURES:
            continue
        tools = {row.tool.casefold(): row.tool for row in members}
        tool = next(iter(tools.values())) if len(tools) == 1 else ""
        for globs, pattern in _variants(files, pattern_of(_common(members), members), members):
            words = situations.words_of(pattern)
            condition = TriggerRow("", "", "", RULE, files=globs, words=words, tool=tool, context=pattern)
            if condition not in seen:
                seen.add(condition)
                yield condition


def _variants(
    files: tuple[str, ...], pattern: str, members: Sequence[TriggerRow]
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Files with the words that were said, and without; words alone where they say something."""
    telling = _names_situation(situations.words_of(pattern), members)
    if not files:
        yield from [((), pattern)] if telling else []
        return
    if telling and is_wild(files[0]):
        yield files, pattern
    yield files, "" if is_wild(files[0]) else pattern  # a file that is named is enough, whatever is said
    if telling and not is_wild(files[0]):
        yield (f"**/{files[0]}",), pattern


def _files(left: Sequence[TriggerRow]) -> list[tuple[tuple[str, ...], list[TriggerRow]]]:
    """The files that most of them touched."""
    counted = Counter(file for row in left for file in row.files[:_FILES])
    most = sorted(counted, key=lambda file: (-counted[file], file))[:_PLACES]
    return [((file,), [row for row in left if file in row.files]) for file in most]


def _folders(left: Sequence[TriggerRow]) -> list[tuple[tuple[str, ...], list[TriggerRow]]]:
    """The folders, with what their files end in, in which most of them touched different files."""
    members: dict[str, dict[str, TriggerRow]] = {}
    names: dict[str, set[str]] = {}
    for row in left:
        for file in row.files[:_FILES]:
            folder, _, name = file.rpartition("/")
            stem, dot, ending = name.rpartition(".")
            if folder and dot and stem and not any(sign in file for sign in "*?["):  # these mean something in a glob
                glob = f"{folder}/*.{ending}"
                members.setdefault(glob, {})[row.id] = row
                names.setdefault(glob, set()).add(file)
    wide = sorted((glob for glob in members if len(names[glob]) > 1), key=lambda glob: (-len(members[glob]), glob))
    return [((glob,), list(members[glob].values())) for glob in wide[:_PLACES]]


def _common(members: Sequence[TriggerRow]) -> tuple[str, ...]:
    """The terms that most of them have, the most distinctive first."""
    counted = Counter(word for row in members for word in row.words)
    shared = [word for word, count in counted.items() if count >= _SHARED * len(members)]
    return tuple(sorted(shared, key=lambda word: (word in generic_terms(), -counted[word], word))[:_MOST_WORDS])


def _names_situation(words: Sequence[str], members: Sequence[TriggerRow]) -> bool:
    """Whether words alone name a situation: they say enough, or each time a tool was used for just that."""
    if situations.is_distinctive(words):
        return True
    return (
        len(words) > 1
        and not generic_terms().issuperset(words)
        and all(set(words) == set(row.words) for row in members)
    )

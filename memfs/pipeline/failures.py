"""Failures: what repeated failures teach (seed 004, P4).

Owns which failures are alike, and under which condition they come together: a file, a folder, words, a tool. Reads and
writes nothing.

Failures are alike whose errors say the same. Of those that are, each condition that most of them share is tried, and
held against all episodes (``evidence``): what goes well there as often is no rule. A rule needs two failures, and three
(the memory context's ``pattern_threshold``) together with the times that a warning of them was heeded.

Everything here ends: at most ``MOST_FOUND`` rules are found, after at most ``_ROUNDS`` rounds for each group of
failures, each of which tries a bounded number of conditions and leaves fewer failures; no group is begun after
``MOST_COMPARED`` comparisons.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from memfs.index.analyzer import terms
from memfs.model.globs import is_wild
from memfs.model.triggerrow import RULE, TriggerRow
from memfs.pipeline.advice import QUOTES, pattern_of, telling_line
from memfs.pipeline.episodeitem import MOST_ERROR
from memfs.pipeline.evidence import Casebook, Verdict, has_failed
from memfs.pipeline.situations import GENERIC, words_of

MOST_FOUND = 20
MOST_COMPARED = 500_000
LEAST_CONFIDENCE = 0.6
"""A rule less sure than that is not made."""
LEAST_FAILURES = 2
_ROUNDS = 20
_SHARED = 0.7
_SAME_ERROR = 0.6
_COMPARED = 64
_PLACES = 3
_FILES = 20
_TERMS = 24
_MOST_WORDS = 10
_SURE = 0.8
_NOISE = re.compile(r"'[^'\n]{0,200}'|[\w.~-]*[/\\][\w.~/\\-]*|\S*\d\S*")
_WITHIN_WORD = re.compile(r"(?<=\w)'(?=\w)")


@dataclass(frozen=True, slots=True)
class Found:
    """A condition under which failures come together, as the row of a rule would have it, and what speaks for it."""

    condition: TriggerRow
    verdict: Verdict


Void = Callable[[Found], Collection[str]]
"""Gives the ids of failures that taught a rule which somebody has deleted: they teach none again."""


@lru_cache(maxsize=20_000)
def signature(error: str) -> frozenset[str]:
    """The terms of what an error message says, without names, numbers and paths, which differ each time.

    They are the same for the message as a rule quotes it.
    """
    told = telling_line(error)[:MOST_ERROR]  # a file written by hand may hold more than is ever recorded
    line = _WITHIN_WORD.sub("", " ".join(told.translate(QUOTES).split()))
    return frozenset(terms(_NOISE.sub(" ", line))[:_TERMS]) or frozenset(terms(line)[:_TERMS])


def same_error(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two errors say the same; where neither says anything, they do."""
    if not one or not other:
        return not one and not other
    return len(one & other) >= _SAME_ERROR * len(one | other)


def speaks_for(error: str | None) -> Callable[[TriggerRow], bool]:
    """Whether a failure is what a rule with this error is about; any is, where nobody knows what it is about."""
    wanted = signature(error or "")
    return lambda row: error is None or same_error(signature(row.error), wanted)


def look(book: Casebook, known: Collection[str], threshold: int, void: Void) -> Iterator[Found]:
    """What failures teach that no rule tells yet, the most frequent first.

    Args:
        known: ids of failures that taught a rule there is.
        threshold: so many failures and heeded warnings make a rule.
    """
    fresh = [row for row in book.rows if has_failed(row) and row.id not in known]
    count, most = 0, book.compared + MOST_COMPARED
    for group in _alike(fresh):
        if book.compared > most:
            return
        for found in _conditions(book, group, threshold, void):
            yield found
            count += 1
            if count >= MOST_FOUND:
                return


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
def _conditions(book: Casebook, group: list[TriggerRow], threshold: int, void: Void) -> Iterator[Found]:
    """The conditions under which failures of a group come together, the best first."""
    left = group
    gone: set[str] = set()
    for _ in range(_ROUNDS):
        if len(left) < LEAST_FAILURES:
            return
        best = _best(book, left, threshold, gone)
        if best is None:
            return
        ids = {row.id for row in best.verdict.failures}
        voided = set(void(best))
        if voided:
            gone |= voided
            left = [row for row in left if row.id not in gone]
            continue
        yield best
        left = [row for row in left if row.id not in ids]


def _best(book: Casebook, left: Sequence[TriggerRow], threshold: int, gone: Collection[str]) -> Found | None:
    """The condition that is sure enough and explains most; of equals the one that was tried first."""
    fresh = {row.id for row in left}
    error = signature(left[-1].error)
    best: tuple[tuple[float, int], Found] | None = None
    for condition in _tried(left):
        found = _held(book, condition, error, gone)
        verdict = found.verdict
        new = sum(row.id in fresh for row in verdict.failures)
        if new < LEAST_FAILURES or new + verdict.helped < threshold or verdict.confidence < LEAST_CONFIDENCE:
            continue
        value = (min(verdict.confidence, _SURE), new)
        if best is None or value > best[0]:
            best = value, found
    return best[1] if best is not None else None


def _held(book: Casebook, condition: TriggerRow, error: frozenset[str], gone: Collection[str]) -> Found:
    """A condition held against all episodes."""
    cases = [row for row in book.cases(condition) if row.id not in gone]
    return Found(condition, book.weigh(cases, lambda row: same_error(signature(row.error), error)))


def _tried(left: Sequence[TriggerRow]) -> Iterator[TriggerRow]:
    """Conditions that some of the failures share: places first, with and without words, then words alone."""
    seen = set()
    for files, members in (*_folders(left), *_files(left), ((), left)):
        if len(members) < LEAST_FAILURES:
            continue
        pattern = pattern_of(_common(members), members)
        for globs, said in _variants(files, pattern):
            condition = _condition(globs, said, _tool(members))
            if condition not in seen:
                seen.add(condition)
                yield condition


def _variants(files: tuple[str, ...], pattern: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Files with the words that were said, and without; words alone where they say something."""
    telling = _tell(words_of(pattern))
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
            glob = _glob(file)
            if glob:
                members.setdefault(glob, {})[row.id] = row
                names.setdefault(glob, set()).add(file)
    wide = sorted((glob for glob in members if len(names[glob]) > 1), key=lambda glob: (-len(members[glob]), glob))
    return [((glob,), list(members[glob].values())) for glob in wide[:_PLACES]]


def _glob(file: str) -> str:
    """The files like one: of its folder, with its ending; "" where it has none, or a sign that means something here."""
    folder, _, name = file.rpartition("/")
    stem, dot, ending = name.rpartition(".")
    fits = folder and dot and stem and not any(sign in file for sign in "*?[")
    return f"{folder}/*.{ending}" if fits else ""


def _common(members: Sequence[TriggerRow]) -> tuple[str, ...]:
    """The terms that most of them have, those that tell most first."""
    counted = Counter(word for row in members for word in row.words)
    shared = [word for word, count in counted.items() if count >= _SHARED * len(members)]
    return tuple(sorted(shared, key=lambda word: (word in GENERIC, -counted[word], word))[:_MOST_WORDS])


def _tell(words: Sequence[str]) -> bool:
    """Whether words alone name a situation: two of them say more than what people do everywhere."""
    return sum(word not in GENERIC for word in words) > 1


def _tool(members: Sequence[TriggerRow]) -> str:
    tools = {row.tool.casefold(): row.tool for row in members}
    return next(iter(tools.values())) if len(tools) == 1 else ""


def _condition(files: tuple[str, ...], pattern: str, tool: str) -> TriggerRow:
    words = words_of(pattern)
    return TriggerRow(id="", path="", blob="", sort=RULE, files=files, words=words, tool=tool, context=pattern)

"""Compares situations: how alike two are, and how well a rule fits one.

The formula is explained in ``docs/triggers.md``: files by their paths, words by what they are worth, and both together.
Nothing is read or written.
"""

from __future__ import annotations

import math
import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from itertools import islice

from memfs.dataclass import dataclass, field
from memfs.intake.episode_item import EPISODIC, episode_of
from memfs.model import MemoryItem
from memfs.model.episode import EPISODE, RULE, StateSnapshot, TriggerRow, fits, is_wild
from memfs.model.item import VOUCHED
from memfs.model.shape import text_in, texts_in
from memfs.model.time import EPOCH
from memfs.resources import word_lists
from memfs.search.analyzer import identity, terms
from memfs.search.terms import generic_terms
from memfs.startup import regex

Worth = Callable[[str], float]
"""What a term is worth: much for a rare one."""

SAME_FILE = 0.85
FOLDER = 0.35
_ENDS = {3: 0.64, 2: 0.52, 1: 0.42}
_COMMON_NAME = 0.2
_SPREAD = 0.15
_OTHER_FILES = 0.8
_OTHER_TOOL = 0.85
_ONE_WORD = 0.7
_NEVER_SURE = 0.99
_LITERAL, _WILD = 0.6, 0.4
APPLIES = 0.6
_SAME_DEED = 0.8
MOST_WORDS = 200
_COMPARED = 250
_MOST_FILES = 200
_LONGEST_FILE = 500
_MOST_GLOBS, _MOST_TRIED = 50, 50
_MENTION = regex(r"(?<![\w/.~-])(?:[\w.~-]{0,80}/){0,20}[\w.-]{1,80}\.[A-Za-z][A-Za-z0-9]{0,7}(?![\w/])", re.ASCII)
_COMMON_NAMES = frozenset(word_lists()["file_names"].split())


@dataclass(frozen=True)
class PreparedSituation:
    """A situation, ready to be compared with others.

    Attributes:
        files: what it is about, each in its plain form; files that the words name are among them.
        words: terms of what is about to be done, each once.
        text: the same in plain form, to recognise a repetition.
        tool: what is about to be used.
    """

    files: tuple[str, ...]
    words: tuple[str, ...]
    text: str
    tool: str
    named: tuple[str, ...] = field(default=())

    @cached_property
    def by_name(self) -> Mapping[str, list[list[str]]]:
        """The files' parts by their last one."""
        found: dict[str, list[list[str]]] = {}
        for file in self.files:
            parts = file.split("/")
            found.setdefault(parts[-1], []).append(parts)
        return found

    @cached_property
    def folders(self) -> frozenset[str]:
        """The folders that hold the files; the top counts as none."""
        return frozenset(file.rpartition("/")[0] for file in self.files if "/" in file)


def asked(state: StateSnapshot) -> PreparedSituation:
    """A situation, ready to be compared."""
    named = plain_files(state.files)
    mentioned = (match[0] for match in islice(_MENTION.finditer(state.context[:4_000]), 20))
    return PreparedSituation(
        files=tuple(dict.fromkeys((*named, *plain_files(mentioned)))),
        words=words_of(state.context),
        text=plain_text(state.context),
        tool=state.tool.casefold(),
        named=named,
    )


def asked_again(row: TriggerRow) -> PreparedSituation:
    """The situation of an episode, ready to be compared with others."""
    return PreparedSituation(row.files, row.words, plain_text(row.context), row.tool.casefold(), row.files)


def plain_files(files: Iterable[str]) -> tuple[str, ...]:
    """Paths without ``./``, ``//`` and inner ``..``, each once, at most 200."""
    named = (file.strip()[-_LONGEST_FILE:] for file in islice(files, _MOST_FILES))
    found = (posixpath.normpath(file) for file in named if file)
    return tuple(dict.fromkeys(file for file in found if file not in (".", "/")))


def words_of(text: str) -> tuple[str, ...]:
    """The terms of a text, each once, at most 200; from its beginning and its end where it is long."""
    short = text if len(text) <= 8_000 else f"{text[:4_000]} {text[-4_000:]}"
    return tuple(dict.fromkeys(terms(short)))[:MOST_WORDS]


def plain_text(text: str) -> str:
    """The beginning of a text in the form that repetitions are compared in."""
    return " ".join(text[:1_200].split()).casefold()[:_COMPARED]


# -- alike --------------------------------------------------------------------------------------------------------
def alike(
    one: PreparedSituation, row: TriggerRow, weights: Mapping[str, float], worth: Worth, least: float = 0.0
) -> float:
    """How alike a situation and that of an episode are, 0 to 1; 1 only for a repetition.

    Args:
        weights: what each word of ``one`` is worth.
        least: a likeness that is of no use below this may be returned as less than it is.
    """
    by_files = files_alike(one, row.files)
    by_words = words_alike(weights, row, worth, share_needed(least, by_files))
    if by_words >= _ONE_WORD - 0.01 and is_repetition(one, row):
        return 1.0
    if one.tool and row.tool and one.tool != row.tool.casefold():
        by_words *= _OTHER_TOOL
    if one.files and row.files and by_files <= FOLDER:
        by_words *= _OTHER_FILES
    return min(1.0 - (1.0 - by_files) * (1.0 - by_words), _NEVER_SURE)


def share_needed(least: float, by_files: float = FOLDER) -> float:
    """What share of what the asked words are worth an episode must have at least, to be so much alike by them.

    Without an argument for the files, of an episode that has none of the same name.
    """
    return max(1.0 - (1.0 - least) / (1.0 - by_files), 0.0) ** 2


def is_repetition(one: PreparedSituation, row: TriggerRow) -> bool:
    """Whether an episode is this very situation again: the same tool and files, and its words or its deed.

    Who names no files or no tool may mean the same ones.
    """
    if one.text not in (plain_text(row.context), plain_text(row.did)) or not one.text:
        return False
    tools = not one.tool or not row.tool or one.tool == row.tool.casefold()
    return tools and (not one.files or set(one.named) == set(row.files))


def files_alike(one: PreparedSituation, files: Sequence[str]) -> float:
    """How alike two sets of files are: 0.85 for the same file, less where it is one of many, or only named alike."""
    if not one.files or not files:
        return 0.0
    found = []
    for file in files:
        parts = file.split("/")
        same_name = one.by_name.get(parts[-1])
        if same_name is not None:
            found.append(max(_ends_alike(parts, other) for other in same_name))
        else:
            found.append(FOLDER if one.folders and file.rpartition("/")[0] in one.folders else 0.0)
    best = max(found)
    if best <= FOLDER:
        return best
    alike_ones = sum(value for value in found if value > FOLDER) / best
    return float(best * (alike_ones / len(found)) ** _SPREAD)


def _ends_alike(one: list[str], other: list[str]) -> float:
    """How alike two paths are that end in the same name: whole where one is the end of the other."""
    short = min(len(one), len(other))
    common = 1
    while common < short and one[-common - 1] == other[-common - 1]:
        common += 1
    ordinary = _is_ordinary(one[-1])
    if common == short and (common == max(len(one), len(other)) or common > 1 or not ordinary):
        return SAME_FILE
    return _COMMON_NAME if common == 1 and ordinary else _ENDS[min(common, 3)]


def words_alike(weights: Mapping[str, float], row: TriggerRow, worth: Worth, needed: float = 0.0) -> float:
    """How alike the words are, 0 to 1: the mean of the share of either that the other has; 0 below what is needed."""
    shared = weights.keys() & row.words
    shared_deeds = weights.keys() & row.deeds
    both = shared | shared_deeds
    if not both:
        return 0.0
    covered = min(sum([weights[word] for word in both]) / sum(weights.values()), 1.0)
    if covered < needed - 1e-9:
        return 0.0
    covering = max(_share(shared, row.words, worth), _share(shared_deeds, row.deeds, worth))
    found = math.sqrt(covered * covering)
    telling = sum(word not in generic_terms() for word in both)
    return found if telling > 1 else found * _ONE_WORD


def _share(part: set[str], words: Sequence[str], worth: Worth) -> float:
    return sum(map(worth, part)) / sum(map(worth, words)) if part else 0.0


def same_deed(one: TriggerRow, other: TriggerRow) -> bool:
    """Whether two episodes' agents did the same: with the same tool, in nearly the same words."""
    if one.tool.casefold() != other.tool.casefold():
        return False
    mine, theirs = set(one.deeds), set(other.deeds)
    if not mine and not theirs:
        return bool(one.tool)
    return 2 * len(mine & theirs) / (len(mine) + len(theirs)) >= _SAME_DEED


def is_distinctive(words: Sequence[str]) -> bool:
    """Whether words alone name a situation: two of them say more than what people do everywhere."""
    return sum(word not in generic_terms() for word in words) > 1


# -- rules --------------------------------------------------------------------------------------------------------
def fit(one: PreparedSituation, rule: TriggerRow, worth: Worth) -> float:
    """How well a rule fits a situation, 0 where it does not apply.

    A rule with files applies where one of them is at hand, or where none is and its words are; one without files where
    three fifths of what its words are worth are in the situation, or all where only one of several says anything, as
    in ``npm run build``; a tool that differs rules it out.
    """
    if one.tool and rule.tool and one.tool != rule.tool.casefold():
        return 0.0
    at_hand = _at_hand(one, rule.files) if rule.files and one.files else 0.0
    if rule.files and one.files and not at_hand:
        return 0.0
    shared = set(one.words).intersection(rule.words)
    if not rule.files and not is_distinctive(rule.words) and len(shared) < len(set(rule.words)):
        return 0.0
    covered = _share(shared, rule.words, worth) if rule.words else 0.0
    if not rule.words and (at_hand or (not rule.files and rule.tool and one.tool)):
        return APPLIES
    found = 1.0 - (1.0 - at_hand) * (1.0 - covered)
    return found if found >= APPLIES - 1e-9 else 0.0


def _at_hand(one: PreparedSituation, globs: Sequence[str]) -> float:
    best = 0.0
    for glob in globs[:_MOST_GLOBS]:
        for file in one.files[:_MOST_TRIED] if best < _LITERAL else ():
            best = max(best, means(glob, file))
    return best


def means(glob: str, file: str) -> float:
    """How surely a rule's glob means a file: 0.6 where it names it, 0.4 where it has a wildcard, 0 where it does not.

    Either may be written from further up than the other; an ordinary name alone, such as ``models.py``, may be any.
    """
    pattern, parts = posixpath.normpath(glob).split("/"), file.split("/")
    short = min(len(pattern), len(parts))
    if not is_wild(glob) and pattern[-short:] == parts[-short:]:
        return _LITERAL if short > 1 or len(pattern) == len(parts) or not _is_ordinary(parts[-1]) else 0.0
    return _WILD if fits(glob, file, anywhere=True) else 0.0


def _is_ordinary(name: str) -> bool:
    return name.casefold() in _COMMON_NAMES


KINDS = frozenset({EPISODIC, RULE})
"""The types whose items may be episodes or rules."""
_VERSION = 2
_TEXT = 300
_MOST_IDS = 100
_UNVOUCHED = 0.5
_LAST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()


def maker() -> str:
    """The name of the rules that rows are made by."""
    return f"{_VERSION}/{identity()}"


def row_of(item: MemoryItem, blob: str) -> TriggerRow:
    """The row of an item; of one that is neither an episode nor a rule, ``sort`` is "".

    Args:
        blob: what its file held.
    """
    row = TriggerRow(
        id=item.id,
        path=item.path,
        blob=blob,
        sort="",
        trust=item.trust,
        status=item.status,
        pinned=item.pinned,
        supersedes=item.supersedes[:_MOST_IDS],
        expires=_seconds(item.expires) if item.expires else 0.0,
    )
    if item.type == RULE:
        data, pattern = item.data, text_in(item.data.get("pattern"))
        return row._replace(
            sort=RULE,
            tool=text_in(data.get("tool")),
            files=plain_files(texts_in(data.get("files"))),
            words=words_of(pattern or ("" if data.get("files") or data.get("tool") else item.title or item.content)),
            context=_short(pattern),
            did=_short(text_in(data.get("action")) or item.content or item.title),
            time=_seconds(item.updated or item.timestamp or item.created or EPOCH),
            confidence=confidence_of(item),
        )
    episode = episode_of(item)
    if episode is None:
        return row
    state, error = episode.state, episode.error_message
    if len(error) > _TEXT:  # its end, too: the last line of a traceback says what happened
        error = f"{error[: _TEXT // 3]}\n{error[-(_TEXT - _TEXT // 3 - 1) :]}"
    return row._replace(
        sort=EPISODE,
        outcome=episode.outcome.value,
        tool=episode.action.tool or state.tool,
        files=plain_files(state.files),
        words=words_of(state.context),
        deeds=words_of(episode.action.description),
        context=_short(state.context),
        did=_short(episode.action.description),
        error=error,
        time=_seconds(episode.timestamp),
        warned=episode.warned[:_MOST_IDS],
        agent=state.agent,
        session=state.session,
        task=state.task,
    )


def confidence_of(item: MemoryItem) -> float:
    """How sure a rule is, 0 to 1: one without a figure is believed where a person vouches for it."""
    stated = item.data.get("confidence")
    if isinstance(stated, (int, float)) and not isinstance(stated, bool):
        return min(max(float(stated), 0.0), 1.0)
    return 1.0 if item.trust in VOUCHED else _UNVOUCHED


def _seconds(moment: datetime) -> float:
    """Seconds since 1970, so that they can be turned back: rounding goes beyond no calendar."""
    return min(moment.timestamp(), _LAST)


def _short(text: str) -> str:
    return " ".join(text[:1_200].split())[:_TEXT]

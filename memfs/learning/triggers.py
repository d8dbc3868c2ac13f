"""Stores episodes, finds those and the rules that a situation brings to mind, and logs the warnings given.

The table of them, by file, word and tool, is kept in memory in step with the files. What it costs does not grow with
rows that have nothing to do with the situation. Age and later successes weigh
on a match.
"""

from __future__ import annotations

import heapq
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from math import floor, inf, log
from pathlib import Path
from sys import intern

from memfs.catalog.facts import Key
from memfs.catalog.facts import maker as fact_maker
from memfs.errors import MemfsError
from memfs.fs import append_log
from memfs.fs.lock import reset_on_fork
from memfs.intake.episode_item import EPISODIC, episode_of, item_of
from memfs.learning import situations
from memfs.learning.situations import PreparedSituation
from memfs.model import Candidate, MemoryItem
from memfs.model.episode import ENDED, RULE, THRESHOLD, Episode, Outcome, StateSnapshot, TriggerRow, is_wild
from memfs.model.ids import stem_of
from memfs.model.item import BY_TRUST, Trust, trust_rank
from memfs.model.time import utc_now
from memfs.search.columns import StampTable
from memfs.search.terms import generic_terms
from memfs.startup import Any, json, sha256
from memfs.store import Store
from memfs.store.parts import CONTENT, Fire
from memfs.store.reader import FolderReader

_PRIOR = 5.0
_GENERIC_SHARE = 0.25
_MOST_PER_FILE = 300
_MOST_CANDIDATES = 400
_MOST_APPLYING = 1_000
_CHEAP = 8
FAILURE, OTHER = "failure", "other"
_ANY = "*"
_SORTS = (FAILURE, OTHER, RULE)


class TriggerTable:
    """The rows by path, found by word and by the name of a file. Not safe for several threads: the holder sees to that.

    ``changes`` rises whenever a row comes or goes.
    """

    def __init__(self, generic: Callable[[], Collection[str]]) -> None:
        """``generic`` gives the terms that say little."""
        self._generic = generic
        self._rows: dict[str, TriggerRow] = {}
        self._by_word: dict[tuple[str, str], list[str]] = {}
        self._by_file: dict[tuple[str, str], list[str]] = {}
        self._worths: dict[str, float] = {}
        self._replaced: Counter[tuple[str, int]] = Counter()
        self.changes = 0

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[TriggerRow]:
        return iter(self._rows.values())

    def put(self, row: TriggerRow) -> None:
        """Add a row in place of what its file had; none of an item that is neither an episode nor a rule."""
        self.remove(row.path)
        if not row.sort:
            return
        self._rows[row.path] = row
        for holders, key in self._keys(row):
            holders.setdefault(key, []).append(row.path)
        for one in row.supersedes:
            self._replaced[one, trust_rank(row.trust)] += 1

    def remove(self, path: str) -> None:
        """Forget the row of a file; one that is not known is passed over."""
        self.changes += 1
        self._worths.clear()
        row = self._rows.pop(path, None)
        if row is None:
            return
        for holders, key in self._keys(row):
            holders[key].remove(path)
        for one in row.supersedes:
            self._replaced[one, trust_rank(row.trust)] -= 1

    def _keys(self, row: TriggerRow) -> Iterator[tuple[dict[tuple[str, str], list[str]], tuple[str, str]]]:
        """Where a row is found: by its words and its files' names, among rows of its sort."""
        sort, names = (FAILURE if row.outcome == FAILURE else OTHER), {file.rpartition("/")[2] for file in row.files}
        if row.sort == RULE:  # with words, a wildcard alone does not make it apply
            sort, names = RULE, {_name_in(glob) for glob in row.files if not row.words or not is_wild(glob)}
            names = names if row.files or row.words else {_ANY}
        yield from ((self._by_word, (sort, word)) for word in dict.fromkeys((*row.words, *row.deeds)))
        yield from ((self._by_file, (sort, name)) for name in names)

    def replaced(self, row: TriggerRow) -> bool:
        """Whether another row says that it replaces this one, and is vouched for as well: no tool silences a person."""
        return any(self._replaced[row.id, level] for level in range(trust_rank(row.trust), len(BY_TRUST)))

    # -- words ------------------------------------------------------------------------------------------------------
    def worth(self, word: str) -> float:
        """What a term is worth: the logarithm of how few rows have it; a quarter of that for one that says little."""
        known = self._worths.get(word)
        if known is not None:
            return known
        held = sum(len(self._by_word.get((sort, word), ())) for sort in _SORTS)
        found = log(1.0 + (len(self._rows) + _PRIOR) / (held + 0.5))
        self._worths[word] = found = found * _GENERIC_SHARE if word in self._generic() else found
        return found

    # -- candidates -------------------------------------------------------------------------------------------------
    def candidates(
        self, sort: str, names: Iterable[str], weights: Mapping[str, float], share: float, most: int = _MOST_CANDIDATES
    ) -> list[TriggerRow]:
        """Episodes that have one of the file names, or words worth so great a share of all that are given.

        Args:
            sort: ``failure`` or ``other``.
            weights: what each word is worth.
            most: how many at most, the newest.
        """
        paths = {path for name in names for path in self._by_file.get((sort, name), ())[-_MOST_PER_FILE:]}
        paths.update(self._sharing(sort, weights, share))
        return heapq.nlargest(most, map(self._rows.__getitem__, paths), key=lambda row: row.time)

    def applying(self, files: Sequence[str], words: Sequence[str]) -> list[TriggerRow]:
        """The rules that may apply, by word and by file; of more than 1,000 the surest."""
        names = {_ANY, *(part for file in files for part in file.split("/"))}
        found = [self._by_file.get((RULE, name), ()) for name in names]
        found += [self._by_word.get((RULE, word), ()) for word in words]
        rows = map(self._rows.__getitem__, set().union(*found))
        return heapq.nlargest(_MOST_APPLYING, rows, key=lambda row: row.confidence)

    def _sharing(self, sort: str, weights: Mapping[str, float], share: float) -> list[str]:
        """Paths of rows whose words may be worth the share; of words that many have, only where it costs little."""
        rest = sum(weights.values())
        least = share * rest
        reached: dict[str, float] = {}
        asked = [(weight, self._by_word.get((sort, word), [])) for word, weight in weights.items()]
        for weight, paths in sorted(asked, key=lambda pair: len(pair[1])):
            # Rarest first: what shares none of the words up to here cannot reach the least any more.
            if rest >= least:
                for path in paths:
                    reached[path] = reached.get(path, 0.0) + weight
            elif len(paths) < _CHEAP * len(reached):
                for path in reached.keys() & paths:
                    reached[path] += weight
            else:
                least -= weight  # not counted: a row that comes near enough is looked at closely
            rest -= weight
        return [path for path, weight in reached.items() if weight >= least - 1e-9]


def _name_in(glob: str) -> str:
    """The name that a rule's glob ends in; where that has a wildcard, the rule is held against every file."""
    name = glob.rstrip("/").rpartition("/")[2]
    return _ANY if is_wild(name) or "[" in name else name


# -- as a fact ------------------------------------------------------------------------------------------------------
_DECIDED = TriggerRow._fields.index("sort")
_LISTED = [at for at, value in enumerate(TriggerRow("", "", "", "")[_DECIDED:]) if isinstance(value, tuple)]


def packed(row: TriggerRow) -> str:
    """What the bytes of a row's file decide of it, as JSON: all but the first three fields and the last."""
    return json.dumps(row[_DECIDED:-1], separators=(",", ":"))


def unpacked(id: str, path: str, blob: str, fact: Any) -> TriggerRow:  # noqa: A002
    """The row of a file again; equal words of all rows are one text in memory.

    Raises:
        LookupError, TypeError: the fact holds something else.
    """
    for at in _LISTED:
        fact[at] = tuple(map(intern, fact[at]))
    return TriggerRow._make((id, path, blob, *fact, 0.0))


_AGEING = 1.5
_SOOTHING = 12.0
_SAME_AGAIN = 2
_WORTH_LOOKING = 24
_COMPARED, _SHOWN = 400, 60
_STEPS, _AS_MUCH = 20, 0.95
_MOST_REMEMBERED = 1_000
_BY_FILE_ALONE = 3
_MOST_RULES = 20
_MANY = 500
"""After how many changes the table is made again: taking each row out costs more."""


class TriggerRows:
    """What is known of each episode and rule, one row a file, in step with the files. Not safe for several threads.

    The catalog keeps them for the next process, and which files of the index's base have any.

    Attributes:
        rows: by path, as the files were at the last ``update``.
    """

    def __init__(self, store: FolderReader) -> None:
        """Nothing is read before the first ``update``."""
        self._store, self._index = store, store.index_sync.index
        self._folders = tuple(f"{CONTENT}/{kind.folder}/" for kind in store.kinds if kind.name in situations.KINDS)
        self._catalog, self._maker = store.items.catalog, fact_maker("trigger", situations.maker())
        self._own: Key = self._index.folder.name, "base"
        self.rows: dict[str, TriggerRow] = {}
        self._seen: tuple[StampTable, Mapping[str, str]] | None = None
        self._below: Mapping[str, str] = {}
        self._sorted = False
        self._missed: set[str] = set()

    def update(self) -> Mapping[str, TriggerRow | None]:
        """Bring the rows in step with the index; what cannot be read now is tried again the next time.

        Returns:
            The rows that came or changed, by path; None for those that are gone.
        """
        with self._index.held():
            base, stamps, named = self._index.base_stamps(), self._index.stamps(), self._index.base[1]
            rows = (row for folder in self._folders for row in stamps.over_below(folder).items())
            over = {path: blob for path, blob in rows if blob != base.blob(path)}
        changed: dict[str, TriggerRow | None] = {}
        if self._seen is None or self._seen[0] is not base or self._seen[1] != over:
            self._compare(base, named, over, changed)
        lacking = stamps.stamps([*self._missed])
        fresh: dict[Key, str] = {}
        for path, item, exact in self._store.load_all(lacking):
            blob = lacking[path].blob
            self.rows[path] = changed[path] = row = situations.row_of(item, blob)
            self._missed.discard(path)
            if exact and item.created is not None:  # else the time of the row may be that of the file
                fresh[self._store.items.key(path, blob)] = packed(row)
        if named and not self._sorted and not self._missed and over.keys().isdisjoint(self._below):
            fresh[self._own] = json.dumps([named, [path for path in self._below if self.rows[path].sort]])
            self._sorted = True
        self._catalog.keep(self._maker, fresh)
        return changed

    def _compare(
        self, base: StampTable, named: str, over: Mapping[str, str], changed: dict[str, TriggerRow | None]
    ) -> None:
        """Forget the rows that are no longer what the files hold, and take those that the catalog has.

        Args:
            named: the digest of the base, "" where there is none.
        """
        if self._seen is None or self._seen[0] is not base:
            kept: Any = self._catalog.found(self._maker, [self._own]).get(self._own) or ["", ()]
            self._sorted = bool(named) and kept[0] == named
            files = ((path, base.blob(path)) for path in kept[1]) if self._sorted else base.blobs()
            self._below = {path: blob for path, blob in files if path.startswith(self._folders)}
        held = {path: blob for path, blob in {**self._below, **over}.items() if blob}
        for path in [path for path, row in self.rows.items() if row.blob != held.get(path)]:
            del self.rows[path]
            changed[path] = None
        keys = {path: self._store.items.key(path, blob) for path, blob in held.items() if path not in self.rows}
        facts = self._catalog.found(self._maker, keys.values())
        for path, key in keys.items():
            with suppress(ValueError, TypeError, LookupError):
                self.rows[path] = changed[path] = unpacked(stem_of(path), path, key[0], facts[key])
        self._missed = {path for path in keys if path not in self.rows}
        self._seen = base, over


class Triggers:
    """The table of episodes and rules of one workspace, in step with its files. May be used from several threads."""

    def __init__(self, store: FolderReader, clock: Callable[[], datetime], ageing: bool = True) -> None:
        """Nothing is read before the first question.

        Args:
            clock: returns what counts as the present.
            ageing: whether what is old counts less (``memory.decay``).
        """
        self._store, self._clock = store, clock
        self._rows = TriggerRows(store)
        half_lives = {kind.name: kind.half_life_days for kind in store.kinds}
        self._half_life = half_lives[EPISODIC] if ageing else 0.0
        self._table: TriggerTable | None = None
        self._after: dict[tuple[str, float], tuple[int, tuple[int, int]]] = {}
        self._lock = threading.RLock()
        reset_on_fork(self)

    # -- asking -----------------------------------------------------------------------------------------------------
    def episodes(self, state: StateSnapshot, threshold: float = THRESHOLD, limit: int = 3) -> list[TriggerRow]:
        """The episodes that resemble a situation, the most similar first.

        Failures come with what age and later successes leave of them, of those that say the same only the one that
        counts most; where there are fewer than ``limit``, other outcomes fill the rest.

        Args:
            threshold: how similar they must be, 0 to 1.
        """
        one, limit = situations.asked(state), max(limit, 0)
        with self._current() as table:
            found = self._failures(table, one, threshold, limit)
            if len(found) < limit:
                alike_ones = self._near(table, one, OTHER, threshold, _SHOWN)
                fresh = [(value, row) for value, row in alike_ones if not self._ended(table, row)]
                found += [row._replace(similarity=value) for value, row in fresh[: limit - len(found)]]
        return sorted(found, key=lambda row: (-round(row.similarity, 9), -row.time, row.id))

    def rules(self, state: StateSnapshot, min_confidence: float = THRESHOLD) -> list[TriggerRow]:
        """The rules that apply to a situation, those first that are surest and fit best.

        Of rules for a very file whose words are not in the situation there are three: a file about which much was
        learned would repeat all of it at each edit.

        Args:
            min_confidence: how sure they must be, 0 to 1.
        """
        one = situations.asked(state)
        with self._current() as table:
            sure = (
                row
                for row in table.applying(one.files, one.words)
                if row.confidence >= min_confidence and not self._ended(table, row)
            )
            fitting = [(value, row) for row in sure if (value := situations.fit(one, row, table.worth))]
        fitting.sort(key=lambda pair: (-pair[0] * pair[1].confidence, pair[1].id))
        by_file = [row.path for _, row in fitting if row.words and not set(row.words).intersection(one.words)]
        further = set(by_file[_BY_FILE_ALONE:])
        return [row for _, row in fitting if row.path not in further][:_MOST_RULES]

    def rows(self, sort: str = "") -> Sequence[TriggerRow]:
        """All episodes and rules as the files have them now, oldest first.

        Args:
            sort: ``episode`` or ``rule`` for these alone.
        """
        with self._current() as table:
            found = [row for row in table if sort in ("", row.sort)]
        return sorted(found, key=lambda row: (row.time, row.id))

    def count(self) -> int:
        """How many episodes there are."""
        with self._current() as table:
            return sum(row.sort != RULE for row in table)

    def load(self, row: TriggerRow) -> MemoryItem | None:
        """The item behind a row as its file has it now, None where the file is no longer what was found."""
        kind = RULE if row.sort == RULE else EPISODIC
        found = self._store.load(Candidate(id=row.id, path=row.path, similarity=0.0, type=kind, time=0))
        return found.item if found is not None else None

    # -- failures ---------------------------------------------------------------------------------------------------
    def _failures(self, table: TriggerTable, one: PreparedSituation, threshold: float, limit: int) -> list[TriggerRow]:
        found: list[TriggerRow] = []
        given: set[tuple[str, str]] = set()
        looked = 0
        for value, row in self._near(table, one, FAILURE, threshold):
            aged = value if row.pinned else self._aged(value, row)
            if aged < threshold or self._ended(table, row) or (row.did, row.error) in given:
                continue
            given.add((row.did, row.error))
            successes, failures = self._since(table, row, value)
            left = aged / (1.0 + successes / (_SOOTHING * (1 + failures)))
            if left >= threshold or row.pinned:
                found.append(row._replace(similarity=left))
            looked += 1
            if looked >= _WORTH_LOOKING or len(found) >= 2 * limit:
                break
        return sorted(found, key=lambda row: -row.similarity)[:limit]

    @staticmethod
    def _near(
        table: TriggerTable,
        one: PreparedSituation,
        sort: str,
        threshold: float,
        most: int = _COMPARED,
        after: float = -inf,
    ) -> list[tuple[float, TriggerRow]]:
        """Episodes of a sort that are alike enough by themselves, the most alike first, of equal ones the newest."""
        weights = {word: table.worth(word) for word in one.words}
        rows = table.candidates(sort, one.by_name, weights, situations.share_needed(threshold), most)
        valued = (
            (situations.alike(one, row, weights, table.worth, threshold), row) for row in rows if row.time > after
        )
        near = [(value, row) for value, row in valued if value >= threshold]
        return sorted(near, key=lambda pair: (-round(pair[0], 9), -pair[1].time, pair[1].id))

    def _aged(self, value: float, row: TriggerRow) -> float:
        """What age leaves of a likeness: nothing is taken from a repetition, more from what is less alike."""
        if not self._half_life:
            return value
        days = max(self._clock().timestamp() - row.time, 0.0) / 86_400
        return float(value ** (1.0 + _AGEING * (1.0 - 0.5 ** (days / self._half_life))))

    def _since(self, table: TriggerTable, row: TriggerRow, value: float) -> tuple[int, int]:
        """What successes weigh, and how many failures are, afterwards in situations as much like the failure's as this.

        Args:
            value: how much that is; differences of less than a twentieth do not count.
        """
        least = min(floor(value * _STEPS) / _STEPS, _AS_MUCH)
        known = self._after.get((row.path, least))
        if known is None or known[0] != table.changes:
            if len(self._after) > _MOST_REMEMBERED:
                self._after.clear()
            again = situations.asked_again(row)
            others = self._near(table, again, OTHER, least, after=row.time)
            failures = self._near(table, again, FAILURE, least, after=row.time)
            against = (_speaks_against(row, one) for _, one in others if one.outcome == Outcome.SUCCESS.value)
            known = self._after[row.path, least] = table.changes, (sum(against), len(failures))
        return known[1]

    def _ended(self, table: TriggerTable, row: TriggerRow) -> bool:
        expired = bool(row.expires) and row.expires <= self._clock().timestamp()
        return expired or row.status in ENDED or table.replaced(row)

    # -- keeping in step --------------------------------------------------------------------------------------------
    @contextmanager
    def _current(self) -> Iterator[TriggerTable]:
        """The table as the files are now; no other thread changes it meanwhile."""
        self._store.follow()
        with self._lock:
            table = self._table
            self._table = None  # half of the changes would be taken for all
            changed = self._rows.update()
            if table is None or len(changed) > _MANY:
                self._after.clear()
                table, changed = TriggerTable(generic_terms), self._rows.rows
            for path, row in sorted(changed.items(), key=lambda one: one[1].time if one[1] else 0.0):
                if row is None:
                    table.remove(path)
                else:
                    table.put(row)
            self._table = table
            yield table


def _speaks_against(row: TriggerRow, success: TriggerRow) -> int:
    """What a later success says against a failure: most where everything was the same, nothing where a warning may have
    been heeded.
    """
    if situations.same_deed(row, success):
        return _SAME_AGAIN if situations.is_repetition(situations.asked_again(success), row) else 1
    return 0 if success.warned else 1


class Episodes:
    """The episodes of one workspace. May be used from several threads."""

    def __init__(self, store: Store, triggers: Triggers, fire: Fire = lambda _occasion, _facts: None) -> None:
        self._store, self._triggers, self._fire = store, triggers, fire

    def record(self, episode: Episode, *, trust: str = Trust.AGENT.value, source: str = "episodes") -> Episode:
        """Store an episode; on return it survives power loss, and a situation like it brings it to mind.

        Args:
            episode: one with an id is stored under it, and only once.
            trust: ``agent``; ``tool`` where only a tool vouches for what it says.
            source: which door it came through, for the commit's trailers.

        Returns:
            The episode as it was stored, with its id: long texts cut, secrets replaced.

        Raises:
            IdInvalid, IdExists: the id it came with is invalid or taken.
            ContentError, StorageIO: nothing was stored.
        """
        item = item_of(episode, trust)
        stored = self._store.put(item, expected="", message=f"Record an episode: {item.title}", source=source)
        recorded = episode_of(stored)
        assert recorded is not None, "an episode's item is an episode"
        self._fire("memory_stored", {"item": stored})
        self._fire("episode_recorded", {"episode": recorded, "item": stored})
        return recorded

    def find_similar(self, state: StateSnapshot, limit: int = 3, threshold: float | None = None) -> list[Episode]:
        """The episodes that resemble a situation, as their files have them now, the most similar first.

        Failures count with what age and later successes leave of them, and are not crowded out: other outcomes fill
        what room is left. Of failures that say the same there is one.

        Args:
            threshold: how similar, 0 to 1; None for 0.7.
        """
        found = self._triggers.episodes(state, THRESHOLD if threshold is None else threshold, limit)
        items = (self._triggers.load(one) for one in found)
        episodes = (episode_of(item) for item in items if item is not None)
        return [episode for episode in episodes if episode is not None]

    def count(self) -> int:
        """How many episodes there are."""
        return self._triggers.count()

    def read(self, episode_id: str) -> Episode | None:
        """The episode with that id, None where there is none.

        Raises:
            ContentError: its file is invalid at present.
        """
        item = self._store.get(episode_id)
        return episode_of(item) if item is not None else None


LOG = "warned.log"
_MOST = 256 * 1024
_MOST_IDS, _LONGEST = 100, 300
_LASTS = 24 * 3600.0
_NEARLY = 3600.0


class WarningHistory:
    """The latest warnings by situation, in a log that all processes of one workspace share.

    It holds ids, times and digests of situations, and no text. No method raises because of the disk: without the log
    the worth of a few warnings is lost, and no warning.
    """

    def __init__(self, folder: Path, clock: Callable[[], datetime] = utc_now) -> None:
        """``folder``: the workspace's private state."""
        self._path, self._clock = folder / LOG, clock

    def note(self, state: StateSnapshot, ids: Iterable[str]) -> None:
        """Remember what a situation was warned with; nothing, where it was not."""
        named = [one[:_LONGEST] for one in dict.fromkeys(ids)][:_MOST_IDS]
        if named or self.of(state):
            row = [self._clock().timestamp(), *_identities(state), named]
            with suppress(MemfsError, OSError):
                append_log.note(self._path, json.dumps(row).encode("ascii"), _MOST)

    def of(self, state: StateSnapshot) -> tuple[str, ...]:
        """What a situation was warned with when it was last asked about, within a day.

        Without a question about this very situation, what the same agent was warned with in the same session within an
        hour about the same files: what it did is often described in other words than what it was about to do.
        """
        exact, near = _identities(state)
        now = self._clock().timestamp()
        shape = [float, str, str, list]
        noted = (row for row in append_log.noted(self._path, _MOST) if list(map(type, row)) == shape)
        # processes write in whatever order
        rows = sorted((row for row in noted if set(map(type, row[3])) <= {str}), key=lambda row: row[0])
        asked = [ids for time, same, _, ids in rows if same == exact and abs(now - time) <= _LASTS]
        nearly = [ids for time, _, like, ids in rows if near and like == near and abs(now - time) <= _NEARLY]
        return next((tuple(found[-1][:_MOST_IDS]) for found in (asked, nearly) if found), ())


def _identities(state: StateSnapshot) -> tuple[str, str]:
    """What makes a situation the same when its outcome is recorded: by then the tool is known, and more facts."""
    files = sorted(situations.plain_files(state.files))
    who = [state.agent, state.session]
    return _digest([*files, "", " ".join(state.context.split()), *who]), _digest([*files, "", *who]) if files else ""


def _digest(parts: Iterable[str]) -> str:
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:24]

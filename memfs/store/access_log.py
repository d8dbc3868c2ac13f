"""Records what was handed out: when, and to whom.

The files are private to this user, in the workspace's state folder, bounded by size and age. Deleting them loses the
record and nothing else, and a disk that takes no writes costs lines, never answers.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import MappingProxyType

from memfs.dataclass import NamedTuple
from memfs.errors import LockTimeout, MemfsError, WorkspaceClosed
from memfs.fs import io
from memfs.model import Hit
from memfs.model.time import given_time
from memfs.startup import Any, json

_TEXTS = ("way", "door", "agent", "session", "question")


class AccessRecord(NamedTuple):
    """Items that were handed out together, or an item that feedback was given on, with one of ``MARKS`` as the way.

    Attributes:
        time: when.
        way: ``recall``, ``automatic``, ``triggered`` or ``read``.
        door: what they went through, such as ``cli``, ``mcp``, ``hook`` or ``python``.
        agent, session: who received them, "" where it is unknown.
        ids: the items.
        question: what was asked, where the settings keep that.
        reasons: the score and the factors of each hit, by id, where the settings keep that.
    """

    time: datetime
    way: str
    door: str
    agent: str
    session: str
    ids: tuple[str, ...]
    question: str = ""
    reasons: Mapping[str, Mapping[str, float]] = MappingProxyType({})


def reduced(row: AccessRecord, gone: frozenset[str]) -> AccessRecord:
    """A line without some items."""
    reasons = {key: value for key, value in row.reasons.items() if key.casefold() not in gone}
    return row._replace(ids=tuple(one for one in row.ids if one.casefold() not in gone), reasons=reasons)


def line_of(row: AccessRecord) -> bytes:
    """A line of the record."""
    given = {"at": row.time.isoformat(timespec="microseconds")}
    given |= {name: value for name in _TEXTS if (value := getattr(row, name))}
    more = {"reasons": row.reasons} if row.reasons else {}
    return json.dumps(given | {"items": row.ids} | more, separators=(",", ":")).encode()


def rows_in(data: bytes) -> Iterator[AccessRecord]:
    """The lines of a file; a full disk, a kill or a person may have left others."""
    for line in data.split(b"\n"):
        if line:
            with suppress(ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
                yield _handed(json.loads(line))


def _since(oldest: datetime, data: bytes) -> bytes:
    return b"".join(line_of(row) + b"\n" for row in rows_in(data) if row.time >= oldest)


def _handed(row: Mapping[str, Any]) -> AccessRecord:
    texts = {name: row.get(name, "") for name in _TEXTS}
    ids = tuple(one[0] if isinstance(one, list) else one for one in row["items"])  # once with its version
    if not ids or not all(isinstance(text, str) for text in (*texts.values(), *ids)):
        raise TypeError("not what memfs writes")
    moment = datetime.fromisoformat(row["at"])
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    reasons = {
        key: {name: float(value) for name, value in factors.items()} for key, factors in row.get("reasons", {}).items()
    }
    return AccessRecord(time=moment, ids=ids, reasons=reasons, **texts)


class Recipient(NamedTuple):
    """Through which door items go, and who receives them; "" for what is not known."""

    door: str = ""
    agent: str = ""
    session: str = ""


_recipient: ContextVar[Recipient | None] = ContextVar("memfs-recipient", default=Recipient())  # noqa: B039  frozen


@contextmanager
def _within(recipient: Recipient | None) -> Iterator[None]:
    token = _recipient.set(recipient)
    try:
        yield
    finally:
        _recipient.reset(token)


def served_to(door: str = "", agent: str = "", session: str = "") -> AbstractContextManager[None]:
    """What this thread hands out within goes through this door, to this agent; what was said further out holds."""
    outer = _recipient.get()
    if outer is None:
        return _within(None)
    return _within(Recipient(door=outer.door or door, agent=outer.agent or agent, session=outer.session or session))


def not_handed_out() -> AbstractContextManager[None]:
    """What this thread finds within stays with memfs, or is noted by the caller that chooses what is handed out."""
    return _within(None)


def recipient() -> Recipient | None:
    """Who receives what is handed out now; None where it stays with memfs."""
    return _recipient.get()


HELPED, REFUSED, CORRECTED = MARKS = ("helped", "refused", "corrected")
"""What may be said of an item that was handed out."""
SCORE = "score"
"""What a hit's score is called among the factors that made it."""
FOLDER = "served"
"""Where the record is, below a workspace's state folder."""
_FILE = "log.jsonl"
_MEGABYTE, _MOST = 1 << 20, 1 << 30
_SLACK = 1.125
"""Lines are removed once they exceed their age by this factor: not every day again."""
_EXPLAINED = 20
"""How many hits of an answer are noted with what made their scores."""
_ABOVE = 2  # the folder of the repository, which is never made, above that of its workspaces and that of this one
_LONGEST_NAME = 200
_LONGEST_QUESTION = 500
_WAIT = 0.05


def named(ids: Iterable[str], unnamed: str) -> Iterator[str]:
    """The ids that do not begin like those that are not written down; all of them where nothing is left out."""
    return (one for one in ids if not unnamed or not one.startswith(unnamed))


class ServedLog:
    """The record of one workspace. May be used from several threads and processes.

    No method raises because of the disk: ``problem`` says why lines were lost, "" while none were.
    """

    def __init__(
        self,
        folder: Path,
        *,
        on: bool = True,
        questions: bool = False,
        reasons: bool = False,
        days: int = 90,
        megabytes: int = 16,
        unnamed: str = "",
    ) -> None:
        """
        Args:
            folder: where the record is; it is made with the first line.
            on: whether anything is written down.
            questions: whether questions are written down, too.
            reasons: whether it is written down what made the scores of hits, and what was said of items.
            days, megabytes: how long lines are kept, and how much of them.
            unnamed: what ids begin with that are not written down here; "" for none.
        """
        self._folder, self._path = folder, folder / _FILE
        self._on, self._questions, self._reasons = on, questions, reasons
        self._age, self._room = timedelta(days=days), min(megabytes * _MEGABYTE, _MOST)
        self._unnamed = unnamed
        self._first: tuple[int, datetime] | None = None
        self.closed = False
        self.problem = ""

    def note_in(self, notes: Path) -> None:
        """Write into another folder of notes from here on, where no id is left out."""
        self._folder, self._path = notes / FOLDER, notes / FOLDER / _FILE
        self._first, self._unnamed = None, ""

    def _require_open(self) -> None:
        if self.closed:
            raise WorkspaceClosed(path=str(self._folder))

    # -- noting -------------------------------------------------------------------------------------------------------
    def note(
        self,
        way: str,
        ids: Iterable[str],
        now: datetime,
        *,
        agent: str = "",
        session: str = "",
        question: str = "",
        hits: Sequence[Hit] = (),
    ) -> None:
        """Write down that items were handed out, in the order given.

        It costs less than a third of a millisecond, and is not made durable: a power cut may lose the last lines.

        Args:
            agent, session: to whom, where the door did not say.
            question: what was asked; written down only where the settings say so.
            hits: what they were as answers to the question; written down only where the settings say so.
        """
        self._require_open()
        to = recipient() if self._on else None
        chosen = tuple(named(dict.fromkeys(ids), self._unnamed)) if to is not None else ()
        if to is None or not chosen:
            return
        reasons: dict[str, dict[str, float]] = {}
        if self._reasons:  # the score and factors of the best of these hits, in four digits
            for hit in [hit for hit in hits if hit.item.id in chosen][:_EXPLAINED]:
                factors = {SCORE: hit.score, **hit.reasons}
                reasons[hit.item.id] = {name: float(f"{value:.4g}") for name, value in factors.items()}
        row = AccessRecord(
            time=now.astimezone(UTC),
            way=way,
            door=to.door or "python",
            agent=(to.agent or agent)[:_LONGEST_NAME],
            session=(to.session or session)[:_LONGEST_NAME],
            ids=chosen,
            question=question[:_LONGEST_QUESTION] if self._questions else "",
            reasons=reasons,
        )
        try:
            self._append(line_of(row), row.time)
        except (MemfsError, OSError) as error:
            self.problem = f"served items were not recorded: {error}"

    def mark(self, way: str, item_id: str, now: datetime) -> None:
        """Write down what was said of an item, one of ``MARKS``, where the settings say so."""
        if self._reasons:
            self.note(way, [item_id], now)

    def _append(self, data: bytes, now: datetime) -> None:
        from memfs.fs import append_log  # most commands hand nothing out

        try:
            inode = append_log.note(self._path, data, self._room, wait=_WAIT)
        except FileNotFoundError:  # the first line of all, or the folder was removed
            io.make_private_folder(self._folder, self._folder.parents[_ABOVE])
            inode = append_log.note(self._path, data, self._room, wait=_WAIT)
        if self._first is None or self._first[0] != inode:  # when its first line was written, looked at once a file
            with self._path.open("rb") as file:
                first = next(rows_in(file.read(1 << 16)), None)
            self._first = inode, first.time if first is not None else now
        if now - self._first[1] > self._age * _SLACK:
            with suppress(LockTimeout):  # the next line tries again
                append_log.rewrite(self._path, partial(_since, now - self._age), wait=_WAIT)

    # -- asking -------------------------------------------------------------------------------------------------------
    def find(
        self,
        ids: Collection[str] = (),
        *,
        agent: str = "",
        session: str = "",
        since: datetime | None = None,
        now: datetime | None = None,
    ) -> list[AccessRecord]:
        """What was handed out, newest first.

        Args:
            ids: only what held one of these items, whatever the letter case; empty: anything.
            agent, session: only what this agent, or a session of this name, was given.
            since: not before this time.
            now: the present, by which lines are too old to be reported.
        """
        self._require_open()
        oldest = (now or datetime.now(UTC)) - self._age
        oldest = oldest if since is None else max(given_time(since), oldest)
        keys = frozenset(one.casefold() for one in ids)
        data = b""
        try:
            data = io.read_file(self._path)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except (MemfsError, OSError) as error:
            self.problem = f"the record of served items cannot be read: {error}"
        found = [
            row
            for row in rows_in(data)
            if row.time >= oldest
            and row.way not in MARKS
            and agent in ("", row.agent)
            and session in ("", row.session)
            and (not keys or any(one.casefold() in keys for one in row.ids))
        ]
        return sorted(found, key=lambda row: row.time, reverse=True)

    def size(self) -> int:
        """How many bytes the record has; 0 where none can be read."""
        try:
            found = self._path.lstat()
        except OSError:
            return 0
        return found.st_size if stat.S_ISREG(found.st_mode) else 0

    def newest(self, most: int) -> Iterator[AccessRecord]:
        """The lines within the last ``most`` bytes, oldest first, those with what was said of items among them."""
        if size := self.size():
            with suppress(OSError), self._path.open("rb") as file:
                file.seek(max(0, size - most))
                yield from rows_in(file.read(most))


OFF = ServedLog(Path(os.devnull), on=False)
"""A record that keeps nothing."""

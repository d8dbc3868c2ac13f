"""Conventions: what a team agreed on, and for which files it holds (seed 004, P3).

Owns reading them as values, and their order. How they travel between workspaces is
``memfs.pipeline.conventionsharing``'s business; how an agent is told of them, that of the sources.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from memfs.errors import ItemNotFound, QueryInvalid
from memfs.model import MemoryItem, Query
from memfs.model.globs import fits, plain
from memfs.model.item import VOUCHED
from memfs.model.kinds import nearest
from memfs.pipeline.wording import gist
from memfs.store.readable import Browsable

KIND = "convention"
PROPOSED, ACCEPTED, RETIRED = "proposed", "accepted", "retired"
STATUSES = (ACCEPTED, PROPOSED, RETIRED)


def withheld(item: MemoryItem) -> bool:
    """Whether no agent is given an item: a convention that is not accepted, or that no person stands behind (K8)."""
    return item.type == KIND and not (item.status.strip() == ACCEPTED and item.trust in VOUCHED)


@dataclass(frozen=True, slots=True)
class Convention:
    """One convention as its item has it; ``str`` is its title and its text on one line.

    Attributes:
        item: the item it was read from.
    """

    item: MemoryItem

    @property
    def id(self) -> str:
        """The item's id."""
        return self.item.id

    @property
    def title(self) -> str:
        """A short name, "" where it has none."""
        return self.item.title

    @property
    def text(self) -> str:
        """What it says, one line or several; its title where it has no other words."""
        return gist(self.item).strip()

    @property
    def status(self) -> str:
        """``proposed``, ``accepted``, ``retired``, or what somebody wrote there; "" where nothing stands."""
        return self.item.status.strip()

    @property
    def trust(self) -> str:
        """Who stands behind it."""
        return self.item.trust

    @property
    def owner(self) -> str:
        """The person or team to ask, "" where it names none."""
        written = self.item.data.get("owner", "")
        return " ".join(written.split()) if isinstance(written, str) else ""

    @property
    def supersedes(self) -> tuple[str, ...]:
        """The conventions that it replaces, once it is accepted."""
        return self.item.supersedes

    @property
    def scope(self) -> tuple[str, ...]:
        """The globs of the files it holds for; none means all."""
        written = self.item.data.get("scope", ())
        return tuple(one for one in written if isinstance(one, str)) if isinstance(written, list | tuple) else ()

    def holds_for(self, files: Iterable[str]) -> bool:
        """Whether it holds for any of these files; without files, and without a scope, it does."""
        named = [plain(path) for path in files]
        return not named or not self.scope or any(fits(glob, path) for glob in self.scope for path in named)

    def __str__(self) -> str:
        text = " ".join(self.text.split())
        title = " ".join(self.title.split())
        return text if not title or title == text else f"{title}: {text}"


class Conventions:
    """Reads the conventions of one workspace. May be used from several threads."""

    def __init__(self, store: Browsable, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._clock = clock

    def holding(self, files: Iterable[str] = (), status: str = ACCEPTED) -> list[Convention]:
        """The conventions of a status that hold for any of the files, or all of them without files (P3).

        Those that have expired, or that another one that holds replaces, are left out; behind what replaces one that a
        person stands behind, a person stands, too.

        Args:
            files: paths below the workspace or its repository, "/" separated; absolute ones are fine, too.
            status: ``accepted``, ``proposed`` or ``retired``.

        Returns:
            Pinned ones first, then by importance, then by id.

        Raises:
            QueryInvalid: there is no such status.
        """
        if status not in STATUSES:
            known = f"it is one of {', '.join(STATUSES)}"
            raise QueryInvalid(
                f"there is no status {ascii(status)[:60]}", field="status", hint=nearest(status, STATUSES) or known
            )
        if isinstance(files, str):
            raise QueryInvalid("expected a list of paths, got one text", field="files", hint=f"write [{files!r}]")
        named = tuple(files)
        return [one for one in self._present(status) if one.holds_for(named)]

    def every(self) -> list[Convention]:
        """All conventions whatever their status, in the order of ``holding``."""
        query = Query(types=frozenset({KIND}))
        loaded = (self._store.load(candidate) for candidate in self._store.seeking.every(query))
        found = [Convention(one.item) for one in loaded if one is not None and not one.stale]
        return sorted(found, key=_order)

    def find(self, reference: str) -> Convention:
        """The convention a person means: by id, or by the beginning of one.

        Raises:
            ItemNotFound: there is none, or the item is of another type.
        """
        item = self._store.find(reference)
        if item.type != KIND:
            raise ItemNotFound(
                f"{item.id!r} is of type {item.type}, not a convention", hint="'memfs convention list' names them"
            )
        return Convention(item)

    def _present(self, status: str) -> list[Convention]:
        now = self._clock()
        every = self.every()
        holding = [one for one in every if one.status == ACCEPTED and _lives(one, now)]
        replaced = {name for one in holding for name in one.item.supersedes}
        surely = {name for one in told(holding) for name in one.item.supersedes}  # no tool replaces a person's word
        present = (one for one in every if one.status == status and _lives(one, now))
        return [one for one in present if one.id not in (surely if one.trust in VOUCHED else replaced)]


def _lives(one: Convention, now: datetime) -> bool:
    return one.item.expires is None or one.item.expires > now


def _order(one: Convention) -> tuple[bool, float, str]:
    return (not one.item.pinned, -one.item.importance, one.id)


def told(conventions: Sequence[Convention]) -> list[Convention]:
    """Those that agents may be given without being asked: a person stands behind them."""
    return [one for one in conventions if one.trust in VOUCHED]

"""Conventions: what a team agreed on and for which files it holds, and how they are proposed, accepted and retired.

Agents get only conventions that a person vouched for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from memfs.dataclass import dataclass
from memfs.errors import ItemNotFound, QueryInvalid
from memfs.format.secrets import refuse_text
from memfs.model import MemoryItem, Query
from memfs.model.episode import fits, plain
from memfs.model.ids import slug
from memfs.model.item import VOUCHED, Trust, gist
from memfs.model.kinds import ACCEPTED, CONVENTION, PROPOSED, RETIRED, nearest
from memfs.startup import Any
from memfs.store import Store
from memfs.store.reader import Reader, beginning, not_found
from memfs.store.store import retry_on_conflict

STATUSES = (ACCEPTED, PROPOSED, RETIRED)


def require_status(status: str) -> None:
    """Refuse a status that no convention has.

    Raises:
        QueryInvalid: there is no such status.
    """
    if status not in STATUSES:
        hint = nearest(status, STATUSES) or f"it is one of {', '.join(STATUSES)}"
        raise QueryInvalid(f"there is no status {ascii(status)[:60]}", field="status", hint=hint)


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
    def text(self) -> str:
        """What it says, one line or several; its title where it has no other words."""
        return gist(self.item).strip()

    @property
    def status(self) -> str:
        """``proposed``, ``accepted``, ``retired``, or what somebody wrote there; "" where there is nothing."""
        return self.item.status.strip()

    @property
    def trust(self) -> str:
        """Who vouches for it."""
        return self.item.trust

    @property
    def owner(self) -> str:
        """The person or team to ask, "" where it names none."""
        written = self.item.data.get("owner", "")
        return " ".join(written.split()) if isinstance(written, str) else ""

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
        title = " ".join(self.item.title.split())
        return text if not title or title == text else f"{title}: {text}"


class Conventions:
    """Reads the conventions of one workspace. May be used from several threads."""

    def __init__(self, store: Reader, clock: Callable[[], datetime]) -> None:
        self._store, self._clock = store, clock

    def holding(self, files: Iterable[str] = (), status: str = ACCEPTED) -> list[Convention]:
        """The conventions of a status that hold for any of the files, or all of them without files.

        Those that have expired, or that another one that holds replaces, are left out; behind what replaces one that a
        person vouches for, a person vouches, too.

        Args:
            files: paths below the workspace or its repository, "/" separated; absolute ones are fine, too.
            status: ``accepted``, ``proposed`` or ``retired``.

        Returns:
            Pinned ones first, then by importance, then by id.

        Raises:
            QueryInvalid: there is no such status.
        """
        require_status(status)
        if isinstance(files, str):
            raise QueryInvalid("expected a list of paths, got one text", field="files", hint=f"write [{files!r}]")
        named, now, every = tuple(files), self._clock(), self.every()
        holding = [one for one in every if one.status == ACCEPTED and not one.item.has_expired(now)]
        replaced = {name for one in holding for name in one.item.supersedes}
        surely = {name for one in vouched(holding) for name in one.item.supersedes}  # no tool replaces a person's word
        present = (one for one in every if one.status == status and not one.item.has_expired(now))
        left = (one for one in present if one.id not in (surely if one.trust in VOUCHED else replaced))
        return [one for one in left if one.holds_for(named)]

    def every(self) -> list[Convention]:
        """All conventions whatever their status, in the order of ``holding``."""
        query = Query(types=frozenset({CONVENTION}))
        loaded = (self._store.load(candidate) for candidate in self._store.every(query))
        found = [Convention(one.item) for one in loaded if one is not None and not one.stale]
        return sorted(found, key=lambda one: (not one.item.pinned, -one.item.importance, one.id))

    def find(self, reference: str) -> Convention:
        """The convention a person means: by id, or by the beginning of one.

        Raises:
            ItemNotFound: there is none, or the item is of another type.
        """
        begun = [] if self._store.locate(reference) else beginning(reference, [one.id for one in self.every()])
        if len(begun) > 1:
            raise not_found(reference, begun)
        item = self._store.find(begun[0] if begun else reference)
        if item.type != CONVENTION:
            raise ItemNotFound(
                f"{item.id!r} is of type {item.type}, not a convention", hint="'memfs team convention list' names them"
            )
        return Convention(item)


def vouched(conventions: Sequence[Convention]) -> list[Convention]:
    """Those that agents may be given without being asked: a person vouches for them."""
    return [one for one in conventions if one.trust in VOUCHED]


_VERBS = {ACCEPTED: "Accept", PROPOSED: "Propose", RETIRED: "Retire"}
_NAMED = 5


class Agreements:
    """Decides about the conventions of one workspace."""

    def __init__(self, store: Store, conventions: Conventions, clock: Callable[[], datetime]) -> None:
        self._store, self._conventions, self._clock = store, conventions, clock

    def propose(
        self,
        text: str,
        *,
        title: str = "",
        id: str = "",  # noqa: A002  what it is called everywhere
        owner: str = "",
        scope: Sequence[str] = (),
        supersedes: Sequence[str] = (),
        rationale: str = "",
        reason: str = "",
        source: str = "",
    ) -> Convention:
        """Store a convention that is not accepted yet, as a separate commit.

        Args:
            text: what is to be done, in sentences.
            title: a short name.
            id: the id it is to have; made from the title or the text where it is "".
            owner: the person or team to ask.
            scope: globs of the files it is to hold for; none means all.
            supersedes: the conventions it takes the place of once it is accepted: ids, or beginnings of ids.
            rationale: why.
            reason: why now, for the commit.
            source: which door it came through, for the commit's trailers.

        Raises:
            ItemNotFound: what it is to supersede is no convention.
            IdExists, IdInvalid, ContentError, QueryInvalid, StorageIO: nothing was stored.
        """
        if not (text.strip() or title.strip()):
            raise QueryInvalid("a convention says something", field="text", hint="write what is to be done")
        refuse_text(reason, "reason")
        old = [self._conventions.find(name).id for name in supersedes]
        data: dict[str, Any] = {
            "owner": owner.strip(),
            "scope": list(dict.fromkeys(scope)),
            "rationale": rationale.strip(),
        }
        spoken = slug(title or text)  # where an item has it, the store makes one
        item = MemoryItem(
            text,
            CONVENTION,
            id=id or ("" if self._store.locate(spoken) else spoken),
            title=title,
            status=PROPOSED,
            supersedes=tuple(dict.fromkeys(old)),
            data={name: value for name, value in data.items() if value},
        )
        named = title or id or " ".join(text.split())[:60]
        with self._store.batch(_sentence(f"Propose {named}", reason), source=source) as batch:
            return Convention(batch.put(item, expected=""))

    def decide(self, references: Sequence[str], status: str, reason: str = "", source: str = "") -> list[Convention]:
        """Give conventions a status, all or none, as one commit.

        One that is accepted is ``reviewed`` from then on, unless a person vouches for it already, says since when,
        and retires what it supersedes.

        Args:
            references: ids, or beginnings of ids.
            status: ``accepted``, ``proposed`` or ``retired``.
            reason: why, for the commit.
            source: which door it came through, for the commit's trailers.

        Returns:
            Those that changed, what was retired for another last.

        Raises:
            ItemNotFound, QueryInvalid, Conflict, ContentError, StorageIO: nothing was changed.
        """
        require_status(status)
        refuse_text(reason, "reason")

        def decided() -> list[Convention]:
            self._store.follow()
            found = {one.id: one.item for one in map(self._conventions.find, references)}
            changes = [(before, after) for before, after in self._decided(found, status) if after != before]
            with self._store.batch(_sentence(_summary(changes, status), reason), source=source) as batch:
                return [Convention(batch.put(new, expected=old.sha256)) for old, new in changes]

        return retry_on_conflict(decided, tries=5)

    def _decided(self, chosen: Mapping[str, MemoryItem], status: str) -> Iterator[tuple[MemoryItem, MemoryItem]]:
        """The items that a decision is about, and those it replaces, each as it is and as it is to be."""
        for item in chosen.values():
            after = item.replace(status=status)
            if status == ACCEPTED:
                day = item.data.get("accepted", self._clock().date().isoformat())
                trust = item.trust if item.trust in VOUCHED else Trust.REVIEWED.value
                after = after.replace(trust=trust, data={**item.data, "accepted": day})
            yield item, after
        replaced = [name for item in chosen.values() for name in item.supersedes] if status == ACCEPTED else []
        for name in dict.fromkeys(replaced):
            old = self._store.get(name) if name not in chosen else None
            if old is not None and old.type == CONVENTION:
                yield old, old.replace(status=RETIRED)


def _summary(changes: Iterable[tuple[MemoryItem, MemoryItem]], status: str) -> str:
    """What a decision did, as the commit says it."""
    items = [after for _, after in changes]
    by_status = {one: [item.id for item in items if item.status == one] for one in dict.fromkeys((status, RETIRED))}
    parts = [f"{_VERBS[one]} {_listed(names)}" for one, names in by_status.items() if names]
    return "; ".join(part if number == 0 else part[0].lower() + part[1:] for number, part in enumerate(parts))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (" and others" if len(names) > _NAMED else "")


def _sentence(decided: str, reason: str) -> str:
    return f"{decided}: {' '.join(reason.split())}" if reason else decided

"""Agreements: what a team decides about its conventions.

Owns which status leads to which, what takes the place of what, and that all of one decision is one commit. Which
conventions hold for a file is ``memfs.pipeline.conventions``' business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from memfs.errors import Conflict, QueryInvalid
from memfs.files.secrets import refuse_text
from memfs.model import MemoryItem
from memfs.model.ids import slug
from memfs.model.item import VOUCHED, Trust
from memfs.pipeline.conventions import ACCEPTED, KIND, PROPOSED, RETIRED, STATUSES, Convention, Conventions
from memfs.store import Store

_VERBS = {ACCEPTED: "Accept", PROPOSED: "Propose", RETIRED: "Retire"}
_NAMED = 5
_TRIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A convention that somebody proposes.

    Attributes:
        text: what is to be done, in sentences.
        title: a short name.
        id: the id it is to have; made from the title or the text where it is "".
        owner: the person or team to ask.
        scope: globs of the files it is to hold for; none means all.
        supersedes: the conventions it takes the place of once it is accepted: ids, or beginnings of ids.
        rationale: why.
    """

    text: str
    title: str = ""
    id: str = ""
    owner: str = ""
    scope: Sequence[str] = ()
    supersedes: Sequence[str] = ()
    rationale: str = ""


@dataclass(slots=True)
class _Decision:
    """What is to be written together: items by id as they are, and as they are to be."""

    before: dict[str, MemoryItem] = field(default_factory=dict)
    after: dict[str, MemoryItem] = field(default_factory=dict)

    def change(self, before: MemoryItem, after: MemoryItem) -> None:
        if after != before:
            self.before[before.id], self.after[before.id] = before, after


class Agreements:
    """Decides about the conventions of one workspace."""

    def __init__(self, store: Store, conventions: Conventions, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._conventions = conventions
        self._clock = clock

    def propose(self, proposal: Proposal, reason: str = "", source: str = "") -> Convention:
        """Store a convention that is not accepted yet, as a commit of its own (K8).

        Args:
            reason: why, for the commit.
            source: which door it came through, for the commit's trailers.

        Raises:
            ItemNotFound: what it is to supersede is no convention.
            IdExists, IdInvalid, ContentError, QueryInvalid, StorageIO: nothing was stored.
        """
        if not (proposal.text.strip() or proposal.title.strip()):
            raise QueryInvalid("a convention says something", field="text", hint="write what is to be done")
        refuse_text(reason, "reason")
        old = [self._conventions.find(name).id for name in proposal.supersedes]
        said: dict[str, Any] = {
            "owner": proposal.owner.strip(),
            "scope": list(dict.fromkeys(proposal.scope)),
            "rationale": proposal.rationale.strip(),
        }
        item = MemoryItem(
            proposal.text,
            KIND,
            id=proposal.id or self._free_id(proposal.title or proposal.text),
            title=proposal.title,
            status=PROPOSED,
            supersedes=tuple(dict.fromkeys(old)),
            data={name: value for name, value in said.items() if value},
        )
        named = proposal.title or proposal.id or " ".join(proposal.text.split())[:60]
        with self._store.batch(_sentence(f"Propose {named}", reason), source=source) as batch:
            return Convention(batch.put(item, expected=""))

    def _free_id(self, words: str) -> str:
        """An id that people can say, where nothing has it; else "", and the store makes one."""
        name = slug(words)
        return name if name and not self._store.locate(name) else ""

    def decide(self, references: Sequence[str], status: str, reason: str = "", source: str = "") -> list[Convention]:
        """Give conventions a status, all or none, as one commit (K8).

        One that is accepted is ``reviewed`` from then on, unless a person stands behind it already, says since when,
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
        if status not in STATUSES:
            raise QueryInvalid(f"there is no status {ascii(status)[:60]}", field="status", hint=", ".join(STATUSES))
        refuse_text(reason, "reason")
        for _ in range(_TRIES):
            found = {one.id: one.item for one in map(self._conventions.find, references)}
            decision = self._decision(found.values(), status)
            sentence = _sentence(_decided(decision.after.values(), status), reason)
            try:
                with self._store.batch(sentence, source=source) as batch:
                    after = [
                        batch.put(item, expected=decision.before[name].sha256) for name, item in decision.after.items()
                    ]
            except Conflict:
                self._store.follow()
                continue
            return [Convention(item) for item in after]
        raise Conflict("others keep changing the conventions", hint="try again")

    def _decision(self, items: Iterable[MemoryItem], status: str) -> _Decision:
        chosen = {item.id: item for item in items}
        decision = _Decision()
        for item in chosen.values():
            decision.change(item, self._after(item, status))
        replaced = [name for item in chosen.values() for name in item.supersedes] if status == ACCEPTED else []
        for name in replaced:
            old = self._store.get(name) if name not in chosen else None
            if old is not None and old.type == KIND:
                decision.change(old, old.replace(status=RETIRED))
        return decision

    def _after(self, item: MemoryItem, status: str) -> MemoryItem:
        if status != ACCEPTED:
            return item.replace(status=status)
        trust = item.trust if item.trust in VOUCHED else Trust.REVIEWED.value
        day = item.data if "accepted" in item.data else {**item.data, "accepted": self._clock().date().isoformat()}
        return item.replace(status=status, trust=trust, data=day)


def _decided(items: Iterable[MemoryItem], status: str) -> str:
    """What a decision did, as the commit says it."""
    by_status = {one: [item.id for item in items if item.status == one] for one in dict.fromkeys((status, RETIRED))}
    parts = [f"{_VERBS[one]} {_listed(names)}" for one, names in by_status.items() if names]
    return "; ".join(part if number == 0 else part[0].lower() + part[1:] for number, part in enumerate(parts))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (" and others" if len(names) > _NAMED else "")


def _sentence(decided: str, reason: str) -> str:
    return f"{decided}: {' '.join(reason.split())}" if reason else decided

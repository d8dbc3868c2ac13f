"""Agreements: what a team decides about its conventions.

Owns which status leads to which, and that several conventions get one together. Which of them hold for a file is
``memfs.pipeline.conventions``' business.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from memfs.errors import Conflict, QueryInvalid
from memfs.files.secrets import refuse_text
from memfs.model import MemoryItem
from memfs.model.item import VOUCHED, Trust
from memfs.pipeline.conventions import AGREED, PROPOSED, RETIRED, STATUSES, Convention, Conventions
from memfs.store import Store

_VERBS = {AGREED: "Agree on", PROPOSED: "Propose", RETIRED: "Retire"}
_NAMED = 5
_TRIES = 5


class Agreements:
    """Decides about the conventions of one workspace."""

    def __init__(self, store: Store, conventions: Conventions, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._conventions = conventions
        self._clock = clock

    def decide(self, references: Sequence[str], status: str, reason: str = "", source: str = "") -> list[Convention]:
        """Give conventions a status, all or none, as one commit.

        One that is agreed on is ``reviewed`` from then on, unless a person stands behind it already, and says since
        when.

        Args:
            references: ids, or beginnings of ids.
            status: ``agreed``, ``proposed`` or ``retired``.
            reason: why, for the commit.
            source: which door it came through, for the commit's trailers.

        Returns:
            Those that changed.

        Raises:
            ItemNotFound, QueryInvalid, Conflict, ContentError, StorageIO: nothing was changed.
        """
        if status not in STATUSES:
            raise QueryInvalid(f"there is no status {ascii(status)[:60]}", field="status", hint=", ".join(STATUSES))
        refuse_text(reason, "reason")
        for _ in range(_TRIES):
            found = {one.id: one for one in map(self._conventions.find, references)}
            before = [one.item for one in found.values() if self._after(one.item, status) != one.item]
            try:
                with self._store.batch(_sentence(before, status, reason), source=source) as batch:
                    after = [batch.put(self._after(item, status), expected=item.sha256) for item in before]
            except Conflict:
                self._store.follow()
                continue
            return [Convention(item) for item in after]
        raise Conflict("others keep changing the conventions", hint="try again")

    def _after(self, item: MemoryItem, status: str) -> MemoryItem:
        if status != AGREED:
            return item.replace(status=status)
        trust = item.trust if item.trust in VOUCHED else Trust.REVIEWED.value
        day = item.data if "agreed" in item.data else {**item.data, "agreed": self._clock().date().isoformat()}
        return item.replace(status=status, trust=trust, data=day)


def _sentence(items: Sequence[MemoryItem], status: str, reason: str) -> str:
    more = " and others" if len(items) > _NAMED else ""
    decided = f"{_VERBS[status]} {', '.join(item.id for item in items[:_NAMED])}{more}"
    return f"{decided}: {' '.join(reason.split())}" if reason else decided

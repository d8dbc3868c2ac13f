"""Joining: writing what a merge of two lines of history comes to, as one operation that becomes one commit.

Owns that this passes the store's door like any other write. Which files are wanted, and why, is decided above it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from memfs.errors import Conflict
from memfs.files.secrets import refuse_text
from memfs.store.gate import through
from memfs.store.parts import Parts
from memfs.store.plan import Planned, PlanOutdated, take_in
from memfs.store.store import Store
from memfs.store.writing import Signature


def join(
    store: Store, parts: Parts, plans: Sequence[Planned], message: str, signature: Signature, *, merges: str, on: str
) -> None:
    """Write the merged files durably, as a batch that joins the commit ``merges`` with the branch ``on``.

    It waits in the journal until the next ``Store.flush``; a quota does not keep it out.

    Raises:
        Conflict: a file, or the branch, is not what the plans were made against; nothing was written.
        SecretDetected: the message holds one.
        StorageIO: nothing was written.
    """
    refuse_text(message, "message")
    write = partial(
        store.writing.carry_out, plans, message, [signature], batch=True, critical=True, merges=merges, on=on
    )
    try:
        through(parts.gate, partial(write, learn=partial(take_in, store.following, plans)))
    except PlanOutdated as outdated:
        if outdated.path:
            store.following.refresh([outdated.path])
        raise Conflict(
            "a file or the branch changed while the merge was prepared", path=outdated.path or None, hint="try again"
        ) from None
    store.wrote = True

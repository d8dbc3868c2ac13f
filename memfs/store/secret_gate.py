"""Lets no secret pass from a caller or a file into the journal, unless a reason allows it.

A reason is recorded in the item and in the commit message.
"""

from __future__ import annotations

from collections.abc import Sequence

from memfs.errors import SecretDetected
from memfs.format.secrets import allowed, check_reason, refuse_file, refuse_text
from memfs.fs.atomic_replace import sha256
from memfs.model.time import from_timestamp_ns
from memfs.store.commit_message import describe
from memfs.store.parts import READ_LIMIT, Parts
from memfs.store.plan import FilePlan

_MOST_REASONS = 3


def vet(plans: Sequence[FilePlan]) -> None:
    """Refuse bytes with a secret that nothing allows. What history had already may come back.

    Raises:
        SecretDetected: naming the path, the rule and the line.
    """
    for plan in plans:
        if plan.after is not None and not plan.vetted and not plan.reason:
            refuse_file(plan.after, plan.path)


def vet_replaced(plan: FilePlan) -> None:
    """Refuse to journal the hand edit that a write replaces, where that holds a secret.

    Raises:
        SecretDetected: the edit stays in its file alone.
    """
    try:
        if plan.before is not None and not plan.reason:
            refuse_file(plan.before, plan.path)
    except SecretDetected as error:
        error.hint = "this edit by hand would go into history before it is replaced: correct or remove the file by hand"
        raise


def sentence(message: str, source: str, plans: Sequence[FilePlan]) -> str:
    """The commit's message, with the reasons that let a secret stay.

    Raises:
        SecretDetected: message or source hold a secret; nothing can allow that.
    """
    refuse_text(message.removeprefix(describe(list(plans))), "message")
    refuse_text(source, "source")
    return message + allowed_reasons([plan.reason for plan in plans])


def allowed_reasons(reasons: Sequence[str]) -> str:
    """The reasons as they end a commit's message, "" where there are none."""
    found = list(dict.fromkeys(reason for reason in reasons if reason))
    more = f" and {len(found) - _MOST_REASONS} more" if len(found) > _MOST_REASONS else ""
    return f" (secret allowed: {'; '.join(found[:_MOST_REASONS])}{more})" if found else ""


def allow_in_file(parts: Parts, path: str, reason: str) -> bool:
    """Write into an item's file, on a person's behalf, why it may keep what looks like a secret.

    The change is an edit by hand like any other: it is committed with the rest of the file.

    Returns:
        Whether the file was changed: false where it holds nothing that needs a reason.

    Raises:
        FileNotFoundError, ContentError, StorageIO: nothing was changed.
    """
    check_reason(reason)
    with parts.lock.hold("allow a secret"):
        content = parts.tree.read(path, READ_LIMIT)
        item = parts.codec.read(content.data, path, from_timestamp_ns(content.stamp.mtime_ns))
        changed, _ = allowed(item, reason)
        data = parts.codec.write(changed, path, content.data).data
        if data == content.data:
            return False
        parts.tree.write(path, data, over=sha256(content.data))
    return True

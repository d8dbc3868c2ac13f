"""Allowing: ``--allow-secret REASON``, the way to let what looks like a secret stay.

Owns the option and what it does to a file that a person wrote. What a secret looks like, and where the reason is kept,
is decided below.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from memfs.adapters.cli.output import note
from memfs.errors import ContentError, MemfsError, SecretDetected

if TYPE_CHECKING:
    from memfs.model import MemoryItem
    from memfs.workspace import Workspace


def _reason(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str:
    if value is not None and not value.strip():
        raise click.BadParameter("say why the secret may stay", ctx, parameter)
    if value is not None and value.startswith("--"):
        message = f"{value} was taken for the reason; say why the secret may stay, in quotes, before the next option"
        raise click.BadParameter(message, ctx, parameter)
    return (value or "").strip()


allow_secret_option = click.option(
    "--allow-secret",
    metavar="REASON",
    callback=_reason,
    help="Accept what looks like a key or password; the reason is kept in the item and in the commit.",
)


def allow_in(workspace: Workspace, paths: Collection[str], reason: str) -> None:
    """Write the reason into those of the files that are items and need one; an invalid file stays as it is.

    Raises:
        SecretDetected, ContentError: the reason is none.
    """
    if not reason:
        return
    from memfs.files.secrets import check_reason  # most commands allow nothing
    from memfs.store.vetting import allow_in_file

    check_reason(reason)
    for path in paths:
        if workspace.store.following.is_item(path):
            with suppress(ContentError, FileNotFoundError):
                allow_in_file(workspace.parts, path, reason)
    workspace.store.refresh(paths)


def refuse_secret(text: str, field: str) -> None:
    """Refuse a text that holds a secret before it is written into a file.

    Raises:
        SecretDetected: naming the rule, never the value.
    """
    from memfs.files.secrets import refuse_text  # costs start-up time, which --help must not pay

    refuse_text(text, field)


def secrets_in(data: bytes, path: str) -> list[MemfsError]:
    """The secret in a file as an error, nothing where there is none or it is allowed."""
    from memfs.files.secrets import refuse_file  # costs start-up time, which --help must not pay

    try:
        refuse_file(data, path)
    except SecretDetected as error:
        return [error]
    return []


def note_likely(item: MemoryItem) -> None:
    """Say that a stored text may hold a key nobody has a rule for."""
    from memfs.files.secrets import find_likely, reason_in  # costs start-up time, which --help must not pay

    found = [] if reason_in(item.metadata) else find_likely(f"{item.title}\n{item.content}")
    if found:
        note(f"line {max(found[0].line - 1, 1)} holds a long word without any order; if it is a key, take it out:")
        note(f"memfs forget {item.id}")

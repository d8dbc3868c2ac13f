"""What ``status`` and ``reindex`` say of the embeddings.

Owns the words and the JSON. Knows nothing of how vectors are made.
"""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from memfs.adapters.cli.output import clean, count, print_json, print_raw, progress
from memfs.errors import SettingInvalid

if TYPE_CHECKING:
    from memfs.workspace import Workspace


def meaning_facts(workspace: Workspace) -> dict[str, Any]:
    """How far the embeddings are, for ``status``; nothing where the workspace is searched by words alone."""
    meaning = workspace.meaning.current()
    return {"embeddings": asdict(meaning.embeddings.standing())} if meaning is not None else {}


def meaning_row(facts: dict[str, Any]) -> dict[str, str]:
    """The line of ``status`` about them."""
    found = facts.get("embeddings")
    if found is None:
        return {}
    done, items = found["embedded"], found["items"]
    share = "all items" if done == items else f"{done:,} of {count(items, 'item')} ({done / items:.0%})"
    rest = "" if done == items else "; the next recalls go on, or 'memfs reindex --embeddings' now"
    return {"embeddings": f"{found['model']}, {share}{rest}"}


def embed(workspace: Workspace, as_json: bool) -> None:
    """Make every vector that is lacking, and say how many that were.

    Raises:
        SettingInvalid: the workspace is searched by words alone, or names no embedder that there is.
        ExtraMissing, EndpointFailed, CorruptRecord, StorageIO: as ``Embeddings.catch_up``.
    """
    began = time.monotonic()
    meaning = workspace.meaning.wanted()
    if meaning is None:
        raise SettingInvalid(
            "this workspace is searched by words alone",
            field="storage_type",
            hint="set storage_type: vector_db in ContextMemory/configuration/memory_context.yaml",
        )
    workspace.store.follow()
    with progress("Embedding") as step:
        made = meaning.embeddings.catch_up(step)
    standing = meaning.embeddings.standing()
    seconds = round(time.monotonic() - began, 3)
    if as_json:
        print_json({"model": standing.model, "made": made, "embedded": standing.embedded, "seconds": seconds})
    else:
        print_raw(f"Embedded {count(made, 'item')} with {clean(standing.model)} in {seconds:.1f} s")

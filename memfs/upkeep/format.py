"""Format: which version of the on-disk format a workspace is in.

Owns the check at opening, and bringing a workspace to the present version.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memfs.errors import FormatUnsupported
from memfs.files.rendering import parse
from memfs.files.tree import View
from memfs.store.parts import CONTENT, Parts
from memfs.store.store import Store

FORMAT_VERSION = 1
_PATH = f"{CONTENT}/configuration/system_config.json"
_SCHEMA = "system_config"
_LIMIT = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Migrated:
    """What bringing a workspace to the present version did.

    Attributes:
        before: the version that it said it was in; None where it said none.
        after: the version that it is in now.
        changed: whether that was written, or would be.
    """

    before: int | None
    after: int
    changed: bool


def check_format(tree: View) -> None:
    """Refuse a workspace written by a newer memfs.

    Raises:
        FormatUnsupported: naming both versions. A missing or unreadable file counts as the present version;
            ``memfs check`` reports it.
    """
    try:
        document = json.loads(tree.read(_PATH, _LIMIT).data)
    except (FileNotFoundError, ValueError, RecursionError):
        return
    version = _version(document) if isinstance(document, dict) else None
    if version is not None and version > FORMAT_VERSION:
        raise FormatUnsupported(
            f"the workspace is of format {version}, this memfs knows up to {FORMAT_VERSION}",
            path=_PATH,
            field="format_version",
            hint="use a newer memfs",
        )


def migrate(store: Store, parts: Parts, dry_run: bool = False) -> Migrated:
    """Bring a workspace to the present version of the format, as one commit; what else the file says stays.

    There is one version so far: only a workspace that names none is changed.

    Raises:
        ContentError: the file is invalid beyond its version; nothing was changed.
        StorageIO: nothing was changed.
    """
    try:
        data = parts.seen.read(_PATH, _LIMIT).data
    except FileNotFoundError:
        data = None
    values = parse(data, _PATH).mapping if data is not None else {}
    before = _version(values)
    changed = before != FORMAT_VERSION
    if changed and not dry_run:
        raised = {"format_version": FORMAT_VERSION} | dict(values) | {"format_version": FORMAT_VERSION}
        plan = store.plan_restore(_PATH, parts.codec.write_document(raised, _PATH, _SCHEMA, data))
        if plan is not None:
            store.carry_out([plan], f"Bring the format to version {FORMAT_VERSION}", source="migrate")
    return Migrated(before=before, after=FORMAT_VERSION, changed=changed)


def _version(document: Mapping[str, Any]) -> int | None:
    version = document.get("format_version")
    return version if isinstance(version, int) and not isinstance(version, bool) else None

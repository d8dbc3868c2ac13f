"""Format: which version of the on-disk format a workspace is in.

Owns the check at opening; migrations will live here too.
"""

from __future__ import annotations

import json

from memfs.errors import FormatUnsupported
from memfs.files.tree import View
from memfs.store.parts import CONTENT

FORMAT_VERSION = 1
_PATH = f"{CONTENT}/configuration/system_config.json"
_LIMIT = 16 * 1024 * 1024


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
    version = document.get("format_version", FORMAT_VERSION) if isinstance(document, dict) else FORMAT_VERSION
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise FormatUnsupported(
            f"the workspace is of format {version}, this memfs knows up to {FORMAT_VERSION}",
            path=_PATH,
            field="format_version",
            hint="use a newer memfs",
        )

"""Configuration: what the system's parameters are at present, as a supervisor asks for them (seed 001).

Owns which documents make up the configuration. What their values cause, the parts know that obey them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from memfs.resources import template_text
from memfs.store.parts import CONTENT, READ_LIMIT, Parts

DOCUMENTS = ("system_config", "retention_policy")
_WRITTEN_OUT = ("active_days", "archive", "delete", "checkpoints")


def read_configuration(parts: Parts) -> dict[str, Mapping[str, Any]]:
    """The documents of ``configuration/`` by name, as they are now; one that is absent is empty.

    Raises:
        ContentError: one is invalid at present; the error names its path and the field.
        StorageIO: it cannot be read.
    """
    return {name: _document(parts, name) for name in DOCUMENTS}


def first_policy() -> dict[str, Any]:
    """The retention policy that counts without a file, for one that people can change.

    Items are left out: what is said of them here would take the place of what the memory context says.
    """
    policy = json.loads(template_text("retention_policy.json"))
    return {name: policy[name] for name in _WRITTEN_OUT}


def _document(parts: Parts, name: str) -> Mapping[str, Any]:
    path = f"{CONTENT}/configuration/{name}.json"
    try:
        data = parts.seen.read(path, READ_LIMIT).data
    except FileNotFoundError:
        return {}
    return parts.codec.read_document(data, path, name)

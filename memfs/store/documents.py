"""Documents: the files of a workspace that are not items, by path.

Owns which other files belong to memfs and which schema each obeys.
"""

from __future__ import annotations

from memfs.model.statepaths import document_kind
from memfs.store.parts import CONTENT

MEMORY_CONTEXT = f"{CONTENT}/configuration/memory_context.yaml"
MEMORY_CONTEXTS = f"{CONTENT}/configuration/contexts"
CONTEXTS = f"{CONTENT}/context"
PRUNED = f"{CONTENT}/archive/pruned"
_SUFFIXES = (".yaml", ".yml", ".json")
_SCHEMAS = {
    f"{CONTENT}/configuration/system_config.json": "system_config",
    f"{CONTENT}/configuration/retention_policy.json": "retention_policy",
    MEMORY_CONTEXT: "memory_context",
    f"{CONTENT}/configuration/kinds.yaml": "kinds",
}
_STATE_SCHEMAS = {"feedback": "feedback_given", "checkpoint": "checkpoint_manifest"}
_OWN_NAMES = ("memfs.toml", f"{CONTENT}/.gitattributes", f"{CONTENT}/.gitignore")
_OWN_FOLDERS = (f"{CONTENT}/.schemas/", f"{CONTENT}/configuration/", f"{CONTENT}/context/", f"{PRUNED}/")


def schema_of(path: str) -> str:
    """The name of the schema a document obeys, "" where it has none."""
    if path in _SCHEMAS:
        return _SCHEMAS[path]
    if kind := document_kind(path):
        return _STATE_SCHEMAS.get(kind, kind)
    if path.startswith(f"{CONTEXTS}/") and path.endswith(_SUFFIXES):
        return "context"
    return "memory_context" if path.startswith(f"{MEMORY_CONTEXTS}/") and path.endswith(_SUFFIXES) else ""


def is_own_file(path: str) -> bool:
    """Whether memfs keeps this file in git: settings, schemas, context, pruned items, state documents."""
    named = path in _SCHEMAS or path in _OWN_NAMES or path.startswith(_OWN_FOLDERS)
    return named or document_kind(path) != ""

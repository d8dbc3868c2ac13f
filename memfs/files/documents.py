"""Documents: the files of a workspace that are not items, by path.

Owns which schema each obeys. Must not know what they hold.
"""

from __future__ import annotations

from memfs.files.whereabouts import MEMORY_FOLDER
from memfs.model.statepaths import document_kind

MEMORY_CONTEXT = f"{MEMORY_FOLDER}/configuration/memory_context.yaml"
MEMORY_CONTEXTS = f"{MEMORY_FOLDER}/configuration/contexts"
CONTEXTS = f"{MEMORY_FOLDER}/context"
PRUNED = f"{MEMORY_FOLDER}/archive/pruned"
QUESTIONS = f"{MEMORY_FOLDER}/configuration/questions.yaml"
SCHEMAS = {
    f"{MEMORY_FOLDER}/configuration/system_config.json": "system_config",
    f"{MEMORY_FOLDER}/configuration/retention_policy.json": "retention_policy",
    MEMORY_CONTEXT: "memory_context",
    f"{MEMORY_FOLDER}/configuration/kinds.yaml": "kinds",
    QUESTIONS: "questions",
}
_SUFFIXES = (".yaml", ".yml", ".json")
_STATE_SCHEMAS = {
    "feedback": "feedback_given",
    "checkpoint": "checkpoint_manifest",
    "hypothesis_version": "hypothesis",
}


def schema_of(path: str) -> str:
    """The name of the schema a document obeys, "" where it has none."""
    if path in SCHEMAS:
        return SCHEMAS[path]
    if kind := document_kind(path):
        return _STATE_SCHEMAS.get(kind, kind)
    if path.startswith(f"{CONTEXTS}/") and path.endswith(_SUFFIXES):
        return "context"
    return "memory_context" if path.startswith(f"{MEMORY_CONTEXTS}/") and path.endswith(_SUFFIXES) else ""

"""Documents: the files of a workspace that are not items, by path.

Owns which other files belong to memfs. Which schema each obeys, ``memfs.files.documents`` says.
"""

from __future__ import annotations

from memfs.files.documents import CONTEXTS as CONTEXTS
from memfs.files.documents import MEMORY_CONTEXT as MEMORY_CONTEXT
from memfs.files.documents import MEMORY_CONTEXTS as MEMORY_CONTEXTS
from memfs.files.documents import PRUNED as PRUNED
from memfs.files.documents import SCHEMAS
from memfs.files.documents import schema_of as schema_of
from memfs.model.statepaths import document_kind
from memfs.store.parts import CONTENT

_OWN_NAMES = ("memfs.toml", f"{CONTENT}/.gitattributes", f"{CONTENT}/.gitignore")
_OWN_FOLDERS = (f"{CONTENT}/configuration/", f"{CONTENT}/context/", f"{PRUNED}/")


def is_own_file(path: str) -> bool:
    """Whether memfs keeps this file in git: settings, context, pruned items, state documents."""
    named = path in SCHEMAS or path in _OWN_NAMES or path.startswith(_OWN_FOLDERS)
    return named or document_kind(path) != ""


RETENTION_POLICY = f"{CONTENT}/configuration/retention_policy.json"

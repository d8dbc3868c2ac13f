"""The names of configuration: files below the workspace, variables of the environment, and values in both.

``memfs.config`` reads them. Modules beneath it that commit, list or erase the files, or that are given a key, have the
names from here.
"""

from __future__ import annotations

SETTINGS_FILE = "memfs.toml"
CONFIGURATION = "ContextMemory/configuration"
SYSTEM_CONFIG = f"{CONFIGURATION}/system_config.json"
RETENTION_POLICY = f"{CONFIGURATION}/retention_policy.json"
KINDS = f"{CONFIGURATION}/kinds.yaml"
MEMORY_CONTEXT = f"{CONFIGURATION}/memory_context.yaml"
MEMORY_CONTEXTS = f"{CONFIGURATION}/contexts"

VARIABLES = "MEMFS_"
"""How the variables begin; each setting has one: ``MEMFS_INDEX_ENGINE``."""
WORKSPACE_VARIABLE = f"{VARIABLES}WORKSPACE"
REVIEW_KEY = f"{VARIABLES}REVIEW_KEY"
EMBEDDING_KEY = f"{VARIABLES}EMBEDDING_KEY"
SIGNING_KEY = f"{VARIABLES}SIGNING_KEY"
RESIDENT_SWITCH = f"{VARIABLES}RESIDENT"
"""``off``: no resident process is asked; a number: how many milliseconds to wait for its greeting."""
RESIDENT_USE = f"{VARIABLES}RESIDENT_USE"

FILE_BASED, VECTOR_DB = "file_based", "vector_db"
"""The storage types of a memory context: searched by words, or by meaning as well."""
OFF = "off"
"""In place of a model: words only, whatever the memory context says."""

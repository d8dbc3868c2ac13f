"""Where a workspace's settings and the documents of its configuration lie, as paths below the workspace.

``memfs.config`` reads them; whoever commits, lists or erases files knows them by these names.
"""

from __future__ import annotations

SETTINGS_FILE = "memfs.toml"
CONFIGURATION = "ContextMemory/configuration"
SYSTEM_CONFIG = f"{CONFIGURATION}/system_config.json"
RETENTION_POLICY = f"{CONFIGURATION}/retention_policy.json"
KINDS = f"{CONFIGURATION}/kinds.yaml"
MEMORY_CONTEXT = f"{CONFIGURATION}/memory_context.yaml"
MEMORY_CONTEXTS = f"{CONFIGURATION}/contexts"
QUESTIONS = f"{CONFIGURATION}/questions.yaml"
FEEDBACK_TEMPLATE = f"{CONFIGURATION}/feedback_template.md"

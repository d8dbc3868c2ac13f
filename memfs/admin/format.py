"""Check which version of the on-disk format a workspace has, and migrate it to the present one.

A workspace of a newer memfs is refused. A migration is one batch: a killed one leaves the old version.

Version 1 named itself in ``configuration/system_config.json`` and kept the schemas for editors in
``ContextMemory/.schemas/``; version 2 names itself in ``memfs.toml`` and keeps no copies of what memfs brings along.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from memfs.config_names import SETTINGS_FILE, SYSTEM_CONFIG
from memfs.dataclass import dataclass
from memfs.errors import SettingInvalid
from memfs.format import toml_text
from memfs.format.codec import parse
from memfs.format.toml_text import FORMAT, FORMAT_VERSION
from memfs.fs.tree import View
from memfs.model import Problem
from memfs.store.parts import CONTENT, Parts
from memfs.store.store import Store

EDITOR_FOLDER = f"{CONTENT}/.schemas"
_SCHEMA = "system_config"
_LIMIT = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationResult:
    """What bringing a workspace to the present version did.

    Attributes:
        before: the version that it said it was in; None where it said none.
        after: the version that it is in now.
        changed: whether that was written, or would be.
        paths: the files that were written or removed, or would be.
    """

    before: int | None
    after: int
    changed: bool
    paths: tuple[str, ...] = ()


def check_format(tree: View) -> None:
    """Refuse a workspace written by a newer memfs.

    Raises:
        FormatUnsupported: naming both versions. A missing or unreadable file counts as the present version;
            ``memfs check`` reports it.
    """
    toml_text.require_known_format(_version_in_settings(tree))
    toml_text.require_known_format(_version_in_old_place(tree), SYSTEM_CONFIG)


def problems(tree: View) -> Iterator[Problem]:
    """A warning where the files say that they are of an older version, which is read and written all the same."""
    version = _version_in_settings(tree)
    if version is None:
        version = _version_in_old_place(tree)
    if version is not None and version < FORMAT_VERSION:
        message = f"the workspace is of format {version}; this memfs writes {FORMAT_VERSION}"
        hint = "'memfs admin migrate' brings it there"
        yield Problem.warning(SETTINGS_FILE, "FormatOld", message, hint)


def migrate(store: Store, parts: Parts, dry_run: bool = False) -> MigrationResult:
    """Bring a workspace to the present version of the format, as one batch; whatever else its files say stays.

    Raises:
        ContentError, SettingInvalid: a file is invalid beyond its version; nothing was changed.
        StorageIO: nothing was changed.
    """
    written = _version_in_settings(parts.seen)
    before = written if written is not None else _version_in_old_place(parts.seen)
    if written == FORMAT_VERSION:
        return MigrationResult(before=before, after=FORMAT_VERSION, changed=False)
    plans = store.plan_restore(_wanted(parts))
    if not dry_run:
        store.carry_out(plans, f"Bring the format to version {FORMAT_VERSION}", source="migrate")
    paths = tuple(plan.path for plan in plans)
    return MigrationResult(before=before, after=FORMAT_VERSION, changed=True, paths=paths)


def _wanted(parts: Parts) -> dict[str, bytes | None]:
    text = _settings_text(parts.seen)
    toml_text.parse(text)  # what is no TOML stays as it is
    wanted: dict[str, bytes | None] = {SETTINGS_FILE: toml_text.with_format_version(text).encode()}
    data = _read(parts.seen, SYSTEM_CONFIG)
    if data is not None:
        values = dict(parse(data, SYSTEM_CONFIG).mapping)
        if values.pop(FORMAT, None) is not None:
            rest = {name for name in values if name != "$schema"}
            wanted[SYSTEM_CONFIG] = parts.codec.write_document(values, SYSTEM_CONFIG, _SCHEMA, data) if rest else None
    copies = parts.tree.scan(EDITOR_FOLDER, hidden=True)
    wanted.update((entry.path, None) for entry in copies if entry.regular and parts.repository.head_blob(entry.path))
    return wanted


def _version_in_settings(tree: View) -> int | None:
    try:
        text = _settings_text(tree)
        return toml_text.format_version(toml_text.parse(text), text)
    except SettingInvalid:
        return None


def _settings_text(tree: View) -> str:
    try:
        return (_read(tree, SETTINGS_FILE) or b"").decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SettingInvalid("not UTF-8 text", path=SETTINGS_FILE, hint="save it as UTF-8") from error


def _version_in_old_place(tree: View) -> int | None:
    try:
        document = json.loads(_read(tree, SYSTEM_CONFIG) or b"")
    except (ValueError, RecursionError):
        return None
    return _version(document) if isinstance(document, dict) else None


def _read(tree: View, path: str) -> bytes | None:
    try:
        return tree.read(path, _LIMIT).data
    except FileNotFoundError:
        return None


def _version(document: Mapping[str, Any]) -> int | None:
    version = document.get(FORMAT)
    return version if isinstance(version, int) and not isinstance(version, bool) else None

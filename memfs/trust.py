"""Decides which workspaces and repositories this user has trusted to enable something.

The list is ``trust.json`` in the user's configuration folder. A setting that loosens a protection or reaches outside
counts only while the folder, its owner and that very value are those that were trusted. The decision is made from names
and owners before anything in the repository is believed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path

from memfs.config_names import KINDS, MEMORY_CONTEXT, MEMORY_CONTEXTS, SETTINGS_FILE
from memfs.dataclass import dataclass
from memfs.errors import ContentError, CorruptRecord, MemfsError, Problem
from memfs.format import toml_text
from memfs.format.text import decode
from memfs.fs import io
from memfs.fs.lock import FileLock
from memfs.fs.tree import Tree
from memfs.fs.workspace_location import base_folder
from memfs.git.layout import Trusted, discover
from memfs.model.time import format_time, utc_now
from memfs.settings import MOUNTS, SOURCE_TABLES, SPECS, Spec
from memfs.startup import Any, json, sha256

EMBEDDING_ENDPOINT = "polymorphic_config.memory_config.embedding_endpoint"
_DOCUMENT_LIMIT = 16 << 20
_LIST_LIMIT = 4 << 20
_VERSION = 1
_WORKSPACES, _REPOSITORIES = "workspaces", "repositories"


@dataclass(frozen=True, slots=True)
class PluginTrust:
    """One setting in a workspace's files that would enable something.

    Attributes:
        file: the file it is in.
        key: its dotted name.
        value: what it asks for.
        line: where in the file, None where that is not known.
    """

    file: str
    key: str
    value: Any
    line: int | None = None

    @property
    def subject(self) -> str:
        """What it is about, in words: the key, or the names in it that need trust."""
        spec = SPECS.get(self.key) if self.file == SETTINGS_FILE else None
        return f"{self.value!r} in {self.key}" if spec is not None and spec.harmless else self.key


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustStatus:
    """Whether and how far this user trusts a workspace.

    Attributes:
        root: the workspace, links resolved.
        trusted: whether what it would enable counts.
        reason: why not, "" when it does.
        wants: what its files would enable.
    """

    root: Path
    trusted: bool
    reason: str = ""
    wants: tuple[PluginTrust, ...] = ()

    def value(self, file: str, key: str) -> Any:
        """The value of an enabling setting as it was trusted; None where it is absent or does not count.

        Use this and not the file read again: it may have changed since.
        """
        return next((want.value for want in self.wants if self.trusted and (want.file, want.key) == (file, key)), None)

    def problems(self, *beginnings: str) -> list[Problem]:
        """A warning for each setting that does not count, with the command that would change that.

        Args:
            beginnings: only those whose key begins so; without one, all.
        """
        if self.trusted:
            return []
        hint = f"look at it, then: {command(self.root)}"
        return [
            Problem.warning(want.file, "Untrusted", f"{want.subject} is ignored: {self.reason}", hint, line=want.line)
            for want in self.wants
            if want.key.startswith(beginnings or "")
        ]


def body_key(kind: str) -> str:
    """The key of the schema that a workspace gives to the ``data`` of its own kind."""
    return f"kinds.{kind}.body"


def command(root: Path) -> str:
    """The command that trusts a folder, ready to be pasted into a shell."""
    import shlex  # rarely shown

    return f"memfs admin trust {shlex.quote(str(root))}"


# -- asking -------------------------------------------------------------------------------------------------------
def is_trusted(root: Path) -> bool:
    """Whether what a workspace's files would enable counts for this user."""
    return status_of(root).trusted


def status_of(root: Path) -> TrustStatus:
    """How far a workspace is trusted; never fails because of what is in it, or in the list."""
    root = root.resolve()
    wants, reason = tuple(enabling(root)), ""
    try:
        recorded = _entry(_load(list_path()), _WORKSPACES, root)
        if recorded is None:
            reason = "nobody has trusted this workspace"
        elif any(recorded.get(name) != value for name, value in _identity(root).items()):
            reason = "this is not the folder, or not the owner, that was trusted"
        elif recorded.get("enables") != _digest(wants):
            reason = "what it would enable has changed since it was trusted"
    except (MemfsError, RuntimeError, OSError) as error:
        reason = f"the list of trusted folders cannot be read: {error}"
    return TrustStatus(root=root, trusted=not reason, reason=reason, wants=wants)


def enabling(root: Path) -> list[PluginTrust]:
    """What in a workspace's files would loosen a protection or reach outside; a file that cannot be read counts not."""
    return [*_from_settings(root), *_from_documents(root)]


def repository(work_tree: Path) -> Trusted:
    """The other users, and the git folder of another working tree, that this user has trusted at this place."""
    try:
        recorded = _entry(_load(list_path()), _REPOSITORIES, work_tree)
    except (MemfsError, RuntimeError, OSError):
        recorded = None
    if recorded is None or recorded.get("inode") != _identity(work_tree)["inode"]:
        return frozenset(), None
    named, folder = recorded.get("owners"), recorded.get("git_dir")
    owners = frozenset(uid for uid in named if isinstance(uid, int)) if isinstance(named, list) else frozenset()
    return owners, Path(folder) if isinstance(folder, str) and folder else None


# -- changing -----------------------------------------------------------------------------------------------------
def grant(root: Path, seen: Sequence[PluginTrust] | None = None) -> TrustStatus:
    """Trust a workspace, and the owner of its repository where that is another user.

    Args:
        seen: what was looked at and is to count; None means what its files would enable now.

    Raises:
        CorruptRecord: the list cannot be read; nothing was changed.
        StorageReadOnly, StorageIO: it cannot be written.
        RepoUnsupported: the repository is of a sort memfs does not handle.
    """
    root = root.resolve()
    wants = tuple(enabling(root) if seen is None else seen)
    layout = discover(root)
    path = _private_list()
    with FileLock(path.with_name("trust.lock")).hold("trust"):
        listed = _load(path)
        now = format_time(utc_now())
        listed[_WORKSPACES][str(root)] = {**_identity(root), "enables": _digest(wants), "granted": now}
        if layout is not None and (layout.foreign or layout.elsewhere):
            inode, owners = _identity(layout.work_tree)["inode"], sorted(layout.foreign_owners)
            facts = {"inode": inode, "owners": owners, "git_dir": str(layout.elsewhere or ""), "granted": now}
            listed[_REPOSITORIES][str(layout.work_tree)] = facts
        _save(path, listed)
    return TrustStatus(root=root, trusted=True, wants=wants)


def revoke(root: Path) -> bool:
    """Take the trust in a workspace and in its repository back; whether there was any.

    Raises:
        CorruptRecord, StorageReadOnly, StorageIO: as ``grant``.
    """
    root = root.resolve()
    path = _private_list()
    with FileLock(path.with_name("trust.lock")).hold("trust"):
        listed = _load(path)
        found = listed[_WORKSPACES].pop(str(root), None)
        folders = (str(folder) for folder in (root, *root.parents))
        above = next((folder for folder in folders if folder in listed[_REPOSITORIES]), None)
        if above is not None:
            del listed[_REPOSITORIES][above]
        if found is None and above is None:
            return False
        _save(path, listed)
    return True


# -- what would be enabled ----------------------------------------------------------------------------------------
def _from_settings(root: Path) -> Iterator[PluginTrust]:
    try:
        text = toml_text.read(root)
        tables = toml_text.parse(text)
    except (MemfsError, OSError):
        return
    for spec in SPECS.values():
        table, _, name = spec.key.rpartition(".")
        entries: Any = tables
        for part in table.split("."):
            entries = entries.get(part) if isinstance(entries, dict) else None
        if isinstance(entries, dict) and name in entries and (value := _reaching(spec, entries[name])) is not None:
            yield PluginTrust(SETTINGS_FILE, spec.key, value, toml_text.line_of(text, table, name))
    for table in ("memory", MOUNTS):
        names = tables.get(table)
        for name, value in names.items() if isinstance(names, dict) else ():
            # what sources from others are asked to do is as far-reaching as that they are asked at all
            if table == MOUNTS or (isinstance(value, dict) and name not in SOURCE_TABLES):
                yield PluginTrust(SETTINGS_FILE, f"{table}.{name}", value, toml_text.line_of(text, table, name))


def _reaching(spec: Spec, value: Any) -> Any:
    """What of a value needs trust: of a list with harmless names the others, of a personal setting all; else None."""
    if spec.harmless:
        return (spec.foreign(value) or None) if isinstance(value, list) else None
    plain = tuple(value) if isinstance(value, list) else value
    usual = isinstance(plain, bool) == isinstance(spec.default, bool) and plain == spec.default
    return value if spec.personal and not usual else None


def _from_documents(root: Path) -> list[PluginTrust]:
    """The schemas of the workspace's own kinds, which can keep a check busy without end, and the services to which
    memory contexts would send texts.
    """
    wants: list[PluginTrust] = []
    with suppress(MemfsError, OSError), closing(Tree(root)) as tree:
        rows = _document(tree, KINDS).get("kinds")
        for kind, row in rows.items() if isinstance(rows, dict) else ():
            if isinstance(row, dict) and "body" in row:
                wants.append(PluginTrust(KINDS, body_key(kind), row["body"]))
        for path in (MEMORY_CONTEXT, *sorted(entry.path for entry in tree.scan(MEMORY_CONTEXTS) if entry.regular)):
            found: Any = _document(tree, path)
            for name in EMBEDDING_ENDPOINT.split("."):
                found = found.get(name) if isinstance(found, dict) else None
            if found:
                wants.append(PluginTrust(path, EMBEDDING_ENDPOINT, found))
    return wants


def _document(tree: Tree, path: str) -> Mapping[str, Any]:
    try:
        text = decode(tree.read(path, _DOCUMENT_LIMIT).data).text
        from memfs.format import json_text, yaml_text  # most workspaces have no such document

        value = (json_text if path.endswith(".json") else yaml_text).load(text)
    except (MemfsError, OSError):
        return {}
    return value if isinstance(value, dict) else {}


# -- the list -----------------------------------------------------------------------------------------------------
def list_path() -> Path:
    """The path of this user's list: ``$XDG_CONFIG_HOME/memfs/trust.json``, else below ``~/.config``."""
    return base_folder("XDG_CONFIG_HOME", ".config") / "memfs" / "trust.json"


def _private_list() -> Path:
    path = list_path()
    io.make_private_folder(path.parent)
    return path


def _load(path: Path) -> dict[str, dict[str, Any]]:
    """The list.

    Raises:
        CorruptRecord: it is damaged, or others than this user could have written it.
    """
    try:
        _require_own(path.parent)
        _require_own(path)
        text = decode(io.read_file(path, _LIST_LIMIT)).text
        from memfs.format import json_text  # most users have no such list

        value = json_text.load(text)
    except FileNotFoundError:
        return {_WORKSPACES: {}, _REPOSITORIES: {}}
    except ContentError as error:
        raise _unusable(path, error.message) from error
    tables = {name: value.get(name, {}) if isinstance(value, dict) else None for name in (_WORKSPACES, _REPOSITORIES)}
    if not all(isinstance(table, dict) for table in tables.values()) or value.get("version") != _VERSION:
        raise _unusable(path, "not a list of trusted folders that this memfs knows")
    return tables  # type: ignore[return-value]  # just checked


def _require_own(path: Path) -> None:
    facts = os.lstat(path)
    if facts.st_uid != os.geteuid() or facts.st_mode & 0o022:
        raise _unusable(path, "somebody other than you could have written it")


def _unusable(path: Path, reason: str) -> CorruptRecord:
    return CorruptRecord(reason, path=str(path), hint="look at it, then move it away and run 'memfs admin trust' again")


def _save(path: Path, listed: Mapping[str, Any]) -> None:
    text = json.dumps({"version": _VERSION, **listed}, indent=2, sort_keys=True)
    io.write_file(path, text.encode() + b"\n")


def _entry(listed: Mapping[str, Mapping[str, Any]], table: str, folder: Path) -> Mapping[str, Any] | None:
    found = listed[table].get(str(folder))
    return found if isinstance(found, dict) else None


def _identity(folder: Path) -> dict[str, int]:
    facts = os.stat(folder)
    return {"inode": facts.st_ino, "owner": facts.st_uid}


def _digest(wants: tuple[PluginTrust, ...]) -> str:
    rows = sorted(json.dumps([want.file, want.key, want.value], sort_keys=True, default=str) for want in wants)
    return sha256("\n".join(rows).encode()).hexdigest()

"""Configuration: what a workspace's files and the environment say, as values with their defaults filled in.

The only reader of ``memfs.toml``, the ``MEMFS_*`` variables, ``system_config.json``, ``retention_policy.json`` and
``kinds.yaml``. The parts of a workspace are given the values.
"""

from __future__ import annotations

import json
import os
import posixpath
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any

from memfs.config_names import (
    EMBEDDING_KEY,
    KINDS,
    MEMORY_CONTEXT,
    RETENTION_POLICY,
    REVIEW_KEY,
    SETTINGS_FILE,
    SYSTEM_CONFIG,
    VARIABLES,
)
from memfs.errors import SettingInvalid, WorkspaceNotFound
from memfs.format import toml_text
from memfs.format.codec import DOCUMENT_LIMIT, SCHEMAS, Codec
from memfs.format.schema import Schemas
from memfs.fs.tree import View
from memfs.fs.workspace_location import MEMORY_FOLDER as MEMORY_FOLDER
from memfs.fs.workspace_location import find_workspace as find_workspace
from memfs.fs.workspace_location import workspace_at
from memfs.model.kinds import BUILT_IN, Kind, KindTable, Layer, nearest
from memfs.resources import template_text
from memfs.settings import (
    MOUNTS,
    SOURCE_TABLES,
    SPECS,
    TABLES,
    RecallSettings,
    Settings,
    checked,
    from_text,
    spec_of,
    toml,
)
from memfs.trust import TrustStatus, standing

KEY_VARIABLES = frozenset({REVIEW_KEY, EMBEDDING_KEY})
"""Keys of services: no settings, since a setting may stand in a file and is shown (``memfs.endpoint`` reads them)."""
_MOUNT_VARIABLE = f"{VARIABLES}MOUNTS_"
_TOP = (*(table for table in TABLES if "." not in table), MOUNTS)


# -- reading ------------------------------------------------------------------------------------------------------
def make_root(path: Path) -> Path:
    """Make the folder of a workspace, which may be there; returns it with links resolved.

    Where the repository has its memory on a branch of its own, that is the workspace, and nothing is made.

    Raises:
        WorkspaceNotFound: it cannot be made.
    """
    root = path.expanduser().resolve()
    if (memory := workspace_at(root)) is not None and memory != root:
        return memory
    try:
        root.mkdir(parents=True, exist_ok=True)
        (root / MEMORY_FOLDER).mkdir(exist_ok=True)
    except OSError as error:
        raise WorkspaceNotFound(
            f"cannot make a workspace: {error.strerror}", path=str(root), hint="choose a folder you can write in"
        ) from error
    return root


def load(root: Path, arguments: Mapping[str, Any] | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """The settings of the workspace at ``root``: argument before variable before ``memfs.toml`` before default.

    Args:
        arguments: values by dotted key, such as ``{"index.engine": "sqlite"}``; texts are read by the setting's type.
        environ: the environment, the process's own by default.

    Raises:
        SettingInvalid: an unknown name (the hint names the nearest) or a value of the wrong sort, with file and line.
        FormatUnsupported: a newer memfs wrote the workspace, whose settings this one need not know.
    """
    text = toml_text.read(root)
    found = _ConfigSource(Settings(), root)
    written = _Table(text)
    for key, value, line in written.entries():
        found.from_file(key, value, line)
    for key, text_given, variable in _from_environment(os.environ if environ is None else environ):
        found.put(key, from_text(text_given, spec_of(key), variable), variable)
    for key, value in (arguments or {}).items():
        read = from_text if isinstance(value, str) else checked
        found.put(key, read(value, spec_of(key)), "argument")
    written.check_sources(found.named())
    if seed := _asks_to_learn(root, written):
        found.write_what_is_learned(seed)
    return found.settings()


def _asks_to_learn(root: Path, written: _Table) -> str:
    """What in a workspace asks for memory that learns by itself: a memory context, or a value below ``[memory]``."""
    if (root / MEMORY_CONTEXT).is_file():
        return MEMORY_CONTEXT
    line = next((line for key, _, line in written.entries() if key.startswith("memory.")), 0)
    return f"{SETTINGS_FILE}:{line}" if line else ""


def with_memory(settings: Settings, config: Mapping[str, Any], added: Iterable[str] = ()) -> Settings:
    """Settings with the ``[memory]`` tables given as a mapping, laid over them.

    Args:
        config: such as ``{"automatic": ["preferences"], "preferences": {"max_items": 3}}``; the same below one key
            ``memory``, as a TOML reader gives it, is understood too.
        added: names of sources that are there without being named in a list, so that they may have a table.

    Raises:
        SettingInvalid: as ``load``.
    """
    given: object = config
    if not isinstance(given, Mapping):
        hint = 'give {"automatic": ["preferences"]}'
        raise SettingInvalid(f"expected a mapping, got {ascii(given)[:60]}", field="memory", hint=hint)
    inner: Any = given["memory"] if given.keys() == {"memory"} else given
    found = _ConfigSource(settings)
    written = _Table("", {"memory": dict(inner) if isinstance(inner, Mapping) else inner})
    for key, value, _ in written.entries():
        found.put(key, value if _is_source_table(key) else checked(value, spec_of(key)), "argument")
    written.check_sources({*found.named(), *added})
    return found.settings()


def elsewhere(text: str, told: Settings) -> Settings:
    """The settings that another ``memfs.toml`` than the workspace's own says, such as that of another commit.

    Args:
        text: what the file says. What needs trust does not count: that is given to the file in the folder.
        told: settings of which those of an argument or variable go before: they are this process's, not the file's.

    Raises:
        SettingInvalid: as ``load``.
    """
    found = _ConfigSource(Settings())
    written = _Table(text)
    for key, value, line in written.entries():
        found.from_file(key, value, line)
    for key, origin in told.origins.items():
        if key in SPECS and is_of_the_process(origin):
            found.put(key, told.get(key), origin)
    written.check_sources(found.named())
    return found.settings()


def recall_elsewhere(data: bytes | None, told: Settings) -> RecallSettings:
    """How the ``[recall]`` of another revision's ``memfs.toml`` sets recall; nothing else in that file counts.

    Args:
        data: the file, None where there was none.
        told: settings of which those of an argument or variable go before.

    Raises:
        SettingInvalid: the file or the table is invalid.
    """
    try:
        then = toml_text.parse((data or b"").decode("utf-8-sig")).get("recall", {})
    except UnicodeDecodeError as error:
        raise SettingInvalid("not UTF-8 text", path=SETTINGS_FILE, hint="ask at another revision") from error
    chosen: dict[str, Any] = {}
    for name in (entry.name for entry in fields(RecallSettings)):
        key = f"recall.{name}"
        if is_of_the_process(told.origins.get(key, "")):
            chosen[name] = told.get(key)
        elif isinstance(then, Mapping) and name in then:
            chosen[name] = checked(then[name], spec_of(key))
    return RecallSettings(**chosen)


def is_of_the_process(origin: str) -> bool:
    """Whether a value was given to this process, by an argument or a variable, and not by a file."""
    return origin.startswith(("argument", VARIABLES))


def _is_source_table(key: str) -> bool:
    """Whether a key is that of a whole table, of a source from others."""
    home, _, name = key.partition(".")
    return home == "memory" and key not in SPECS and name not in SOURCE_TABLES


class _ConfigSource:
    """The values found so far, over those of other settings, and where each came from."""

    def __init__(self, base: Settings, root: Path | None = None) -> None:
        self._base = base
        self._root = root
        self._values = {key: base.get(key) for key in SPECS}
        self._origins = {**dict.fromkeys(SPECS, "default"), **base.origins}
        self._sources = {name: table for name, table in base.memory.sources.items() if name not in SOURCE_TABLES}
        self._mounts = dict(base.mounts)
        self._asked: TrustStatus | None = None
        self._left_out: set[str] = set()

    def from_file(self, key: str, value: Any, line: int | None) -> None:
        """Take a value of ``memfs.toml``, as far as it counts."""
        place = f"{SETTINGS_FILE}:{line}" if line else SETTINGS_FILE
        if _is_source_table(key):
            if self._trusted(key) == value:
                self.put(key, value, place)
            return
        spec = spec_of(key)
        value, written = checked(value, spec, line), value
        foreign = spec.foreign(value)
        if foreign and self._trusted(key) != foreign:
            self._left_out.update(foreign)
            value = tuple(name for name in value if name in spec.harmless)
            place = f"{place} without {', '.join(foreign)}, not trusted"
        elif spec.personal and value != spec.default and self._trusted(key) != written:
            if key in SPECS:
                self._origins[key] = f"default; {place} is not trusted"
            return
        self.put(key, value, place)

    def put(self, key: str, value: Any, origin: str) -> None:
        """Take a value that counts."""
        if _is_source_table(key):
            self._sources[key.removeprefix("memory.")] = MappingProxyType(dict(value))
            self._origins = {old: place for old, place in self._origins.items() if not old.startswith(f"{key}.")}
            self._origins.update({f"{key}.{inner}": origin for inner in value})
            return
        if key in SPECS:
            self._values[key] = value
        else:
            self._mounts[key.removeprefix(f"{MOUNTS}.")] = value
        self._origins[key] = origin

    def write_what_is_learned(self, origin: str) -> None:
        """Let what is learned be written, where nobody said otherwise."""
        for spec in (spec for key, spec in SPECS.items() if key.startswith("learning.")):
            if self._origins[spec.key] == "default":
                self.put(spec.key, "write", origin)

    def _trusted(self, key: str) -> Any:
        if self._root is None:
            return None
        self._asked = self._asked or standing(self._root)
        return self._asked.value(SETTINGS_FILE, key)

    def named(self) -> set[str]:
        """The sources that may have a table: built in, or named in a list, also where that does not count."""
        listed = (self._values[f"memory.{name}"] for name in ("automatic", "triggered", "on_demand_sources"))
        return {*SOURCE_TABLES, *self._left_out, *chain.from_iterable(listed)}

    def settings(self) -> Settings:
        """All of them as one value."""
        tables: dict[str, dict[str, Any]] = {table: {} for table in TABLES}
        for key, value in self._values.items():
            table, _, name = key.rpartition(".")
            tables[table][name] = value
        own = {name: MappingProxyType(tables.pop(f"memory.{name}")) for name in SOURCE_TABLES}
        tables["memory"]["sources"] = MappingProxyType({**own, **self._sources})
        made = {table: TABLES[table](**entries) for table, entries in tables.items()}
        mounts = MappingProxyType(dict(sorted(self._mounts.items())))
        return Settings(**made, mounts=mounts, origins=MappingProxyType(self._origins))


class _Table:
    """What ``memfs.toml``, or a mapping given in its place, holds; a slip is named with its line."""

    def __init__(self, text: str, tables: Mapping[str, Any] | None = None) -> None:
        self._text = text
        self._path = SETTINGS_FILE if tables is None else None
        self._tables = toml_text.parse(text) if tables is None else tables
        if tables is None:
            toml_text.require_known_format(toml_text.format_version(self._tables, text))

    def entries(self) -> Iterator[tuple[str, Any, int | None]]:
        """Key, value and line of each setting; the table of a source from others is one value."""
        for table, entries in self._tables.items():
            if table == toml_text.FORMAT and self._path is not None:
                continue
            if table not in _TOP:
                raise self._unknown(f"table [{table}]", table, _TOP, self._line(table))
            for name, value in self._mapping(table, entries).items():
                if table == "memory" and isinstance(value, dict):
                    yield from self._source(name, value)
                elif table == MOUNTS:
                    yield spec_of(f"{MOUNTS}.{name}").key, value, self._line(table, name)
                else:
                    yield self._known(table, name), value, self._line(table, name)

    def _source(self, name: str, table: dict[str, Any]) -> Iterator[tuple[str, Any, int | None]]:
        home = f"memory.{name}"
        if name not in SOURCE_TABLES:
            yield home, table, self._line("memory", name)
            return
        for key, value in table.items():
            yield self._known(home, key), value, self._line(home, key)

    def check_sources(self, named: Iterable[str]) -> None:
        """Refuse the table of a source that nothing names.

        Raises:
            SettingInvalid: the hint names the nearest.
        """
        memory = self._tables.get("memory")
        for name, value in memory.items() if isinstance(memory, dict) else ():
            if isinstance(value, dict) and name not in named:
                raise self._unknown(f"source [memory.{name}]", name, named, self._line("memory", name))

    def _mapping(self, table: str, entries: Any) -> dict[str, Any]:
        if isinstance(entries, dict):
            return entries
        hint = f"write [{table}] above its keys"
        raise SettingInvalid(f"{table!r} must be a table", path=self._path, line=self._line(table), hint=hint)

    def _known(self, table: str, name: str) -> str:
        key = f"{table}.{name}"
        if key in SPECS:
            return key
        known = [other.rpartition(".")[2] for other in SPECS if other.rpartition(".")[0] == table]
        raise self._unknown(f"setting {name!r} in [{table}]", name, known, self._line(table, name), key)

    def _line(self, table: str, name: str | None = None) -> int | None:
        return toml_text.line_of(self._text, table, name)

    def _unknown(
        self, what: str, name: str, known: Iterable[str], line: int | None, key: str | None = None
    ) -> SettingInvalid:
        listed = ", ".join(sorted(known))
        home = next((other for other in SPECS if other.endswith(f".{name}")), "").rpartition(".")[0]
        hint = nearest(name, known) or (f"it belongs in [{home}]" if home else f"known here: {listed or 'nothing yet'}")
        return SettingInvalid(f"unknown {what}", path=self._path, line=line, field=key, hint=hint)


def _from_environment(environ: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    known = {spec.variable: spec.key for spec in SPECS.values()}
    beginnings = tuple(f"{VARIABLES}{table.upper()}_" for table in _TOP)
    for variable, written in sorted(environ.items()):
        if variable in known:
            yield known[variable], written, variable
        elif variable.startswith(_MOUNT_VARIABLE):
            yield spec_of(f"{MOUNTS}.{variable.removeprefix(_MOUNT_VARIABLE).lower()}").key, written, variable
        elif variable.startswith(beginnings) and variable not in KEY_VARIABLES:
            raise SettingInvalid(
                f"unknown setting in the environment: {variable}", hint=nearest(variable, known) or "see 'memfs config'"
            )


# -- the documents of configuration/ ------------------------------------------------------------------------------
LEVELS = ("", "warning", "critical", "full")
_SUFFIX = "_bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bytes by quota (``total`` and names of areas), those without a limit left out, and the thresholds as shares."""

    bytes: Mapping[str, int] = field(default_factory=dict)
    warn_at: float = 0.8
    critical_at: float = 0.95

    def at(self, level: str) -> float:
        """The share of a quota at which a level begins."""
        return {"warning": self.warn_at, "critical": self.critical_at, "full": 1.0}.get(level, 0.0)

    def level(self, share: float) -> str:
        """The highest level that a share has reached."""
        return next((name for name in reversed(LEVELS) if share >= self.at(name)), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemConfig:
    """What ``system_config.json`` says; where it is silent, the defaults.

    Attributes:
        quotas: how much the areas of the workspace may take.
        agent_weights: the weights of agents by name.
        update_interval: seconds between two state updates.
        expires_hours: after how many hours continuation tokens expire.
        checkpoint_minutes: after how many minutes a checkpoint is due, 0 for never.
        checkpoint_tasks: after how many outputs one is due, 0 for never.
    """

    quotas: Limits = field(default_factory=Limits)
    agent_weights: Mapping[str, Any] = field(default_factory=dict)
    update_interval: float = 300.0
    expires_hours: float = 168.0
    checkpoint_minutes: float = 0.0
    checkpoint_tasks: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionPolicy:
    """What ``retention_policy.json`` says; where it is silent, the defaults.

    Attributes:
        active_days: iterations closed for longer go into an archive.
        automatic: whether what is due goes by itself.
        level: of zstd, for archives.
        delete_days: archives older than this are deleted; 0 for never.
        keep: how many checkpoints are kept at least.
        keep_days: for how many days each is kept.
        kinds: for how many days types are kept, in place of what their kinds say.
        prune_action: what becomes of a pruned item, ``archive`` or ``delete``.
        prune_below: the importance below which an item is due; None leaves that to the memory context.
    """

    active_days: int = 30
    automatic: bool = True
    level: int = 10
    delete_days: int = 0
    keep: int = 5
    keep_days: int = 7
    kinds: Mapping[str, int] = field(default_factory=dict)
    prune_action: str = "archive"
    prune_below: float | None = None


def read_system_config(tree: View, codec: Codec) -> SystemConfig:
    """What ``system_config.json`` says now; the defaults where there is none.

    Raises:
        ContentError: it is invalid.
        StorageIO: it cannot be read.
    """
    said = _document(tree, codec, SYSTEM_CONFIG)
    quotas, due = said.get("quotas", {}), said.get("checkpoints", {})
    usual = SystemConfig()
    return SystemConfig(
        quotas=Limits(
            bytes={key.removesuffix(_SUFFIX): size for key, size in quotas.items() if key.endswith(_SUFFIX) and size},
            **{name: quotas[name] for name in ("warn_at", "critical_at") if name in quotas},
        ),
        agent_weights=said.get("agent_weights", {}),
        update_interval=float(said.get("update_interval_seconds", usual.update_interval)),
        expires_hours=float(said.get("continuation", {}).get("expires_hours", usual.expires_hours)),
        checkpoint_minutes=float(due.get("every_minutes", 0)),
        checkpoint_tasks=int(due.get("every_tasks", 0)),
    )


def read_retention_policy(tree: View, codec: Codec) -> RetentionPolicy:
    """What ``retention_policy.json`` says now; the defaults where there is none.

    Raises:
        ContentError: it is invalid: nothing is due until it is right.
        StorageIO: it cannot be read.
    """
    said = _document(tree, codec, RETENTION_POLICY)
    archive, kept, prune = said.get("archive", {}), said.get("checkpoints", {}), said.get("prune", {})
    found = {
        "active_days": said.get("active_days"),
        "automatic": archive.get("enabled"),
        "level": archive.get("compression_level"),
        "delete_days": said.get("delete", {}).get("archives_after_days"),
        "keep": kept.get("keep"),
        "keep_days": kept.get("keep_days"),
        "kinds": said.get("kinds"),
        "prune_action": prune.get("action"),
        "prune_below": prune.get("below"),
    }
    return RetentionPolicy(**{name: value for name, value in found.items() if value is not None})


def read_documents(tree: View, codec: Codec) -> dict[str, Mapping[str, Any]]:
    """``system_config`` and ``retention_policy`` as their files have them now; one that is absent is empty.

    Raises:
        ContentError, StorageIO: one of them is invalid, or cannot be read.
    """
    return {SCHEMAS[path]: _document(tree, codec, path) for path in (SYSTEM_CONFIG, RETENTION_POLICY)}


def first_retention_policy() -> dict[str, Any]:
    """The retention policy that counts without a file, for one that people can change.

    Items are left out: what is said of them here would take the place of what the memory context says.
    """
    policy = json.loads(template_text(posixpath.basename(RETENTION_POLICY)))
    return {name: policy[name] for name in ("active_days", "archive", "delete", "checkpoints")}


def _document(tree: View, codec: Codec, path: str) -> Mapping[str, Any]:
    try:
        data = tree.read(path, DOCUMENT_LIMIT).data
    except FileNotFoundError:
        return {}
    return codec.read_document(data, path, SCHEMAS[path])


def load_kinds(tree: View) -> tuple[KindTable, Schemas]:
    """The kinds a workspace knows, built-in and its own, and the schemas their items obey.

    Raises:
        ContentError, SettingInvalid: the file is invalid, or redefines a built-in kind.
        SchemaRefForbidden, SchemaTooComplex: a body schema could reach out or take unbounded time.
    """
    try:
        return kinds_in(tree.read(KINDS, DOCUMENT_LIMIT).data)
    except FileNotFoundError:
        return kinds_in(None)


def kinds_in(data: bytes | None) -> tuple[KindTable, Schemas]:
    """The kinds that the content of such a file declares, beside the built-in ones; None where there is no file.

    Raises:
        As ``load_kinds``.
    """
    if data is None:
        return KindTable(), Schemas()
    document = Codec(Schemas(), KindTable()).read_document(data, KINDS, "kinds")
    rows: Mapping[str, Mapping[str, Any]] = document.get("kinds", {})
    bodies = {name: row["body"] for name, row in rows.items() if "body" in row}
    return KindTable([*BUILT_IN, *(_kind(name, row) for name, row in rows.items())]), Schemas(bodies)


def _kind(name: str, row: Mapping[str, Any]) -> Kind:
    return Kind(
        name=name,
        layer=Layer(row["layer"]),
        description=row["description"],
        folder=row.get("folder", f"memories/{name}"),
        dated=row.get("dated", True),
        body=name if "body" in row else "",
        half_life_days=row.get("half_life_days", 0),
        retention_days=row.get("retention_days", 0),
    )


# -- writing ------------------------------------------------------------------------------------------------------
def first_policies(repository_made: bool) -> dict[str, str]:
    """The commit and adoption policy for a repository of our own, or for one that memfs joins."""
    if repository_made:
        return {"history.commit": "interval", "history.adopt": "auto"}
    return {"history.commit": "manual"}


def first_toml(policies: Mapping[str, Any]) -> str:
    """A fresh ``memfs.toml``: the version of the format, and the given values by dotted key.

    Raises:
        SettingInvalid: a policy that is no setting, or of the wrong sort.
    """
    lines = ["# How memfs behaves here. 'memfs config' lists every setting and where its value comes from."]
    lines += [f"{toml_text.FORMAT} = {toml_text.FORMAT_VERSION}"]
    home = ""
    for key, value in policies.items():
        written = toml(checked(value, spec_of(key)))
        table, _, name = key.rpartition(".")
        lines += ["", f"[{table}]"] if table != home else []
        lines.append(f"{name} = {written}")
        home = table
    return "\n".join(lines) + "\n"

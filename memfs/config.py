"""Configuration: what a workspace's files and the environment say, as values with their defaults filled in.

Reads ``memfs.toml``, the ``MEMFS_*`` variables, ``system_config.json``, ``retention_policy.json``, ``kinds.yaml`` and
the memory contexts. The parts of a workspace are given the values.
"""

from __future__ import annotations

import os
import posixpath
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from types import MappingProxyType

import memfs.config_names as names
from memfs.dataclass import NamedTuple, dataclass, field
from memfs.errors import (
    MemfsError,
    SchemaInvalid,
    SettingInvalid,
    StorageIO,
    WorkspaceNotFound,
)
from memfs.format import toml_text
from memfs.format.codec import DOCUMENT_LIMIT, SCHEMAS, SUFFIXES, Codec, parse
from memfs.fs.tree import Content, View
from memfs.fs.workspace_location import MEMORY_FOLDER as MEMORY_FOLDER
from memfs.fs.workspace_location import base_folder, workspace_at
from memfs.fs.workspace_location import find_workspace as find_workspace
from memfs.model import Problem
from memfs.model.ids import is_id, stem_of
from memfs.model.kinds import BUILT_IN, Kind, KindTable, Layer, nearest
from memfs.resources import template_names, template_text
from memfs.settings import (
    MOUNTS,
    SOURCE_TABLES,
    SPECS,
    TABLES,
    Settings,
    checked,
    from_text,
    spec_of,
    toml,
)
from memfs.startup import TYPE_CHECKING, Any, json, regex

if TYPE_CHECKING:
    from memfs.format.schema import Schemas
    from memfs.model.learning import BehaviorRule, MemoryConfig
    from memfs.trust import TrustStatus

KEY_VARIABLES = frozenset({names.REVIEW_KEY, names.EMBEDDING_KEY})
"""Keys of services: no settings, since a setting may be in a file and is shown (``memfs.endpoint`` reads them)."""
_MOUNT_VARIABLE = f"{names.VARIABLES}MOUNTS_"
_OWN_HOME, _OWN_FILE = ("XDG_CONFIG_HOME", ".config"), ("memfs", "config.toml")
_TOP = (*TABLES, MOUNTS)


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
    """The settings of the workspace at ``root``: argument, variable, ``memfs.toml``, the person's own file, default.

    The earlier of these wins.

    Args:
        arguments: values by dotted key, such as ``{"index.engine": "sqlite"}``; texts are read by the setting's type.
        environ: the environment, the process's own by default.

    Raises:
        SettingInvalid: an unknown name (the hint names the nearest) or a value of the wrong sort, with file and line.
        FormatUnsupported: a newer memfs wrote the workspace, whose settings this one need not know.
    """
    text = toml_text.read(root)
    found = _ConfigSource(Settings(), root)
    own: Path | None = None
    with suppress(StorageIO):  # there is no home
        own = own_file()
    if own is not None and os.access(own, os.F_OK):  # few have one
        found.from_own_file(own)
    written = _Table(text)
    for key, value, line in written.entries():
        found.from_file(key, value, line)
    for key, text_given, variable in _from_environment(os.environ if environ is None else environ):
        found.put(key, from_text(text_given, spec_of(key), variable), variable)
    for key, value in (arguments or {}).items():
        read = from_text if isinstance(value, str) else checked
        found.put(key, read(value, spec_of(key)), "argument")
    written.check_sources(found.named())
    # a memory context, or a value below [memory], asks for memory that learns by itself
    asking = next((line for key, _, line in written.entries() if key.startswith("memory.")), 0)
    if (root / names.MEMORY_CONTEXT).is_file():
        found.write_what_is_learned(names.MEMORY_CONTEXT)
    elif asking:
        found.write_what_is_learned(f"{names.SETTINGS_FILE}:{asking}")
    return found.settings()


def own_file() -> Path:
    """A person's own settings: ``$XDG_CONFIG_HOME/memfs/config.toml``, else below ``~/.config``."""
    return base_folder(*_OWN_HOME).joinpath(*_OWN_FILE)


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


def elsewhere(table: str, data: bytes | None, settings: Settings) -> Any:
    """A table of settings as the ``memfs.toml`` of another revision has it; nothing else in that file counts.

    Args:
        table: such as ``recall``.
        data: the file, None where there was none.
        settings: where a value came from an argument or a variable, it wins over the file: it is this process's.

    Raises:
        SettingInvalid: the file or the table is invalid.
    """
    try:
        then = toml_text.parse((data or b"").decode("utf-8-sig")).get(table, {})
    except UnicodeDecodeError as error:
        raise SettingInvalid("not UTF-8 text", path=names.SETTINGS_FILE, hint="ask at another revision") from error
    values = dict(TABLES[table].defaults)
    for name in values:
        key = f"{table}.{name}"
        if is_of_the_process(settings.origins.get(key, "")):
            values[name] = settings.get(key)
        elif isinstance(then, Mapping) and name in then:
            values[name] = checked(then[name], spec_of(key))
    return TABLES[table](**values)


def is_of_the_process(origin: str) -> bool:
    """Whether a value was given to this process, by an argument or a variable, and not by a file."""
    return origin.startswith(("argument", names.VARIABLES))


def _is_source_table(key: str) -> bool:
    """Whether a key is that of a whole table, of a source from others."""
    table, _, name = key.partition(".")
    return table == "memory" and key not in SPECS and name not in SOURCE_TABLES


class _ConfigSource:
    """The values found so far, over those of other settings, and where each came from."""

    def __init__(self, base: Settings, root: Path | None = None) -> None:
        self._base, self._root = base, root
        self._values = {key: base.get(key) for key in SPECS}
        self._origins = {**dict.fromkeys(SPECS, "default"), **base.origins}
        self._sources = {name: table for name, table in base.memory.sources.items() if name not in SOURCE_TABLES}
        self._mounts = dict(base.mounts)
        self._asked: TrustStatus | None = None
        self._left_out: set[str] = set()

    def from_own_file(self, path: Path) -> None:
        """Take what the person says for all their workspaces; nothing of it has to be trusted.

        Raises:
            SettingInvalid: as ``load``, with the path of that file.
        """
        try:
            for key, value, line in _Table(toml_text.read(path.parent, path.name)).entries():
                self.put(key, value if _is_source_table(key) else checked(value, spec_of(key), line), f"{path}:{line}")
        except SettingInvalid as error:
            error.path = str(path)
            raise

    def from_file(self, key: str, value: Any, line: int | None) -> None:
        """Take a value of ``memfs.toml``, as far as it counts."""
        place = f"{names.SETTINGS_FILE}:{line}" if line else names.SETTINGS_FILE
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
                self._origins[key] = f"{self._origins[key]}; {place} is not trusted"
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
        """Let what is learned be written, unless it is configured otherwise."""
        for spec in (spec for key, spec in SPECS.items() if key.startswith("learning.")):
            if self._origins[spec.key] == "default":
                self.put(spec.key, "write", origin)

    def _trusted(self, key: str) -> Any:
        if self._root is None:
            return None
        from memfs.trust import status_of

        self._asked = self._asked or status_of(self._root)
        return self._asked.value(names.SETTINGS_FILE, key)

    def named(self) -> set[str]:
        """The sources that may have a table: built in, or named in a list, also where that does not count."""
        listed = (self._values[f"memory.{name}"] for name in ("automatic", "triggered", "on_demand_sources"))
        return {*SOURCE_TABLES, *self._left_out, *chain.from_iterable(listed)}

    def settings(self) -> Settings:
        """All of them as one value."""
        tables: dict[str, dict[str, Any]] = defaultdict(dict)
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
        self._path = names.SETTINGS_FILE if tables is None else None
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
            if not isinstance(entries, dict):
                hint = f"write [{table}] above its keys"
                line = self._line(table)
                raise SettingInvalid(f"{table!r} must be a table", path=self._path, line=line, hint=hint)
            for name, value in entries.items():
                home = f"{table}.{name}"
                if table == MOUNTS:
                    yield spec_of(home).key, value, self._line(table, name)
                elif table != "memory" or not isinstance(value, dict):
                    yield self._known(table, name), value, self._line(table, name)
                elif name not in SOURCE_TABLES:
                    yield home, value, self._line(table, name)
                else:
                    for key, inner in value.items():
                        yield self._known(home, key), inner, self._line(home, key)

    def check_sources(self, named: Iterable[str]) -> None:
        """Refuse the table of a source that nothing names.

        Raises:
            SettingInvalid: the hint names the nearest.
        """
        memory = self._tables.get("memory")
        for name, value in memory.items() if isinstance(memory, dict) else ():
            if isinstance(value, dict) and name not in named:
                raise self._unknown(f"source [memory.{name}]", name, named, self._line("memory", name))

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
        part = next((other for other in SPECS if other.endswith(f".{name}")), "").rpartition(".")[0]
        hint = nearest(name, known) or (f"it belongs in [{part}]" if part else f"known here: {listed or 'nothing yet'}")
        return SettingInvalid(f"unknown {what}", path=self._path, line=line, field=key, hint=hint)


def _from_environment(environ: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    known = {spec.variable: spec.key for spec in SPECS.values()}
    beginnings = tuple(f"{names.VARIABLES}{table.upper()}_" for table in _TOP)
    for variable, written in sorted(environ.items()):
        if variable in known:
            yield known[variable], written, variable
        elif variable.startswith(_MOUNT_VARIABLE):
            yield spec_of(f"{MOUNTS}.{variable.removeprefix(_MOUNT_VARIABLE).lower()}").key, written, variable
        elif variable.startswith(beginnings) and variable not in KEY_VARIABLES:
            raise SettingInvalid(
                f"unknown setting in the environment: {variable}",
                hint=nearest(variable, known) or "see 'memfs config --list'",
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
    """

    quotas: Limits = field(default_factory=Limits)
    agent_weights: Mapping[str, Any] = field(default_factory=dict)
    update_interval: float = 300.0
    expires_hours: float = 168.0
    checkpoint_minutes: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionPolicy:
    """What ``retention_policy.json`` says; where it is silent, the defaults.

    Attributes:
        active_days: iterations closed for longer go into an archive.
        automatic: whether what is due is removed by itself.
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
    values = _document(tree, codec, names.SYSTEM_CONFIG)
    quotas, due = values.get("quotas", {}), values.get("checkpoints", {})
    usual = SystemConfig()
    return SystemConfig(
        quotas=Limits(
            bytes={key.removesuffix(_SUFFIX): size for key, size in quotas.items() if key.endswith(_SUFFIX) and size},
            **{name: quotas[name] for name in ("warn_at", "critical_at") if name in quotas},
        ),
        agent_weights=values.get("agent_weights", {}),
        update_interval=float(values.get("update_interval_seconds", usual.update_interval)),
        expires_hours=float(values.get("continuation", {}).get("expires_hours", usual.expires_hours)),
        checkpoint_minutes=float(due.get("every_minutes", 0)),
    )


def read_retention_policy(tree: View, codec: Codec) -> RetentionPolicy:
    """What ``retention_policy.json`` says now; the defaults where there is none.

    Raises:
        ContentError: it is invalid: nothing is due until it is right.
        StorageIO: it cannot be read.
    """
    document = _document(tree, codec, names.RETENTION_POLICY)
    archive, kept, prune = document.get("archive", {}), document.get("checkpoints", {}), document.get("prune", {})
    found = {
        "active_days": document.get("active_days"),
        "automatic": archive.get("enabled"),
        "level": archive.get("compression_level"),
        "delete_days": document.get("delete", {}).get("archives_after_days"),
        "keep": kept.get("keep"),
        "keep_days": kept.get("keep_days"),
        "kinds": document.get("kinds"),
        "prune_action": prune.get("action"),
        "prune_below": prune.get("below"),
    }
    return RetentionPolicy(**{name: value for name, value in found.items() if value is not None})


def read_documents(tree: View, codec: Codec) -> dict[str, Mapping[str, Any]]:
    """``system_config`` and ``retention_policy`` as their files have them now; one that is absent is empty.

    Raises:
        ContentError, StorageIO: one of them is invalid, or cannot be read.
    """
    return {SCHEMAS[path]: _document(tree, codec, path) for path in (names.SYSTEM_CONFIG, names.RETENTION_POLICY)}


def first_retention_policy() -> dict[str, Any]:
    """The retention policy that counts without a file, for one that people can change.

    Items are left out: what is said of them here would take the place of what the memory context says.
    """
    policy = json.loads(template_text(posixpath.basename(names.RETENTION_POLICY)))
    return {name: policy[name] for name in ("active_days", "archive", "delete", "checkpoints")}


def _document(tree: View, codec: Codec, path: str) -> Mapping[str, Any]:
    data = _data(tree, path)
    return {} if data is None else codec.read_document(data, path, SCHEMAS[path])


def _data(tree: View, path: str) -> bytes | None:
    try:
        return tree.read(path, DOCUMENT_LIMIT).data
    except FileNotFoundError:
        return None


def load_kinds(tree: View) -> tuple[KindTable, Schemas | None]:
    """The kinds a workspace knows, built-in and its own, and the schemas their items obey, as ``Codec`` takes them.

    Raises:
        ContentError, SettingInvalid: the file is invalid, or redefines a built-in kind.
        SchemaRefForbidden, SchemaInvalid: the body of a kind reaches out, is too large or no schema.
    """
    return kinds_in(_data(tree, names.KINDS), tree.root)


def kinds_in(data: bytes | None, root: Path) -> tuple[KindTable, Schemas | None]:
    """The kinds that the content of such a file declares, beside the built-in ones; None where there is no file.

    A body counts where the reader trusts the workspace at ``root`` with it; a schema can keep a check busy without end.

    Raises:
        As ``load_kinds``.
    """
    if data is None:
        return KindTable(), None
    from memfs.format.schema import Schemas

    document = Codec(None, KindTable()).read_document(data, names.KINDS, "kinds")
    rows: Mapping[str, Mapping[str, Any]] = document.get("kinds", {})
    bodies = {name: row["body"] for name, row in rows.items() if "body" in row}
    if bodies:
        from memfs.trust import body_key, status_of

        status = status_of(root)
        bodies = {name: body for name, body in bodies.items() if status.value(names.KINDS, body_key(name)) == body}
    kinds = [
        Kind(
            name=name,
            layer=Layer(row["layer"]),
            description=row["description"],
            folder=row.get("folder", f"memories/{name}"),
            dated=row.get("dated", True),
            body=name if name in bodies else "",
            half_life_days=row.get("half_life_days", 0),
            retention_days=row.get("retention_days", 0),
        )
        for name, row in rows.items()
    ]
    return KindTable([*BUILT_IN, *kinds]), Schemas(bodies)


# -- the memory context -------------------------------------------------------------------------------------------
_UNIVERSAL = "universal/"
_DEEPEST = 16
"""How many contexts may extend one another."""
_BESIDE = frozenset({"name", "business_goal", "behavior_rules"})
_LEADING = regex(r"^(\.{1,2}/)+")


def load_memory_context(tree: View, name: str = "") -> MemoryConfig:
    """How a workspace learns, with everything filled in.

    Args:
        tree: the workspace's files.
        name: which of its contexts; "" is ``configuration/memory_context.yaml``, without which the defaults hold.

    Raises:
        ContentError: a file does not obey its schema; with line and field.
        SettingInvalid: there is no such context, or what it extends is missing, unending or too deep.
    """
    return _filled(tree, _layers(tree, name))


class FollowedContext:
    """One memory context of an open workspace, which follows what people do to its files.

    Where an edit is not valid, the last good version holds until it is; ``memfs check`` names the edit.
    """

    def __init__(self, tree: View, name: str, report: Callable[[Exception], None]) -> None:
        """``report`` is called for an edit that is not valid."""
        self._tree, self._name, self._report = tree, name, report
        self._known: MemoryConfig | None = None
        self._seen: dict[str, bytes | None] = {}
        self._contents: dict[str, Content] = {}
        self._refused: MemfsError | None = None

    def config(self) -> MemoryConfig:
        """How the workspace learns at present.

        Raises:
            ContentError, SettingInvalid: as ``load_memory_context``, and there is no good version before.
        """
        if self._known is None or any(self._bytes(path) != data for path, data in self._seen.items()):
            try:
                chain = _layers(self._tree, self._name)
                self._known, self._refused = _filled(self._tree, chain), None
                read: dict[str, bytes | None] = {layer.path: layer.data for layer in chain if not layer.built_in}
                self._seen = read or dict.fromkeys(_places(self._name))
            except MemfsError as error:
                if self._known is None:
                    raise
                if self._refused is None or self._refused.args != error.args:
                    self._report(error)
                self._refused = error
        return self._known

    def surely_words_only(self) -> bool:
        """Whether it is certain, without reading the context in full, that it asks for no search by meaning.

        A command that answers one question is spared the schema.
        """
        if self._known is not None:
            return self.config().storage_type != names.VECTOR_DB
        data = (None if self._name else self._bytes(names.MEMORY_CONTEXT)) or b""
        plain = data.count(b"extends") <= data.count(b"universal/memory-base")
        return not self._name and plain and names.VECTOR_DB.encode() not in data

    def _bytes(self, path: str) -> bytes | None:
        """What a file holds, None where it cannot be read."""
        try:
            known = self._contents.get(path)
            if known is None or path not in self._tree.proven({path: known.stamp}):
                if self._tree.entry(path) is None:
                    return None
                known = self._contents[path] = self._tree.read(path, DOCUMENT_LIMIT)
            return known.data
        except (FileNotFoundError, MemfsError):
            return None


def checked_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values of a ``MemoryConfig`` that a caller gives by name, which win over those of a file.

    Raises:
        SettingInvalid: an unknown name; the hint names the nearest.
        SchemaInvalid: a value is of the wrong sort.
    """
    from memfs.model.learning import BehaviorRule, MemoryConfig

    known = MemoryConfig.__dataclass_fields__
    for name in values.keys() - known.keys():
        hint = nearest(name, known) or f"the names are {', '.join(known)}"
        raise SettingInvalid(f"a memory context has no {name!r}", field=name, hint=hint)
    from dataclasses import asdict  # costs start-up time, and few callers give values

    usual = MemoryConfig()  # whose values are right, also where a file may not say so
    learning = {name: v for name, v in values.items() if name not in _BESIDE and v != getattr(usual, name)}
    rules = [asdict(rule) if isinstance(rule, BehaviorRule) else rule for rule in values.get("behavior_rules", ())]
    written = {
        "metadata": {"type": "memory", "name": values.get("name", "given")},
        "intent_context": {"business_goal": values.get("business_goal", "")},
        "polymorphic_config": {"memory_config": learning},
        "behavior_rules": rules,
    }
    try:
        _parsed("memory_context.json", json.dumps(written, default=str).encode())
    except SchemaInvalid as error:  # which names a file and a line that no one wrote
        raise SchemaInvalid(error.message, field=error.field, hint=error.hint) from error
    return {**values, **({"behavior_rules": _rules(rules)} if "behavior_rules" in values else {})}


def memory_context_names(tree: View) -> list[str]:
    """The names of the contexts beside the main one, sorted; those that come with memfs are not among them."""
    own = (entry.path for entry in tree.scan(names.MEMORY_CONTEXTS) if entry.regular and entry.path.endswith(SUFFIXES))
    return sorted({stem_of(path) for path in own if posixpath.dirname(path) == names.MEMORY_CONTEXTS})


def memory_context_problems(tree: View, chosen: str = "") -> Iterator[Problem]:
    """What is wrong with the contexts of a workspace, each taken by itself, and with the choice of one."""
    from memfs.model.learning import FITTING

    for name in dict.fromkeys(("", *memory_context_names(tree), chosen)):
        try:
            config = load_memory_context(tree, name)
        except MemfsError as error:
            yield Problem.of(error)
            continue
        path = f"{names.MEMORY_CONTEXTS}/{name}" if name else names.MEMORY_CONTEXT
        for number, rule in enumerate(config.behavior_rules):
            if rule.action not in (fitting := FITTING[rule.trigger]):
                message = f"on {rule.trigger} there is nothing for {rule.action} to do"
                hint = f"the action for it is {', '.join(fitting)}"
                yield Problem.of(SettingInvalid(message, field=f"behavior_rules.{number}", hint=hint), path)


# -- what extends what --------------------------------------------------------------------------------------------
class _Layer(NamedTuple):
    """One context as its file has it; the path of one that comes with memfs is its name."""

    path: str
    data: bytes
    mapping: Mapping[str, Any]

    def table(self, *names: str) -> Mapping[str, Any]:
        found: Any = self.mapping
        for name in names:
            found = found.get(name, {})
        return found if isinstance(found, Mapping) else {}

    @property
    def built_in(self) -> bool:
        return self.path.startswith(_UNIVERSAL)

    @property
    def extends(self) -> str:
        return str(self.table("intent_context").get("extends", ""))

    def wrong(self, message: str, hint: str) -> SettingInvalid:
        """An error about what it extends, with the line."""
        spot = parse(self.data, self.path).place(("intent_context", "extends"))
        return SettingInvalid(message, path=self.path, line=spot.line, field="intent_context.extends", hint=hint)


def _layers(tree: View, name: str) -> list[_Layer]:
    """The context of that name, what it extends, what that extends, and so on; nothing where there is none."""
    first = _named(tree, name) if name else _read(tree, names.MEMORY_CONTEXT)
    if first is None:
        if name:
            hint = _meant(tree, name)
            raise SettingInvalid(f"there is no memory context {name!r}", field="memory.context", hint=hint)
        return []
    chain = [first]
    while chain[-1].extends:
        last = chain[-1]
        # one that comes with memfs, or one of the workspace, by name
        base = _named(tree, _LEADING.sub("", last.extends).removesuffix(".yaml"))
        if base is None:
            hint = _meant(tree, last.extends)
            raise last.wrong(f"there is no memory context {last.extends!r} to extend", hint)
        paths = [layer.path for layer in chain]
        if base.path in paths:
            circle = " -> ".join([*paths[paths.index(base.path) :], base.path])
            raise last.wrong(f"memory contexts extend one another for ever: {circle}", "let one of them extend nothing")
        if len(chain) >= _DEEPEST:
            raise last.wrong(f"more than {_DEEPEST} memory contexts extend one another", "merge some of them")
        chain.append(base)
    return chain


def _meant(tree: View, name: str) -> str:
    """A hint for a name that no context has."""
    known = [*memory_context_names(tree), *_built_in_names()]
    return nearest(name, known) or f"write {names.MEMORY_CONTEXTS}/<name>.yaml; there is: {', '.join(known)}"


def _named(tree: View, name: str) -> _Layer | None:
    if name in _built_in_names():
        return _parsed(f"{name}.yaml", template_text(name).encode())
    found = (_read(tree, place) for place in _places(name)) if is_id(name) else ()
    return next((one for one in found if one is not None), None)


def _places(name: str) -> list[str]:
    """Where the context of a name may be."""
    if name in ("", stem_of(names.MEMORY_CONTEXT)):
        return [names.MEMORY_CONTEXT]
    return [f"{names.MEMORY_CONTEXTS}/{name}{suffix}" for suffix in SUFFIXES]


def _read(tree: View, path: str) -> _Layer | None:
    data = _data(tree, path)
    return None if data is None else _parsed(path, data)


def _built_in_names() -> list[str]:
    return [name.removesuffix(".yaml") for name in template_names() if name.startswith(_UNIVERSAL)]


def _parsed(path: str, data: bytes) -> _Layer:
    return _Layer(path, data, Codec(None, KindTable()).read_document(data, path, "memory_context"))


# -- filling in ---------------------------------------------------------------------------------------------------
def _filled(tree: View, chain: Sequence[_Layer]) -> MemoryConfig:
    """The value of the first context, where it is silent that of the next; the defaults where there is none."""
    from memfs.model.learning import MemoryConfig  # costs start-up time, and a command that only reads needs none of it

    values: dict[str, Any] = {"name": chain[0].table("metadata")["name"]} if chain else {}
    for layer in reversed(chain):
        own = dict(layer.table("polymorphic_config", "memory_config"))
        if "embedding_endpoint" in own:  # counts where its reader trusts the workspace: texts would be sent there
            from memfs.trust import EMBEDDING_ENDPOINT, status_of

            own["embedding_endpoint"] = str(status_of(tree.root).value(layer.path, EMBEDDING_ENDPOINT) or "")
        values |= own
        if goal := layer.table("intent_context").get("business_goal"):
            values["business_goal"] = goal
        if "behavior_rules" in layer.mapping:
            values["behavior_rules"] = _rules(layer.mapping["behavior_rules"])
    return MemoryConfig(**values)


def _rules(rows: Sequence[Mapping[str, str]]) -> tuple[BehaviorRule, ...]:
    from memfs.model.learning import BehaviorAction, BehaviorRule, Trigger

    rules = (BehaviorRule(trigger=Trigger(row["trigger"]), action=BehaviorAction(row["action"])) for row in rows)
    return tuple(dict.fromkeys(rules))


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
    lines = ["# How memfs behaves here. 'memfs config --list' shows every setting and where it comes from."]
    lines += [f"{toml_text.FORMAT} = {toml_text.FORMAT_VERSION}"]
    current = ""
    for key, value in policies.items():
        written = toml(checked(value, spec_of(key)))
        table, _, name = key.rpartition(".")
        lines += ["", f"[{table}]"] if table != current else []
        lines.append(f"{name} = {written}")
        current = table
    return "\n".join(lines) + "\n"


def changed(folder: Path, key: str, value: Any, name: str = names.SETTINGS_FILE) -> bytes:
    """A file of settings in a folder with one of them changed, or taken out where the value is None.

    Raises:
        SettingInvalid: the file is written in a way that this cannot change.
    """
    text = toml_text.read(folder, name)
    table, _, own = key.rpartition(".")
    return toml_text.with_value(text, table, own, value).encode()

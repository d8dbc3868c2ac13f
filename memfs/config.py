"""Configuration: where a workspace lies, what its settings are, and where each value came from.

Owns the reading of ``memfs.toml`` and ``MEMFS_*`` variables, and the search for the workspace. Knows nothing of items,
git or search engines; the parts get the values handed to them.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from memfs.errors import SettingInvalid, WorkspaceNotFound
from memfs.files import tomltext
from memfs.files.tomltext import FILE
from memfs.model.kinds import nearest
from memfs.settings import SPECS, TABLES, Settings, Spec, spec_of
from memfs.trust import Standing, standing

MEMORY_FOLDER = "ContextMemory"
WORKSPACE_VARIABLE = "MEMFS_WORKSPACE"
KEY_VARIABLES = frozenset({"MEMFS_REVIEW_KEY", "MEMFS_EMBEDDING_KEY"})
"""Keys of services: no settings, since a setting may stand in a file and is shown (``memfs.endpoint`` reads them)."""
_PREFIX = "MEMFS_"
_TRUE, _FALSE = frozenset({"1", "true", "yes", "on"}), frozenset({"0", "false", "no", "off"})
_OWN_SOURCES: Mapping[str, frozenset[str]] = {
    "preferences": frozenset({"max_items"}),
    "episodic": frozenset({"similarity_threshold", "max_warnings"}),
    "semantic": frozenset({"min_confidence"}),
    "conventions": frozenset(),
    "recent_session": frozenset(),
}


# -- finding the workspace ----------------------------------------------------------------------------------------
def find_workspace(start: str | os.PathLike[str] | None = None, environ: Mapping[str, str] | None = None) -> Path:
    """The workspace's folder: at or above ``start``, else ``MEMFS_WORKSPACE``, else the current folder.

    Raises:
        WorkspaceNotFound: no such folder, or none at or above it holds ``ContextMemory/``.
    """
    named = (os.environ if environ is None else environ).get(WORKSPACE_VARIABLE, "")
    asked = Path(start) if start is not None else Path(named).expanduser() if named else Path()
    if not os.path.isdir(asked):
        hint = f"{WORKSPACE_VARIABLE} names it" if start is None and named else "name one that exists"
        raise WorkspaceNotFound(f"there is no folder {str(asked)!r}", hint=hint)
    folder = asked.resolve()
    for candidate in (folder, *folder.parents):
        if os.path.isdir(candidate / MEMORY_FOLDER):
            return candidate
    raise WorkspaceNotFound(
        f"no {MEMORY_FOLDER}/ in {str(folder)!r} or any folder above it",
        hint=f"make a workspace with 'memfs init', or name one with -C or {WORKSPACE_VARIABLE}",
    )


# -- reading ------------------------------------------------------------------------------------------------------
def make_root(path: Path) -> Path:
    """Make the folder of a workspace, which may be there; returns it with links resolved.

    Raises:
        WorkspaceNotFound: it cannot be made.
    """
    root = path.expanduser().resolve()
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
    """
    text = tomltext.read(root)
    values = {key: spec.default for key, spec in SPECS.items()}
    origins = dict.fromkeys(SPECS, "default")
    sources: dict[str, Mapping[str, Any]] = {}
    asked: Standing | None = None
    for key, value, line in _from_file(text, sources):
        checked, place = _checked(value, SPECS[key], line), f"{FILE}:{line}" if line else FILE
        if SPECS[key].personal and checked != SPECS[key].default:
            asked = asked or standing(root)
            if asked.value(FILE, key) != value:
                origins[key] = f"default; {place} is not trusted"
                continue
        values[key], origins[key] = checked, place
    for key, written, variable in _from_environment(os.environ if environ is None else environ):
        values[key], origins[key] = _from_text(written, SPECS[key], variable), variable
    for key, value in (arguments or {}).items():
        read = _from_text if isinstance(value, str) else _checked
        values[key], origins[key] = read(value, spec_of(key)), "argument"
    _check_sources(sources, values, text)
    tables = {
        table: {key.partition(".")[2]: value for key, value in values.items() if key.startswith(f"{table}.")}
        for table in TABLES
    }
    tables["memory"]["sources"] = MappingProxyType(sources)
    made = {table: TABLES[table](**entries) for table, entries in tables.items()}
    return Settings(**made, origins=MappingProxyType(origins))


def _from_file(text: str, sources: dict[str, Mapping[str, Any]]) -> Iterator[tuple[str, Any, int | None]]:
    for table, entries in tomltext.parse(text).items():
        line = tomltext.line_of(text, table)
        if table not in TABLES:
            raise _unknown(f"table [{table}]", table, TABLES, line)
        if not isinstance(entries, dict):
            hint = f"write [{table}] above its keys"
            raise SettingInvalid(f"{table!r} must be a table", path=FILE, line=line, hint=hint)
        known = [key.partition(".")[2] for key in SPECS if key.startswith(f"{table}.")]
        for name, value in entries.items():
            key, line = f"{table}.{name}", tomltext.line_of(text, table, name)
            if table == "memory" and isinstance(value, dict):
                sources[name] = MappingProxyType(value)
            elif key not in SPECS:
                raise _unknown(f"setting {name!r} in [{table}]", name, known, line, key)
            else:
                yield key, value, line


def _unknown(what: str, name: str, known: Iterable[str], line: int | None, key: str | None = None) -> SettingInvalid:
    listed = ", ".join(sorted(known))
    home = next((other for other in SPECS if other.endswith(f".{name}")), "").partition(".")[0]
    hint = nearest(name, known) or (f"it belongs in [{home}]" if home else f"known here: {listed or 'nothing yet'}")
    return SettingInvalid(f"unknown {what}", path=FILE, line=line, field=key, hint=hint)


def _from_environment(environ: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    known = {spec.variable: spec.key for spec in SPECS.values()}
    beginnings = tuple(f"{_PREFIX}{table.upper()}_" for table in TABLES)
    for variable, written in sorted(environ.items()):
        if variable in known:
            yield known[variable], written, variable
        elif variable.startswith(beginnings) and variable not in KEY_VARIABLES:
            raise SettingInvalid(
                f"unknown setting in the environment: {variable}", hint=nearest(variable, known) or "see 'memfs config'"
            )


# -- checking -----------------------------------------------------------------------------------------------------
def _from_text(written: str, spec: Spec, variable: str = "") -> Any:
    value: Any = written.strip()
    lowered = value.lower()
    if isinstance(spec.default, bool):
        value = True if lowered in _TRUE else False if lowered in _FALSE else value
    elif isinstance(spec.default, tuple):
        value = [part.strip() for part in value.split(",") if part.strip()]
    elif isinstance(spec.default, (int, float)):
        for number in (int, float):
            try:
                value = number(lowered)
                break
            except ValueError:
                continue
    return _checked(value, spec, variable=variable)


def _checked(value: Any, spec: Spec, line: int | None = None, variable: str = "") -> Any:
    if expected := _expected(value, spec):
        shown = json.dumps(value, default=str, ensure_ascii=False)
        raise SettingInvalid(
            f"{shown[:80]} is not {expected}",
            path=None if variable else FILE if line else None,
            line=line,
            field=variable or spec.key,
            hint=(nearest(str(value), spec.choices) if spec.choices else "") or f"the default is {toml(spec.default)}",
        )
    if isinstance(spec.default, tuple):
        return tuple(value)
    return float(value) if isinstance(spec.default, float) else value


def _expected(value: Any, spec: Spec) -> str:
    """What the value should have been, in words; "" when it is right."""
    default = spec.default
    if isinstance(default, bool):
        return "" if isinstance(value, bool) else "true or false"
    if isinstance(default, tuple):
        right = isinstance(value, (list, tuple)) and all(isinstance(part, str) and part for part in value)
        return "" if right else "a list of names"
    if isinstance(default, (int, float)):
        whole = isinstance(default, int)
        right = (
            isinstance(value, int if whole else (int, float)) and not isinstance(value, bool) and math.isfinite(value)
        )
        low, high = spec.low or 0, spec.high or math.inf
        return "" if right and low <= value <= high else f"a {'whole ' if whole else ''}number from {low:g} to {high:g}"
    if spec.choices:
        return "" if value in spec.choices else "one of " + ", ".join(spec.choices)
    return "" if isinstance(value, str) else "a text"


def _check_sources(sources: Mapping[str, Mapping[str, Any]], values: Mapping[str, Any], text: str) -> None:
    named = {*_OWN_SOURCES, *values["memory.automatic"], *values["memory.triggered"]}
    for name, table in sources.items():
        if name not in named:
            raise _unknown(f"source [memory.{name}]", name, named, tomltext.line_of(text, "memory", name))
        for key in table.keys() - _OWN_SOURCES.get(name, table.keys()):
            home = f"memory.{name}"
            raise _unknown(
                f"setting {key!r} in [{home}]",
                key,
                _OWN_SOURCES[name],
                tomltext.line_of(text, home, key),
                f"{home}.{key}",
            )


# -- writing ------------------------------------------------------------------------------------------------------
def toml(value: Any) -> str:
    """A setting's value as it is written in ``memfs.toml``."""
    if isinstance(value, tuple):
        return "[" + ", ".join(toml(part) for part in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def first_policies(repository_made: bool) -> dict[str, str]:
    """The commit and adoption policy for a repository of our own, or for one that memfs joins."""
    if repository_made:
        return {"history.commit": "interval", "history.adopt": "auto"}
    return {"history.commit": "session", "history.adopt": "leave"}


def default_toml(policies: Mapping[str, Any]) -> str:
    """A fresh ``memfs.toml``: the given values by dotted key, every other setting as a comment with its default.

    Raises:
        SettingInvalid: a policy that is no setting, or of the wrong sort.
    """
    chosen = {key: _checked(value, spec_of(key)) for key, value in policies.items()}
    lines = [
        "# How memfs behaves in this workspace. 'memfs config' shows every value and where it came from.",
        "# A line that begins with '#' and a name shows that setting's default.",
    ]
    for table in TABLES:
        lines += ["", f"[{table}]"]
        for spec in SPECS.values():
            if spec.key.startswith(f"{table}."):
                choices = f" One of {', '.join(spec.choices)}." if spec.choices else ""
                name = spec.key.partition(".")[2]
                value = toml(chosen.get(spec.key, spec.default))
                lines += [f"# {spec.summary}{choices}", f"{'' if spec.key in chosen else '#'}{name} = {value}"]
    return "\n".join(lines) + "\n"

"""Keep the circumstances of a session or workflow, which no memory disturbs.

They lie in ContextMemory/context/NAME.yaml, each change in history.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from memfs.dataclass import dataclass
from memfs.doors.cli.command import Unclear, remark, verb
from memfs.doors.cli.filters import as_of, past_at
from memfs.doors.cli.options import SOURCE, land
from memfs.doors.cli.output import Block, Table, Text, count, readable
from memfs.doors.cli.parser import Actions
from memfs.errors import ContentError, ItemNotFound
from memfs.model.kinds import nearest
from memfs.store.context import DEFAULT, Contexts

if TYPE_CHECKING:
    from memfs.team.asof import Past
    from memfs.workspace import Workspace


_named = click.option("--name", default=DEFAULT, metavar="NAME", help=f"Which context; '{DEFAULT}' by default.")


def _of(workspace: Workspace, past: Past | None) -> Contexts:
    return workspace.contexts if past is None else Contexts(workspace.store, workspace.parts, past.files)


# -- get ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class ContextValues:
    """What a context holds.

    Attributes:
        name: of the context.
        values: all its keys, or the one that was asked for.
    """

    name: str
    values: Mapping[str, Any]


def _values_text(found: ContextValues, key: str | None) -> Text:
    if key is not None:
        yield Block(readable(found.values[key]))
    else:
        yield Table([(name, readable(value)) for name, value in found.values.items()])


@verb("get", text=_values_text)
@click.argument("key", required=False)
@_named
@as_of
def get(workspace: Workspace, key: str | None, name: str, as_of: str | None) -> ContextValues:
    """Show all keys, or the value of one.

    Examples:
        memfs agent context get branch
    """
    past = past_at(workspace, as_of)
    contexts = _of(workspace, past)
    values, others = contexts.read(name), contexts.names()
    if key is not None and key not in values:
        hint = nearest(key, values) or f"memfs agent context set {key}=VALUE"
        raise ItemNotFound(f"the context {name!r} has no key {key!r}", hint=hint)
    if name not in others:
        begin = f"there is {', '.join(others)}" if others else "'memfs agent context set KEY=VALUE' begins one"
        remark(f"there is no context {name} yet; {begin}")
    return ContextValues(name, values if key is None else {key: values[key]})


# -- set, unset ---------------------------------------------------------------------------------------------------
def _change_text(done: ContextValues) -> Text:
    yield f"The context {done.name} has {count(len(done.values), 'key')}"


@verb("set", text=_change_text)
@click.argument("pairs", nargs=-1, required=True, metavar="KEY=VALUE...")
@_named
def set_(workspace: Workspace, pairs: tuple[str, ...], name: str) -> ContextValues:
    """Give keys new values, and leave the others alone.

    KEY=VALUE is text, KEY:=VALUE is JSON, for numbers, lists and the like.

    Examples:
        memfs agent context set branch=main ticket=SHOP-12
        memfs agent context set 'open:=["SHOP-12", "SHOP-13"]'
    """
    values = dict(map(_pair, pairs))
    left = workspace.contexts.set(values, name, source=SOURCE)
    land(workspace)
    return ContextValues(name, left)


@verb("unset", text=_change_text)
@click.argument("keys", nargs=-1, required=True, metavar="KEY...")
@_named
def unset(workspace: Workspace, keys: tuple[str, ...], name: str) -> ContextValues:
    """Take keys away.

    Examples:
        memfs agent context unset ticket
    """
    left = workspace.contexts.unset(keys, name, source=SOURCE)
    land(workspace)
    return ContextValues(name, left)


def _pair(word: str) -> tuple[str, Any]:
    """A key and its value.

    Raises:
        Unclear: there is no "=", no key, or what should be JSON is none.
    """
    key, equals, value = word.partition("=")
    if not equals or not key.rstrip(":"):
        raise Unclear(f"{word[:60]!r} gives no value to a key", "write KEY=VALUE, such as branch=main")
    if not key.endswith(":"):
        return key, value
    try:
        return key[:-1], json.loads(value)
    except ValueError as error:
        raise Unclear(f"{value[:60]!r} is not JSON", f"write {key[:-1]}=VALUE for plain text") from error


# -- list ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class ContextSize:
    """A context.

    Attributes:
        name: its name.
        keys: how many keys it has; null where its file is invalid.
    """

    name: str
    keys: int | None


def _list_text(found: tuple[ContextSize, ...]) -> Text:
    rows = [(one.name, "invalid" if one.keys is None else count(one.keys, "key")) for one in found]
    yield Table(rows, dim=(1,))


@verb("list", text=_list_text, key="contexts")
@as_of
def list_(workspace: Workspace, as_of: str | None) -> tuple[ContextSize, ...]:
    """Name the contexts there are.

    Examples:
        memfs agent context list
    """
    rows: list[ContextSize] = []
    past = past_at(workspace, as_of)
    contexts = _of(workspace, past)
    for name in contexts.names():
        try:
            rows.append(ContextSize(name, len(contexts.read(name))))
        except ContentError as error:
            remark(f"{error}; 'memfs check' says more")
            rows.append(ContextSize(name, None))
    return tuple(rows)


context = Actions("context", __doc__, get, set_, unset, list_)

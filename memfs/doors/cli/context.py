"""``context``: keep keys and values of a session or workflow."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from memfs.doors.cli.command import Unclear, opened, verb
from memfs.doors.cli.commit_report import SOURCE, land
from memfs.doors.cli.filters import as_of, as_of_json, note_past, past_at
from memfs.doors.cli.output import clean, count, note, print_json, print_raw, print_table, print_text, readable
from memfs.errors import ContentError, ItemNotFound
from memfs.model.kinds import nearest
from memfs.store.context import DEFAULT, Contexts

if TYPE_CHECKING:
    from memfs.team.asof import Past
    from memfs.workspace import Workspace


@verb(
    "context",
    example='memfs context set branch=main ticket=SHOP-12\nmemfs context set \'open:=["SHOP-12", "SHOP-13"]\'\n'
    "memfs context get branch\nmemfs context list",
)
@click.argument("action", type=click.Choice(["get", "set", "unset", "list"]))
@click.argument("words", nargs=-1, metavar="[KEY|KEY=VALUE]...")
@click.option("--name", default=DEFAULT, metavar="NAME", help=f"Which context; '{DEFAULT}' by default.")
@as_of
@click.pass_context
def context(
    ctx: click.Context, action: str, words: tuple[str, ...], name: str, as_of: str | None, as_json: bool
) -> None:
    """Keep the circumstances of a session or workflow, which no memory disturbs.

    'get' shows all keys, or the value of one; 'set' gives keys new values and leaves the others alone; 'unset' takes
    keys away; 'list' names the contexts there are. KEY=VALUE is text, KEY:=VALUE is JSON.
    """
    _check(ctx, action, words)
    if as_of is not None and action in ("set", "unset"):
        raise click.UsageError(f"'{action}' takes no --as-of", ctx)
    values = dict(_pair(word) for word in words) if action == "set" else {}
    with opened(ctx) as workspace:
        past = past_at(workspace, as_of) if as_of is not None else None
        contexts = workspace.contexts if past is None else Contexts(workspace.store, workspace.parts, past.files)
        if action == "list":
            _list(contexts, past, as_json)
        elif action == "get":
            _show(contexts.read(name), name, words, past, as_json)
            known = contexts.names()
            if name not in known and not words:
                note(f"there is no context {clean(name)} yet; {_names(known)}")
        else:
            left = _changed(workspace, values, words, name)
            reason = land(workspace, None).reason
    if action in ("set", "unset"):
        _tell(left, name, reason, as_json)


def _check(ctx: click.Context, action: str, words: tuple[str, ...]) -> None:
    if action in ("set", "unset") and not words:
        written = "KEY=VALUE" if action == "set" else "KEY"
        raise click.UsageError(f"name what to {action}: memfs context {action} {written}", ctx)
    if (action == "list" and words) or (action == "get" and len(words) > 1):
        raise click.UsageError(f"'{action}' takes {'no words' if action == 'list' else 'at most one KEY'}", ctx)


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


def _changed(workspace: Workspace, values: dict[str, Any], words: tuple[str, ...], name: str) -> dict[str, Any]:
    if values:
        return workspace.contexts.set(values, name, source=SOURCE)
    return workspace.contexts.unset(words, name, source=SOURCE)


def _list(contexts: Contexts, past: Past | None, as_json: bool) -> None:
    rows: list[tuple[str, int | None]] = []
    for name in contexts.names():
        try:
            rows.append((name, len(contexts.read(name))))
        except ContentError as error:
            note(f"{error}; 'memfs check' says more")
            rows.append((name, None))
    if as_json:
        print_json({"contexts": [{"name": name, "keys": keys} for name, keys in rows], **as_of_json(past)})
    else:
        print_table([(name, "invalid" if keys is None else count(keys, "key")) for name, keys in rows], dim=(1,))
        note_past(past)


def _show(values: dict[str, Any], name: str, words: tuple[str, ...], past: Past | None, as_json: bool) -> None:
    for key in words:
        if key not in values:
            hint = nearest(key, values) or f"memfs context set {key}=VALUE"
            raise ItemNotFound(f"the context {name!r} has no key {key!r}", hint=hint)
    if as_json:
        print_json({"name": name, "values": {key: values[key] for key in words or values}, **as_of_json(past)})
    elif words:
        print_text(readable(values[words[0]]))
    else:
        print_table([(key, readable(value)) for key, value in values.items()])
    if not as_json:
        note_past(past)


def _names(known: Sequence[str]) -> str:
    return f"there is {clean(', '.join(known))}" if known else "'memfs context set KEY=VALUE' begins one"


def _tell(values: dict[str, Any], name: str, reason: str, as_json: bool) -> None:
    if as_json:
        print_json({"name": name, "values": values})
    else:
        print_raw(f"The context {clean(name)} has {count(len(values), 'key')}")
    if reason:
        note(f"stored; its commit waits: {reason}")

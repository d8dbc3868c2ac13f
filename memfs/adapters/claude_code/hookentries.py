"""Hook entries: memfs's handlers in the text of a settings file.

Owns which entries are changed, one after the other, and that the result differs from what was there in these alone:
that is compared before anything is written. Works on texts; where they lie it does not know.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from memfs.adapters.claude_code import handlers, jsonsplice
from memfs.errors import ContentError
from memfs.files import jsontext, nodes

HOOKS = "hooks"
_MOST_STEPS = 500
Groups = dict[str, dict[str, Any]]


class Handler(NamedTuple):
    """One handler of memfs's in a file: its event, where its group stands and where it in there, and what they say."""

    event: str
    group: int
    at: int
    matcher: str
    alone: bool
    value: dict[str, Any]


# -- hooks --------------------------------------------------------------------------------------------------------
def with_hooks(text: str | None, wanted: Groups) -> str:
    """The text with each wanted group once and no other of memfs's; groups of others stay as and where they are.

    Args:
        text: None where there is no file.
        wanted: by event, as ``handlers.groups`` gives them.

    Raises:
        ContentError: it is no JSON, or no settings of Claude Code, with line and remedy.
    """
    if text is None:
        return jsonsplice.made(HOOKS, {event: [group] for event, group in wanted.items()})
    return _settled(text, wanted) or ""


def without_hooks(text: str | None) -> str | None:
    """The text without memfs's handlers; None where the file was made for them, or there is none.

    Raises:
        what ``with_hooks`` raises.
    """
    return text if text is None or jsonsplice.is_blank(text) else _settled(text, {})


def handlers_in(text: str) -> list[Handler]:
    """memfs's handlers in a settings file.

    Raises:
        what ``with_hooks`` raises.
    """
    return list(_ours(_hooks(text)))


def lines_by_hand(text: str) -> list[int]:
    """The lines at which somebody wrote a handler of his own that calls memfs."""
    found, root = [], jsontext.tree(text)
    for event, groups in _hooks(text).items():
        for number, group in enumerate(groups):
            for at, handler in enumerate(_handlers(group)):
                if handlers.is_by_hand(handler):
                    found.append(nodes.place(root, text, (HOOKS, event, number, HOOKS, at)).line)
    return found


def _settled(text: str, wanted: Groups) -> str | None:
    """The text after as many single changes as it takes."""
    before: str | None = text
    after = before
    for _ in range(_MOST_STEPS):
        if after is None:
            break
        step = _step(after, wanted)
        if step is None:
            break
        after = step[0]
    else:
        raise ContentError("it names memfs too often", hint="remove the hooks of memfs by hand")
    _compare(text, after, wanted)
    return after


def _step(text: str, wanted: Groups) -> tuple[str | None] | None:
    """The text after the next change, None where none is left to make."""
    hooks = _hooks(text)
    kept = set()
    for one in _ours(hooks):
        group = wanted.get(one.event)
        path: jsonsplice.Path = (HOOKS, one.event, one.group)
        if group is None or one.event in kept or (not one.alone and one.matcher != _matcher(group)):
            return (jsonsplice.take(text, path if one.alone else (*path, HOOKS, one.at)),)
        kept.add(one.event)
        if one.matcher != _matcher(group):
            return (jsonsplice.put(text, path, group),)
        if one.value != group[HOOKS][0]:
            return (jsonsplice.put(text, (*path, HOOKS, one.at), group[HOOKS][0]),)
    missing = {event: group for event, group in wanted.items() if event not in kept}
    if not missing:
        return None
    return (_added(text, missing, hooks),)


def _added(text: str, missing: Groups, hooks: dict[str, list[Any]]) -> str:
    if jsonsplice.is_blank(text) or HOOKS not in jsontext.load(text, None):
        return jsonsplice.put(text, (HOOKS,), {event: [group] for event, group in missing.items()})
    event, group = next(iter(missing.items()))
    if event in hooks:
        return jsonsplice.put(text, (HOOKS, event, len(hooks[event])), group)
    return jsonsplice.put(text, (HOOKS, event), [group])


def _ours(hooks: dict[str, list[Any]]) -> Iterator[Handler]:
    for event, groups in hooks.items():
        for number, group in enumerate(groups):
            listed = _handlers(group)
            ours = [at for at, handler in enumerate(listed) if handlers.is_ours(handler)]
            for at in ours:
                yield Handler(event, number, at, _matcher(group), len(listed) == 1, listed[at])


def _handlers(group: Any) -> list[Any]:
    listed = group.get(HOOKS) if isinstance(group, dict) else None
    return listed if isinstance(listed, list) else []


def _matcher(group: dict[str, Any]) -> str:
    """What a group says of tools; one that says nothing, or a star, means all."""
    said = group.get("matcher")
    return "" if said in (None, "*") else str(said)


def _hooks(text: str) -> dict[str, list[Any]]:
    """What stands below ``hooks``.

    Raises:
        ContentError: it is nothing that Claude Code could read.
    """
    hooks = jsonsplice.below(text, HOOKS)
    for event, groups in hooks.items():
        if not isinstance(groups, list):
            raise jsonsplice.misshapen(text, (HOOKS, event), "a list")
    return hooks


# -- proof -------------------------------------------------------------------------------------------
def _compare(before: str, after: str | None, wanted: Groups) -> None:
    """Prove that two texts differ in memfs's handlers alone, and that the second has those that are wanted.

    Raises:
        ContentError: they do not; nothing may be written.
    """
    found = {one.event: one.value for one in _ours(jsonsplice.said(after).get(HOOKS, {}))}
    same = _others(before) == _others(after)
    if not same or found != {event: group[HOOKS][0] for event, group in wanted.items()}:
        raise ContentError("memfs cannot change this file safely", hint="write or remove its hooks by hand")


def _others(text: str | None) -> Any:
    """What a settings file says besides memfs's handlers, in its order, without collections that hold nothing."""
    said = jsonsplice.said(text)
    events = []
    for event, groups in said.pop(HOOKS, {}).items():
        left = [[one for one in _handlers(group) if not handlers.is_ours(one)] for group in groups]
        theirs = [
            (group, handlers_left)
            for group, handlers_left in zip(groups, left, strict=True)
            if handlers_left or not _handlers(group)
        ]
        events += [(event, _shell(group), one) for group, one in theirs]
    return [list(said.items()), events]


def _shell(group: Any) -> Any:
    """A group without its handlers."""
    return [(key, value) for key, value in group.items() if key != HOOKS] if isinstance(group, dict) else group

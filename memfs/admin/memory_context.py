"""Load ``configuration/memory_context.yaml``, and what it extends, as one value.

Values that a context leaves out are filled in. ``FollowedContext`` follows changes of the files while a workspace is
open.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from time import monotonic
from typing import Any

from memfs.config_names import MEMORY_CONTEXT, MEMORY_CONTEXTS
from memfs.errors import MemfsError, NotRegularFile, PathEscape, SchemaInvalid, SettingInvalid
from memfs.format.codec import SUFFIXES, Codec
from memfs.format.render import parse
from memfs.format.schema import Schemas
from memfs.fs.tree import View
from memfs.model import KindTable, Problem
from memfs.model.ids import is_id, stem_of
from memfs.model.kinds import nearest
from memfs.model.memory_config import FITTING, VECTOR_DB, BehaviorAction, BehaviorRule, MemoryConfig, Trigger
from memfs.resources import template_names, template_text
from memfs.store.parts import READ_LIMIT
from memfs.trust import EMBEDDING_ENDPOINT, standing

_BUILT_IN = "universal/"
_BASE = "universal/memory-base"
_DEEPEST = 16
"""How many contexts may extend one another."""
_PATIENCE = 1.0
"""Seconds after which an edit that was not valid is looked at again."""
_BESIDE = frozenset({"name", "business_goal", "behavior_rules"})
_GIVEN = "memory_context.json"
_LEADING = re.compile(r"^(\.{1,2}/)+")


def load_memory_context(tree: View, name: str = "") -> MemoryConfig:
    """How a workspace learns, with everything filled in.

    Args:
        tree: the workspace's files.
        name: which of its contexts; "" is ``configuration/memory_context.yaml``, without which the defaults hold.

    Raises:
        ContentError: a file does not obey its schema; with line and field.
        SettingInvalid: there is no such context, or what it extends is missing, unending or too deep.
        PathEscape: it extends a file outside the workspace.
    """
    chain = _layers(tree, name)
    return _filled(tree, chain) if chain else MemoryConfig()


class FollowedContext:
    """One memory context of an open workspace, which follows what people do to its files.

    Where an edit is not valid, the last good version holds until it is; ``memfs check`` names the edit.
    """

    def __init__(self, tree: View, name: str, report: Callable[[Exception], None]) -> None:
        """``report`` is called for an edit that is not valid."""
        self._tree = tree
        self._name = name
        self._report = report
        self._known: MemoryConfig | None = None
        self._seen: dict[str, bytes | None] = {}
        self._again = 0.0

    def config(self) -> MemoryConfig:
        """How the workspace learns at present.

        Raises:
            ContentError, SettingInvalid, PathEscape: as ``load_memory_context``, and there is no good version before.
        """
        if self._known is None or self._changed():
            try:
                self._load()
            except MemfsError as error:
                if self._known is None:
                    raise
                self._seen = {path: _bytes(self._tree, path) for path in self._seen}
                self._again = monotonic() + _PATIENCE
                self._report(error)
        assert self._known is not None  # else the error left this method
        return self._known

    def _load(self) -> None:
        chain = _layers(self._tree, self._name)
        seen: dict[str, bytes | None] = {layer.path: layer.data for layer in chain if not layer.built_in}
        self._known = _filled(self._tree, chain) if chain else MemoryConfig()
        self._seen, self._again = seen or dict.fromkeys(_places(self._name)), 0.0

    def _changed(self) -> bool:
        """Whether a file holds other bytes than when it was read, or what was wrong with another may be put right."""
        if self._again and monotonic() >= self._again:
            return True
        return any(_bytes(self._tree, path) != data for path, data in self._seen.items())

    def surely_words_only(self) -> bool:
        """Whether it is certain, without reading the context in full, that it asks for no search by meaning.

        A command that answers one question is spared the schema.
        """
        if self._known is not None:
            return self.config().storage_type != VECTOR_DB
        data = (None if self._name else _bytes(self._tree, MEMORY_CONTEXT)) or b""
        plain = data.count(b"extends") <= data.count(_BASE.encode())
        return not self._name and plain and VECTOR_DB.encode() not in data


def checked_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values of a ``MemoryConfig`` that a caller gives by name, which win over those of a file.

    Raises:
        SettingInvalid: an unknown name; the hint names the nearest.
        SchemaInvalid: a value is of the wrong sort.
    """
    known = MemoryConfig.__dataclass_fields__
    for name in values.keys() - known.keys():
        hint = nearest(name, known) or f"the names are {', '.join(known)}"
        raise SettingInvalid(f"a memory context has no {name!r}", field=name, hint=hint)
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
        _parsed(_GIVEN, json.dumps(written, default=str).encode())
    except SchemaInvalid as error:  # which names a file and a line that nobody wrote
        raise SchemaInvalid(error.message, field=error.field, hint=error.hint) from error
    return {**values, **({"behavior_rules": _rules(rules)} if "behavior_rules" in values else {})}


def memory_context_names(tree: View) -> list[str]:
    """The names of the contexts beside the main one, sorted; those that come with memfs are not among them."""
    own = (entry.path for entry in tree.scan(MEMORY_CONTEXTS) if entry.regular and entry.path.endswith(SUFFIXES))
    return sorted({stem_of(path) for path in own if posixpath.dirname(path) == MEMORY_CONTEXTS})


def memory_context_problems(tree: View, chosen: str = "") -> Iterator[Problem]:
    """What is wrong with the contexts of a workspace, each taken by itself, and with the choice of one."""
    for name in dict.fromkeys(("", *memory_context_names(tree), chosen)):
        try:
            config = load_memory_context(tree, name)
        except MemfsError as error:
            yield Problem.of(error)
            continue
        path = f"{MEMORY_CONTEXTS}/{name}" if name else MEMORY_CONTEXT
        yield from (Problem.of(error, path) for error in _unfitting(config.behavior_rules))


def _unfitting(rules: Sequence[BehaviorRule]) -> Iterator[SettingInvalid]:
    for number, rule in enumerate(rules):
        if rule.action not in FITTING[rule.trigger]:
            yield SettingInvalid(
                f"on {rule.trigger} there is nothing for {rule.action} to do",
                field=f"behavior_rules.{number}",
                hint=f"the action for it is {', '.join(FITTING[rule.trigger])}",
            )


# -- what extends what --------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _Layer:
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
        return self.path.startswith(_BUILT_IN)

    @property
    def extends(self) -> str:
        return str(self.table("intent_context").get("extends", ""))

    def wrong(self, message: str, hint: str, sort: type[MemfsError] = SettingInvalid) -> MemfsError:
        """An error about what it extends, with the line."""
        spot = parse(self.data, self.path).place(("intent_context", "extends"))
        return sort(message, path=self.path, line=spot.line, field="intent_context.extends", hint=hint)


def _layers(tree: View, name: str) -> list[_Layer]:
    """The context of that name, what it extends, what that extends, and so on; nothing where nobody wrote any."""
    first = _named(tree, name) if name else _read(tree, MEMORY_CONTEXT)
    if first is None:
        if name:
            raise _no_context(tree, name)
        return []
    chain = [first]
    while chain[-1].extends:
        last = chain[-1]
        base = _base(tree, last)
        paths = [layer.path for layer in chain]
        if base.path in paths:
            circle = " -> ".join([*paths[paths.index(base.path) :], base.path])
            raise last.wrong(f"memory contexts extend one another for ever: {circle}", "let one of them extend nothing")
        if len(chain) >= _DEEPEST:
            raise last.wrong(f"more than {_DEEPEST} memory contexts extend one another", "merge some of them")
        chain.append(base)
    return chain


def _base(tree: View, layer: _Layer) -> _Layer:
    """What a context extends: one that comes with memfs, one of the workspace by name, or a file by path."""
    named = layer.extends
    if built_in := _built_in(_LEADING.sub("", named)):
        return built_in
    by_name = "/" not in named and not named.endswith(SUFFIXES)
    found = _named(tree, named) if by_name else _at(tree, layer, named)
    if found is None:
        known = [*memory_context_names(tree), *_built_in_names()]
        raise layer.wrong(f"there is no memory context {named!r} to extend", _meant(named, known))
    return found


def _meant(name: str, known: Sequence[str]) -> str:
    return nearest(name, known) or f"write {MEMORY_CONTEXTS}/<name>.yaml; there is: {', '.join(known)}"


def _at(tree: View, layer: _Layer, written: str) -> _Layer | None:
    """The context in a file named by its path from the folder of the one that extends it."""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(layer.path), written))
    if posixpath.isabs(written) or "\\" in written or path == ".." or path.startswith("../"):
        raise layer.wrong(
            f"{written!r} leads out of the workspace", "name a context, or a file inside the workspace", PathEscape
        )
    try:
        return _first(tree, path)
    except (PathEscape, NotRegularFile) as error:
        raise layer.wrong(f"{written!r}: {error.message}", error.hint or "", type(error)) from error


def _named(tree: View, name: str) -> _Layer | None:
    if built_in := _built_in(name):
        return built_in
    return _first(tree, f"{MEMORY_CONTEXTS}/{name}") if is_id(name) else None


def _places(name: str) -> list[str]:
    """Where the context of a name may lie."""
    return [f"{MEMORY_CONTEXTS}/{name}{suffix}" for suffix in SUFFIXES] if name else [MEMORY_CONTEXT]


def _first(tree: View, path: str) -> _Layer | None:
    """The context at a path whose ending may be left out."""
    paths = (path,) if path.endswith(SUFFIXES) else tuple(path + suffix for suffix in SUFFIXES)
    return next((found for one in paths if (found := _read(tree, one)) is not None), None)


def _read(tree: View, path: str) -> _Layer | None:
    try:
        data = tree.read(path, READ_LIMIT).data
    except FileNotFoundError:
        return None
    return _parsed(path, data)


def _bytes(tree: View, path: str) -> bytes | None:
    """What a file holds, None where it cannot be read."""
    try:
        return tree.read(path, READ_LIMIT).data
    except (FileNotFoundError, MemfsError):
        return None


def _built_in_names() -> list[str]:
    return [name.removesuffix(".yaml") for name in template_names() if name.startswith(_BUILT_IN)]


def _built_in(name: str) -> _Layer | None:
    return _parsed(f"{name}.yaml", template_text(name).encode()) if name in _built_in_names() else None


def _parsed(path: str, data: bytes) -> _Layer:
    return _Layer(path, data, Codec(Schemas(), KindTable()).read_document(data, path, "memory_context"))


def _no_context(tree: View, name: str) -> SettingInvalid:
    known = [*memory_context_names(tree), *_built_in_names()]
    return SettingInvalid(f"there is no memory context {name!r}", field="memory.context", hint=_meant(name, known))


# -- filling in ---------------------------------------------------------------------------------------------------
def _filled(tree: View, chain: Sequence[_Layer]) -> MemoryConfig:
    """The value of the first context, where it is silent that of the next."""
    values: dict[str, Any] = {}
    for layer in reversed(chain):
        own = dict(layer.table("polymorphic_config", "memory_config"))
        if "embedding_endpoint" in own:
            own["embedding_endpoint"] = _trusted_endpoint(tree, layer)
        values |= own
        if goal := layer.table("intent_context").get("business_goal"):
            values["business_goal"] = goal
        if "behavior_rules" in layer.mapping:
            values["behavior_rules"] = _rules(layer.mapping["behavior_rules"])
    return MemoryConfig(name=chain[0].table("metadata")["name"], **values)


def _rules(rows: Sequence[Mapping[str, str]]) -> tuple[BehaviorRule, ...]:
    rules = (BehaviorRule(trigger=Trigger(row["trigger"]), action=BehaviorAction(row["action"])) for row in rows)
    return tuple(dict.fromkeys(rules))


def _trusted_endpoint(tree: View, layer: _Layer) -> str:
    """The service a file names, where its reader trusts the workspace: texts would be sent there."""
    return str(standing(tree.root).value(layer.path, EMBEDDING_ENDPOINT) or "")

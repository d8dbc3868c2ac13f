"""List every source, built in, installed or named, and examine those that are enabled.

Listing imports no plugin. Examining loads each enabled source and asks it once.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from memfs.context.plugin import Delivery
from memfs.context.plugins import LISTS, LoadedSource, Offer, Plugins, PluginUnusable, ask, offers, where
from memfs.model.episode import StateSnapshot
from memfs.recall.foreign import ForeignFailure
from memfs.settings import BUILT_IN_SOURCES, SPECS, Settings
from memfs.trust import standing

PROBE = StateSnapshot.create(
    files=["example.py"], context="Change example.py, as memfs admin plugins check asks", tool="check", agent="check"
)
"""The situation in which a source is asked to see whether it answers."""
_ALWAYS = "memory.feedback.enabled"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRow:
    """One source as it is listed.

    Attributes:
        name: what settings call it.
        layer: the delivery it serves; "" where only loading it would tell.
        where: ``built in``, or the package that offers it, or the module that it is.
        setting: the setting that names it, "" where none does.
        origin: where that setting's value comes from.
        trusted: whether naming it there counts.
        enabled: whether it is asked: not where it is not trusted, or built in and named in the list of another layer.
    """

    name: str
    layer: str
    where: str
    setting: str = ""
    origin: str = ""
    trusted: bool = True
    enabled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceCheck:
    """How one enabled source did.

    Attributes:
        name: what settings call it.
        layer: the delivery it serves.
        where: the package that offers it, or the module that it is.
        seconds: how long it took to load, configure and answer.
        letters: how long its answer was.
        failure: what is wrong with it, "" for nothing.
        hint: what to do.
        works: whether nothing is wrong with it.
    """

    name: str
    layer: str
    where: str
    seconds: float = 0.0
    letters: int = 0
    failure: str = ""
    hint: str = ""
    works: bool = True


# -- listing ------------------------------------------------------------------------------------------------------
def listed(root: Path, settings: Settings) -> list[SourceRow]:
    """Every built-in source, every one that is named, and every one that an installed package offers."""
    named = [*_named(settings), *_untrusted(root)]
    known = {one.name for one in named}
    own = [
        SourceRow(name=name, layer=layer, where="built in")
        for name, layer in BUILT_IN_SOURCES.items()
        if name not in known
    ]
    offered = [
        SourceRow(name=offer.name, layer="", where=where(offer))
        for offer in _offers()
        if offer.name not in known | BUILT_IN_SOURCES.keys()
    ]
    return [*named, *own, *offered]


def _named(settings: Settings) -> Iterator[SourceRow]:
    for delivery, key in LISTS.items():
        setting = f"memory.{key}"
        for name in dict.fromkeys(getattr(settings.memory, key)):
            yield _enabled(name, delivery, setting, settings.origins.get(setting, "default"))
        if delivery is Delivery.AUTOMATIC and settings.get(_ALWAYS) and "feedback" not in settings.memory.automatic:
            yield _enabled("feedback", delivery, _ALWAYS, settings.origins.get(_ALWAYS, "default"))


def _enabled(name: str, delivery: Delivery, setting: str, origin: str, trusted: bool = True) -> SourceRow:
    layer = BUILT_IN_SOURCES.get(name, delivery.value)
    return SourceRow(
        name=name,
        layer=layer,
        where=_place(name),
        setting=setting,
        origin=origin,
        trusted=trusted,
        enabled=trusted and layer == delivery.value,
    )


def _place(name: str) -> str:
    if name in BUILT_IN_SOURCES:
        return "built in"
    if ":" in name:
        return name
    return " and ".join(where(offer) for offer in _offers() if offer.name == name) or "not installed"


def _offers() -> list[Offer]:
    try:
        return offers()
    except ForeignFailure:  # 'admin plugins check' says so of each source that is named
        return []


def _untrusted(root: Path) -> Iterator[SourceRow]:
    """The sources that the workspace's own file names, and that do not count for want of trust."""
    found = standing(root)
    for want in () if found.trusted else found.wants:
        delivery = next((one for one, key in LISTS.items() if want.key == f"memory.{key}"), None)
        if delivery is not None and SPECS[want.key].harmless and isinstance(want.value, list):
            place = f"{want.file}:{want.line}" if want.line else want.file
            for name in dict.fromkeys(map(str, want.value)):
                yield _enabled(name, delivery, want.key, place, trusted=False)


# -- examining ----------------------------------------------------------------------------------------------------
def examined(plugins: Plugins) -> list[SourceCheck]:
    """Each enabled source, loaded and asked once."""
    plugins = plugins.copy()
    found: list[SourceCheck] = []
    for delivery in Delivery:
        began = time.monotonic()
        sources = plugins.of(delivery)
        loading = time.monotonic() - began
        broken = [one for one in plugins.unusable() if one.delivery is delivery]
        found += [_asked(plugins, source) for source in sources]
        found += [_left_out(one, loading) for one in broken]
    return found


def _asked(plugins: Plugins, source: LoadedSource) -> SourceCheck:
    began = time.monotonic()
    (answer,) = ask([source], PROBE, plugins.code)
    said = str(answer.selection) if answer.selection is not None else answer.text
    return SourceCheck(
        name=source.name,
        layer=source.delivery.value,
        where=source.where,
        seconds=time.monotonic() - began,
        letters=len(said),
        failure=answer.failure,
        hint=f"mend it, or take it out of {source.setting}" if answer.failure else "",
        works=not answer.failure,
    )


def _left_out(one: PluginUnusable, seconds: float) -> SourceCheck:
    return SourceCheck(
        name=one.name,
        layer=one.delivery.value,
        where=_place(one.name),
        seconds=seconds,
        failure=one.reason,
        hint=one.hint,
        works=False,
    )

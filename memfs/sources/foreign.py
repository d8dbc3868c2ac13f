"""Foreign: sources of others, found by name, imported and made (seed 004, P2).

Owns what a name means, and what is taken for a source. Looking for one imports nothing; making one runs code of others,
and is called in a thread of its own (``memfs.sources.isolation``). Which names count, it does not know.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from memfs.errors import SettingInvalid
from memfs.model.kinds import nearest
from memfs.settings import BUILT_IN_SOURCES
from memfs.sources.failurebook import Failed, told
from memfs.sources.isolation import Loaded
from memfs.sources.plugin import Delivery

ENTRY_POINTS = "memfs.sources"
_NAME_LETTERS = 100


class Refused(Exception):
    """A source that is not used; carries what to do."""

    def __init__(self, reason: str, hint: str) -> None:
        super().__init__(reason)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Offer:
    """A source that an installed package offers: its name, ``module:attribute``, and the package with its version."""

    name: str
    value: str
    package: str


# -- finding ------------------------------------------------------------------------------------------------------
def offers() -> list[Offer]:
    """The sources that installed packages offer as entry points; none of them is imported.

    Raises:
        Refused: what some package says of itself cannot be read.
    """
    from importlib.metadata import entry_points  # most workspaces name built-in sources only

    try:
        points = entry_points(group=ENTRY_POINTS)
    except (ValueError, TypeError, LookupError, AttributeError, OSError) as error:  # what damaged metadata lead to
        raise Refused(f"the list of installed packages is damaged: {told(error)}", "run 'pip check'") from error
    found = []
    for point in points:
        package = f"{point.dist.name} {point.dist.version}" if point.dist is not None else "an installed package"
        found.append(Offer(point.name, point.value, package))
    return sorted(found, key=lambda offer: (offer.name, offer.package, offer.value))


def where(offer: Offer) -> str:
    """Where a source lies, in words."""
    return f"{offer.package}, {offer.value}" if offer.package else offer.value


def offered(name: str) -> Offer:
    """What a name means.

    Raises:
        Refused: nothing, several things, or nobody can tell.
    """
    if ":" in name:
        return Offer(name, name, "")
    known = offers()
    meant = list(dict.fromkeys(offer for offer in known if offer.name == name))
    if len(meant) > 1:
        packages = " and ".join(offer.package for offer in meant)
        raise Refused(f"{packages} both offer it", "name it as module:attribute")
    if not meant:
        names = [*BUILT_IN_SOURCES, *(offer.name for offer in known)]
        hint = nearest(name, names) or "install its package, or name it as module:attribute"
        raise Refused("no installed package offers it", hint)
    return meant[0]


# -- what runs code of others, in a thread of its own -------------------------------------------------------------
def made(offer: Offer, table: Mapping[str, Any], setting: str) -> Loaded:
    """A source, imported, made and configured.

    Raises:
        Failed: it cannot be, with why.
    """
    module, _, path = offer.value.partition(":")
    try:
        found: Any = importlib.import_module(module.strip())
    except ImportError as error:
        missing = isinstance(error, ModuleNotFoundError)
        hint = "install it, or put the folder it lies in on PYTHONPATH" if missing else ""
        raise Failed(f"it cannot be imported: {told(error)}", hint) from error
    for attribute in path.partition("[")[0].strip().split(".") if path else ():
        found = getattr(found, attribute)
    plugin = found() if isinstance(found, type) or not hasattr(found, "get_context") else found
    name, layer = shape(plugin)
    configure(plugin, table)
    return Loaded(name=name, delivery=layer, plugin=plugin, where=where(offer), setting=setting)


def shape(plugin: Any) -> tuple[str, Delivery]:
    """The name and the layer of a source.

    Raises:
        Failed: it is no source.
    """
    name, layer = plugin.name, plugin.layer
    if not isinstance(name, str) or not name.strip() or len(name) > _NAME_LETTERS or not name.isprintable():
        raise Failed(f"its name must be one line of at most {_NAME_LETTERS} letters")
    if not isinstance(layer, str) or layer not in list(Delivery):
        raise Failed(f"its layer is {ascii(layer)[:40]}; the layers are {', '.join(Delivery)}")
    for method in ("get_context", "configure"):
        if not callable(getattr(plugin, method, None)):
            raise Failed(f"it has no method {method}")
    return str.__str__(name), Delivery(str.__str__(layer))


def configure(plugin: Any, table: Mapping[str, Any]) -> None:
    """Hand a source its table.

    Raises:
        Failed: it refuses it.
    """
    try:
        given = plugin.configure(deepcopy(dict(table)))
    except SettingInvalid as error:
        raise Failed(f"its settings are refused: {error.sentence}") from error
    except (ValueError, TypeError) as error:
        raise Failed(f"its settings are refused: {told(error)}") from error
    if inspect.iscoroutine(given):  # whatever it would refuse nobody would hear of
        given.close()
        raise Failed("its method configure is asynchronous, and must not be")

"""Find, load and configure the sources that the settings name.

Nothing is imported unless it is named in settings that this user trusts. A source that cannot be used is reported
with a remedy and left out; the others work.
"""

from __future__ import annotations

import importlib
import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from memfs.config_names import SETTINGS_FILE
from memfs.context.isolation import LoadedSource, SourceAnswer, SourceGuard
from memfs.context.plugin import Delivery, ItemSource
from memfs.context.plugin_failures import FILE as FAILURES
from memfs.context.plugin_failures import Busy, FailureBook, Late, PluginFailure, error_line
from memfs.errors import MemfsError, SettingInvalid
from memfs.fs.lock import renewed_in_child
from memfs.model.episode import StateSnapshot
from memfs.model.kinds import nearest
from memfs.model.problem import WARNING, Problem
from memfs.search.cache_folders import index_folder
from memfs.settings import BUILT_IN_SOURCES, MOUNTS, MemorySettings, Settings
from memfs.trust import standing

ENTRY_POINTS = "memfs.context"
_NAME_LETTERS = 100


class PluginRefused(Exception):
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
        raise PluginRefused(
            f"the list of installed packages is damaged: {error_line(error)}", "run 'pip check'"
        ) from error
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
        raise PluginRefused(f"{packages} both offer it", "name it as module:attribute")
    if not meant:
        names = [*BUILT_IN_SOURCES, *(offer.name for offer in known)]
        hint = nearest(name, names) or "install its package, or name it as module:attribute"
        raise PluginRefused("no installed package offers it", hint)
    return meant[0]


# -- what runs code of others, in a thread of its own -------------------------------------------------------------
def made(offer: Offer, table: Mapping[str, Any], setting: str) -> LoadedSource:
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
        raise PluginFailure(f"it cannot be imported: {error_line(error)}", hint) from error
    for attribute in path.partition("[")[0].strip().split(".") if path else ():
        found = getattr(found, attribute)
    plugin = found() if isinstance(found, type) or not hasattr(found, "get_context") else found
    name, layer = shape(plugin)
    configure(plugin, table)
    return LoadedSource(name=name, delivery=layer, plugin=plugin, where=where(offer), setting=setting)


def shape(plugin: Any) -> tuple[str, Delivery]:
    """The name and the layer of a source.

    Raises:
        Failed: it is no source.
    """
    name, layer = plugin.name, plugin.layer
    if not isinstance(name, str) or not name.strip() or len(name) > _NAME_LETTERS or not name.isprintable():
        raise PluginFailure(f"its name must be one line of at most {_NAME_LETTERS} letters")
    if not isinstance(layer, str) or layer not in list(Delivery):
        raise PluginFailure(f"its layer is {ascii(layer)[:40]}; the layers are {', '.join(Delivery)}")
    for method in ("get_context", "configure"):
        if not callable(getattr(plugin, method, None)):
            raise PluginFailure(f"it has no method {method}")
    return str.__str__(name), Delivery(str.__str__(layer))


def configure(plugin: Any, table: Mapping[str, Any]) -> None:
    """Hand a source its table.

    Raises:
        Failed: it refuses it.
    """
    try:
        given = plugin.configure(deepcopy(dict(table)))
    except SettingInvalid as error:
        raise PluginFailure(f"its settings are refused: {error.sentence}") from error
    except (ValueError, TypeError) as error:
        raise PluginFailure(f"its settings are refused: {error_line(error)}") from error
    if inspect.iscoroutine(given):  # whatever it would refuse nobody would hear of
        given.close()
        raise PluginFailure("its method configure is asynchronous, and must not be")


LISTS: Mapping[Delivery, str] = {
    Delivery.AUTOMATIC: "automatic",
    Delivery.TRIGGERED: "triggered",
    Delivery.ON_DEMAND: "on_demand_sources",
}
"""The list in ``[memory]`` that names the sources of each delivery."""
Makers = Mapping[str, Callable[[], ItemSource]]


@dataclass(frozen=True, slots=True)
class PluginUnusable:
    """A source that is named and cannot be used: its name, the delivery and setting that name it, why, and a remedy."""

    name: str
    delivery: Delivery
    setting: str
    reason: str
    hint: str

    @property
    def problem(self) -> Problem:
        """What is reported of it."""
        message = f"the source {self.name!r} is left out: {self.reason}"
        return Problem(path=SETTINGS_FILE, code="SourceUnusable", message=message, hint=self.hint, severity=WARNING)


class Plugins:
    """The sources of one workspace. Each is loaded when its delivery is first asked for; may be used from threads."""

    def __init__(
        self,
        settings: MemorySettings,
        makers: Makers,
        guard: SourceGuard,
        untrusted: Callable[[], list[Problem]] = list,
    ) -> None:
        """Take what the sources are made of.

        Args:
            makers: what makes each built-in source.
            guard: through whom those of others are called.
            untrusted: gives what is named by files that this user does not trust.
        """
        self._settings = settings
        self._makers = makers
        self.guard = guard
        self._untrusted = untrusted
        self._lock = threading.RLock()
        renewed_in_child(self)
        self._loaded: dict[Delivery, tuple[LoadedSource, ...]] = {}
        self._unusable: dict[Delivery, tuple[PluginUnusable, ...]] = {}
        self._added: dict[str, LoadedSource] = {}
        self._ready: dict[str, LoadedSource] = {}
        self._patient = False

    @property
    def memory(self) -> MemorySettings:
        """The settings that hold."""
        return self._settings

    def copy(self, *, patient: bool = False) -> Plugins:
        """The same sources for a user of their own, who may add to them and configure them without touching these.

        Args:
            patient: whether those are loaded too that are paused because they failed.
        """
        guard = SourceGuard(self.guard.seconds, self.guard.book)
        copied = Plugins(self._settings, self._makers, guard, self._untrusted)
        copied._patient = patient
        return copied

    # -- asking ---------------------------------------------------------------------------------------------------
    def of(self, delivery: Delivery) -> tuple[LoadedSource, ...]:
        """The sources of a delivery in the order of the settings, then those that were added.

        One that is loading still, because it takes long, is tried again next time.
        """
        with self._lock:
            if delivery not in self._loaded:
                found, left_out, again = self._load(delivery)
                self._unusable[delivery] = left_out
                if again:
                    return found
                self._loaded[delivery] = found
            return self._loaded[delivery]

    def ask(self, delivery: Delivery, state: StateSnapshot) -> list[SourceAnswer]:
        """What the sources of a delivery say of a situation (``Guard.ask``)."""
        return self.guard.ask(self.of(delivery), state)

    def problems(self, load: bool = False) -> list[Problem]:
        """The named sources that are left out, for want of trust or because they cannot be loaded or are paused.

        Args:
            load: whether every delivery is loaded first, to know of each.
        """
        for delivery in Delivery if load else ():
            self.of(delivery)
        with self._lock:
            found = self._untrusted() + [one.problem for rows in self._unusable.values() for one in rows]
            foreign = [one for rows in self._loaded.values() for one in rows if not one.built_in]
        for source in foreign:
            if reason := self.guard.book.paused(source.name):
                hint = "memfs admin plugins check"
                message = f"the source {source.name!r} is left out: {reason}"
                found.append(Problem(path="", code="SourceFailing", message=message, hint=hint, severity=WARNING))
        return found

    def unusable(self) -> tuple[PluginUnusable, ...]:
        """The named sources that are left out, of the deliveries asked for so far."""
        with self._lock:
            return tuple(one for rows in self._unusable.values() for one in rows)

    # -- changing -------------------------------------------------------------------------------------------------
    def add(self, plugin: object, config: Mapping[str, Any] | None = None) -> LoadedSource:
        """Add a source that the calling program made; it is asked like one that settings name, and in place of the
        built-in one that has its name.

        Args:
            config: its table; without one the table ``[memory.<name>]`` of the settings is taken, where there is one.

        Raises:
            SettingInvalid: it is no source, a source has its name, or it refuses its table.
        """
        try:
            name, delivery = self.guard.call("added", partial(shape, plugin))
            with self._lock:
                self._refuse_taken(name)
                table = self._settings.sources.get(name, {}) if config is None else config
            self.guard.call(name, partial(configure, plugin, table))
        except (PluginFailure, Late) as error:
            hint = "a source has name, layer, get_context and configure; see docs/plugins.md"
            if isinstance(plugin, type):
                hint = "it is a class: make a source of it first, as in add_plugin(MySource())"
            raise SettingInvalid(f"this source cannot be added: {error}", hint=hint) from error
        source = LoadedSource(name=name, delivery=delivery, plugin=plugin, where="added in Python")  # type: ignore[arg-type]
        with self._lock:
            self._refuse_taken(name)
            self._added[name] = source
            self._loaded.clear()
        return source

    def configure(self, settings: MemorySettings) -> None:
        """Follow other settings: sources are loaded again when they are next asked for; those added stay, and are
        given their table where there is one.

        Raises:
            SettingInvalid: an added source refuses its table; the others follow all the same.
        """
        with self._lock:
            if settings.source_seconds != self._settings.source_seconds:
                self.guard.seconds = settings.source_seconds
            self._settings = settings
            self._ready = {}  # what is loading still belongs to the settings before
            self._loaded.clear()
            self._unusable.clear()
            added = list(self._added.values())
        for source in added:
            if source.name in settings.sources:
                try:
                    table = settings.sources[source.name]
                    self.guard.call(source.name, partial(configure, source.plugin, table))
                except (PluginFailure, Late) as error:
                    hint = f"correct what is given for {source.name!r}"
                    raise SettingInvalid(str(error), field=f"memory.{source.name}", hint=hint) from error

    @property
    def added(self) -> tuple[str, ...]:
        """The names of the sources that were added."""
        with self._lock:
            return tuple(self._added)

    def _refuse_taken(self, name: str) -> None:
        taken = {source.name for rows in self._loaded.values() for source in rows if not source.built_in}
        if name in taken | self._added.keys():
            raise SettingInvalid(f"there is a source {name!r} already", field=name, hint="choose another name")

    # -- loading --------------------------------------------------------------------------------------------------
    def named(self, delivery: Delivery) -> list[str]:
        """The names that settings give for a delivery, and of the sources that are asked without being named."""
        names: Sequence[str] = getattr(self._settings, LISTS[delivery])
        if delivery is Delivery.AUTOMATIC and self._settings.sources["feedback"]["enabled"]:
            names = [*names, "feedback"]
        return list(dict.fromkeys(names))

    def _load(self, delivery: Delivery) -> tuple[tuple[LoadedSource, ...], tuple[PluginUnusable, ...], bool]:
        """The sources of a delivery, those left out, and whether one of these is worth another try."""
        found: dict[str, LoadedSource] = {}
        left_out: list[PluginUnusable] = []
        setting = f"memory.{LISTS[delivery]}"
        again = False
        taken = {*BUILT_IN_SOURCES, *self._added}
        taken.update(one.name for rows in self._loaded.values() for one in rows)
        # one that was added takes the place of the built-in one
        names = [name for name in self.named(delivery) if name not in self._added]
        ready = self._foreign(names, setting)
        for name in names:
            try:
                source = self._built_in(name, delivery, setting) if name in BUILT_IN_SOURCES else _usable(ready[name])
                _require_layer(source.delivery, delivery)
                if not source.built_in and source.name in taken | found.keys():
                    raise PluginRefused(f"there is another source {source.name!r}", "give it a name of its own")
            except (PluginRefused, PluginFailure, Late) as error:
                again = again or isinstance(error, Late)
                told = getattr(error, "hint", "")
                hint = told or f"mend it, or take it out of {setting}; 'memfs admin plugins check' asks it again"
                left_out.append(PluginUnusable(name, delivery, setting, str(error), hint))
                continue
            found[source.name] = source
        own = [source for source in self._added.values() if source.delivery is delivery]
        return (*found.values(), *own), tuple(left_out), again

    def _foreign(self, names: Sequence[str], setting: str) -> dict[str, LoadedSource | Exception]:
        """The sources of others by the name in the settings, or why there is none; all are loaded at once, each once.

        One that hangs while it is loaded is paused like one that hangs while it is asked.
        """
        found: dict[str, LoadedSource | Exception] = {}
        works: dict[str, Callable[[], LoadedSource]] = {}
        for name in names:
            if name in BUILT_IN_SOURCES:
                continue
            if name in self._ready:
                found[name] = self._ready[name]
                continue
            try:
                offer = offered(name)
                if not self._patient and (reason := self.guard.book.paused(name)):
                    raise PluginRefused(reason, "run 'memfs admin plugins check' to try it now")
            except PluginRefused as error:
                found[name] = error
                continue
            works[name] = partial(
                _keep, self._ready, name, partial(made, offer, self._settings.sources.get(name, {}), setting)
            )
        for name, outcome in self.guard.call_all(works).items():
            found[name] = outcome
            if isinstance(outcome, Late) and not isinstance(outcome, Busy):
                self.guard.book.failed(name, str(outcome))
            elif isinstance(outcome, LoadedSource) and name != outcome.name:
                self.guard.book.worked(name)  # what it says from here on is counted by its own name
        return found

    def _built_in(self, name: str, delivery: Delivery, setting: str) -> LoadedSource:
        layer = Delivery(BUILT_IN_SOURCES[name])
        _require_layer(layer, delivery)
        try:
            plugin = self._makers[name]()
            plugin.configure(self._settings.sources[name])
        except MemfsError as error:
            raise PluginRefused(error.sentence, error.hint or "see 'memfs check'") from error
        return LoadedSource(name=name, delivery=layer, plugin=plugin, built_in=True, where="built in", setting=setting)


def plugins_of(root: Path, settings: Settings, makers: Makers) -> Plugins:
    """The sources of the workspace at ``root``."""
    try:
        book = FailureBook(index_folder(root) / FAILURES)
    except (MemfsError, OSError):  # the cache belongs to somebody else: this process counts alone
        book = FailureBook()

    def untrusted() -> list[Problem]:
        return standing(root).problems("memory.", f"{MOUNTS}.")

    return Plugins(settings.memory, makers, SourceGuard(settings.memory.source_seconds, book), untrusted)


def _keep(ready: dict[str, LoadedSource], name: str, make: Callable[[], LoadedSource]) -> LoadedSource:
    """Make a source and keep it, also where nobody waits for it any more."""
    ready[name] = make()
    return ready[name]


def _usable(found: LoadedSource | Exception) -> LoadedSource:
    if isinstance(found, Exception):
        raise found
    return found


def _require_layer(layer: Delivery, delivery: Delivery) -> None:
    if layer is not delivery:
        raise PluginRefused(f"its layer is {layer.value}", f"name it in memory.{LISTS[layer]}")

"""Loading: the sources that settings name, found and made ready (seed 004, P2).

Owns which sources are loaded for a delivery, when, and what is told of one that cannot be used: it is left out, and the
others work. Nothing of others is imported unless it is named, and named by somebody this user trusts
(``memfs.trust``). What the sources say, it does not know.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from memfs.errors import MemfsError, SettingInvalid
from memfs.files.forked import renewed_in_child
from memfs.files.tomltext import FILE
from memfs.index.place import index_folder
from memfs.model.episode import StateSnapshot
from memfs.model.problem import WARNING, Problem
from memfs.settings import BUILT_IN_SOURCES, MOUNTS, MemorySettings, Settings
from memfs.sources.failurebook import FILE as FAILURES
from memfs.sources.failurebook import Busy, Failed, FailureBook, Late
from memfs.sources.foreign import Refused, configure, made, offered, shape
from memfs.sources.isolation import Answer, Guard, Loaded
from memfs.sources.plugin import Delivery, ItemSource
from memfs.trust import standing

LISTS: Mapping[Delivery, str] = {
    Delivery.AUTOMATIC: "automatic",
    Delivery.TRIGGERED: "triggered",
    Delivery.ON_DEMAND: "on_demand_sources",
}
"""The list in ``[memory]`` that names the sources of each delivery."""
Makers = Mapping[str, Callable[[], ItemSource]]


@dataclass(frozen=True, slots=True)
class Unusable:
    """A source that is named and cannot be used: its name, the delivery and setting that name it, why, and a remedy."""

    name: str
    delivery: Delivery
    setting: str
    reason: str
    hint: str

    @property
    def problem(self) -> Problem:
        """What a person is told of it."""
        message = f"the source {self.name!r} is left out: {self.reason}"
        return Problem(path=FILE, code="SourceUnusable", message=message, hint=self.hint, severity=WARNING)


class Plugins:
    """The sources of one workspace. Each is loaded when its delivery is first asked for; may be used from threads."""

    def __init__(
        self,
        settings: MemorySettings,
        makers: Makers,
        guard: Guard,
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
        self._loaded: dict[Delivery, tuple[Loaded, ...]] = {}
        self._unusable: dict[Delivery, tuple[Unusable, ...]] = {}
        self._added: dict[str, Loaded] = {}
        self._ready: dict[str, Loaded] = {}
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
        guard = Guard(self.guard.seconds, self.guard.book)
        copied = Plugins(self._settings, self._makers, guard, self._untrusted)
        copied._patient = patient
        return copied

    # -- asking ---------------------------------------------------------------------------------------------------
    def of(self, delivery: Delivery) -> tuple[Loaded, ...]:
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

    def ask(self, delivery: Delivery, state: StateSnapshot) -> list[Answer]:
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
                hint = "memfs plugins doctor"
                message = f"the source {source.name!r} is left out: {reason}"
                found.append(Problem(path="", code="SourceFailing", message=message, hint=hint, severity=WARNING))
        return found

    def unusable(self) -> tuple[Unusable, ...]:
        """The named sources that are left out, of the deliveries asked for so far."""
        with self._lock:
            return tuple(one for rows in self._unusable.values() for one in rows)

    # -- changing -------------------------------------------------------------------------------------------------
    def add(self, plugin: object, config: Mapping[str, Any] | None = None) -> Loaded:
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
        except (Failed, Late) as error:
            hint = "a source has name, layer, get_context and configure; see docs/plugins.md"
            if isinstance(plugin, type):
                hint = "it is a class: make a source of it first, as in add_plugin(MySource())"
            raise SettingInvalid(f"this source cannot be added: {error}", hint=hint) from error
        source = Loaded(name=name, delivery=delivery, plugin=plugin, where="added in Python")  # type: ignore[arg-type]
        with self._lock:
            self._refuse_taken(name)
            self._added[name] = source
            self._loaded.clear()
        return source

    def configure(self, settings: MemorySettings) -> None:
        """Follow other settings: sources are loaded anew when they are next asked for; those added stay, and are
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
                except (Failed, Late) as error:
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

    def _load(self, delivery: Delivery) -> tuple[tuple[Loaded, ...], tuple[Unusable, ...], bool]:
        """The sources of a delivery, those left out, and whether one of these is worth another try."""
        found: dict[str, Loaded] = {}
        left_out: list[Unusable] = []
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
                    raise Refused(f"there is another source {source.name!r}", "give it a name of its own")
            except (Refused, Failed, Late) as error:
                again = again or isinstance(error, Late)
                told = getattr(error, "hint", "")
                hint = told or f"mend it, or take it out of {setting}; 'memfs plugins doctor' asks it again"
                left_out.append(Unusable(name, delivery, setting, str(error), hint))
                continue
            found[source.name] = source
        own = [source for source in self._added.values() if source.delivery is delivery]
        return (*found.values(), *own), tuple(left_out), again

    def _foreign(self, names: Sequence[str], setting: str) -> dict[str, Loaded | Exception]:
        """The sources of others by the name in the settings, or why there is none; all are loaded at once, each once.

        One that hangs while it is loaded is paused like one that hangs while it is asked.
        """
        found: dict[str, Loaded | Exception] = {}
        works: dict[str, Callable[[], Loaded]] = {}
        for name in names:
            if name in BUILT_IN_SOURCES:
                continue
            if name in self._ready:
                found[name] = self._ready[name]
                continue
            try:
                offer = offered(name)
                if not self._patient and (reason := self.guard.book.paused(name)):
                    raise Refused(reason, "run 'memfs plugins doctor' to try it now")
            except Refused as error:
                found[name] = error
                continue
            works[name] = partial(_keep, self._ready, name, partial(made, offer, self._table(name), setting))
        for name, outcome in self.guard.call_all(works).items():
            found[name] = outcome
            if isinstance(outcome, Late) and not isinstance(outcome, Busy):
                self.guard.book.failed(name, str(outcome))
            elif isinstance(outcome, Loaded) and name != outcome.name:
                self.guard.book.worked(name)  # what it says from here on is counted by its own name
        return found

    def _table(self, name: str) -> Mapping[str, Any]:
        return self._settings.sources.get(name, {})

    def _built_in(self, name: str, delivery: Delivery, setting: str) -> Loaded:
        layer = Delivery(BUILT_IN_SOURCES[name])
        _require_layer(layer, delivery)
        try:
            plugin = self._makers[name]()
            plugin.configure(self._settings.sources[name])
        except MemfsError as error:
            raise Refused(error.sentence, error.hint or "see 'memfs check'") from error
        return Loaded(name=name, delivery=layer, plugin=plugin, built_in=True, where="built in", setting=setting)


def plugins_of(root: Path, settings: Settings, makers: Makers) -> Plugins:
    """The sources of the workspace at ``root``."""
    try:
        book = FailureBook(index_folder(root) / FAILURES)
    except (MemfsError, OSError):  # the cache belongs to somebody else: this process counts alone
        book = FailureBook()

    def untrusted() -> list[Problem]:
        return standing(root).problems("memory.", f"{MOUNTS}.")

    return Plugins(settings.memory, makers, Guard(settings.memory.source_seconds, book), untrusted)


def _keep(ready: dict[str, Loaded], name: str, make: Callable[[], Loaded]) -> Loaded:
    """Make a source and keep it, also where nobody waits for it any more."""
    ready[name] = make()
    return ready[name]


def _usable(found: Loaded | Exception) -> Loaded:
    if isinstance(found, Exception):
        raise found
    return found


def _require_layer(layer: Delivery, delivery: Delivery) -> None:
    if layer is not delivery:
        raise Refused(f"its layer is {layer.value}", f"name it in memory.{LISTS[layer]}")

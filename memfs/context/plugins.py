"""Find, load, configure and ask the sources that the settings name.

Nothing is imported unless it is named in settings that this user trusts. A source that cannot be used is reported
with a remedy and left out; the others work.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from pathlib import Path

from memfs.config_names import SETTINGS_FILE
from memfs.context.deliver import ContextSelection, Delivery, ItemSource, MemoryPlugin
from memfs.dataclass import dataclass
from memfs.errors import MemfsError, Problem, SettingInvalid
from memfs.fs.executor import in_daemon
from memfs.fs.lock import reset_on_fork
from memfs.model.episode import StateSnapshot
from memfs.model.kinds import nearest
from memfs.recall.foreign import ForeignCode, ForeignFailure, error_line, late
from memfs.settings import BUILT_IN_SOURCES, MOUNTS, MemorySettings, Settings
from memfs.startup import TYPE_CHECKING, Any
from memfs.trust import status_of

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINTS = "memfs.context"
MOST_LETTERS = 100_000
"""Longer contexts of others are refused: no one reads them, and parsing them would cost time."""
_NAME_LETTERS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSource:
    """A source that can be asked.

    Attributes:
        name: what reports and settings call it.
        delivery: the delivery it serves.
        plugin: the source itself.
        built_in: whether it is one of ours: an ``ItemSource``, asked directly.
    """

    name: str
    delivery: Delivery
    plugin: MemoryPlugin | ItemSource
    built_in: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceAnswer:
    """What one source said when it was asked.

    Attributes:
        source: who.
        selection: what a built-in source selected; None for one from others.
        text: what a source from others returned, unchanged; "" for nothing.
        failure: why there is no answer, in one line; "" where there is one.
    """

    source: LoadedSource
    selection: ContextSelection | None = None
    text: str = ""
    failure: str = ""


# -- asking -------------------------------------------------------------------------------------------------------
def ask(sources: Sequence[LoadedSource], state: StateSnapshot, code: ForeignCode) -> list[SourceAnswer]:
    """What each source says of a situation, in their order; all those of others are asked at once.

    Never fails, and takes the time of the built-in sources and at most that of ``code`` for all of the others.
    """
    works = {
        source.name: partial(_context_of, source.plugin, state, code.seconds)
        for source in sources
        if not source.built_in
    }
    replies = code.call_all(works)
    answers = []
    for source in sources:
        said: Any = replies.get(source.name)
        if source.built_in:
            try:
                said = source.plugin.select(state)  # type: ignore[union-attr]  # a built-in one is an ItemSource
            except Exception as error:  # noqa: BLE001  reported: an agent continues without this source
                said = ForeignFailure(error_line(error))
        if isinstance(said, ForeignFailure):
            answers.append(SourceAnswer(source=source, failure=said.reason))
        elif source.built_in:
            answers.append(SourceAnswer(source=source, selection=said))
        else:
            answers.append(SourceAnswer(source=source, text=said))
    return answers


def _context_of(plugin: MemoryPlugin, state: StateSnapshot, seconds: float) -> str:
    """What a source of others says, checked in its own thread.

    Raises:
        ForeignFailure: it is no text, too long, no text that can be written, or comes too late.
    """
    import asyncio  # takes long, as does the other, and only sources of others need them
    from concurrent.futures import Future, ThreadPoolExecutor

    class Daemons(ThreadPoolExecutor):
        """Gives each piece of work a daemon thread: a pool's are waited for when the process ends."""

        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            return in_daemon("memfs-foreign-work", partial(fn, *args, **kwargs))

    async def asked() -> object:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(Daemons())
        loop.set_exception_handler(lambda *_: None)  # what is not awaited has no say in the answer
        try:
            async with asyncio.timeout(seconds) as limit:
                found: object = plugin.get_context(state)
                return await found if isinstance(found, Awaitable) else found
        except TimeoutError:
            if limit.expired():
                raise late(seconds) from None
            raise

    found = asyncio.run(asked())
    if found is None:
        return ""
    if not isinstance(found, str):
        raise ForeignFailure(f"it gave {type(found).__name__[:60]} and not a text")
    text = str.__str__(found)  # a subclass of str could do anything when it is read
    if len(text) > MOST_LETTERS:
        raise ForeignFailure(f"it gave {len(text):,} letters; {MOST_LETTERS:,} are taken")
    return text.encode("utf-8", "replace").decode() if text.strip() else ""


# -- what runs code of others, in its own thread ------------------------------------------------------------------
def point_of(name: str) -> EntryPoint:
    """What a name means: ``module:attribute``, or what an installed package offers under it.

    Raises:
        ForeignFailure: nothing.
    """
    from importlib.metadata import EntryPoint, entry_points  # most workspaces name built-in sources only

    if ":" in name:
        return EntryPoint(name, name, ENTRY_POINTS)
    offered = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
    if name not in offered:
        hint = nearest(name, [*BUILT_IN_SOURCES, *offered]) or "install its package, or name it as module:attribute"
        raise ForeignFailure("no installed package offers it", hint)
    return offered[name]


def made(name: str, table: Mapping[str, Any]) -> LoadedSource:
    """A source, imported, made and configured.

    Raises:
        ForeignFailure: it cannot be, with why.
    """
    try:
        found: Any = point_of(name).load()
    except ImportError as error:
        missing = isinstance(error, ModuleNotFoundError)
        hint = "install it, or put its folder on PYTHONPATH" if missing else ""
        raise ForeignFailure(f"it cannot be imported: {error_line(error)}", hint) from error
    plugin = found() if isinstance(found, type) or not hasattr(found, "get_context") else found
    own, layer = shape(plugin)
    configure(plugin, table)
    return LoadedSource(name=own, delivery=layer, plugin=plugin)


def shape(plugin: Any) -> tuple[str, Delivery]:
    """The name and the layer of a source.

    Raises:
        ForeignFailure: it is no source.
    """
    name, layer = plugin.name, plugin.layer
    if not isinstance(name, str) or not name.strip() or len(name) > _NAME_LETTERS or not name.isprintable():
        raise ForeignFailure(f"its name must be one line of at most {_NAME_LETTERS} letters")
    if not isinstance(layer, str) or layer not in list(Delivery):
        raise ForeignFailure(f"its layer is {ascii(layer)[:40]}; the layers are {', '.join(Delivery)}")
    for method in ("get_context", "configure"):
        if not callable(getattr(plugin, method, None)):
            raise ForeignFailure(f"it has no method {method}")
    return str.__str__(name), Delivery(str.__str__(layer))


def configure(plugin: Any, table: Mapping[str, Any]) -> None:
    """Hand a source its table.

    Raises:
        ForeignFailure: it refuses it.
    """
    try:
        plugin.configure(deepcopy(dict(table)))
    except SettingInvalid as error:
        raise ForeignFailure(f"its settings are refused: {error.sentence}") from error
    except (ValueError, TypeError) as error:
        raise ForeignFailure(f"its settings are refused: {error_line(error)}") from error


LISTS: Mapping[Delivery, str] = {
    Delivery.AUTOMATIC: "automatic",
    Delivery.TRIGGERED: "triggered",
    Delivery.ON_DEMAND: "on_demand_sources",
}
"""The list in ``[memory]`` that names the sources of each delivery."""
Makers = Mapping[str, Callable[[], ItemSource]]


@dataclass(frozen=True, slots=True)
class PluginUnusable:
    """A source that is named and cannot be used: its name, the delivery that names it, why, and a remedy."""

    name: str
    delivery: Delivery
    reason: str
    hint: str

    @property
    def problem(self) -> Problem:
        """What is reported of it."""
        message = f"the source {self.name!r} is left out: {self.reason}"
        return Problem.warning(SETTINGS_FILE, "SourceUnusable", message, self.hint)


@dataclass(eq=False, repr=False)
class Plugins:
    """The sources of one workspace. Each is loaded when its delivery is first asked for; may be used from threads.

    Attributes:
        memory: the settings that hold.
        makers: what makes each built-in source.
        code: calls those of others.
        untrusted: gives what is named by files that this user does not trust.
    """

    memory: MemorySettings
    makers: Makers
    code: ForeignCode
    untrusted: Callable[[], list[Problem]] = list

    def __post_init__(self) -> None:
        self._lock = threading.RLock()
        reset_on_fork(self)
        self._loaded: dict[Delivery, tuple[LoadedSource, ...]] = {}
        self._unusable: dict[Delivery, tuple[PluginUnusable, ...]] = {}
        self._added: dict[str, LoadedSource] = {}

    def copy(self, settings: MemorySettings | None = None) -> Plugins:
        """The same sources for a user of their own, who may add to them; ``settings``: those that hold there."""
        seconds = self.code.seconds if settings is None else settings.source_seconds
        return Plugins(settings or self.memory, self.makers, ForeignCode(seconds), self.untrusted)

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
        """What the sources of a delivery say of a situation, as ``ask``."""
        return ask(self.of(delivery), state, self.code)

    def problems(self, load: bool = False) -> list[Problem]:
        """The named sources that are left out, for want of trust or because they cannot be loaded.

        Args:
            load: whether every delivery is loaded first, to know of each.
        """
        for delivery in Delivery if load else ():
            self.of(delivery)
        with self._lock:
            return self.untrusted() + [one.problem for rows in self._unusable.values() for one in rows]

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
        if isinstance(plugin, type):
            hint = "make a source of it first, as in add_plugin(MySource())"
            raise SettingInvalid(f"this source cannot be added: {plugin.__name__} is a class", hint=hint)
        try:
            name, delivery = self.code.call("added", partial(shape, plugin))
        except ForeignFailure as error:
            hint = "a source has name, layer, get_context and configure"
            raise SettingInvalid(f"this source cannot be added: {error}", hint=hint) from error
        with self._lock:
            self._refuse_taken(name)
            table = self.memory.sources.get(name, {}) if config is None else config
        try:
            self.code.call(name, partial(configure, plugin, table))
        except ForeignFailure as error:
            raise SettingInvalid(
                str(error), field=f"memory.{name}", hint=f"correct what is given for {name!r}"
            ) from error
        source = LoadedSource(name=name, delivery=delivery, plugin=plugin)  # type: ignore[arg-type]
        with self._lock:
            self._refuse_taken(name)
            self._added[name] = source
            self._loaded.clear()
        return source

    def _refuse_taken(self, name: str) -> None:
        taken = {source.name for rows in self._loaded.values() for source in rows if not source.built_in}
        if name in taken | self._added.keys():
            raise SettingInvalid(f"there is a source {name!r} already", field=name, hint="choose another name")

    # -- loading --------------------------------------------------------------------------------------------------
    def named(self, delivery: Delivery) -> list[str]:
        """The names that settings give for a delivery, and of the sources that are asked without being named."""
        names: Sequence[str] = getattr(self.memory, LISTS[delivery])
        if delivery is Delivery.AUTOMATIC and self.memory.sources["feedback"]["enabled"]:
            names = [*names, "feedback"]
        return list(dict.fromkeys(names))

    def _load(self, delivery: Delivery) -> tuple[tuple[LoadedSource, ...], tuple[PluginUnusable, ...], bool]:
        """The sources of a delivery, those left out, and whether one of these is worth another try."""
        found: dict[str, LoadedSource] = {}
        left_out: list[PluginUnusable] = []
        again = False
        taken = {*BUILT_IN_SOURCES, *self._added}
        taken.update(one.name for rows in self._loaded.values() for one in rows)
        # one that was added takes the place of the built-in one
        names = [name for name in self.named(delivery) if name not in self._added]
        for name in names:
            try:
                if name in BUILT_IN_SOURCES:
                    source = self._built_in(name)
                else:
                    source = self.code.call(name, partial(made, name, self.memory.sources.get(name, {})))
                if (layer := source.delivery) is not delivery:
                    raise ForeignFailure(f"its layer is {layer.value}", f"name it in memory.{LISTS[layer]}")
                if not source.built_in and source.name in taken | found.keys():
                    raise ForeignFailure(f"there is another source {source.name!r}", "give it a unique name")
            except ForeignFailure as error:
                again = again or error.late
                hint = error.hint or f"mend it, or take it out of memory.{LISTS[delivery]}"
                left_out.append(PluginUnusable(name, delivery, error.reason, hint))
                continue
            found[source.name] = source
        own = [source for source in self._added.values() if source.delivery is delivery]
        return (*found.values(), *own), tuple(left_out), again

    def _built_in(self, name: str) -> LoadedSource:
        try:
            plugin = self.makers[name]()
            plugin.configure(self.memory.sources[name])
        except MemfsError as error:
            raise ForeignFailure(error.sentence, error.hint or "see 'memfs check'") from error
        return LoadedSource(name=name, delivery=Delivery(BUILT_IN_SOURCES[name]), plugin=plugin, built_in=True)


def plugins_of(root: Path, settings: Settings, makers: Makers) -> Plugins:
    """The sources of the workspace at ``root``."""

    def untrusted() -> list[Problem]:
        return status_of(root).problems("memory.", f"{MOUNTS}.")

    return Plugins(settings.memory, makers, ForeignCode(settings.memory.source_seconds), untrusted)

"""Data classes as ``dataclasses`` has them, and named tuples as ``typing`` has them, whose definition costs little.

The standard library writes and compiles six methods for each data class at each start of a process. Here ``__init__``
is compiled when several objects were made, and the others are shared. What looks a class over (``fields``, ``asdict``,
``is_dataclass``, a subclass of its own) finds the standard library's fields, which are made when they are asked for.

Of a named tuple it compiles ``__new__`` and each annotation. Here ``__new__`` is compiled when many tuples were made.
"""

from __future__ import annotations

from collections import _tuplegetter  # type: ignore[attr-defined]
from functools import cached_property, partial
from itertools import chain
from operator import attrgetter
from reprlib import recursive_repr

from memfs.startup import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from dataclasses import KW_ONLY as KW_ONLY
    from dataclasses import dataclass as dataclass
    from dataclasses import field as field
    from dataclasses import replace as replace
    from typing import NamedTuple as NamedTuple
else:

    class KW_ONLY:  # noqa: N801  the standard library's name
        """What follows is given by its name alone."""

    def dataclass(cls=None, /, **parameters: bool):
        """As ``dataclasses.dataclass``, of the parameters ``eq``, ``frozen``, ``kw_only``, ``repr`` and ``slots``.

        A class that inherits fields of one that the standard library made is made by it, too.
        """
        return _made(cls, **parameters) if cls is not None else lambda cls: _made(cls, **parameters)

    def field(**given: Any) -> _Field:
        """As ``dataclasses.field``."""
        return _Field(given)

    def replace(instance, /, **changes: Any):
        """As ``dataclasses.replace``."""
        cls = type(instance)
        if (described := cls.__dict__.get("__dataclass_fields__")).__class__ is not _Fields:
            import dataclasses

            return dataclasses.replace(instance, **changes)
        names, values = described.taken
        if described.own and not described.own.isdisjoint(changes):
            name = min(described.own.intersection(changes))
            raise ValueError(f"field {name} is declared with init=False, it cannot be specified with replace()")
        return cls(**(dict(zip(names, values(instance), strict=True)) | changes))


def metadata_of(cls: type) -> Mapping[str, Mapping[str, Any]] | None:
    """The names of a data class's fields, each with its metadata; None for another class. Does not load ``dataclasses``
    for a class that was made here.
    """
    described = next((vars(base)[_FIELDS] for base in cls.__mro__ if _FIELDS in vars(base)), None)
    if isinstance(described, _Fields):
        return {one.name: one.given.get("metadata", {}) for one in described.fields}
    if described is None:
        return None
    from dataclasses import fields

    return {one.name: one.metadata for one in fields(cls)}


_FIELDS = "__dataclass_fields__"
_MISSING: Any = object()


class _Field:
    """One field: its name, its annotation, and what was given to ``field``."""

    __slots__ = ("compared", "default", "factory", "given", "hashed", "init", "kw_only", "name", "shown", "type")

    def __init__(self, given: dict[str, Any]) -> None:
        self.given, self.name, self.type = given, "", ""
        self.default, self.factory = given.get("default", _MISSING), given.get("default_factory", _MISSING)
        self.init, self.shown, self.compared = given.get("init", True), given.get("repr", True), given.get("compare", 1)
        self.hashed = given.get("hash", self.compared)
        self.kw_only: bool = given.get("kw_only", False)


class _Fields:
    """``__dataclass_fields__`` of a class: the standard library's, once somebody asks."""

    def __init__(self, fields: list[_Field]) -> None:
        self.fields = fields

    @cached_property
    def taken(self) -> tuple[list[str], Callable[[Any], Any]]:
        """The names of the fields that ``__init__`` takes, and what gives their values."""
        names = [one.name for one in self.fields if one.init]
        return names, _value(names)

    @cached_property
    def own(self) -> frozenset[str]:
        """The names of those that it does not take."""
        return frozenset(one.name for one in self.fields if not one.init)

    @cached_property
    def compared(self) -> Callable[[Any], Any]:
        """What gives the values that are compared."""
        return _value([one.name for one in self.fields if one.compared])

    @cached_property
    def hashed(self) -> Callable[[Any], Any]:
        """What gives the values that are hashed."""
        return _value([one.name for one in self.fields if one.hashed])

    def __get__(self, instance: object, owner: type) -> Any:
        import dataclasses

        def given(one: _Field) -> Any:
            known = {"default": one.default} if one.default is not _MISSING else {}
            return dataclasses.field(**one.given | known | {"kw_only": one.kw_only})

        named = {one.name: one.type for one in self.fields}
        plain = type("plain", (), {"__annotations__": named} | {one.name: given(one) for one in self.fields})
        return dataclasses.dataclass(init=False, repr=False, eq=False)(plain).__dataclass_fields__  # type: ignore[attr-defined]


class _Parameters:
    """``__dataclass_params__`` of a class: the standard library's, once somebody asks."""

    def __init__(self, given: dict[str, bool]) -> None:
        self.given = given

    def __get__(self, instance: object, owner: type) -> Any:
        import dataclasses

        plain: Any = dataclasses.dataclass(init=False, repr=False, **self.given)(type("plain", (), {}))
        return plain.__dataclass_params__


_FEW = 8
"""How many objects of a class are made before it pays to compile how."""
_WIDE = 6
"""From this many fields on, a frozen object is filled through a writable class of the same layout: twice as fast."""


class _Init:
    """``__init__`` of a class, compiled when it is looked at, or has been called a few times."""

    def __init__(self, fields: list[_Field], frozen: bool) -> None:
        self.fields, self.frozen = fields, frozen
        self.home: Any = None  # the class, known when it is made
        self.called = 0

    def __get__(self, instance: object, owner: type) -> Any:
        self.called += 1
        if instance is not None and self.called < _FEW:
            return partial(self._fill, instance)
        function = self._compiled(self.home)
        self.home.__init__ = function
        return function if instance is None else function.__get__(instance, owner)

    def _fill(self, instance: Any, /, *values: Any, **given: Any) -> None:
        """Do what the compiled function does; calls that it would refuse are left to it."""
        fields = self.fields
        placed = [field.name for field in fields if field.init and not field.kw_only]
        taken = given | dict(zip(placed, values, strict=False))
        missing = [field for field in fields if not (field.init and field.name in taken)]
        wanting = any(field.default is _MISSING is field.factory for field in missing if field.init)
        if wanting or len(taken) != len(values) + len(given) or len(taken) + len(missing) != len(fields):
            return self._compiled(self.home)(instance, *values, **given)  # type: ignore[no-any-return]
        for field in missing:
            if field.factory is not _MISSING:
                taken[field.name] = field.factory()
            elif field.init:
                taken[field.name] = field.default
        for name, value in taken.items():
            object.__setattr__(instance, name, value)
        if hasattr(self.home, "__post_init__"):
            instance.__post_init__()
        return None

    def _compiled(self, cls: type) -> Any:
        names: dict[str, Any] = {"_set": object.__setattr__, "_missing": _MISSING}
        values: list[tuple[str, str]] = []
        taken: dict[bool, list[str]] = {True: [], False: []}
        for one in self.fields:
            value = one.name
            if one.factory is not _MISSING:
                names[f"_made_{one.name}"] = one.factory
                value = f"_made_{one.name}()" + (f" if {one.name} is _missing else {one.name}" if one.init else "")
            elif one.default is not _MISSING:
                names[f"_default_{one.name}"] = one.default
            if one.init:
                default = "" if one.default is _MISSING else f"=_default_{one.name}"
                taken[one.kw_only].append(one.name + (default if one.factory is _MISSING else "=_missing"))
            if one.init or one.factory is not _MISSING:
                values.append((one.name, value))
        stored = [f"self.{name} = {value}" for name, value in values]
        lines = [f"_set(self, {name!r}, {value})" for name, value in values] if self.frozen else stored
        if self.frozen and len(stored) >= _WIDE and cls.__bases__ == (object,) and "__slots__" in cls.__dict__:
            names |= {"_own": cls, "_writable": type(cls.__name__, (), {"__slots__": cls.__dict__["__slots__"]})}
            stored = ['_set(self, "__class__", _writable)', *stored, "self.__class__ = _own"]
            lines = ["if self.__class__ is _own:", *map(" ".__add__, stored), "else:", *map(" ".__add__, lines)]
        if hasattr(cls, "__post_init__"):
            lines.append("self.__post_init__()")
        arguments = ", ".join(("self", *taken[False], *(["*", *taken[True]] if taken[True] else ())))
        exec(f"def __init__({arguments}):\n " + "\n ".join(lines or ["pass"]), names)  # noqa: S102  names of fields
        function = names.pop("__init__")
        function.__qualname__, function.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
        function.__annotations__ = {one.name: one.type for one in self.fields if one.init} | {"return": "None"}
        return function


def _made(
    cls: type,
    *,
    eq: bool = True,
    frozen: bool = False,
    kw_only: bool = False,
    repr: bool = True,  # noqa: A002  the standard library's name
    slots: bool = False,
) -> type:
    described = [base.__dict__[_FIELDS] for base in cls.__mro__[-2:0:-1] if _FIELDS in base.__dict__]
    if any(one.__class__ is not _Fields for one in described):
        import dataclasses

        made: type = dataclasses.dataclass(eq=eq, frozen=frozen, kw_only=kw_only, repr=repr, slots=slots)(cls)
        return made
    declared = list(_fields_of(cls, kw_only))
    fields = list({one.name: one for one in chain(*(base.fields for base in described), declared)}.values())
    own = cls.__dict__
    methods: dict[str, Any] = {
        _FIELDS: _Fields(fields),
        "__dataclass_params__": _Parameters({"eq": eq, "frozen": frozen}),
        "__match_args__": tuple(field.name for field in fields if field.init and not field.kw_only),
    }
    init = _Init(fields, frozen)
    given = {"__init__": init, **_methods(frozen, eq, repr)}
    methods |= {name: value for name, value in given.items() if name not in own}
    if eq and "__hash__" in own and own["__hash__"] is None and "__eq__" in own and frozen:
        methods["__hash__"] = _hash
    if not slots:
        init.home = cls
        for name, value in methods.items():
            setattr(cls, name, value)
        for field in declared:
            if field.default is not _MISSING:
                setattr(cls, field.name, field.default)
            elif field.name in own:
                delattr(cls, field.name)
        return cls
    names = [field.name for field in fields]
    dropped = {*names, "__dict__", "__weakref__"}
    space = {name: value for name, value in own.items() if name not in dropped} | methods
    held = {name for base in cls.__mro__[1:-1] for name in base.__dict__.get("__slots__", ())}
    space["__slots__"] = tuple(name for name in names if name not in held)
    if frozen:
        space = {"__getstate__": _state, "__setstate__": _restore} | space
    init.home = made = type(cls)(cls.__name__, cls.__bases__, space)
    made.__qualname__ = cls.__qualname__
    return made


def _state(self: Any) -> list[Any]:
    return [getattr(self, one.name) for one in _described(self).fields]


def _restore(self: Any, state: list[Any]) -> None:
    for one, value in zip(_described(self).fields, state, strict=True):
        object.__setattr__(self, one.name, value)


def _fields_of(cls: type, kw_only: bool) -> Iterator[_Field]:
    """The fields that a class declares, in order."""
    for name, kind in (cls.__annotations__ if "__annotations__" in cls.__dict__ else {}).items():
        if kind == "KW_ONLY":
            kw_only = True
        elif not kind.startswith(("ClassVar", "typing.ClassVar")):
            value = cls.__dict__.get(name, _MISSING)
            field = value if isinstance(value, _Field) else _Field({} if value is _MISSING else {"default": value})
            field.name, field.type, field.kw_only = name, kind, field.kw_only or kw_only
            yield field


def _methods(frozen: bool, eq: bool, shown: bool) -> dict[str, Any]:
    """The methods that all classes of these parameters share, by name."""
    made: dict[str, Any] = {"__replace__": replace}
    if shown:
        made["__repr__"] = _represent
    if eq:
        made["__eq__"], made["__hash__"] = _equal, _hash if frozen else None
    if frozen:
        made["__setattr__"], made["__delattr__"] = _refuse_assignment, _refuse_deletion
    return made


def _described(instance: object) -> _Fields:
    """The fields of an instance's class."""
    for base in type(instance).__mro__:
        if isinstance(described := base.__dict__.get(_FIELDS), _Fields):
            return described
    raise TypeError(f"{type(instance).__name__} is no data class")


def _value(names: list[str]) -> Callable[[Any], Any]:
    """What gives the fields of these names as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda instance: tuple(getattr(instance, name) for name in names)


@recursive_repr()
def _represent(self: Any) -> str:
    shown = ", ".join(f"{one.name}={getattr(self, one.name)!r}" for one in _described(self).fields if one.shown)
    return f"{type(self).__qualname__}({shown})"


def _equal(self: Any, other: object) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    value = _described(self).compared
    return value(self) == value(other)


def _hash(self: Any) -> int:
    return hash(_described(self).hashed(self))


def _refuse_assignment(_: object, name: str, __: object) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(_: object, name: str) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot delete field {name!r}")


# -- named tuples -----------------------------------------------------------------------------------------------------
_MANY = 64
"""How many tuples of a class are made before compiling its ``__new__`` pays."""


class _New:
    """``__new__`` of a named tuple, compiled when it is looked at, or has been called often."""

    def __init__(self, names: tuple[str, ...], defaults: dict[str, Any]) -> None:
        self.names, self.defaults = names, defaults
        self.home: Any = None  # the class, known when it is made
        self.called = 0

    def __get__(self, instance: object, owner: type) -> Any:
        self.called += 1
        return self if self.called < _MANY else self._compiled()

    def __call__(self, cls: type, /, *values: Any, **given: Any) -> Any:
        """Do what the compiled function does; calls that it would refuse are left to it."""
        names, many = self.names, len(values)
        if given or many != len(names):
            taken = self.defaults | dict(zip(names, values, strict=False)) | given
            if many > len(names) or len(taken) != len(names) or not given.keys().isdisjoint(names[:many]):
                return self._compiled()(cls, *values, **given)
            values = tuple(map(taken.get, names))
        return tuple.__new__(cls, values)

    @property
    def __signature__(self) -> Any:
        from inspect import signature

        return signature(self._compiled())

    def _compiled(self) -> Any:
        taken = ", ".join(self.names)
        function = eval(f"lambda _cls, {taken}: _new(_cls, ({taken},))", {"_new": tuple.__new__})  # noqa: S307  fields
        function.__defaults__ = tuple(self.defaults.values())
        function.__name__, function.__qualname__ = "__new__", f"{self.home.__qualname__}.__new__"
        self.home.__new__ = staticmethod(function)
        return function


class _TupleMaker(type):
    """Makes a tuple of what is declared below ``NamedTuple``."""

    def __new__(cls, name: str, _: tuple[type, ...], space: dict[str, Any]) -> Any:
        names = tuple(space.get("__annotations__", ()))
        defaults = {one: space[one] for one in names if one in space}
        new = _New(names, defaults)
        fields = {one: _tuplegetter(place, None) for place, one in enumerate(names)}
        shared: dict[str, Any] = {"__slots__": (), "__new__": new, "_fields": names, "_field_defaults": defaults}
        new.home = made = type(name, (tuple,), _SHARED | space | shared | {"__match_args__": names} | fields)
        return made


def _make(cls: Any, values: Iterable[Any]) -> Any:
    made = tuple.__new__(cls, values)
    if len(made) != len(cls._fields):
        raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")
    return made


def _replace(self: Any, /, **changes: Any) -> Any:
    made = self._make(map(changes.pop, self._fields, self))
    if changes:
        raise ValueError(f"Got unexpected field names: {list(changes)!r}")
    return made


def _shown(self: Any) -> str:
    rows = zip(self._fields, self, strict=True)
    return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in rows)})"


_SHARED: dict[str, Any] = {
    "_make": classmethod(_make),
    "_replace": _replace,
    "__replace__": _replace,
    "_asdict": lambda self: dict(zip(self._fields, self, strict=True)),
    "__getnewargs__": lambda self: tuple(self),
    "__repr__": _shown,
}
if not TYPE_CHECKING:
    NamedTuple = type.__new__(_TupleMaker, "NamedTuple", (), {})

"""The data classes of memfs behave as the standard library's."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable, Mapping
from typing import Any, ClassVar
from typing import NamedTuple as TypingTuple

import pytest

from memfs.dataclass import KW_ONLY, NamedTuple, dataclass, field, metadata_of, replace

Decorator = Callable[..., Any]
FROZEN = {"frozen": True, "slots": True}


def place(made: Decorator, of: Decorator, name: str = "Place", **how: Any) -> Any:
    """A class with every sort of field, made by one of both decorators."""

    class Place:
        """A place."""

        sort: ClassVar[str] = "place"
        name: str
        size: int = 3
        _: KW_ONLY
        tags: tuple[str, ...] = ()
        facts: dict[str, Any] = of(default_factory=dict, hash=False)
        note: str = of(default="", compare=False, repr=False, metadata={"aside": True})
        seen: list[str] = of(default_factory=list, init=False, compare=False)

        def __post_init__(self) -> None:
            if not self.name:
                raise ValueError("no name")

    if of is dataclasses.field:
        Place.__annotations__["_"] = dataclasses.KW_ONLY
    Place.__qualname__ = Place.__name__ = name
    return made(**how)(Place)


def both(**how: Any) -> tuple[Any, Any]:
    """The class made here, and as the standard library makes it."""
    return place(dataclass, field, **how), place(dataclasses.dataclass, dataclasses.field, **how)


@dataclass(frozen=True, slots=True)
class Kept:
    """A class that pickle finds by its name."""

    name: str
    tags: tuple[str, ...] = ()


HOWS = [FROZEN, {"frozen": True}, {"slots": True}, {}, {**FROZEN, "kw_only": True}, {**FROZEN, "eq": False}]


@pytest.mark.parametrize("how", HOWS, ids=str)
def test_objects_are_made_shown_and_compared_as_the_standard_library_does(how: Mapping[str, bool]) -> None:
    """Arguments, defaults, representation, equality and hash are the same."""
    ours, theirs = both(**how)
    for cls in (ours, theirs):
        one, same, other = cls(name="a", facts={"b": 1}, note="x"), cls(name="a", facts={"b": 1}), cls(name="b")
        assert (one == same) is how.get("eq", True)
        assert one != other
        assert one != ("a", 3)
        assert one.seen is not same.seen
        assert cls.sort == "place"
        if how.get("frozen") and how.get("eq", True):
            assert hash(one) == hash(same) == hash(("a", 3, ()))
        with pytest.raises(ValueError, match="no name"):
            cls(name="")
        with pytest.raises(TypeError, match=r"__init__\(\) missing 1 required"):
            cls()
    assert (ours.__hash__ is None) == (theirs.__hash__ is None)
    assert repr(ours(name="a")) == repr(theirs(name="a"))
    assert ours.__match_args__ == theirs.__match_args__
    assert getattr(ours, "__slots__", None) == getattr(theirs, "__slots__", None)
    assert list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters)


@pytest.mark.parametrize("how", HOWS[:-2], ids=str)
def test_the_first_objects_are_made_as_all_later_ones(how: Mapping[str, bool]) -> None:
    """``__init__`` is compiled after some objects; a call does the same, or is refused, before and after that."""
    ours, theirs = both(**how)
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        (("a",), {}), (("a", 4), {"tags": ("x",), "note": "n"}), ((), {"name": "a", "size": 5, "facts": {"b": 1}}),
        ((), {}), (("a", 1, 2), {}), (("a",), {"name": "b"}), (("a",), {"weight": 1}), (("a",), {"seen": []}),
        (("",), {}),
    ]  # fmt: skip
    for _ in range(2):
        for cls_of in (ours, theirs):
            assert [made_of(cls_of, *call) for call in calls] == [made_of(theirs, *call) for call in calls]


def made_of(cls: Any, values: tuple[Any, ...], given: Mapping[str, Any]) -> object:
    """The fields of the object that a call makes, or how it is refused."""
    try:
        made = cls(*values, **given)
    except (TypeError, ValueError) as error:
        return type(error)
    return [getattr(made, name) for name in ("name", "size", "tags", "facts", "note", "seen")]


def test_a_frozen_object_refuses_changes_and_is_replaced() -> None:
    """No field can be set or deleted; ``replace`` runs the checks of a new object, and refuses what is not given."""
    ours, _ = both(**FROZEN)
    one = ours("a", tags=("x",))
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'size'"):
        one.size = 4
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'size'"):
        del one.size
    for way in (replace, dataclasses.replace):
        changed = way(one, size=4)
        assert (changed.name, changed.size, changed.tags) == ("a", 4, ("x",))
        with pytest.raises(ValueError, match="no name"):
            way(one, name="")
        with pytest.raises(ValueError, match="init=False"):
            way(one, seen=[])
    assert copy.deepcopy(one) == copy.copy(one) == one


def test_pickle_gives_an_equal_object() -> None:
    """A frozen object with slots goes through pickle."""
    assert pickle.loads(pickle.dumps(Kept("a", ("b",)))) == Kept("a", ("b",))


def test_the_standard_library_knows_the_fields() -> None:
    """``fields``, ``asdict`` and ``is_dataclass`` see what they see of a class of their own."""
    ours, theirs = both(**FROZEN)
    assert dataclasses.is_dataclass(ours)

    def fields_of(cls: Any) -> list[Any]:
        rows = dataclasses.fields(cls)
        return [(one.name, one.type, one.default, one.init, one.hash, one.kw_only, one.metadata) for one in rows]

    assert fields_of(ours) == fields_of(theirs)
    assert dataclasses.asdict(ours("a")) == dataclasses.asdict(theirs("a"))
    assert ours.__dataclass_params__.frozen


@pytest.mark.parametrize("decorated", [dataclass, dataclasses.dataclass])
def test_a_class_inherits_fields(decorated: Decorator) -> None:
    """A subclass of either decorator has the fields of its base before its own."""
    ours, _ = both(**FROZEN)

    class Town(ours):  # type: ignore[misc, valid-type]
        people: int = 0

    town = decorated(frozen=True, slots=True, kw_only=True)(Town)
    one = replace(town("a", 1, people=7), size=2)
    assert (one.name, one.size, one.people) == ("a", 2, 7)
    assert one == town("a", 2, people=7)
    assert [each.name for each in dataclasses.fields(town)][-1] == "people"


def test_metadata_is_kept_by_either_decorator() -> None:
    """The names of the fields are in order, each with what was given to it; another class has none."""
    ours, theirs = both(**FROZEN)
    assert metadata_of(ours) == metadata_of(theirs)
    assert list(metadata_of(ours) or ()) == ["name", "size", "tags", "facts", "note", "seen"]
    assert metadata_of(str) is None


def test_own_methods_stay() -> None:
    """What a class defines itself is not replaced, and one that compares by itself is hashed as the library does."""

    @dataclass(frozen=True, slots=True)
    class Own:
        name: str

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own)

    assert repr(Own("a")) == "own"
    assert Own("a") == Own("b")
    assert hash(Own("a")) == hash(("a",))


class Row(NamedTuple):
    """A row that pickle finds by its name."""

    name: str
    size: int = 3
    tags: tuple[str, ...] = ()

    def doubled(self) -> Row:
        """One twice as large."""
        return self._replace(size=self.size * 2)

    def __hash__(self) -> int:
        return super().__hash__() + 1


class Same(TypingTuple):
    """The row as the standard library makes it."""

    name: str
    size: int = 3
    tags: tuple[str, ...] = ()


class Shown(NamedTuple):
    """A row that says itself how it is shown and made."""

    name: str

    def __repr__(self) -> str:
        return "shown"


def test_a_named_tuple_is_made_as_the_standard_library_makes_it() -> None:
    """By place and by name, with defaults, and refused for the same mistakes."""
    for made in (Row, Same):
        assert tuple(made("a")) == ("a", 3, ())
        assert tuple(made("a", tags=("x",), size=4)) == ("a", 4, ("x",))
        assert made._make(["a", 1, ()])[1:] == (1, ())
        for wrong in ((), ("a", 1, (), 2)):
            with pytest.raises(TypeError):
                made(*wrong)  # type: ignore[arg-type,misc]
        with pytest.raises(TypeError):
            made("a", weight=1)  # type: ignore[call-arg]
        with pytest.raises(TypeError):
            made._make(["a"])
        with pytest.raises(ValueError, match="weight"):
            made("a")._replace(weight=1)  # type: ignore[call-arg]
        with pytest.raises(AttributeError):
            made("a").name = "b"  # type: ignore[misc]
        with pytest.raises(AttributeError):
            made("a").other = "b"  # type: ignore[union-attr]


def test_a_named_tuple_describes_itself_as_the_standard_library_does() -> None:
    """Fields, defaults, representation and what pattern matching asks for."""
    for name in ("_fields", "_field_defaults", "__match_args__", "__slots__"):
        assert getattr(Row, name) == getattr(Same, name)
    assert repr(Row("a")).removeprefix("Row") == repr(Same("a")).removeprefix("Same")
    assert Row("a")._asdict() == Same("a")._asdict()
    assert inspect.signature(Row.__new__).parameters.keys() == inspect.signature(Same.__new__).parameters.keys()
    assert repr(Shown("a")) == "shown"


def test_a_named_tuple_is_a_tuple_and_keeps_its_methods() -> None:
    """It is unpacked, compared, hashed, copied, pickled and extended as one."""
    row = Row("a", 2)
    name, size, tags = row
    assert (name, size, tags) == row == ("a", 2, ())
    assert (row.doubled(), hash(row)) == (("a", 4, ()), hash(("a", 2, ())) + 1)
    assert copy.replace(row, size=5).size == 5 if hasattr(copy, "replace") else row._replace(size=5).size == 5
    for again in (pickle.loads(pickle.dumps(row)), copy.copy(row), copy.deepcopy(row)):
        assert (type(again), again) == (Row, row)

    class Wider(Row):
        """A row below a row."""

    assert (type(Wider("b")), Wider("b").name) == (Wider, "b")

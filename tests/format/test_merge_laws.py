"""Laws of joining files, whatever two sides did to an item (K4)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from memfs.format import item_fields, yaml_text
from memfs.format.codec import Codec, parse, render
from memfs.format.file_merge import FileMerge, FileMerger
from memfs.format.plain import canonical
from memfs.format.schema import Schemas
from memfs.model.kinds import KindTable

CODEC = Codec(Schemas(), KindTable())
MERGER = FileMerger(CODEC)
PATH = "ContextMemory/memories/semantic/2026-03/x.yaml"

words = st.text("abcxyz", min_size=1, max_size=4)
lists = st.lists(words, max_size=4, unique=True)
prose = st.lists(words, min_size=1, max_size=6).map(lambda lines: "\n".join(lines) + "\n")
moments = st.integers(1, 28).map(lambda day: f"2026-03-{day:02d}T10:00:00Z")
VALUES: Mapping[str, st.SearchStrategy[Any]] = {
    "content": prose,
    "tags": lists,
    "timestamp": moments,
    "updated": moments,
    "created": moments,
    "origin": st.fixed_dictionaries({}, optional={"agent": words, "session": words, "sequence": st.integers(0, 9)}),
    "trust": st.sampled_from(["human", "reviewed", "agent", "tool"]),
    "importance": st.integers(0, 10),
    "pinned": st.booleans(),
    "status": words,
    "expires": moments,
    "supersedes": lists,
    "links": st.lists(st.fixed_dictionaries({"to": words}, optional={"relation": words}), max_size=3),
    "context": st.dictionaries(words, words | st.integers(0, 9), max_size=3),
    "metadata": st.dictionaries(words, words | prose | lists | st.integers(0, 9), max_size=3),
}
mappings = st.fixed_dictionaries({"title": words}, optional=dict(VALUES))


@st.composite
def files(draw: st.DrawFn, made: st.SearchStrategy[dict[str, Any]] = mappings) -> bytes:
    """An item's file with its keys in any order, and comments above and behind them."""
    mapping = draw(made)
    lines = []
    for key in draw(st.permutations(list(mapping))):
        if draw(st.integers(0, 3)) == 0:
            lines.append(f"# c{draw(words)};")
        first, *rest = yaml_text.entry(key, mapping[key], 0)
        lines += [f"{first}  # c{draw(words)};" if draw(st.integers(0, 5)) == 0 else first, *rest]
    return ("\n".join(lines) + "\n").encode()


def edited(data: bytes, changes: Mapping[str, Any]) -> bytes:
    """The file with other values in some fields, as memfs writes it; None removes one."""
    parsed = parse(data, PATH)
    values = {key: value for key, value in {**parsed.mapping, **changes}.items() if value is not None}
    return render(values, PATH, parsed, item_fields.ORDER).data


edits = st.fixed_dictionaries({}, optional={name: st.none() | made for name, made in VALUES.items()})


def values_of(joined: FileMerge) -> dict[str, Any]:
    """The values of a result, which is valid."""
    assert joined.data is not None
    assert not joined.whole, joined.reason
    assert CODEC.errors(joined.data, PATH) == [], joined.data
    return parse(joined.data, PATH).mapping


@given(base=files(), ours=files(), theirs=files())
def test_k4_the_result_is_valid_and_the_sides_can_be_exchanged(base: bytes, ours: bytes, theirs: bytes) -> None:
    """Any three versions give a valid item, the same to the byte whichever is called ours, also without a base."""
    for begun in (base, None):
        joined = MERGER.merge(PATH, begun, ours, theirs)
        values_of(joined)
        assert MERGER.merge(PATH, begun, theirs, ours) == joined


@given(base=files(), mine=edits, yours=edits)
def test_k4_independent_edits_are_all_in_the_result(base: bytes, mine: dict[str, Any], yours: dict[str, Any]) -> None:
    """Fields that one side changed have its value, fields that nobody changed the old one: the model is a mapping."""
    yours = {name: value for name, value in yours.items() if name not in mine}
    for one, other in ((mine, yours), (yours, mine)):
        if "content" in one:  # a person who vouches for an item does so for its words (decision 0043)
            other.pop("trust", None)
    ours, theirs = edited(base, mine), edited(base, yours)

    joined = MERGER.merge(PATH, base, ours, theirs)

    model = {**parse(base, PATH).mapping, **mine, **yours}
    assert canonical(values_of(joined)) == canonical({key: value for key, value in model.items() if value is not None})
    assert joined.conflicts == ()


@given(base=files(), ours=files())
def test_k4_merging_with_itself_or_with_nothing_new_changes_nothing(base: bytes, ours: bytes) -> None:
    """The same on both sides, or the base on one, is the version itself, byte for byte."""
    for versions in ((base, ours, ours), (base, base, ours), (base, ours, base), (None, ours, ours)):
        assert MERGER.merge(PATH, *versions) == FileMerge(data=ours)


@given(base=files(), mine=edits, yours=edits)
def test_k4_a_result_joined_again_stays(base: bytes, mine: dict[str, Any], yours: dict[str, Any]) -> None:
    """Anyone who has one of the versions and gets the result takes the result."""
    ours, theirs = edited(base, mine), edited(base, yours)
    data = MERGER.merge(PATH, base, ours, theirs).data

    assert MERGER.merge(PATH, ours, data, ours).data == data
    assert MERGER.merge(PATH, theirs, theirs, data).data == data
    assert MERGER.merge(PATH, base, data, data).data == data


@given(base=files(), ours=files(), theirs=files())
def test_k4_nothing_that_both_have_disappears(base: bytes, ours: bytes, theirs: bytes) -> None:
    """Fields with one value on both sides have it; parts of sets that both have are there."""
    joined = MERGER.merge(PATH, base, ours, theirs)
    values, one, other = values_of(joined), parse(ours, PATH).mapping, parse(theirs, PATH).mapping

    for name in one.keys() & other.keys():
        if canonical(one[name]) == canonical(other[name]):
            assert canonical(values[name]) == canonical(one[name])
    for name in ("tags", "supersedes"):
        assert set(one.get(name, ())) & set(other.get(name, ())) <= set(values.get(name, ()))


@given(base=files(), ours=files(), theirs=files())
def test_k4_nothing_that_one_side_wrote_is_lost_unsaid(base: bytes, ours: bytes, theirs: bytes) -> None:
    """A text that one side alone changed is in the result, or in a conflict's record within the item."""
    joined = MERGER.merge(PATH, base, ours, theirs)
    values_of(joined)
    begun, after = parse(base, PATH).mapping, json.dumps(parse(joined.data or b"", PATH).mapping)

    for side in (ours, theirs):
        mapping = parse(side, PATH).mapping
        for name in ("title", "trust", "expires", "timestamp"):
            if name in mapping and mapping[name] != begun.get(name):
                assert json.dumps(mapping[name]) in after, name
    assert joined.recorded == bool(joined.conflicts)

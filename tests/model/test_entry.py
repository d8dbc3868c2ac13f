"""An entry is an item, and the item is that entry again."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from memfs.doors.langgraph.store import Entry, asked_tags, entry_id, entry_of, item_of, namespace_tag, readable
from memfs.model.ids import check_id

NOW = datetime(2026, 3, 1, 12, 0, 0, 5, tzinfo=UTC)
labels = st.text(min_size=1, max_size=20)


@given(st.lists(labels, min_size=1, max_size=4).map(tuple), st.text(max_size=20))
def test_any_names_make_a_valid_item_and_come_back(namespace: tuple[str, ...], key: str) -> None:
    """B5: whatever labels and keys hold, the id, the title and the tags are ones that files may have."""
    entry = Entry(namespace=namespace, key=key, value={"n": 1}, text="words", created=NOW, updated=NOW)
    item = item_of(entry)
    check_id(item.id)
    assert entry_of(item) == entry
    assert 0 < len(item.title) <= 300
    assert not set("\r\n") & set(item.title)
    assert all(0 < len(tag) <= 100 and not set("\r\n") & set(tag) for tag in item.tags)
    assert all(asked_tags(namespace[:depth]) <= set(item.tags) for depth in range(len(namespace) + 1))


def test_ids_and_tags_differ_as_names_do() -> None:
    """B5: a slash in a label is not a border between labels."""
    places = [(("a", "b"), "c"), (("a/b",), "c"), (("a",), "b/c"), (("A", "b"), "c"), (("a%2Fb",), "c")]
    places += [(("one", "a", "b"), "c"), (("two", "a", "b"), "c")]
    assert len({entry_id(*place).casefold() for place in places}) == len(places)
    assert len({namespace_tag(namespace) for namespace, _ in places}) == len(places)
    assert namespace_tag(("x" * 200,)) != namespace_tag(("x" * 201,))


def test_what_people_gave_stays() -> None:
    """A person's importance, pin and tags outlive the next put."""
    entry = Entry(namespace=("a",), key="k", value={}, created=NOW, updated=NOW)
    item = item_of(entry).replace(importance=3.0, pinned=True, tags=("a", "mine"))
    again = item_of(entry, item)
    assert (again.importance, again.pinned, again.tags) == (3.0, True, ("a", "mine"))


def test_an_item_that_was_changed_by_hand_may_be_no_entry() -> None:
    """Whatever somebody writes into the data is survived."""
    item = item_of(Entry(namespace=("a",), key="k", value={}, created=NOW, updated=NOW))
    for data in ({}, {"namespace": "a", "key": "k", "value": {}}, {"namespace": ["a"], "key": 1, "value": {}}):
        assert entry_of(item.replace(data=data)) is None
    for data in ({"namespace": ["b"], "key": "k", "value": {}}, {"namespace": ["a"], "key": "k", "value": []}):
        assert entry_of(item.replace(data=data)) is None
    assert entry_of(item.replace(memory_type="semantic")) is None


def test_a_value_is_readable() -> None:
    """The text alone, or a line a leaf."""
    assert readable({"text": "Ada"}) == "Ada"
    assert readable({"a": {"b": [1, {"c": "x"}]}, "none": None, "yes": True}) == "a.b: 1\na.b.c: x\nyes: True"
    assert readable({}) == ""

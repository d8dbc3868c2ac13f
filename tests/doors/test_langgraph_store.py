"""The LangGraph store keeps LangGraph's rules: as ``InMemoryStore`` does, and durable."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    SearchItem,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

from kit.patience import LONG
from memfs.doors.langgraph import MemfsStore
from memfs.doors.langgraph.store import UNDECIDED
from memfs.errors import ContentError, SecretDetected
from memfs.model import MemoryItem, Query, RecordedConflict
from memfs.search import embedder
from memfs.workspace import Workspace

LABELS = ["users", "docs", "Users", "a/b", "über", "*x"]
namespaces = st.lists(st.sampled_from(LABELS), min_size=1, max_size=3).map(tuple)
prefixes = st.one_of(namespaces, st.just(()))
keys = st.sampled_from(["one", "One", "two", "k/1", "", "x.y"])
numbers = st.one_of(st.integers(-3, 3), st.sampled_from([0.5, 1.0, -0.0]))
leaves = st.one_of(numbers, st.booleans(), st.none(), st.text("ab\r\n\t:#-é😀'\" ", max_size=6))
values = st.dictionaries(
    st.sampled_from(["name", "size", "tags", "deep"]),
    st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.just("in"), inner), max_leaves=3
    ),
    max_size=3,
)
conditions = st.one_of(
    leaves,
    st.lists(leaves, max_size=2),
    st.dictionaries(st.just("in"), leaves, min_size=1),
    st.dictionaries(st.sampled_from(["$eq", "$ne"]), leaves, min_size=1, max_size=2),
)
filters = st.none() | st.dictionaries(st.sampled_from(["name", "size", "deep"]), conditions, max_size=2)
patterns = st.lists(st.sampled_from(["users", "docs", "*"]), min_size=1, max_size=2).map(tuple)
matched = st.builds(MatchCondition, st.sampled_from(["prefix", "suffix"]), patterns)
puts = st.tuples(namespaces, keys, values).map(lambda parts: PutOp(*parts))
removals = st.tuples(namespaces, keys).map(lambda parts: PutOp(*parts, None))
gets = st.tuples(namespaces, keys).map(lambda parts: GetOp(*parts))
searches = st.tuples(prefixes, filters, st.integers(0, 8), st.integers(0, 3)).map(lambda parts: SearchOp(*parts))
listings = st.tuples(st.none() | st.tuples(matched), st.none() | st.integers(1, 3)).map(
    lambda parts: ListNamespacesOp(*parts)
)
operations = st.one_of(puts, puts, removals, gets, searches, listings)
_runs = count()
_kept: dict[Path, Workspace] = {}


@pytest.fixture
def store(opened: Callable[..., Workspace]) -> Iterator[MemfsStore]:
    """A store over a new workspace."""
    with MemfsStore(workspace=opened()) as made:
        yield made


def plainly(result: Any) -> Any:
    """A result without times, namespaces without those that hold nothing."""
    if isinstance(result, Item):
        return type(result).__name__, result.namespace, result.key, result.value
    return [plainly(one) for one in result] if isinstance(result, list) else result


def known(store: InMemoryStore) -> None:
    """Let the reference forget namespaces that hold nothing: it makes one whenever it is asked for a key there."""
    for namespace in [one for one, items in store._data.items() if not items]:
        del store._data[namespace]


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(script=st.lists(st.lists(operations, min_size=1, max_size=4), min_size=1, max_size=6))
def test_any_operations_give_the_same_results(
    script: list[list[Op]], opened: Callable[..., Workspace], tmp_path: Path
) -> None:
    """B5: batches of puts, gets, searches with filters and listings give what ``InMemoryStore`` gives."""
    workspace = _kept[tmp_path] if tmp_path in _kept else _kept.setdefault(tmp_path, opened())
    ours, theirs = MemfsStore(workspace=workspace), InMemoryStore()
    ours.batch([PutOp(entry.namespace, entry.key, None) for entry in ours._below()])
    assert ours.list_namespaces() == []
    for asked in script:
        known(theirs)
        ops = sorted(asked, key=lambda op: not isinstance(op, ListNamespacesOp))
        whole = [op._replace(limit=1000, offset=0) if isinstance(op, SearchOp) else op for op in ops]
        expected = theirs.batch(whole)
        cut = ours.batch([op for op in ops if isinstance(op, SearchOp)])
        got = ours.batch(whole)
        for op, one, other in zip(whole, got, expected, strict=True):
            assert in_order(op, one) == in_order(op, other), op
        for op, part, one in zip(
            [op for op in ops if isinstance(op, SearchOp)],
            cut,
            [one for op, one in zip(ops, got, strict=True) if isinstance(op, SearchOp)],
            strict=True,
        ):
            assert plainly(part) == plainly(one[op.offset : op.offset + op.limit])


def in_order(op: Op, result: Any) -> Any:
    """A plain result; of a search, the items by namespace, as which namespace comes first is not promised."""
    shown = plainly(result)
    return sorted(shown, key=lambda one: one[1]) if isinstance(op, SearchOp) else shown


# -- rules --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("namespace", [(), ("",), ("a.b",), ("langgraph", "x"), ("a", 5), ("a\0",)])
def test_namespaces_that_langgraph_forbids_are_refused(namespace: Any, store: MemfsStore) -> None:
    """B5: no empty namespace or label, no dot, not the root ``langgraph``; nothing is stored."""
    with pytest.raises(InvalidNamespaceError):
        store.put(namespace, "k", {"a": 1})
    assert store.list_namespaces() == []


def test_labels_in_raw_operations_are_checked_too(store: MemfsStore) -> None:
    """B5: an operation that is handed to ``batch`` cannot address another namespace by a dot."""
    for op in (GetOp(("a.b",), "k"), PutOp(("a.b",), "k", {}), SearchOp(("a.b",))):
        with pytest.raises(InvalidNamespaceError):
            store.batch([op])
    with pytest.raises(ValueError, match="Unknown operation type"):
        store.batch(["get"])  # type: ignore[list-item]


def test_what_is_read_in_a_batch_is_from_before_it_and_the_last_put_counts(store: MemfsStore) -> None:
    """B5: results come in the order of the operations; of several puts of one key the last is stored."""
    store.put(("a",), "k", {"n": 0})
    got = store.batch(
        [PutOp(("a",), "k", {"n": 1}), GetOp(("a",), "k"), PutOp(("a",), "k", {"n": 2}), GetOp(("b",), "k")]
    )
    assert [one.value if isinstance(one, Item) else one for one in got] == [None, {"n": 0}, None, None]
    assert value(store, "k") == {"n": 2}
    store.batch([])


def test_a_batch_is_one_commit_and_all_or_nothing(tmp_path: Path, git: Callable[..., str]) -> None:
    """B5: entries of a batch are committed together, by agent and door; one that is refused leaves none."""
    with MemfsStore(tmp_path, agent="planner", session="s3") as store:
        store.batch([PutOp(("a",), key, {"n": key}) for key in ("one", "two")])
        store._facade.workspace.store.flush()
        assert git(tmp_path, "log", "-1", "--format=%an|%s|%(trailers:key=Memfs-Source,valueonly)").strip() == (
            "planner|Store 2 entries|langgraph"
        )
        with pytest.raises(ContentError):
            store.batch([PutOp(("a",), "three", {"n": 3}), PutOp(("a",), "four", {"when": datetime.now(UTC)})])
        assert [one.key for one in store.search(("a",))] == ["one", "two"]
        store.batch([PutOp(("order",), key, {"n": key}) for key in ("z", "a", "m")])
        assert [one.key for one in store.search(("order",))] == ["z", "a", "m"]


def value(store: MemfsStore, key: str, namespace: tuple[str, ...] = ("a",)) -> Any:
    """What is stored under a key, None where nothing is."""
    found = store.get(namespace, key)
    return None if found is None else found.value


def test_times_say_when_it_was_made_and_changed(store: MemfsStore) -> None:
    """B5: ``created_at`` stays when a value is replaced, ``updated_at`` does not; both have a time zone."""
    store.put(("a",), "k", {"n": 1})
    first = store.get(("a",), "k")
    store.put(("a",), "k", {"n": 2})
    second = store.get(("a",), "k")
    assert first is not None
    assert second is not None
    assert second.created_at == first.created_at <= first.updated_at < second.updated_at
    assert first.created_at.tzinfo is not None


def test_what_is_given_is_the_callers_own(store: MemfsStore) -> None:
    """B5: changing a value that was given changes nothing that is stored."""
    store.put(("a",), "k", {"list": [1]})
    for found in (store.get(("a",), "k"), store.search(("a",))[0]):
        assert found is not None
        found.value["list"].append(2)
    assert value(store, "k") == {"list": [1]}
    assert store.search(("a",))[0].value == {"list": [1]}


@pytest.mark.parametrize(
    ("wanted", "keys"),
    [
        ({"n": {"$gt": 1}}, ["two", "text"]),
        ({"n": {"$gte": 1}}, ["one", "two", "text"]),
        ({"n": {"$lt": 2}}, ["one"]),
        ({"n": {"$lte": 2, "$gt": 1}}, ["two"]),
        ({"n": {"$ne": 1}}, ["two", "none", "text"]),
        ({"deep": {"in": {"$eq": [1, {"x": 2}]}}}, ["none"]),
        ({"deep": {"in": [1, {"x": {"$gte": 2}}]}}, ["none"]),
        ({"n": None}, ["none"]),
        ({"deep.in": [1, {"x": 2}]}, ["none"]),
        ({"deep.in.x": 2}, []),
    ],
)
def test_operators_compare_and_nest(wanted: dict[str, Any], keys: list[str], store: MemfsStore) -> None:
    """B5: operators at any depth; what is not a number is neither more nor less than one."""
    for key, kept in {
        "one": {"n": 1},
        "two": {"n": 2.0},
        "none": {"deep": {"in": [1, {"x": 2}]}},
        "text": {"n": "7"},
    }.items():
        store.put(("a",), key, kept)
    assert [one.key for one in store.search(("a",), filter=wanted)] == keys


def test_an_unknown_operator_is_refused(store: MemfsStore) -> None:
    """B5: as LangGraph's own stores do."""
    store.put(("a",), "k", {"n": 1})
    with pytest.raises(ValueError, match="Unsupported operator: \\$in"):
        store.search(("a",), filter={"n": {"$in": [1]}})


# -- searching ----------------------------------------------------------------------------------------------------
def test_what_answers_a_query_comes_first_with_a_score(store: MemfsStore) -> None:
    """B5: words find; the others that fit follow without a score, as a vector store fills its limit."""
    store.put(("u", "ada"), "food", {"text": "Ada loves spicy noodles from the market"})
    store.put(("u", "ada"), "work", {"text": "Ada works on the database team"})
    store.put(("u", "bob"), "food", {"text": "Bob loves noodles"})
    found = store.search(("u", "ada"), query="which noodles does she love")
    assert [(one.key, one.score is None) for one in found] == [("food", False), ("work", True)]
    assert 0 < (found[0].score or 0) <= 1
    assert [one.key for one in store.search(("u",), query="noodles", limit=1, offset=1)] == ["food"]
    assert len(store.search(("u",), query="noodles", filter={"text": "Bob loves noodles"})) == 1


def test_only_what_is_indexed_answers(store: MemfsStore) -> None:
    """B5: ``index=False`` and ``index=[paths]`` are honoured, and so are the store's own fields."""
    store.put(("a",), "off", {"text": "purple giraffes"}, index=False)
    store.put(("a",), "part", {"text": "purple elephants", "parts": [{"t": "green ants"}]}, index=["parts[*].t"])
    assert scores(store, "purple") == {"off": False, "part": False}
    assert scores(store, "green ants") == {"part": True, "off": False}
    only = MemfsStore(workspace=store._facade.workspace, fields=["title"])
    only.put(("b",), "k", {"title": "yellow", "body": "crimson"})
    assert [one.score is not None for one in only.search(("b",), query="crimson")] == [False]
    assert [one.score is not None for one in only.search(("b",), query="yellow")] == [True]


def scores(store: MemfsStore, query: str) -> dict[str, bool]:
    """Which keys answer."""
    return {one.key: one.score is not None for one in store.search(("a",), query=query)}


class Colours:
    """An embedder that knows that two words mean the same."""

    name, dimensions, weight, least, light = "colours", 2, 0.6, 0.25, False

    def embed(self, texts: Any) -> Any:
        """Red things lie in one direction, all others in another."""
        return [(1.0, 0.0) if {"crimson", "red"} & set(text.lower().split()) else (0.0, 1.0) for text in texts]


def test_with_an_embedder_it_finds_by_meaning(
    opened: Callable[..., Workspace], monkeypatch: pytest.MonkeyPatch
) -> None:
    """B5: the workspace's own embedder serves LangGraph, too."""
    monkeypatch.setattr(embedder, "LOCAL", {"colours": Colours})
    monkeypatch.setattr("memfs.doors.langgraph.store._PATIENCE", LONG)
    workspace = opened()
    (workspace.root / "ContextMemory/configuration/memory_context.yaml").write_text(
        "metadata:\n  type: memory\n  name: Test\npolymorphic_config:\n  memory_config:\n"
        "    storage_type: vector_db\n    embedding_model: colours\n"
    )
    store = MemfsStore(workspace=workspace)
    store.put(("a",), "bike", {"text": "her bicycle has a crimson frame"})
    store.put(("a",), "car", {"text": "the van is parked outside"})
    store.put(("a",), "part", {"text": "grey", "hidden": "a red secret door"}, index=["text"])
    assert scores(store, "red") == {"bike": True, "car": False, "part": False}


# -- time to live -------------------------------------------------------------------------------------------------
class Clock:
    """A clock that is set by hand."""

    now = datetime(2026, 3, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        """The time."""
        return self.now

    def go(self, minutes: float) -> None:
        """So much later."""
        self.now += timedelta(minutes=minutes)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The entries' clock."""
    made = Clock()
    monkeypatch.setattr("memfs.facades.open_workspaces.SignedFacade.now", lambda self: made())
    return made


def test_a_text_passed_for_a_name_is_refused(store: MemfsStore) -> None:
    """B5: a key or namespace of megabytes is refused by its length, before anything is made of it; none is there."""
    big = "x" * 3_000_000
    began = time.process_time()
    for field, namespace, key in (("key", ("a",), big), ("namespace", (big,), "k"), ("namespace", ("a",) * 9_000, "k")):
        with pytest.raises(ContentError, match="at most 10000") as caught:
            store.put(namespace, key, {"c": 1})
        assert caught.value.field == field
        assert store.get(namespace, key) is None
        store.delete(namespace, key)
    assert time.process_time() - began < 1
    assert store.search(()) == []


def test_an_entry_ends_when_its_file_says_so(store: MemfsStore, clock: Clock) -> None:
    """B5: after the moment that a person wrote into it an entry is given by nothing, unless it is put again later."""
    store.put(("a",), "short", {"n": 1})
    clock.go(0.1)
    store.put(("a",), "long", {"n": 2})
    memories = store._facade.workspace.store
    (item,) = (one for one in memories.select(query_entries()) if one.title == "a/short")
    memories.put(item.replace(expires="2199-01-01T00:00:00Z"), item.sha256)
    assert [one.key for one in store.search(("a",))] == ["short", "long"]
    store.put(("a",), "short", {"n": 3})
    assert [one.expires.year for one in memories.select(query_entries()) if one.expires] == [2199]
    memories.put(item.replace(expires="2001-01-01T00:00:00Z"))
    assert store.get(("a",), "short") is None
    store.put(("a",), "short", {"n": 4})
    assert store.get(("a",), "short").value == {"n": 4}
    store.delete(("a",), "short")
    assert [one.key for one in store.search((), query="n")] == ["long"]
    with pytest.raises(NotImplementedError):
        store.put(("a",), "k", {"n": 1}, ttl=10)


def query_entries() -> Any:
    """Every entry."""
    from memfs.model import Query

    return Query(types=frozenset({"entry"}))


# -- files --------------------------------------------------------------------------------------------------------
def test_an_entry_is_a_file_that_every_other_door_finds(opened: Callable[..., Workspace]) -> None:
    """B5: recall finds it by its words, a list by its namespace, and a person reads and corrects it."""
    workspace = opened()
    store = MemfsStore(workspace=workspace, agent="planner")
    store.put(("users", "ada"), "city", {"text": "Ada lives in Lisbon", "since": 2019})
    hit = workspace.recaller.search("where does Ada live").hits[0].item
    assert (hit.type, hit.title, hit.trust, hit.origin.agent) == ("entry", "users/ada/city", "agent", "planner")
    assert hit.tags == ("users", "users/ada")
    assert hit.content == "text: Ada lives in Lisbon\nsince: 2019"
    file = workspace.root / hit.path
    file.write_text(file.read_text().replace("Lisbon", "Porto"))
    assert value(store, "city", ("users", "ada")) == {"text": "Ada lives in Porto", "since": 2019}
    workspace.store.put(hit.replace(content="x", data={"namespace": ["other"], "key": "city", "value": {}}))
    assert store.search(()) == []


def test_an_invalid_file_is_reported_and_can_be_replaced(opened: Callable[..., Workspace]) -> None:
    """S5: a person's broken edit is named when it is read; a put replaces it, and listing goes on."""
    workspace = opened()
    store = MemfsStore(workspace=workspace)
    store.put(("a",), "k", {"n": 1})
    file = next((workspace.root / "ContextMemory/memories/entry").rglob("*.yaml"))
    file.write_text("title: [unclosed\n")
    with pytest.raises(ContentError):
        store.get(("a",), "k")
    assert store.list_namespaces() in ([], [("a",)])
    store.put(("a",), "k", {"n": 2})
    assert value(store, "k") == {"n": 2}


def test_secrets_are_refused(store: MemfsStore, tmp_path: Path) -> None:
    """S1: a value that holds a key is refused by the rule's name and the field, and is on no disk."""
    key = "AKIA" + "Q7RXW2BZ4LMN5TVK"
    with pytest.raises(SecretDetected) as refused:
        store.put(("a",), "k", {"nested": {"note": key}}, index=False)
    assert key not in str(refused.value)
    assert not any(key.encode() in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    with MemfsStore(workspace=store._facade.workspace, allow_secret="a test key") as allowing:
        allowing.put(("a",), "k", {"note": key})
        allowing.batch([PutOp(("a",), name, {"note": key}) for name in ("k", "j")])
    assert value(store, "j") == {"note": key}


@pytest.mark.parametrize(
    "bad", [{"": 1}, {"n": float("nan")}, {"n": 2**64}, {"n": {1: 2}}, {"n": b"x"}, {"n": "a\0b"}, {"n": "a\u202eb"}]
)
def test_values_that_no_file_can_hold_are_refused(bad: Any, store: MemfsStore) -> None:
    """B5: never kept as something else; the error names the field."""
    with pytest.raises(ContentError):
        store.put(("a",), "k", bad)
    assert store.get(("a",), "k") is None


def test_odd_names_are_apart_and_come_back(store: MemfsStore) -> None:
    """B5: labels and keys of any length and letters are distinguished, whatever a file system makes of them."""
    odd = [("A",), ("a",), ("a/b",), ("a", "b"), ("a%2Fb",), ("x" * 500,), ("x" * 499,), ("ü" * 90, "y" * 90), ("..",)]
    places = [
        (namespace, key) for namespace in odd if "." not in namespace[0] for key in ("k", "K", "k\nj", "", "../k")
    ]
    for number, (namespace, key) in enumerate(places):
        store.put(namespace, key, {"n": number})
    assert [value(store, key, namespace) for namespace, key in places] == [{"n": n} for n in range(len(places))]
    assert len(store.search(("a",), limit=100)) == 10
    assert [one.value["n"] for one in store.search(("x" * 500,))] == [
        n for n, (namespace, _) in enumerate(places) if namespace == ("x" * 500,)
    ]


# -- processes ----------------------------------------------------------------------------------------------------
WRITER = """
import os, signal, sys
from langgraph.store.base import PutOp
from memfs.doors.langgraph import MemfsStore
folder, me = sys.argv[1:3]
store = MemfsStore(folder)
for number in range(10):
    store.put(("shared",), "last", {"by": me, "n": number})
    store.batch([PutOp(("own", me), f"{number}-{part}", {"n": number}) for part in "ab"])
print("stored", flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_two_processes_that_are_killed_lose_nothing(tmp_path: Path, forked_python: Path) -> None:
    """Faults: two writers at once, each killed right after its last answer; all is there, and the later put wins."""
    MemfsStore(tmp_path).close()
    running = [
        subprocess.Popen([str(forked_python), "-c", WRITER, str(tmp_path), me], stdout=subprocess.PIPE, text=True)
        for me in ("one", "two")
    ]
    results = [(process.communicate(timeout=60)[0], process.returncode) for process in running]
    assert results == [("stored\n", -signal.SIGKILL)] * 2
    with MemfsStore(tmp_path) as store:
        assert store.list_namespaces() == [("own", "one"), ("own", "two"), ("shared",)]
        for me in ("one", "two"):
            assert [one.value["n"] for one in store.search(("own", me), limit=50)] == [
                n for n in range(10) for _ in "ab"
            ]
        assert value(store, "last", ("shared",))["n"] == 9


@pytest.mark.parametrize("there", [False, True])
def test_what_comes_between_is_replaced_and_not_forgotten(there: bool, opened: Callable[..., Workspace]) -> None:
    """B5: another process stores the same key at that moment: the later value wins, when it was made and a tag of
    a person's stay."""
    workspace = opened()
    store, put = MemfsStore(workspace=workspace), workspace.store.put
    if there:
        store.put(("a",), "k", {"n": 0})
    made: list[datetime] = []

    def interrupted(item: MemoryItem, *given: Any, **more: Any) -> MemoryItem:
        if not made:
            made.append(datetime(2020, 1, 1, tzinfo=UTC))
            other = workspace.store.get(item.id)
            put((other or item).replace(created=made[0], timestamp=made[0], tags=("a", "mine")))
        return put(item, *given, **more)

    workspace.store.put = interrupted  # type: ignore[method-assign]
    store.put(("a",), "k", {"n": 2})
    found = store.search(("a",))[0]
    assert (found.value, found.created_at) == ({"n": 2}, made[0])
    item = workspace.store.select(query_entries())[0]
    assert item.tags == ("a", "mine")


def test_the_async_calls_do_the_same(store: MemfsStore) -> None:
    """B5: tasks may write at once; every call has its awaited form."""

    async def run() -> None:
        await asyncio.gather(*(store.aput(("a", str(n)), "k", {"n": n}) for n in range(5)))
        assert sorted(one.value["n"] for one in await store.asearch(("a",))) == [0, 1, 2, 3, 4]
        await store.adelete(("a", "0"), "k")
        assert await store.aget(("a", "0"), "k") is None
        assert await store.alist_namespaces(prefix=("a",), suffix=("*",), max_depth=1) == [("a",)]
        found = await store.abatch([GetOp(("a", "1"), "k"), SearchOp(("a",), {"n": 2})])
        assert isinstance(found[0], Item)
        assert isinstance(found[1][0], SearchItem)  # type: ignore[index]

    asyncio.run(run())


def test_a_graph_uses_it(store: MemfsStore) -> None:
    """B5: a compiled graph hands it to its nodes."""
    from langgraph.graph import END, START, StateGraph
    from langgraph.runtime import Runtime

    def node(state: dict[str, Any], runtime: Runtime[None]) -> dict[str, Any]:
        assert runtime.store is not None
        runtime.store.put(("seen",), state["word"], {"word": state["word"]})
        return {"word": f"{len(runtime.store.search(('seen',)))}"}

    builder = StateGraph(dict)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    builder.add_edge("node", END)
    graph = builder.compile(store=store)
    assert graph.invoke({"word": "hello"}) == {"word": "1"}
    assert value(store, "hello", ("seen",)) == {"word": "hello"}


def test_a_name_with_dots_is_a_path_unless_a_key_is_called_so(store: MemfsStore) -> None:
    """B5: as LangGraph's stores in databases have it."""
    store.put(("a",), "inside", {"user": {"access-level": "reader"}})
    store.put(("a",), "called", {"user.access-level": "owner", "user": {"access-level": "reader"}})
    assert [one.key for one in store.search(("a",), filter={"user.access-level": "reader"})] == ["inside"]
    assert [one.key for one in store.search(("a",), filter={"user.access-level": "owner"})] == ["called"]


def test_it_opens_and_closes_in_an_event_loop(tmp_path: Path) -> None:
    """B5: ``async with``, as programs have it that were written for LangGraph's stores in databases."""

    async def run() -> Item | None:
        async with MemfsStore(tmp_path / "w") as made:
            await made.aput(("a",), "k", {"n": 1})
            return await made.aget(("a",), "k")

    found = asyncio.run(run())
    assert found is not None
    assert found.value == {"n": 1}


def test_a_value_that_a_merge_left_open_says_so(opened: Callable[..., Workspace]) -> None:
    """An undecided entry carries the other value under a key of its own, which is never stored with it (B3)."""
    workspace = opened()
    with MemfsStore(workspace=workspace) as store:
        store.put(("users",), "ada", {"port": 8080})
        (item,) = workspace.store.select(Query())
        conflict = RecordedConflict(field="data.value.port", kept=8080, lost=9090, by="bo")
        workspace.store.put(item.replace(conflicts=(conflict,)))
        remark = 'data.value.port is undecided: a merge left another value, "9090" by bo'
        found = store.get(("users",), "ada")
        assert found is not None
        assert found.value == {"port": 8080, UNDECIDED: remark}
        assert store.search(("users",), filter={"port": 8080})[0].value[UNDECIDED] == remark
        store.put(("users",), "ada", {**found.value, "port": 7070})
        decided = store.get(("users",), "ada")
        assert decided is not None
        assert decided.value == {"port": 7070}

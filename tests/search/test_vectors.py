"""Vectors are kept in a file that may be deleted, and the nearest are found in memory."""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterator, Mapping
from math import sqrt
from pathlib import Path

import pytest

from memfs.catalog.database import FILE
from memfs.errors import ItemNotFound, MemfsError, QueryInvalid
from memfs.search import vectors
from memfs.search.vectors import VectorStore, VectorTable


@pytest.fixture(params=["numpy", "plain"], autouse=True)
def arithmetic(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With NumPy and without."""
    if request.param == "plain":
        monkeypatch.setattr(vectors, "_numpy", lambda: None)
    else:
        pytest.importorskip("numpy")


@pytest.fixture
def store() -> VectorStore:
    return VectorStore()


@pytest.fixture
def table(tmp_path: Path) -> Iterator[VectorTable]:
    made = VectorTable(tmp_path, "m")
    yield made
    made.close()


def near(store: VectorStore, asked: list[float], limit: int = 10, threshold: float = 0.7) -> list[tuple[str, float]]:
    return [(found.id, round(found.similarity, 4)) for found in store.search(asked, limit, threshold)]


def test_the_nearest_are_found(store: VectorStore) -> None:
    """By cosine, whatever the length; from 0.7 on unless asked otherwise; ties by id (M5)."""
    assert store.search([1, 0], 5) == []
    for key, vector in {"b": [2.0, 0.0], "a": [5.0, 0.0], "c": [3.0, 4.0], "d": [0.0, 1.0], "z": [0.0, 0.0]}.items():
        store.store(key, vector)
    assert [found.id for found in store.search([0.1, 0.0], 10)] == ["a", "b"]
    assert near(store, [1, 0], limit=1) == [("a", 1.0)]
    assert near(store, [1, 0], threshold=0.5) == [("a", 1.0), ("b", 1.0), ("c", 0.6)]
    assert store.similarities([0, 1], ["c", "d", "nobody"]) == pytest.approx({"c": 0.8, "d": 1.0})


def test_the_words_of_the_seed(store: VectorStore) -> None:
    """store, search, get, update, delete, count, get_all (M5)."""
    store.store("one", [0.1, 0.2])
    store.store("two", [0.11, 0.2])
    assert store.get("one") == pytest.approx([0.1, 0.2])
    assert store.count() == 2
    store.update("one", [0.5, 0.5])
    assert {key: pytest.approx(value) for key, value in store.get_all().items()} == {
        "one": [0.5, 0.5],
        "two": [0.11, 0.2],
    }
    assert store.delete("one") is True
    assert store.delete("one") is False
    assert store.get("one") is None
    assert (store.count(), list(store.get_all())) == (1, ["two"])
    with pytest.raises(ItemNotFound):
        store.update("one", [1.0, 0.0])


@pytest.mark.parametrize("vector", [[3e38, 3e38, 1.0], [1e20, 1e20, 1e20], [1e-30, 1e-30, 0.0], [0.0, 0.0, 0.0]])
def test_large_and_small_numbers_come_back(store: VectorStore, vector: list[float]) -> None:
    """Their squares do not fit single precision (M5)."""
    store.store("a", vector)
    assert store.get("a") == pytest.approx(vector, rel=1e-6, abs=0.0)
    assert [value for _, value in near(store, vector)] == ([1.0] if any(vector) else [])


def test_a_vector_that_does_not_fit_is_refused(store: VectorStore) -> None:
    """One of another length or without numbers changes nothing (M5)."""
    store.store("a", [1.0, 0.0])
    for wrong in ([1.0], [1.0, 0.0, 0.0], [], [float("nan"), 1.0]):
        with pytest.raises(QueryInvalid):
            store.store("b", wrong)
        with pytest.raises(QueryInvalid):
            store.search(wrong, 1)
        with pytest.raises(QueryInvalid):
            store.similarities(wrong, ["a"])
    assert store.count() == 1
    store.delete("a")
    store.store("b", [1.0, 0.0, 0.0])
    assert near(store, [1, 0, 0]) == [("b", 1.0)]


def test_it_finds_what_looking_at_every_vector_finds(store: VectorStore) -> None:
    """Through additions, changes and removals in any order (M5)."""
    rng = random.Random(4)
    known: dict[str, list[float]] = {}
    for step in range(300):
        key = f"k{rng.randrange(180)}"
        if rng.random() < 0.3:
            assert store.delete(key) == (known.pop(key, None) is not None)
        else:
            known[key] = [rng.gauss(0, 1) for _ in range(8)]
            store.store(key, known[key])
        if step % 60 == 59:
            asked = [rng.gauss(0, 1) for _ in range(8)]
            expected = sorted(
                (-sum(a * b for a, b in zip(asked, one, strict=True)) / size(asked) / size(one), key)
                for key, one in known.items()
            )
            found = near(store, asked, 20, 0.0)
            assert found == [(key, pytest.approx(-less, abs=1e-3)) for less, key in expected if less <= 0][:20]
    assert store.count() == len(known)


def brief_store(vectors: Mapping[str, list[float]]) -> VectorStore:
    made = VectorStore(brief=True)
    made.take({key: array("f", vector).tobytes() for key, vector in vectors.items()})
    return made


def test_a_brief_store_finds_nearly_what_the_other_finds(store: VectorStore) -> None:
    """Among so many that most are passed over by their signs, after changes and removals, and but for some."""
    rng = random.Random(7)
    middles = [[rng.gauss(0, 1) for _ in range(64)] for _ in range(40)]
    known = {f"k{place}": [m + rng.gauss(0, 1) for m in middles[place % 40]] for place in range(1_500)}
    brief = brief_store(known)
    for place in range(0, 1_500, 50):
        brief.delete(f"k{place}")
        del known[f"k{place}"]
        brief.store(f"k{place + 1}", known.setdefault(f"k{place + 1}", middles[0]))
    store.take({key: array("f", vector).tobytes() for key, vector in known.items()})
    shared, but = 0, {f"k{place}" for place in range(0, 1_500, 3)}
    for middle in middles[:10]:
        exact = {one.id: one.similarity for one in store.search(middle, 20, 0.0, but)}
        rough = brief.search(middle, 20, 0.0, but)
        assert not but & {one.id for one in rough}
        shared += sum(one.id in exact for one in rough)
        assert brief.similarities(middle, list(exact)) == pytest.approx(exact, abs=0.01)
    assert shared >= 190
    assert brief.count() == store.count() == len(known)


@pytest.mark.parametrize("brief", [False, True], ids=["", "brief"])
def test_what_all_vectors_have_in_common_does_not_count(store: VectorStore, brief: bool) -> None:
    """Less their mean, what is near is separated from what is far; what is like the best is a little nearer."""
    known = {"a": [9.0, 1, 0, 0], "b": [9.0, 0, 1, 0], "c": [9.0, 0, -1, 0], "d": [9.0, -1, 0, 0]}
    store = brief_store(known) if brief else store
    store.take({key: array("f", vector).tobytes() for key, vector in known.items()})
    assert min(store.similarities([9.0, 1, 0, 0], list(known)).values()) > 0.95
    found = store.contrasts([9.0, 1, 0, 0], dict.fromkeys((*known, "nobody"), 1.0))
    assert found == pytest.approx({"a": 1.0, "b": 0.0, "c": 0.0, "d": -1.0}, abs=0.05)
    found = store.contrasts([9.0, 1, 0, 0], {"a": 0.0, "b": 2.0, "c": 0.0, "d": 0.0})
    assert found == pytest.approx({"a": 1.0, "b": 0.3, "c": -0.3, "d": -1.0}, abs=0.05)
    assert store.contrasts([9.0, 1, 0, 0], {"nobody": 1.0}) == {}


def test_vectors_in_one_piece_are_those_that_were_packed() -> None:
    """But for the ids that had none; what has another length is not taken."""
    known = {"a": [1.0, 0.5, -0.25, 0.0], "b": [0.0, 0.0, 0.0, 0.0], "c": [0.0, 1.0, 1.0, -1.0]}
    packed = brief_store(known).pack(["c", "", "b", "a"])
    fresh = VectorStore(brief=True)
    assert fresh.unpack(["c", "new"], packed) == []
    assert fresh.unpack(["c", "c", "b", "a"], packed) == []
    assert sorted(fresh.unpack(["c", "new", "b", "a"], packed)) == ["a", "b", "c"]
    assert fresh.get("b") == known["b"]
    assert near(fresh, known["a"], 1, 0.5) == [("a", pytest.approx(1.0, abs=0.01))]
    assert VectorStore(brief=True).unpack([], b"") == []


def size(vector: list[float]) -> float:
    return sqrt(sum(value * value for value in vector))


def test_vectors_are_kept_by_content_and_by_text(table: VectorTable, tmp_path: Path) -> None:
    """For anyone who opens the file, and for another content with the same text; each model has its own (M5)."""
    table.keep([("blob 1", "text 1", b"1234"), ("blob 2", "text 2", b"5678")])
    other = VectorTable(tmp_path, "m")
    assert other.found(["blob 1", "blob 3"]) == {"blob 1": b"1234"}
    assert other.found(["text 2"], of="text") == {"text 2": b"5678"}
    table.keep([("blob 1", "text 1", b"abcd")])
    assert other.found(["blob 1"]) == {"blob 1": b"abcd"}
    other.close()
    assert VectorTable(tmp_path, "another").found(["blob 1"]) == {}
    assert VectorTable(None, "m").found(["blob 1"]) == {}


def test_what_is_needed_no_more_goes_where_it_is_much(table: VectorTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors of contents that are gone, and of another model (M5)."""
    table.keep([("a", "1", b"1234"), ("b", "2", b"5678"), ("c", "3", b"9012")])
    table.sweep(["a"])
    assert len(table.found("abc")) == 3
    monkeypatch.setattr(vectors, "_SPARE", 0)
    table.sweep(["a"])
    assert table.found("abc") == {"a": b"1234"}


def test_a_damaged_file_is_started_over(table: VectorTable, tmp_path: Path) -> None:
    """It is a cache: nothing fails but the vectors are gone (M5)."""
    table.keep([("a", "1", b"1234")])
    table.close()
    (tmp_path / FILE).write_bytes(b"no database" * 1000)
    assert table.found("a") == {}
    table.keep([("b", "1", b"1234")])
    assert table.found("b") == {"b": b"1234"}


def test_where_the_disk_takes_no_file_none_is_kept(tmp_path: Path) -> None:
    """It is an error, as making vectors again costs time or money; with room they are kept (M5)."""
    folder = tmp_path / "cache"
    folder.write_text("no folder")
    refused = VectorTable(folder, "m")
    assert refused.found("a") == {}
    for _ in range(2):
        with pytest.raises(MemfsError, match="cache"):
            refused.keep([("a", "1", b"1234")])
    folder.unlink()
    refused.keep([("a", "1", b"1234")])
    assert VectorTable(folder, "m").found("a") == {"a": b"1234"}
    refused.close()


def test_a_row_that_makes_no_sense_is_left_out(store: VectorStore) -> None:
    """A vector of another length cannot be kept beside the others (M5)."""
    store.take({"a": store.packed([1.0, 0.0]), "b": b"\0\0\x80\x3f\1"})
    assert near(store, [1, 0], threshold=-1) == [("a", 1.0)]

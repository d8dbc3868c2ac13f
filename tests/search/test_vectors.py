"""VectorStore: nearest vectors, kept in a file that may be deleted."""

from __future__ import annotations

import os
import random
import sqlite3
import time
from collections.abc import Iterator
from math import sqrt
from pathlib import Path

import pytest

from memfs.errors import ItemNotFound, QueryInvalid, StorageIO
from memfs.fs import io
from memfs.search import vectors
from memfs.search.vectors import Near, VectorRow, VectorStore


@pytest.fixture(params=["numpy", "plain"], autouse=True)
def arithmetic(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With NumPy and without."""
    if request.param == "plain":
        monkeypatch.setattr(vectors, "_numpy", lambda: None)
    else:
        pytest.importorskip("numpy")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "vectors.sqlite"


@pytest.fixture
def store(path: Path) -> Iterator[VectorStore]:
    made = VectorStore(path, "m")
    yield made
    made.close()


def near(store: VectorStore, asked: list[float], limit: int = 10, threshold: float = 0.7) -> list[tuple[str, float]]:
    return [(found.id, round(found.similarity, 4)) for found in store.search(asked, limit, threshold)]


def test_the_nearest_are_found(store: VectorStore) -> None:
    """By cosine, whatever the length; from 0.7 on unless told otherwise; ties by id (M5)."""
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
    chance = random.Random(4)
    known: dict[str, list[float]] = {}
    for step in range(300):
        key = f"k{chance.randrange(180)}"
        if chance.random() < 0.3:
            assert store.delete(key) == (known.pop(key, None) is not None)
        else:
            known[key] = [chance.gauss(0, 1) for _ in range(8)]
            store.store_all([VectorRow(key, known[key])])
        if step % 60 == 59:
            asked = [chance.gauss(0, 1) for _ in range(8)]
            expected = sorted(
                (-sum(a * b for a, b in zip(asked, one, strict=True)) / size(asked) / size(one), key)
                for key, one in known.items()
            )
            found = near(store, asked, 20, 0.0)
            assert found == [(key, pytest.approx(-less, abs=1e-3)) for less, key in expected if less <= 0][:20]
    assert store.count() == len(known)


def size(vector: list[float]) -> float:
    return sqrt(sum(value * value for value in vector))


def test_another_process_finds_them(store: VectorStore, path: Path) -> None:
    """What one stores, changes and forgets, the other knows with its next search (M5)."""
    other = VectorStore(path, "m")
    assert other.count() == 0
    store.store_all([VectorRow("a", [1.0, 0.0]), VectorRow("b", [0.0, 1.0])])
    assert near(other, [1, 0]) == [("a", 1.0)]
    other.store("a", [0.0, 1.0])
    other.store("c", [1.0, 0.0])
    store.delete("b")
    assert near(store, [1, 0]) == [("c", 1.0)]
    assert near(other, [0, 1]) == [("a", 1.0)]
    assert store.count() == other.count() == 2
    other.close()


def test_they_are_there_again_after_closing(store: VectorStore, path: Path) -> None:
    """The file keeps them, with their marks (M5)."""
    store.store_all([VectorRow("a", [1.0, 0.0], "blob", b"text")])
    store.close()
    again = VectorStore(path, "m")
    assert (near(again, [1, 0]), again.marks()) == ([("a", 1.0)], {"a": "blob"})
    again.close()
    assert near(store, [1, 0]) == [("a", 1.0)]


def test_a_text_that_comes_back_is_not_embedded_again(store: VectorStore) -> None:
    """Vectors are kept by the digest of their text, also when nobody has it at present (M5)."""
    store.store_all([VectorRow("a", [1.0, 0.0], "blob 1", b"text")])
    store.forget(["a"])
    assert store.adopt([("b", "blob 2", b"text"), ("c", "blob 3", b"other")]) == {"b"}
    assert near(store, [1, 0]) == [("b", 1.0)]
    assert store.marks() == {"b": "blob 2"}


def test_vectors_of_another_model_are_not_mixed_in(store: VectorStore, path: Path) -> None:
    """A file made for one model is begun anew for another (M5)."""
    store.store("a", [1.0, 0.0])
    store.close()
    other = VectorStore(path, "another")
    assert other.count() == 0
    other.store("b", [1.0, 0.0, 0.0])
    assert other.count() == 1
    other.close()


def test_a_damaged_file_is_begun_anew(store: VectorStore, path: Path) -> None:
    """It is a cache: nothing fails but the vectors are gone (M5)."""
    store.store("a", [1.0, 0.0])
    store.close()
    path.write_bytes(b"no database" * 1000)
    assert store.search([1, 0], 5) == []
    store.store("b", [1.0, 0.0])
    assert near(store, [1, 0]) == [("b", 1.0)]


def test_a_row_that_makes_no_sense_is_left_out(store: VectorStore, path: Path) -> None:
    """A vector of another length cannot stand beside the others (M5)."""
    store.store_all([VectorRow("a", [1.0, 0.0]), VectorRow("b", [0.0, 1.0])])
    store.close()
    with sqlite3.connect(path) as base:
        base.execute("UPDATE vector SET numbers = x'0000803f01' WHERE number = 2")
    base.close()
    assert near(store, [1, 0], threshold=-1) == [("a", 1.0)]


def test_a_full_disk_is_told_and_nothing_is_kept(store: VectorStore) -> None:
    """All of several vectors, or none (M5)."""
    store.store("a", [1.0, 0.0])

    def full(name: str, _: str) -> None:
        if name == "cache":
            raise OSError(28, "No space left on device")

    before = io.set_hook(full)
    try:
        with pytest.raises(StorageIO):
            store.store_all([VectorRow("b", [1.0, 0.0]), VectorRow("c", [1.0, 0.0])])
    finally:
        io.set_hook(before)
    assert near(store, [1, 0]) == [("a", 1.0)]
    assert list(store.get_all()) == ["a"]


def test_without_a_file_they_are_kept_in_memory() -> None:
    """For one who brings vectors of his own (M5)."""
    store = VectorStore()
    store.store("a", [0.0, 2.0])
    assert store.search([0, 1], 1) == [Near("a", 1.0)]
    assert store.get("a") == [0.0, 2.0]
    store.close()
    assert store.count() == 1


def test_other_models_vectors_go_when_nobody_used_them_for_a_month(store: VectorStore, path: Path) -> None:
    """Changing the model back soon costs nothing, and none stays for ever (M5)."""
    path.parent.mkdir(parents=True)
    young, old = path.with_name("young.sqlite"), path.with_name("old.sqlite")
    for other in (young, old):
        other.write_bytes(b"")
    month_ago = time.time() - 40 * 86_400
    os.utime(old, (month_ago, month_ago))
    store.store("a", [1.0])
    assert (young.exists(), old.exists(), path.exists()) == (True, False, True)

"""SearchIndex: base, overlay and stamps in step."""

from __future__ import annotations

import contextlib
import gc
import os
import random
import shutil
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kit.corpus import FILTERS, NOW, WORDS, brute_force, corpus, item, pairs, stamp_of
from kit.faults import DISK_FULL, Fault, injected
from memfs.errors import IndexUnavailable, LockTimeout, SettingInvalid, StorageFull, StorageIO
from memfs.model import MemoryItem, Query
from memfs.model.ids import stem_of
from memfs.search import search_index, terms
from memfs.search.engine import MemoryIndex
from memfs.search.generations import LOCK, Generation, Generations
from memfs.search.search_index import SearchIndex
from memfs.search.terms import TermStatistics

Opened = Callable[[], SearchIndex]


def ids(index: SearchIndex, text: str = "", limit: int = 1000) -> list[str]:
    """The ids a search gives."""
    return [hit.id for hit in index.search(Query(text=text, limit=limit))]


def looked(index: SearchIndex) -> None:
    """Say that all files were looked at."""
    index.make_good(index.lost)


def reloaded(index: SearchIndex) -> bool:
    """Take up what another process made, and look at all files; whether there was anything."""
    taken = index.reload()
    looked(index)
    return taken


STORED = ["whoosh", "sqlite"]
"""The engines that keep files, and so have a base."""


@pytest.fixture(params=["memory", *STORED])
def engine(request: pytest.FixtureRequest) -> str:
    """Every engine."""
    return str(request.param)


def test_a_new_index_is_empty(opened: Opened) -> None:
    """Nothing there: no stamps, no hits, generation 0, and no folder made by asking."""
    index = opened()
    assert (dict(index.base_stamps()), dict(index.stamps()), index.generation) == ({}, {}, 0)
    assert (ids(index), ids(index, "pool"), index.item("one"), index.overlay_size()) == ([], [], None, 0)


def test_an_unknown_engine_is_refused_by_name(folder: Path) -> None:
    """The error names the setting and the nearest engine."""
    with pytest.raises(SettingInvalid, match=r"index\.engine.*'wosh'.*did you mean 'whoosh'"):
        SearchIndex(folder, "wosh")


def test_updates_are_found_at_once_and_stamped(opened: Opened) -> None:
    """An update needs no fold to be found, and its stamp is seen at once (K5)."""
    index = opened()
    one = item("one", "alpha")
    index.update(pairs(one))
    assert (ids(index, "alpha"), index.item("one"), index.overlay_size()) == (["one"], one, 1)
    assert dict(index.stamps()) == {one.path: stamp_of(one)} == index.overlay_stamps()
    assert one.path in index.stamps()
    assert dict(index.base_stamps()) == {}


@pytest.mark.parametrize("engine", STORED)
def test_a_fold_moves_the_overlay_into_the_base(opened: Opened) -> None:
    """After a fold the overlay is empty, the same is found, and the stamps belong to the base."""
    index = opened()
    index.update(pairs(*corpus(50)))
    before = [index.search(Query(text=word, limit=50)) for word in WORDS]
    stamps = dict(index.stamps())
    assert index.fold()
    assert (index.overlay_size(), index.generation) == (0, 1)
    assert dict(index.base_stamps()) == dict(index.stamps()) == stamps
    after = [index.search(Query(text=word, limit=50)) for word in WORDS]
    assert [[hit.id for hit in hits] for hits in after] == [[hit.id for hit in hits] for hits in before]
    assert index.count(Query()) == 50


@pytest.mark.parametrize("engine", STORED)
def test_what_goes_and_comes_back_counts_once(opened: Opened) -> None:
    """A checkout and back, or an edit taken back, leave every score as it was; a twin added later still counts."""
    index = opened()
    items = corpus(20)
    index.update(pairs(*items))
    index.fold()
    before = [index.search(Query(text=word, limit=50)) for word in WORDS]
    index.update((), [one.path for one in items[:7]])
    assert len(ids(index)) == 13
    index.update(pairs(items[9].replace(content="something else")))
    index.update(pairs(*items[:7], items[9]))
    assert [index.search(Query(text=word, limit=50)) for word in WORDS] == before
    twin = items[0].replace(content="alpha", path=f"ContextMemory/memories/semantic/elsewhere/{items[0].id}.yaml")
    index.update(pairs(twin), [items[0].path])
    index.update((), [twin.path])
    index.update(pairs(items[0]))
    assert [index.search(Query(text=word, limit=50)) for word in WORDS] == before


@pytest.mark.parametrize("folded", [41, 86])
def test_scores_are_the_same_to_the_last_digit_wherever_an_item_is(opened: Opened, folded: int) -> None:
    """Whatever the engine, and whether base or overlay holds an item, its score is what the formula gives for all."""
    long = [item(f"long-{number}", " ".join(WORDS * number), title=WORDS[0]) for number in (3, 20, 300)]
    items = [*corpus(83), *long]
    whole = MemoryIndex()
    whole.add(items)
    index = opened()
    index.update(pairs(*items[:folded]))
    index.fold()
    index.update(pairs(*items[folded:]))
    for word, other in pairwise(WORDS[:6]):
        query = Query(text=f"{word} {other}", limit=1000)
        found = [(hit.id, hit.similarity) for hit in index.search(query)]
        assert found == [(hit.id, hit.similarity) for hit in whole.search(query)]


def test_the_mean_length_of_several_collections_is_that_of_all() -> None:
    """Means are joined without a last digit of their own, so that no score depends on where items are."""
    counted = [(items, length) for items in range(1, 40) for length in range(items, 200, 7)]
    for (few, short), (many, long) in pairwise(counted):
        parts = [
            TermStatistics(passages=n, average_length=m / n, frequencies={}) for n, m in ((few, short), (many, long))
        ]
        assert terms.combine(parts, ()).average_length == (short + long) / (few + many)


@pytest.mark.parametrize("engine", STORED)
def test_folding_nothing_makes_no_generation(opened: Opened) -> None:
    """A fold with an empty overlay changes nothing."""
    index = opened()
    index.update(pairs(item("one", "alpha")))
    index.fold()
    assert index.fold()
    assert index.generation == 1


def test_base_items_that_changed_or_went_are_hidden(opened: Opened) -> None:
    """A query never returns what the files no longer say."""
    index = opened()
    index.update(pairs(item("one", "alpha"), item("two", "alpha"), item("three", "alpha")))
    index.fold()
    index.update(pairs(item("one", "beta")), [item("two", "alpha").path])
    for _ in range(2):
        assert ids(index, "alpha") == ["three"]
        assert ids(index, "beta") == ["one"]
        assert set(ids(index)) == {"one", "three"}
        assert {stem_of(path) for path in index.stamps()} == {"one", "three"}
        assert index.count(Query()) == 2
        index.fold()


def test_a_moved_item_is_found_once_at_its_new_path(opened: Opened) -> None:
    """A move is one update: the old path removed, the new one added; the order of two updates does not matter."""
    old, new = item("one", "alpha"), item("one", "alpha", folder="ContextMemory/memories/semantic/elsewhere")
    for steps in (
        [(pairs(new), [old.path])],
        [(pairs(new), []), ([], [old.path])],
        [([], [old.path]), (pairs(new), [])],
    ):
        index = opened()
        index.rebuild(pairs(old))
        for added, removed in steps:
            index.update(added, removed)
        for _ in range(2):
            assert [hit.path for hit in index.search(Query(text="alpha"))] == [new.path]
            assert list(index.stamps()) == [new.path]
            index.fold()


@pytest.mark.parametrize("engine", STORED)
def test_a_removed_twin_shows_the_base_item_again(opened: Opened) -> None:
    """Of two paths with one id the later hides the earlier; when it goes, the earlier is back."""
    first, twin = item("one", "alpha"), item("one", "beta", folder="ContextMemory/memories/semantic/twin")
    index = opened()
    index.rebuild(pairs(first))
    index.update(pairs(twin))
    assert (ids(index, "alpha"), ids(index, "beta")) == ([], ["one"])
    index.update([], [twin.path])
    assert (ids(index, "alpha"), ids(index, "beta")) == (["one"], [])


def test_removing_what_was_only_fresh_leaves_no_trace(opened: Opened) -> None:
    """An item added and removed between two folds is nowhere."""
    index = opened()
    one = item("one", "alpha")
    index.update(pairs(one))
    index.update([], [one.path, "never/there.yaml"])
    assert (ids(index), dict(index.stamps()), index.overlay_size(), index.item("one")) == ([], {}, 0, None)


@pytest.mark.parametrize("name", ["none", "type and dates", "all of two tags", "folder", "everything at once"])
def test_base_and_overlay_together_find_what_brute_force_finds(opened: Opened, name: str) -> None:
    """Whatever part of a random history is in base and overlay, hits and listings are those of the files."""
    rng = random.Random(9)
    index = opened()
    truth: dict[str, MemoryItem] = {}
    for step in range(8):
        for fresh in rng.sample(corpus(150, step), k=25):
            truth = {path: one for path, one in truth.items() if one.id != fresh.id}
            index.update(pairs(fresh), [entry for entry in index.stamps() if entry.endswith(f"/{fresh.id}.yaml")])
            truth[fresh.path] = fresh
        for path in rng.sample(sorted(truth), k=3):
            del truth[path]
            index.update([], [path])
        if step % 4 == 2:
            assert index.fold()
        text = " ".join(rng.choices(WORDS, k=2))
        query = Query(text=text, limit=1000, **FILTERS[name])  # type: ignore[arg-type]
        assert {hit.id for hit in index.search(query)} == {key for key, _ in brute_force(truth.values(), query)}
        listing = Query(limit=20, **FILTERS[name])  # type: ignore[arg-type]
        assert [hit.id for hit in index.search(listing)] == [key for key, _ in brute_force(truth.values(), listing)][
            :20
        ]
        assert dict(index.stamps()) == {path: stamp_of(one) for path, one in truth.items()}
        assert len(index.stamps()) == len(truth)


def test_fresh_items_are_scored_on_the_scale_of_the_base(folder: Path) -> None:
    """An item scores the same whether it is in the overlay or in the base."""
    for engine in ("memory", "whoosh"):
        items = corpus(120)
        index = SearchIndex(folder / engine, engine)
        index.rebuild(pairs(*items[:60]))
        index.update(pairs(*items[60:]))
        for word in WORDS:
            query = Query(text=f"{word} pool", limit=200)
            found = {hit.id: hit.similarity for hit in index.search(query)}
            assert found == pytest.approx(dict(brute_force(items, query)))
        index.close()


def test_stamps_vouch_without_being_made(opened: Opened) -> None:
    """``matches`` compares size, times and inode for base and overlay, and never for what is unknown or gone."""
    one, two, three = item("one", "alpha"), item("two", "beta"), item("three", "gamma")
    index = opened()
    index.rebuild(pairs(one, two))
    index.update(pairs(three), [two.path])
    stamps = index.stamps()
    facts = (5, NOW - 10**12, NOW - 10**12, 7)
    for path, known in ((one.path, True), (two.path, False), (three.path, True), ("nowhere", False)):
        assert stamps.matches(path, *facts) is known
        for place in range(4):
            assert not stamps.matches(path, *(value + (place == number) for number, value in enumerate(facts)))
    with pytest.raises(KeyError):
        stamps[two.path]


def test_a_view_of_the_stamps_stays_as_it_was(opened: Opened) -> None:
    """What ``stamps()`` gave says what it said, in every way of asking, while items come, change, move and go."""
    rng = random.Random(4)
    index = opened()
    index.rebuild(pairs(*[item(f"item-{number}", "alpha") for number in range(8)]))
    index.update(pairs(item("fresh", "alpha")), [item("item-7").path])
    names = [f"item-{number}" for number in range(10)] + ["fresh"]
    views = []
    for step in range(120):
        view = index.stamps()
        views = [*views[-3:], (view, dict(view.items()))]
        name = rng.choice(names)
        if rng.random() < 0.4:
            index.update([], [item(name).path])
        else:
            index.update(pairs(item(name, "beta"), checked=NOW + step))
        for old, expected in views:
            assert (dict(old.items()), len(old), dict(old.blobs())) == (
                expected,
                len(expected),
                {path: stamp.blob for path, stamp in expected.items()},
            )
            for one in names:
                path = item(one).path
                assert (path in old) is (path in expected)
                facts = expected[path][:4] if path in expected else (5, NOW - 10**12, NOW - 10**12, 7)
                assert old.matches(path, *facts) is (path in expected)
    assert 3 not in index.stamps()


def test_a_file_that_was_looked_at_again_has_its_new_stamp(opened: Opened) -> None:
    """A new stamp for known content shows at once, makes nothing known, and is kept by a fold."""
    index = opened()
    index.rebuild(pairs(item("base", "alpha"), item("gone", "alpha")))
    index.update(pairs(item("fresh", "alpha")), [item("gone").path])
    for name in ("base", "fresh", "gone", "unknown"):
        index.restamp(item(name).path, stamp_of(item(name), NOW + 7))
    view = index.stamps()
    for name in ("base", "fresh"):
        assert view[item(name).path] == stamp_of(item(name), NOW + 7)
    assert set(view) == {item("base").path, item("fresh").path}
    index.fold()
    assert index.stamps()[item("base").path].checked_ns == NOW + 7


@pytest.mark.parametrize("engine", STORED)
def test_rebuild_drops_what_was_there(opened: Opened) -> None:
    """After a rebuild only the given items are found, the overlay's earlier ones included in what is dropped."""
    index = opened()
    index.update(pairs(item("old", "alpha")))
    index.fold()
    index.update(pairs(item("older", "alpha")))
    index.rebuild(iter(pairs(item("new", "alpha"))))
    assert (ids(index, "alpha"), index.overlay_size()) == (["new"], 0)
    assert [stem_of(path) for path in index.stamps()] == ["new"]


def test_threads_update_search_and_fold_at_once(opened: Opened) -> None:
    """Several threads updating, searching and folding lose nothing and see every item they added."""
    index = opened()
    index.rebuild(pairs(*corpus(100)))
    failures: list[BaseException] = []
    done = threading.Event()

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 (reported to the main thread)
            failures.append(error)

    def write(number: int) -> None:
        for step in range(25):
            fresh = item(f"fresh-{number}-{step}", f"unique{number}x{step} alpha")
            index.update(pairs(fresh))
            assert ids(index, f"unique{number}x{step}") == [fresh.id]

    def search() -> None:
        while not done.is_set():
            hits = index.search(Query(text="pool alpha", limit=20))
            assert hits == sorted(hits, key=lambda hit: (-hit.similarity, hit.id))

    def fold() -> None:
        while not done.is_set():
            index.fold()

    writers = [threading.Thread(target=guarded, args=(lambda n=n: write(n),)) for n in range(3)]
    others = [threading.Thread(target=guarded, args=(work,)) for work in (search, fold)]
    for thread in (*writers, *others):
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    for thread in others:
        thread.join()
    assert failures == []
    assert index.fold()
    assert len([key for key in ids(index, "alpha") if key.startswith("fresh-")]) == 75


class TestStored:
    """What only engines that keep files promise."""

    @pytest.fixture(params=["whoosh", "sqlite"])
    def engine(self, request: pytest.FixtureRequest) -> str:
        return str(request.param)

    def test_another_process_finds_what_was_folded(self, opened: Opened) -> None:
        """The base and its stamps are there for anyone who opens next; the overlay is not."""
        first = opened()
        first.update(pairs(*corpus(40)))
        first.fold()
        expected = first.search(Query(text="pool", limit=50))
        first.update(pairs(item("later", "pool")))
        second = opened()
        assert second.search(Query(text="pool", limit=50)) == expected
        assert dict(second.base_stamps()) == dict(first.base_stamps())
        assert second.generation == 1

    def test_updates_during_a_fold_stay(self, opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
        """What is updated while a fold writes is still found after it, and is folded next time."""
        index = opened()
        index.rebuild(pairs(item("base", "alpha")))
        index.update(pairs(item("one", "alpha"), item("two", "alpha")))
        whole = Generations.publish

        def late(*args: Any) -> Generation:
            index.update(pairs(item("one", "beta"), item("three", "alpha")), [item("base").path])
            return whole(*args)

        monkeypatch.setattr(Generations, "publish", late)
        index.fold()
        monkeypatch.undo()
        for _ in range(2):
            assert (ids(index, "alpha"), ids(index, "beta")) == (["three", "two"], ["one"])
            index.fold()

    def test_reload_takes_up_the_other_process_generation(self, opened: Opened) -> None:
        """What both have is dropped from the overlay, what only this one has is kept, in both directions of age."""
        one, two = opened(), opened()
        one.update(pairs(item("old", "alpha"), item("same", "alpha")))
        one.fold()
        assert not reloaded(one)
        two.base_stamps()
        two.update(pairs(item("mine", "alpha"), item("same", "alpha")))
        two.update(pairs(item("both", "gamma"), checked=NOW))
        one.update(pairs(item("theirs", "alpha")))
        one.update(pairs(item("both", "delta"), checked=NOW + 1), [item("old").path])
        one.fold()
        assert reloaded(two)
        assert not reloaded(two)
        assert set(ids(two, "alpha")) == {"mine", "same", "theirs"}
        assert (ids(two, "gamma"), ids(two, "delta")) == ([], ["both"])
        assert set(two.overlay_stamps()) == {item("mine").path}

    @pytest.mark.parametrize("why", ["damaged", "other engine"])
    def test_a_generation_that_cannot_be_trusted_is_refused_once(self, folder: Path, engine: str, why: str) -> None:
        """A pointer to a damaged or foreign generation is no news each time: what was added since stays indexed."""
        other = {"whoosh": "sqlite", "sqlite": "whoosh"}[engine]
        first = SearchIndex(folder, other if why == "other engine" else engine)
        first.rebuild(pairs(item("old", "alpha")))
        first.close()
        if why == "damaged":
            (folder / "gen-1" / "engine" / "columns").write_bytes(b"")
        index = SearchIndex(folder, engine)
        index.update(pairs(item("one", "alpha")))
        view = index.stamps()
        assert not reloaded(index)
        assert not reloaded(index)
        assert index.stamps() is view
        assert ids(index, "alpha") == ["one"]
        second = SearchIndex(folder, engine)
        second.rebuild(pairs(item("two", "alpha")))
        second.close()
        assert reloaded(index)
        assert not reloaded(index)
        assert set(ids(index, "alpha")) == {"one", "two"}
        index.close()

    def test_a_generation_damaged_in_use_is_refused_once(self, opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
        """After the error that says so, the index is empty and stays that way until a newer generation is named."""
        index = opened()
        index.rebuild(pairs(item("one", "alpha")))

        def fail(*_: object) -> None:
            raise IndexUnavailable("damaged")

        monkeypatch.setattr(index._opened(), "search", fail)
        with pytest.raises(IndexUnavailable):
            index.search(Query(text="alpha"))
        assert not reloaded(index)
        assert (dict(index.stamps()), index.generation) == ({}, 0)
        index.rebuild(pairs(item("one", "alpha")))
        assert (ids(index, "alpha"), index.generation) == (["one"], 2)

    def test_a_forked_child_does_not_keep_the_folder_locked(self, opened: Opened) -> None:
        """A child forked during a fold shares the lock's open file; the next fold need not wait for its end."""
        index = opened()
        index.update(pairs(item("one", "alpha")))
        reading, writing = os.pipe()
        with index._generations.lock() as held:
            assert held
            child = os.fork()
            if child == 0:
                os.close(writing)
                os.read(reading, 1)
                os._exit(0)
        assert index.fold()
        os.close(writing)
        os.waitpid(child, 0)
        os.close(reading)

    def test_reload_keeps_a_later_removal(self, opened: Opened) -> None:
        """A path this process saw vanish stays hidden although another process's base still has it."""
        one, two = opened(), opened()
        one.rebuild(pairs(item("one", "alpha"), item("two", "alpha")))
        two.update([], [item("one").path])
        one.update(pairs(item("three", "alpha")))
        one.fold()
        assert reloaded(two)
        assert ids(two, "alpha") == ["three", "two"]

    def test_two_processes_fold_one_after_the_other(self, opened: Opened) -> None:
        """A fold first takes up what others have folded, so that nothing is lost."""
        one, two = opened(), opened()
        one.base_stamps()
        two.base_stamps()
        one.update(pairs(item("one", "alpha")))
        two.update(pairs(item("two", "alpha")))
        assert one.fold()
        assert two.fold()
        with pytest.raises(IndexUnavailable):  # it took up what the other one saw
            ids(two, "alpha")
        looked(two)
        assert ids(two, "alpha") == ["one", "two"] == ids(opened(), "alpha")
        assert reloaded(one)
        assert ids(one, "alpha") == ["one", "two"]

    def test_a_fold_is_refused_while_another_runs(
        self, opened: Opened, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """While another process holds the lock a fold is refused at once, and a rebuild after its wait."""
        import fcntl

        index = opened()
        index.update(pairs(item("one", "alpha")))
        index.fold()
        index.update(pairs(item("two", "alpha")))
        with (folder / LOCK).open("r+") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            assert not index.fold()
            monkeypatch.setattr(search_index, "_REBUILD_WAIT", 0.05)
            with pytest.raises(LockTimeout, match="folding"):
                index.rebuild(pairs(item("three", "alpha")))
        assert ids(index, "alpha") == ["one", "two"]
        assert index.fold()

    def test_a_reader_two_generations_behind_goes_on(self, opened: Opened) -> None:
        """A process whose generation is gone takes up the newest, and knows that files may have changed since."""
        behind, writer = opened(), opened()
        writer.rebuild(pairs(item("one", "alpha")))
        behind.base_stamps()
        for name in ("two", "three", "four"):
            writer.update(pairs(item(name, "alpha")))
            writer.fold()
        with pytest.raises(IndexUnavailable):
            ids(behind, "alpha")
        looked(behind)
        assert set(ids(behind, "alpha")) == {"one", "two", "three", "four"}

    def test_a_generation_with_another_content_is_not_believed(self, opened: Opened) -> None:
        """A file that changed back is not what a generation says that was made in between: it is reported."""
        behind, writer = opened(), opened()
        writer.rebuild(pairs(item("one", "alpha")))
        behind.base_stamps()
        for text in ("gamma", "delta", "gamma"):
            writer.update(pairs(item("one", text)))
            writer.fold()
        with pytest.raises(IndexUnavailable):
            ids(behind, "alpha")

    def test_an_open_reader_survives_the_removal_of_its_generation(self, opened: Opened) -> None:
        """A process that has searched goes on answering from its generation until it reloads."""
        behind, writer = opened(), opened()
        writer.rebuild(pairs(*corpus(30)))
        expected = ids(behind, "pool")
        for name in ("two", "three", "four"):
            writer.update(pairs(item(name, "pool")))
            writer.fold()
        assert ids(behind, "pool") == expected
        assert reloaded(behind)
        assert {"two", "three", "four"} <= set(ids(behind, "pool"))

    def test_damage_while_open_is_reported_and_then_repaired(self, opened: Opened, folder: Path) -> None:
        """Files that change under an open engine make a clear error; then the base is empty and can be refilled."""
        index = opened()
        index.rebuild(pairs(*corpus(30)))
        index.base_stamps()
        index.close()
        index.base_stamps()
        for path in (folder / "gen-1" / "engine").iterdir():
            path.write_bytes(b"")
        with pytest.raises(IndexUnavailable, match="rebuilt"):
            index.search(Query(text="pool"))
        assert dict(index.base_stamps()) == {}
        index.update(pairs(*corpus(30)))
        looked(index)
        assert index.fold()
        assert ids(index, "pool") == ids(opened(), "pool") != []

    def test_a_full_disk_leaves_the_old_generation(self, opened: Opened, scale: Callable[[int, int], int]) -> None:
        """Each disk operation of a fold that fails for lack of room leaves everything findable, now and later."""
        index = opened()
        index.rebuild(pairs(item("one", "alpha")))
        at, step = 0, scale(2, 1)
        while True:
            at += step
            index.update(pairs(item(f"more-{at}", "alpha")))
            expected = sorted(["one", *(f"more-{number}" for number in range(step, at + 1, step))])
            with injected(Fault(at=at, error=DISK_FULL)) as fault, contextlib.suppress(StorageFull):
                index.fold()
            assert sorted(ids(index, "alpha")) == expected
            if len(fault.seen) < at:
                break
        assert at > 15
        assert index.fold()
        assert sorted(ids(opened(), "alpha")) == expected

    # Whoosh leaves files open where its writer fails; they are closed when it is collected.
    @pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
    def test_rows_21_28_a_cache_removed_in_use_never_makes_a_wrong_answer(
        self, opened: Opened, folder: Path, scale: Callable[[int, int], int]
    ) -> None:
        """While the folder vanishes again and again a search finds all, or says that the index has to be filled."""
        items = corpus(40)
        expected = sorted(one.id for one in items)
        done = threading.Event()

        def wreck() -> None:
            while not done.wait(0.003):
                shutil.rmtree(folder, ignore_errors=True)

        thread = threading.Thread(target=wreck)
        thread.start()
        try:
            index = opened()
            for step in range(scale(80, 1000)):
                if step % 5 == 0:
                    index = opened()
                index.reload()
                for _ in range(3):
                    lost = index.lost
                    index.update(pairs(*[one for one in items if one.path not in index.stamps()]))
                    index.make_good(lost)
                    with contextlib.suppress(IndexUnavailable):
                        assert sorted(ids(index)) == expected
                        break
                else:
                    pytest.fail("it was filled again and again and never searched")
                with contextlib.suppress(StorageIO):
                    index.fold()
        finally:
            done.set()
            thread.join()
        gc.collect()

    def test_row_28_a_thread_gets_an_error_for_a_loss_that_another_one_met(self, opened: Opened, folder: Path) -> None:
        """Where a fold finds the base gone, no search takes the overlay for all there is."""
        index = opened()
        index.rebuild(pairs(item("one", "alpha")))
        index.update(pairs(item("two", "alpha")))
        shutil.rmtree(folder)
        index.fold()
        for _ in range(2):
            answers: list[bool] = []

            def search(answers: list[bool] = answers) -> None:
                with contextlib.suppress(IndexUnavailable):
                    answers.append(len(ids(index, "alpha")) == 1)

            thread = threading.Thread(target=search)
            thread.start()
            thread.join()
            assert answers == []
        with pytest.raises(IndexUnavailable):
            index.search(Query(text="alpha"))
        index.update(pairs(item("one", "alpha")))
        looked(index)
        assert ids(index, "alpha") == ["one", "two"]

    def test_row_28_another_generation_of_the_same_number_is_not_taken_for_the_old_one(
        self, opened: Opened, folder: Path
    ) -> None:
        """A folder removed and filled by another process after the stamps were read is met as a loss."""
        index, other = opened(), opened()
        index.rebuild(pairs(item("one", "alpha"), item("two", "alpha")))
        index.close()
        assert len(index.base_stamps()) == 2
        shutil.rmtree(folder)
        other.rebuild(pairs(item("two", "alpha")))
        with pytest.raises(IndexUnavailable):
            index.search(Query(text="alpha"))
        index.update(pairs(item("one", "alpha")))
        looked(index)
        assert ids(index, "alpha") == ["one", "two"]

    @pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
    def test_row_28_damage_inside_the_files_is_never_an_answer(self, opened: Opened, folder: Path) -> None:
        """Bytes that change between the check and the search make the same error, whatever they break."""
        rng = random.Random(5)
        index = opened()
        index.rebuild(pairs(*corpus(30)))
        index.close()
        keep = folder.parent / "keep"
        shutil.copytree(folder, keep)
        for _ in range(60):
            shutil.rmtree(folder)
            shutil.copytree(keep, folder)
            index = opened()
            stamps = index.base_stamps()
            for path in (folder / "gen-1" / "engine").iterdir():
                data = bytearray(path.read_bytes())
                for place in rng.choices(range(len(data)), k=40):
                    data[place] = 0
                path.write_bytes(bytes(data))
            with contextlib.suppress(IndexUnavailable):
                assert all(hit.path in stamps for hit in index.search(Query(text="pool", limit=100)))
            index.close()
        gc.collect()

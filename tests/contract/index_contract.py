"""IndexContract: the tests every search engine must pass.

A test of an engine inherits the class and gives it one fixture::

    class TestMyEngine(IndexContract):
        @pytest.fixture
        def make(self, tmp_path):
            return lambda: MyEngine(tmp_path / "index")

Each call of ``make`` opens the same index again, as another process would. An engine that keeps nothing says
``stored = False``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import ClassVar

import pytest

from kit.corpus import FILTERS, WORDS, brute_force, corpus, item, seeded
from memfs.model import MemoryItem, Origin, Query
from memfs.model.query import MOST
from memfs.search.engine import Index

HOSTILE = (
    "((((",
    "*a*",
    "[a TO",
    'a" OR "b',
    "title:pool",
    "pool AND NOT retry",
    "NEAR(pool retry)",
    "pool^3",
    "pool~2",
    "-pool",
    "+pool",
    "\\",
    "'; DROP TABLE rows; --",
    "\0pool\0",
    "\ud800",
    "%s {} \n\t",
    "pool " * 1000,
    " ".join(f"w{n}" for n in range(2000)),
)


class IndexContract:
    """Inherit, and give ``make``."""

    stored: ClassVar[bool] = True

    @pytest.fixture
    def make(self) -> Callable[[], Index]:
        """Opens the engine under test."""
        raise NotImplementedError("give this fixture")

    @pytest.fixture
    def index(self, make: Callable[[], Index]) -> Iterator[Index]:
        """The engine under test, empty."""
        made = make()
        yield made
        made.close()

    # -- finding ----------------------------------------------------------------------------------------------------
    @pytest.mark.parametrize("name", FILTERS)
    @pytest.mark.parametrize("seed", [1, 2])
    def test_finds_what_looking_at_every_item_finds(self, index: Index, name: str, seed: int) -> None:
        """With every filter, hits, their scores and their order are those of brute force."""
        items = corpus(120, seed)
        index.add(items)
        rng = seeded(seed)
        for limit in (1, 7, 1000):
            text = " ".join(rng.choices([*WORDS, "unheard"], k=rng.randint(1, 4)))
            query = Query(text=text, limit=limit, **FILTERS[name])  # type: ignore[arg-type]
            found = [(hit.id, hit.similarity) for hit in index.search(query)]
            expected = brute_force(items, query)[:limit]
            assert [key for key, _ in found] == [key for key, _ in expected]
            assert [score for _, score in found] == pytest.approx([score for _, score in expected], rel=1e-6)

    @pytest.mark.parametrize("name", FILTERS)
    def test_lists_newest_first_without_text(self, index: Index, name: str) -> None:
        """An empty query lists by timestamp, ties by id, similarity 0."""
        items = corpus(200, 3)
        index.add(items)
        for limit in (5, 1000):
            query = Query(limit=limit, **FILTERS[name])  # type: ignore[arg-type]
            found = [(hit.id, hit.similarity) for hit in index.search(query)]
            assert found == brute_force(items, query)[:limit]

    def test_equal_scores_are_ordered_by_id(self, index: Index) -> None:
        """Ties are broken by id whatever the order of adding, also at the limit."""
        names = [f"twin-{number:03d}" for number in range(120)]
        shuffled = seeded(4).sample(names, k=len(names))
        index.add(item(name, "the very same words") for name in shuffled)
        index.flush()
        assert [hit.id for hit in index.search(Query(text="same words", limit=15))] == names[:15]
        assert [hit.id for hit in index.search(Query(limit=15))] == names[:15]

    def test_an_answer_carries_what_ranking_needs(self, index: Index) -> None:
        """Path, type, timestamp to the microsecond, importance, context and pin come back as they went in."""
        when = datetime(2026, 3, 4, 5, 6, 7, 890123, tzinfo=UTC)
        context = {"branch": "main", "depth": 2, "flags": [True, None], "nested": {"ключ": "значение"}}
        index.add([item("one", "alpha", memory_type="episodic", timestamp=when, importance=2.25, context=context)])
        (hit,) = index.search(Query(text="alpha"))
        assert (hit.id, hit.type, hit.timestamp, hit.importance) == ("one", "episodic", when, 2.25)
        assert hit.path == "ContextMemory/memories/episodic/2026-01/one.yaml"
        assert (hit.context, hit.similarity > 0, hit.pinned) == (context, True, False)
        index.flush()
        index.add([item("one", "alpha", pinned=True)])
        index.flush()
        assert [found.pinned for found in index.search(Query(text="alpha"))] == [True]

    def test_who_said_it_and_where_comes_back(self, index: Index) -> None:
        """Session, sequence, speaker, role and whether it asks; a number without a session is not a place."""
        origin = Origin(session="s 1", sequence=-3, speaker="Ada", role="user")
        index.add([item("one", "alpha?", origin=origin), item("two", "alpha", origin=Origin(sequence=4))])
        found = {hit.id: hit for hit in index.search(Query(text="alpha"))}
        one, two = found["one"], found["two"]
        assert (one.session, one.sequence, one.speaker, one.role, one.asks) == ("s 1", -3, "Ada", "user", True)
        assert (two.session, two.sequence, two.asks) == ("", None, False)

    def test_what_is_beside_is_given_by_place(self, index: Index, make: Callable[[], Index]) -> None:
        """Items at places of talks, twins included, those hidden, removed, moved or filtered out not."""
        for number in range(8):
            origin = Origin(session="a" if number < 6 else "b", sequence=min(number, 6) * 2)
            index.add(
                [item(f"n{number}", "alpha", memory_type="working" if number == 2 else "semantic", origin=origin)]
            )
        index.flush()
        index.remove(["n1"])
        index.add([item("n3", "alpha", origin=Origin(session="a", sequence=99))])
        places = {("a", number) for number in range(9)} | {("b", 12), ("none", 1)}

        def beside(one: Index, query: Query, hidden: tuple[str, ...] = ()) -> list[str]:
            return sorted(candidate.id for candidate in one.beside(places, query, hidden))

        assert beside(index, Query()) == ["n0", "n2", "n4", "n6", "n7"]
        assert beside(index, Query(types=frozenset({"semantic"})), ("n4",)) == ["n0", "n6", "n7"]
        if self.stored:
            index.flush()
            index.close()
            again = make()
            assert beside(again, Query()) == ["n0", "n2", "n4", "n6", "n7"]
            again.close()

    def test_items_are_given_by_their_ids(self, index: Index, make: Callable[[], Index]) -> None:
        """Those asked for that pass the filters, those hidden, removed or unknown not."""
        index.add([item(f"n{number}", "alpha", tags=("odd",) if number % 2 else ()) for number in range(6)])
        index.flush()
        index.remove(["n1"])
        index.add([item("n2", "beta", tags=("odd",))])
        asked = ["n5", "n1", "n2", "n3", "n0", "n3", "nobody"]

        def among(one: Index, query: Query, hidden: tuple[str, ...] = ()) -> list[str]:
            return sorted(candidate.id for candidate in one.among(asked, query, hidden))

        assert among(index, Query()) == ["n0", "n2", "n3", "n5"]
        assert among(index, Query(tags=frozenset({"odd"})), ("n5",)) == ["n2", "n3"]
        if self.stored:
            index.flush()
            index.close()
            again = make()
            assert among(again, Query()) == ["n0", "n2", "n3", "n5"]
            again.close()

    def test_items_are_counted_without_being_made(self, index: Index, make: Callable[[], Index]) -> None:
        """As many as a search without a text finds, with its filters and what it hides."""
        index.add([item(f"n{number}", "alpha", tags=("odd",) if number % 2 else ()) for number in range(6)])
        index.flush()
        index.remove(["n1"])
        index.add([item("n2", "beta", tags=("odd",))])
        asked = [(Query(), ()), (Query(limit=1), ("n0", "nobody")), (Query(tags=frozenset({"odd"})), ("n5",))]
        assert [index.count(query, hidden) for query, hidden in asked] == [5, 4, 2]
        if self.stored:
            index.flush()
            index.close()
            again = make()
            assert [again.count(query, hidden) for query, hidden in asked] == [5, 4, 2]
            again.close()

    def test_terms_are_reported_by_their_beginning(self, index: Index) -> None:
        """So that a typo can be distinguished from a word."""
        index.add([item("one", "violin viola cello"), item("two", "vio")])
        assert set(index.terms("vio")) == {"violin", "viola", "vio"}
        assert set(index.terms("x")) == set()

    def test_terms_are_worth_what_the_asker_says(self, index: Index) -> None:
        """The asker's weights take the place of those of the text."""
        index.add([item("one", "violin"), item("two", "cello")])
        worth = {"violin": 1.0, "cello": 2.0}
        found = index.search(Query(text="ignored"), asked=(worth, index.statistics(worth)))
        assert [hit.id for hit in found] == ["two", "one"]
        assert found[0].similarity == pytest.approx(2 * found[1].similarity)

    def test_times_before_1970_and_far_ahead_are_kept(self, index: Index) -> None:
        """Any timestamp a person may write comes back and sorts."""
        early, late = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
        index.add([item("early", "alpha", timestamp=early), item("late", "alpha", timestamp=late)])
        assert [hit.timestamp for hit in index.search(Query())] == [late, early]

    def test_natural_questions_find_stems_of_any_word(self, index: Index) -> None:
        """A question finds items that share one stem with it: OR, never AND."""
        index.add([item("one", "Committed the migration"), item("two", "unrelated")])
        assert [hit.id for hit in index.search(Query(text="How do we commit?"))] == ["one"]

    def test_title_weighs_more_than_content_and_content_more_than_metadata(self, index: Index) -> None:
        """Weights 2, 1 and 0.5."""
        index.add(
            [
                item("in-metadata", "filler", title="other", metadata={"k": "zebra"}),
                item("in-content", "zebra", title="other filler"),
                item("in-title", "filler other", title="zebra"),
            ]
        )
        assert [hit.id for hit in index.search(Query(text="zebra"))] == ["in-title", "in-content", "in-metadata"]

    @pytest.mark.parametrize("text", HOSTILE)
    def test_hostile_queries_are_words_only(self, index: Index, text: str) -> None:
        """No character of a query has a meaning of its own."""
        items = corpus(60, 5)
        index.add(items)
        query = Query(text=text, limit=100)
        assert [hit.id for hit in index.search(query)] == [key for key, _ in brute_force(items, query)]

    def test_words_found_nowhere_find_nothing(self, index: Index) -> None:
        """A query whose words occur nowhere, or that has no words, is answered by nothing."""
        index.add(corpus(20))
        assert index.search(Query(text="xylophone")) == []
        assert index.search(Query(text="?!")) == []

    def test_an_empty_index_answers(self, index: Index) -> None:
        """Searching, listing, statistics and flushing nothing work."""
        assert index.search(Query(text="pool")) == []
        assert index.search(Query()) == []
        index.flush()
        assert (index.count(Query()), index.statistics(["pool"]).passages) == (0, 0)

    def test_names_and_texts_of_any_sort_are_kept(self, index: Index) -> None:
        """Quotes, percent signs, line ends, NUL and undecodable bytes in names do no harm."""
        strange = "a'b\"c%_\n\0\udcff/é"
        folder = "ContextMemory/memories/semantic/we'ird \udcff%_"
        index.add([item("one", "alpha", tags=(strange,), origin=Origin(agent=strange, session=strange), folder=folder)])
        index.add([item("two", "alpha")])
        index.flush()
        for query in (Query(tags=frozenset({strange})), Query(text="alpha", path=folder)):
            assert [(hit.id, hit.path) for hit in index.search(query)] == [("one", f"{folder}/one.yaml")]

    # -- changing ---------------------------------------------------------------------------------------------------
    def test_added_items_are_found_at_once(self, index: Index) -> None:
        """Nothing needs to be flushed before it can be found."""
        index.add([item("one", "alpha")])
        assert [hit.id for hit in index.search(Query(text="alpha"))] == ["one"]
        index.add([item("two", "alpha")])
        assert [hit.id for hit in index.search(Query(text="alpha"))] == ["one", "two"]

    def test_replacing_an_item_forgets_its_old_words(self, index: Index) -> None:
        """The same id again replaces the item whole, flushed or not, twice in one call too."""
        index.add([item("one", "alpha", tags=("old",)), item("two", "alpha")])
        index.flush()
        index.add([item("one", "beta"), item("one", "gamma", memory_type="working", tags=("new",))])
        assert [hit.id for hit in index.search(Query(text="alpha"))] == ["two"]
        assert index.search(Query(text="beta")) == []
        assert [hit.type for hit in index.search(Query(text="gamma"))] == ["working"]
        assert [hit.id for hit in index.search(Query(tags=frozenset({"new"})))] == ["one"]
        assert index.search(Query(tags=frozenset({"old"}))) == []
        assert index.count(Query()) == 2

    def test_removed_items_are_gone(self, index: Index) -> None:
        """Removing hides from search, listing and ids; unknown ids do no harm; adding again brings back."""
        index.add([item("one", "alpha"), item("two", "alpha")])
        index.remove(["one", "never there"])
        assert [hit.id for hit in index.search(Query(text="alpha"))] == ["two"]
        assert [hit.id for hit in index.search(Query())] == ["two"]
        assert [hit.id for hit in index.search(Query())] == ["two"]
        index.add([item("one", "alpha")])
        assert [hit.id for hit in index.search(Query(text="alpha"))] == ["one", "two"]

    def test_an_index_emptied_item_by_item_goes_on(self, index: Index) -> None:
        """After every item was removed nothing is found, and new ones are."""
        index.add(corpus(50))
        index.flush()
        index.remove([one.id for one in corpus(50)])
        index.flush()
        assert (index.search(Query(text="pool")), index.search(Query()), index.count(Query())) == ([], [], 0)
        index.add([item("one", "alpha")])
        index.flush()
        assert [hit.id for hit in index.search(Query(text="alpha"))] == ["one"]

    def test_any_sequence_of_changes_ends_right(self, make: Callable[[], Index]) -> None:
        """After many random additions, replacements, removals, flushes and reopenings hits are those of brute force."""
        rng = seeded(6)
        index = make()
        truth: dict[str, MemoryItem] = {}
        for step in range(60):
            batch = [item(f"item-{rng.randint(0, 80)}", " ".join(rng.choices(WORDS, k=4))) for _ in range(9)]
            index.add(batch)
            truth |= {one.id: one for one in batch}
            gone = [f"item-{rng.randint(0, 80)}" for _ in range(4)]
            index.remove(gone)
            for key in gone:
                truth.pop(key, None)
            if step % 3 == 0:
                index.flush()
            if step % 10 == 9 and self.stored:
                index.flush()
                index.close()
                index = make()
            if step % 5 == 0:
                query = Query(text=" ".join(rng.choices(WORDS, k=2)), limit=1000)
                expected = {key for key, _ in brute_force(truth.values(), query)}
                assert {hit.id for hit in index.search(query)} == expected
                assert {hit.id for hit in index.search(Query(limit=MOST))} == set(truth)
                assert index.count(Query()) == len(truth)
        index.close()

    def test_hidden_items_are_left_out(self, index: Index) -> None:
        """Hidden ids take no place within the limit, in search and listing."""
        index.add(item(f"item-{number}", "alpha") for number in range(9))
        hidden = {"item-0", "item-2", "unknown"}
        query = Query(text="alpha", limit=3)
        assert [hit.id for hit in index.search(query, hidden)] == ["item-1", "item-3", "item-4"]
        assert [hit.id for hit in index.search(Query(limit=3), hidden)] == ["item-1", "item-3", "item-4"]
        assert index.search(query, {f"item-{number}" for number in range(9)}) == []

    def test_statistics_say_how_common_terms_are(self, index: Index) -> None:
        """Number of passages, mean length and frequencies of a fresh index are exact."""
        index.add([item("one", "alpha beta", title="alpha"), item("two", "alpha")])
        found = index.statistics(["alpha", "beta", "gamma"])
        assert (found.passages, found.average_length) == (2, 2.0)
        assert dict(found.frequencies) == {"alpha": 2, "beta": 1, "gamma": 0}

    def test_a_long_text_is_found_by_its_passages(self, index: Index) -> None:
        """A long item counts by its best passage, which is named; it is one item in answers, listings and removals.
        An answer names the terms that each item has in any of its passages, and those that it lacks.
        """
        filler = "Nothing of this says anything. " * 30
        index.add(
            [item("long", f"{filler}The zebra drinks tea. {filler}"), item("short", "zebra"), item("other", "tea")]
        )
        query = Query(text="zebra tea", limit=9)
        found = {hit.id: hit for hit in index.search(query)}
        assert set(found) == {"long", "short", "other"}
        assert found["long"].passage == 2
        held = {name: (sorted(one.held), sorted(one.lacking)) for name, one in found.items()}
        assert held == {"long": (["tea", "zebra"], []), "short": (["zebra"], ["tea"]), "other": (["tea"], ["zebra"])}
        assert index.statistics(["zebra"]).frequencies == {"zebra": 2}
        assert index.statistics([]).passages == 7
        assert [hit.id for hit in index.search(Query())] == ["long", "other", "short"]
        assert index.count(Query()) == 3
        assert [hit.id for hit in index.among(["long"], Query())] == ["long"]
        assert {hit.id for hit in index.search(query, {"long"})} == {"short", "other"}
        index.flush()
        index.add([item("long", "tea")])
        assert {hit.id for hit in index.search(Query(text="zebra"))} == {"short"}
        index.flush()
        index.remove(["long"])
        assert {hit.id for hit in index.search(query)} == {"short", "other"}

    def test_a_tag_is_not_found_by_a_part_of_another(self, index: Index) -> None:
        """Whatever quotation marks and commas tags have."""
        tags = ("plain", 'a"plain', '","plain', "pla", "plain\\", 'x,"plain",y')
        index.add(item(f"n{number}", "pool", tags=(tag,)) for number, tag in enumerate(tags))
        for number, tag in enumerate(tags):
            assert [hit.id for hit in index.search(Query(tags=frozenset({tag})))] == [f"n{number}"]

    # -- keeping ----------------------------------------------------------------------------------------------------
    def test_what_was_flushed_is_there_when_opened_again(self, make: Callable[[], Index]) -> None:
        """Another opening answers the same as the one that wrote."""
        if not self.stored:
            pytest.skip("keeps nothing")
        items = corpus(200, 8)
        first = make()
        first.add(items)
        first.remove([items[0].id, items[7].id])
        first.flush()
        queries = [Query(text=text, limit=50, **FILTERS["type and dates"]) for text in WORDS]  # type: ignore[arg-type]
        expected = [first.search(query) for query in queries]
        first.close()
        second = make()
        assert [second.search(query) for query in queries] == expected
        second.close()

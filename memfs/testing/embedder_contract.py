"""EmbedderContract: the tests every embedder must pass.

Authors of an embedder inherit the class and give it one fixture::

    class TestMyEmbedder(EmbedderContract):
        @pytest.fixture
        def embedder(self):
            return MyEmbedder()

One that does not understand texts at all, such as a stand-in, says ``understands = False``.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from math import isfinite, sqrt
from operator import mul
from typing import ClassVar

import pytest

from memfs.search.embedder import Embedder, Vector

TEXTS = (
    "How to reset a forgotten password",
    "Resetting passwords that users forgot",
    "Tomato soup with basil and cream",
)
HOSTILE = (
    "\0null\0",
    "\ud800 lone",
    "\u202eright to left",
    "\U0001f600" * 50,
    "word " * 5_000,
    "x" * 30_000,
    "\u6f22\u5b57" * 2_000,
    "[CLS] [SEP] [MASK] [PAD]",
    "a\n\n\tb",
)


def cosine(one: Vector, other: Vector) -> float:
    """How near two vectors of length 1 are."""
    return float(sum(map(mul, one, other)))


class EmbedderContract:
    """Inherit, and give ``embedder``."""

    understands: ClassVar[bool] = True

    @pytest.fixture
    def embedder(self) -> Embedder:
        """The embedder under test."""
        raise NotImplementedError("give this fixture")

    def test_each_text_gets_a_vector_of_length_1(self, embedder: Embedder) -> None:
        """As many as there are texts, all as long as ``dimensions`` says."""
        vectors = embedder.embed(TEXTS)
        assert [len(vector) for vector in vectors] == [embedder.dimensions] * len(TEXTS)
        assert [sqrt(cosine(vector, vector)) for vector in vectors] == pytest.approx([1.0] * len(TEXTS), abs=1e-4)
        assert list(embedder.embed(())) == []

    def test_a_text_has_the_same_vector_in_any_company(self, embedder: Embedder) -> None:
        """Order, and what else is asked for, change nothing."""
        together = embedder.embed((*TEXTS, "a much longer text " * 20))
        for text, vector in zip(reversed(TEXTS), reversed(list(together)[:3]), strict=True):
            (alone,) = embedder.embed([text])
            assert cosine(alone, vector) == pytest.approx(1.0, abs=1e-3)

    def test_what_means_the_like_lies_nearer(self, embedder: Embedder) -> None:
        """Two ways to say one thing are nearer than two things."""
        if not self.understands:
            pytest.skip("this embedder does not understand texts")
        same, again, other = embedder.embed(TEXTS)
        assert cosine(same, again) > cosine(same, other) + 0.1

    def test_nothing_to_read_has_no_direction(self, embedder: Embedder) -> None:
        """Blank texts have vectors of zeros, wherever they are."""
        first, second, third = embedder.embed(("", TEXTS[0], " \n\t"))
        assert not any(first)
        assert any(second)
        assert not any(third)

    def test_any_text_is_taken(self, embedder: Embedder) -> None:
        """Hidden characters, halves of characters, endless words: every number is finite."""
        for text in HOSTILE:
            (vector,) = embedder.embed([text])
            assert len(vector) == embedder.dimensions
            assert all(map(isfinite, vector))

    def test_several_threads_may_ask(self, embedder: Embedder) -> None:
        """Each gets the vectors of its own texts."""
        alone = [embedder.embed([text])[0] for text in TEXTS]
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda number: embedder.embed([TEXTS[number % 3]]), range(12)))
        for number, (vector,) in enumerate(found):
            assert cosine(vector, alone[number % 3]) == pytest.approx(1.0, abs=1e-3)

    def test_it_has_a_name_and_says_how_much_it_counts(self, embedder: Embedder) -> None:
        """So that vectors of two models are never mixed, and ranking knows what to make of it."""
        assert embedder.name.strip()
        assert 0 < embedder.weight <= 2
        assert -1 <= embedder.least < 1

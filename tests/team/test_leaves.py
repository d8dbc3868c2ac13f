"""A file taken apart into its fields: each element of a list is one, also where several are equal."""

from __future__ import annotations

from memfs.team.blame import Leaf, taken_apart


def test_equal_elements_of_a_list_are_distinguished() -> None:
    """Anyone who adds a step that is there already taught that one, and not the first of them (B2)."""
    found = taken_apart({"steps": ["build", "test", "build"], "data": {"a.b": {}, "n": [True, 1]}})
    assert [(leaf.field, leaf.turn, value) for leaf, value in found.items()] == [
        ("steps", 0, "build"),
        ("steps", 0, "test"),
        ("steps", 1, "build"),
        ("data.a.b", 0, {}),
        ("data.n", 0, True),
        ("data.n", 0, 1),
    ]
    assert Leaf("steps", '"build"', 1) in found

"""What is in an item's body is read as what it is, whatever somebody wrote there."""

from __future__ import annotations

from memfs.model.shape import count_in, text_in, texts_in


def test_what_is_of_another_sort_counts_as_missing() -> None:
    """A number is not text, a boolean is not a count, and one text is a list of one."""
    assert (text_in("a"), text_in(3), text_in(None)) == ("a", "", "")
    assert (texts_in(["a", 1, "b"]), texts_in("ab")) == (("a", "b"), ("ab",))
    assert (texts_in(None), texts_in({"a": 1})) == ((), ())
    assert (count_in(2), count_in(-1), count_in(True), count_in("2")) == (2, 0, 0, 0)

"""Which regular expressions are accepted, and that they mean the same everywhere."""

from __future__ import annotations

import re

import pytest

from memfs.format.untrusted_schema import PatternRefused, vet


@pytest.mark.parametrize(
    ("pattern", "fits", "fails"),
    [
        (r"^[a-z][a-z0-9_]{0,40}$", ["a", "a_1"], ["", "A", "a" * 42, "a\n"]),
        (r"^v?\d+\.\d+$", ["1.10", "v2.0"], ["1", "１.１", "1.1\n"]),
        (r"^(foo|bar)-\w+$", ["foo-x", "bar-_1"], ["baz-x", "foo-é"]),
        (r"[\]a-]", ["]", "-", "xa"], ["b"]),
        (r"^[^\r\n]*$", ["", "one"], ["a\nb", "a\r"]),
        (r"^a.c$", ["abc", "a\u2028c"], ["a\nc"]),
        (r"^\$\{\}/\s\S\D\W$", ["${}/ xx!"], ["${}/xxx!"]),
        ("^é{2,3}?$", ["éé"], ["é"]),
        (r"^(ab)?c{2}$", ["cc", "abcc"], ["abc"]),
        ("", ["", "x"], []),
    ],
)
def test_accepted_patterns_match_as_written(pattern: str, fits: list[str], fails: list[str]) -> None:
    """Python's and the portable form agree with the pattern's meaning, the very end included."""
    accepted = vet(pattern)

    assert all(re.search(accepted.python, text) for text in fits)
    assert not any(re.search(accepted.python, text) for text in fails)
    quick = pytest.importorskip("jsonschema_rs")
    decide = quick.Draft202012Validator({"pattern": accepted.portable}, pattern_options=quick.RegexOptions()).is_valid
    assert all(decide(text) for text in fits)
    assert not any(decide(text) for text in fails)


@pytest.mark.parametrize(
    ("pattern", "is_complex"),
    [
        *(
            (text, True)
            for text in ("^(a+)+$", "(a|b)+", "(a?){9}", "(x{1,9}){2}", "(?=a)", "(?<!a)b", r"(a)\1", "(?i)a")
        ),
        *((text, True) for text in ("(?P<n>a)", "a{5000}", "a?" * 40, "x" * 1001, "(" * 30 + ")" * 30, ".*.*.*x")),
        *((text, False) for text in ("(", ")", "[", "[]", "[^]", "[z-a]", "a**", "*a", "^*", "a{2,1}", "a{x}")),
        *((text, False) for text in (r"\p{L}", r"\b", "a\\")),
    ],
)
def test_what_is_wrong_or_could_take_for_ever_is_refused(pattern: str, is_complex: bool) -> None:
    """A refusal says whether the pattern is no pattern, or one that is not certain to end soon."""
    with pytest.raises(PatternRefused) as caught:
        vet(pattern)

    assert caught.value.is_complex is is_complex


def test_the_limit_shrinks_with_the_degree() -> None:
    """The more a pattern repeats, the shorter the text it is tried on."""
    limits = [vet(pattern).limit for pattern in ("^a$", "^a*$", "^a*b*$", "^a*b*c*$")]

    assert limits == sorted(limits, reverse=True)
    assert limits[-1] >= 64

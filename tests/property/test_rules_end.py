"""Whatever happened, looking for rules ends, within its bounds, with the same result each time (P4, L7)."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from memfs.learning.failures import (
    LEAST_CONFIDENCE,
    LEAST_FAILURES,
    MOST_FOUND,
    RuleEvidence,
    advise,
    look,
)
from memfs.learning.situations import words_of
from memfs.model.episode import TriggerRow

TEXT = st.one_of(
    st.sampled_from(("", "change the orders table", "lock timeout", "Traceback\n x\nKeyError: 'a'")), st.text()
)
FILE = st.sampled_from(("a.py", "src/a.py", "src/b.py", "src/*.py", "/x/**/[", "deep/" * 30 + "c.txt", "?", "src/.py"))


@st.composite
def episodes(draw: st.DrawFn) -> list[TriggerRow]:
    """Episodes of any outcome, in any order of time, that warn of one another."""
    rows = []
    for number in range(draw(st.integers(0, 25))):
        context = draw(TEXT)
        rows.append(
            TriggerRow(
                id=f"e{number}",
                path="",
                blob="",
                sort="episode",
                outcome=draw(st.sampled_from(("failure", "failure", "success", "partial"))),
                tool=draw(st.sampled_from(("", "Edit", "edit", "Bash"))),
                files=tuple(draw(st.lists(FILE, max_size=3, unique=True))),
                words=words_of(context),
                context=context,
                did=draw(TEXT),
                error=draw(TEXT),
                time=draw(st.floats(0, 4e9)),
                warned=tuple(draw(st.lists(st.sampled_from(("e0", "e1", "r")), max_size=2))),
                task=draw(st.sampled_from(("", "T1", "T2"))),
            )
        )
    return sorted(rows, key=lambda row: (row.time, row.id))


@settings(max_examples=settings.default.max_examples // 2)
@given(rows=episodes(), threshold=st.integers(2, 5))
def test_looking_for_rules_ends(rows: list[TriggerRow], threshold: int) -> None:
    """Each found condition has its failures, is sure enough, and says so in bounded words."""
    book = RuleEvidence(rows)
    found = list(look(book, (), threshold))
    assert len(found) <= MOST_FOUND
    assert found == list(look(book, (), threshold))
    for one in found:
        assert len(one.verdict.failures) >= LEAST_FAILURES
        assert LEAST_CONFIDENCE <= one.verdict.confidence < 1
        advice = advise(one.verdict.failures, one.verdict.remedies, one.condition.context)
        assert advice.action.count('"') % 2 == 0
        assert len(advice.action) < 600

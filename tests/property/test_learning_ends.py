"""Everything that learns, reacts or replays ends within its stated bound, whatever it is given (L7)."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memfs import MemoryItem, Query
from memfs.fs.journal import FileChange, Journal, Operation, Writer
from memfs.learning.patterns import PatternFinder, fixed_words, item_of
from memfs.model import Origin
from memfs.workspace import DEEPEST, OCCASIONS, Behaviours, Workspace, open_workspace

PATIENCE = 60.0
WORDS = st.sampled_from(
    ["create", "delete", "user", "admin", "guest", "login", "page", "the", "a", "decided", "always", "{variable}"]
)
PLAIN = st.lists(st.sampled_from([*"abcdefgh", "the"]), min_size=1, max_size=7).map(" ".join)
TEXTS = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)
MANY = st.lists(TEXTS, max_size=25)
QUICK = settings(
    max_examples=settings.default.max_examples // 8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace to copy."""
    root = tmp_path_factory.mktemp("pristine") / "w"
    open_workspace(root, create=True, watch=False, settings={"index.engine": "memory"}).close()
    return root


class Fresh:
    """Workspaces of their own, one for each example."""

    def __init__(self, pristine: Path) -> None:
        self._pristine = pristine
        self._folder = Path(tempfile.mkdtemp(dir=pristine.parent))
        self._open: list[Workspace] = []

    def __call__(self) -> Workspace:
        """A workspace without memories."""
        root = self._folder / str(len(self._open))
        shutil.copytree(self._pristine, root, symlinks=True)
        given = {"index.engine": "memory", "history.commit": "manual"}
        self._open.append(open_workspace(root, watch=False, settings=given))
        return self._open[-1]

    def close(self) -> None:
        """Close all."""
        for workspace in self._open:
            workspace.close()


@pytest.fixture
def fresh(pristine: Path) -> Iterator[Fresh]:
    """Makes workspaces."""
    made = Fresh(pristine)
    yield made
    made.close()


@given(st.lists(PLAIN, max_size=25), st.integers(2, 5), st.sampled_from([0.3, 0.5, 0.8, 1.0]), st.integers(1, 3))
@settings(max_examples=settings.default.max_examples // 2, deadline=None)
def test_whatever_is_given_patterns_are_found_and_distinguished(
    texts: list[str], threshold: int, similarity: float, common: int
) -> None:
    """Each pattern has enough members, which all follow it, and each memory belongs to one at most (L7, M2)."""
    detector = PatternFinder(threshold, similarity=similarity, min_common_words=common)
    items = [MemoryItem(text, "interaction", id=f"i{number}") for number, text in enumerate(texts)]
    by_id = {item.id: item for item in items}

    found = detector.detect_all(items)

    members = [member for one in found for member in one.members]
    assert len(members) == len(set(members))
    for one in found:
        assert one.occurrences == len(one.members) >= threshold
        assert 0 < one.confidence < 1
        assert all(detector.follows(by_id[member], item_of(one)) for member in one.members)
    assert [one.template for one in detector.detect_all(items)] == [one.template for one in found]


@given(st.dictionaries(st.sampled_from(sorted(OCCASIONS)), st.lists(st.sampled_from(sorted(OCCASIONS)), max_size=3)))
@settings(max_examples=settings.default.max_examples // 2, deadline=None)
def test_occasions_that_cause_one_another_end(causes: dict[str, list[str]]) -> None:
    """However occasions cause one another, no chain is longer than its bound, and what is too deep is reported (L7)."""
    reported: list[Exception] = []
    behaviours = Behaviours(reported.append)
    depth, deepest, ran = 0, 0, 0

    def reaction(caused: list[str]) -> Any:
        def react(_: Any) -> None:
            nonlocal depth, deepest, ran
            depth, ran = depth + 1, ran + 1
            deepest = max(deepest, depth)
            for occasion in caused:
                behaviours.fire(occasion, {})
            depth -= 1

        return react

    for occasion, caused in causes.items():
        behaviours.on(occasion, reaction(caused))
    for occasion in sorted(OCCASIONS):
        behaviours.fire(occasion, {})

    assert deepest <= DEEPEST
    assert ran <= len(OCCASIONS) * sum(3**level for level in range(DEEPEST))
    assert all(isinstance(error, RecursionError) for error in reported)


@given(MANY)
@QUICK
def test_learning_with_reactions_that_store_ends(fresh: Fresh, texts: list[str]) -> None:
    """Though a reaction stores what is like each pattern, learning ends, and no pattern is stored twice (L7, M2)."""
    workspace = fresh()
    raised: list[str] = []

    def react(facts: Any) -> None:
        raised.append(facts["pattern"].id)
        again = workspace.store.put(MemoryItem(facts["pattern"].data["examples"][0], "interaction"))
        workspace.behaviours.fire("memory_stored", {"item": again})

    workspace.behaviours.on("pattern_detected", react)
    for text in texts:
        item = workspace.store.put(MemoryItem(text, "interaction"))
        workspace.behaviours.fire("memory_stored", {"item": item})
    assert workspace.patterns.settle(PATIENCE)

    patterns = workspace.patterns.all()
    words = [fixed_words(item.content) for item in patterns]
    assert len(words) == len(set(words))
    assert len(raised) <= 2 * len(texts)
    assert workspace.store.problems() == []
    workspace.patterns.catch_up()
    assert workspace.patterns.catch_up()[1] == []


@given(st.lists(st.tuples(TEXTS, st.booleans(), st.sampled_from([0.5, 1.0, 3.0])), max_size=15))
@QUICK
def test_ending_a_session_ends_and_loses_nothing_silently(fresh: Fresh, notes: list[tuple[str, bool, float]]) -> None:
    """Each working memory is cleared or pinned, what is kept is knowledge, and a second run does nothing (L7, C7)."""
    workspace = fresh()
    stored = [
        workspace.store.put(
            MemoryItem(text, "working", origin=Origin(session="s"), pinned=pinned, importance=importance)
        )
        for text, pinned, importance in notes
    ]

    done = workspace.consolidation.run("s")

    assert set(done.cleared) | set(done.pinned) == {item.id for item in stored}
    assert {item.id for item in workspace.store.select(Query(types=frozenset({"working"}), limit=99))} == set(
        done.pinned
    )
    assert workspace.consolidation.run("s").promoted == ()
    assert all(one.item.metadata["promoted_from"] == "working" for one in done.promoted)


def left_behind(number: int, name: str, text: str | None, expected: str) -> Operation:
    """An operation of which a process that died said nothing more."""
    data = None if text is None else f"content: {text}\n".encode()
    change = FileChange(
        path=f"ContextMemory/memories/knowledge/2026-01/{name}.yaml",
        old=expected,
        new=sha256(data).hexdigest() if data else "",
        data=data,
    )
    return Operation(
        id=f"op{number}",
        branch="refs/heads/main",
        time=1.5,
        message="Remember",
        batch=False,
        writers=(Writer(),),
        changes=(change,),
    )


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from(["one", "two", None]), st.sampled_from(["", "f" * 64])),
        min_size=1,
        max_size=12,
    )
)
@QUICK
def test_replaying_the_journal_ends(fresh: Fresh, deeds: list[tuple[str, str | None, str]]) -> None:
    """Each operation that was left is carried out or set aside once, and none is left for the next opening (L7)."""
    with fresh() as workspace:
        journal = Journal(workspace.repository.state / "journal")
    journal.append([left_behind(number, *deed) for number, deed in enumerate(deeds)])

    for marks in (len(deeds), 0):
        with patch.object(Journal, "mark_applied", autospec=True, side_effect=Journal.mark_applied) as marked:
            given = {"index.engine": "memory", "history.commit": "manual"}
            open_workspace(workspace.root, watch=False, settings=given).close()
        assert marked.call_count == marks
        assert Journal(workspace.repository.state / "journal").unfinished() == []


def test_a_pattern_never_follows_a_pattern() -> None:
    """The item of a pattern forms and follows none (M2: no recursion)."""
    items = [MemoryItem(f"create {name} login", "pattern", id=name) for name in ("a", "b", "c")]
    detector = PatternFinder()
    found = detector.detect_pattern([item.replace(memory_type="interaction") for item in items])

    assert found is not None
    assert detector.detect_all(items) == []
    assert [detector.follows(item, item_of(found)) for item in items] == [0, 0, 0]

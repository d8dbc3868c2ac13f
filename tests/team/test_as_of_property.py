"""What a revision answers is what a fresh checkout of it answers, asked by the same clock."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from kit.corpus import START, WORDS
from memfs.model import MemoryItem, Origin, Query, Recall
from memfs.recall.recaller import Helpers, Recaller
from memfs.recall.review import relevance_of
from memfs.team.asof import Past
from memfs.workspace import Workspace, open_workspace

NAMES = [f"item-{number}" for number in range(12)]
QUESTIONS = [
    Query(text="postgres retry deploy", limit=5),
    Query(text="How do we merge the schmea of the index?", limit=20, deduplicate=True),
    Query(text="agent session commit", strategy="time_weighted"),
    Query(text="lock journal archive", strategy="fading", context={"branch": "main"}),
    Query(text="cache token", types=frozenset({"semantic"}), since=START + timedelta(days=2)),
    Query(text="", limit=6),
    Query(text="vector", max_tokens=40, deduplicate=True),
]

words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)
items = st.builds(
    lambda name, content, kind, days, sequence, agent, pinned, weight: MemoryItem(
        content,
        kind,
        id=name,
        timestamp=START + timedelta(days=days),
        origin=Origin(agent=agent, session="s1" if sequence is not None else "", sequence=sequence),
        pinned=pinned,
        importance=weight,
    ),
    st.sampled_from(NAMES),
    words,
    st.sampled_from(["semantic", "working", "note"]),
    st.integers(0, 40),
    st.none() | st.integers(0, 5),
    st.sampled_from(["", "coder"]),
    st.booleans(),
    st.sampled_from([0.5, 1.0, 3.0]),
)
# By hand: an invalid file, one without a time, a second file of one id, a file that is not an item.
by_hand = st.sampled_from(
    [
        ("memories/semantic/odd.yaml", "content: [unclosed"),
        ("memories/semantic/plain.yaml", "content: the postgres cache without a time"),
        ("memories/note/item-1.yaml", "content: postgres deploy twin\ntimestamp: 2025-01-01T00:00:00Z"),
        ("memories/note/item-2.yaml", "content: retry twin\ntimestamp: 2031-01-01T00:00:00Z"),
        ("memories/semantic/readme.md", "postgres"),
    ]
)
steps = st.lists(
    st.tuples(st.just("put"), st.lists(items, min_size=1, max_size=4))
    | st.tuples(st.just("delete"), st.sampled_from(NAMES))
    | st.tuples(st.just("hand"), by_hand),
    min_size=2,
    max_size=7,
)


TWINS = [
    ("put", [MemoryItem(f"postgres retry {name}", id=name) for name in ("item-1", "item-2", "item-3")]),
    ("hand", ("memories/note/item-1.yaml", "content: postgres deploy twin\ntimestamp: 2025-01-01T00:00:00Z")),
    ("hand", ("memories/note/item-2.yaml", "content: retry twin\ntimestamp: 2031-01-01T00:00:00Z")),
    ("delete", "item-3"),
]
"""Of two files with one id the older one has it, wherever each lies."""


def play(
    git: Callable[..., str], workspace: Workspace, script: list[tuple[str, Any]], clock: list[datetime]
) -> list[str]:
    """Do the steps, each a commit of its own; return the commits."""
    commits = []
    for verb, what in script:
        clock[0] += timedelta(days=3)
        if verb == "put":
            with workspace.store.batch("some") as batch:
                for item in {item.id: item for item in what}.values():
                    batch.put(item)
        elif verb == "delete" and workspace.store.get(what) is not None:
            workspace.store.delete(what)
        elif verb == "hand":
            path = workspace.root / "ContextMemory" / what[0]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(what[1] + "\n")
            git(workspace.root, "add", "-A")
            git(workspace.root, "commit", "--allow-empty", "-qm", "by hand")
        workspace.store.flush(adopt=False)
        head = workspace.repository.head().commit
        assert head is not None
        commits.append(head)
    return list(dict.fromkeys(commits))


def facts_of(answer: Recall) -> list[tuple[object, ...]]:
    """What an answer says."""
    facts: list[tuple[object, ...]] = [
        (hit.item.id, hit.item.path, hit.item.content, hit.item.timestamp, hit.score) for hit in answer.hits
    ]
    return [*facts, (answer.partial, answer.more, answer.cut, tuple(sorted(answer.duplicates.items())))]


def checked_out(
    git: Callable[..., str], workspace: Workspace, commit: str, place: Path, now: datetime, engine: str
) -> Workspace:
    """A fresh checkout of a commit, whose files have the commit's time."""
    git(workspace.root, "worktree", "add", "--detach", "--quiet", str(place), commit)
    for path in place.rglob("*"):
        os.utime(path, (now.timestamp(), now.timestamp()))
    fresh = open_workspace(place, watch=False, settings={"index.engine": engine})
    fresh.store.reindex()
    return fresh


def compare(past: Past, fresh: Workspace) -> None:
    """Ask both the same."""
    helpers = Helpers(relevance=lambda: relevance_of(fresh.settings.review))
    recall = Recaller(fresh.store, fresh.settings.recall.preset, lambda: past.now, fresh.kinds, helpers=helpers)
    for query in QUESTIONS:
        assert facts_of(past.recall.search(query)) == facts_of(recall.search(query)), (past.commit, query)
    assert past.store.count() == fresh.store.count()
    assert [one.path for one in past.store.problems()] == [one.path for one in fresh.store.problems()]


@pytest.mark.parametrize("engine", ["whoosh", "sqlite"])
def test_a_revision_answers_as_a_fresh_checkout_does(
    engine: str, git: Callable[..., str], tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B1: ids, order and scores are those of a checkout of that commit, for random histories, with either engine."""
    clock = [START]
    monkeypatch.setattr("memfs.workspace.utc_now", lambda: clock[0])

    @settings(
        max_examples=settings.default.max_examples // 16,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
        database=None,
        derandomize=True,
    )
    @given(steps)
    @example(TWINS)
    def holds(script: list[tuple[str, Any]]) -> None:
        clock[0] = START
        folder = tmp_path_factory.mktemp("history")
        chosen = {"index.engine": engine, "history.commit": "manual"}
        with open_workspace(folder / "w", create=True, watch=False, settings=chosen) as workspace:
            commits = play(git, workspace, script, clock)
            for number, commit in enumerate(reversed(commits)):
                past = workspace.teams.past.at(commit)
                with checked_out(git, workspace, commit, folder / str(number), past.time, engine) as fresh:
                    compare(past, fresh)

    holds()

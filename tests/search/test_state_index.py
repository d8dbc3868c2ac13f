"""The index of state documents finds by what documents are about, at a cost that does not grow with them (S13)."""

from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from benchmarks import state_corpus as corpus
from memfs.catalog.database import FILE
from memfs.errors import IndexUnavailable
from memfs.model.state_facts import StateQuery, StateRow, describe
from memfs.search import state_index
from memfs.search.state_index import StateIndex


@pytest.fixture
def index(tmp_path: Path) -> StateIndex:
    """An index with five iterations."""
    made = StateIndex(tmp_path / "cache")
    for number in range(1, 6):
        made.learn(rows(number))
    return made


def rows(number: int, sha256: str = "1") -> list[StateRow]:
    """What is known of an iteration's documents."""
    return [
        StateRow(facts=describe(path, values), sha256=sha256)
        for path, values in corpus.iteration_documents(number, closed=number < 5).items()
    ]


QUESTIONS = [
    StateQuery(kinds=("agent_output",), agents=("Judge",), newest=True, limit=1),
    StateQuery(kinds=("state_update",), newest=True, limit=1),
    StateQuery(kinds=("state_update",), start=corpus.opening(2), end=corpus.opening(3)),
    StateQuery(kinds=("hypothesis",), names=("H 2-1",)),
    StateQuery(kinds=("hypothesis",), parents=("H 2-1",)),
    StateQuery(hypotheses=("H 2-1",)),
    StateQuery(kinds=("state_update",), components=("ranking",), newest=True, limit=1),
    StateQuery(iterations=(3,)),
    StateQuery(iterations=(3,), kinds=("agent_output",), agents=("Judge", "Scout")),
]


@pytest.mark.parametrize("question", QUESTIONS)
def test_no_question_by_time_name_or_iteration_reads_a_whole_table(index: StateIndex, question: StateQuery) -> None:
    """Every lookup goes by an index of the database, and one for the newest sorts nothing (S13)."""
    sql, values = state_index.documents(question)
    plan = index._base.ask(lambda base: [row[3] for row in base.execute(f"EXPLAIN QUERY PLAN {sql}", values)])
    assert not [step for step in plan if step.startswith("SCAN")]
    if question.limit == 1:
        assert not [step for step in plan if "TEMP B-TREE" in step]
    assert index.find(question)


def test_figures_are_found_by_name_agent_iteration_and_nearness(index: StateIndex) -> None:
    """Figures are looked up by an index, too (S13)."""
    asked: list[str] = []
    index._base.ask(lambda base: base.set_trace_callback(asked.append))
    assert [one.value for one in index.metrics(["yield"], ["Judge"], [3])] == [3.003] * 3
    assert index.iterations_with("meta_review") == [1, 2, 3, 4]
    for sql in asked[-2:]:
        plan = index._base.ask(lambda base, s=sql: [row[3] for row in base.execute(f"EXPLAIN QUERY PLAN {s}")])
        assert not [step for step in plan if step.startswith("SCAN")], sql
    start, end = corpus.opening(2), corpus.opening(2) + timedelta(minutes=2)
    assert len(index.metrics(["total_hypotheses"], start=start, end=end)) == 2
    near = index.near({("", "total_hypotheses"): 16.0}, 1)
    assert {row.facts.iteration for row in index.rows([one.key for one in near])} == {3, 4}


def test_learning_again_replaces_and_forgetting_removes(index: StateIndex) -> None:
    """What was known under a path is gone with its names and figures; counts agree."""
    before = index.count()
    path, values = next(iter(corpus.iteration_documents(2).items()))
    changed = describe(path, {**values, "status": "open"})
    index.learn([StateRow(facts=changed, sha256="2")])
    assert index.count() == before
    assert index.newest_iteration("open") == 5
    assert index.iterations_with("system_state", "open") == [2, 5]
    index.forget([row.path for row in rows(2)])
    assert index.count() == before - len(rows(2))
    assert index.find(StateQuery(hypotheses=("H 2-1",))) == []
    assert index.metrics(["yield"], ["Judge"], [2]) == []


def test_an_archived_document_keeps_its_row(index: StateIndex) -> None:
    """A row says which archive holds its document (S15)."""
    row = rows(1)[0]
    index.learn([replace(row, archive="2100-01")])
    assert index.in_archive("2100-01") == [row.path]
    assert index.row("unknown") is None


def test_threads_and_a_forked_child_share_one_index(index: StateIndex) -> None:
    """Writers in several threads lose nothing, and a child goes on with a connection of its own."""
    threads = [threading.Thread(target=index.learn, args=(rows(number),)) for number in range(6, 12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    child = os.fork()
    if child == 0:
        index.learn(rows(12))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert index.newest_iteration() == 12
    assert index.count() == sum(len(rows(number)) for number in range(1, 13))


def test_a_file_of_another_version_is_started_over(index: StateIndex, tmp_path: Path) -> None:
    """What another version of memfs wrote is not misread: the index begins empty."""
    index.close()
    with closing(sqlite3.connect(tmp_path / "cache" / FILE)) as base:
        base.execute("PRAGMA user_version = 99")
    assert (index.count(), index.notes()) == (0, {})
    index.learn(rows(1))
    assert index.newest_iteration() == 1


def test_a_file_in_its_place_is_not_taken_for_the_whole(index: StateIndex, tmp_path: Path) -> None:
    """What was deleted after a look answers with an error, not with nothing, until the next look."""
    index.mark_complete()
    assert index.count()
    for path in (tmp_path / "cache").iterdir():
        path.unlink()
    for _ in range(2):
        with pytest.raises(IndexUnavailable, match="begun again"):
            index.find(StateQuery(iterations=(3,)))
    assert index.notes() == {}
    index.learn(rows(3))
    index.mark_complete()
    assert index.find(StateQuery(iterations=(3,)))


def test_a_damaged_row_is_an_error_with_a_remedy(index: StateIndex, tmp_path: Path) -> None:
    """A flipped bit in what a row says of its document ends in no traceback."""
    index.close()
    with closing(sqlite3.connect(tmp_path / "cache" / FILE)) as base, base:
        base.execute("UPDATE documents SET facts = replace(facts, '{', 'z')")
    for question in (lambda: list(index.find(StateQuery(iterations=(3,)))), index.iterations):
        with pytest.raises(IndexUnavailable, match="memfs admin reindex"):
            question()


def test_names_that_no_database_takes_are_kept(index: StateIndex) -> None:
    """A lone surrogate, which JSON may hold, neither fails nor hides the document."""
    path, _ = next(iter(corpus.iteration_documents(2).items()))
    odd = path.replace("system_state.json", "hypotheses/x.json")
    index.learn([StateRow(facts=describe(odd, {"id": "bad \ud800 name", "state": "\udfff"}))])
    assert [row.facts.name for row in index.find(StateQuery(names=("bad \ud800 name",)))] == ["bad \ud800 name"]

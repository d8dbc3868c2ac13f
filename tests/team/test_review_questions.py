"""Pinned questions: a review says how their answers change, and fails where an expected one goes (B1, B4)."""

from __future__ import annotations

from pathlib import Path

import pytest
from changes import Team, codes

from memfs.errors import HistoryUnavailable
from memfs.team.review import Reviews, questions_of
from memfs.team.review_report import side_of

FILE = "ContextMemory/configuration/questions.yaml"
PINNED = """questions:
- ask: Which database do we use for transactions?
  expect: [database]
  limit: 2
- ask: Where is the anchor?
"""


@pytest.fixture
def team(tmp_path: Path) -> Team:
    """A team that pins two questions."""
    team = Team(tmp_path / "team")
    team.item("semantic/database", "We use PostgreSQL as the database for transactions.")
    team.write(FILE, PINNED)
    team.commit()
    team.branch()
    return team


def test_answers_that_stay_are_told_as_that(team: Team) -> None:
    """A change that has nothing to do with the questions changes no answer."""
    team.item("semantic/fresh", "Reports are written on Fridays.")
    team.commit()
    report = team.review()
    assert [(one.ask[:5], one.differs, one.missing) for one in report.questions] == [
        ("Which", False, ()),
        ("Where", False, ()),
    ]
    assert report.findings == ()


def test_an_expected_answer_that_goes_is_an_error(team: Team) -> None:
    """Taking away what an answer rests on fails the check, and names the memory (B4)."""
    (team.root / "ContextMemory/memories/semantic/2026-03/database.yaml").unlink()
    team.commit()
    report = team.review()
    assert codes(report) == {("AnswerBroken", "error")}
    (found,) = report.findings
    assert (found.id, found.path, report.failed()) == ("database", FILE, True)


def test_an_answer_that_was_missing_before_is_a_warning(team: Team) -> None:
    """What was not answered before the change either is no fault of the change."""
    team.write(FILE, PINNED.replace("[database]", "[database, nobody]"))
    team.commit("Pin more")
    team.git("branch", "--force", "main")
    team.item("semantic/fresh", "Reports are written on Fridays.")
    team.commit()
    assert codes(team.review()) == {("AnswerMissing", "warning")}


def test_a_new_expectation_must_hold(team: Team) -> None:
    """A question that the change itself pins is asked; the order of answers and changed texts are compared (B4)."""
    team.item("semantic/database", "We use PostgreSQL 16 as the database for transactions.")
    team.item("semantic/second", "The second database for transactions is a replica, we use it for reports.")
    team.commit()
    (first, *_) = team.review().questions
    assert first.differs
    assert first.changed == ("database",)
    assert set(first.after) == {"database", "second"}


def test_a_file_of_questions_that_is_broken_is_found(team: Team) -> None:
    """An invalid file is an error with its line, and no question is asked."""
    team.write(FILE, "questions:\n- ask: x\n  expects: [y]\n")
    team.commit()
    report = team.review()
    assert [(row.code, row.path, row.line) for row in report.findings] == [("SchemaInvalid", FILE, 3)]
    assert report.questions == ()


def test_a_question_is_asked_once(team: Team) -> None:
    """Of questions with the same words the last one counts."""
    team.write(FILE, "questions:\n- ask: one\n- ask: ' one '\n  limit: 3\n")
    commit = team.commit()
    side = side_of(team.reviews()._repository, commit)
    assert [(row.ask, row.limit) for row in questions_of(side)] == [("one", 3)]


def test_the_questions_are_asked_of_what_is_staged(team: Team) -> None:
    """Before a commit the answers are those of the index, and not of HEAD or of the files beside it (B4, K8)."""
    (team.root / "ContextMemory/memories/semantic/2026-03/database.yaml").unlink()
    team.item("semantic/fresh", "The anchor of reports is Friday.")
    (team.root / "ContextMemory/memories/semantic/2026-03/link.yaml").symlink_to("fresh.yaml")
    team.git("add", "--all")
    team.item("semantic/left", "Transactions and the anchor: not staged.")
    before = {path: path.stat().st_mtime_ns for path in (team.root / ".git").rglob("*") if "memfs" not in path.parts}
    report = team.reviews().staged()
    assert ("AnswerBroken", "error") in codes(report)
    first, second = report.questions
    assert (first.before, first.after, first.missing) == (("database",), (), ("database",))
    assert (second.before, set(second.after)) == (("anchor",), {"anchor", "fresh"})
    after = {path: path.stat().st_mtime_ns for path in (team.root / ".git").rglob("*") if "memfs" not in path.parts}
    assert after == before
    head = team.git("rev-parse", "HEAD")
    team.git("commit", "--quiet", "--message", "Go")
    assert [one.after for one in team.review(f"{head.strip()}..HEAD").questions] == [(), second.after]


def test_questions_of_the_first_commit_are_asked(tmp_path: Path) -> None:
    """Where nothing was committed yet, what is staged answers alone."""
    team = Team(tmp_path / "new")
    team.git("checkout", "--quiet", "--orphan", "new")
    team.write(FILE, PINNED)
    team.git("add", "--all")
    assert [(one.before, one.after) for one in team.reviews().staged().questions] == [(None, ()), (None, ("anchor",))]


def test_what_cannot_be_asked_is_said(team: Team) -> None:
    """Where the past cannot be asked, the rest is reviewed, and a warning says why."""

    class Broken:
        def over(self, *_: object) -> None:
            raise HistoryUnavailable("no past here", hint="look")

    team.item("semantic/fresh", "Reports are written on Fridays.")
    team.commit()
    reviews = team.reviews()
    report = Reviews(reviews._repository, reviews._settings, Broken()).report("main..HEAD")  # type: ignore[arg-type]
    assert codes(report) == {("NotAsked", "warning")}
    assert [change.id for change in report.items] == ["fresh"]

"""What a session's working memory leaves behind when the session ends (C7)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kit.patience import LONG
from memfs import Conflict, MemoryItem, Query, QueryInvalid, Workspace
from memfs.learning import consolidation
from memfs.model import Link, Origin
from memfs.model.time import parse_time, utc_now
from memfs.store import reader

pytestmark = pytest.mark.usefixtures("learning_written")

Opened = Callable[..., Workspace]


@pytest.fixture(autouse=True)
def _unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is, patterns are learned before a session ends."""
    monkeypatch.setattr(consolidation, "_SETTLE_SECONDS", LONG)


@pytest.fixture
def workspace(opened: Opened) -> Workspace:
    """An empty workspace."""
    return opened()


def work(workspace: Workspace, *texts: str, session: str = "s1", **fields: Any) -> list[MemoryItem]:
    """Store working memories of a session."""
    origin = Origin(session=session, agent="coder")
    start = parse_time("2026-03-01T10:00") + timedelta(minutes=workspace.store.count())
    timed = [(text, {"timestamp": start + timedelta(minutes=number), **fields}) for number, text in enumerate(texts)]
    return [workspace.store.put(MemoryItem(text, "working", origin=origin, **given)) for text, given in timed]


def left(workspace: Workspace) -> list[str]:
    """The contents of the working memories there are."""
    return sorted(item.content for item in workspace.store.select(Query(types=frozenset({"working"}), limit=1000)))


def test_what_matters_is_promoted_and_all_is_cleared(workspace: Workspace) -> None:
    """Decisions, important and repeated ones and patterns become semantic; the session's memory is empty then (C7)."""
    work(workspace, "We decided to use PostgreSQL for transactions", tags=("db",), context={"project": "shop"})
    work(workspace, "looked at the log file", "Fixed.", "Released")
    work(workspace, "Implemented JWT authentication with RS256")
    work(workspace, "the carrier closes at noon", importance=3.0)
    work(workspace, "The build is red.", "the build is red", tags=("ci",))
    work(workspace, *(f"opened ticket {number} for review" for number in (11, 12, 13)))
    work(workspace, "We decided to leave this", session="s2")

    done = workspace.consolidation.run("s1")

    kept = {one.why: one.item for one in done.promoted}
    assert {why: item.content.splitlines()[0] for why, item in kept.items()} == {
        "decision": "We decided to use PostgreSQL for transactions",
        "outcome": "Implemented JWT authentication with RS256",
        "important": "the carrier closes at noon",
        "repeated": "the build is red",
        "pattern": "opened ticket {variable} for review (3 times)",
    }
    assert (done.read, len(done.cleared), done.pinned, done.left) == (11, 11, (), {})
    assert left(workspace) == ["We decided to leave this"]
    decision = workspace.store.find(kept["decision"].id)
    assert (decision.type, decision.tags, decision.context) == ("semantic", ("db",), {"project": "shop"})
    assert decision.metadata["promoted_from"] == "working"
    assert decision.metadata["promoted_as"] == "decision"
    assert (decision.origin.session, decision.origin.agent) == ("s1", "coder")
    assert kept["important"].importance == 3.0
    assert "- opened ticket 12 for review" in kept["pattern"].content


def test_a_second_run_changes_nothing(workspace: Workspace) -> None:
    """Ending a session twice, or one that never was, does nothing (C7)."""
    work(workspace, "We decided to use PostgreSQL")
    first = workspace.consolidation.run("s1")
    count = workspace.store.count()

    second = workspace.consolidation.run("s1")

    assert len(first.promoted) == 1
    assert (second.read, second.promoted, second.cleared) == (0, (), ())
    assert workspace.consolidation.run("never").read == 0
    assert workspace.store.count() == count


def test_one_commit_that_can_be_taken_back(opened: Opened, git: Callable[..., str]) -> None:
    """With working memory in git, promoting and clearing is one commit, which ``git revert`` takes back whole (C7)."""
    workspace = opened(**{"working.in_git": True})
    work(workspace, "We decided to use PostgreSQL", "looked around")
    workspace.store.flush()

    workspace.consolidation.run("s1")
    flushed = workspace.store.flush()

    assert len(flushed.commits) == 1
    message = git(workspace.root, "log", "-1", "--format=%B")
    assert message.startswith("Consolidate session s1: keep 1 of 2 working memories")
    assert "Memfs-Source: consolidation" in message
    git(workspace.root, "revert", "--no-edit", "HEAD")
    workspace.store.refresh()
    assert left(workspace) == ["We decided to use PostgreSQL", "looked around"]
    assert workspace.recaller.search("PostgreSQL").hits[0].item.type == "working"


def test_pinned_ones_are_not_touched(workspace: Workspace) -> None:
    """A pinned working memory is neither promoted nor cleared (M3, C7)."""
    (pinned,) = work(workspace, "We decided to keep this at hand", pinned=True)
    work(workspace, "looked around")

    done = workspace.consolidation.run("s1")

    assert (done.pinned, done.promoted) == ((pinned.id,), ())
    assert left(workspace) == ["We decided to keep this at hand"]
    assert workspace.consolidation.clear("s1") == 0


def test_use_is_folded_into_importance(workspace: Workspace) -> None:
    """What was recalled often is important, weighs more for it, and its counts end with it (M3, C7)."""
    (often, seldom) = work(workspace, "the staging password lives in the vault", "the office has a blue door")
    for _ in range(10):
        workspace.usage.touch([often.id], utc_now())

    done = workspace.consolidation.run("s1")

    assert [one.why for one in done.promoted] == ["important"]
    assert done.promoted[0].item.importance == pytest.approx(1.05**10)
    assert set(done.cleared) == {often.id, seldom.id}
    assert workspace.usage.of([often.id]) == {}


def test_what_is_known_is_brought_up_to_date(workspace: Workspace) -> None:
    """A decision that is in lasting memory already is not stored a second time; its scope decides (C7)."""
    text = "We decided to use PostgreSQL"
    known = workspace.store.put(MemoryItem(text + ".", "semantic", tags=("old",)))
    other = workspace.store.put(MemoryItem(text, "semantic", context={"project": "else"}))
    work(workspace, text, tags=("new",), importance=2.0)

    (one,) = workspace.consolidation.run("s1").promoted

    assert (one.known, one.item.id) == (True, known.id)
    after = workspace.store.find(known.id)
    assert (after.tags, after.importance) == (("old", "new"), 2.0)
    assert after.metadata["promoted_in"] == ["s1"]
    assert workspace.store.find(other.id) == other


def test_links_lead_to_what_is_still_there(workspace: Workspace) -> None:
    """Links to lasting items are kept; those to cleared working memory are not."""
    fact = workspace.store.put(MemoryItem("a fact", "semantic"))
    (gone,) = work(workspace, "looked around")
    work(workspace, "We decided to use PostgreSQL", links=(Link(to=fact.id), Link(to=gone.id)))

    (one,) = workspace.consolidation.run("s1").promoted

    assert [link.to for link in one.item.links] == [fact.id]


def test_sessions_named_in_metadata_only(workspace: Workspace) -> None:
    """Working memory that names its session as seed 003 does, in ``metadata.session_id``, belongs to it (C1, C7)."""
    workspace.store.put(MemoryItem("met on Tuesday", "working", metadata={"session_id": "s-9"}))
    workspace.store.put(MemoryItem("We decided to go by train", "working", metadata={"session_id": "s-9"}))
    workspace.store.put(MemoryItem("of another one: s-9", "working", metadata={"session_id": "s-8"}))

    done = workspace.consolidation.run("s-9")

    assert [one.item.origin.session for one in done.promoted] == ["s-9"]
    assert left(workspace) == ["of another one: s-9"]


def test_a_pattern_found_before_is_linked(workspace: Workspace) -> None:
    """What a session did repeatedly is linked to the pattern that was learned from it (M2, C7)."""
    for item in work(workspace, *(f"opened ticket {number} for review" for number in (11, 12, 13))):
        workspace.behaviours.fire("memory_stored", {"item": item})

    (one,) = workspace.consolidation.run("s1").promoted

    (pattern,) = workspace.patterns.all()
    assert pattern.data["occurrences"] == 3
    assert [(link.to, link.relation) for link in one.item.links] == [(pattern.id, "pattern")]


def test_what_cannot_be_kept_stays(workspace: Workspace) -> None:
    """A working memory that is broken at present, or may not be stored, is not cleared, and named with the reason."""
    (kept, broken) = work(workspace, "We decided to use PostgreSQL", "We decided to break this")
    path = workspace.root / broken.path
    path.write_text(path.read_text().replace("content:", "contents:"))

    done = workspace.consolidation.run("s1")

    assert done.cleared == (kept.id,)
    assert list(done.left) == [broken.id]
    assert path.exists()


def test_a_reason_for_a_secret_goes_with_it(workspace: Workspace) -> None:
    """What was stored with a reason for a secret is promoted with it."""
    text = "We decided to use the key AKIA" + "Z7XQ4WJ2M5N8R3TB"
    workspace.store.put(
        MemoryItem(text, "working", origin=Origin(session="s1")), allow_secret="an example of the documentation"
    )

    (one,) = workspace.consolidation.run("s1").promoted

    assert one.item.content == text


def test_clearing_keeps_nothing_and_says_how_many(workspace: Workspace) -> None:
    """``clear`` removes a session's working memory and promotes nothing (C1)."""
    work(workspace, "We decided to use PostgreSQL", "looked around")
    work(workspace, "elsewhere", session="s2")

    assert workspace.consolidation.clear("s1") == 2
    assert workspace.consolidation.clear("s1") == 0
    assert left(workspace) == ["elsewhere"]


@pytest.mark.parametrize("session", ["", "  "])
def test_a_session_is_named(workspace: Workspace, session: str) -> None:
    """Without a name nothing is cleared: working memory of no session is nobody's to end."""
    workspace.store.put(MemoryItem("of no session", "working"))

    with pytest.raises(QueryInvalid, match="session"):
        workspace.consolidation.run(session)
    with pytest.raises(QueryInvalid, match="session"):
        workspace.consolidation.clear(session)


def test_more_than_a_query_brings_are_all_read(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session with more working memories than one question may bring back is read whole (C7)."""
    monkeypatch.setattr(reader, "MOST", 4)
    for day in range(1, 10):
        work(workspace, f"note of day {day}: {'x' * day}", timestamp=f"2026-03-0{day}")

    assert workspace.consolidation.clear("s1") == 9


def test_others_that_write_meanwhile(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that changes while the session is ended is read again; one that never rests is a conflict (L7)."""
    (note,) = work(workspace, "We decided to use PostgreSQL")
    run = consolidation.Consolidation._significant
    changes = 0

    def changing(self: Any, items: Any) -> Any:
        nonlocal changes
        changes += 1
        workspace.store.put(workspace.store.find(note.id).replace(importance=1 + changes / 100))
        return run(self, items)

    monkeypatch.setattr(consolidation.Consolidation, "_significant", changing)
    with pytest.raises(Conflict, match="keep changing"):
        workspace.consolidation.run("s1")
    assert changes == 5
    monkeypatch.setattr(consolidation.Consolidation, "_significant", run)
    assert len(workspace.consolidation.run("s1").cleared) == 1


def test_the_end_of_a_session_is_reported_once_and_only_when_something_was_done(workspace: Workspace) -> None:
    """The occasion ``session_ended`` follows a consolidation (C7)."""
    ended: list[str] = []
    workspace.behaviours.on("session_ended", lambda facts: ended.append(facts["session"]))
    work(workspace, "We decided to use PostgreSQL")

    workspace.consolidation.run("s1")
    assert ended == ["s1"]


def test_the_word_of_many_is_at_most_an_agents(workspace: Workspace) -> None:
    """A single memory keeps who vouches for it; of several the least counts, at most an agent."""
    work(workspace, "We decided to use PostgreSQL")
    work(workspace, "the build is red", "the build is red.")
    work(workspace, "we agreed on the plan", trust="tool")

    trusts = {one.item.content: one.item.trust for one in workspace.consolidation.run("s1").promoted}

    assert trusts == {
        "We decided to use PostgreSQL": "human",
        "the build is red.": "agent",
        "we agreed on the plan": "tool",
    }


def test_it_ends_after_a_restart(opened: Opened, tmp_path: Path) -> None:
    """Another process ends the session that a first one worked in (M7, C7)."""
    first = opened(tmp_path / "W")
    work(first, "We decided to use PostgreSQL")
    first.close()

    second = opened(tmp_path / "W")

    assert len(second.consolidation.run("s1").promoted) == 1


def test_other_words_under_the_same_id_are_kept_too(workspace: Workspace) -> None:
    """A working memory whose id and title come back with other words is promoted again, not cleared unread."""
    for text in ("We decided to use Redis", "We decided to use RabbitMQ"):
        work(workspace, text, id="w1", title="Queue")
        workspace.consolidation.run("s1")
    kept = workspace.store.select(Query(types=frozenset({"semantic"})))
    assert sorted(item.content for item in kept) == ["We decided to use RabbitMQ", "We decided to use Redis"]


@pytest.mark.parametrize("field", ["title", "data"])
def test_same_words_of_other_things_are_kept_apart(workspace: Workspace, field: str) -> None:
    """Under another title, or with other data, the same words say something else."""
    values: list[Any] = ["Alpha host", "Beta host"] if field == "title" else [{"port": 1}, {"port": 2}]
    for value in values:
        work(workspace, "We decided to run Debian 12", **{field: value})
    done = workspace.consolidation.run("s1")
    assert [getattr(one.item, field) for one in done.promoted] == values
    work(workspace, "We decided to run Debian 12", **{field: values[0]})
    assert [one.known for one in workspace.consolidation.run("s1").promoted] == [True]
    assert len(workspace.store.select(Query(types=frozenset({"semantic"})))) == 2


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Please add a currency converter. Always use Decimal for money.", []),
        ("Add caching instead of polling, and make sure that it never blocks", []),
        ("Login never works for people who sign in with SSO", []),
        ("Find out what the root cause was", []),
        ("We decided to use Redis for sessions. Please add it.", ["We decided to use Redis for sessions."]),
        ("The root cause was a stale DNS entry.", ["The root cause was a stale DNS entry."]),
    ],
)
def test_what_a_person_asked_for_is_no_decision(workspace: Workspace, text: str, kept: list[str]) -> None:
    """Of a person's message only what states something lasts; what it asked for then does not (C6, C7)."""
    workspace.store.put(MemoryItem(text, "working", origin=Origin(session="s1", role="user"), trust="human"))
    assert [one.item.content for one in workspace.consolidation.run("s1").promoted] == kept
    assert not left(workspace)

"""Which commit broke an answer (B1, B2)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memfs import MemoryItem, Workspace
from memfs.errors import HistoryUnavailable, IdInvalid, QueryInvalid
from memfs.model import Origin, Query
from memfs.team.bisect import BisectResult, Expectation

Opened = Callable[..., Workspace]
Git = Callable[..., str]
DATABASE = "which database => use-postgresql"


@pytest.fixture
def workspace(opened: Opened) -> Workspace:
    """One with a decision, tagged ``good``, and commits after it; one in the middle takes its word away."""
    workspace = opened()
    put(workspace, "use-postgresql", "PostgreSQL is our database.", agent="planner", session="s1")
    tag(workspace, "good")
    for number in range(7):
        if number == 4:
            put(workspace, "use-postgresql", "PostgreSQL holds our orders.", agent="tidier", session="night")
        put(workspace, f"lunch-{number}", f"Lunch {number} was soup.")
    return workspace


def put(workspace: Workspace, name: str, text: str, agent: str = "", session: str = "", **fields: object) -> str:
    """Store one item as a commit; the commit."""
    origin = Origin(agent=agent, session=session)
    workspace.store.put(MemoryItem(text, id=name, origin=origin, **fields), source="test")  # type: ignore[arg-type]
    return str(workspace.store.flush().commits[-1])


def tag(workspace: Workspace, name: str) -> None:
    """A tag at the present commit."""
    head = workspace.repository.head().commit
    (workspace.repository.git_dir / "refs/tags" / name).write_text(f"{head}\n")


def bisected(
    workspace: Workspace, expected: str, good: str = "good", bad: str = "HEAD", limit: int = 5
) -> BisectResult:
    """What a search finds."""
    return workspace.teams.bisect.find(Expectation.read(expected, Query(limit=limit)), good, bad)


def test_the_commit_its_agent_and_its_session_are_named(workspace: Workspace) -> None:
    """``QUERY => ID``: who broke it, in which session, by which change; nothing is written for it (B1, B2)."""
    head = workspace.repository.head().commit
    found = bisected(workspace, DATABASE)
    culprit = found.culprit
    assert culprit.agents == ("tidier",)
    assert culprit.sessions == ("night",)
    assert culprit.sources == ("test",)
    assert "PostgreSQL holds our orders" in culprit.revision.subject
    assert [what for what, _ in found.changes] == ["changed"]
    assert found.changes[0][1].endswith("/use-postgresql.yaml")
    assert (found.before[0], found.after) == ("use-postgresql", ())
    assert culprit.steps <= 5
    assert workspace.repository.head().commit == head
    assert workspace.store.pending().count == 0


def test_what_must_not_be_there_and_what_only_sank(workspace: Workspace) -> None:
    """``=> !ID`` finds who brought something in; a limit finds who pushed something down (B1)."""
    found = bisected(workspace, "soup => !lunch-4", limit=20)
    assert found.culprit.revision.subject.endswith("Lunch 4 was soup")
    tag(workspace, "soup")
    put(workspace, "better", "Soup for lunch: lunch of soup, soup, soup.", agent="cook", importance=9.0)
    first = workspace.teams.past.at("soup").recall.search(Query(text="lunch soup", limit=1)).hits[0].item.id
    pushed = bisected(workspace, f"lunch soup => {first}", good="soup", limit=1)
    assert pushed.culprit.agents == ("cook",)


def test_both_ends_are_asked_first(workspace: Workspace) -> None:
    """A good end where the expectation is not met, or a bad one where it is, is refused and named."""
    with pytest.raises(QueryInvalid, match="it brings nothing") as error:
        bisected(workspace, "pool => use-postgresql")
    assert error.value.field == "good"
    with pytest.raises(QueryInvalid, match="nothing broke") as error:
        bisected(workspace, DATABASE, bad="good")
    assert error.value.field == "bad"
    with pytest.raises(QueryInvalid, match="comes before") as error:
        bisected(workspace, "which database => !use-postgresql", good="HEAD", bad="good")
    assert "exchange" in error.value.hint
    with pytest.raises(HistoryUnavailable):
        bisected(workspace, DATABASE, good="nowhere")


def test_what_only_faded_was_broken_by_nobody(opened: Opened, git: Git) -> None:
    """All is asked at the time of the bad end: what is no longer fresh enough by then is said to have faded (B1)."""
    workspace = opened()
    (workspace.root / "memfs.toml").write_text('[recall]\npreset = "time_weighted"\n')
    git(workspace.root, "add", "-A")
    git(workspace.root, "commit", "-qm", "Weigh by time")
    old = datetime.now(UTC) - timedelta(days=20)
    put(workspace, "old", "The soup offer is a soup offer of soup.", timestamp=old)
    put(workspace, "new", "The soup of somebody, with bread, butter and an offer of more.")
    tag(workspace, "offered")
    later = (datetime.now(UTC) + timedelta(days=900)).isoformat()
    git(workspace.root, "commit", "-q", "--allow-empty", "-m", "Later", GIT_COMMITTER_DATE=later)
    with pytest.raises(QueryInvalid, match="not met by the same files at the later time") as error:
        bisected(workspace, "soup offer => new", good="offered", limit=1)
    assert error.value.field == "good"


def test_an_expectation_is_read_as_people_write_it() -> None:
    """The last arrow counts; anything else is refused with the form."""
    one = Expectation.read("a => b =>  !c ", Query(limit=3))
    assert (one.query.text, one.query.limit, one.id, one.absent, str(one)) == ("a => b", 3, "c", True, "a => b => !c")
    for text in ("which database", "=> id", "question =>", "question => !"):
        with pytest.raises(QueryInvalid, match="what is expected"):
            Expectation.read(text, Query())
    with pytest.raises(IdInvalid):
        Expectation.read("question => ../x", Query())


def test_settings_and_files_that_cannot_be_read(workspace: Workspace, git: Git) -> None:
    """A commit whose settings are broken is passed over, and reported where it may be the one."""
    root = workspace.root
    tag(workspace, "start")
    put(workspace, "fine", "All is fine.")
    (root / "ContextMemory/configuration").mkdir(exist_ok=True)
    kinds = root / "ContextMemory/configuration/kinds.yaml"
    before = kinds.read_bytes() if kinds.exists() else None
    kinds.write_text("kinds: [broken\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "Break the kinds")
    broken = git(root, "rev-parse", "HEAD").strip()
    git(root, "rm", "-qf", str(kinds)) if before is None else kinds.write_bytes(before)
    item = next(root.glob("ContextMemory/memories/semantic/*/lunch-3.yaml"))
    item.write_text(item.read_text().replace("soup", "stew"))
    git(root, "add", "-A")
    git(root, "commit", "-qm", "Stew it was")
    found = bisected(workspace, "soup => lunch-3", good="start", limit=20)
    assert found.culprit.revision.subject == "Stew it was"
    assert found.culprit.or_earlier == (broken,)


def test_a_branch_that_a_merge_brought(workspace: Workspace, git: Git, tmp_path: Path) -> None:
    """What broke on a branch is found there, not at the merge (B1)."""
    root = workspace.root
    tag(workspace, "fork")
    git(root, "switch", "-q", "-c", "side")
    item = next(root.glob("ContextMemory/memories/semantic/*/lunch-3.yaml"))
    item.write_text(item.read_text().replace("soup", "stew"))
    git(root, "commit", "-qam", "Stew on the side")
    guilty = git(root, "rev-parse", "HEAD").strip()
    git(root, "switch", "-q", "-")
    put(workspace, "meanwhile", "Meanwhile on the main line.")
    git(root, "merge", "-q", "--no-edit", "side")
    put(workspace, "later", "Later on.")
    found = bisected(workspace, "soup => lunch-3", good="fork", limit=20)
    assert found.culprit.commit == guilty
    git(root, "switch", "-q", "-c", "other", "good")
    put(workspace, "only-there", "Only the other branch has this fish.")
    with pytest.raises(QueryInvalid, match="never was"):
        bisected(workspace, "fish => only-there", good="other", bad="side")

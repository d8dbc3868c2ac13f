"""Mounts: other workspaces are asked too, and never written (P7)."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kit.patience import until
from memfs import ItemNotFound, MemfsError, MemoryItem, MemoryLayer, SettingInvalid, Workspace
from memfs.context import mounts as mounting
from memfs.context.builtin_sources import ConventionsMemory, JointMemory, SemanticMemory
from memfs.errors import StorageIO
from memfs.model import Link, Origin, Query
from memfs.model.episode import Action, Episode, Outcome, Rule, StateSnapshot

Opened = Callable[..., Workspace]
Team = Callable[..., Path]

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def _item(text: str, name: str, **more: object) -> MemoryItem:
    return MemoryItem(text, **{"id": name, "timestamp": NOON, **more})  # type: ignore[arg-type]


POOL = _item("The connection pool of the billing service holds 20 connections.", "pool")
WORKERS = _item("Our pool of workers is empty.", "workers")


@pytest.fixture
def team(opened: Opened, tmp_path: Path) -> Team:
    """Make another workspace beside the test's own, with these items in it, and return its folder."""

    def make(*items: MemoryItem, name: str = "team-memory") -> Path:
        opened().close()
        target = tmp_path / name
        shutil.copytree(tmp_path / "workspace", target, symlinks=True)
        with opened(target) as workspace:
            for item in items:
                workspace.store.put(item)
        return target

    return make


@pytest.fixture
def mounted(opened: Opened) -> Callable[..., Workspace]:
    """Open the test's own workspace with mounts: ``mounted(team="../team-memory")``; the usual one by default."""

    def make(**paths: str) -> Workspace:
        named = paths or {"team": "../team-memory"}
        return opened(**{f"mounts__{name}": path for name, path in named.items()})

    return make


def _ids(workspace: Workspace, query: Query | str) -> list[str]:
    return [hit.item.id for hit in workspace.sources.mounts.recall.search(query).hits]


def _facts(folder: Path) -> dict[str, tuple[int, int, int, str]]:
    """Every name below a folder with its mode, its times of change and the digest of its bytes."""
    found = {}
    for path in (folder, *sorted(folder.rglob("*"))):
        facts = path.lstat()
        data = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        digest = hashlib.sha256(data).hexdigest()
        found[str(path.relative_to(folder))] = (facts.st_mode, facts.st_mtime_ns, facts.st_ctime_ns, digest)
    return found


def _problem(workspace: Workspace) -> str:
    (problem,) = workspace.sources.mounts.problems()
    assert problem.hint
    return f"{problem.code}: {problem.message}"


# -- recall -------------------------------------------------------------------------------------------------------
def test_recall_asks_a_mounted_workspace_and_says_whose_the_hits_are(team: Team, mounted: Opened) -> None:
    """P7: what another team noted is found, named by the mount, with its file, and at most reviewed."""
    team(POOL, _item("The pool by the office is closed.", "swim", trust="tool"))
    own = mounted()
    own.store.put(WORKERS)
    found = {hit.item.id: hit.item for hit in own.sources.mounts.recall.search("which pool").hits}
    assert {name: item.trust for name, item in found.items()} == {
        "workers": "human",
        "team:pool": "reviewed",
        "team:swim": "tool",
    }
    assert "20 connections" in (own.root / found["team:pool"].path).read_text()
    assert [hit.item.id for hit in own.recaller.search("which pool").hits] == ["workers"]


@pytest.mark.parametrize("engine", ["whoosh", "sqlite", "memory"])
def test_scores_are_those_of_one_workspace_that_holds_everything(team: Team, opened: Opened, engine: str) -> None:
    """P7: words are weighed over all items together, so that neither a large nor a small workspace is favoured."""
    theirs = [_item(f"The deploy of service {n} needs a token.", f"deploy{n}") for n in range(5)]
    ours = [_item("The deploy of the docs needs no token at all, ever.", "docs"), _item("Tokens rotate.", "rotate")]
    root, everything = team(*theirs), team(*theirs, *ours, name="everything")
    own = opened(**{"mounts.team": str(root), "index.engine": engine})
    every = opened(everything, **{"index.engine": engine})
    for item in ours:
        own.store.put(item)
    question = "which deploy needs a tokem"  # a slip that no workspace holds
    together = own.sources.mounts.recall.search(question)
    expected = {hit.item.id: hit.score for hit in every.recaller.search(question).hits}
    assert len(expected) == 7
    assert {hit.item.id.removeprefix("team:"): hit.score for hit in together.hits} == pytest.approx(expected)


def test_of_equals_the_own_item_wins_and_its_double_is_left_out(team: Team, mounted: Opened) -> None:
    """P7: what both hold is said once, by the workspace itself."""
    team(_item(POOL.content, "a-pool"))
    own = mounted()
    own.store.put(_item(POOL.content, "z-pool"))
    assert _ids(own, "billing pool") == ["z-pool", "team:a-pool"]
    answer = own.sources.mounts.recall.search(Query(text="billing pool", deduplicate=True))
    assert [hit.item.id for hit in answer.hits] == ["z-pool"]
    assert answer.duplicates == {"team:a-pool": "z-pool"}


def test_without_words_the_newest_of_all_come_first(team: Team, mounted: Opened) -> None:
    """An empty question brings the newest, no matter who has them; a path is one of the workspace's own."""
    team(_item("a", "third", timestamp=NOON), _item("b", "first", timestamp=NOON + timedelta(days=2)))
    own = mounted()
    own.store.put(_item("c", "second", timestamp=NOON + timedelta(days=1)))
    assert _ids(own, "") == ["team:first", "second", "team:third"]
    assert _ids(own, Query(text="", limit=1)) == ["team:first"]
    assert _ids(own, Query(text="", path="ContextMemory/memories")) == ["second"]


def test_several_questions_see_one_state_and_talks_stay_apart(team: Team, mounted: Opened) -> None:
    """Neighbours in a talk are lent from the same talk only, though both workspaces name a session alike."""
    lines = ["We met at the harbour.", "Which pier?", "The old one, with the crane."]
    team(*(_item(t, f"t{n}", origin=Origin(session="s", sequence=n, role="user")) for n, t in enumerate(lines)))
    own = mounted()
    own.store.put(_item("Nothing of the kind.", "o1", origin=Origin(session="s", sequence=1, role="user")))
    answers = own.sources.mounts.recall.search_many(["harbour", "crane"])
    assert "o1" not in {hit.item.id for answer in answers.values() for hit in answer.hits}
    assert answers["harbour"].hits[0].item.id == "team:t0"
    assert "team:t1" in {hit.item.id for hit in answers["harbour"].hits}


def test_links_of_a_mount_lead_to_its_own_items(team: Team, mounted: Opened) -> None:
    """An id of the mount is never taken for one of the workspace's own."""
    links = (Link(to="other", relation="contradicts"),)
    team(_item("Pools are for swimmers.", "swim", links=links, supersedes=("older",)))
    found = mounted().sources.mounts.find("team:swim")
    assert (found.links[0].to, found.supersedes) == ("team:other", ("team:older",))


def test_what_is_brought_back_is_counted_here_and_nowhere_else(team: Team, mounted: Opened) -> None:
    """Use of a mount's items counts for anyone who used them, so that they fade and come back by one's own use."""
    root = team(POOL)
    own = mounted()
    _ids(own, "billing")
    own.usage.flush()
    assert own.usage.of(["team:pool"])["team:pool"].count == 1
    assert not list(root.rglob("usage.db"))


def test_an_item_is_found_by_name_and_beginning(team: Team, mounted: Opened) -> None:
    """NAME:ID, and the error when there is none."""
    team(POOL)
    mounts = mounted().sources.mounts
    assert mounts.find("team:po").id == "team:pool"
    assert mounts.get("team:none") is None
    for reference, hint in {"team:pull": "team:pool", "taem:pool": "team", "pool": "the mounts are team"}.items():
        with pytest.raises(ItemNotFound) as refused:
            mounts.find(reference)
        assert hint in (refused.value.hint or "")


def test_an_empty_path_switches_a_mount_off(mounted: Opened, team: Team) -> None:
    """P7: so one command can do without what memfs.toml names."""
    team(POOL)
    own = mounted(team="")
    assert (_ids(own, "pool"), own.sources.mounts.names, own.sources.mounts.problems()) == ([], (), [])


# -- nothing is written -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("engine", ["whoosh", "sqlite", "memory"])
def test_no_byte_of_a_mount_changes(team: Team, opened: Opened, engine: str) -> None:
    """P7: neither its files, nor its .git, nor its state folder, though it is asked, warned from and closed."""
    root = team(POOL, _item("Agreed: tabs.", "tabs", memory_type="convention", status="accepted"))
    (root / "ContextMemory/memories/semantic/broken.yaml").write_text("content: [")
    shutil.rmtree(root / ".git/memfs", ignore_errors=True)
    for path in (root, *root.rglob("*")):
        path.chmod(path.stat().st_mode & ~0o222)
    before = _facts(root)
    own = opened(**{"mounts.team": "../team-memory", "index.engine": engine})
    assert _ids(own, "billing pool") == ["team:pool"]
    own.sources.mounts.find("team:pool")
    own.sources.mounts.states()
    JointMemory(own.sources).holding()
    JointMemory(own.sources).find_similar(StateSnapshot.create(context="pool"))
    own.close()
    assert _facts(root) == before
    for path in (root, *root.rglob("*")):
        path.chmod(path.stat().st_mode | 0o200)


def test_its_own_process_goes_on_beside(team: Team, mounted: Opened, opened: Opened) -> None:
    """The team writes while its workspace is mounted elsewhere; each write is seen, each removal too."""
    root = team(POOL)
    theirs = opened(root)
    own = mounted()
    assert _ids(own, "pool") == ["team:pool"]
    theirs.store.put(_item("A second pool.", "second"))
    assert set(_ids(own, "pool")) == {"team:pool", "team:second"}
    theirs.store.delete("pool")
    assert _ids(own, "pool") == ["team:second"]
    assert own.sources.mounts.get("team:pool") is None


# -- what may be mounted ------------------------------------------------------------------------------------------
def test_a_mount_that_is_gone_is_named_and_the_rest_works(team: Team, mounted: Opened, tmp_path: Path) -> None:
    """P7: the others answer, the answer says that something may be missing, and the mount comes back by itself."""
    root = team(POOL)
    own = mounted(team="../team-memory", gone="../nowhere")
    own.store.put(WORKERS)
    answer = own.sources.mounts.recall.search("pool")
    assert {hit.item.id for hit in answer.hits} == {"workers", "team:pool"}
    assert answer.partial
    assert _problem(own) == "WorkspaceNotFound: the mount 'gone' is left out: there is no such folder"
    root.rename(tmp_path / "nowhere")
    assert set(_ids(own, "pool")) == {"workers", "gone:pool"}
    (tmp_path / "nowhere").rename(root)
    assert set(_ids(own, "pool")) == {"workers", "team:pool"}


def _newer(root: Path) -> None:
    (root / "memfs.toml").write_text("format_version = 99\n")


def _bad_kinds(root: Path) -> None:
    (root / "ContextMemory/configuration/kinds.yaml").write_text("kinds: [no")


def _no_content(root: Path) -> None:
    shutil.rmtree(root / "ContextMemory")


def _linked_content(root: Path) -> None:
    (root / "ContextMemory").rename(root / "elsewhere")
    (root / "ContextMemory").symlink_to("elsewhere")


def _file(root: Path) -> None:
    shutil.rmtree(root)
    root.write_text("no folder")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_newer, "FormatUnsupported: the mount 'team' is left out: format_version: the workspace is of format 99"),
        (_bad_kinds, "ItemSyntaxError: the mount 'team' is left out: "),
        (_no_content, "WorkspaceNotFound: the mount 'team' is left out: there is no ContextMemory/ in it"),
        (_linked_content, "PathEscape: the mount 'team' is left out: 'ContextMemory' is a link or a file"),
        (_file, "WorkspaceNotFound: the mount 'team' is left out: there is no such folder"),
    ],
)
def test_what_cannot_be_mounted_is_named_with_a_remedy(
    team: Team, mounted: Opened, spoil: Callable[[Path], None], message: str
) -> None:
    """P7: a mount of a newer format, or otherwise invalid, costs its own hits alone."""
    spoil(team(POOL))
    own = mounted()
    own.store.put(WORKERS)
    assert _ids(own, "pool") == ["workers"]
    assert _problem(own).startswith(message)
    (state,) = own.sources.mounts.states()
    assert (state.name, state.items, bool(state.problem)) == ("team", None, True)


def test_a_workspace_of_another_user_counts_only_with_trust(
    team: Team, mounted: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P7, row 41: the command that would trust it is named, and does it."""
    from memfs import trust

    root = team(POOL)
    monkeypatch.setattr(mounting, "own_users", lambda: frozenset({os.getuid() + 1}))
    own = mounted()
    assert _ids(own, "pool") == []
    (problem,) = own.sources.mounts.problems()
    assert (problem.code, trust.command(root) in problem.hint) == ("RepoUntrusted", True)
    trust.grant(root)
    assert _ids(own, "pool") == ["team:pool"]


def test_a_link_that_is_turned_elsewhere_is_followed(team: Team, mounted: Opened, tmp_path: Path) -> None:
    """What the setting leads to now counts, and not what it led to once (P7)."""
    link = tmp_path / "current"
    first, second = team(POOL, name="one"), team(WORKERS, name="two")
    link.symlink_to(first)
    workspace = mounted(team="../current")
    assert _ids(workspace, "pool") == ["team:pool"]
    link.unlink()
    link.symlink_to(second)
    assert _ids(workspace, "pool") == ["team:workers"]
    link.unlink()
    link.symlink_to(tmp_path)
    assert _ids(workspace, "pool") == []
    assert [problem.message for problem in workspace.sources.mounts.refused()] == [
        "the mount 'team' is left out: there is no ContextMemory/ in it"
    ]


def test_itself_and_twice_the_same_folder_are_refused(team: Team, mounted: Opened, tmp_path: Path) -> None:
    """P7: no workspace answers itself, and none twice, whatever its path."""
    root = team(POOL)
    (tmp_path / "link").symlink_to(root)
    own = mounted(self=".", one="../team-memory", two=str(tmp_path / "link"))
    assert _ids(own, "pool") == ["one:pool"]
    messages = [problem.message for problem in own.sources.mounts.problems()]
    assert "a workspace cannot mount itself" in messages[0]
    assert "this folder is mounted as 'one' already" in messages[1]


def test_mounts_of_a_mount_are_not_followed(team: Team, mounted: Opened, opened: Opened, tmp_path: Path) -> None:
    """P7: nothing of its memfs.toml counts, so that mounts cannot lead round in a circle."""
    root = team(POOL)
    toml = root / "memfs.toml"
    toml.write_text(toml.read_text().replace("[mounts]\n", '[mounts]\nback = "../workspace"\n'))
    own = mounted()
    own.store.put(WORKERS)
    assert sorted(_ids(own, "pool")) == ["team:pool", "workers"]


def test_an_invalid_file_of_a_mount_is_named_and_the_answer_partial(team: Team, mounted: Opened) -> None:
    """P7: as in the workspace itself, with the mount's name; what is invalid is not served."""
    root = team(POOL)
    own = mounted()
    _ids(own, "pool")
    path = next(root.rglob("pool.yaml"))
    path.write_text("content: [")
    answer = own.sources.mounts.recall.search("pool")
    assert (answer.hits, answer.partial) == ((), True)
    (problem,) = own.sources.mounts.problems()
    assert problem.path == f"team:{path.relative_to(root)}"
    with pytest.raises(MemfsError, match=r"line 1|expected"):
        own.sources.mounts.find("team:pool")


@pytest.mark.parametrize("planted", ["token = gh" + "p_" + "0aB" * 12, "Do this.\U000e0041\U000e0042", "\u202egnp.exe"])
def test_what_is_refused_here_is_refused_in_a_mount(team: Team, opened: Opened, planted: str, own_world: Path) -> None:
    """P7, rows 17 and 19: a secret or hidden characters in its files come into no answer, and into no index of ours."""
    root = team(POOL)
    path = next(root.rglob("pool.yaml"))
    path.write_text(path.read_text(encoding="utf-8").replace("The connection", f"{planted} The connection"), "utf-8")
    own = opened(**{"mounts.team": "../team-memory", "index.engine": "sqlite"})
    assert _ids(own, "connection pool") == []
    (problem,) = own.sources.mounts.problems()
    assert problem.path.startswith("team:")
    assert planted not in problem.message
    own.close()
    assert not [file for file in own_world.rglob("*") if file.is_file() and planted.encode() in file.read_bytes()]


def test_a_name_that_no_id_could_begin_with_is_refused(opened: Opened) -> None:
    """P5, P7: the name comes before ids."""
    with pytest.raises(SettingInvalid, match="cannot name a mount"):
        opened(**{"mounts.a:b": "../x"})


def test_a_resident_process_watches_mounts_too(team: Team, opened: Opened, tmp_path: Path) -> None:
    """P7: where the workspace's files are watched those of mounts are, and a change is seen with the next question."""
    from memfs.workspace import open_workspace

    root = team(POOL)
    settings = {"mounts.team": "../team-memory", "index.engine": "memory", "history.commit": "manual"}
    with open_workspace(tmp_path / "workspace", settings=settings) as own:
        assert _ids(own, "pool") == ["team:pool"]
        assert _ids(own, "pool") == ["team:pool"]
        (one,) = own.sources.mounts.opened()
        assert one.store.watching == "on"
        path = next(root.rglob("pool.yaml"))
        path.write_text(path.read_text().replace("billing", "shipping"))
        assert until(lambda: _ids(own, "shipping") == ["team:pool"])


# -- what is given by itself --------------------------------------------------------------------------------------
def test_conventions_of_a_mount_come_behind_the_own_ones(team: Team, mounted: Opened) -> None:
    """P3, P7: agreed ones that fit the files, with the mount as their origin; a proposal stays there."""
    agreed = {"memory_type": "convention", "status": "accepted"}
    team(
        _item("Log in JSON.", "json", **agreed),
        _item("Name tests by behaviour.", "names", data={"scope": ["tests/**"]}, **agreed),
        _item("Use tabs.", "tabs", memory_type="convention", status="proposed"),
        _item("By an agent.", "agents", trust="agent", **agreed),
    )
    own = mounted()
    own.store.put(_item("Write British English.", "english", **agreed))
    source = ConventionsMemory(JointMemory(own.sources))
    entries = source.select(StateSnapshot.create(files=["src/log.py"])).entries
    assert [(one.id, one.trust, one.origin) for one in entries] == [
        ("english", "human", ""),
        ("team:json", "reviewed", "mount team"),
    ]


def _failed(files: list[str], context: str, error: str) -> Episode:
    state = StateSnapshot.create(files=files, context=context)
    return Episode.create(state, Action("edit", f"Edited for: {context}"), Outcome.FAILURE, error)


def test_failures_of_a_mount_warn_by_what_was_done_not_by_a_files_name(
    team: Team, mounted: Opened, opened: Opened
) -> None:
    """P3, P7: the same undertaking warns across workspaces; a file of the same name elsewhere is another file."""
    root = team()
    with opened(root) as theirs:
        theirs.sources.episodes.record(
            _failed(["src/main.py"], "Migrate the ledger table to decimal amounts", "the lock timed out")
        )
    own = mounted()
    episodes = JointMemory(own.sources)
    again = StateSnapshot.create(files=["db/ledger.sql"], context="Migrate the ledger table to decimal amounts")
    (warned,) = episodes.find_similar(again)
    assert (warned.id.partition(":")[0], warned.error_message) == ("team", "the lock timed out")
    assert episodes.find_similar(StateSnapshot.create(files=["src/main.py"], context="Greet the visitor")) == []
    assert own.sources.mounts.get(warned.id) is not None


def test_rules_of_a_mount_apply_here_by_their_globs(team: Team, mounted: Opened, opened: Opened) -> None:
    """P3, P7: the surest first, of equals the workspace's own; the source names mount, trust and confidence."""
    advice = Rule(pattern="migrate", action="Take the migration lock first.", files=("*.sql",), confidence=0.9)
    root = team()
    with opened(root) as theirs:
        theirs.sources.rules.add_rule(replace(advice, trust="human"))
    own = mounted()
    own.sources.rules.add_rule(replace(advice, action="Ask Ada before a migration."))
    source = SemanticMemory(JointMemory(own.sources), own.sources.mounts.get, whole=True)
    state = StateSnapshot.create(files=["db/ledger.sql"], context="migrate the ledger")
    ours, others = source.select(state).entries
    assert ours.text == "Ask Ada before a migration. (confidence: 90%)"
    assert others.text == "Take the migration lock first. (confidence: 90%)"
    assert (others.id.partition(":")[0], others.trust, others.origin.partition(",")[0]) == (
        "team",
        "reviewed",
        "mount team",
    )
    assert source.select(StateSnapshot.create(files=["README.md"], context="greet")).entries == []


def test_a_layer_is_warned_by_mounts_and_names_those_left_out(team: Team, mounted: Opened, opened: Opened) -> None:
    """P6, P7: check_triggers, get_automatic and recall bring what mounts hold; report names what is left out."""
    root = team(_item("Log in JSON.", "json", memory_type="convention", status="accepted"), POOL)
    with opened(root) as theirs:
        theirs.sources.episodes.record(_failed([], "Migrate the ledger table to decimals", "the lock timed out"))
    own = mounted(team="../team-memory", gone="../nowhere")
    layer = MemoryLayer(workspace=own, config=None)
    layer.configure({"automatic": ["conventions"]})
    state = StateSnapshot.create(context="Migrate the ledger table to decimals")
    (warning,) = asyncio.run(layer.check_triggers(state))
    assert "the lock timed out [team:" in warning
    recorded = asyncio.run(layer.record_outcome(state, Action("sql", "Took the lock first"), Outcome.SUCCESS))
    assert [name.partition(":")[0] for name in recorded.warned] == ["team"]
    assert "Log in JSON. [team:json; trust: reviewed; from mount team]" in asyncio.run(layer.get_automatic())
    assert "| mount: team\n" in asyncio.run(layer.recall("billing pool"))
    assert ["gone" in problem.message for problem in layer.report()] == [True]


def test_one_that_fails_when_it_is_asked_is_named(team: Callable[..., Path], mounted: Callable[..., Workspace]) -> None:
    """P7: a disk that is gone in the middle of a question costs this mount's answer, and is reported."""
    team(POOL)
    mounts = mounted().sources.mounts

    def gone(_: mounting.Mount) -> None:
        raise StorageIO("Input/output error", path="ContextMemory")

    assert mounts.each(gone) == {}
    assert any("Input/output error" in problem.message for problem in mounts.problems())
    assert mounts.absent() == ["team"]

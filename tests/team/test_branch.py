"""An agent writes on a branch of its own, in a folder of its own, and what it wrote is merged, dropped or kept back."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from kit.copies import copy_workspace
from kit.orphans import die_while, late_git
from memfs.catalog.facts import ItemCatalog
from memfs.doors.cli.app import run
from memfs.errors import BranchRefused, Conflict, CorruptRecord, LockTimeout, MemfsError, RepoUnsupported
from memfs.fs import io
from memfs.git.layout import Layout
from memfs.model import MemoryItem, Origin, Stamp
from memfs.team import worktrees
from memfs.team.branches import Branch, Branches
from memfs.workspace import Workspace, open_workspace

Git = Callable[..., str]
Open = Callable[..., Workspace]


def item(text: str, name: str = "", agent: str = "") -> MemoryItem:
    """A memory, named by its first word unless told otherwise."""
    return MemoryItem(text, id=name or text.split()[0].lower(), origin=Origin(agent=agent))


@pytest.fixture
def code(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, git: Git, opened: Open) -> Workspace:
    """A workspace in a code repository, with everything that is no memory beside it."""
    pristine, root = tmp_path_factory.getbasetemp() / "pristine-code-of-branches", tmp_path / "code"
    if not pristine.exists():
        _begin(pristine, git)
    copy_workspace(pristine, root)
    git(root, "update-index", "--refresh")
    return opened(root)


def _begin(root: Path, git: Git) -> None:
    root.mkdir()
    git(root, "init", "-q")
    (root / "src").mkdir()
    (root / "src" / "a.py").write_text("x = 1\n")
    (root / "link").symlink_to("src/a.py")
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "code")
    with open_workspace(root, create=True, watch=False, settings={"index.engine": "memory"}) as workspace:
        workspace.store.put(item("Deploys happen on Tuesdays"))
        workspace.store.put(item("Backups run at night"))
        workspace.store.flush(adopt=True)


def place(branch: Branch) -> Path:
    """The folder of a branch."""
    assert branch.folder is not None
    return branch.folder


def stopped_at(number: int, act: Callable[[], object]) -> bool:
    """Do something of which the N-th operation and all after it fail; whether it came to its end before."""
    left = [number]

    def stop(name: str, path: str) -> None:
        left[0] -= 1
        if left[0] <= 0:
            raise OSError(5, "stopped")

    before = io.set_hook(stop)
    try:
        act()
    except MemfsError:
        return False
    finally:
        io.set_hook(before)
    return True


# -- starting -----------------------------------------------------------------------------------------------------
def test_a_branch_has_a_folder_with_memory_alone(code: Workspace, git: Git) -> None:
    """The agent finds the memory and no code, and git finds nothing amiss there (B2)."""
    made = code.teams.branches.start("try", agent="coder")
    folder = place(made)
    assert sorted(os.listdir(folder)) == [".git", "ContextMemory", "memfs.toml"]
    assert git(folder, "status", "--porcelain") == git(code.root, "status", "--porcelain") == ""
    assert git(folder, "branch", "--show-current").strip() == "memfs/try"
    assert git(folder, "rev-parse", "HEAD") == git(code.root, "rev-parse", "HEAD")
    git(folder, "fsck", "--strict")
    assert git(folder, "ls-files", "-t", "src", "link", "run.sh") == "S link\nS run.sh\nS src/a.py\n"
    assert (made.agent, made.ahead, made.waiting, made.ready) == ("coder", 0, 0, True)


def test_git_goes_on_working_in_the_folder(code: Workspace, git: Git) -> None:
    """A person may commit, merge and bring the code there with git's own commands; nothing is seen as removed."""
    folder = place(code.teams.branches.start("try"))
    (folder / "memfs.toml").open("a").close()
    note = folder / "ContextMemory" / "memories" / "semantic" / "hand.yaml"
    note.write_text("content: written by hand\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "by hand")
    assert git(folder, "show", "--stat", "--format=", "HEAD").count("|") == 1
    git(code.root, "merge", "-q", "memfs/try")
    assert (code.root / "src" / "a.py").exists()
    git(folder, "update-index", "--no-skip-worktree", "src/a.py")
    git(folder, "checkout", "--", "src/a.py")
    assert (folder / "src" / "a.py").read_text() == "x = 1\n"


def test_what_is_written_there_is_the_agents(code: Workspace, opened: Open, git: Git) -> None:
    """What names nobody is committed in the name of the agent whose branch it is; who names himself is himself (B2)."""
    folder = place(code.teams.branches.start("try", agent="coder"))
    inner = opened(folder)
    inner.store.put(item("Tests run in a sandbox"))
    inner.store.flush()
    inner.store.put(item("Lunch is at noon", agent="cook"))
    inner.store.flush()
    authors = git(folder, "log", "-2", "--format=%an <%ae> %cn %(trailers:key=Memfs-Agent,valueonly)").split("\n\n")
    assert authors[0].strip() == "cook <cook@agent.memfs> Ada Person cook"
    assert authors[1].strip() == "coder <coder@agent.memfs> Ada Person coder"
    assert code.store.get("tests") is None
    assert run(["-C", str(folder), "remember", "Coffee is at three", "--id", "coffee"]) == 0
    coffee = inner.store.get("coffee")
    assert coffee is not None
    assert (coffee.origin.agent, coffee.trust) == ("coder", "agent")


def test_a_workspace_in_a_subfolder(tmp_path: Path, git: Git, opened: Open) -> None:
    """The folder that is printed is the workspace, at the same place below the working tree."""
    git(tmp_path, "init", "-q", "mono")
    (tmp_path / "mono" / "readme").write_text("x")
    git(tmp_path / "mono", "add", ".")
    git(tmp_path / "mono", "commit", "-q", "-m", "x")
    workspace = opened(tmp_path / "mono" / "services" / "memory")
    workspace.store.put(item("Deploys happen on Tuesdays"))
    workspace.store.flush(adopt=True)
    folder = place(workspace.teams.branches.start("try", folder=tmp_path / "elsewhere"))
    assert folder == tmp_path / "elsewhere" / "services" / "memory"
    assert git(folder, "status", "--porcelain") == ""
    opened(folder).store.put(item("Backups run at night"))
    assert workspace.teams.branches.merge("try").joined.changed


def test_nothing_of_a_hostile_repository_runs(code: Workspace, git: Git, tmp_path: Path) -> None:
    """Hooks, filters, monitors and links of the repository see nothing of a branch's life (row 41)."""
    root, canary = code.root, tmp_path / "canary"
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {canary}\n")
    trap.chmod(0o755)
    hooks = root / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-checkout", "reference-transaction", "post-index-change", "pre-commit"):
        (hooks / name).write_bytes(trap.read_bytes())
        (hooks / name).chmod(0o755)
    for name in ("filter.x.smudge", "filter.x.clean", "filter.x.process", "core.fsmonitor", "core.sshCommand"):
        git(root, "config", name, str(trap))
    (root / ".git" / "info").mkdir(exist_ok=True)
    (root / ".git" / "info" / "attributes").write_text("* filter=x\n")
    made = code.teams.branches.start("try")
    code.teams.branches.merge("try")
    code.teams.branches.drop("try")
    assert not canary.exists()
    assert made.folder is not None


def test_links_and_bits_of_memory_files(code: Workspace, git: Git, tmp_path: Path) -> None:
    """A link below the memory is not laid out, an executable file stays one, and git agrees."""
    secret = tmp_path / "secret"
    secret.write_text("secret")
    memory = code.root / "ContextMemory"
    (memory / "out").symlink_to(secret)
    (memory / "tool.txt").write_text("x")
    (memory / "tool.txt").chmod(0o755)
    git(code.root, "add", "ContextMemory")
    git(code.root, "commit", "-q", "-m", "odd")
    folder = place(code.teams.branches.start("try"))
    assert not os.path.lexists(folder / "ContextMemory" / "out")
    assert stat.S_IMODE((folder / "ContextMemory" / "tool.txt").stat().st_mode) & 0o100
    assert git(folder, "status", "--porcelain") == ""


@pytest.mark.parametrize(
    "name", ["", "-x", "..", "a..b", "a b", "a/", "/a", "x.lock", "@{1}", "a\nb", "ä", "a//b", "~"]
)
def test_names_that_no_branch_can_have(code: Workspace, name: str) -> None:
    """A name that git, a shell or a disk could take for something else is refused before anything is made."""
    with pytest.raises(BranchRefused):
        code.teams.branches.start(name)
    assert code.teams.branches.list() == []


def test_a_start_that_cannot_be(code: Workspace, git: Git, tmp_path: Path) -> None:
    """Whatever is in the way is named: a branch, a folder, this working tree."""
    branches = code.teams.branches
    git(code.root, "branch", "memfs/taken")
    with pytest.raises(BranchRefused, match="git has a branch memfs/taken"):
        branches.start("taken")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("")
    with pytest.raises(BranchRefused, match="in the folder's place"):
        branches.start("try", folder=tmp_path / "full")
    with pytest.raises(BranchRefused, match="inside this one"):
        branches.start("try", folder=code.root / "inner")
    branches.start("try")
    with pytest.raises(BranchRefused, match="there already"):
        branches.start("try")
    assert branches.start("team/coder/one").branch == "team/coder/one"


def test_a_start_stopped_anywhere_is_taken_up_again(code: Workspace, git: Git) -> None:
    """Each operation of a start may be the last: the next start ends it, and nothing is left over (B2, killed)."""
    branches = code.teams.branches
    number, finished = 0, False
    while not finished:
        number += 3 + number
        finished = stopped_at(number, lambda: branches.start("try"))
        begun = next((one for one in branches.list() if one.ready), None)
        folder = place(begun or branches.start("try"))
        assert git(folder, "status", "--porcelain") == ""
        assert branches.find("try").ready
        branches.drop("try")
        assert git(code.root, "worktree", "list").count("\n") == 1
        assert not folder.exists()


@pytest.mark.parametrize("files", [1, 2, 3, 5, 6])
def test_a_folder_that_git_began_is_made_anew(code: Workspace, git: Git, files: int) -> None:
    """Git itself may be killed while it registers the folder: whatever it left is no obstacle."""
    made = code.teams.branches.start("try")
    record, listed = code.root / ".git" / "worktrees" / "try", code.root / ".git" / "memfs" / "branches.json"
    head = (record / "HEAD").read_text() if files == 6 else "0" * 40
    back = (record / "gitdir").read_text()
    subprocess.run(["rm", "-rf", str(record), str(place(made))], check=True)
    for path, text in [
        (record / "locked", "initializing"),
        (record / "gitdir", back),
        (place(made) / ".git", f"gitdir: {record}\n"),
        (record / "HEAD", head),
        (record / "commondir", "../..\n"),
    ][:files]:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    listed.write_text(listed.read_text().replace('"ready": true', '"ready": false'))
    again = code.teams.branches.start("try")
    assert git(place(again), "status", "--porcelain") == ""
    assert git(place(again), "branch", "--show-current") == "memfs/try\n"
    assert os.listdir(record.parent) == ["try"]
    assert not (record / "locked").exists()


def test_32_the_git_of_a_killed_start_ends_before_the_next(code: Workspace, git: Git, tmp_path: Path) -> None:
    """It would give the folder to a record of its own, with no index, while the next one lays files (B2)."""
    branches = code.teams.branches
    die_while(lambda: branches.start("try"), "worktree", late_git(tmp_path, "worktree"))
    folder = place(branches.start("try"))
    assert (tmp_path / "ended").exists()
    assert os.listdir(code.root / ".git" / "worktrees") == [folder.name]
    assert git(folder, "status", "--porcelain") == git(code.root, "status", "--porcelain") == ""


def test_a_list_that_came_along_sends_nobody_elsewhere(code: Workspace, tmp_path: Path) -> None:
    """A start that is taken up goes to the folder that is asked for, whatever a planted list says (row 41)."""
    made = code.teams.branches.start("try")
    code.teams.branches.drop("try")
    listed = code.root / ".git" / "memfs" / "branches.json"
    row = {"branch": "refs/heads/memfs/try", "folder": str(tmp_path / "elsewhere"), "start": made.commit}
    listed.write_text(json.dumps({"version": 1, "branches": [row]}))
    with pytest.raises(BranchRefused, match="begun in another folder"):
        code.teams.branches.start("try")
    assert not (tmp_path / "elsewhere").exists()
    for content in (b"{", b'{"version": 1, "branches": [{"branch": "refs/heads/x", "folder": 7}]}', b"\xff"):
        listed.write_bytes(content)
        with pytest.raises(CorruptRecord, match="list of branches"):
            code.teams.branches.list()
        assert code.recaller.search("deploys").hits  # an agent's name is all that reading would want of it


# -- merging ------------------------------------------------------------------------------------------------------
def test_two_agents_merge_field_by_field(code: Workspace, opened: Open, git: Git) -> None:
    """Two agents change one item in different fields, beside a third change here: all of it is in the merge (B3)."""
    branches = code.teams.branches
    for name, change in (("one", {"title": "When we deploy"}), ("two", {"tags": ("release",)})):
        inner = opened(place(branches.start(name, agent=name)))
        found = inner.store.get("deploys")
        assert found is not None
        inner.store.put(found.replace(**change))
        inner.store.put(item(f"{name} was here", name))
        inner.close()  # waiting for its commit, as a killed agent leaves it
    found = code.store.get("deploys")
    assert found is not None
    code.store.put(found.replace(importance=3))
    for name in ("one", "two"):
        done = branches.merge(name)
        assert done.joined.conflicts == ()
        assert len(done.flushed.commits) > 0
    joined = code.store.get("deploys")
    assert joined is not None
    assert (joined.title, joined.tags, joined.importance) == ("When we deploy", ("release",), 3)
    assert code.store.get("one") is not None
    assert git(code.root, "status", "--porcelain") == ""
    assert git(code.root, "log", "--merges", "--format=%s").split("\n")[0] == "Merge the branch two"
    assert branches.merge("two").joined.nothing


def test_a_merge_tells_first_and_conflicts_after(code: Workspace, opened: Open) -> None:
    """``--dry-run`` changes nothing; what both changed differently is named and kept (B3)."""
    branches = code.teams.branches
    inner = opened(place(branches.start("one", agent="one")))
    for workspace, text in ((inner, "Deploys happen on Mondays"), (code, "Deploys happen on Fridays")):
        found = workspace.store.get("deploys")
        assert found is not None
        workspace.store.put(found.replace(content=text))
        workspace.store.flush()
    before = code.repository.head().commit
    told = branches.merge("one", dry_run=True)
    assert (code.repository.head().commit, len(told.joined.conflicts)) == (before, 1)
    done = branches.merge("one")
    assert [(one.field, {one.kept, one.lost}) for one in done.joined.conflicts] == [
        ("content", {"Deploys happen on Mondays", "Deploys happen on Fridays"})
    ]


def test_edits_by_hand_are_not_taken_unasked(code: Workspace, opened: Open, tmp_path: Path) -> None:
    """An edit that nobody committed stays there and is named; one here, in a file to be merged, stops the merge."""
    branches = code.teams.branches
    folder = place(branches.start("one"))
    inner = opened(folder, history__adopt="leave")
    inner.store.put(item("Tests run in a sandbox"))
    path = inner.store.locate("backups")
    (folder / path).write_text((folder / path).read_text().replace("night", "noon"))
    done = branches.merge("one")
    assert done.joined.changed
    assert "noon" in (folder / path).read_text()
    found = inner.store.get("deploys")
    assert found is not None
    inner.store.put(found.replace(title="From the branch"))
    here = code.root / code.store.locate("deploys")
    here.write_text(here.read_text() + "tags:\n- mine\n")
    with pytest.raises(Conflict):
        branches.merge("one")
    assert here.read_text().endswith("- mine\n")


def test_a_merge_says_who_still_works_there(code: Workspace) -> None:
    """A process that holds the branch's folder is named: what it writes later is not merged."""
    folder = place(code.teams.branches.start("one"))
    process = subprocess.Popen([sys.executable, "-c", "input()"], cwd=folder, stdin=subprocess.PIPE)
    try:
        assert [number for number, _ in code.teams.branches.merge("one").alive] == [process.pid]
        with pytest.raises(BranchRefused, match="works there"):
            code.teams.branches.drop("one")
    finally:
        process.communicate(b"\n")


def test_a_branch_is_not_merged_into_itself(code: Workspace, opened: Open) -> None:
    """From inside the branch's folder its own merge and drop are refused."""
    inner = opened(place(code.teams.branches.start("one")))
    for act in (inner.teams.branches.merge, inner.teams.branches.drop):
        with pytest.raises(BranchRefused, match="checked out here"):
            act("one")
    with pytest.raises(BranchRefused, match="no branch"):
        code.teams.branches.merge("nowhere")


# -- dropping -----------------------------------------------------------------------------------------------------
def test_only_what_was_merged_is_dropped(code: Workspace, opened: Open, git: Git) -> None:
    """What only the branch has is named and stays; with ``--force`` a rescue ref keeps it (B2)."""
    branches = code.teams.branches
    folder = place(branches.start("one", agent="one"))
    inner = opened(folder)
    inner.store.put(item("Tests run in a sandbox"))
    inner.close()
    with pytest.raises(BranchRefused, match="1 of its commits is not in what is checked out here"):
        branches.drop("one")
    assert folder.exists()
    assert branches.drop("one", force=True, dry_run=True).rescue
    done = branches.drop("one", force=True)
    assert not folder.exists()
    assert not folder.parent.exists()
    assert git(code.root, "show", f"{done.rescue}:ContextMemory/memories", check=False)
    assert git(code.root, "rev-parse", done.rescue).strip() == done.commit
    assert git(code.root, "branch", "--list", "memfs/*") == ""
    assert git(code.root, "worktree", "list").count("\n") == 1
    assert branches.list() == []
    branches.start("one")
    assert branches.drop("one").rescue == ""


def test_no_index_is_made_of_a_folder_that_nobody_worked_in(code: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """To merge or drop a branch that was begun and not used decodes no item of it; a changed file is seen (B2)."""
    decoded, known = list[str](), ItemCatalog.known

    def noted(items: ItemCatalog, stamps: Mapping[str, Stamp], **options: Any) -> dict[str, MemoryItem]:
        decoded.extend(stamps)
        return known(items, stamps, **options)

    code.store.follow()
    branches = code.teams.branches
    file = place(branches.start("idle")) / code.store.locate("deploys")
    monkeypatch.setattr(ItemCatalog, "known", noted)
    merged = branches.merge("idle")
    assert (merged.edited, merged.flushed.adopted, decoded) == ((), (), [])
    before = file.read_text()
    file.write_text(before + "tags: [changed]\n")
    assert branches.merge("idle").edited == (code.store.locate("deploys"),)
    branches.start("other")
    decoded.clear()
    assert not branches.drop("other").left
    assert decoded == []


def test_a_merge_makes_no_index_where_another_engine_made_the_one_there_is(
    code: Workspace, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is merged tells which files to read: no other is decoded, however many there are (B3, design 14)."""
    inner = opened(place(code.teams.branches.start("one")), index__engine="memory")
    inner.store.put(item("Tests run in a sandbox", "sandbox"))
    inner.store.flush()
    code.close()
    decoded, known = set[str](), ItemCatalog.known

    def noted(items: ItemCatalog, stamps: Mapping[str, Stamp], **options: Any) -> dict[str, MemoryItem]:
        decoded.update(stamps)
        return known(items, stamps, **options)

    again = opened(code.root, index__engine="memory", history__adopt="auto")
    monkeypatch.setattr(ItemCatalog, "known", noted)
    assert again.teams.branches.merge("one").joined.changed == tuple(sorted(decoded)) != ()
    assert again.store.get("deploys") is not None
    assert len(decoded) == again.store.count() == 3


def test_files_that_are_no_memory_stay(code: Workspace, git: Git) -> None:
    """Whatever else lies in the folder, and edits that cannot be committed, outlive a forced drop."""
    branches = code.teams.branches
    folder = place(branches.start("one"))
    (folder / "notes.txt").write_text("mine")
    valid = folder / "ContextMemory" / "memories" / "semantic" / "hand.yaml"
    valid.write_text("content: by hand\n")
    broken = valid.with_name("broken.yaml")
    broken.write_text("content: [\n")
    with pytest.raises(BranchRefused, match=r"notes\.txt is no memory") as refused:
        branches.drop("one")
    assert "broken.yaml is not committed" in str(refused.value)
    done = branches.drop("one", force=True)
    assert done.left == ("ContextMemory/memories/semantic/broken.yaml", "notes.txt")
    assert (folder / "notes.txt").read_text() == "mine"
    assert "by hand" in git(code.root, "show", f"{done.rescue}:ContextMemory/memories/semantic/hand.yaml")


def test_a_drop_stopped_anywhere_goes_on(code: Workspace, opened: Open, git: Git) -> None:
    """Each operation of a drop may be the last: called again it ends, and the commits are kept (B2, killed)."""
    branches = code.teams.branches
    number, finished = 0, False
    while not finished:
        number += 4 + number
        folder = place(branches.start("one"))
        inner = opened(folder)
        inner.store.put(item("Tests run in a sandbox"))
        inner.close()
        finished = stopped_at(number, lambda: branches.drop("one", force=True))
        if not finished:
            branches.drop("one", force=True)
        assert not folder.exists()
        assert branches.list() == []
        assert git(code.root, "worktree", "list").count("\n") == 1
        rescued = git(code.root, "for-each-ref", "--format=%(refname)", "refs/memfs/rescue/branches").split()
        assert any("sandbox" in git(code.root, "log", "-1", "--format=%b%s", "-p", ref) for ref in rescued)
        for ref in rescued:
            git(code.root, "update-ref", "-d", ref)


@pytest.mark.parametrize("name", ["logs/HEAD", "HEAD", "gitdir"])
def test_a_drop_stopped_in_gits_record_leaves_nothing_of_it(code: Workspace, opened: Open, name: str) -> None:
    """What is left of it would hold the branch for a folder that is gone: writes of the next one would wait (B2)."""
    branches, removed = code.teams.branches, []
    record = code.root / ".git" / "worktrees" / "one"

    def stop(did: str, path: str) -> None:
        if removed:
            raise OSError(5, "stopped")
        if (did, path) == ("unlink", str(record / name)):
            removed.append(path)

    branches.start("one")
    before = io.set_hook(stop)
    with pytest.raises(MemfsError):
        branches.drop("one")
    io.set_hook(before)
    branches.drop("one")
    assert not record.exists()
    inner = opened(place(branches.start("one")))
    inner.store.put(item("Tests run in a sandbox"))
    assert inner.store.flush().reason == ""


def test_32_the_git_of_a_killed_start_ends_before_its_branch_is_dropped(
    code: Workspace, git: Git, tmp_path: Path
) -> None:
    """It would leave a folder and git's record of it behind, of a branch that is gone (B2)."""
    branches = code.teams.branches
    die_while(lambda: branches.start("try"), "worktree", late_git(tmp_path, "worktree"))
    dropped = branches.drop("try")
    assert (tmp_path / "ended").exists()
    assert not os.path.lexists(dropped.folder)
    assert git(code.root, "worktree", "list").count("\n") == 1
    assert branches.list() == []


def test_32_the_git_of_a_killed_drop_ends_before_the_branch_is_made_anew(
    code: Workspace, git: Git, tmp_path: Path
) -> None:
    """It would remove the new branch, which begins where the old one did (B2)."""
    branches = code.teams.branches
    branches.start("try")
    die_while(lambda: branches.drop("try"), "update-ref", late_git(tmp_path, "update-ref"))
    folder = place(branches.start("try"))
    assert (tmp_path / "ended").exists()
    assert git(folder, "rev-parse", "HEAD") == git(code.root, "rev-parse", "HEAD")


def test_a_write_in_the_last_moment_keeps_a_branch(
    code: Workspace, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is acknowledged after the look for losses is no more lost than before; then nobody writes there (S7, B2)."""
    inner = opened(place(code.teams.branches.start("try")))
    look, taken_away = Branches._refuse_losses, []

    def late(self: Branches, *arguments: Any) -> None:
        look(self, *arguments)
        if inner.store.get("tests") is None:
            inner.store.put(item("Tests run in a sandbox"))

    def take_away(layout: Layout, *arguments: Any) -> tuple[str, ...]:
        with pytest.raises(LockTimeout, match="drop"), inner.parts.lock.hold("write", timeout=0.0):
            pass
        taken_away.append(layout)
        return worktrees.take_away(layout, *arguments)

    monkeypatch.setattr(Branches, "_refuse_losses", late)
    monkeypatch.setattr("memfs.team.branches.take_away", take_away)
    with pytest.raises(BranchRefused, match="1 write waits there"):
        code.teams.branches.drop("try", force=True)
    assert taken_away == []
    assert code.teams.branches.drop("try", force=True).rescue
    assert len(taken_away) == 1


def test_folders_that_others_removed_or_locked(code: Workspace, git: Git, tmp_path: Path) -> None:
    """A folder that somebody removed is forgotten by drop; one that is locked is left alone."""
    branches = code.teams.branches
    folder = place(branches.start("gone"))
    subprocess.run(["rm", "-rf", str(folder)], check=True)
    assert not branches.find("gone").ready
    assert branches.drop("gone").rescue == ""
    assert git(code.root, "worktree", "list").count("\n") == 1
    kept = place(branches.start("kept"))
    git(code.root, "worktree", "lock", "--reason", "mine", str(kept))
    with pytest.raises(BranchRefused, match="locked: mine"):
        branches.drop("kept", force=True)


def test_writes_that_no_commit_has_keep_a_branch(code: Workspace, opened: Open, git: Git) -> None:
    """Not even ``--force`` drops what was acknowledged and cannot be committed now, nor what was set aside (S15)."""
    branches = code.teams.branches
    made = branches.start("one")
    inner = opened(made.folder)
    inner.store.put(item("Tests run in a sandbox"))
    (code.root / ".git" / "worktrees" / "one" / "MERGE_HEAD").write_text(made.commit)
    with pytest.raises(BranchRefused, match="1 write waits there"):
        branches.drop("one", force=True)
    with pytest.raises(BranchRefused, match="cannot be committed: a merge is in progress"):
        branches.merge("one")
    subprocess.run(["rm", "-rf", str(place(made))], check=True)
    assert branches.find("one").waiting == 1
    with pytest.raises(BranchRefused, match="1 write waits"):
        branches.drop("one", force=True)
    again = branches.start("one")
    assert git(place(again), "status", "--porcelain") == ""
    reopened = opened(again.folder)
    reopened.store.flush()
    assert [row.path for row in reopened.recovered.list()] != []
    state = reopened.repository.state
    reopened.close()
    branches.drop("one")
    assert list((state / "recovered").iterdir()) != []


def test_large_values_travel_along(code: Workspace, git: Git) -> None:
    """What a document refers to and git does not have is brought to the branch, and back with the merge (S2)."""
    folder = code.root / "ContextMemory" / "iterations" / "iteration_001"
    folder.mkdir(parents=True)
    (folder / "system_state.json").write_text("{}")
    (folder / "system_state.json.0123456789abcdef.zst").write_bytes(b"one")
    git(code.root, "add", "-f", "ContextMemory/iterations/iteration_001/system_state.json")
    git(code.root, "commit", "-q", "-m", "state")
    branches = code.teams.branches
    there = place(branches.start("one")) / "ContextMemory" / "iterations" / "iteration_001"
    assert (there / "system_state.json.0123456789abcdef.zst").read_bytes() == b"one"
    (there / "system_state.json.fedcba9876543210.zst").write_bytes(b"two")
    with pytest.raises(BranchRefused, match="fedcba9876543210"):
        branches.drop("one")
    branches.merge("one")
    assert (folder / "system_state.json.fedcba9876543210.zst").read_bytes() == b"two"
    branches.drop("one")
    assert not there.exists()


# -- the verb -----------------------------------------------------------------------------------------------------
def test_the_verb_from_start_to_end(
    code: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """``memfs team branch`` starts, lists, merges and drops, and prints the folder to use (B2)."""
    monkeypatch.chdir(code.root)
    code.close()
    assert run(["team", "branch", "start", "one", "--agent", "coder"]) == 0
    folder = capsys.readouterr().out.splitlines()[1].partition("=")[2]
    assert run(["-C", folder, "remember", "Tests run in a sandbox", "--id", "tests"]) == 0
    assert run(["team", "branch"]) == 0
    assert "1 write not committed" in capsys.readouterr().out
    for arguments in (["merge", "one", "--dry-run"], ["merge", "one"], ["list", "--json"], ["drop", "one", "--json"]):
        assert run(["team", "branch", *arguments]) == 0, arguments
    assert run(["show", "tests"]) == 0
    assert "Tests run in a sandbox" in capsys.readouterr().out
    for arguments in (["start"], ["list", "x"], ["merge", "x", "--force"], ["start", "x", "--reason", "y"], ["what"]):
        assert run(["team", "branch", *arguments]) == 2, arguments
    assert run(["team", "branch", "drop", "nowhere"]) == 1
    assert "memfs team branch list" in capsys.readouterr().err


def test_an_index_names_nothing_in_a_git_folder() -> None:
    """A tree made by hand cannot have git lay a hook out later (row 41)."""
    for path in (b".git/hooks/x", b"a/.GIT/config", b"git~1/x", b"a/../b", b"a//b", b".git. /x", b".g\xe2\x80\x8cit/x"):
        with pytest.raises(RepoUnsupported, match="inside a git folder"):
            worktrees.require_path(path)

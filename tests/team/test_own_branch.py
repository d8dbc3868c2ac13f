"""Memory on a branch of its own: one memory for all branches of the code, which no git command on code harms (D1)."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from codebeside import Git, RunMemfs, begin_code, ids

from kit.stops import killed_before
from memfs.fs import workspace_location
from memfs.fs.workspace_location import find_workspace
from memfs.team.own_branch import set_up

LINK = "ContextMemory"


@pytest.fixture
def code(tmp_path: Path, git: Git) -> Path:
    """A repository of code with four branches."""
    root = begin_code(tmp_path / "code", git)
    for name in ("one", "two", "three"):
        git(root, "branch", name)
    return root


def test_four_branches_and_two_working_trees_share_one_memory(
    code: Path, git: Git, memfs: RunMemfs, tmp_path: Path
) -> None:
    """What is remembered on any branch, in any working tree, is known on all, and no branch of code has it (D1)."""
    memfs(code, "init", "--own-branch")
    other = tmp_path / "other"
    git(code, "worktree", "add", "-q", str(other), "three")
    for branch in ("main", "one", "two"):
        git(code, "switch", "-q", branch)
        memfs(code, "remember", f"Known on {branch}", "--id", f"from-{branch}")
    memfs(other, "remember", "Known on three", "--id", "from-three")
    assert ids(memfs, code) == ids(memfs, other) == {"from-main", "from-one", "from-two", "from-three"}
    assert git(code, "log", "--format=%s", "main", "one", "two", "three").split("\n")[0] == "Begin"
    assert len(git(code, "log", "--format=%s", "context-memory").splitlines()) == 5
    for tree in (code, other):
        assert git(tree, "status", "--porcelain") == ""
        assert (tree / LINK / "memories").is_dir()


@pytest.mark.parametrize(
    "words",
    [
        ("switch", "-q", "one"),
        ("stash", "-uq"),
        ("clean", "-fdxq"),
        ("clean", "-ffdxq"),
        ("rebase", "-q", "one"),
        ("gc", "-q", "--prune=now"),
        ("worktree", "prune", "--expire=now"),
        ("submodule", "deinit", "--all"),
    ],
    ids=" ".join,
)
def test_no_git_command_on_code_harms_it(code: Path, git: Git, memfs: RunMemfs, words: tuple[str, ...]) -> None:
    """Commands that empty a working tree leave every memory, committed or not, and the link is made again (D1)."""
    memfs(code, "init", "--own-branch")
    memfs(code, "remember", "A fact", "--id", "fact")
    memfs(code, "--set", "history.commit=manual", "remember", "Not committed yet", "--id", "waits")
    (code / "main.py").write_text("x = 2\n" if words[0] == "stash" else "x = 1\n")
    (code / "new.txt").write_text("new\n")
    git(code, *words)
    assert ids(memfs, code) == {"fact", "waits"}
    assert (code / LINK).is_symlink()
    assert (code / LINK / "memories").is_dir()
    assert "No problems" in memfs(code, "check")


@pytest.mark.parametrize("instead", ["nothing", "folder", "file", "link"])
def test_a_missing_or_replaced_link_forgets_nothing(
    code: Path, git: Git, memfs: RunMemfs, tmp_path: Path, instead: str
) -> None:
    """Whatever is in the link's place, the memory is what the branch has, and none of it is committed away (D1)."""
    memfs(code, "init", "--own-branch")
    memfs(code, "remember", "A fact", "--id", "fact")
    before = git(code, "rev-parse", "context-memory")
    (code / LINK).unlink()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    if instead == "folder":
        (code / LINK).mkdir()
    elif instead == "file":
        (code / LINK).write_text("x\n")
    elif instead == "link":
        (code / LINK).symlink_to(elsewhere)
    assert ids(memfs, code) == {"fact"}
    memfs(code, "commit")
    assert git(code, "rev-parse", "context-memory") == before
    assert list(elsewhere.iterdir()) == []
    assert (code / LINK / "memories").is_dir() == (instead == "nothing")
    for verb in ("status", "check"):
        assert ("where the link to the memory belongs" in memfs(code, verb)) == (instead != "nothing")
    if instead != "nothing":
        assert "something else" in memfs(code, "init", "--own-branch")


def test_a_link_that_came_with_a_repository_is_not_a_memory(code: Path, git: Git, tmp_path: Path) -> None:
    """A tracked link named ContextMemory, wherever it leads, makes no folder a workspace (D1)."""
    target = tmp_path / "victim"
    (target / "memories").mkdir(parents=True)
    (target / "memories/a.yaml").write_text("content: x\n")
    (code / LINK).symlink_to(target)
    git(code, "add", LINK)
    git(code, "commit", "-qm", "Plant")
    with pytest.raises(Exception, match=r"no ContextMemory|no workspace"):
        find_workspace(code)


def test_a_folder_that_claims_anothers_git_folder_is_not_led_to_its_memory(
    code: Path, memfs: RunMemfs, tmp_path: Path
) -> None:
    """A planted .git file that names this repository reaches no memory of it, and writes nothing there (D1)."""
    memfs(code, "init", "--own-branch")
    first_unknown = tmp_path / "stranger"
    first_unknown.mkdir()
    for target in (code / ".git", code / ".git/worktrees/memory"):
        (first_unknown / ".git").write_text(f"gitdir: {target}\n")
        assert workspace_location.memory_of(first_unknown) is None
    assert not os.path.lexists(first_unknown / LINK)


def test_a_repository_that_was_moved_or_copied_keeps_its_own_memory(
    code: Path, git: Git, memfs: RunMemfs, tmp_path: Path
) -> None:
    """After a move everything is found; a copy writes into itself, never into what it was copied from (D1)."""
    memfs(code, "init", "--own-branch")
    memfs(code, "remember", "A fact", "--id", "fact")
    other = tmp_path / "other"
    git(code, "worktree", "add", "-q", str(other), "one")
    memfs(other, "list")
    moved, copied = tmp_path / "moved", tmp_path / "copied"
    code.rename(moved)
    assert ids(memfs, moved) == {"fact"}
    git(moved, "worktree", "repair", str(other))
    assert ids(memfs, other) == {"fact"}
    assert os.path.realpath(other / LINK) == str(moved / ".git/memfs/memory/ContextMemory")
    shutil.copytree(moved, copied, symlinks=True)
    memfs(copied, "remember", "Only in the copy", "--id", "copied")
    assert ids(memfs, copied) == {"fact", "copied"}
    assert ids(memfs, moved) == {"fact"}
    git(moved, "worktree", "prune", "--expire=now")
    assert ids(memfs, moved) == {"fact"}


def test_gits_record_of_the_place_is_made_again(code: Path, git: Git, memfs: RunMemfs) -> None:
    """With .git/worktrees removed, init registers the place again, and an edit that no commit has stays (D1)."""
    memfs(code, "init", "--own-branch")
    memfs(code, "remember", "A fact", "--id", "fact")
    file = next((code / ".git/memfs/memory/ContextMemory").rglob("fact.yaml"))
    file.write_text(file.read_text().replace("A fact", "An edited fact"))
    shutil.rmtree(code / ".git/worktrees")
    memfs(code, "init")
    assert "An edited fact" in memfs(code, "show", "fact")
    assert ids(memfs, code) == {"fact"}


@pytest.mark.parametrize("how", ["full", "shallow", "single"])
def test_a_colleagues_clone_finds_the_memory(code: Path, git: Git, memfs: RunMemfs, tmp_path: Path, how: str) -> None:
    """init in a clone takes the branch up, also a shallow or single-branch one, and syncs (D1)."""
    remote, clone = tmp_path / "remote.git", tmp_path / "clone"
    git(tmp_path, "init", "-q", "--bare", "-b", "main", str(remote))
    git(code, "remote", "add", "origin", "../remote.git")
    git(code, "push", "-q", "origin", "main")
    memfs(code, "init", "--own-branch")
    memfs(code, "remember", "A fact", "--id", "fact")
    (code / "main.py").write_text("x = 3\n")
    git(code, "commit", "-qam", "Code that nobody has yet")
    memfs(code, "sync")
    assert set(git(remote, "branch", "--format=%(refname:short)").split()) == {"main", "context-memory"}
    assert git(remote, "log", "-1", "--format=%s", "main").strip() == "Begin"
    options = {"full": [], "shallow": ["--depth=1"], "single": ["--single-branch"]}[how]
    git(tmp_path, "clone", "-q", *options, f"file://{remote}", str(clone))
    assert "of origin" in memfs(clone, "init")
    assert ids(memfs, clone) == {"fact"}
    memfs(clone, "remember", "From a colleague", "--id", "colleague")
    memfs(clone, "sync")
    memfs(code, "sync")
    assert ids(memfs, code) == {"fact", "colleague"}
    assert git(clone, "status", "--porcelain") == ""


def test_it_is_refused_where_a_branch_tracks_memory(code: Path, git: Git, memfs: RunMemfs) -> None:
    """Where a branch of code has ContextMemory/, the refusal names it and what to do; nothing is written (D1)."""
    git(code, "switch", "-q", "two")
    (code / LINK).mkdir()
    (code / LINK / "x.yaml").write_text("content: x\n")
    git(code, "add", LINK)
    git(code, "commit", "-qm", "Memory among the code")
    git(code, "switch", "-q", "main")
    output = memfs(code, "init", "--own-branch", code=1)
    assert "ContextMemory/ or memfs.toml is already in two" in output
    assert "git rm" in output
    assert "context-memory" not in git(code, "branch")
    assert not os.path.lexists(code / LINK)


def test_a_dry_run_writes_nothing(code: Path, git: Git, memfs: RunMemfs) -> None:
    """--dry-run says what would be made and makes none of it (D1)."""
    before = sorted(str(path) for path in code.rglob("*"))
    assert "Would make" in memfs(code, "init", "--own-branch", "--dry-run")
    assert sorted(str(path) for path in code.rglob("*")) == before


def test_without_a_terminal_it_says_in_one_line_what_it_chose(code: Path, git: Git, memfs: RunMemfs) -> None:
    """init asks nobody who is not there: it takes the folder among the code, and one line names the other way (D1)."""
    output = memfs(code, "init")
    assert len([line for line in output.splitlines() if "--own-branch" in line]) == 1
    assert (code / "memfs.toml").is_file()


def test_a_killed_init_is_completed_by_the_next(
    code: Path, git: Git, memfs: RunMemfs, scale: Callable[[int, int], int]
) -> None:
    """Stopped at any write, init leaves no half memory that passes for one; the next completes it (D1)."""
    trial, number, killed = code.with_name("trial"), 0, True
    while killed:
        shutil.copytree(code, trial, symlinks=True)
        killed = killed_before(number, lambda: set_up(trial))
        memory = workspace_location.place_in(trial / ".git")
        if memory is not None:
            assert (memory / "memfs.toml").is_file()
        memfs(trial, "init", "--own-branch")
        assert workspace_location.is_link(trial)
        assert git(trial, "fsck", "--no-dangling") is not None
        assert git(trial, "status", "--porcelain") == ""
        assert git(trial, "-C", ".git/memfs/memory", "status", "--porcelain") == ""
        assert not (trial / ".git/memfs/begun").exists()
        memfs(trial, "remember", "A fact", "--id", "fact")
        shutil.rmtree(trial)
        number += scale(47, 1)
    assert number > 50


def test_deinit_takes_out_the_place_and_the_links(code: Path, git: Git, memfs: RunMemfs, tmp_path: Path) -> None:
    """deinit removes links and place and keeps the branch; --purge removes it, by force if unpublished (D2)."""
    before = (code / ".git/info/exclude").read_bytes() if (code / ".git/info/exclude").exists() else b""
    memfs(code, "init", "--own-branch")
    memfs(code, "remember", "A fact", "--id", "fact")
    other = tmp_path / "other"
    git(code, "worktree", "add", "-q", str(other), "one")
    memfs(other, "list")
    output = memfs(code, "deinit").splitlines()
    assert f"  removed the link {code}/ContextMemory" in output
    assert not any(line.endswith(f" {code}") for line in output)  # nobody is to read that their code goes
    assert not os.path.lexists(code / LINK)
    assert not os.path.lexists(other / LINK)
    assert (code / ".git/info/exclude").read_bytes() == before
    assert not (code / ".git/memfs").exists()
    assert not (code / ".git/worktrees/memory").exists()
    assert "context-memory" in git(code, "branch")
    memfs(code, "init", "--own-branch")
    assert ids(memfs, code) == {"fact"}
    assert "no remote has" in memfs(code, "deinit", "--purge", code=1)
    assert ids(memfs, code) == {"fact"}
    memfs(code, "deinit", "--purge", "--force")
    assert "context-memory" not in git(code, "branch")
    assert not (code / ".git/memfs").exists()
    assert git(code, "status", "--porcelain") == ""


def test_writes_of_the_memory_that_was_among_the_code_wait_only_until_a_commit_has_them(
    code: Path, git: Git, memfs: RunMemfs, tmp_path: Path
) -> None:
    """After the move to a branch of its own, deinit names what no commit holds, and nothing else (D2)."""
    memfs(code, "init")
    memfs(code, "remember", "A fact", "--id", "fact")
    memfs(code, "remember", "A rumour", "--id", "rumour")
    git(code, "add", "-A")
    git(code, "commit", "-qm", "Memory")
    memfs(code, "remember", "Another", "--id", "other")
    memfs(code, "forget", "rumour")
    git(code, "commit", "-qam", "Forget it")
    shutil.move(code / LINK, tmp_path / "saved")
    git(code, "rm", "-rq", LINK, "memfs.toml")
    git(code, "commit", "-qm", "Move it")
    memfs(code, "init", "--own-branch")
    assert "writes of a working tree that is gone" in memfs(code, "deinit", code=1)
    shutil.copytree(tmp_path / "saved/memories", code / LINK / "memories", dirs_exist_ok=True)
    memfs(code, "commit")
    memfs(code, "deinit")
    assert not (code / ".git/memfs").exists()


def test_a_memory_moves_back_to_the_code_without_a_commit_of_memfs(code: Path, git: Git, memfs: RunMemfs) -> None:
    """``config history.commit manual`` counts for that very change: what is staged and the setting wait."""
    memfs(code, "init", "--own-branch")
    memfs(code, "remember", "A fact", "--id", "fact")
    memfs(code, "deinit")
    head = git(code, "rev-parse", "HEAD")
    git(code, "checkout", "context-memory", "--", LINK, "memfs.toml")
    memfs(code, "config", "history.commit", "manual")
    assert git(code, "rev-parse", "HEAD") == head
    assert 'commit = "manual"' in (code / "memfs.toml").read_text()
    assert ids(memfs, code) == {"fact"}
    assert git(code, "rev-parse", "HEAD") == head


def test_an_edit_that_no_commit_has_keeps_deinit_from_it(code: Path, git: Git, memfs: RunMemfs) -> None:
    """Files of the place that the branch does not have are named, and nothing is done (D2)."""
    memfs(code, "init", "--own-branch")
    memfs(code, "--set", "history.commit=manual", "remember", "A fact", "--id", "fact")
    place = code / ".git/memfs/memory"
    (place / "memfs.toml").write_text((place / "memfs.toml").read_text() + "# mine\n")
    assert "memfs.toml" in memfs(code, "deinit", code=1)
    assert (place / "memfs.toml").is_file()


def test_a_pull_request_against_it_is_reviewed_and_merged(
    code: Path, git: Git, memfs: RunMemfs, tmp_path: Path
) -> None:
    """In a working tree of a branch of the memory a convention is proposed, reported on, and merged (K8)."""
    memfs(code, "init", "--own-branch")
    memfs(code, "remember", "A fact", "--id", "fact")
    request = tmp_path / "request"
    git(code, "worktree", "add", "-q", "-b", "memory/utc", str(request), "context-memory")
    memfs(request, "team", "convention", "propose", "Columns hold UTC.", "--title", "Times are UTC", "--id", "utc")
    memfs(request, "commit")
    assert ids(memfs, code) == {"fact"}
    assert "utc" in memfs(request, "review", "context-memory..HEAD")
    assert "utc" in memfs(request, "review")
    assert "utc" in memfs(code, "review", "context-memory..memory/utc")
    memfs(request, "team", "convention", "accept", "utc")
    memfs(request, "commit")
    place = code / ".git/memfs/memory"
    git(place, "merge", "-q", "--no-ff", "-m", "Times are UTC", "memory/utc")
    assert "Times are UTC" in memfs(code, "team", "convention", "list")
    assert git(place, "status", "--porcelain") == ""


def two_beginnings(code: Path, git: Git, memfs: RunMemfs, tmp_path: Path) -> Path:
    """A second clone; in both a memory was begun before either was synced, and that of the first is published."""
    remote, clone = tmp_path / "remote.git", tmp_path / "clone"
    git(tmp_path, "init", "-q", "--bare", "-b", "main", str(remote))
    git(code, "remote", "add", "origin", str(remote))
    git(code, "push", "-q", "origin", "main")
    git(tmp_path, "clone", "-q", str(remote), str(clone))
    for root, name in ((code, "ada"), (clone, "bo")):
        git(root, "config", "user.name", name)  # else both make the same first commit, within a second
        memfs(root, "init", "--own-branch")
        memfs(root, "remember", f"Known to {name}", "--id", f"from-{name}")
        memfs(root, "remember", f"{name} deploys on Tuesdays", "--id", "deploys")
    memfs(code, "sync")
    return clone


def test_two_memories_that_were_begun_apart_are_joined_by_sync(
    code: Path, git: Git, memfs: RunMemfs, tmp_path: Path
) -> None:
    """Two people begin the branch before either syncs: sync joins both histories, and nothing is lost (B3, D1)."""
    clone = two_beginnings(code, git, memfs, tmp_path)
    before = git(clone, "rev-parse", "context-memory").strip()
    assert "Would merge" in memfs(clone, "sync", "--dry-run")
    assert git(clone, "rev-parse", "context-memory").strip() == before
    memfs(clone, "sync")
    memfs(code, "sync")
    assert ids(memfs, code) == ids(memfs, clone) == {"from-ada", "from-bo", "deploys"}
    assert git(code, "rev-parse", "context-memory") == git(clone, "rev-parse", "context-memory")
    assert len(git(code, "rev-list", "--max-parents=0", "context-memory").split()) == 2
    held = git(code, "grep", "-h", "deploys on Tuesdays", "context-memory")
    assert "ada deploys" in held
    assert "bo deploys" in held
    for root in (code, clone):
        assert git(root, "log", "--format=%s", "main").strip() == "Begin"
        assert git(root / ".git/memfs/memory", "status", "--porcelain") == ""


def test_beginnings_whose_other_files_differ_are_joined_in_the_place_of_the_memory(
    code: Path, git: Git, memfs: RunMemfs, tmp_path: Path
) -> None:
    """Where what is not a memory differs, sync changes nothing, and the command it names joins both there (B3, D1)."""
    clone = two_beginnings(code, git, memfs, tmp_path)
    place = clone / ".git/memfs/memory"
    (place / "README.md").write_text("Ours\n")
    git(place, "add", "README.md")
    git(place, "commit", "-qm", "Say what this is")
    place = code / ".git/memfs/memory"
    (place / "README.md").write_text("Theirs\n")
    git(place, "add", "README.md")
    git(place, "commit", "-qm", "Say what it is")
    git(place, "push", "-q", "origin", "context-memory")
    output = memfs(clone, "sync", code=1)
    assert ids(memfs, clone) == {"from-bo", "deploys"}
    command = next(line.strip() for line in output.splitlines() if "--allow-unrelated-histories" in line)
    words = shlex.split(command.partition(" joins it")[0])
    assert words[:4] == ["git", "-C", str(clone / ".git/memfs/memory"), "merge"]
    git(Path(words[2]), *words[3:], check=False)
    (Path(words[2]) / "README.md").write_text("Ours and theirs\n")
    git(Path(words[2]), "add", "README.md")
    git(Path(words[2]), "commit", "-qm", "Join")
    output = memfs(clone, "sync", code=1)
    push = next(line.strip() for line in output.splitlines() if "push origin" in line)
    git(clone, *shlex.split(push.partition(" publishes")[0])[1:])
    memfs(clone, "sync")
    assert ids(memfs, clone) == {"from-ada", "from-bo", "deploys"}
    assert not (clone / "README.md").exists()


def test_what_agents_read_is_beside_the_code(code: Path, git: Git, memfs: RunMemfs, tmp_path: Path) -> None:
    """agents-md, install and deinit write in the working tree they are called in, not in the memory (D1, K8)."""
    memfs(code, "init", "--own-branch")
    memfs(code, "team", "convention", "propose", "Columns hold UTC.", "--title", "Times are UTC", "--id", "utc")
    memfs(code, "team", "convention", "accept", "utc")
    other = tmp_path / "other"
    git(code, "worktree", "add", "-q", str(other), "one")
    place = code / ".git/memfs/memory"
    assert "AGENTS.md" in memfs(other, "team", "agents-md", "write")
    assert "Columns hold UTC." in (other / "AGENTS.md").read_text()
    assert not (code / "AGENTS.md").exists()
    memfs(code, "team", "agents-md", "write", "--file", str(code / "CLAUDE.md"))
    assert "current" in memfs(code, "team", "agents-md", "check", "--file", str(code / "CLAUDE.md"))
    memfs(code / LINK, "agent", "install", "claude-code")
    memfs(other, "agent", "install", "claude-code", "--local")
    assert (code / ".claude/settings.json").is_file()
    assert (other / ".claude/settings.local.json").is_file()
    assert sorted(path.name for path in place.iterdir()) == [".git", LINK, "memfs.toml"]
    memfs(other, "deinit", "--purge", "--force")
    for path in (".claude/settings.json", ".claude/settings.local.json"):
        assert not (code / path).exists()
        assert not (other / path).exists()
    assert not (other / "AGENTS.md").exists()


def test_its_history_is_not_cut_within_a_repository_of_code(
    code: Path, git: Git, memfs: RunMemfs, tmp_path: Path
) -> None:
    """A cut is refused with what to do instead, and no ref of code or memory moves (D1)."""
    memfs(code, "init", "--own-branch")
    memfs(code, "remember", "A fact", "--id", "fact")
    before = git(code, "for-each-ref")
    cut = ("admin", "cut", "2040-01-01", "--export", str(tmp_path / "old.bundle"), "--yes")
    assert "did not make this repository" in memfs(code, *cut, code=1)
    assert git(code, "for-each-ref") == before
    assert ids(memfs, code) == {"fact"}


def test_an_erase_names_the_way_that_there_is(code: Path, memfs: RunMemfs) -> None:
    """It is refused among the code, and points to a clone of the branch alone (A4)."""
    memfs(code, "init", "--own-branch")
    memfs(code, "remember", "a word", "--type", "knowledge", "--id", "word")
    assert "a clone of that branch alone" in memfs(code, "admin", "erase", "word", "--yes", code=1)
    assert ids(memfs, code) == {"word"}

"""Cutting old history: what goes, what stays, when it is refused, and what a stop leaves (S15)."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import subprocess
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kit.faults import DISK_ERROR, Fault, Stopped, injected
from memfs import EraseRefused, MemfsError, MemoryItem
from memfs.admin.erase import is_shared
from memfs.doors.cli.app import run
from memfs.git.rewrite import MovedRef, Rewriter, cut_point, reached
from memfs.workspace import Workspace

Opened = Callable[..., Workspace]
Git = Callable[..., str]
FOLDER = "ContextMemory/memories/knowledge/2026-03"
CHANGES = ("rename", "unlink", "link", "write", "mkdir", "rmdir", "git", "truncate")


def moment(year: int) -> datetime:
    """New Year's Day, in UTC."""
    return datetime(year, 1, 1, tzinfo=UTC)


def write(root: Path, git: Git, year: int, name: str, text: str, *more: str) -> None:
    """A person's commit in the summer of a year."""
    path = root / FOLDER / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"content: {text}\n")
    date = f"{year}-07-01T12:00:00Z"
    git(root, "add", "-A")
    git(root, "commit", "-qm", f"Write {name}", *more, GIT_AUTHOR_DATE=date, GIT_COMMITTER_DATE=date)


def aged(workspace: Workspace, git: Git, years: Sequence[int] = (2081, 2082, 2083, 2084)) -> Path:
    """A workspace with a commit in each of some years, all later than now; ``gate`` is changed in each."""
    root, stream = workspace.root, ""
    (root / FOLDER).mkdir(parents=True)
    for year in years:
        date = int(datetime(year, 7, 1, 12, tzinfo=UTC).timestamp())
        for name, text in (
            ("gate", f"the gate of {year} is marten-{year}"), (f"note-{year}", f"in {year} the mill was built"),
        ):  # fmt: skip
            content = f"content: {text}\n"
            (root / FOLDER / f"{name}.yaml").write_text(content)
            message = f"Write {name}\n"
            stream += (
                f"commit refs/heads/main\ncommitter Ada Person <ada@example.org> {date} +0000\n"
                f"data {len(message)}\n{message}{'' if stream else 'from refs/heads/main^0'}\n"
                f"M 100644 inline {FOLDER}/{name}.yaml\ndata {len(content)}\n{content}\n"
            )
    subprocess.run(["git", "-C", str(root), "fast-import", "--quiet"], input=stream.encode(), check=True)
    git(root, "reset", "--quiet")
    return root


def objects(root: Path) -> bytes:
    """Every object of a repository, unpacked."""
    command = ["git", "-C", str(root), "cat-file", "--batch-all-objects", "--batch"]
    return subprocess.run(command, check=True, capture_output=True).stdout


def files(root: Path) -> dict[str, bytes]:
    """The files of the memory, by path."""
    return {str(path): path.read_bytes() for path in (root / "ContextMemory").rglob("*") if path.is_file()}


def test_what_was_committed_before_a_date_goes_into_a_bundle_and_out_of_the_repository(
    opened: Opened, git: Git, tmp_path: Path
) -> None:
    """Files, later commits and their trees stay; old versions are in the bundle alone, which git clones (S15)."""
    workspace = opened()
    root = aged(workspace, git)
    before, later = files(root), git(root, "log", "--format=%s %T %an %ae %ad %cd", "-4")
    old = git(root, "rev-list", "HEAD~4")
    done = workspace.history_cut.cut(moment(2083), tmp_path / "old.bundle")
    assert (done.cut, done.rewritten, done.commit) == (len(old.split()), 4, old.split()[0])
    assert files(root) == before
    assert git(root, "log", "--format=%s %T %an %ae %ad %cd", "-4") == later
    assert git(root, "rev-list", "--count", "HEAD").strip() == "5"
    assert b"marten-2081" not in objects(root)
    assert b"marten-2082" in objects(root), "what was there at the cut stays"
    git(root, "fsck", "--full", "--strict")
    assert git(root, "status", "--porcelain") == ""
    assert done.sha256 == hashlib.sha256((tmp_path / "old.bundle").read_bytes()).hexdigest()
    git(tmp_path, "clone", "-q", "old.bundle", "old")
    assert git(tmp_path / "old", "rev-list", "HEAD") == old
    assert [problem.code for problem in workspace.checker.check()] == ["ClockBehind"], (
        "the commits are of years to come"
    )


def test_memory_goes_on_after_a_cut(opened: Opened, git: Git, tmp_path: Path) -> None:
    """Writing, asking the past, erasing and another cut work, and the first commit says what it is (S15, B1)."""
    workspace = opened()
    root = aged(workspace, git)
    digest = workspace.history_cut.cut(moment(2083), tmp_path / "old.bundle").sha256
    first = workspace.history.log()[-1]
    assert first.subject == "Cut the history before 2083-01-01T00:00:00Z"
    assert digest in git(root, "log", "--format=%B", "--max-parents=0")
    assert not is_shared(workspace.repository)
    workspace.store.put(MemoryItem("the bridge has two arches", "knowledge", id="bridge"))
    assert workspace.store.flush().reason == ""
    past = workspace.teams.past.at("HEAD~5")
    assert "marten-2082" in past.store.get("gate").content
    with pytest.raises(MemfsError):
        workspace.teams.past.at("HEAD~6")
    done = workspace.eraser.erase("gate")
    assert done.proof.hits == ()
    assert any("old.bundle" in place for place in done.plan.unreachable)
    again = workspace.history_cut.cut(moment(2084), tmp_path / "more.bundle")
    assert again.commit
    assert git(root, "rev-list", "--count", "HEAD~3").strip() == "1"
    assert workspace.history_cut.cut(moment(2084), tmp_path / "none.bundle").commit == ""
    assert not (tmp_path / "none.bundle").exists()


def test_tags_and_signatures_say_what_is_true(opened: Opened, git: Git, tmp_path: Path) -> None:
    """A tag of a commit that is cut goes with it, a later one follows its commit, no wrong signature stays (S15)."""
    workspace = opened()
    root = aged(workspace, git)
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    for name, value in (("gpg.format", "ssh"), ("user.signingkey", f"{key}.pub")):
        git(root, "config", name, value)
    write(root, git, 2085, "signed", "this is signed", "-S")
    git(root, "tag", "-a", "early", "-m", "early", "HEAD~6")
    git(root, "tag", "plain-early", "HEAD~6")
    git(root, "tag", "-s", "late", "-m", "late", "HEAD~1")
    tree = git(root, "rev-parse", "late^{tree}")
    plan = workspace.history_cut.plan(moment(2083))
    assert plan.tags == ("early", "plain-early")
    done = workspace.history_cut.cut(moment(2083), tmp_path / "old.bundle")
    assert done.tags == plan.tags
    assert git(root, "tag").split() == ["late"]
    assert git(root, "rev-parse", "late^{tree}") == tree
    assert git(root, "rev-parse", "late^{commit}") == git(root, "rev-parse", "HEAD~1")
    assert b"SIGNATURE" not in objects(root)
    git(tmp_path, "clone", "-q", "old.bundle", "old")
    assert git(tmp_path / "old", "tag").split() == ["early", "plain-early"]


def test_lines_that_run_side_by_side_keep_what_they_began_with(opened: Opened, git: Git, tmp_path: Path) -> None:
    """History is cut where all lines meet, so that a merge later on still knows what both began with (S15, B3)."""
    workspace = opened()
    root = aged(workspace, git, (2081, 2082))
    start = git(root, "rev-parse", "HEAD").strip()
    git(root, "switch", "-qc", "side")
    write(root, git, 2083, "side", "from the side")
    git(root, "switch", "-q", "main")
    write(root, git, 2083, "straight", "from the main line")
    write(root, git, 2085, "late", "much later")
    done = workspace.history_cut.cut(moment(2084), tmp_path / "old.bundle")
    assert done.commit == start
    assert git(root, "merge-base", "main", "side") == git(root, "rev-list", "--max-parents=0", "main")
    git(root, "merge", "-q", "--no-edit", "side")
    assert (root / FOLDER / "side.yaml").exists()


def test_what_nobody_named_or_committed_is_kept(opened: Opened, git: Git, tmp_path: Path) -> None:
    """Staged content that only old commits have, stashes, notes and younger lost commits outlive a cut (S15)."""
    workspace = opened()
    root = aged(workspace, git)
    write(root, git, 2086, "amended", "this was amended away")
    lost = git(root, "rev-parse", "HEAD").strip()
    write(root, git, 2086, "amended", "this took its place", "--amend")
    git(root, "notes", "add", "-m", "read this", "HEAD")
    about = git(root, "rev-parse", "HEAD").strip()
    (root / FOLDER / "gate.yaml").write_text("content: stashed away\n")
    git(root, "stash", "-q")
    gate = root / FOLDER / "gate.yaml"
    gate.write_text("content: the gate of 2081 is marten-2081\n")
    git(root, "add", "-A")
    workspace.history_cut.cut(moment(2083), tmp_path / "old.bundle")
    git(root, "fsck", "--full", "--strict")
    assert "marten-2081" in git(root, "show", f":{FOLDER}/gate.yaml")
    assert "read this" in git(root, "notes", "show", about)
    assert b"this was amended away" in objects(root)
    assert "amended" in git(root, "reflog")
    assert lost not in git(root, "reflog", "--no-abbrev")
    git(root, "reset", "-q", "--hard")
    git(root, "stash", "pop", "-q")
    assert "stashed away" in gate.read_text()


def test_a_cut_is_refused_where_memfs_did_not_make_the_repository(opened: Opened, git: Git, tmp_path: Path) -> None:
    """The history of somebody's code is never rewritten, whatever is said (S15)."""
    root = tmp_path / "code"
    root.mkdir()
    git(tmp_path, "init", "-q", "code")
    (root / "main.c").write_text("int main(void) { return 0; }\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "Begin")
    workspace = opened(root)
    aged(workspace, git)
    head = git(root, "rev-parse", "HEAD")
    assert "did not make" in workspace.history_cut.plan(moment(2083)).refused
    with pytest.raises(EraseRefused, match="did not make"):
        workspace.history_cut.cut(moment(2083), tmp_path / "old.bundle")
    assert git(root, "rev-parse", "HEAD") == head
    assert not (tmp_path / "old.bundle").exists()


@pytest.mark.parametrize("place", ["workspace/old.bundle", "workspace/.git/old.bundle", "nowhere/old.bundle", "there"])
def test_an_export_that_would_be_lost_or_replace_something_is_refused(
    opened: Opened, git: Git, tmp_path: Path, place: str
) -> None:
    """The bundle is outside of the workspace, in a folder that exists, under a new name (S15)."""
    workspace = opened()
    root = aged(workspace, git)
    (tmp_path / "there").write_text("mine")
    head = git(root, "rev-parse", "HEAD")
    with pytest.raises(EraseRefused):
        workspace.history_cut.cut(moment(2083), tmp_path / place)
    assert git(root, "rev-parse", "HEAD") == head
    assert (tmp_path / "there").read_text() == "mine"


def test_a_linked_working_tree_or_a_merge_under_way_prevents_it(opened: Opened, git: Git, tmp_path: Path) -> None:
    """Nothing is exported or changed while others work on the history (S15)."""
    workspace = opened()
    root = aged(workspace, git)
    git(root, "worktree", "add", "-q", "-b", "other", str(tmp_path / "other"))
    with pytest.raises(EraseRefused, match="working trees"):
        workspace.history_cut.cut(moment(2083), tmp_path / "old.bundle")
    git(root, "worktree", "remove", str(tmp_path / "other"))
    (root / ".git/MERGE_HEAD").write_text(git(root, "rev-parse", "HEAD"))
    with pytest.raises(EraseRefused):
        workspace.history_cut.cut(moment(2083), tmp_path / "old.bundle")
    assert not (tmp_path / "old.bundle").exists()


def fresh(opened: Opened, git: Git, root: Path) -> Workspace:
    """A workspace of four years at a place of its own."""
    workspace = opened(root)
    aged(workspace, git, (2081, 2082, 2083))
    git(root, "tag", "-a", "early", "-m", "early", "HEAD~5")
    return workspace


def test_stopped_anywhere_it_is_old_or_new_and_the_next_opening_ends_it(
    opened: Opened, git: Git, tmp_path: Path, scale: Callable[[int, int], int]
) -> None:
    """A stop at the N-th operation leaves a whole repository; the next opening takes away locks and leavings (S15)."""
    counted = fresh(opened, git, tmp_path / "counted")
    with injected(Fault()) as fault:
        counted.history_cut.cut(moment(2083), tmp_path / "counted.bundle")
    changing = [number for number, seen in enumerate(fault.seen, 1) if seen.split(" ")[0] in CHANGES]
    record = next(number for number in changing if fault.seen[number - 1].endswith("record.json"))
    count = scale(3, 10_000)
    late = [number for number in changing if number >= record]
    early = [number for number in changing if number < record]
    tried = {*late[:: max(1, len(late) // count)], *early[:: max(1, len(early) // 2)], changing[-1]}
    for number in sorted(tried):
        root = tmp_path / f"stopped-{number}"
        workspace = fresh(opened, git, root)
        before, later = files(root), git(root, "log", "-2", "--format=%s %T")
        with injected(Fault(at=number)), pytest.raises(Stopped):
            workspace.history_cut.cut(moment(2083), tmp_path / f"{number}.bundle")
        workspace.store.close = lambda: None  # type: ignore[method-assign]  the process is dead
        assert files(root) == before
        git(root, "fsck", "--full", "--strict")
        again = opened(root)
        assert not list((root / ".git/memfs").rglob("erase")), number
        assert not list((root / ".git").rglob("*.lock")) or not list((root / ".git/refs").rglob("*.lock"))
        assert not [note for note in again.store.notes if note.code == "CutUnfinished"]
        if b"marten-2081" in objects(root):
            assert git(root, "tag").split() == ["early"], "nothing was cut"
            again.history_cut.cut(moment(2083), tmp_path / f"{number}-again.bundle")
        assert git(root, "tag") == ""
        assert b"marten-2081" not in objects(root)
        assert git(root, "log", "-2", "--format=%s %T") == later
        git(root, "fsck", "--full", "--strict")
        again.store.put(MemoryItem("the bridge has two arches", "knowledge", id="bridge"))
        assert again.store.flush().reason == ""


def test_a_stop_is_ended_though_a_fetch_named_what_is_gone(opened: Opened, git: Git, tmp_path: Path) -> None:
    """An id in ``FETCH_HEAD`` brings nothing back, and does not keep an interrupted cut or erase from its end (S15)."""
    for number, name in enumerate(("cut", "erase")):
        root = tmp_path / name
        workspace = fresh(opened, git, root)
        old = git(root, "rev-parse", "HEAD").strip()

        def act(workspace: Workspace = workspace, number: int = number) -> None:
            if number:
                workspace.eraser.erase("gate")
            else:
                workspace.history_cut.cut(moment(2083), tmp_path / "old.bundle")

        with injected(OldObjects()), pytest.raises(Stopped):
            act()
        workspace.store.close = lambda: None  # type: ignore[method-assign]  the process is dead
        (root / ".git/FETCH_HEAD").write_text(f"{old}\t\tbranch 'main' of elsewhere\n")
        again = opened(root)
        assert [note.code for note in again.store.notes] == ["EraseEnded" if number else "CutEnded"]
        assert b"marten-2081" not in objects(root)
        git(root, "fsck", "--full", "--strict")


def test_a_cut_that_had_to_look_again_says_what_it_did(
    opened: Opened, git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a ref moves after the swap, the outcome names all that was cut, not only the rest (S15)."""
    workspace = opened()
    root = aged(workspace, git)
    planned, real, raised = workspace.history_cut.plan(moment(2083)), Rewriter.finish, []

    def moved(rewriter: Rewriter) -> None:
        if not raised:
            raised.append(rewriter)
            raise MovedRef
        real(rewriter)

    monkeypatch.setattr(Rewriter, "finish", moved)
    done = workspace.history_cut.cut(moment(2083), tmp_path / "old.bundle")
    assert (done.commit, done.cut, done.rewritten) == (planned.commit, 5, 4)
    assert done.export == tmp_path / "old.bundle"
    assert done.sha256 == hashlib.sha256((tmp_path / "old.bundle").read_bytes()).hexdigest()
    assert b"marten-2081" not in objects(root)
    git(root, "fsck", "--full", "--strict")


def stopped(workspace: Workspace, export: Path) -> None:
    """A cut at 2083 that is killed while the old objects go."""
    with injected(OldObjects()), pytest.raises(Stopped):
        workspace.history_cut.cut(moment(2083), export)


def test_an_interrupted_cut_is_ended_and_named_before_the_next_one(opened: Opened, git: Git, tmp_path: Path) -> None:
    """Asked for another cut while one is under way, memfs ends that one, says so, and does what was asked for (S15)."""
    workspace = opened()
    root = aged(workspace, git)
    stopped(workspace, tmp_path / "old.bundle")
    done = workspace.history_cut.cut(moment(2084), tmp_path / "more.bundle")
    assert done.commit
    assert "old.bundle" in done.ended
    assert [note.code for note in workspace.store.notes] == ["CutEnded"]
    assert b"marten-2082" not in objects(root)
    assert (tmp_path / "more.bundle").exists()


def test_the_command_says_that_opening_ended_a_cut(
    opened: Opened, git: Git, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Anyone who repeats the command after a crash reads what was cut, not an error about the file (S15)."""
    workspace = opened()
    root = aged(workspace, git)
    stopped(workspace, tmp_path / "old.bundle")
    workspace.store.close = lambda: None  # type: ignore[method-assign]  the process is dead
    wanted = ("admin", "cut", "2083-01-01T00:00Z", "--yes", "--export", str(tmp_path / "old.bundle"))
    assert run(["-C", str(root), *wanted]) == 0
    ended = yaml.safe_load(capsys.readouterr().out)["ended"]
    assert ended.startswith("5 commits up to")
    assert "exported to old.bundle, sha256" in ended


def test_a_cut_does_not_take_the_place_of_an_interrupted_erase(
    opened: Opened, git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an erase has begun is not forgotten for a cut, which is refused until that has ended (S15, B6)."""
    workspace = opened()
    root = aged(workspace, git)

    def fail(*_: object) -> None:
        raise EraseRefused("stopped here")

    with monkeypatch.context() as patched:
        patched.setattr("memfs.git.rewrite.Rewriter.finish", fail)
        with pytest.raises(EraseRefused, match="stopped here"):
            workspace.eraser.erase("note-2084")
    with pytest.raises(EraseRefused, match="was interrupted"):
        workspace.history_cut.cut(moment(2083), tmp_path / "old.bundle")
    assert not (tmp_path / "old.bundle").exists()
    assert [note.code for note in opened(root).store.notes] == ["EraseEnded"]


def test_a_damaged_record_of_a_cut_is_not_called_an_erase(opened: Opened, git: Git, tmp_path: Path) -> None:
    """Of a record that cannot be read nobody can say what it was about, and the note does not (S15)."""
    workspace = opened()
    aged(workspace, git)
    stopped(workspace, tmp_path / "old.bundle")
    workspace.store.close = lambda: None  # type: ignore[method-assign]  the process is dead
    record = workspace.repository.state / "erase/record.json"
    record.write_bytes(record.read_bytes()[:100])
    (note,) = opened(workspace.root).store.notes
    assert "record of an interrupted erase or cut of history is damaged" in note.message
    assert note.hint == f"remove {record}, then erase or cut again"


class OldObjects(Fault):
    """Stops when the tenth of the old objects goes."""

    removed = 0

    def __call__(self, name: str, path: str) -> None:
        """The hook itself."""
        self.removed += name == "unlink" and re.search(r"/\.git/objects/[0-9a-f]{2}/", path) is not None
        if self.removed == 10:
            raise Stopped
        super().__call__(name, path)


def test_a_failing_disk_changes_nothing_or_is_ended_later(
    opened: Opened, git: Git, tmp_path: Path, scale: Callable[[int, int], int]
) -> None:
    """An error at the N-th operation is an error of memfs; no bundle stays of a cut that did not begin (S15)."""
    counted = fresh(opened, git, tmp_path / "counted")
    with injected(Fault()) as fault:
        counted.history_cut.cut(moment(2083), tmp_path / "counted.bundle")
    changing = [number for number, seen in enumerate(fault.seen, 1) if seen.split(" ")[0] in CHANGES]
    for number in changing[:: max(1, len(changing) // scale(3, 200))]:
        root = tmp_path / f"failed-{number}"
        workspace = fresh(opened, git, root)
        with injected(Fault(at=number, error=DISK_ERROR)), contextlib.suppress(MemfsError):
            workspace.history_cut.cut(moment(2083), tmp_path / f"{number}.bundle")
        git(root, "fsck", "--full", "--strict")
        again = opened(root)
        if b"marten-2081" in objects(root):
            again.history_cut.cut(moment(2083), tmp_path / f"{number}-again.bundle")
        assert b"marten-2081" not in objects(root)
        git(root, "fsck", "--full", "--strict")


def test_the_command_says_what_it_would_do_asks_and_does_it(
    opened: Opened, git: Git, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A dry run changes nothing; without a person to ask, --yes and --export are demanded (S15)."""
    root = aged(opened(), git)
    head = git(root, "rev-parse", "HEAD")
    wanted = ("admin", "cut", "2083-01-01T00:00Z")
    assert run(["-C", str(root), *wanted, "--dry-run", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert (plan["cut"], plan["rewritten"], plan["dry_run"], plan["export"]) == (5, 4, True, None)
    assert run(["-C", str(root), *wanted]) == 1
    assert "--dry-run" in capsys.readouterr().err
    assert run(["-C", str(root), *wanted, "--yes"]) == 1
    assert "--export" in capsys.readouterr().err
    assert run(["-C", str(root), "admin", "cut", "--yes"]) == 2
    assert run(["-C", str(root), "admin", "cut", "someday"]) == 2
    assert git(root, "rev-parse", "HEAD") == head
    capsys.readouterr()
    assert run(["-C", str(root), *wanted, "--yes", "--export", str(tmp_path / "old.bundle")]) == 0
    done = yaml.safe_load(capsys.readouterr().out)
    assert (done["cut"], done["export"]) == (5, str(tmp_path / "old.bundle"))
    assert run(["-C", str(root), *wanted, "--dry-run"]) == 0
    assert "commit" not in yaml.safe_load(capsys.readouterr().out)


GRAPHS = st.lists(st.lists(st.integers(0, 30), max_size=2), min_size=1, max_size=30)


@given(GRAPHS, st.integers(0, 40), st.data())
def test_every_line_leads_through_the_cut_and_nothing_younger_goes(
    graph: list[list[int]], before: int, data: st.DataObject
) -> None:
    """Whatever the history: no commit that stays has a parent among those that go, and all of those are older (S15)."""
    parents = {
        str(number): tuple(str(parent) for parent in dict.fromkeys(row) if parent < number)
        for number, row in enumerate(graph)
    }
    times = {name: data.draw(st.integers(0, 40)) for name in parents}
    tips = set(data.draw(st.lists(st.sampled_from(sorted(parents)), min_size=1, max_size=3)))
    point = cut_point(parents, times, tips, before)
    if point is None:
        return
    old = reached(parents, [point])
    assert all(times[commit] < before for commit in old)
    stays = reached(parents, tips, old)
    assert tips <= stays | {point}
    assert all(parent in stays | {point} for commit in stays for parent in parents[commit])

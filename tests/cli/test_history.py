"""commit, log, diff, blame, restore."""

from __future__ import annotations

from pathlib import Path

import pytest

from memfs.workspace import open_workspace

from .conftest import Memfs, git


@pytest.fixture
def item(root: Path, memfs: Memfs) -> Path:
    """An item with two versions, each committed."""
    memfs("remember", "one", "--id", "x", "--agent", "coder")
    return root / memfs("update", "x", "two", "--json").json["path"]


def test_commit_takes_what_waits_and_hand_edits(root: Path, item: Path, memfs: Memfs) -> None:
    """commit adopts an edit as the person's own, and leaves git status clean."""
    item.write_text(item.read_text().replace("two", "by hand"))
    shown = memfs("commit", "-m", "Correct x", "--json")
    assert shown.code == 0
    assert shown.json["adopted"] == [item.relative_to(root).as_posix()]
    assert (shown.json["waiting"], shown.json["reason"], shown.json["skipped"]) == (0, "", [])
    assert git(root, "log", "-1", "--format=%H %an %s").split() == [
        shown.json["commits"][-1],
        "Ada",
        "Person",
        "Correct",
        "x",
    ]
    assert git(root, "status", "--porcelain") == ""
    assert memfs("commit").out == "Nothing to commit\n"


def test_commit_with_a_message_is_one_commit_of_what_a_person_wrote(root: Path, memfs: Memfs) -> None:
    """-m is the message of all that waited, with a line for each change; what an agent wrote is a commit of its own."""
    manual = ("--set", "history.commit=manual")
    memfs("remember", "We deploy on Fridays", *manual)
    memfs("remember", "We use tabs", *manual)
    memfs("remember", "It rains", "--agent", "coder", *manual)
    (root / "notes.md").write_text("# Notes\n\nAsk Bo.\n")
    memfs("import", str(root / "notes.md"), *manual)
    before = git(root, "rev-parse", "HEAD").strip()
    shown = memfs("commit", "-m", "First memories", "--json")
    assert shown.code == 0
    log = git(root, "log", "--reverse", "--format=%an|%s|%b", f"{before}..").strip()
    commits = [line.split("|") for line in log.replace("\n- ", " - ").splitlines() if "|" in line]
    assert [(one[0], one[1]) for one in commits] == [
        ("Ada Person", "First memories"),
        ("coder", "First memories"),
        ("Ada Person", "First memories"),
    ]
    assert "- Remember: We deploy on Fridays - Remember: We use tabs" in log.replace("\n- ", " - ")
    assert len(shown.json["commits"]) == 3


def test_commit_with_a_message_joins_the_versions_of_a_memory(root: Path, memfs: Memfs) -> None:
    """One commit has the last of several versions, and those before it can be brought back."""
    manual = ("--set", "history.commit=manual")
    path = memfs("remember", "We deploy on Mondays", "--id", "deploys", "--json", *manual).json["path"]
    memfs("update", "deploys", "We deploy on Tuesdays", *manual)
    memfs("update", "deploys", "We deploy on Fridays", *manual)
    gone = memfs("remember", "It rains", "--id", "rain", "--json", *manual).json["path"]
    memfs("forget", "rain", *manual)
    memfs("remember", "We use tabs", "--id", "tabs", *manual)
    before = git(root, "rev-parse", "HEAD").strip()
    shown = memfs("commit", "-m", "One message", "--json", *manual)
    assert (len(shown.json["commits"]), shown.json["waiting"]) == (1, 0)
    assert git(root, "log", "--format=%s", f"{before}..").splitlines() == ["One message"]
    assert "We deploy on Fridays" in git(root, "show", f"HEAD:{path}")
    assert git(root, "status", "--porcelain") == ""
    with open_workspace(root, watch=False) as workspace:
        kept = workspace.recovered.list()
        assert sorted(row.path for row in kept) == sorted([path, path, gone])
        texts = []
        for row in kept:
            if row.path == path:
                workspace.recovered.restore(row.name)
                texts.append((root / path).read_text())
    assert sorted(day for day in ("Mondays", "Tuesdays", "Fridays") if any(day in text for text in texts)) == [
        "Mondays",
        "Tuesdays",
    ]


def test_commit_without_a_message_keeps_every_version_in_history(root: Path, memfs: Memfs) -> None:
    """Each version of a memory is a commit of its own."""
    manual = ("--set", "history.commit=manual")
    memfs("remember", "We deploy on Mondays", "--id", "deploys", *manual)
    memfs("update", "deploys", "We deploy on Fridays", *manual)
    assert len(memfs("commit", "--json", *manual).json["commits"]) == 2


def test_commit_leaves_staged_files_to_the_person(root: Path, item: Path, memfs: Memfs) -> None:
    """A path with something else staged is left alone and named; --include-staged takes it."""
    item.write_text(item.read_text().replace("two", "staged"))
    git(root, "add", str(item))
    ran = memfs("commit")
    assert ran.code == 0
    assert "--include-staged" in ran.err
    assert memfs("commit", "--include-staged", "--json").json["adopted"] == [item.relative_to(root).as_posix()]


def test_commit_that_must_wait_is_refused_with_the_reason(root: Path, item: Path, memfs: Memfs) -> None:
    """While a merge is open nothing is committed: exit 1, the reason, and the item is stored all the same."""
    (root / ".git" / "MERGE_HEAD").write_text(git(root, "rev-parse", "HEAD"))
    stored = memfs("remember", "during the merge", "--json")
    assert (stored.code, stored.json["durability"], stored.json["revision"]) == (0, "file", None)
    ran = memfs("commit")
    assert ran.code == 1
    assert "merge" in ran.err
    status = memfs("status", "--json").json
    assert status["pending_commits"] == 1
    assert "merge" in status["pending_reason"]
    (root / ".git" / "MERGE_HEAD").unlink()
    assert memfs("commit").code == 0
    assert memfs("status", "--json").json["pending_commits"] == 0


@pytest.mark.parametrize(
    ("policy", "hint"),
    [
        ("manual", "run 'memfs commit' again when that is over"),
        ("session", "run 'memfs commit' again when that is over"),
        ("batch", "when that is over, the next command that writes commits it, or 'memfs commit'"),
    ],
)
def test_commit_on_a_detached_head_says_what_comes_next(root: Path, memfs: Memfs, policy: str, hint: str) -> None:
    """Only where a command that writes commits what waits it is promised; ``check`` says the same of what waits."""
    memfs("remember", "We use tabs")
    git(root, "checkout", "--quiet", "--detach")
    chosen = ("--set", f"history.commit={policy}")
    memfs("remember", "It rains", *chosen)
    ran = memfs("commit", *chosen)
    assert ran.code == 1
    assert hint in ran.err
    (waiting,) = (one for one in memfs("check", "--json", *chosen).json["problems"] if one["code"] == "CommitsWaiting")
    assert hint in waiting["hint"]


def test_log_of_everything_and_of_one_item(root: Path, item: Path, memfs: Memfs) -> None:
    """log lists commits newest first with who, when and why; an item's log has only its own."""
    memfs("remember", "other", "--id", "y")
    everything = memfs("log", "--json").json["revisions"]
    assert len(everything) == 4
    own = memfs("log", "x", "--json").json["revisions"]
    assert [revision["subject"] for revision in own] == ["Update: two", "Remember: one"]
    assert own[1]["trailers"]["Memfs-Agent"] == ["coder"]
    assert own[1]["author"] == "coder"
    assert own[0]["paths"] == [item.relative_to(root).as_posix()]
    assert len(memfs("log", "--limit", "1", "--json").json["revisions"]) == 1
    assert memfs("log", "--since", "1h", "--limit", "2", "--json").json["revisions"] == everything[:2]
    first = memfs("log", "x").out.splitlines()[0]
    assert first.startswith(git(root, "rev-parse", "--short=7", "HEAD~1").strip()[:7])
    assert first.endswith("Update: two")


def test_diff_between_revisions_and_files(root: Path, item: Path, memfs: Memfs) -> None:
    """diff takes no, one or two revisions, and an item at the end."""
    assert memfs("diff").out == ""
    between = memfs("diff", "HEAD~1", "HEAD").out
    assert "-content: one" in between
    assert "+content: two" in between
    item.write_text(item.read_text().replace("two", "by hand"))
    assert "+content: by hand" in memfs("diff").out
    assert "+content: by hand" in memfs("diff", "HEAD~1", "x").out
    shown = memfs("diff", "HEAD~1", "HEAD", "x", "--json").json
    assert (shown["a"], shown["b"], shown["target"]) == ("HEAD~1", "HEAD", "x")
    assert "+content: two" in shown["diff"]
    assert memfs("diff", "nonsense", "HEAD").code == 1


def test_diff_leaves_out_what_is_kept_out_of_git(root: Path, memfs: Memfs) -> None:
    """A large body beside its document, which the workspace's .gitignore names, is no difference."""
    (root / "ContextMemory/large.zst").write_bytes(b"\0")
    assert memfs("diff").out == ""


@pytest.mark.parametrize("written", ["HEAD~1..HEAD", "HEAD~1.."])
def test_diff_takes_two_revisions_as_git_does(item: Path, memfs: Memfs, written: str) -> None:
    """A..B is the same as A B, and an end that is left out is HEAD."""
    item.write_text(item.read_text().replace("two", "by hand"))
    assert memfs("diff", written, "x").out == memfs("diff", "HEAD~1", "HEAD", "x").out != ""
    assert memfs("diff", "..HEAD~1").out == memfs("diff", "HEAD", "HEAD~1").out
    ran = memfs("diff", "HEAD..nonsense")
    assert (ran.code, "nonsense" in ran.err) == (1, True)


@pytest.mark.parametrize("arguments", [[], ["x"], ["--from", "HEAD", "--displaced"], ["x", "--displaced", "--dry-run"]])
def test_restore_asks_from_where(item: Path, memfs: Memfs, arguments: list[str]) -> None:
    """Without a revision, or with two places to take it from, restore changes nothing and says what to name."""
    before = item.read_bytes()
    ran = memfs("restore", *arguments)
    assert ("'x' is not forgotten" in ran.err) == (arguments == ["x"])
    assert (ran.code, item.read_bytes()) == (2, before)
    assert "--displaced" in ran.err


def test_restore_brings_back_what_was_forgotten(item: Path, memfs: Memfs) -> None:
    """Whether the removal has a commit by now or not, the id alone brings the item back as it was last."""
    before = item.read_bytes()
    assert memfs("restore", "nothere").err.startswith("memfs: no memory ever had the id 'nothere'\n")
    memfs("forget", "x")
    for _ in range(2):
        assert not item.exists()
        assert memfs("restore", "x", "--dry-run").out.startswith("Would restore ")
        assert not item.exists()
        assert memfs("restore", item.relative_to(item.parents[4]).as_posix()).code == 0
        memfs("forget", "x")
        assert memfs("restore", "x").code == 0
        assert item.read_bytes() == before
        memfs("commit")
        memfs("forget", "x")
        memfs("commit")


def test_restore_of_one_item(root: Path, item: Path, memfs: Memfs) -> None:
    """restore writes a new commit with the old content, and recall follows."""
    dry = memfs("restore", "--from", "HEAD~1", "x", "--dry-run")
    assert dry.out == f"Would restore {item.relative_to(root).as_posix()}\n"
    assert memfs("show", "x", "--json").json["content"] == "two"
    shown = memfs("restore", "--from", "HEAD~1", "x", "--json").json
    assert shown["restored"] == [item.relative_to(root).as_posix()]
    assert shown["commit"] == git(root, "rev-parse", "HEAD").strip()
    assert memfs("recall", "one", "--json").json["hits"][0]["id"] == "x"
    assert git(root, "status", "--porcelain") == ""


def test_restore_of_the_whole_memory(root: Path, item: Path, memfs: Memfs) -> None:
    """Without a target everything goes back, and what came later is removed."""
    memfs("remember", "later", "--id", "y")
    shown = memfs("restore", "--from", "HEAD~1", "--json").json
    assert [Path(path).stem for path in shown["removed"]] == ["y"]
    assert [entry["id"] for entry in memfs("list", "--json").json["items"]] == ["x"]
    assert memfs("restore", "--from", "HEAD").err == "memfs: nothing differs from HEAD\n"


def test_restore_does_not_remove_what_came_later(root: Path, item: Path, memfs: Memfs) -> None:
    """Naming a memory or folder means bringing it back: where it was not there then, that is refused."""
    path = memfs("remember", "later", "--id", "y", "--type", "convention", "--json").json["path"]
    for target in ("y", path, str(Path(path).parent)):
        ran = memfs("restore", target, "--from", "HEAD~1")
        assert (ran.code, ran.out) == (1, "")
        assert "was not there at" in ran.err
        assert "'memfs forget ID'" in ran.err
    assert (root / path).exists()


def test_restore_does_not_overwrite_an_uncommitted_edit(item: Path, memfs: Memfs) -> None:
    """A file with an edit that is not committed is a conflict, and the edit stays."""
    item.write_text(item.read_text().replace("two", "mine"))
    ran = memfs("restore", "--from", "HEAD~1", "x")
    assert ran.code == 1
    assert "'memfs commit' commits it; or undo it with 'git checkout" in ran.err
    assert "mine" in item.read_text()


def test_restore_lists_and_brings_back(root: Path, memfs: Memfs, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a person removed before it was committed can be brought back by its id."""
    assert memfs("restore", "--displaced", "--json").json["recoverable"] == []
    monkeypatch.setenv("MEMFS_HISTORY_COMMIT", "session")
    path = root / memfs("remember", "precious", "--id", "x", "--json").json["path"]
    path.unlink()
    memfs("commit")
    rows = memfs("restore", "--displaced", "--json").json["recoverable"]
    assert [row["path"] for row in rows] == [path.relative_to(root).as_posix()]
    assert "'memfs restore ID --displaced' brings one back" in memfs("restore", "--displaced").err
    assert memfs("restore", "x", "--displaced", "--json").json["restored"] == [rows[0]["path"]]
    assert memfs("show", "x", "--json").json["content"] == "precious"


def test_commit_names_edits_that_are_not_valid(root: Path, item: Path, memfs: Memfs) -> None:
    """An invalid edit is not committed, and the person learns of it: on standard error and among the skipped."""
    item.write_text("content: x\nttle: y\n")
    path = item.relative_to(root).as_posix()
    assert memfs("commit", "--json").json["skipped"] == [path]
    ran = memfs("commit")
    assert (ran.code, ran.out) == (0, "Nothing was committed\n")
    assert f"skipped {path}: it is invalid; see 'memfs check'" in ran.err
    configuration = root / "ContextMemory/configuration/system_config.json"
    configuration.write_text("{")
    assert configuration.relative_to(root).as_posix() in memfs("commit", "--json").json["skipped"]


def test_restore_over_an_invalid_edit_says_the_way_out(root: Path, item: Path, memfs: Memfs) -> None:
    """The hint does not send the person to a commit that would leave the file alone."""
    item.write_text("content: x\nttle: y\n")
    ran = memfs("restore", "--from", "HEAD~1", "x")
    assert ran.code == 1
    assert "memfs check" in ran.err
    assert f"git checkout -- {item.relative_to(root).as_posix()}" in ran.err
    git(root, "checkout", "--", item.relative_to(root).as_posix())
    assert memfs("restore", "--from", "HEAD~1", "x").code == 0


def test_log_follows_an_item_whose_path_changed(root: Path, item: Path, memfs: Memfs) -> None:
    """The log of an id goes on beyond a change of type, a move by hand, and the end of the item."""
    memfs("update", "x", "--type", "rule")
    own = memfs("log", "x", "--json").json["revisions"]
    assert [revision["subject"] for revision in own] == ["Update: two", "Update: two", "Remember: one"]
    moved = next((root / "ContextMemory/memories/rule").rglob("x.yaml"))
    (root / "ContextMemory/memories/rule/mine").mkdir()
    moved.rename(root / "ContextMemory/memories/rule/mine/x.yaml")
    assert memfs("log", "x", "--json").json["revisions"] == own
    memfs("commit")
    assert len(memfs("log", "x", "--json").json["revisions"]) == 4
    assert len(memfs("log", "x", "--limit", "2", "--json").json["revisions"]) == 2
    memfs("forget", "x")
    assert len(memfs("log", "x", "--json").json["revisions"]) == 5


@pytest.mark.parametrize("name", ["ContextMemory/memories/semantic/nothing.yaml", "nothing/at/all", "nothing"])
def test_log_of_what_never_was_is_refused(item: Path, memfs: Memfs, name: str) -> None:
    """A mistyped path or id is an error, not an empty log."""
    ran = memfs("log", name)
    assert (ran.code, ran.out) == (1, "")
    assert "nothing" in ran.err


@pytest.mark.parametrize("name", ["ContextMemory/memories/semantic/nothing.yaml", "nothing"])
def test_blame_of_what_never_was_names_where_to_look(item: Path, memfs: Memfs, name: str) -> None:
    """The hint does not lead to a log that is empty; of what is gone it does."""
    assert "'memfs list' shows what there is" in memfs("team", "blame", name).err
    memfs("forget", "x")
    assert "memfs log x shows where it does" in memfs("team", "blame", "x").err


def test_log_of_what_is_not_committed_yet_is_empty(root: Path, memfs: Memfs, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is there has a history still to come."""
    monkeypatch.setenv("MEMFS_HISTORY_COMMIT", "session")
    path = memfs("remember", "x", "--id", "x", "--json").json["path"]
    for name in ("x", path):
        ran = memfs("log", name)
        assert (ran.code, ran.out) == (0, "")
        assert f"no commit has {name} yet" in ran.err


def test_log_does_not_flood_the_terminal(memfs: Memfs) -> None:
    """Of a commit with many files a person sees the first twenty; JSON has them all."""
    lines = "".join(f'{{"content": "fact {number}"}}\n' for number in range(23))
    memfs("import", "-", stdin=lines)
    assert memfs("log", "-n", "1").out.splitlines()[-1] == "    and 3 more"
    assert len(memfs("log", "-n", "1", "--json").json["revisions"][0]["paths"]) == 23


def test_the_whole_memory_is_a_target(root: Path, item: Path, memfs: Memfs) -> None:
    """The folder of the memory itself is a target, too."""
    assert "+content: two" in memfs("diff", "HEAD~1", "HEAD", "ContextMemory").out
    assert len(memfs("log", "ContextMemory", "--json").json["revisions"]) == 3

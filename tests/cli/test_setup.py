"""init and config."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from memfs.settings import SPECS

from .conftest import Memfs, git


def test_init_makes_a_repository_and_says_what_it_chose(bare: Memfs, tmp_path: Path) -> None:
    """Where no repository is, one is made; only memfs's own files are committed, and the policies are printed."""
    ran = bare("init", str(tmp_path / "a" / "W"))
    root = tmp_path / "a" / "W"
    assert ran.code == 0, ran.err
    for expected in (
        str(root),
        "git repository",
        "wrote memfs.toml",
        'history.commit = "interval"',
        'history.adopt = "auto"',
    ):
        assert expected in ran.out
    assert git(root, "status", "--porcelain") == ""
    tracked = git(root, "ls-files").split()
    assert "memfs.toml" in tracked
    assert all(path == "memfs.toml" or path.startswith("ContextMemory/") for path in tracked)


def test_init_says_when_git_knows_no_name(bare: Memfs, tmp_path: Path, own_world: Path) -> None:
    """Without ``user.name`` commits are memfs's own, which init says once; with it nothing is said."""
    assert "user.name" not in bare("init", str(tmp_path / "A")).err
    (own_world / ".gitconfig").write_text("")
    assert "commits are by memfs <memfs@localhost>\n  set user.name" in bare("init", str(tmp_path / "B")).err


def test_init_json(bare: Memfs, tmp_path: Path) -> None:
    """init --json gives the same to a program."""
    shown = bare("init", str(tmp_path / "W"), "--json").json
    assert shown["workspace"] == str(tmp_path / "W")
    assert shown["repository_made"] is True
    assert shown["policies"] == {"history.commit": "interval", "history.adopt": "auto"}
    assert "memfs.toml" in shown["files"]
    assert shown["commit"] == git(tmp_path / "W", "rev-parse", "HEAD").strip()


def test_a_workspace_within_another_is_made_on_purpose_only(bare: Memfs, tmp_path: Path) -> None:
    """Below a workspace init is refused with its name, whether the folder is there or not; --nested makes one."""
    outer = tmp_path / "n"
    bare("init", str(outer))
    (outer / "src").mkdir()
    before = git(outer, "rev-parse", "HEAD")
    for place in (outer / "src", outer / "src" / "new"):
        refused = bare("init", str(place))
        assert refused.code == 1
        assert f"{outer}: there is a workspace around this folder already" in refused.err
        assert "--nested" in refused.err
    assert list((outer / "src").iterdir()) == []
    assert git(outer, "rev-parse", "HEAD") == before
    own = bare("init", str(outer / "ContextMemory" / "memories"), "--nested")
    assert own.code == 1
    assert "belongs to the workspace around it" in own.err
    assert bare("init", str(outer)).code == 0
    assert bare("init", str(outer / "src"), "--nested").code == 0
    assert (outer / "src" / "ContextMemory").is_dir()
    assert bare("init", str(outer / "src")).code == 0


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A code repository with a commit, something staged and something untracked."""
    root = tmp_path / "project"
    root.mkdir()
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / "code.py").write_text("print()\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "Begin")
    (root / "staged.py").write_text("staged\n")
    git(root, "add", "staged.py")
    (root / "untracked.py").write_text("untracked\n")
    return root


def test_init_in_a_repository_writes_three_small_files_and_commits_nothing(bare: Memfs, project: Path) -> None:
    """History and staged files stay, the configuration gets the merge driver alone, and the policy is said (D1, B3)."""
    configuration = (project / ".git" / "config").read_text()
    before, refs = git(project, "log"), git(project, "for-each-ref")
    ran = bare("init", str(project))
    assert ran.code == 0, ran.err
    assert (git(project, "log"), git(project, "for-each-ref")) == (before, refs)
    new = ["ContextMemory/.gitattributes", "ContextMemory/.gitignore", "memfs.toml"]
    shown = git(project, "status", "--porcelain", "-uall").splitlines()
    assert shown == ["A  staged.py", *(f"?? {path}" for path in new), "?? untracked.py"]
    assert sum((project / path).stat().st_size for path in new) < 1500
    assert (project / "memfs.toml").read_text().splitlines()[1:] == [
        "format_version = 2",
        "",
        "[history]",
        'commit = "manual"',
    ]
    assert ran.out.count('chose history.commit = "manual": memory files are yours to commit with git') == 1
    after = (project / ".git" / "config").read_text()
    assert after.startswith(f'{configuration}[merge "memfs"]\n')
    assert "\n[" not in after[len(configuration) :]


def test_init_dry_run_says_what_it_would_do_and_does_nothing(bare: Memfs, project: Path) -> None:
    """Files, git's configuration and refs are listed; not even memfs's own folder in git's is made (D1)."""

    def everything() -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in sorted(project.rglob("*")) if path.is_file()}

    before = everything()
    ran = bare("init", str(project), "--dry-run")
    assert ran.code == 0, ran.err
    for expected in ("memfs.toml", "ContextMemory/.gitattributes", "merge.memfs.driver = ", "no commit, branch, tag"):
        assert expected in ran.out
    shown = bare("init", str(project), "--dry-run", "--json").json
    assert (shown["repository_made"], shown["created"], shown["commit"]) == (False, False, None)
    assert shown["policies"] == {"history.commit": "manual"}
    assert len(shown["files"]) == 3
    assert everything() == before
    assert not (project / ".git" / "memfs").exists()
    elsewhere = project.parent / "fresh"
    assert "and a git repository for it" in bare("init", str(elsewhere), "--dry-run").out
    assert not elsewhere.exists()


def test_init_dry_run_refuses_what_init_refuses(bare: Memfs, root: Path) -> None:
    """A dry run within another workspace is refused like the real one."""
    assert bare("init", str(root / "src"), "--dry-run").code == 1
    assert bare("init", str(root), "--dry-run", "--json").json["files"] == []


def test_editors_get_schemas_on_request_only(memfs: Memfs, root: Path) -> None:
    """``admin schema`` writes them; git leaves out those in the workspace (K6)."""
    assert not (root / "ContextMemory/.schemas").exists()
    configuration = root / "ContextMemory/configuration"
    configuration.joinpath("kinds.yaml").write_text(
        "kinds:\n  recipe:\n    layer: semantic\n    description: Food.\n    body:\n"
        "      type: object\n      properties: {serves: {type: integer}}\n"
    )
    assert memfs("admin", "trust", "--yes").code == 0
    elsewhere = root.parent / "schemas"
    shown = memfs("admin", "schema", str(elsewhere), "--json").json
    assert "recipe.schema.json" in shown["files"]
    assert not (elsewhere / ".gitignore").exists()
    assert memfs("admin", "schema").code == 0
    assert (root / "ContextMemory/.schemas/item.schema.json").is_file()
    assert git(root, "status", "--porcelain", "-uall").count(".schemas") == 0


def test_a_template_names_a_schema_only_where_there_is_one(
    memfs: Memfs, root: Path, editor: Callable[[str], None]
) -> None:
    """``remember --edit`` writes the line for editors only beside exported schemas (K6)."""
    editor("echo '# mine' >> \"$1\"")
    first = root / memfs("remember", "--edit", "--type", "note", "--id", "one", "--json").json["path"]
    memfs("admin", "schema")
    second = root / memfs("remember", "--edit", "--type", "note", "--id", "two", "--json").json["path"]
    assert "$schema" not in first.read_text()
    named = second.read_text().splitlines()[0].partition("$schema=")[2]
    assert (second.parent / named).resolve().is_file()


def test_init_twice_changes_nothing(bare: Memfs, root: Path) -> None:
    """A second init finds everything there."""
    before = git(root, "rev-parse", "HEAD")
    ran = bare("init", str(root))
    assert ran.code == 0
    assert "workspace already" in ran.out
    assert git(root, "rev-parse", "HEAD") == before


def test_config_shows_each_value_and_its_origin(root: Path, memfs: Memfs, monkeypatch: pytest.MonkeyPatch) -> None:
    """config lists every setting; a value's origin is its variable, its line in memfs.toml, or default."""
    monkeypatch.setenv("MEMFS_RECALL_LIMIT", "3")
    shown = memfs("config", "--json").json["settings"]
    assert shown.keys() == SPECS.keys()
    assert shown["recall.limit"] == {"value": 3, "origin": "MEMFS_RECALL_LIMIT"}
    assert shown["watch.enabled"] == {"value": True, "origin": "default"}
    assert shown["history.commit"]["value"] == "interval"
    name, _, line = shown["history.commit"]["origin"].partition(":")
    assert (root / name).read_text().splitlines()[int(line) - 1] == 'commit = "interval"'
    rows = [row.split() for row in memfs("config").out.splitlines()]
    assert ["recall.limit", "3", "MEMFS_RECALL_LIMIT"] in rows
    assert ["watch.enabled", "true", "default"] not in rows
    assert "watch.enabled" in memfs("config", "--list").out


def test_config_of_one_key_is_its_value_alone(memfs: Memfs) -> None:
    """config KEY prints the bare value, for scripts."""
    assert memfs("config", "history.commit").out == "interval\n"
    assert memfs("config", "memory.triggered").out == '["episodic", "semantic"]\n'
    shown = memfs("config", "index.engine", "--json").json
    assert shown == {
        "key": "index.engine",
        "value": "sqlite",
        "origin": "MEMFS_INDEX_ENGINE",
        "variable": "MEMFS_INDEX_ENGINE",
    }
    ran = memfs("config", "index.engin")
    assert ran.code == 2
    assert "did you mean 'index.engine'?" in ran.err


def test_config_sets_a_value_and_keeps_the_rest_of_the_file(root: Path, memfs: Memfs) -> None:
    """config KEY VALUE changes memfs.toml, comments kept, as a commit; --unset takes it out again to the byte."""
    file = root / "memfs.toml"
    file.write_text(file.read_text() + "# ours\n\n[recall]\nlimit = 7  # few\n")
    assert memfs("commit").code == 0
    before = file.read_text()
    shown = memfs("config", "recall.limit", "9", "--json").json
    assert (shown["value"], shown["file"], shown["origin"].partition(":")[0]) == (9, "memfs.toml", "memfs.toml")
    assert file.read_text() == before.replace("limit = 7  #", "limit = 9  #")
    assert git(root, "log", "-1", "--format=%s").strip() == "Set recall.limit"
    assert memfs("config", "memory.episodic.max_warnings", "5").out.startswith("memory.episodic.max_warnings = 5  (")
    assert memfs("config", "memory.triggered", "episodic").code == 0
    assert memfs("config", "memory.triggered").out == '["episodic"]\n'
    for key in ("memory.episodic.max_warnings", "memory.triggered"):
        assert memfs("config", "--unset", key).code == 0
    memfs("config", "recall.limit", "7")
    assert file.read_text() == before


def test_config_refuses_what_would_close_the_workspace(root: Path, memfs: Memfs) -> None:
    """An unknown name is refused with the nearest, a wrong value with what would be right; nothing is written."""
    before = (root / "memfs.toml").read_text()
    for words, message in (
        (("recall.limti", "3"), "did you mean 'recall.limit'?"),
        (("recall.limit", "many"), "not a whole number"),
        (("index.engine", "sqlit"), "did you mean 'sqlite'?"),
        (("--unset", "recall.limti"), "did you mean 'recall.limit'?"),
        (("--unset",), "memfs config --unset KEY"),
        (("--user", "recall.limit"), "memfs config --user KEY VALUE"),
    ):
        ran = memfs("config", *words)
        assert (ran.code, ran.out, message in ran.err) == (2, "", True), (words, ran.err)
    overruled = memfs("config", "index.engine", "memory")
    assert (overruled.code, "MEMFS_INDEX_ENGINE takes precedence" in overruled.err) == (1, True)
    memfs("config", "--unset", "index.engine")
    assert (root / "memfs.toml").read_text() == before


def test_own_settings_count_in_every_workspace(root: Path, memfs: Memfs, bare: Memfs) -> None:
    """config --user needs no workspace; the workspace's memfs.toml wins over it, and nothing of it needs trust."""
    own = Path.home() / ".config/memfs/config.toml"
    set_ = bare("config", "--user", "recall.limit", "20", "--json").json
    assert (set_["file"], set_["value"], own.read_text()) == (str(own), 20, "[recall]\nlimit = 20\n")
    assert memfs("config", "recall.limit", "--json").json["origin"] == f"{own}:2"
    bare("config", "--user", "memory.on_demand", "false")
    assert memfs("config", "memory.on_demand").out == "false\n"
    memfs("config", "recall.limit", "9")
    assert memfs("config", "recall.limit").out == "9\n"
    own.write_text("[recall]\nlimits = 1\n")
    wrong = memfs("config")
    assert (wrong.code, str(own) in wrong.err, "did you mean 'limit'?" in wrong.err) == (1, True, True)


def test_a_setting_may_be_given_for_one_command(memfs: Memfs) -> None:
    """--set KEY=VALUE, before or after the verb, wins over everything else."""
    assert memfs("--set", "recall.limit=3", "config", "recall.limit", "--json").json["origin"] == "argument"
    assert memfs("config", "recall.limit", "--set", "recall.limit=4").out == "4\n"
    assert memfs("config", "--set", "recall.limits=4").code == 2
    assert memfs("config", "--set", "recall.limit=many").code == 2
    assert memfs("config", "--set", "recall.limit").code == 2


def test_a_wrong_setting_is_named_by_any_verb(root: Path, memfs: Memfs) -> None:
    """A mistake in memfs.toml refuses with file, line and the nearest key."""
    (root / "memfs.toml").write_text('[index]\nengin = "sqlite"\n')
    ran = memfs("recall", "x")
    assert ran.code == 1
    assert ran.err == "memfs: memfs.toml:2: index.engin: unknown setting 'engin' in [index]\n  did you mean 'engine'?\n"


def test_init_refuses_an_empty_name(bare: Memfs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty PATH, a variable that is not set perhaps, does not mean the current folder."""
    monkeypatch.chdir(tmp_path)
    assert bare("init", "").code == 2
    assert list(tmp_path.iterdir()) == []


def test_init_user_makes_a_personal_workspace(
    bare: Memfs, tmp_path: Path, own_world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """init --user makes the user-level workspace with a repository of its own, once; it takes no folder (C1)."""
    monkeypatch.chdir(tmp_path)
    root = own_world / ".local/share/memfs"
    made = bare("init", "--user", "--json").json
    assert (made["workspace"], made["repository_made"]) == (str(root), True)
    assert bare("init", "--user").out == f"{root} is a workspace already\n"
    assert bare("init", "--user", "elsewhere").code == 2
    assert list(tmp_path.iterdir()) == []


def test_init_takes_in_a_memory_that_lost_its_repository(root: Path, memfs: Memfs, bare: Memfs) -> None:
    """Where .git is gone, init makes one and commits what is there, and says so."""
    memfs("remember", "kept", "--id", "x")
    shutil.rmtree(root / ".git")
    ran = bare("init", str(root))
    assert ran.code == 0, ran.err
    assert ran.out.startswith("Made a git repository for the workspace in")
    assert "existing file" in ran.out
    assert git(root, "status", "--porcelain") == ""
    assert memfs("log", "x", "--json").json["revisions"]
    assert bare("init", str(root)).out.endswith("is a workspace already\n")


def test_a_rule_by_which_git_ignores_memory_is_named(bare: Memfs, project: Path) -> None:
    """init and check say which line of which file keeps git from memory files; a rule for others is ignored."""
    (project / ".gitignore").write_text("*.log\nContextMemory/\n")
    for output in (bare("init", str(project)).err, bare("-C", str(project), "check").out):
        assert "git ignores memory files by .gitignore:2 ContextMemory/" in output
        assert "remove that rule" in output
    (project / ".gitignore").write_text("*.log\nContextMemory/\n!ContextMemory/\n")
    assert "ignores" not in bare("-C", str(project), "check").out

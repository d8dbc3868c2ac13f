"""remember: one text, or many."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from .conftest import Memfs, git


def test_json_is_the_contract(root: Path, memfs: Memfs) -> None:
    """remember --json says id, path, sha256, stored, durability and the commit."""
    ran = memfs("remember", "We chose PostgreSQL for transactions", "--type", "semantic", "--json")
    assert ran.code == 0, ran.err
    shown = ran.json
    assert list(shown) == ["id", "path", "sha256", "stored", "durability", "revision"]
    assert shown["id"].startswith("we-chose-postgresql-for-transactions-")
    assert shown["path"].startswith("ContextMemory/memories/semantic/")
    assert (root / shown["path"]).is_file()
    assert (shown["stored"], shown["durability"]) == (True, "commit")
    assert shown["revision"] == git(root, "rev-parse", "HEAD").strip()
    assert git(root, "status", "--porcelain") == ""


def test_revision_is_null_while_the_commit_waits(root: Path, memfs: Memfs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under a policy that commits later the text is durable as a file, and no revision is claimed."""
    monkeypatch.setenv("MEMFS_HISTORY_COMMIT", "session")
    shown = memfs("remember", "x", "--json").json
    assert (shown["durability"], shown["revision"]) == ("file", None)
    assert memfs("status", "--json").json["pending_commits"] == 1


def test_a_workspace_above_the_repository_is_named(root: Path, bare: Memfs, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is stored in another repository than the one that a person works in, because it is above, is announced."""
    inner = root / "inner"
    inner.mkdir()
    monkeypatch.chdir(inner)
    assert "above this repository" not in bare("remember", "x").err
    git(inner, "init", "-q")
    ran = bare("remember", "y")
    assert f"stored in {root}, above this repository" in ran.err
    assert "'memfs init' makes" in ran.err
    assert "above this repository" not in bare("-C", str(root), "remember", "z").err


@pytest.mark.parametrize("name", ["HEAD", "refs/heads/main"])
def test_a_damaged_head_delays_the_commit_only(root: Path, memfs: Memfs, name: str) -> None:
    """What is stored is reported once: the commit waits until git's own files can be read (faults row 28)."""
    ref = root / ".git" / git(root, "symbolic-ref", "HEAD").strip() if name != "HEAD" else root / ".git" / name
    whole = ref.read_bytes()
    ref.write_bytes(b"")
    ran = memfs("remember", "foo")
    assert ran.code == 0, ran.err
    assert "stored, but not committed yet" in ran.err
    assert "unreadable" in ran.err
    shown = memfs("remember", "bar", "--json").json
    assert (shown["stored"], shown["durability"], shown["revision"]) == (True, "file", None)
    ref.write_bytes(whole)
    assert memfs("commit").code == 0
    assert memfs("status", "--json").json["pending_commits"] == 0


def test_allow_secret_takes_no_option_for_the_reason(memfs: Memfs) -> None:
    """A forgotten reason does not swallow the next option."""
    ran = memfs("remember", "x", "--allow-secret", "--json")
    assert ran.code == 2
    assert "--json" in ran.json["error"]["message"]


def test_no_secret_is_shown_that_an_edit_by_hand_brought(root: Path, memfs: Memfs) -> None:
    """show gives the last good version and says what is wrong, and no id is made of a secret that stays."""
    key = "AKIA" + "IOSFODNN7EXAMPLQ"
    file = root / memfs("remember", "Retry three times", "--id", "x", "--json").json["path"]
    file.write_text(file.read_text().replace("times", f"times {key}"))
    shown = memfs("show", "x")
    assert (shown.code, "Retry three times" in shown.out, key in shown.out + shown.err) == (0, True, False)
    assert "this looks like an AWS access key" in shown.err
    kept = memfs("remember", f"{key} is the sample", "--allow-secret", "a sample", "--json").json["id"]
    assert kept.startswith("memory-")


def test_a_secret_is_refused_with_the_option_that_lets_it_stay(memfs: Memfs) -> None:
    """On the command line the hint names the option, not the argument of a function."""
    ran = memfs("remember", "The token is ghp_16C7e42F292c6912E7710c838347Ae178B4a")
    assert (ran.code, "--allow-secret REASON" in ran.err, "allow_secret" in ran.err) == (1, True, False)


def test_every_option_reaches_the_file(root: Path, memfs: Memfs) -> None:
    """What is given on the command line is what show prints."""
    ran = memfs(
        *(
            "remember",
            "Deploy",
            "on",
            "Fridays",
            "--type",
            "procedural",
            "--title",
            "Deploying",
            "--tag",
            "ops",
            "--tag",
            "ci",
        ),
        *("--id", "deploy-how", "--context", "branch=main", "--agent", "coder", "--session", "s1", "--phase", "refine"),
        *("--role", "assistant", "--tool", "shell", "--time", "2026-03-01T10:00:00Z"),
    )
    assert ran.code == 0, ran.err
    assert ran.out.startswith("Remembered deploy-how\n")
    shown = memfs("show", "deploy-how", "--json").json
    assert shown["content"] == "Deploy on Fridays"
    assert (shown["type"], shown["title"], shown["tags"]) == ("procedural", "Deploying", ["ops", "ci"])
    assert shown["context"] == {"branch": "main"}
    assert shown["origin"] == {
        "role": "assistant",
        "agent": "coder",
        "session": "s1",
        "tool": "shell",
        "phase": "refine",
    }
    assert (shown["trust"], shown["timestamp"]) == ("agent", "2026-03-01T10:00:00Z")


def test_the_door_and_the_agent_are_in_the_commit(root: Path, memfs: Memfs) -> None:
    """The commit's trailers name agent, session and door."""
    memfs("remember", "x", "--agent", "coder", "--session", "s1")
    message = git(root, "log", "-1", "--format=%B")
    assert "Memfs-Agent: coder" in message
    assert "Memfs-Session: s1" in message
    assert "Memfs-Source: cli" in message


def test_a_dash_reads_standard_input(memfs: Memfs) -> None:
    """remember - takes the text from a pipe, without the last newline; lines end as an editor ends them."""
    memfs("remember", "-", "--id", "piped", stdin="first line\r\nsecond Zeile ü\r\n")
    assert memfs("show", "piped", "--json").json["content"] == "first line\nsecond Zeile ü"


def test_what_is_stored_word_for_word_is_not_stored_twice(memfs: Memfs) -> None:
    """The id of the first is named; another tag, type, agent or name makes another memory, and so does an event."""
    words = ("remember", "We deploy on Tuesdays")
    name = memfs(*words, "--tag", "ops", "--json").json["id"]
    again = memfs(*words, "--json").json
    assert (again["id"], again["stored"]) == (name, False)
    ran = memfs(*words)
    assert (ran.code, ran.out.splitlines()[0]) == (0, f"Already stored as {name}")
    for more in (["--tag", "other"], ["--agent", "coder"], ["--id", "mine"], *[["--type", "task_history"]] * 2):
        assert memfs(*words, *more, "--json").json["stored"], more
    assert len(memfs("list", "--json").json["items"]) == 6


def test_input_that_is_not_utf8_is_refused(memfs: Memfs) -> None:
    """Bytes of another encoding are refused, and nothing is stored."""
    ran = memfs("remember", "-", stdin=b"caf\xe9")
    assert ran.code == 1
    assert "not UTF-8" in ran.err
    assert memfs("list", "--json").json == {"items": [], "partial": False}


def test_nothing_to_remember_is_a_usage_error(memfs: Memfs) -> None:
    """Without a text or a title there is nothing to store; a title alone is enough."""
    assert memfs("remember").code == 2
    assert memfs("remember", "--title", "Only a title").code == 0


def test_an_id_is_create_only(memfs: Memfs) -> None:
    """remember --id refuses a taken id, and says how to change it on purpose (design section 5)."""
    assert memfs("remember", "one", "--id", "x").code == 0
    ran = memfs("remember", "two", "--id", "x")
    assert ran.code == 1
    assert "memfs update x" in ran.err
    assert memfs("show", "x", "--json").json["content"] == "one"


def test_update_changes_what_is_given_and_keeps_the_rest(root: Path, memfs: Memfs) -> None:
    """update changes one item; its type, tags and the person's comments stay (faults row 5)."""
    path = root / memfs("remember", "one", "--id", "x", "--type", "rule", "--tag", "a", "--json").json["path"]
    path.write_text(path.read_text() + "# my remark\n")
    memfs("commit")
    assert memfs("update", "x", "two").code == 0
    shown = memfs("show", "x", "--json").json
    assert (shown["content"], shown["type"], shown["tags"]) == ("two", "rule", ["a"])
    assert "# my remark" in path.read_text()
    assert memfs("update", "x", "--title", "Named").code == 0
    assert memfs("show", "x", "--json").json["content"] == "two"


def test_another_type_is_a_change(root: Path, memfs: Memfs) -> None:
    """update --type says Updated though only the file's place changes, the same second as well."""
    memfs("remember", "one", "--id", "x")
    for kind in ("procedural", "semantic", "procedural"):
        ran = memfs("update", "x", "--type", kind)
        assert ran.out.startswith("Updated x\n"), ran.out
        assert f"/memories/{kind}/" in ran.out
    assert memfs("update", "x", "--type", "procedural").out.startswith("Unchanged x\n")


def test_a_custom_kind_gets_what_it_requires(root: Path, memfs: Memfs) -> None:
    """``--data`` gives the fields of a type's own; without one that is required, nothing is stored (K3)."""
    body = "body: {type: object, required: [person], properties: {person: {type: string}}}"
    row = f"kinds:\n  social:\n    layer: semantic\n    description: People.\n    {body}\n"
    (root / "ContextMemory/configuration/kinds.yaml").write_text(row)
    assert memfs("admin", "trust", "--yes").code == 0
    refused = memfs("remember", "Ada knows the depot", "--type", "social")
    assert (refused.code, "data" in refused.err) == (1, True)
    assert memfs("list", "--json").json["items"] == []
    result = memfs(
        "remember", "Ada knows the depot", "--type", "social", "--data", "person=Ada", "--id", "ada", "--json"
    )
    assert memfs("show", result.json["id"], "--json").json["data"] == {"person": "Ada"}
    memfs("update", "ada", "--data", "team=depot")
    assert memfs("show", "ada", "--json").json["data"] == {"person": "Ada", "team": "depot"}
    assert "--data: 'Ada' has no name and value" in memfs("remember", "x", "--data", "Ada").err


@pytest.mark.parametrize(
    ("arguments", "code", "hint"),
    [
        (["--type", "semantc"], 2, "did you mean 'semantic'?"),
        (["--type", "zzz"], 2, "the usual types are semantic, procedural, "),
        (["--id", "../x"], 1, "letters a-z, digits"),
        (["--context", "novalue"], 2, "--context branch=main"),
        (["--time", "soon"], 2, "7d"),
        (["--phase", "soon"], 2, "refine"),
        (["--role", "robot"], 2, "'user', 'assistant', 'tool'"),
        (["--agent", " "], 2, "name the agent; without --agent a person says it"),
        (["--importance", "nan"], 1, "nan is not a finite number"),
        (["--importance", "much"], 2, "'much' is not a valid float"),
        (["--expires", "30"], 2, "name a day to come, such as 30d or 2027-01-01, or 'never'"),
    ],
)
def test_what_is_wrong_is_refused_with_a_hint(memfs: Memfs, arguments: list[str], code: int, hint: str) -> None:
    """A wrong option is refused, with code 2 where it cannot be understood, and what would be right; nothing is stored
    (faults row 13).
    """
    ran = memfs("remember", "x", *arguments)
    assert (ran.code, ran.out) == (code, "")
    assert ran.err.startswith("memfs: ")
    assert hint in ran.err
    assert memfs("list", "--json").json == {"items": [], "partial": False}


def test_hidden_instructions_are_refused_unless_allowed(memfs: Memfs) -> None:
    """Characters that hide text are refused with their code points; --allow-invisible overrides (faults row 17)."""
    text = "harmless\U000e0041"
    ran = memfs("remember", text)
    assert ran.code == 1
    assert "U+E0041" in ran.err
    assert memfs("remember", text, "--allow-invisible").code == 0


def test_a_file_of_lines_is_imported(tmp_path: Path, root: Path, memfs: Memfs) -> None:
    """An import stores one item a line; what a person writes by hand need not be under origin."""
    lines = [
        {"content": "first"},
        {"content": "second", "id": "two", "type": "rule", "tags": ["own"], "agent": "coder"},
        {"title": "third"},
    ]
    file = tmp_path / "f.jsonl"
    file.write_text("\n".join(json.dumps(line) for line in lines) + "\n\n")
    shown = memfs("import", str(file), "--json").json
    assert (shown["stored"], shown["counts"]) == (3, {"memory": 3})
    two = memfs("show", "two", "--json").json
    assert (two["type"], two["tags"], two["origin"], two["trust"]) == ("rule", ["own"], {"agent": "coder"}, "agent")
    assert {item["trust"] for item in memfs("list", "--json").json["items"]} == {"human", "agent"}
    assert "Import 3 memories from f.jsonl" in git(root, "log", "-1", "--format=%s")


def test_wrong_lines_of_an_import_are_left_out(tmp_path: Path, memfs: Memfs) -> None:
    """Every wrong line is named with its number, the others are stored, and the exit code is 1."""
    file = tmp_path / "f.jsonl"
    file.write_text(
        '{"content": "good"}\n{"content": 3}\nnonsense\n'
        '{"content": "x", "tgas": ["y"]}\n{"content": "a", "id": "../x"}\n'
    )
    ran = memfs("import", str(file))
    assert ran.code == 1
    for number in (2, 3, 4, 5):
        assert f"f.jsonl:{number}" in ran.err
    assert "f.jsonl:1:" not in ran.err
    assert "did you mean 'tags'?" in ran.err
    assert "4 left out" in ran.out
    assert [one["content"] for one in memfs("list", "--json").json["items"]] == ["good"]


def test_ids_of_an_import_must_be_free(tmp_path: Path, memfs: Memfs) -> None:
    """An id that is taken, in the workspace or twice in the file, stops the import; --replace allows the first."""
    memfs("remember", "old", "--id", "taken")
    twice = '{"content": "a", "id": "New"}\n{"content": "b", "id": "new"}\n'
    ran = memfs("import", "-", stdin=twice)
    assert ran.code == 1
    assert "line 1 already" in ran.err
    one = '{"content": "new", "id": "taken"}\n'
    assert memfs("import", "-", stdin=one).code == 1
    assert memfs("import", "-", "--replace", stdin=one).code == 0
    assert memfs("show", "taken", "--json").json["content"] == "new"


def test_what_list_prints_can_be_imported_elsewhere(memfs: Memfs, bare: Memfs, tmp_path: Path) -> None:
    """list --json of one workspace is, line by line, an import for another."""
    memfs(
        "remember",
        "a text",
        "--title",
        "T",
        "--tag",
        "x",
        "--agent",
        "coder",
        "--time",
        "2026-03-01",
        "--context",
        "k=v",
    )
    items = memfs("list", "--json").json["items"]
    other = str(tmp_path / "other")
    bare("init", other)
    ran = bare("-C", other, "import", "-", stdin="\n".join(json.dumps(item) for item in items))
    assert ran.code == 0, ran.err
    copied = bare("-C", other, "list", "--json").json["items"]
    changing = {"sha256", "updated", "path"}
    assert [{k: v for k, v in item.items() if k not in changing} for item in copied] == [
        {k: v for k, v in item.items() if k not in changing} for item in items
    ]


def test_many_lines_are_one_commit_a_batch(root: Path, memfs: Memfs, monkeypatch: pytest.MonkeyPatch) -> None:
    """1,001 lines are stored in three batches, each one commit."""
    monkeypatch.setattr("memfs.state.transfer._BATCH", 500)
    before = int(git(root, "rev-list", "--count", "HEAD"))
    lines = "".join(json.dumps({"content": f"fact number {number}"}) + "\n" for number in range(1001))
    assert memfs("import", "-", "--json", stdin=lines).json["stored"] == 1001
    assert int(git(root, "rev-list", "--count", "HEAD")) == before + 3
    assert memfs("status", "--json").json["items"] == 1001


def test_updating_what_is_not_there_names_the_nearest(memfs: Memfs) -> None:
    """A mistyped id makes no new item."""
    memfs("remember", "one", "--id", "deploy-day")
    ran = memfs("update", "deploy-dya", "two")
    assert ran.code == 1
    assert "deploy-day" in ran.err
    assert len(memfs("list", "--json").json["items"]) == 1


@pytest.mark.parametrize(
    ("words", "stdin"), [(["-", "bar"], "x"), ([""], ""), (["  \n"], ""), (["-"], " \n"), (["", "--title", "T"], "")]
)
def test_blank_and_mixed_texts_are_refused(memfs: Memfs, words: list[str], stdin: str) -> None:
    """A blank text, and '-' beside other words, is a mistake."""
    ran = memfs("remember", *words, stdin=stdin)
    assert ran.code == 2
    assert memfs("list", "--json").json == {"items": [], "partial": False}
    assert memfs("remember", "a - b").code == 0


def test_a_tag_with_a_comma_gets_a_hint(memfs: Memfs) -> None:
    """It is kept as one tag, and the way to write two is shown."""
    ran = memfs("remember", "x", "--id", "x", "--tag", "a,b")
    assert "--tag a --tag b" in ran.err
    assert memfs("show", "x", "--json").json["tags"] == ["a,b"]


def test_what_was_let_in_says_how_to_read_it(memfs: Memfs) -> None:
    """An item that --allow-invisible let in is read with the same setting only; the command says so."""
    ran = memfs("remember", "harmless\U000e0041", "--id", "x", "--allow-invisible")
    assert "--set security.allow_invisible=true" in ran.err
    assert memfs("show", "x", "--set", "security.allow_invisible=true").code == 0
    assert memfs("remember", "plain", "--allow-invisible").err == ""


def test_help_names_the_types(memfs: Memfs) -> None:
    """remember --help lists what --type takes."""
    shown = memfs("remember", "--help").out
    assert "task_history" in shown
    assert "convention" in shown


def test_an_agents_title_is_the_agents(root: Path, memfs: Memfs) -> None:
    """A change in an agent's name is the agent's in trust and history, one by a person is not (B2, row 18)."""
    memfs("remember", "never on Fridays", "--id", "deploy", "--title", "Deploying")
    memfs("update", "deploy", "--tag", "ops", "--agent", "mole")
    assert memfs("show", "deploy", "--json").json["trust"] == "human"
    assert git(root, "log", "-1", "--format=%an").strip() == "mole"
    memfs("update", "deploy", "--title", "Deploy at will", "--agent", "mole")
    shown = memfs("show", "deploy", "--json").json
    assert (shown["trust"], shown["origin"]["agent"]) == ("agent", "mole")
    assert git(root, "log", "-1", "--format=%an").strip() == "mole"
    memfs("update", "deploy", "--tag", "seen")
    assert git(root, "log", "-1", "--format=%an").strip() != "mole"
    memfs("forget", "deploy", "--agent", "mole", "--session", "s")
    assert memfs("show", "deploy").code == 1
    assert memfs("undo", "--session", "s").code == 0
    assert memfs("show", "deploy", "--json").json["tags"] == ["seen"]


def test_update_changes_every_field_that_a_person_may(memfs: Memfs) -> None:
    """Importance, pin, status, expiry, tags and links are set by update, and taken back by it."""
    memfs("remember", "We use MySQL", "--id", "mysql")
    memfs("remember", "We use PostgreSQL", "--id", "pg", "--tag", "draft", "--tag", "db")
    ran = memfs(
        *("update", "pg", "--importance", "5", "--pin", "--status", "accepted", "--expires", "2999-01-01"),
        *("--tag", "+ops", "--tag", "-draft", "--link", "mysql", "--link", "contradicts=mysql", "--title", "Database"),
    )
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("Updated pg\n  ContextMemory/")
    shown = memfs("show", "pg", "--json").json
    assert (shown["importance"], shown["pinned"], shown["status"]) == (5, True, "accepted")
    assert (shown["expires"], shown["tags"], shown["title"]) == ("2999-01-01T00:00:00Z", ["db", "ops"], "Database")
    assert [(link["to"], link["relation"]) for link in shown["links"]] == [
        ("mysql", "relates"),
        ("mysql", "contradicts"),
    ]
    assert (shown["content"], shown["trust"]) == ("We use PostgreSQL", "human")
    memfs("update", "pg", "--unpin", "--status", "", "--expires", "never", "--tag", "only", "--link", "-mysql")
    shown = memfs("show", "pg", "--json").json
    assert [shown[name] for name in ("pinned", "status", "expires", "tags", "links")] == [False, "", None, ["only"], []]
    again = memfs("update", "pg", "--unpin", "--json").json
    assert (again["changed"], again["id"]) == (False, "pg")


@pytest.mark.parametrize(
    ("arguments", "code", "hint"),
    [
        ([], 2, "--edit"),
        (["--edit", "--pin"], 2, "leave out"),
        (["--importance", "11"], 2, "is not in the range 0<=x<=10"),
        (["--expires", "2020-01-01"], 2, "to come"),
        (["--link", "nothing-such"], 1, "nothing-such"),
        (["--type", "semantc"], 2, "did you mean 'semantic'?"),
        (["--pin", "--agent", ""], 2, "name the agent"),
    ],
)
def test_what_update_cannot_do_is_refused_with_a_hint(memfs: Memfs, arguments: list[str], code: int, hint: str) -> None:
    """A change that makes no sense is refused, the hint says what would be right, and nothing is changed."""
    sha256 = memfs("remember", "x", "--id", "x", "--json").json["sha256"]
    ran = memfs("update", "x", *arguments)
    assert (ran.code, ran.out) == (code, "")
    assert hint in ran.err
    assert memfs("show", "x", "--json").json["sha256"] == sha256


def test_a_status_that_an_agent_sets_is_the_agents(memfs: Memfs) -> None:
    """What an agent claims of a person's item takes the person's trust off; how it weighs does not (B2)."""
    memfs("remember", "x", "--id", "x")
    memfs("update", "x", "--importance", "2", "--tag", "+seen", "--agent", "mole")
    assert memfs("show", "x", "--json").json["trust"] == "human"
    memfs("update", "x", "--status", "done", "--agent", "mole")
    assert memfs("show", "x", "--json").json["trust"] == "agent"


def test_weight_and_end_are_given_with_the_text(memfs: Memfs) -> None:
    """--importance, --pin and --expires mean what they mean for update; a duration lies ahead."""
    memfs("remember", "a freeze", "--id", "freeze", "--importance", "5", "--pin", "--expires", "30d")
    shown = memfs("show", "freeze", "--json").json
    assert (shown["importance"], shown["pinned"]) == (5, True)
    ahead = datetime.fromisoformat(shown["expires"]) - datetime.now(UTC)
    assert timedelta(days=29) < ahead < timedelta(days=31)
    assert "." not in shown["expires"], "a person reads it in the file: whole seconds"
    memfs("remember", "a fact", "--id", "fact", "--expires", "2999-01-01", "--review")
    memfs("update", "freeze", "--expires", "never", "--unpin")
    shown = memfs("show", "freeze", "--json").json
    assert (shown["expires"], shown["pinned"]) == (None, False)


@pytest.mark.parametrize(
    "options", [["--importance", "11"], ["--expires", "2001-01-01"], ["--expires", "2 days ago"], ["--edit", "--pin"]]
)
def test_what_cannot_be_a_weight_or_an_end_is_unclear(memfs: Memfs, options: list[str]) -> None:
    """Exit code 2, and nothing is stored."""
    text = [] if "--edit" in options else ["a text"]
    assert memfs("remember", *text, *options).code == 2
    assert memfs("list", "--json").json["items"] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x", "--tag", "ok", "--tag", ""], "memfs: --tag 2: is empty"),
        (["x", "--title", "x" * 600], "memfs: --title: has 600 characters"),
        (["x", "--session", "x" * 600], "memfs: --session: has 600 characters"),
        (["-"], "memfs: standard input: not valid Unicode: a NUL character"),
        (["x", "--id", "übung"], "memfs: 'übung' cannot be an id"),
        (["--weird"], "goes after '--'"),
    ],
)
def test_what_is_refused_is_named_as_it_was_given(memfs: Memfs, arguments: list[str], message: str) -> None:
    """Nobody looks for a file that was never written: the option is named, or standard input."""
    refused = memfs("remember", *arguments, stdin="a\0b")
    assert refused.code != 0
    assert message in refused.err
    assert ".yaml" not in refused.err

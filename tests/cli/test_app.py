"""The command as a whole: verbs, help, global options, errors, interrupts, start-up."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from memfs.doors.cli.app import EVERYDAY, GROUPS, GUESSES, MORE, VERBS
from memfs.doors.cli.parser import Actions, cli

from .conftest import Memfs

HEAVY = (
    "yaml",
    "git",
    "whoosh",
    "jsonschema",
    "jsonschema_rs",
    "watchdog",
    "snowballstemmer",
    "sqlite3",
    "memfs.workspace",
)

# two protocols, and what git reads: their output has its own form
SPOKEN_BY_OTHERS = {"hook", "mcp", "merge-driver"}


def command(name: str) -> click.Command:
    found = cli.get_command(click.Context(cli), name)
    assert found is not None
    return found


def imported(*arguments: str, cwd: Path) -> set[str]:
    """Names of the modules a cold ``memfs`` imports."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "memfs", *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        check=False,
    )
    return {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_explains_itself(bare: Memfs, name: str) -> None:
    """Each verb has a description, an example that begins with memfs and --json, but for those others read."""
    found = command(name)
    shown = bare(name, *([found.first] if isinstance(found, Actions) else []), "--help")
    assert shown.code == 0
    assert "Example" in shown.out
    assert f"memfs {name}" in shown.out or name == "remember"
    assert ("--json" in shown.out) == (name not in SPOKEN_BY_OTHERS)
    assert found.name == name


def places() -> set[str]:
    """How each verb is called, without options."""
    return {f"memfs {name}" for name in VERBS} | {
        f"memfs {group} {verb.name}" for group, family in GROUPS.items() for verb in family.verbs
    }


def test_the_short_help_fits_a_screen(bare: Memfs) -> None:
    """Bare memfs, memfs help and memfs --help print the same page of at most 24 lines of 80 columns."""
    shown = bare("--help")
    assert shown.code == 0
    assert bare().out == bare("help").out == bare("-h").out == shown.out
    lines = shown.out.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert [verb.name for verb in EVERYDAY if f"  {verb.name} " not in shown.out or verb.summary not in shown.out] == []
    assert all(verb.name in shown.out for verb in MORE)
    assert all(f"memfs {name} " in shown.out for name, family in GROUPS.items() if family.verbs)


def test_help_of_a_verb_is_its_own_help(bare: Memfs) -> None:
    """memfs help VERB prints what memfs VERB --help prints."""
    assert bare("help", "recall").out == bare("recall", "--help").out
    assert bare("help", "nothing-of-it").code == 2


@pytest.mark.parametrize("other", [*sorted(GUESSES), "erase", "agents-md"])
def test_another_name_of_a_verb_names_the_verb(bare: Memfs, other: str) -> None:
    """What other programs call it, and a verb without its group, is not a verb, and the error names the one to use."""
    ran = bare(other)
    assert (ran.code, ran.out) == (2, "")
    meant = ran.err.partition("did you mean '")[2].partition("'")[0]
    assert any(meant == place or meant.startswith(f"{place} ") for place in places()), meant


def test_a_wrong_setting_is_refused_and_a_wrong_word_not_understood(
    memfs: Memfs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 2 is for what was typed; a hook that ends with it would stop its agent over a setting."""
    assert memfs("list", "--set", "history.commit=never").code == 2
    assert memfs("config", "history.commit", "never").code == 2
    monkeypatch.setenv("MEMFS_BACKUP_TARGETS", "relative")
    assert memfs("admin", "backup", "create").code == 1


@pytest.mark.parametrize(
    "arguments", [["show", "--json"], ["recall", "x", "--json", "--limit", "no"], ["add", "--json"]]
)
def test_usage_errors_are_json_for_programs(bare: Memfs, arguments: list[str]) -> None:
    """With --json a usage error is a document on standard output, with the exit code of today."""
    ran = bare(*arguments)
    assert (ran.code, ran.err) == (2, "")
    assert ran.json["error"].keys() == {"code", "message", "path", "field", "hint"}
    assert ran.json["error"]["code"] == "Usage"


def test_errors_are_json_for_programs(memfs: Memfs) -> None:
    """With --json what memfs refuses is a document on standard output that names code, message and remedy."""
    ran = memfs("show", "nothing-of-it", "--json")
    assert (ran.code, ran.err) == (1, "")
    assert ran.json["error"]["code"] == "ItemNotFound"


def test_version(bare: Memfs) -> None:
    """--version prints name and version."""
    assert bare("--version").out.startswith("memfs 0.")


def test_an_unknown_verb_names_the_nearest(bare: Memfs) -> None:
    """A mistyped verb is answered with the one that was probably meant."""
    ran = bare("recal", "x")
    assert ran.code == 2
    assert ran.err == "memfs: there is no verb 'recal'\n  did you mean 'recall'?\n"


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        ("get x", "there is no verb 'get'", "did you mean 'memfs show'?"),
        ("rm x", "there is no verb 'rm'", "did you mean 'memfs forget'?"),
        ("gc", "there is no verb 'gc'", "did you mean 'memfs admin gc'?"),
        ("team blam", "there is no verb 'blam'", "did you mean 'blame'?"),
        ("inbox acept", "there is no 'memfs inbox acept'", "did you mean 'accept'? there are list, accept, refuse"),
        ("xyzzy", "there is no verb 'xyzzy'", "'memfs --help' lists them"),
        (
            "undo",
            "nothing to undo was given",
            "name --session, --agent or both; or --commit HEAD, the newest commit",
        ),
        (
            "undo --commit HEAD --session s",
            "--commit cannot be combined with --session or --agent",
            "name --session, --agent or both; or --commit HEAD, the newest commit",
        ),
        (
            "undo nowhere",
            "Got unexpected extra argument (nowhere)",
            "it goes after an option, such as --session or --agent or --commit; see 'memfs undo --help'",
        ),
    ],
)
def test_a_wrong_word_is_answered_with_what_would_be_right(
    bare: Memfs, arguments: str, message: str, hint: str
) -> None:
    """Words of other programs lead to our verbs, an option to one of the same verb, never to a hidden one."""
    ran = bare(*arguments.split())
    assert ran.code == 2
    assert ran.err == f"memfs: {message}\n  {hint}\n"


@pytest.mark.parametrize(
    ("arguments", "words", "verb"),
    [
        ("check --fx", "'?--fx'?", "check"),
        ("update x --tag", "'--tag' requires an argument", "update"),
        ("commit -m", "'-m' requires an argument", "commit"),
        ("log -n x", "'--limit': 'x' is not a valid integer range", "log"),
        ("list --layer x", "'--layer': 'x' is not one of 'short-term', 'episodic', 'semantic'", "list"),
        ("agent feedback x", "'good.bad'. Choose from: .*good", "agent feedback"),
        ("import nowhere", "Path 'nowhere' does not exist", "import"),
        ("commit now", r"unexpected extra argument \(now\)", "commit"),
    ],
)
def test_what_a_verb_does_not_take_is_named_with_its_help(bare: Memfs, arguments: str, words: str, verb: str) -> None:
    """In one line, with exit code 2."""
    ran = bare(*arguments.split())
    assert ran.code == 2
    assert re.fullmatch(
        f"memfs: .*{words}.*\n  (?:it goes after an option, [^;]*; )?see 'memfs {verb} --help'\n", ran.err
    ), ran.err


def test_words_that_begin_with_a_dash_are_reported_where_they_go(bare: Memfs) -> None:
    """A text of a person's own may begin so."""
    assert "text that begins with '-' goes after '--'" in bare("remember", "-5", "degrees").err


def test_json_before_the_verb_is_reported_where_it_goes(bare: Memfs) -> None:
    """``memfs --json list`` says that the option goes after the verb, in JSON."""
    error = json.loads(bare("--json", "list").out)["error"]
    assert error["hint"] == "it goes after the verb, as in 'memfs status --json'"


def test_a_missing_argument_points_at_the_help(bare: Memfs) -> None:
    """Usage errors end with code 2 and say where the help is."""
    ran = bare("show")
    assert ran.code == 2
    assert ran.err.startswith("memfs: ")
    assert "memfs show --help" in ran.err


def test_no_workspace_is_an_error_that_offers_init(
    bare: Memfs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outside any workspace a verb refuses with a way forward and no traceback."""
    monkeypatch.chdir(tmp_path)
    ran = bare("recall", "x")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("memfs: no ContextMemory/ in ")
    assert "memfs init" in ran.err


def test_the_workspace_may_be_named_before_and_after_the_verb(
    bare: Memfs, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """-C and --workspace work on both sides, MEMFS_WORKSPACE too, and a folder inside will do."""
    monkeypatch.chdir(tmp_path)
    inside = str(root / "ContextMemory")
    assert bare("-C", inside, "status", "--json").code == 0
    assert bare("status", "--json", "--workspace", inside).code == 0
    monkeypatch.setenv("MEMFS_WORKSPACE", str(root))
    assert bare("status", "--json").code == 0


def test_an_interrupt_ends_quietly(root: Path, memfs: Memfs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C ends with 130 and no traceback."""

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("memfs.workspace.open_workspace", interrupt)
    ran = memfs("status")
    assert ran.code == 130
    assert "Traceback" not in ran.err


def test_a_closed_pipe_is_quiet(root: Path, memfs: Memfs) -> None:
    """memfs list | head -1 leaves no complaint."""
    memfs("import", "-", stdin='{"content": "a text of some length to fill the pipe"}\n' * 50)
    done = subprocess.run(
        f"{sys.executable} -m memfs -C {root} list --json | head -c 1",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "{"
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


def test_help_imports_nothing_it_does_not_need(tmp_path: Path) -> None:
    """A cold memfs --help loads the table of verbs, and neither click nor a heavy package (budget 80 ms)."""
    names = imported("--help", cwd=tmp_path)
    assert names.isdisjoint({"click", *HEAVY})
    assert {name for name in names if name.startswith("memfs.")} == {
        "memfs.dataclass",
        "memfs.errors",
        "memfs.startup",
        "memfs.doors",
        "memfs.doors.cli",
        "memfs.doors.cli.app",
        "memfs.doors.cli.command",
        "memfs.doors.cli.declare",
        "memfs.doors.cli.output",
    }


@pytest.mark.parametrize(("engine", "needless"), [("sqlite", {"whoosh"}), ("whoosh", {"memfs.search.sqlite"})])
def test_recall_imports_no_validator_and_no_git(
    root: Path, memfs: Memfs, monkeypatch: pytest.MonkeyPatch, engine: str, needless: set[str]
) -> None:
    """A cold recall over a folded index does without schemas, git, watching, models and the other engine."""
    monkeypatch.setenv("MEMFS_INDEX_ENGINE", engine)
    memfs("remember", "We chose PostgreSQL")
    memfs("admin", "reindex")
    names = imported("recall", "postgres", "-C", str(root), cwd=root)
    assert "memfs.recall.recaller" in names
    heavy = {"httpx", "numpy", "onnxruntime", "tokenizers", "memfs.recall.reviewers"}
    assert names.isdisjoint({"jsonschema", "git", "watchdog", *heavy, *needless})


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_completion_prints_a_script(tmp_path: Path, shell: str) -> None:
    """A variable asks for what the shell is to source."""
    environ = {**os.environ, "_MEMFS_COMPLETE": f"{shell}_source"}
    words = [sys.executable, "-c", "import sys; sys.argv[0] = 'memfs'; from memfs.__main__ import main; main()"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, env=environ, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"_MEMFS_COMPLETE={shell}_complete" in done.stdout


def test_completion_of_verbs_types_and_ids(root: Path, memfs: Memfs) -> None:
    """TAB completes verbs, types and ids."""
    memfs("remember", "x", "--id", "postgres-choice", "--tag", "database")

    def complete(words: str) -> str:
        environ = {
            **os.environ,
            "_MEMFS_COMPLETE": "bash_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split()) - 1),
        }
        done = subprocess.run(
            [sys.executable, "-m", "memfs"], capture_output=True, text=True, cwd=root, env=environ, check=False
        )
        assert done.stderr == ""
        return done.stdout

    assert "recall" in complete("memfs rec")
    assert "convention" in complete("memfs remember --type conv")
    assert "postgres-choice" in complete("memfs show post")

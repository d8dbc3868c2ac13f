"""``semantic``: one command for search by meaning, and what a recall says without it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Memfs

CONTEXT = "ContextMemory/configuration/memory_context.yaml"


def choose(root: Path, model: str = "hashing") -> None:
    """Have the workspace searched by meaning."""
    (root / CONTEXT).write_text(
        "metadata:\n  type: memory\n  name: Test\npolymorphic_config:\n  memory_config:\n"
        f"    storage_type: vector_db\n    embedding_model: {model}\n"
    )


def remember(memfs: Memfs, *texts: str) -> None:
    """Remember texts, the first as ``n0``."""
    lines = [json.dumps({"id": f"n{number}", "content": text}) for number, text in enumerate(texts)]
    assert memfs("import", "-", stdin="\n".join(lines)).code == 0


def test_one_command_switches_search_by_meaning_on(root: Path, memfs: Memfs) -> None:
    """``on`` writes one setting, embeds what is there and says so; ``status`` says how far it is (D3)."""
    remember(memfs, "postgresql tip one", "postgresql tip two")
    assert "is off" in memfs("semantic").out
    before = (root / "memfs.toml").read_text()
    ran = memfs("semantic", "on", "--model", "hashing")
    assert "is on: hashing, on this machine" in ran.out
    assert "2 of 2 memories embedded" in ran.out
    after = (root / "memfs.toml").read_text()
    assert [line for line in after.splitlines() if line not in before.splitlines()] == [
        "[semantic]",
        'model = "hashing"',
    ]
    memfs("remember", "another one")
    shown = memfs("semantic", "status", "--json").json
    expected = {"on": True, "model": "hashing", "items": 3, "embedded": 2, "waiting": 1, "problem": ""}
    assert {name: shown[name] for name in expected} == expected
    assert shown["bytes"] > 0
    assert "1 wait: 'memfs semantic on' embeds them" in memfs("status").out
    assert memfs("semantic", "on", "--json").json["made"] == 1
    assert memfs("status", "--json").json["semantic"]["waiting"] == 0
    assert memfs("recall", "postgersql", "--json").json["semantic"] is True


def test_off_takes_back_what_on_wrote_to_the_byte(root: Path, memfs: Memfs) -> None:
    """Whatever the file was, comments included, and also where there was none (D3)."""
    remember(memfs, "postgresql tip")
    toml = root / "memfs.toml"
    for text in (toml.read_text(), "# mine\r\n[recall]\r\nlimit = 7 # few\r\n", "[semantic]\n# nothing chosen\n", ""):
        toml.write_text(text, newline="")
        assert memfs("semantic", "on", "--model", "hashing").code == 0
        assert memfs("semantic", "status", "--json").json["on"] is True
        assert memfs("semantic", "off", "--json").json["on"] is False
        assert toml.exists() == bool(text)
        if text:
            assert toml.read_bytes().decode() == text
    assert memfs("semantic", "off", "--json").json["changed"] is False


def test_nothing_is_committed_where_the_person_commits(root: Path, memfs: Memfs, git: Callable[..., str]) -> None:
    """With ``history.commit = manual`` the changed line waits for the person; ``off`` removes it (D1)."""
    toml = root / "memfs.toml"
    toml.write_text('[history]\ncommit = "manual"\nadopt = "leave"\n')
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "Commit by hand")
    head = git(root, "rev-parse", "HEAD")
    assert memfs("semantic", "on", "--model", "hashing").code == 0
    assert git(root, "rev-parse", "HEAD") == head
    assert git(root, "status", "--short").strip() == "M memfs.toml"
    assert memfs("semantic", "off").code == 0
    assert (git(root, "rev-parse", "HEAD"), git(root, "status", "--short")) == (head, "")


def test_the_settings_go_before_the_memory_context(root: Path, memfs: Memfs) -> None:
    """Seed 002's file holds where memfs.toml names no model; where both do, the command says which holds (M5, D3)."""
    choose(root)
    remember(memfs, "postgresql tip")
    assert memfs("semantic", "status", "--json").json["origin"] == "the memory context"
    assert memfs("semantic", "on", "--json").json["changed"] is False
    context = (root / CONTEXT).read_bytes()
    assert memfs("semantic", "off", "--json").json["on"] is False
    assert 'model = "off"' in (root / "memfs.toml").read_text()
    choose(root, "minilm")
    ran = memfs("semantic", "on", "--model", "hashing")
    assert "is on: hashing, on this machine (memfs.toml:" in ran.out
    choose(root)
    assert (root / CONTEXT).read_bytes() == context


def test_nothing_is_written_for_a_model_that_cannot_be_used(
    root: Path, memfs: Memfs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing package is named with the command that installs it, an unknown model with those there are (D3)."""
    before = (root / "memfs.toml").read_bytes()
    ran = memfs("semantic", "on", "--model", "gpt")
    assert (ran.code, "there are hashing, wordllama, minilm" in ran.err) == (2, True)
    monkeypatch.setitem(sys.modules, "wordllama", None)
    ran = memfs("semantic", "on")
    assert (ran.code, "wordllama" in ran.err, "pip install 'gitmemfs[embeddings]'" in ran.err) == (1, True, True)
    assert (root / "memfs.toml").read_bytes() == before
    assert memfs("semantic", "status", "--model", "hashing").code == 2


def test_a_variable_wins_over_the_file_and_is_named(root: Path, memfs: Memfs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Switching on what a variable switches off says so (D3)."""
    monkeypatch.setenv("MEMFS_SEMANTIC_MODEL", "off")
    ran = memfs("semantic", "on", "--model", "hashing")
    assert (ran.code, "MEMFS_SEMANTIC_MODEL takes precedence" in ran.err) == (1, True)
    assert 'model = "hashing"' in (root / "memfs.toml").read_text()


def test_a_miss_says_that_meaning_was_not_searched(memfs: Memfs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where words find nothing the answer says how to go on; fenced text does not (D3)."""
    assert memfs("recall", "lorry", "--json").json["hint"] == ""  # an empty workspace has nothing to be found
    remember(memfs, "the truck is blue", "deploys go through jenkins")
    hint = "search by meaning is off; 'memfs semantic on' switches it on"
    ran = memfs("recall", "lorry")
    assert (hint in ran.err, hint in ran.out) == (True, False)
    ran = memfs("recall", "blue truck", "--json")
    assert (ran.json["hint"], ran.json["semantic"], hint in ran.err) == ("", False, False)
    assert hint not in memfs("recall", "lorry", "--fenced").out
    assert "semantic" not in memfs("recall", "truck", "--budget", "1").err


def test_a_command_embeds_few_new_items(memfs: Memfs, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a light model it does; an answer that lacks the vectors of many is partial, and says the remedy (D3)."""
    assert memfs("semantic", "on", "--model", "hashing").code == 0
    remember(memfs, "the truck is blue", "the truck is red")
    monkeypatch.setattr("memfs.recall.embeddings._FEW", 1)
    shown = memfs("recall", "trucks", "--json").json
    assert (shown["semantic"], shown["partial"]) == (False, True)
    assert memfs("semantic", "status", "--json").json["waiting"] == 2
    assert memfs("admin", "gc", "--json").json["embedded"] == 2
    for colour in ("green", "grey"):
        memfs("remember", f"the truck is {colour}")
    shown = memfs("recall", "trucks", "--json").json
    assert (shown["semantic"], shown["partial"], "'memfs semantic on' makes it" in shown["cut"]) == (True, True, True)
    assert len(shown["hits"][0]["earlier"]) == 3  # another colour is another version
    monkeypatch.undo()
    assert memfs("recall", "trucks", "--json").json["partial"] is False
    assert memfs("semantic", "status", "--json").json["waiting"] == 0


@pytest.mark.parametrize(
    ("model", "embedded", "loaded"),
    [("minilm", False, []), ("minilm", True, ["numpy", "onnxruntime", "tokenizers"]), ("wordllama", True, [])],
)
def test_the_model_is_loaded_only_where_it_can_change_the_answer(
    root: Path, memfs: Memfs, model: str, embedded: bool, loaded: list[str]
) -> None:
    """While no item has a vector a question brings in neither model nor NumPy, and never with the default (D3)."""
    remember(memfs, "the car is blue")
    (root / "memfs.toml").write_text(f'[semantic]\nmodel = "{model}"\n')
    if memfs("semantic", "status", "--json").json["problem"]:
        pytest.skip("the extra is not installed")
    if embedded:
        assert memfs("semantic", "on", "--json").json["made"] == 1
    code = (
        "import sys; from memfs.doors.cli.app import run; run(['-C', sys.argv[1], 'recall', 'automobile']);"
        "print([n for n in ('numpy', 'onnxruntime', 'tokenizers') if n in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(root)], capture_output=True, text=True, check=True, env=os.environ
    )
    assert ("the car is blue" in done.stdout) == embedded
    assert done.stderr.strip().endswith(str(loaded))


def test_a_missing_extra_is_named_and_recall_goes_on(root: Path, memfs: Memfs, monkeypatch: pytest.MonkeyPatch) -> None:
    """The words decide; check and status name the package and what to install (M5)."""
    choose(root, "minilm")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    memfs("remember", "the violin is in the attic", "--id", "violin")
    ran = memfs("recall", "violin", "--json")
    assert [hit["id"] for hit in ran.json["hits"]] == ["violin"]
    assert memfs("semantic", "on").code == 1
    assert "gitmemfs[minilm]" in memfs("semantic", "status", "--json").json["problem"]
    for verb in ("status", "check"):
        assert "ExtraMissing" in [problem["code"] for problem in memfs(verb, "--json").json["problems"]]


def test_check_names_an_unknown_embedder(root: Path, memfs: Memfs) -> None:
    """What recall says is wrong, check says, too, once."""
    choose(root, "gpt")
    assert memfs("check").out.count("no embedder here is called 'gpt'") == 1
    choose(root)
    assert memfs("check").code == 0


def test_the_default_imports_no_package_of_an_extra(root: Path, memfs: Memfs) -> None:
    """A recall by words alone is spared NumPy and all models (M5)."""
    memfs("remember", "the violin is in the attic")
    code = (
        "import sys; from memfs.doors.cli.app import run; run(['-C', sys.argv[1], 'recall', 'violin']);"
        "print([n for n in ('numpy', 'onnxruntime', 'tokenizers', 'httpx') if n in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(root)], capture_output=True, text=True, check=True, env=os.environ
    )
    assert "violin" in done.stdout
    assert done.stderr.strip().endswith("[]")

"""What status and reindex --embeddings say of the vectors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
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


def test_reindex_makes_the_vectors_that_are_lacking(root: Path, memfs: Memfs) -> None:
    """It says how many, with which model, and status how far they are (M5)."""
    choose(root)
    lines = [json.dumps({"id": f"n{number}", "content": f"postgresql tip {number}"}) for number in range(3)]
    assert memfs("remember", "--file", "-", stdin="\n".join(lines)).code == 0
    assert memfs("status", "--json").json["embeddings"]["embedded"] == 0
    assert "hashing-512, 0 of 3 items (0%)" in memfs("status").out
    shown = memfs("reindex", "--embeddings", "--json").json
    assert {name: shown[name] for name in ("model", "made", "embedded")} == {
        "model": "hashing-512",
        "made": 3,
        "embedded": 3,
    }
    assert memfs("reindex", "--embeddings").out.startswith("Embedded 0 items with hashing-512 in ")
    assert "hashing-512, all items" in memfs("status").out
    assert [hit["id"] for hit in memfs("recall", "postgersql", "--json").json["hits"]][:1]


def test_without_an_embedder_reindex_says_how_to_get_one(memfs: Memfs) -> None:
    """A workspace that is searched by words alone has nothing to embed (M5)."""
    ran = memfs("reindex", "--embeddings")
    assert ran.code == 1
    assert "searched by words alone" in ran.err
    assert "storage_type: vector_db" in ran.err
    assert "embeddings" not in memfs("status", "--json").json


def test_a_missing_extra_is_named_and_recall_goes_on(root: Path, memfs: Memfs, monkeypatch: pytest.MonkeyPatch) -> None:
    """The words decide; check and reindex name the package and what to install (M5)."""
    choose(root, "minilm")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    memfs("remember", "the violin is in the attic", "--id", "violin")
    ran = memfs("recall", "violin", "--json")
    assert [hit["id"] for hit in ran.json["hits"]] == ["violin"]
    ran = memfs("reindex", "--embeddings")
    assert (ran.code, "onnxruntime" in ran.err, "gitmemfs[embeddings]" in ran.err) == (1, True, True)
    for verb in ("status", "check"):
        assert "ExtraMissing" in [problem["code"] for problem in memfs(verb, "--json").json["problems"]]


def test_check_names_an_embedder_that_there_is_none_of(root: Path, memfs: Memfs) -> None:
    """What recall says is wrong, check says, too, once."""
    choose(root, "gpt")
    assert memfs("check").out.count("no embedder here is called 'gpt'") == 1
    choose(root)
    assert memfs("check").code == 0


def test_the_default_imports_no_package_of_an_extra(root: Path, memfs: Memfs) -> None:
    """A recall by words alone is spared NumPy and all models (M5)."""
    memfs("remember", "the violin is in the attic")
    code = (
        "import sys; from memfs.adapters.cli.app import run; run(['-C', sys.argv[1], 'recall', 'violin']);"
        "print([n for n in ('numpy', 'onnxruntime', 'tokenizers', 'httpx') if n in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(root)], capture_output=True, text=True, check=True, env=os.environ
    )
    assert "violin" in done.stdout
    assert done.stderr.strip().endswith("[]")

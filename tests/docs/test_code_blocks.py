"""What the pages show runs, and prints what they say."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Read = Callable[[str], str]
_BLOCK = re.compile(r"(<!-- not run.*?-->\n)?^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MARK = "=== block"


def blocks(text: str) -> list[tuple[str, str]]:
    """Every fenced block with its language, in order, without those marked as not to be run."""
    return [(found[2], found[3]) for found in _BLOCK.finditer(text) if not found[1]]


def python_blocks(name: str) -> list[Any]:
    """The Python blocks of a page, as test parameters."""
    text = (Path(__file__).resolve().parents[2] / name).read_text(encoding="utf-8")
    found = [code for language, code in blocks(text) if language == "python"]
    return [pytest.param(code, id=f"{name}-{number}") for number, code in enumerate(found, 1)]


def test_the_shell_tour_runs_and_prints_what_it_says(page: Read, memfs_on_path: Path, tmp_path: Path) -> None:
    """The README's shell blocks run in order in an empty folder; each line of a text block was printed just before."""
    shown = [block for block in blocks(page("README.md")) if block[0] in ("sh", "text")]
    shells = [code for language, code in shown if language == "sh"]
    script = "set -eu\nexec 2>&1\n" + "".join(f"echo '{_MARK}'\n{code}" for code in shells)
    done = subprocess.run(["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout
    printed = iter(done.stdout.split(f"{_MARK}\n")[1:])
    missing: list[str] = []
    current = ""
    for language, code in shown:
        if language == "sh":
            current = next(printed)
            continue
        for line in code.splitlines():
            pattern = ".*".join(re.escape(part) for part in line.split("…"))
            if not re.search(f"^{pattern}$", current, re.MULTILINE):
                missing.append(f"{line!r} in {current}")
    assert missing == []
    assert len(shells) >= 2


@pytest.mark.parametrize(
    "code",
    [
        *python_blocks("README.md"),
        *python_blocks("docs/context-memory.md"),
        *python_blocks("docs/delivery.md"),
        *python_blocks("docs/python.md"),
        *python_blocks("docs/ranking.md"),
    ],
)
def test_python_blocks_run(code: str, memfs_on_path: Path, forked_python: Path, tmp_path: Path) -> None:
    """Each Python block is a program of its own that ends well."""
    done = subprocess.run([str(forked_python), "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_python_blocks_are_typed(tmp_path: Path) -> None:
    """Every Python block of every page passes mypy as strictly as memfs itself; one may name the file it is in."""
    root = Path(__file__).resolve().parents[2]
    pages = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    names = []
    for page in pages:
        code = [code for language, code in blocks(page.read_text(encoding="utf-8")) if language == "python"]
        for number, block in enumerate(code, 1):
            stated = re.match(r"# (\w+)\.py\n", block)
            stem = re.sub(r"\W", "_", page.relative_to(root).with_suffix("").as_posix())
            names.append(f"{stated[1] if stated else f'{stem}_{number}'}.py")
            (tmp_path / names[-1]).write_text(block, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", *(str(tmp_path / name) for name in names)]
    environ = {**os.environ, "MYPYPATH": str(tmp_path)}
    # from the root: with its settings, and what was found out of memfs's own modules before
    done = subprocess.run(command, cwd=root, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(names) > 20


# -- JSON contracts -----------------------------------------------------------------------------------------------
COMMANDS: dict[str, list[str]] = {
    "remember": ["remember", "a fact", "--json"],
    "recall": ["recall", "postgres", "--limit", "1", "--json"],
    "list": ["list", "--json"],
    "forget": ["forget", "parcel-ids-are-base32", "--json"],
    "commit": ["commit", "--json"],
    "log": ["log", "--limit", "1", "--json"],
    "status": ["status", "--json"],
    "check": ["check", "--json"],
    "config": ["config", "--json"],
}


def same_shape(shown: Any, got: Any, where: str = "") -> list[str]:
    """Where the keys or types of two JSON values differ; an empty list or mapping on the page stands for any."""
    if isinstance(shown, dict) and isinstance(got, dict):
        if not shown or where.endswith((".trailers", ".settings")):
            return []
        wrong = [f"{where}.{key}" for key in shown.keys() ^ got.keys()]
        return wrong + [
            line for key in shown.keys() & got.keys() for line in same_shape(shown[key], got[key], f"{where}.{key}")
        ]
    if isinstance(shown, list) and isinstance(got, list):
        return same_shape(shown[0], got[0], f"{where}[]") if shown and got else []
    if shown is None or got is None or (isinstance(shown, (int, float)) and isinstance(got, (int, float))):
        return []
    return [] if type(shown) is type(got) else [where]


@pytest.mark.parametrize("verb", sorted(COMMANDS))
def test_json_has_the_keys_the_page_shows(verb: str, page: Read, memfs_on_path: Path, example: Path) -> None:
    """The JSON block in a verb's section has exactly the keys and types that the verb prints."""
    text = page("docs/cli.md").partition(f"\n### {verb}\n")[2].partition("\n### ")[0]
    shown = json.loads(next(code for language, code in blocks(text) if language == "json"))
    done = subprocess.run(["memfs", "-C", str(example), *COMMANDS[verb]], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert same_shape(shown, json.loads(done.stdout)) == []


def test_problems_have_the_keys_the_page_shows(page: Read, memfs_on_path: Path, example: Path) -> None:
    """A problem in check's JSON looks as the page says, and its code is SchemaInvalid for a wrong value."""
    path = example / "ContextMemory/conventions/times-are-utc.yaml"
    path.write_text(path.read_text() + "importance: 11\n")
    done = subprocess.run(["memfs", "-C", str(example), "check", "--json"], capture_output=True, text=True, check=False)
    text = page("docs/cli.md").partition("\n### check\n")[2]
    shown = json.loads(next(code for language, code in blocks(text) if language == "json"))
    got = json.loads(done.stdout)
    assert done.returncode == 1
    assert same_shape(shown, got) == []
    assert [one["code"] for one in got["problems"] if one["severity"] == "error"] == ["SchemaInvalid"]

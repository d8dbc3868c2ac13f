"""What people can see of sources, and the settings of these in ``memfs config`` (P2, P5)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from memfs import trust

from .conftest import Memfs

BROKEN = """
class Broken:
    name, layer = "broken", "triggered"
    async def get_context(self, state):
        raise RuntimeError("out of \\x1b[31mluck")
    def configure(self, config):
        pass
"""


@pytest.fixture
def broken(root: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> str:
    """A source that always fails, named in the workspace's file."""
    folder = tmp_path_factory.mktemp("installed")
    (folder / "broken_source.py").write_text(BROKEN)
    monkeypatch.syspath_prepend(folder)
    name = "broken_source:Broken"
    text = (root / "memfs.toml").read_text()
    tables = f'\n[memory]\ntriggered = ["semantic", "{name}"]\n\n[memory."{name}"]\ndepth = 2\n'
    (root / "memfs.toml").write_text(text + tables)
    yield name
    sys.modules.pop("broken_source", None)


def test_p2_a_source_without_trust_is_reported_and_not_imported(memfs: Memfs, broken: str, root: Path) -> None:
    """A person sees what the repository asks for, and what would enable it."""
    ran = memfs("agent", "warn", "deploy it")
    assert (ran.code, ran.out) == (0, "")
    assert f"['{broken}'] in memory.triggered is ignored" in ran.err
    assert "broken_source" not in sys.modules
    shown = memfs("admin", "trust", "--show").out
    assert f"memory.triggered = ['{broken}']" in shown
    assert f"memory.{broken} = {{'depth': 2}}" in shown


def test_p2_what_is_broken_is_named(memfs: Memfs, broken: str, root: Path) -> None:
    """Anyone who asks is shown the error without its control characters, and what is to be done."""
    trust.grant(root)
    ran = memfs("agent", "warn", "deploy it")
    assert "RuntimeError: out of \\u{1B}" in ran.err
    assert "mend it, or take it out" in ran.err
    assert "\x1b" not in ran.err


def test_p5_config_shows_the_values_of_each_source(memfs: Memfs, broken: str, root: Path) -> None:
    """Own tables and mounts are among the settings with their places, those of others where they count."""
    shown = memfs("config", "--json").json["settings"]
    assert shown["memory.episodic.max_warnings"] == {"value": 3, "origin": "default"}
    assert shown["memory.triggered"]["value"] == ["semantic"]
    assert shown["memory.triggered"]["origin"].endswith(f"without {broken}, not trusted")
    assert f"memory.{broken}.depth" not in shown
    trust.grant(root)
    ran = memfs("--set", "mounts.team=../team", "--set", "memory.episodic.max_warnings=5", "config", "--json")
    shown = ran.json["settings"]
    assert shown["memory.triggered"]["value"] == ["semantic", broken]
    assert shown[f"memory.{broken}.depth"]["value"] == 2
    assert shown["mounts.team"] == {"value": "../team", "origin": "argument"}
    assert shown["memory.episodic.max_warnings"] == {"value": 5, "origin": "argument"}
    assert memfs("config", f"memory.{broken}.depth").out == "2\n"
    ran = memfs("config", "mounts.team")
    assert (ran.code, ran.err.partition("\n")[0]) == (1, "memfs: mounts.team is not set")
    assert memfs("--set", "mounts.Bad Name=x", "config").code == 2

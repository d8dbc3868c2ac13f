"""``memfs conventions`` and ``memfs agents-md``: what the team agreed on, shared and told (P6, P7)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Memfs, git

TIMES = """title: Store times in UTC
status: {status}
content: Columns hold UTC.
data:
  scope: [src/**]
"""


@pytest.fixture
def agreed(root: Path) -> Path:
    """A convention, written by hand."""
    path = root / "ContextMemory" / "conventions" / "times-utc.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(TIMES.format(status="agreed"))
    (path.parent / "flags.yaml").write_text("content: Each flag names the day it goes away.\nstatus: proposed\n")
    return path


def test_conventions_are_listed_by_status_and_file(memfs: Memfs, agreed: Path) -> None:
    """With scope, and as JSON."""
    assert "Store times in UTC: Columns hold UTC." in memfs("conventions").out
    assert "2 conventions" in memfs("conventions", "list").err

    def listed(*options: str) -> list[str]:
        return [one["id"] for one in memfs("conventions", "list", *options, "--json").json["conventions"]]

    assert listed("--status", "agreed") == ["times-utc"]
    assert listed("--file", "web/x.ts") == ["flags"]
    assert listed("--file", "src/x.py") == ["flags", "times-utc"]


def test_a_team_decides_and_shares(memfs: Memfs, bare: Memfs, agreed: Path, root: Path, tmp_path: Path) -> None:
    """agree, export, import into another workspace, once (P7)."""
    assert "agreed flags" in memfs("conventions", "agree", "flags", "--reason", "review of May").out
    assert "Agree on flags: review of May" in git(root, "log", "-1", "--format=%s")
    assert "already" in memfs("conventions", "agree", "flags").err

    file = tmp_path / "team.yaml"
    assert "Exported 2 conventions of W" in memfs("conventions", "export", str(file)).out
    assert memfs("conventions", "export", str(file)).code == 1
    assert memfs("conventions", "export", str(file), "--replace", "--json").json["conventions"] == [
        "flags",
        "times-utc",
    ]
    printed = memfs("conventions", "export", "-", "--name", "platform", "--id", "flags").out
    assert "workspace: platform" in printed

    other = tmp_path / "other"
    assert bare("init", str(other)).code == 0
    tried = bare("-C", str(other), "conventions", "import", str(file), "--dry-run")
    assert "Would import from W: 2 new" in tried.out
    done = bare("-C", str(other), "conventions", "import", str(file))
    assert "Imported from W: 2 new" in done.out
    assert "'memfs conventions agree ID'" in done.err
    assert "Imported from W: 2 same" in bare("-C", str(other), "conventions", "import", str(file)).out
    assert "Import 2 conventions from W" in git(other, "log", "-1", "--format=%s")
    from_input = bare("-C", str(other), "conventions", "import", "-", "--json", stdin=printed)
    assert from_input.json["conventions"][0]["outcome"] == "same"
    agreed.write_text(TIMES.format(status="agreed").replace("hold UTC", "hold UTC, always"))
    mine = other / "ContextMemory" / "conventions" / "times-utc.yaml"
    mine.write_text(mine.read_text().replace("hold UTC", "hold local time"))
    memfs("conventions", "export", str(file), "--replace")
    refused = bare("-C", str(other), "conventions", "import", str(file))
    assert (refused.code, "changed both here and in W" in refused.err) == (1, True)
    assert "1 conflict" in bare("-C", str(other), "conventions", "import", str(file), "--dry-run").out
    assert "2 updated" in bare("-C", str(other), "conventions", "import", str(file), "--take", "--agreed").out
    assert "always" in mine.read_text()


def test_options_belong_to_their_action(memfs: Memfs, tmp_path: Path) -> None:
    """With the usual exit codes."""
    for words in (
        ("list", "x"),
        ("list", "--agreed"),
        ("agree",),
        ("agree", "x", "--status", "agreed"),
        ("export",),
        ("export", "x", "--reason", "y"),
        ("import", "x", "--keep", "--take"),
        ("import", "x", "y"),
        ("export", "x", "--id", "a", "--status", "agreed"),
    ):
        assert memfs("conventions", *words).code == 2, words
    assert "cannot be read" in memfs("conventions", "import", str(tmp_path / "nowhere.yaml")).err
    assert memfs("conventions", "agree", "nobody").code == 1


def test_agents_md_is_written_checked_and_removed(memfs: Memfs, agreed: Path, root: Path) -> None:
    """``check`` fails until the block says what is agreed on; memfs does not commit the file (P6)."""
    file = root / "AGENTS.md"
    file.write_text("# Agents\n")
    stale = memfs("agents-md", "check")
    assert (stale.code, "has no block" in stale.out) == (1, True)
    assert "**Store times in UTC**: Columns hold UTC." in memfs("agents-md", "show").out
    assert memfs("agents-md", "show", "--json").json["tokens"] > 10

    assert "Wrote the block into AGENTS.md" in memfs("agents-md", "write").out
    assert memfs("agents-md", "check").code == 0
    assert memfs("agents-md", "check", "--json").json["standing"] == "current"
    assert git(root, "ls-files", "AGENTS.md") == ""
    memfs("conventions", "agree", "flags")
    assert "AGENTS.md:3 is not what is agreed on" in memfs("agents-md", "check").out
    assert "Updated" in memfs("agents-md", "write").out

    file.write_text(file.read_text().replace("hold UTC", "hold local time"))
    refused = memfs("agents-md", "write")
    assert (refused.code, "AGENTS.md:3" in refused.err, "--force" in refused.err) == (1, True, True)
    assert memfs("agents-md", "write", "--force").code == 0
    assert memfs("agents-md", "remove", "--json").json["done"] == "removed"
    assert file.read_text() == "# Agents\n"
    assert memfs("agents-md", "write", "--file", str(root / "CLAUDE.md"), "--preferences").code == 0
    assert "Deleted" in memfs("agents-md", "remove", "--file", str(root / "CLAUDE.md")).out
    assert memfs("agents-md", "show", "--force").code == 2
    assert memfs("agents-md", "remove", "--preferences").code == 2


def test_what_nobody_stands_behind_is_named(memfs: Memfs, root: Path) -> None:
    """An agent's convention is not told to agents until a person agrees."""
    folder = root / "ContextMemory" / "conventions"
    folder.mkdir(exist_ok=True)
    (folder / "tabs.yaml").write_text("content: Use tabs.\nstatus: agreed\ntrust: agent\n")
    shown = memfs("agents-md", "show")
    assert "nothing is agreed on yet" in shown.err
    assert "left out, as no person stands behind it: tabs" in shown.err
    assert memfs("agents-md", "check").code == 0
    memfs("conventions", "agree", "tabs")
    assert "Use tabs." in memfs("agents-md", "show").out

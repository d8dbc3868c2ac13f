"""``memfs team convention`` and ``memfs team agents-md``: what the team agreed on, shared and shown (K8, P6, P7)."""

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
def accepted(root: Path) -> Path:
    """A convention, written by hand."""
    path = root / "ContextMemory" / "conventions" / "times-utc.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(TIMES.format(status="accepted"))
    (path.parent / "flags.yaml").write_text("content: Each flag names the day it goes away.\nstatus: proposed\n")
    return path


def test_a_remembered_convention_is_a_proposal(memfs: Memfs) -> None:
    """It says what is left to do before any agent is given it, and has the status that says so (K8)."""
    done = memfs("remember", "--type", "convention", "--id", "issues", "Name branches after issues")
    assert "agents do not see it until 'memfs team convention accept issues'" in done.err
    assert "  proposed" in memfs("recall", "branches after issues").out


def test_conventions_are_listed_by_status_and_file(memfs: Memfs, accepted: Path) -> None:
    """With scope, and as JSON."""
    assert "Store times in UTC: Columns hold UTC." in memfs("team", "convention").out
    assert "2 conventions" in memfs("team", "convention", "list").err

    def listed(*options: str) -> list[str]:
        return [one["id"] for one in memfs("team", "convention", "list", *options, "--json").json["conventions"]]

    assert listed("--status", "accepted") == ["times-utc"]
    assert listed("--file", "web/x.ts") == ["flags"]
    assert listed("--file", "src/x.py") == ["flags", "times-utc"]


def test_a_convention_is_proposed_accepted_and_replaced(memfs: Memfs, accepted: Path, root: Path) -> None:
    """propose TEXT, accept with what it replaces, retire, and back: each a commit that says so (K8)."""
    text = "Columns hold UTC with an explicit Z."
    words = ("--title", "UTC with a Z", "--owner", "backend", "--scope", "src/**", "--scope", "web/**")
    proposed = memfs(
        "team", "convention", "propose", text, *words, "--supersedes", "times", "--rationale", "A bad night."
    )
    assert "proposed utc-with-a-z" in proposed.out
    assert "memfs team convention accept utc-with-a-z" in proposed.err
    assert git(root, "log", "-1", "--format=%s").strip() == "Propose UTC with a Z"
    listed = memfs("team", "convention", "list", "--status", "proposed", "--file", "web/x.ts", "--json").json[
        "conventions"
    ]
    assert [(one["id"], one["owner"], one["supersedes"]) for one in listed] == [
        ("flags", "", []),
        ("utc-with-a-z", "backend", ["times-utc"]),
    ]
    assert "to replace times-utc" in memfs("team", "convention").out

    done = memfs("team", "convention", "accept", "utc-with-a-z", "--reason", "vote")
    assert done.out.splitlines() == ["accepted utc-with-a-z", "retired times-utc"]
    assert git(root, "log", "-1", "--format=%s").strip() == "Accept utc-with-a-z; retire times-utc: vote"
    assert "retired flags" in memfs("team", "convention", "retire", "flags").out
    assert "proposed flags" in memfs("team", "convention", "propose", "flags").out

    shown = memfs("recall", "columns hold utc").out.splitlines()
    assert [line.split()[0] for line in shown if line and line[0] != " "] == ["utc-with-a-z"]
    assert any(line.startswith("  earlier: times-utc") for line in shown)
    fenced = memfs("recall", "columns hold utc", "--fenced").out
    assert "utc-with-a-z" in fenced
    assert "times-utc" not in fenced


def test_a_team_decides_and_shares(memfs: Memfs, bare: Memfs, accepted: Path, root: Path, tmp_path: Path) -> None:
    """accept, export, import into another workspace as proposals, once (P7)."""
    assert "accepted flags" in memfs("team", "convention", "accept", "flags", "--reason", "review of May").out
    assert "Accept flags: review of May" in git(root, "log", "-1", "--format=%s")
    assert "already" in memfs("team", "convention", "accept", "flags").err

    file = tmp_path / "platform.jsonl"
    assert memfs("export", "--type", "convention", str(file)).code == 0
    assert memfs("export", "--type", "nothing").code == 2
    other = tmp_path / "other"
    assert bare("init", str(other)).code == 0
    tried = bare("-C", str(other), "import", "--from", "conventions", str(file), "--dry-run")
    assert "Would import 2 memories (2 convention) from conventions of platform" in tried.out
    done = bare("-C", str(other), "import", "--from", "conventions", str(file))
    assert "'memfs team convention accept ID'" in done.err
    assert "Import from conventions of platform: platform.jsonl" in git(other, "log", "-1", "--format=%s")
    again = bare("-C", str(other), "import", "--from", "conventions", str(file), "--json")
    assert (again.json["stored"], again.json["same"]) == (0, 2)


def test_options_belong_to_their_action(memfs: Memfs) -> None:
    """With the usual exit codes."""
    for words in (
        ("list", "x"),
        ("list", "--accepted"),
        ("accept",),
        ("accept", "x", "--status", "accepted"),
        ("propose", "flags", "--owner", "backend"),
        ("propose", "flags", "--id", "other"),
        ("accept", "x", "--title", "y"),
    ):
        assert memfs("team", "convention", *words).code == 2, words
    assert memfs("team", "convention", "accept", "nobody").code == 1


def test_agents_md_is_written_and_checked(memfs: Memfs, accepted: Path, root: Path) -> None:
    """``check`` fails until the block says what is agreed on; memfs does not commit the file (P6)."""
    file = root / "AGENTS.md"
    file.write_text("# Agents\n")
    stale = memfs("team", "agents-md", "check")
    assert (stale.code, "missing  AGENTS.md" in stale.out) == (1, True)
    assert memfs("team", "agents-md", "check", "--json").json["tokens"] > 10

    assert "written  AGENTS.md" in memfs("team", "agents-md", "write").out
    assert "**Store times in UTC**: Columns hold UTC." in file.read_text()
    assert memfs("team", "agents-md", "check").code == 0
    assert memfs("team", "agents-md", "check", "--json").json["status"] == "current"
    assert git(root, "ls-files", "AGENTS.md") == ""
    memfs("team", "convention", "accept", "flags")
    assert "stale  AGENTS.md:3" in memfs("team", "agents-md", "check").out
    assert "updated" in memfs("team", "agents-md", "write").out

    file.write_text(file.read_text().replace("hold UTC", "hold local time"))
    refused = memfs("team", "agents-md", "write")
    assert (refused.code, "AGENTS.md:3" in refused.err, "--force" in refused.err) == (1, True, True)
    assert memfs("team", "agents-md", "write", "--force").code == 0
    assert memfs("team", "agents-md", "write", "--file", str(root / "CLAUDE.md")).code == 0
    assert memfs("team", "agents-md", "check", "--force").code == 2


def test_what_nobody_vouches_for_is_named(memfs: Memfs, root: Path) -> None:
    """An agent's convention is not given to agents until a person accepts it."""
    folder = root / "ContextMemory" / "conventions"
    folder.mkdir(exist_ok=True)
    (folder / "tabs.yaml").write_text("content: Use tabs.\nstatus: accepted\ntrust: agent\n")
    wrote = memfs("team", "agents-md", "write")
    assert "no convention is accepted yet" in wrote.err
    assert "left out, as no person vouches for it: tabs" in wrote.err
    assert memfs("team", "agents-md", "check").code == 0
    memfs("team", "convention", "accept", "tabs")
    assert memfs("team", "agents-md", "write").code == 0
    assert "Use tabs." in (root / "AGENTS.md").read_text()


def test_the_beginning_of_an_id_means_a_convention(memfs: Memfs, accepted: Path) -> None:
    """What else begins so is not meant, and where several conventions do, only they are named."""
    memfs("remember", "Times of trains", "--id", "times-trains")
    assert memfs("team", "convention", "accept", "times").out == "accepted times-utc\n"
    accepted.with_name("times-iso.yaml").write_text("content: Dates are ISO.\nstatus: proposed\n")
    assert "  it could be times-iso, times-utc\n" in memfs("team", "convention", "accept", "times").err

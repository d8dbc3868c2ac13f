"""What other memories keep is read as they mean it: each format by itself (B5)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memfs.doors.cli.import_ import detect
from memfs.doors.importers import STORES, agents_md, claude_code, conventions, markdown
from memfs.doors.importers.markdown import Passage, SourceContent, front_matter, pages, passages
from memfs.errors import ContentError
from memfs.model.time import format_time


def write(path: Path, text: str | bytes) -> Path:
    """A file with its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def skipped(taken: SourceContent) -> list[str]:
    """What was passed over, in one text each."""
    return [f"{one.where}: {one.reason}" for one in taken.skipped]


def test_the_command_line_knows_the_formats_there_are() -> None:
    """The names that --from takes are those of the table."""
    assert set(STORES) == {claude_code.NAME, agents_md.NAME, markdown.NAME, conventions.NAME}


# -- Markdown -----------------------------------------------------------------------------------------------------
def test_a_page_is_cut_into_what_belongs_together() -> None:
    """Items with their lines below, numbered lists and the rest of a section are passages; comments and rules go."""
    text = (
        "Intro.\n\n# One\n\nText\nof one.\n\n```sh\n# no heading\n- no item\n```\n\n- a\n  more\n\n  - inner\n- b\n"
        "<!-- gone\n- gone -->\n## Two\n---\n\nWhen testing:\n\n* c\n\nAfter.\n\n1. x\n2. y\n\n***\n"
    )
    found = list(passages(text))
    assert [(one.line, one.heading, one.sort, one.text) for one in found] == [
        (1, "", "text", "Intro."),
        (5, "One", "text", "Text\nof one.\n\n```sh\n# no heading\n- no item\n```"),
        (13, "One", "item", "a\nmore\n\n- inner"),
        (17, "One", "item", "b"),
        (25, "Two", "item", "When testing: c"),
        (27, "Two", "text", "After."),
        (29, "Two", "steps", "1. x\n2. y"),
    ]
    assert found[4].headings == ("One", "Two")


@given(st.text(alphabet="-*#`~<!>\n 1.ab\t=_[]()@|", max_size=120))
@settings(max_examples=150)
def test_no_page_is_too_odd(text: str) -> None:
    """Whatever a page holds, its passages are texts of it, in order."""
    found = list(passages(text))
    assert [one.line for one in found] == sorted(one.line for one in found)
    assert all(one.text.strip() for one in found)
    front_matter(f"---\n{text}\n---\n{text}")


def test_front_matter_that_is_no_yaml_still_says_what_it_can() -> None:
    """A description with a colon, as agents write them, loses nothing."""
    fields, body, line = front_matter("---\nname: a\ndescription: Ada: knows Go\nmetadata: \n  type: user\n---\nText\n")
    assert (fields["name"], fields["description"], fields["type"]) == ("a", "Ada: knows Go", "user")
    assert (body, line) == ("Text\n", 7)
    assert front_matter("---\nno end\n")[0] == {}
    assert front_matter("---\na: &x [*x]\nname: b\n---\n")[0]["name"] == "b"


# -- Claude Code --------------------------------------------------------------------------------------------------
@pytest.fixture
def memory(tmp_path: Path) -> Path:
    """A memory folder as Claude Code keeps it, of older and newer versions."""
    folder = tmp_path / "projects" / "-home-ada-shop" / "memory"
    write(
        folder / "MEMORY.md",
        "# Memory\n- [Role](user_role.md) — engineer\n- [Gone](gone.md) - gone\n\n## Build\n- `make` needs Go 1.22\n",
    )
    write(
        folder / "user_role.md",
        "---\nname: user_role\ndescription: Ada: backend engineer\ntype: user\noriginSessionId: s-1\n---\n"
        "Ten years of Go. See [[feedback-testing]] and [[nobody]].\n",
    )
    write(
        folder / "feedback_testing.md",
        '---\nname: feedback-testing\ndescription: "Real databases"\nmetadata: \n  node_type: memory\n'
        "  type: feedback\n  originSessionId: s-2\n  modified: 2026-07-30T07:40:18.191Z\n---\n"
        "\nNever mock.\n\n**Why:** it broke.\n",
    )
    write(folder / "team/reference_board.md", "---\nname: board\ntype: reference\n---\nhttps://board.example\n")
    write(folder / "plain.md", "# Deploys\n\nOn Tuesdays.\n")
    return folder


def test_claude_codes_memories_keep_type_session_and_time(memory: Path) -> None:
    """Both shapes of front matter are understood, links between files are kept, the index is no memory (B5)."""
    taken = claude_code.read(memory)
    found = {one.facts["file"].partition("/")[2]: one for one in taken.arrivals}
    user, feedback = found["user_role.md"], found["feedback_testing.md"]
    assert (user.item.type, user.item.title) == ("preference", "Ada: backend engineer")
    assert (user.item.origin.session, user.item.origin.agent) == ("s-1", "claude-code")
    assert user.links == (("-home-ada-shop/feedback_testing.md", "relates"),)
    assert feedback.item.content == "Never mock.\n\n**Why:** it broke."
    assert feedback.item.timestamp is not None
    assert format_time(feedback.item.timestamp).startswith("2026-07-30T07:40:18")
    assert found["team/reference_board.md"].item.type == "documentation"
    assert (found["plain.md"].item.type, found["plain.md"].item.title) == ("knowledge", "Deploys")
    assert found["MEMORY.md"].item.content == "`make` needs Go 1.22"
    assert {one.item.trust for one in taken.arrivals} == {"agent"}
    assert skipped(taken) == ["MEMORY.md:3: points to gone.md, which is not there"]


def test_the_memory_of_this_project_is_found(memory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of Claude Code's own folder only the project's memory is taken, never another project's (C6)."""
    own = tmp_path / "projects" / claude_code.slug_of(tmp_path / "work") / "memory"
    write(own / "MEMORY.md", "# Memory\n")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    assert claude_code.memory_folder(None, [tmp_path / "work"]) == own
    assert claude_code.memory_folder(tmp_path, [tmp_path / "work"]) == own
    assert claude_code.memory_folder(memory.parent, []) == memory
    with pytest.raises(ContentError, match="no memory of Claude Code"):
        claude_code.memory_folder(None, [tmp_path / "elsewhere"])


# -- AGENTS.md ----------------------------------------------------------------------------------------------------
def test_instructions_become_rules_wishes_procedures_and_facts(tmp_path: Path) -> None:
    """A rule is proposed, a wish is a preference, a numbered list a procedure; a folder's file holds for it (B5)."""
    write(
        tmp_path / "AGENTS.md",
        "# Shop\n\nSells things.\n\n## Rules\n- **Always** add an index\n- src/api: the HTTP layer\n"
        "- Logs must not hold names\n\n## Preferences\n- Short answers\n\n## Release\n1. Tag\n2. Push\n\n"
        "- [ ] Split the worker\n- [x] Done\n",
    )
    write(tmp_path / "packages/web/CLAUDE.md", "- Use hooks\n")
    write(tmp_path / ".claude/rules/sql.md", '---\npaths: ["db/**"]\n---\n- Never drop a column\n')
    write(tmp_path / "node_modules/x/AGENTS.md", "- Use nothing\n")
    taken = agents_md.read(tmp_path)
    found = {one.where: (one.item.type, one.item.status, dict(one.item.data)) for one in taken.arrivals}
    assert found == {
        "AGENTS.md:3": ("knowledge", "", {}),
        "AGENTS.md:6": ("convention", "proposed", {}),
        "AGENTS.md:7": ("knowledge", "", {}),
        "AGENTS.md:8": ("convention", "proposed", {}),
        "AGENTS.md:11": ("preference", "", {}),
        "AGENTS.md:14": ("procedural", "", {}),
        "AGENTS.md:17": ("prospective", "pending", {}),
        "packages/web/CLAUDE.md:1": ("convention", "proposed", {"scope": ["packages/web/**"]}),
        ".claude/rules/sql.md:4": ("convention", "proposed", {"scope": ["db/**"]}),
    }
    assert {one.item.trust for one in taken.arrivals} == {"human"}
    assert skipped(taken) == ["AGENTS.md:18: a task that is done"]


def test_our_own_block_does_not_come_back(tmp_path: Path) -> None:
    """What memfs wrote into AGENTS.md is passed over, lines keep their numbers, and a damaged mark is named."""
    from memfs.context import agents_md as agents_marks

    body = "## Conventions\n\n- Use tabs (`tabs`)\n"
    text = agents_marks.placed(b"- Use spaces\n", None, body) + b"- Never both\n"
    path = write(tmp_path / "AGENTS.md", text)
    taken = agents_md.read(path)
    assert [one.item.content for one in taken.arrivals] == ["Use spaces", "Never both"]
    assert int(taken.arrivals[1].where.partition(":")[2]) == len(text.splitlines())
    write(path, text.replace(b"memfs:end", b"memfs:end x"))
    assert "damaged" in skipped(agents_md.read(path))[0]


def test_what_a_page_imports_is_named_and_not_read(tmp_path: Path) -> None:
    """A line that imports another file is no memory; what it names is imported when somebody names it."""
    write(tmp_path / "CLAUDE.md", "@AGENTS.md\n\n- Use tabs\n")
    write(tmp_path / "AGENTS.md", "- Keep it short\n")
    taken = agents_md.read(tmp_path / "CLAUDE.md")
    assert [one.where for one in taken.arrivals] == ["CLAUDE.md:3"]
    assert skipped(taken) == ["CLAUDE.md:1: it imports @AGENTS.md; name that to import it"]


def test_a_persons_own_file_holds_wishes(tmp_path: Path, own_world: Path) -> None:
    """What stands in the person's own CLAUDE.md is how that person wants it, no rule of the team (B5)."""
    files = [
        write(own_world / ".claude/CLAUDE.md", "- Use tabs\n"),
        write(tmp_path / "CLAUDE.local.md", "- Use tabs\n"),
    ]
    assert [agents_md.read(path).arrivals[0].item.type for path in files] == ["preference", "preference"]
    (own_world / ".claude/projects").mkdir()
    with pytest.raises(ContentError, match="cannot be told"):
        detect(own_world / ".claude")


# -- recognising --------------------------------------------------------------------------------------------------
def test_formats_are_told_apart(memory: Path, tmp_path: Path) -> None:
    """A file or folder says what wrote it; a page that nothing else wrote is a Markdown note (B5, D2)."""
    assert detect(memory) == detect(memory.parent) == detect(memory / "user_role.md") == "claude-code"
    assert detect(write(tmp_path / "a/AGENTS.md", "x")) == detect(tmp_path / "a") == "agents-md"
    assert detect(write(tmp_path / "ours.jsonl", '{"document": {}, "path": "x"}\n')) == "memfs"
    assert detect(write(tmp_path / "items.jsonl", '{"content": "x", "type": "knowledge"}\n')) == "memfs"
    assert detect(write(tmp_path / "t.csv", "memory,id\n")) == "memfs"
    assert detect(write(tmp_path / "notes.md", "text")) == "markdown"
    assert detect(write(tmp_path / "folder/x.md", "text").parent) == "markdown"


def test_hostile_folders_are_bounded(tmp_path: Path) -> None:
    """Links, pipes, other encodings and huge files are named and not read (faults rows 10 to 12)."""
    folder = tmp_path / "memory"
    write(folder / "MEMORY.md", "# Memory\n")
    write(folder / "latin.md", b"caf\xe9\n")
    write(tmp_path / "outside/passwd.md", "root")
    os.symlink(tmp_path / "outside/passwd.md", folder / "link.md")
    os.symlink(folder, folder / "loop")
    os.mkfifo(folder / "pipe.md")
    with open(folder / "huge.md", "wb") as huge:
        huge.truncate(1 << 40)
    taken = claude_code.read(folder)
    assert taken.arrivals == []
    assert [line.partition(":")[0] for line in skipped(taken)] == ["link.md", "pipe.md", "huge.md", "latin.md"]


def test_what_goes_or_becomes_a_link_meanwhile_is_not_read(tmp_path: Path) -> None:
    """A file that is taken away, or traded for a link, between the listing and the reading costs only itself."""
    for name in ("a.md", "b.md", "c.md"):
        write(tmp_path / "memory" / name, "# Text\n")
    write(tmp_path / "secret.md", "secret")
    taken = SourceContent()
    found = pages(tmp_path / "memory", lambda name: name.endswith(".md"), taken)
    assert next(found).name == "a.md"
    (tmp_path / "memory/b.md").unlink()
    (tmp_path / "memory/c.md").unlink()
    os.symlink(tmp_path / "secret.md", tmp_path / "memory/c.md")
    assert list(found) == []
    assert [line.partition(":")[0] for line in skipped(taken)] == ["b.md", "c.md"]


def test_a_rule_is_told_from_a_fact() -> None:
    """Words that oblige make a rule; a list of folders is none."""

    def kind(text: str, own: bool = False) -> str:
        return agents_md.kind_of(Passage(text=text, line=1, sort="item"), own)

    rules = ["Use tabs", "**Never** push to main", "Don't mock", "Migrations must roll forward", "`ruff` is required"]
    facts = ["src/: code", "The API speaks JSON", "Python 3.12", "useful links: x", "Address book service"]
    assert {kind(text) for text in rules} == {"convention"}
    assert {kind(text) for text in facts} == {"knowledge"}
    assert kind("Use tabs", own=True) == "preference"

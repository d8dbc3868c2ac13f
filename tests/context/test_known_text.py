"""KnownText: what an agent reads anyway is not given again."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from memfs.context.agents_md import block_text
from memfs.context.builtin_sources import ConventionsMemory
from memfs.context.known import KnownFiles, KnownText
from memfs.learning.conventions import Convention
from memfs.model import MemoryItem
from memfs.model.episode import StateSnapshot

GUIDE = """# Guide for agents

- **Never** push straight to `main`.
- Run `make lint` before you commit.
  It takes ten seconds.

Use [pytest](https://pytest.org) rather than unittest, and keep
functions under 25 lines.

> Dates are always in UTC.

**Style**: write in the active voice.
**Never**: rebase a shared branch.

| Rule | Why |
| Commits are signed. | audits |

<!-- memfs:begin -->
1. Answer in German!
<!-- memfs:end -->
"""


@pytest.mark.parametrize(
    "text",
    [
        "never push straight to main",
        "NEVER push straight to  main!",
        "Run make lint before you commit.",
        "It takes ten seconds. Run make lint before you commit.",
        "Use pytest rather than unittest, and keep functions under 25 lines.",
        "Dates are always in UTC",
        "*Answer in German*",
        "Commits are signed",
        "- Never push straight to main.\n- Answer in German.",
        "Write in the active voice.",
        "Style: write in the active voice.",
        "Answer in German (docs/*.md)",
    ],
)
def test_the_same_words_are_known_whatever_their_markdown(text: str) -> None:
    """P6: case, spacing, Markdown and punctuation make no difference."""
    assert KnownText(GUIDE).has(text)


@pytest.mark.parametrize(
    "text",
    [
        "push straight to main",
        "Always push straight to main.",
        "Run make lint after you commit.",
        "Keep functions under 50 lines.",
        "Answer in French",
        "Rebase a shared branch.",
        "Answer in German (when asked to)",
        "main",
        "Never push straight to main. Never rebase it either.",
        "",
        " \n",
        "...",
    ],
)
def test_other_words_are_not_known(text: str) -> None:
    """P6: nothing is kept back because something similar, or its opposite, is said."""
    assert not KnownText(GUIDE).has(text)


def test_a_question_does_not_say_what_answers_it() -> None:
    """P6: a question with nearly all of a memory's words gets it; a statement that lacks a name of it says less."""
    memory = "The billing service stores invoices in PostgreSQL"
    assert not KnownText("where does the billing service store invoices?").has(memory)
    assert not KnownText("Stop. Does the billing service store invoices?").has(memory)
    assert not KnownText("the billing service stores its invoices").has(memory)
    assert KnownText("I know that: the billing service stores invoices in postgresql.").has(memory)


def test_without_texts_nothing_is_known() -> None:
    """No file and no prompt: all is given."""
    assert not KnownText().has("Never push to main.")
    assert not KnownText("", "  ").has("Never push to main.")


@pytest.mark.parametrize(
    "text",
    ["\n" * 300_000, " " * 300_000, "[" * 300_000, "[a](" * 80_000, "|" * 300_000, "- " * 150_000, "`" * 300_000,
     "*a" * 100_000, "a! " * 100_000],
    ids=["lines", "blanks", "brackets", "links", "bars", "bullets", "ticks", "stars", "sentences"],
)  # fmt: skip
def test_hostile_documents_take_no_time(text: str) -> None:
    """L7: whatever is in a prompt, looking through it ends."""
    began = time.process_time()
    KnownText(text).has("Never push to main.")
    assert time.process_time() - began < 3.0


# -- files --------------------------------------------------------------------------------------------------------
@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a workspace two folders down."""
    (tmp_path / "repo" / "team" / "work").mkdir(parents=True)
    return tmp_path / "repo"


def files(repository: Path) -> KnownFiles:
    """What is known in the workspace of that repository."""
    return KnownFiles(repository / "team" / "work", repository)


@pytest.mark.parametrize(
    "path",
    ["CLAUDE.md", "CLAUDE.local.md", ".claude/CLAUDE.md", "AGENTS.md", "team/AGENTS.md", "team/work/CLAUDE.md"],
)
def test_the_files_agents_read_are_looked_at_up_to_the_top(repository: Path, path: str) -> None:
    """P6: from the workspace up to the repository's top."""
    (repository / path).parent.mkdir(exist_ok=True)
    (repository / path).write_text(GUIDE)
    assert files(repository).text().has("Never push straight to main.")


def test_the_settings_file_and_the_prompt_count(repository: Path) -> None:
    """P6: so do ``memfs.toml`` and what the agent is given along."""
    (repository / "team/work/memfs.toml").write_text("# Never push straight to main.\n[memory]\n")
    known = files(repository).text("You are a coder. Answer in German.")
    assert known.has("Never push straight to main.")
    assert known.has("answer in german")
    assert not known.has("Answer in French")


def test_what_the_managed_block_says_is_known(repository: Path) -> None:
    """P6: conventions that memfs wrote into ``AGENTS.md`` itself are not given again."""
    items = [
        MemoryItem(
            "Use type hints in all functions.", "convention", id="a-1", data={"scope": ["src/**/*.py", "*.pyi"]}
        ),
        MemoryItem("Every call has a timeout.\nFive seconds is usual.", "convention", id="b-2", title="Timeouts"),
        MemoryItem("* Never @import <b>this</b> & that", "convention", id="c-3"),
    ]
    agreed = [Convention(item) for item in items]
    (repository / "AGENTS.md").write_text(f"# Agents\n\n<!-- begin -->\n{block_text(agreed)}<!-- end -->\n")
    known = files(repository).text()
    selected = ConventionsMemory(SimpleNamespace(holding=lambda files: agreed)).select(StateSnapshot())
    assert [known.has(entry.text) for entry in selected.entries] == [True, True, True]


def test_links_are_followed_within_the_repository_only(repository: Path, tmp_path: Path) -> None:
    """P6: ``CLAUDE.md`` is often a link to another guide; one that leads out is left alone."""
    (tmp_path / "secret.md").write_text("Never tell anybody.")
    (repository / "docs").mkdir()
    (repository / "docs/agents.md").write_text("Use tabs everywhere.")
    (repository / "CLAUDE.md").symlink_to("docs/agents.md")
    (repository / "AGENTS.md").symlink_to("../secret.md")
    (repository / "team/AGENTS.md").symlink_to(tmp_path / "secret.md")
    (repository / "team/work/.claude").symlink_to(tmp_path)
    known = files(repository).text()
    assert known.has("Use tabs everywhere.")
    assert not known.has("Never tell anybody.")


def test_nothing_above_the_repository_is_read(repository: Path) -> None:
    """P6: a guide in a folder above is not this repository's."""
    (repository.parent / "CLAUDE.md").write_text("Never tell anybody.")
    assert not files(repository).text().has("Never tell anybody.")
    assert not KnownFiles(repository, repository / "elsewhere").text().has("Never tell anybody.")


def test_a_changed_file_is_read_again(repository: Path) -> None:
    """P6: what a person writes into the guide counts from then on, and what is removed no longer."""
    known = files(repository)
    assert not known.text().has("Use tabs everywhere.")
    (repository / "AGENTS.md").write_text("Use tabs everywhere.")
    assert known.text().has("Use tabs everywhere.")
    (repository / "AGENTS.md").write_text("Use spaces instead.")
    assert not known.text().has("Use tabs everywhere.")
    (repository / "AGENTS.md").unlink()
    assert not known.text().has("Use spaces instead.")


def test_what_cannot_be_read_says_nothing(repository: Path) -> None:
    """P6: a folder, a pipe, a huge file or bytes that are not text in its place stop nothing."""
    (repository / "CLAUDE.md").mkdir()
    os.mkfifo(repository / "AGENTS.md")
    (repository / "team/AGENTS.md").write_bytes(b"\xff\xfe\0 Use tabs everywhere.\n\xc3(")
    (repository / "team/CLAUDE.md").write_bytes(b"Answer in German.\n" + b"x" * (1 << 20) + b"\nKeep it short.")
    known = files(repository).text()
    assert known.has("Answer in German.")
    assert not known.has("Keep it short.")
    assert not KnownFiles(repository / "gone").text().has("Keep it short.")

"""Every door has a page, and the transcript on it is what happens (B5)."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
from transcripts import blocks, matches, replay, steps

DOORS = Path(__file__).resolve().parents[2] / "docs/doors"
PAGES = sorted(path.name for path in DOORS.glob("*.md"))
NEEDS = {
    "README.md": "anthropic",
    "anthropic.md": "anthropic",
    "langgraph.md": "langgraph",
    "mcp.md": "mcp",
    "openai-agents.md": "agents",
}
Read = Callable[[str], str]


@pytest.mark.parametrize("name", PAGES)
def test_the_transcript_of_a_page_is_what_happens(name: str, page: Read, folder: Path) -> None:
    """Every command and statement on the page prints what is below it, in an empty repository (B5)."""
    if name in NEEDS and find_spec(NEEDS[name]) is None:
        pytest.skip(f"{NEEDS[name]} is not installed")
    wrong = replay(page(f"docs/doors/{name}"), folder)
    assert not wrong, "\n".join([f"docs/doors/{name} says otherwise:", *wrong])


@pytest.mark.parametrize("name", [name for name in PAGES if name != "README.md"])
def test_every_page_has_a_transcript(name: str, page: Read) -> None:
    """A page about a door shows it at work, by a transcript that can be replayed (B5)."""
    assert blocks(page(f"docs/doors/{name}"))


def test_every_page_is_in_the_table_of_doors(page: Read) -> None:
    """The list of doors links each page once, and the README's list links them too."""
    table, readme = page("docs/doors/README.md"), page("README.md")
    pages = [name for name in PAGES if name != "README.md"]
    assert [name for name in pages if f"]({name}" not in table] == []
    assert [name for name in pages if f"](docs/doors/{name}" not in readme] == []


@pytest.mark.parametrize("name", PAGES)
def test_every_console_block_is_a_transcript(name: str, page: Read) -> None:
    """A block of a language that only looks like a transcript is not passed over."""
    assert re.findall(r"^```(?:shell|shell-session|bash|doctest|ipython)$", page(f"docs/doors/{name}"), re.M) == []


# -- the replay itself --------------------------------------------------------------------------------------------
def test_a_page_that_is_right_is_replayed_without_a_word(folder: Path) -> None:
    """Commands, continued ones, what comes before in the block, exit codes, Python's names: all as at a prompt."""
    text = (
        "```console\n$ mkdir inner && cd inner\n$ cat > note <<'END'\n> first\n>\n> last\n> END\n"
        "$ cat note; echo no >&2\nfirst\n...\nlast\nno\n$ false; echo $?\n1\n```\n"
        "```pycon\n>>> from pathlib import Path\n>>> Path('inner/note').read_text()\n'first\\n...'\n```\n"
        "```console\n$ ls inner\nnote\n$ git status --short\n?? inner/\n"
        "$ memfs --version\nmemfs ...\n$ python -c 'print(1)'\n1\n```\n"
        "```pycon\n>>> with open('more', 'w') as file:\n...     _ = file.write('x')\n"
        ">>> Path('more').exists()\nTrue\n```\n"
    )
    assert replay(text, folder) == []
    assert (folder / "more").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("```console\n$ echo one\ntwo\n```\n", "expected:\ntwo\nprinted:\none"),
        ("```console\n$ echo one\n```\n", "printed:\none"),
        ("```console\n$ true\none\n```\n", "expected:\none"),
        ("```console\n$ ls missing 2>/dev/null\n```\n", "exit code"),
        ("```console\n$ exit 0\n$ echo one\none\n```\n", "ended the shell"),
        ("```pycon\n>>> 1 + 1\n3\n```\n", "Got:\n    2"),
        ("```pycon\n>>> raise SystemExit\n```\n", "SystemExit"),
        ("```pycon\n>>> import os; os._exit(1)\n```\n", "the interpreter ended"),
    ],
)
def test_a_page_that_is_wrong_fails(text: str, message: str, folder: Path) -> None:
    """A page is reported where it says something else than what happens."""
    assert message in "\n".join(replay(text, folder))


def test_dots_stand_for_anything() -> None:
    """Three dots match within a line, over lines, and alone on a line no line at all; nothing else is forgiven."""
    assert matches("Made ... in ...", "Made a workspace in /tmp/x\n")
    assert matches("a\n...\nb", "a\nb\n")
    assert matches("a\n...\nb", "a\n1\n2\nb\n")
    assert matches("a...b", "a\nb")
    assert matches("It ends....", "It ends. Or so")
    assert matches("...", "")
    assert not matches("a\nb", "a\nc\nb")
    assert not matches("a ... b", "a c")
    assert not matches("(a)", "a")


def test_a_console_block_begins_with_a_command() -> None:
    """Output without a command is a mistake of the page."""
    with pytest.raises(AssertionError, match="begins with"):
        list(steps("one\n$ echo one\n"))

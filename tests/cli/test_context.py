"""``memfs agent context``: keys and values of a session or workflow (L4)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Memfs


def test_set_get_unset_list(memfs: Memfs, root: Path) -> None:
    """What is set is shown by key and whole, by the next command, in words and as JSON (L4)."""
    assert memfs("agent", "context", "set", "branch=main", 'open:=["A-1", "B-2"]', "left=a=b").code == 0
    assert memfs("agent", "context", "get", "branch").out == "main\n"
    assert memfs("agent", "context", "get", "open").out == "A-1, B-2\n"
    shown = memfs("agent", "context", "get", "--json").json
    assert shown == {"name": "session", "values": {"branch": "main", "open": ["A-1", "B-2"], "left": "a=b"}}
    assert "has 1 key" in memfs("agent", "context", "unset", "open", "left", "never").out
    assert memfs("agent", "context", "get", "--json").json["values"] == {"branch": "main"}
    memfs("agent", "context", "set", "v=7", "--name", "release")
    assert "there is release, session" in memfs("agent", "context", "get", "--name", "other").err
    assert (root / "ContextMemory/context/release.yaml").read_text() == "v: '7'\n"


def test_a_missing_key_is_told(memfs: Memfs) -> None:
    """A key that is not there is an error that names the nearest."""
    memfs("agent", "context", "set", "branch=main")

    told = memfs("agent", "context", "get", "brunch")

    assert (told.code, told.out) == (1, "")
    assert "did you mean 'branch'?" in told.err


def test_a_context_that_is_not_there_is_told(memfs: Memfs) -> None:
    """An empty answer says why it is empty, and how to begin or what there is."""
    assert "'memfs agent context set KEY=VALUE' begins one" in memfs("agent", "context", "get").err
    memfs("agent", "context", "set", "branch=main")
    told = memfs("agent", "context", "get", "--name", "sesion")
    assert (told.code, told.out) == (0, "")
    assert "there is no context sesion yet; there is session" in told.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("set",), "KEY=VALUE"),
        (("set", "branch"), "write KEY=VALUE"),
        (("set", "n:=nonsense"), "write n=VALUE for plain text"),
        (("unset",), "KEY is missing"),
        (("list", "x"), "there are get, set, unset"),
        (("got",), "there are get, set, unset"),
        (("get", "a", "b"), "'b' is one word too many"),
    ],
)
def test_what_cannot_be_understood_is_told(memfs: Memfs, words: tuple[str, ...], told: str) -> None:
    """A slip ends with exit code 2 and says what would be right."""
    answer = memfs("agent", "context", *words)

    assert answer.code == 2
    assert told in answer.err

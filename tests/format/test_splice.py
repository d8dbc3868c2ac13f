"""Changing single fields leaves every other character alone (design section 3)."""

from __future__ import annotations

from typing import Any

import pytest

from memfs.format import item_fields, yaml_text
from memfs.format.codec import parse, render

BEFORE = """\
# yaml-language-server: $schema=x.json

title: 'Use PostgreSQL'   # short
# why we chose it
content: |
  First line.

  Third line.


tags: [database, "decision"]  # flow

origin:
  # the agent
  agent: claude  # who
  session: s-1
trust: agent
links:
# first
- to: one
  relation: relates
# second
- to: two   # keep
metadata:
  zeta: 1.10
  # about alpha
  alpha: no
  deep:
    list:
    - a  # first
    - b
# the end
"""


def change(before: str, order: Any = item_fields.ORDER, **changes: Any) -> str:
    """The text after some fields were set, or removed with None; it must not have been rewritten whole."""
    data = before.encode()
    parsed = parse(data, "x.yaml")
    mapping = {key: value for key, value in {**parsed.mapping, **changes}.items() if value is not None}
    encoded = render(mapping, "x.yaml", parsed, order)
    assert not encoded.rewritten
    assert yaml_text.load(encoded.data.decode().removeprefix("\ufeff")) == mapping
    return encoded.data.decode()


def swap(old: str, new: str, text: str = BEFORE) -> str:
    """The text with one passage replaced, which must be there once."""
    assert text.count(old) == 1
    return text.replace(old, new)


@pytest.mark.parametrize(
    ("changes", "old", "new"),
    [
        ({"title": "New"}, "'Use PostgreSQL'   # short", "New   # short"),
        ({"title": "two\nlines"}, "'Use PostgreSQL'   # short\n", "|-   # short\n  two\n  lines\n"),
        ({"content": "One line."}, "|\n  First line.\n\n  Third line.\n", "One line.\n"),
        ({"content": "A\nB\n"}, "|\n  First line.\n\n  Third line.\n", "|\n  A\n  B\n"),
        ({"tags": ["database", "new"]}, '[database, "decision"]', "[database, new]"),
        ({"tags": None}, 'tags: [database, "decision"]  # flow\n', ""),
        ({"trust": "human"}, "trust: agent", "trust: human"),
        ({"origin": {"agent": "claude", "session": "s-2"}}, "session: s-1", "session: s-2"),
        ({"origin": {"agent": "other", "session": "s-1"}}, "agent: claude  # who", "agent: other  # who"),
        ({"origin": {"agent": "claude"}}, "  session: s-1\n", ""),
        ({"origin": {"agent": "claude", "session": "s-1", "phase": "refine"}}, "s-1\n", "s-1\n  phase: refine\n"),
        (
            {"origin": {"speaker": "Ada", "agent": "claude", "session": "s-1"}},
            "  # the agent\n",
            "  speaker: Ada\n  # the agent\n",
        ),
        ({"importance": 2}, "trust: agent\n", "trust: agent\nimportance: 2\n"),
        ({"created": "2026-01-01"}, "# flow\n", "# flow\ncreated: '2026-01-01'\n"),
        ({"links": [{"to": "two"}]}, "- to: one\n  relation: relates\n", ""),
        (
            {"links": [{"to": "one", "relation": "relates"}, {"to": "two"}, {"to": "three"}]},
            "# keep\n",
            "# keep\n- to: three\n",
        ),
        ({"metadata": None}, BEFORE[BEFORE.index("metadata:") : BEFORE.index("# the end")], ""),
    ],
)  # fmt: skip
def test_one_field_changes_and_nothing_else(changes: dict[str, Any], old: str, new: str) -> None:
    """Comments, order, blank lines and the quoting of other fields survive."""
    assert change(BEFORE, **changes) == swap(old, new)


def test_nested_keys_change_at_any_depth() -> None:
    """A list deep inside metadata gains a part and keeps its comments; ``1.10`` and ``no`` stay as typed."""
    metadata = {"zeta": 1.1, "alpha": "no", "deep": {"list": ["a", "x", "b"]}, "new": {"k": [1]}}

    after = change(BEFORE, metadata=metadata)

    assert after == swap("    - b\n", "    - x\n    - b\n  new:\n    k:\n    - 1\n")


def test_no_change_gives_the_same_bytes() -> None:
    """An item that did not change writes the very file that is there."""
    assert change(BEFORE) == BEFORE


def test_crlf_and_byte_order_mark_survive() -> None:
    """A file from a Windows editor keeps its form, new lines included."""
    before = "\ufeff" + BEFORE.replace("\n", "\r\n")

    after = change(before, title="New", content="A\nB\n", importance=2)

    assert after.startswith("\ufeff# yaml")
    assert "\n" not in after.replace("\r\n", "")
    assert "content: |\r\n  A\r\n  B\r\n" in after


@pytest.mark.parametrize(
    ("before", "changes", "after"),
    [
        ("content: x", {"importance": 2}, "content: x\nimportance: 2\n"),
        ("content: |\n  x", {"importance": 2}, "content: |-\n  x\nimportance: 2\n"),
        ("content: |\n  x", {"content": "new"}, "content: new\n"),
        ("# top\ncontent: x\n", {"title": "T"}, "# top\ntitle: T\ncontent: x\n"),
        ("a: 1\n\n# of content\ncontent: x\n", {"title": "T", "a": None}, "title: T\n\n# of content\ncontent: x\n"),
        ("content:\n  x\n", {"content": "new"}, "content: new\n"),
        ("content: x\ntitle:  # none\n", {"title": "T"}, "content: x\ntitle: T  # none\n"),
        ("title: x\ncontext: {a: 1}\n", {"context": {"a": 1, "b": "c: d"}}, "title: x\ncontext: {a: 1, b: 'c: d'}\n"),
        ("content: x\ntags:\n  - a\n  - b\n", {"tags": ["b", "c"]}, "content: x\ntags:\n  - b\n  - c\n"),
        ("content: x\ntags:  # t\n- a\n", {"tags": []}, "content: x\ntags: []  # t\n"),
        ("---\ncontent: x\n...\n", {"title": "T"}, "---\ntitle: T\ncontent: x\n...\n"),
        ("  content: x\n  trust: human\n", {"title": "T"}, "  title: T\n  content: x\n  trust: human\n"),
        ("content: >-\n  x\n  y\n# c\ntrust: human\n", {"content": "z"}, "content: z\n# c\ntrust: human\n"),
        ('content: "x\n\n  y"  # c\n', {"content": "z"}, "content: z  # c\n"),
        ("content: x\nmetadata:\n  a: 1\n", {"metadata": {}}, "content: x\nmetadata: {}\n"),
        ("content: x\ntitle: |+\n  t\n\n\ntrust: human\n", {"title": None}, "content: x\ntrust: human\n"),
    ],
)  # fmt: skip
def test_unusual_layouts(before: str, changes: dict[str, Any], after: str) -> None:
    """Missing last newline, comments at the top, flow, indentation of another style, folded text."""
    assert change(before, **changes) == after


@pytest.mark.parametrize(
    "before", ["{content: x, trust: human}\n", "? content\n: x\n", "content: x\n? trust\n: human\n"]
)
def test_what_cannot_be_spliced_is_rewritten_and_says_so(before: str) -> None:
    """Layouts in which no field has lines of its own are written whole; the heading stays."""
    parsed = parse(b"# heading\n" + before.encode(), "x.yaml")

    encoded = render({"title": "T", "content": "x"}, "x.yaml", parsed, item_fields.ORDER)

    assert encoded.rewritten
    assert encoded.data == b"# heading\ntitle: T\ncontent: x\n"


def test_json_keeps_key_order_and_indentation() -> None:
    """JSON has no comments to lose; its order and indentation stay."""
    parsed = parse(b'{\n\t"zeta": 1,\n\t"alpha": [1]\n}\n', "x.json")

    encoded = render({"zeta": 2, "alpha": [1], "new": "x"}, "x.json", parsed, {})

    assert not encoded.rewritten
    assert encoded.data == b'{\n\t"zeta": 2,\n\t"alpha": [\n\t\t1\n\t],\n\t"new": "x"\n}\n'

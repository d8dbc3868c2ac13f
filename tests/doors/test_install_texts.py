"""memfs's hooks go into the text of a settings file, and out of it, and leave everybody else's settings alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memfs.doors.claude_code import installer, settings_file
from memfs.errors import Conflict, ContentError, DuplicateKey, ItemSyntaxError

GROUPS = installer.handler_groups("memfs")
ELSEWHERE = installer.handler_groups("/opt/py/bin/python", ("-P", "-m", "memfs"))
THEIRS = {"type": "command", "command": "npm run lint -- --quiet", "timeout": 30}


# -- random files ---------------------------------------------------------------------------------------------------
keys = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), min_size=1, max_size=8)
leaves = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=12) | st.just(0.5)
values = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3))
foreign_handlers = st.sampled_from(
    [
        THEIRS,
        {"type": "command", "command": "memfs status"},
        {"type": "command", "command": "jq", "args": ["hook", "Stop"]},
        {"type": "prompt", "prompt": 'Is this “safe”? \\ "quoted"'},
    ]
)
foreign_groups = st.builds(
    lambda matcher, listed: {**({} if matcher is None else {"matcher": matcher}), "hooks": listed},
    st.sampled_from([None, "", "*", "Bash", "Edit|Write"]),
    st.lists(foreign_handlers, max_size=2),
)
events = st.sampled_from([*GROUPS, "Notification", "FileChanged"])
foreign_hooks = st.dictionaries(events, st.lists(foreign_groups, max_size=2), max_size=4)


@st.composite
def written(draw: st.DrawFn) -> str:
    """A settings file of somebody's, as some editor or program wrote it."""
    said = draw(st.dictionaries(keys.filter(lambda key: key != "hooks"), values, max_size=3))
    if draw(st.booleans()):
        said["hooks"] = draw(foreign_hooks)
    said = dict(draw(st.permutations(list(said.items()))))
    newline = draw(st.sampled_from(["\n", "\n", "\r\n"]))
    indent = draw(st.sampled_from([None, 1, 2, 4, "\t", "wild"]))
    if indent == "wild":
        blanks = st.sampled_from(["", "", " ", newline, f"{newline}   ", "\t"])
        text = _wild(draw, blanks, said)
    else:
        text = json.dumps(said, indent=indent, ensure_ascii=draw(st.booleans())).replace("\n", newline)
    return draw(st.sampled_from(["", newline])) + text + draw(st.sampled_from(["", newline, newline * 2]))


def _wild(draw: st.DrawFn, blanks: st.SearchStrategy[str], value: Any) -> str:
    if not isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=False)
    parts = []
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        name = f"{json.dumps(key)}{draw(blanks)}:{draw(blanks)}" if isinstance(value, dict) else ""
        parts.append(draw(blanks) + name + _wild(draw, blanks, inner) + draw(blanks))
    inside = ",".join(parts) or draw(blanks)
    return f"{{{inside}}}" if isinstance(value, dict) else f"[{inside}]"


def handlers_in(text: str) -> list[tuple[str, dict[str, Any]]]:
    """memfs's handlers in a settings file, each with its event."""
    return [
        (event, handler)
        for event, groups in json.loads(text).get("hooks", {}).items()
        for group in groups
        for handler in group["hooks"]
        if installer.is_ours(handler)
    ]


def stays(text: str) -> bool:
    """Whether a file says something, and nothing about the events that memfs's hooks are for."""
    said = json.loads(text)
    return bool(said) and ("hooks" not in said or (bool(said["hooks"]) and not said["hooks"].keys() & GROUPS.keys()))


def said(text: str) -> dict[str, Any]:
    """All that a file says, without what is empty where memfs's hooks were."""
    found: dict[str, Any] = json.loads(text)
    hooks = {event: groups for event, groups in found.pop("hooks", {}).items() if groups or event not in GROUPS}
    return {**found, **({"hooks": hooks} if hooks else {})}


# -- in and out -----------------------------------------------------------------------------------------------------
@settings(max_examples=25)
@given(written())
def test_what_install_puts_in_uninstall_takes_out(text: str) -> None:
    """C6: whatever the file says and however it is formatted, it says the same again; twice installed is once."""
    after = installer.with_hooks(text, GROUPS)
    assert dict(handlers_in(after)) == {event: group["hooks"][0] for event, group in GROUPS.items()}
    assert installer.with_hooks(after, GROUPS) == after
    assert said(installer.without_hooks(after) or "{}") == said(text)


@settings(max_examples=25)
@given(written().filter(stays))
def test_what_memfs_does_not_join_stays_to_the_byte(text: str) -> None:
    """C6: other keys and other events are as they were, however they are formatted."""
    assert installer.without_hooks(installer.with_hooks(text, GROUPS)) == text


@pytest.mark.parametrize("indent", [2, 4, "\t"])
def test_a_list_that_memfs_joins_is_written_as_programs_write_it(indent: int | str) -> None:
    """C6: groups of others beside memfs's stand again as a program with this indent wrote them."""
    theirs = {"hooks": [THEIRS]}
    text = json.dumps({"model": "opus", "hooks": {"Stop": [theirs], "Notification": [theirs]}}, indent=indent) + "\n"
    assert installer.without_hooks(installer.with_hooks(text, GROUPS)) == text


@settings(max_examples=25)
@given(written())
def test_another_place_of_memfs_is_written_over_the_old(text: str) -> None:
    """C6: installed again from elsewhere, each handler is renewed where it stands; uninstall is as exact."""
    after = installer.with_hooks(installer.with_hooks(text, GROUPS), ELSEWHERE)
    assert [one["command"] for _, one in handlers_in(after)] == ["/opt/py/bin/python"] * len(GROUPS)
    assert said(installer.without_hooks(after) or "{}") == said(text)


@settings(max_examples=25)
@given(written(), st.sampled_from([*GROUPS, "Notification"]), st.booleans())
def test_an_edit_in_between_is_kept(text: str, event: str, first: bool) -> None:
    """C6: keys, groups and values that somebody adds after install are there after uninstall, and nothing else."""
    edited = installer.with_hooks(text, GROUPS)
    before = json.loads(text)
    kept = {**before, "model": "opus"}
    edited = settings_file.put(edited, ("model",), "opus")
    if first and next(iter(before), "hooks") != "hooks":
        key = next(iter(before))
        edited = settings_file.put(edited, (key,), "changed")
        kept[key] = "changed"
    theirs = {"hooks": [THEIRS]}
    there = json.loads(edited)["hooks"].get(event)
    edited = settings_file.put(edited, ("hooks", event), [*(there or []), theirs])
    left = installer.without_hooks(edited)
    assert left is not None
    hooks = {**before.get("hooks", {})}
    hooks[event] = [*hooks.get(event, []), theirs]
    assert said(left) == said(json.dumps({**kept, "hooks": hooks}))


@pytest.mark.parametrize("text", ["{}", "{\n}\n", "", "\n", '{"hooks":{}}', '{"hooks":{"Stop":[]}}'])
def test_a_file_that_says_nothing_else_goes(text: str) -> None:
    """C6: what holds nothing once memfs is out is taken away; without memfs in it, it is left alone."""
    assert installer.without_hooks(installer.with_hooks(text, GROUPS)) is None
    assert installer.without_hooks(text) == text


def test_a_file_that_was_made_for_the_hooks_goes() -> None:
    """C6: what install made is gone, even after a program wrote the file anew in its own manner."""
    made = installer.with_hooks(None, GROUPS)
    assert json.loads(made) == {"hooks": {event: [group] for event, group in GROUPS.items()}}
    assert made.endswith("}\n")
    assert installer.without_hooks(made) is None
    assert installer.without_hooks(json.dumps(json.loads(made), indent=2)) is None
    assert installer.without_hooks(None) is None


def test_the_manner_of_the_file_is_kept() -> None:
    """C6: what is put in is indented and ended as the lines around it."""
    after = installer.with_hooks('{\r\n\t"a": 1\r\n}\r\n', GROUPS)
    assert after.startswith('{\r\n\t"a": 1,\r\n\t"hooks": {\r\n\t\t"SessionStart": [\r\n\t\t\t{\r\n')
    assert "\n" not in after.replace("\r\n", "")


def test_a_handler_of_ours_among_theirs_goes_alone() -> None:
    """C6: somebody who put his own handler into our group keeps his; one whose group is narrower keeps its place."""
    text = json.dumps({"hooks": {"Stop": [{"hooks": [THEIRS, GROUPS["Stop"]["hooks"][0]]}]}}, indent=2)
    after = installer.with_hooks(text, GROUPS)
    assert [event for event, _ in handlers_in(after)].count("Stop") == 1
    assert json.loads(installer.without_hooks(after) or "") == {"hooks": {"Stop": [{"hooks": [THEIRS]}]}}


def test_what_an_older_version_listened_to_is_put_right() -> None:
    """C6: another matcher, a retired event, a handler that stands twice: each is put right in its place."""
    ours = GROUPS["PreToolUse"]["hooks"][0]
    old = {
        "PreToolUse": [{"matcher": "Bash", "hooks": [ours]}, {"matcher": "Read", "hooks": [THEIRS]}],
        "Notification": [{"hooks": [{**ours, "args": ["hook", "Notification"]}]}],
        "Stop": [GROUPS["Stop"], GROUPS["Stop"]],
    }
    after = json.loads(installer.with_hooks(json.dumps({"hooks": old}, indent=2), GROUPS))
    assert after["hooks"]["PreToolUse"] == [GROUPS["PreToolUse"], {"matcher": "Read", "hooks": [THEIRS]}]
    assert after["hooks"]["Stop"] == [GROUPS["Stop"]]
    assert "Notification" not in after["hooks"]


def test_hooks_that_call_memfs_by_hand_are_not_ours() -> None:
    """C6: what somebody wrote himself stays."""
    by_hand = {"type": "command", "command": "/usr/bin/memfs hook Stop || true"}
    text = json.dumps({"hooks": {"Stop": [{"hooks": [by_hand]}]}}, indent=2)
    assert handlers_in(text) == []
    assert installer.without_hooks(installer.with_hooks(text, GROUPS)) == text


@pytest.mark.parametrize(
    ("text", "error", "line"),
    [
        ('{\n  // mine\n  "a": 1\n}', ItemSyntaxError, 2),
        ('{\n  "a": 1,\n}', ItemSyntaxError, 3),
        ('{"a": 1,\n "a": 2}', DuplicateKey, 2),
        ("[]", ContentError, 1),
        ('{\n "hooks": []}', ContentError, 2),
        ('{"hooks": {\n "Stop": {}}}', ContentError, 2),
        ('{"hooks": null}', ContentError, 1),
        ("\xa0", ContentError, 1),
    ],
)
def test_what_is_no_settings_file_is_refused(text: str, error: type[ContentError], line: int) -> None:
    """C6: comments, commas too many and wrong shapes are refused with their line; nothing is guessed."""
    for change in (lambda: installer.with_hooks(text, GROUPS), lambda: installer.without_hooks(text)):
        with pytest.raises(error) as refused:
            change()
        assert refused.value.line == line
        assert refused.value.hint


# -- the server -----------------------------------------------------------------------------------------------------
@settings(max_examples=25)
@given(written().filter(lambda text: "mcpServers" not in text and json.loads(text)), st.booleans())
def test_the_server_goes_in_and_out_to_the_byte(text: str, others: bool) -> None:
    """C6: so it is with the server in .mcp.json, beside servers of others and alone."""
    if others:
        text = settings_file.put(text, ("mcpServers",), {"github": {"type": "http", "url": "https://mcp.example.org"}})
    wanted = installer.server_entry("memfs")
    after = installer.with_server(text, wanted)
    assert json.loads(after)["mcpServers"]["memfs"] == {"command": "memfs", "args": ["mcp"]}
    assert installer.with_server(after, wanted) == after
    assert installer.without_server(after) == text
    assert installer.without_server(installer.with_server(after, installer.server_entry("/x/memfs"))) == text


def test_a_server_of_somebody_elses_is_left_alone() -> None:
    """C6: a server that only has the same name is neither overwritten nor removed."""
    text = '{\n  "mcpServers": {\n    "memfs": {"command": "other"}\n  }\n}\n'
    with pytest.raises(Conflict) as refused:
        installer.with_server(text, installer.server_entry("memfs"))
    assert refused.value.line == 3
    assert installer.without_server(text) == text
    assert installer.without_server(installer.with_server(None, installer.server_entry("memfs"))) is None

"""memfs's hooks go into settings, and out of them, and leave everybody else's settings alone."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memfs.doors.claude_code import installer
from memfs.errors import ContentError

GROUPS = installer.handler_groups("memfs")
ELSEWHERE = installer.handler_groups("/opt/py/bin/python", ("-P", "-m", "memfs"))
THEIRS = {"type": "command", "command": "npm run lint -- --quiet", "timeout": 30}


# -- random settings ------------------------------------------------------------------------------------------------
keys = st.text(min_size=1, max_size=8)
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
foreign_hooks = st.dictionaries(events, st.lists(foreign_groups, min_size=1, max_size=2), max_size=4)


@st.composite
def written(draw: st.DrawFn) -> dict[str, Any]:
    """Somebody's settings."""
    settings = draw(st.dictionaries(keys.filter(lambda key: key != "hooks"), values, max_size=3))
    if hooks := draw(foreign_hooks):
        settings["hooks"] = hooks
    return dict(draw(st.permutations(list(settings.items()))))


def handlers_in(settings: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """memfs's handlers in settings, each with its event."""
    return [
        (event, handler)
        for event, groups in settings.get("hooks", {}).items()
        for group in groups
        for handler in group["hooks"]
        if installer.is_ours(handler)
    ]


# -- in and out -----------------------------------------------------------------------------------------------------
@settings(max_examples=50)
@given(written())
def test_what_install_puts_in_uninstall_takes_out(settings: dict[str, Any]) -> None:
    """C6: whatever they say, they say the same again, in the same order; twice installed is once."""
    before = copy.deepcopy(settings)
    after = installer.with_hooks(settings, GROUPS)
    assert dict(handlers_in(after)) == {event: group["hooks"][0] for event, group in GROUPS.items()}
    assert installer.with_hooks(after, GROUPS) == after
    assert json.dumps(installer.with_hooks(after, {})) == json.dumps(before)
    assert settings == before


@settings(max_examples=25)
@given(written())
def test_another_place_of_memfs_is_written_over_the_old(settings: dict[str, Any]) -> None:
    """C6: installed again from elsewhere, each handler is renewed in its place; uninstall is as exact."""
    after = installer.with_hooks(installer.with_hooks(settings, GROUPS), ELSEWHERE)
    assert [one["command"] for _, one in handlers_in(after)] == ["/opt/py/bin/python"] * len(GROUPS)
    assert installer.with_hooks(after, {}) == settings


@settings(max_examples=25)
@given(written(), st.sampled_from([*GROUPS, "Notification"]))
def test_an_edit_in_between_is_kept(settings: dict[str, Any], event: str) -> None:
    """C6: keys and groups that somebody adds after install are there after uninstall, and nothing else."""
    edited = {**installer.with_hooks(settings, GROUPS), "model": "opus"}
    theirs = {"hooks": [THEIRS]}
    edited["hooks"] = {**edited["hooks"], event: [*edited["hooks"].get(event, []), theirs]}
    hooks = {**settings.get("hooks", {})}
    hooks[event] = [*hooks.get(event, []), theirs]
    assert installer.with_hooks(edited, {}) == {**settings, "model": "opus", "hooks": hooks}


@pytest.mark.parametrize("settings", [{}, {"hooks": {}}, {"hooks": {"Stop": []}}])
def test_settings_that_say_nothing_else_are_empty(settings: dict[str, Any]) -> None:
    """C6: what holds nothing once memfs is out is taken away; without memfs in it, it is left alone."""
    assert installer.with_hooks(installer.with_hooks(settings, GROUPS), {}) == {}
    assert installer.with_hooks(settings, {}) == settings


def test_a_handler_of_ours_among_theirs_goes_alone() -> None:
    """C6: somebody who put his own handler into our group keeps his; one whose group is narrower keeps its place."""
    mixed = {"hooks": {"Stop": [{"hooks": [THEIRS, GROUPS["Stop"]["hooks"][0]]}]}}
    after = installer.with_hooks(mixed, GROUPS)
    assert [event for event, _ in handlers_in(after)].count("Stop") == 1
    assert installer.with_hooks(after, {}) == {"hooks": {"Stop": [{"hooks": [THEIRS]}]}}


def test_what_an_older_version_listened_to_is_put_right() -> None:
    """C6: another matcher, a retired event, a handler that is there twice: each is put right in its place."""
    ours = GROUPS["PreToolUse"]["hooks"][0]
    old = {
        "PreToolUse": [{"matcher": "Bash", "hooks": [ours]}, {"matcher": "Read", "hooks": [THEIRS]}],
        "Notification": [{"hooks": [{**ours, "args": ["hook", "Notification"]}]}],
        "Stop": [GROUPS["Stop"], GROUPS["Stop"]],
    }
    after = installer.with_hooks({"hooks": old}, GROUPS)
    assert after["hooks"]["PreToolUse"] == [GROUPS["PreToolUse"], {"matcher": "Read", "hooks": [THEIRS]}]
    assert after["hooks"]["Stop"] == [GROUPS["Stop"]]
    assert "Notification" not in after["hooks"]


@pytest.mark.parametrize("hooks", [[], None, {"Stop": {}}])
def test_what_is_not_settings_is_refused(hooks: object) -> None:
    """C6: wrong shapes are refused with their field; nothing is guessed."""
    for wanted in (GROUPS, {}):
        with pytest.raises(ContentError) as refused:
            installer.with_hooks({"hooks": hooks}, wanted)
        assert refused.value.field in ("hooks", "hooks.Stop")
        assert refused.value.hint

"""Episodes as items: recorded, read, found again (P4)."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memfs import Workspace
from memfs.errors import IdExists, SchemaInvalid
from memfs.format.text import findings
from memfs.intake.episode_item import MOST_ERROR, clean_text, episode_of, item_of
from memfs.model import MemoryItem, Origin, Query
from memfs.model.episode import Action, Episode, Outcome, StateSnapshot

OPENED = Callable[..., Workspace]
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
STATE = StateSnapshot.create(
    ["src/auth.py", "tests/test_auth.py"],
    "Let people stay logged in for a week",
    tool="edit",
    agent="coder",
    session="s1",
    task="Task/7",
    circumstances={"branch": "main", "attempt": 2, "nested": {"python": [3, 11]}},
)
ACTION = Action("edit", "Set the lifetime to seven days")


def episode(outcome: str = "failure", error: str = "test_expiry failed", **more: Any) -> Episode:
    """What happened at noon."""
    return Episode.create(STATE, ACTION, outcome, error, timestamp=NOON, **more)


def test_p4_an_episode_comes_back_as_it_was_recorded(opened: OPENED) -> None:
    """State, action, outcome, error, time and warnings are in the file, and read from it again (P4)."""
    workspace = opened()
    episodes = workspace.sources.episodes
    recorded = episodes.record(episode(warned=["some-rule"]))
    assert recorded.id
    again = episodes.read(recorded.id)
    assert again == recorded
    assert (again.state, again.action, again.outcome) == (STATE, ACTION, Outcome.FAILURE)
    assert (again.error_message, again.timestamp, again.warned) == ("test_expiry failed", NOON, ("some-rule",))
    assert again.state.circumstances == STATE.circumstances
    assert (episodes.count(), episodes.read("nothing")) == (1, None)


def test_p4_its_file_is_pleasant_to_read_and_its_content_is_found(opened: OPENED) -> None:
    """A person reads what happened in a sentence, and recall finds it by file, deed and error (P4)."""
    workspace = opened()
    recorded = workspace.sources.episodes.record(episode())
    item = workspace.store.get(recorded.id)
    assert item is not None
    assert item.title == "Set the lifetime to seven days (failed)"
    assert item.content == (
        "Set the lifetime to seven days (edit, src/auth.py, tests/test_auth.py): failed.\n"
        "It was about: Let people stay logged in for a week\nError: test_expiry failed"
    )
    assert item.origin == Origin(agent="coder", session="s1", task="Task/7", tool="edit")
    assert (item.trust, item.type, item.timestamp) == ("agent", "episodic", NOON)
    for words in ("auth.py", "lifetime seven days", "test_expiry"):
        assert [hit.item.id for hit in workspace.recaller.search(Query(text=words)).hits] == [recorded.id]
    text = (workspace.root / item.path).read_text()
    assert "  outcome: failure\n" in text
    assert "- src/auth.py\n" in text
    recalled = episode_of(item)
    assert recalled is not None
    assert recalled.outcome is Outcome.FAILURE


def test_recording_says_so(opened: OPENED) -> None:
    """Both occasions are raised, so that patterns and rules learn from it (P4)."""
    workspace = opened()
    events: list[str] = []
    for occasion in ("memory_stored", "episode_recorded"):
        workspace.behaviours.on(occasion, lambda facts, name=occasion: events.append(f"{name} {facts['item'].id}"))
    recorded = workspace.sources.episodes.record(episode("success", ""))
    assert events == [f"memory_stored {recorded.id}", f"episode_recorded {recorded.id}"]


def test_p3_similar_ones_come_most_similar_first(opened: OPENED) -> None:
    """``find_similar`` answers as the seed's store does, with whole episodes (P3)."""
    episodes = opened().sources.episodes
    other = StateSnapshot.create(["src/auth.py"], "Rename a helper", tool="edit")
    first = episodes.record(Episode.create(other, Action("edit", "Rename it"), "failure", "imports broke"))
    again = episodes.record(Episode.create(STATE, ACTION, "failure", "test_expiry failed"))
    assert [one.id for one in episodes.find_similar(STATE)] == [again.id, first.id]
    assert [one.error_message for one in episodes.find_similar(STATE, limit=1)] == ["test_expiry failed"]
    assert episodes.find_similar(StateSnapshot.create(["README.md"], "Add a badge")) == []
    assert [one.id for one in episodes.find_similar(STATE, threshold=0.99)] == [again.id]


# -- what comes from outside --------------------------------------------------------------------------------------
@pytest.mark.durable
def test_faults_19_a_secret_in_an_error_is_replaced_and_is_nowhere(opened: OPENED, tmp_path: Path) -> None:
    """The episode is kept, the token is not: neither in files, git, journal nor cache (faults row 19)."""
    workspace = opened(history__commit="each", index__engine="sqlite")
    state = StateSnapshot.create(
        [f"src/{TOKEN}.py"],
        f"Push with {TOKEN}",
        tool="bash",
        agent=TOKEN,
        circumstances={"password": "Tr0ub4dor-3xKq9Zp", "GITHUB_TOKEN": TOKEN, TOKEN: 1, "deep": {"list": [TOKEN]}},
    )
    trace = f"fatal: could not read from https://ada:{TOKEN}@github.com/a/b\n" * 3
    recorded = workspace.sources.episodes.record(
        Episode.create(state, Action("bash", f"git push {TOKEN}"), "failure", trace)
    )
    assert "[redacted" in recorded.error_message
    assert "could not read from" in recorded.error_message
    workspace.store.flush()
    workspace.sources.triggers.count()
    workspace.close()
    objects = subprocess.run(
        ["git", "-C", str(tmp_path / "workspace"), "cat-file", "--batch-all-objects", "--batch"],
        check=True,
        capture_output=True,
    ).stdout
    everywhere = [path for path in tmp_path.rglob("*") if path.is_file()]
    everywhere += [path for path in Path(workspace.parts.index.folder).rglob("*") if path.is_file()]
    assert len(objects) > 1_000
    for data in (objects, *(path.read_bytes() for path in everywhere)):
        assert TOKEN.encode() not in data
        assert b"3xKq9Zp" not in data


def test_a_token_longer_than_any_is_replaced_whole() -> None:
    """What follows on a secret within its word goes with it (faults row 19)."""
    assert (
        clean_text(f"refused: ghp_{'a1B2c3D4e5' * 60} by the server")
        == "refused: [redacted: github-token] by the server"
    )


def test_a_key_that_is_cut_leaves_no_half_behind() -> None:
    """What is left out of a long error is looked through first, so that no part of a key is left at an edge."""
    key = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEpAIBAAKCAQEA7b9Xq2kLm0\n" * 60 + "-----END RSA PRIVATE KEY-----\n"
    text = clean_text("begin\n" + "x " * 600 + key + "y " * 600 + "\nend", MOST_ERROR)
    assert "7b9Xq2kLm0" not in text
    assert text.startswith("begin")
    assert text.endswith("end")


@pytest.mark.parametrize("length", [5_000, 300_000])
def test_long_errors_keep_head_and_tail(length: int) -> None:
    """Where it began and how it ended is kept, and how much is left out is said."""
    text = clean_text("Traceback begins\n" + "  line\n" * (length // 7) + "ValueError: the end", MOST_ERROR)
    assert len(text) <= MOST_ERROR
    assert text.startswith("Traceback begins")
    assert text.endswith("ValueError: the end")
    assert "characters left out" in text


def test_colours_and_hidden_characters_do_not_keep_an_episode_out(opened: OPENED) -> None:
    """Terminal colours go; NUL, lone surrogates, direction marks and tags are written as escapes (faults row 17)."""
    nasty = "\x1b[31mred\x1b[0m \x00 \ud800 \u202eevil\u202c \U000e0041 a\r\nb\x07 \u200b\x85"
    state = StateSnapshot.create([f"src/{nasty}.py"], nasty, agent=nasty, circumstances={nasty: nasty, "x": object()})
    recorded = opened().sources.episodes.record(Episode.create(state, Action(nasty, nasty), "failure", nasty))
    assert recorded.error_message.startswith("red \\u{0}")
    assert "\x1b" not in recorded.error_message
    assert "a\nb" in recorded.error_message
    assert not list(findings(recorded.error_message))


def test_a_deed_of_nothing_that_can_be_shown_is_an_episode_all_the_same(opened: OPENED) -> None:
    """Where cleaning leaves nothing of the action, that it failed is still worth knowing; strange ids are dropped."""
    nothing = Episode.create(STATE, Action("", "\x1b[31m"), "failure", "x", warned=["a b\n", "", "good-id", TOKEN])
    recorded = opened().sources.episodes.record(nothing)
    assert recorded.action.description == "something that cannot be shown"
    assert recorded.warned == ("good-id",)


@pytest.mark.parametrize(
    "circumstances",
    [
        {str(number): "y" * 5_000 for number in range(2_000)},
        {"a": {"b": {"c": {"d": {"e": 1}}}}},
        {"number": float("inf"), "nan": float("nan"), "big": 10**400},
        {"when": NOON, "set": {1}, "bytes": b"x", "none": None},
    ],
)
def test_strange_circumstances_are_kept_as_far_as_a_file_can_hold_them(
    opened: OPENED, circumstances: dict[str, Any]
) -> None:
    """Too many, too deep, or of no sort that a file knows: they are cut or given as text, and refuse nothing."""
    state = StateSnapshot.create(["a.py"], "x", circumstances=circumstances)
    recorded = opened().sources.episodes.record(Episode.create(state, ACTION, "failure", "e"))
    assert recorded.state.circumstances
    assert len(str(recorded.state.circumstances)) < 40_000


def test_many_long_files_and_words_are_bounded(opened: OPENED) -> None:
    """A thousand files of a thousand characters make an item that is still small."""
    workspace = opened()
    state = StateSnapshot.create([f"{'d/' * 500}{number}.py" for number in range(1_000)], "word " * 100_000)
    recorded = workspace.sources.episodes.record(Episode.create(state, ACTION, "partial", "e" * 1_000_000))
    item = workspace.store.get(recorded.id)
    assert item is not None
    assert (workspace.root / item.path).stat().st_size < 60_000
    assert workspace.sources.episodes.find_similar(state, threshold=0.5)


def test_an_id_that_is_given_is_taken_once(opened: OPENED) -> None:
    """Recording the same once more is refused rather than doubled."""
    from dataclasses import replace

    episodes = opened().sources.episodes
    named = replace(episode(), id="hook-event-17")
    assert episodes.record(named).id == "hook-event-17"
    with pytest.raises(IdExists):
        episodes.record(named)


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"outcome": "recovered", "minutes": 130},
        {"outcome": "failure"},
        {"outcome": "failure", "action": {}},
        {"outcome": ["failure"], "action": "x"},
        {"outcome": "success", "action": 7},
        {"action": {"tool": "edit"}},
    ],
)
def test_other_events_are_not_episodes(opened: OPENED, data: dict[str, Any]) -> None:
    """An event of any other shape stays valid, and warns nobody."""
    workspace = opened()
    stored = workspace.store.put(MemoryItem("Lunch", "episodic", data=data))
    assert episode_of(stored) is None
    assert workspace.sources.episodes.count() == 0
    assert episode_of(MemoryItem("x", "semantic", data={"outcome": "failure", "action": "y"})) is None


def test_a_hand_written_event_is_an_episode_when_it_says_enough(opened: OPENED) -> None:
    """An outcome and an action in a sentence are enough; everything else is optional."""
    workspace = opened()
    item = MemoryItem(
        "It broke",
        "episodic",
        data={"outcome": "failure", "action": "Edit the config", "files": "config.toml", "error": 5, "warned": None},
    )
    workspace.store.put(item)
    (found,) = workspace.sources.episodes.find_similar(StateSnapshot.create(["config.toml"], "Whatever"))
    assert (found.action, found.state.files, found.error_message) == (
        Action("", "Edit the config"),
        ("config.toml",),
        "",
    )


def test_a_success_says_what_went_well() -> None:
    """Title and content of a success and of a part of one read as sentences."""
    good = item_of(Episode.create(StateSnapshot(), Action("pytest"), "success"))
    assert (good.title, good.content) == ("pytest (went well)", "pytest: went well.")
    part = item_of(Episode.create(StateSnapshot.create(["a.py"]), Action("", "Sort imports"), "partial"))
    assert part.content == "Sort imports (a.py): worked in part."
    with pytest.raises(SchemaInvalid):
        Episode.create(StateSnapshot(), Action("", " "), "success")

"""Where state documents are, and what a path says (S2, S12)."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memfs.fs.workspace_location import is_own
from memfs.model import state_paths as paths

MOMENT = datetime(2026, 3, 1, 10, 0, 0, 250, tzinfo=UTC)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200)


@given(NAMES)
@example("../../etc/passwd")
@example(".git")
@example("con")
@example("a.2")
@example("x.json")
@example("ends.")
@example("Évolution/Agent: 7\n")
@example("%2E%-")
@example("a" * 500)
def test_any_name_is_one_safe_file_name_and_comes_back(name: str) -> None:
    """Names of agents, tasks and hypotheses are free text; in file names they are encoded reversibly (S2)."""
    encoded = paths.encode_name(name)

    assert is_own(f"ContextMemory/{encoded}.json")
    assert not {"/", " ", "\\"} & set(encoded)
    assert "." not in (encoded[0], encoded[-1])
    assert (encoded.isascii(), encoded.isprintable(), len(encoded) <= 200) == (True, True, True)
    if len(name.encode()) <= 60:
        assert paths.decode_name(encoded) == name


@given(st.lists(NAMES, min_size=2, max_size=2, unique=True))
def test_two_names_never_share_a_file(names: list[str]) -> None:
    """What differs stays apart, long names included (S2)."""
    one, other = names
    long = "agent " * 40

    assert paths.encode_name(one) != paths.encode_name(other)
    assert paths.encode_name(long + one) != paths.encode_name(long + other)


def test_a_text_passed_for_a_name_costs_no_time() -> None:
    """What no document can hold has a path of its own all the same, worked out from its beginning (S2)."""
    long = "x" * 3_000_000
    began = time.process_time()
    names = {paths.encode_name(long + end) for end in "ab."}
    assert time.process_time() - began < 5
    assert len(names) == 3
    assert all(len(name) <= 200 for name in names)


def test_an_invalid_name_is_refused() -> None:
    """An empty name, and text that is not Unicode, have no file."""
    for name in ("", "\ud800"):
        with pytest.raises(ValueError, match=r"empty|surrogates"):
            paths.encode_name(name)


def test_the_tree_is_that_of_the_seed() -> None:
    """The seed's folders and files are written as such (S12)."""
    top = "ContextMemory/iterations/iteration_001"

    assert paths.iteration_folder(1) == top
    assert paths.iteration_folder(1234) == "ContextMemory/iterations/iteration_1234"
    assert paths.system_state_path(1) == f"{top}/system_state.json"
    assert paths.meta_review_path(1) == f"{top}/meta_review.json"
    assert paths.update_path(1, MOMENT, 2) == f"{top}/state_updates/20260301T100000.000250Z.2.json"
    assert paths.output_path(1, "Evolution Agent", "Task/7") == f"{top}/agent_outputs/Evolution%20Agent/Task%2F7.json"
    assert paths.aggregate_path("pattern_history") == "ContextMemory/aggregates/pattern_history.json"
    assert paths.payload_path("ckpt_20240115_1430") == "ContextMemory/checkpoints/ckpt_20240115_1430/state.tar.zst"


def test_updates_sort_by_time_in_any_zone() -> None:
    """A file's name is the moment in UTC."""
    later = (MOMENT + timedelta(microseconds=1)).astimezone(timezone(timedelta(hours=-5)))

    assert paths.update_path(1, MOMENT) < paths.update_path(1, later)
    assert paths.stamp_of(datetime(1, 1, 1, tzinfo=UTC)) == "00010101T000000.000000Z"


@pytest.mark.parametrize("number", [-1, True, 10**12, "1", None])
def test_an_invalid_iteration_number_has_no_folder(number: object) -> None:
    """The error names what was given."""
    with pytest.raises(ValueError, match="not the number of an iteration"):
        paths.iteration_folder(number)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (paths.system_state_path(7), "system_state"),
        (paths.update_path(7, MOMENT), "state_update"),
        (paths.output_path(7, "..", ".json", 3), "agent_output"),
        (paths.hypothesis_path(7, "H/1"), "hypothesis"),
        (paths.tournament_path(7, "m"), "tournament_result"),
        (paths.meta_review_path(7), "meta_review"),
        (paths.token_path(7, "t"), "continuation"),
        (paths.feedback_path(7, "Ranking Agent"), "feedback"),
        (paths.conflict_path(7, paths.hypothesis_path(7, "H/1"), MOMENT), "conflict"),
        (paths.manifest_path("ckpt_1"), "checkpoint"),
        (paths.aggregate_path("research_progress"), "aggregate"),
    ],
)
def test_a_path_says_which_document_it_names(path: str, kind: str) -> None:
    """Every path that is made is known again, with its iteration."""
    inside = kind not in ("checkpoint", "aggregate")

    assert paths.document_kind(path) == kind
    assert paths.iteration_of(path) == (7 if inside else None)


@pytest.mark.parametrize(
    "path",
    [
        "ContextMemory/iterations/iteration_1/system_state.json",
        "ContextMemory/iterations/iteration_0001/system_state.json",
        "ContextMemory/iterations/iteration_001/notes.json",
        "ContextMemory/iterations/iteration_001/hypotheses/a/b.json",
        "ContextMemory/iterations/iteration_001/hypotheses/.memfs-1.json",
        "ContextMemory/iterations/iteration_001/hypotheses/a.yaml",
        "ContextMemory/iterations/iteration_001/agent_outputs/a.json",
        "ContextMemory/aggregates/mine.json",
        "ContextMemory/checkpoints/ckpt_1/state.tar.zst",
        "ContextMemory/memories/semantic/a.json",
        "iterations/iteration_001/system_state.json",
    ],
)
def test_other_paths_name_no_document(path: str) -> None:
    """What memfs would not have written is not taken for its own."""
    assert paths.document_kind(path) == ""


def test_names_and_turns_come_back_from_file_names() -> None:
    """Agent, task and turn can be distinguished from an output's path alone."""
    path = paths.output_path(2, "Evolution Agent", "Task/7.2", 3)

    assert paths.agent_of(path) == "Evolution Agent"
    assert paths.task_and_turn(path) == ("Task/7.2", 3)
    assert paths.task_and_turn(paths.output_path(2, "a", "t")) == ("t", 1)
    assert paths.agent_of(paths.hypothesis_path(2, "h")) == ""


def test_a_sidecar_belongs_to_its_document() -> None:
    """Nothing else that ends alike is taken for one."""
    document = paths.output_path(1, "a", "t")
    beside = paths.sidecar_path(document, "ab" * 32)

    assert paths.document_of_sidecar(beside) == document
    assert paths.document_of_sidecar("ContextMemory/archive/2026-01.tar.zst") == ""
    assert paths.document_of_sidecar(f"ContextMemory/notes.json.{'ab' * 8}.zst") == ""

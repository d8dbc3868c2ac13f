"""checkpoint: create, list, verify, recover, prune, and what status says (S6, S7)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from memfs.model.state_paths import CHECKPOINTS, PAYLOAD, output_path, update_path
from memfs.model.time import parse_time, utc_now

from .conftest import Memfs

NOW = utc_now()
OUTPUT = output_path(1, "Judge", "t1")


@pytest.fixture
def state(root: Path) -> Path:
    """A workspace with an iteration that is open."""
    moment = NOW.isoformat()
    checkpoint = {"in_flight_tasks": [{"task_id": "t9"}], "recovery_metadata": {"match": {"round": 3}}}
    left = {"agent_type": "Judge", "task_id": "t1", "timestamp": moment, "state_data": {"internal_state": {"seen": 2}}}
    documents = {
        "ContextMemory/iterations/iteration_001/system_state.json": {
            "iteration": 1, "status": "open", "opened": moment,
        },
        update_path(1, NOW): {"timestamp": moment, "update_type": "periodic", "checkpoint_data": checkpoint},
        OUTPUT: left,
    }  # fmt: skip
    for path, values in documents.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(json.dumps(values))
    return root


def test_create_list_verify_and_recover(state: Path, memfs: Memfs) -> None:
    """Each action says what came of it, in words and in JSON (S6, S7)."""
    made = memfs("state", "checkpoint", "create", "--reason", "by hand", "--json").json
    assert parse_time(made["timestamp"]) >= NOW
    assert "verified" in memfs("state", "checkpoint", "create").out
    listed = memfs("state", "checkpoint", "list", "--json").json["checkpoints"]
    assert [one["reason"] for one in listed] == ["asked", "by hand"]
    assert f"packed {made['payload_bytes']:,} bytes" in memfs("state", "checkpoint", "list").out
    shown = memfs("state", "checkpoint", "recover", made["id"], "--json").json
    assert shown["checkpoint_id"] == made["id"]
    assert shown["active_tasks"] == [{"task_id": "t9"}]
    assert shown["resume_points"] == {"match": {"round": 3}, "Judge": {"seen": 2}}
    output = {"agent_type": "Judge", "task_id": "t9", "results": {"primary_output": "ranked"}}
    memfs("state", "store", "agent_output", stdin=json.dumps(output))
    recovered = yaml.safe_load(memfs("state", "checkpoint", "recover").out)
    assert "active_tasks" not in recovered
    assert recovered["completed_work"]["completed_since"] == [{"task_id": "t9"}]


def test_a_damaged_newest_one_is_reported(state: Path, memfs: Memfs) -> None:
    """A check ends with 1 and the reason; recover takes the one before and names those it rejected (S7)."""
    good = memfs("state", "checkpoint", "create", "--json").json["id"]
    bad = memfs("state", "checkpoint", "create", "--json").json["id"]
    payload = state / CHECKPOINTS / bad / PAYLOAD
    payload.write_bytes(payload.read_bytes()[:-3])
    verified = memfs("check", "--integrity")
    assert verified.code == 1
    assert "bytes, should have" in verified.out
    recovered = memfs("state", "checkpoint", "recover")
    assert recovered.code == 0
    assert good in recovered.out
    assert bad in yaml.safe_load(recovered.out)["data_integrity"]["rejected"]
    named = memfs("state", "checkpoint", "recover", bad)
    assert named.code == 1
    assert "use another checkpoint" in named.err
    assert "1 cannot be used" in memfs("status").out


def test_restore_brings_documents_back(state: Path, memfs: Memfs) -> None:
    """A plain recover changes nothing; --restore brings the document back (S7)."""
    memfs("state", "checkpoint", "create")
    (state / OUTPUT).unlink()
    assert memfs("state", "checkpoint", "recover").code == 0
    assert not (state / OUTPUT).exists()
    assert memfs("state", "checkpoint", "recover", "--restore").code == 0
    assert (state / OUTPUT).exists()


def test_status_has_checkpoints_where_there_is_state(state: Path, memfs: Memfs) -> None:
    """The age of the last one is in status once a state is kept (S6)."""
    assert memfs("status", "--json").json["checkpoints"]["last"] is None
    made = memfs("state", "checkpoint", "create", "--json").json["id"]
    assert memfs("status", "--json").json["checkpoints"]["last"] == made
    assert made in memfs("status", "--all").out


def test_without_any_there_is_a_remedy(memfs: Memfs) -> None:
    """An empty list says how to make one; recover without one is an error (S7)."""
    assert "checkpoint create" in memfs("state", "checkpoint", "list").out
    missing = memfs("state", "checkpoint", "recover")
    assert missing.code == 1
    assert "there is no checkpoint" in missing.err


def test_without_an_action_they_are_listed(memfs: Memfs) -> None:
    """An unknown action is answered with the list of actions."""
    made = memfs("state", "checkpoint", "create", "--json").json["id"]
    assert made in memfs("state", "checkpoint").out
    ran = memfs("state", "checkpoint", "recver")
    assert (ran.code, "recover" in ran.err) == (2, True)


@pytest.mark.parametrize(
    "words",
    [("create", "ckpt_20260301_1000"), ("list", "--restore"), ("recover", "--dry-run")],
)
def test_options_that_do_not_fit_are_refused(memfs: Memfs, words: tuple[str, ...]) -> None:
    """What an action does not take is a mistake of usage (exit code 2)."""
    assert memfs("state", "checkpoint", *words).code == 2

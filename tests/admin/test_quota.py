"""Quotas: counted before writing, reported once, refused only when nothing else helps (S16)."""

from __future__ import annotations

import json
import multiprocessing
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from kit.faults import Fault, injected
from memfs import MemoryItem
from memfs.admin.quota import (
    AREAS,
    HISTORY,
    INDEX,
    Account,
    AreaUsage,
    Ledger,
    area_of,
    sentence,
    weigh_files,
    weigh_history,
)
from memfs.admin.store_builder import export_schemas
from memfs.config_names import SYSTEM_CONFIG
from memfs.doors.cli.app import run
from memfs.errors import QuotaExceeded, StorageIO
from memfs.fs import io
from memfs.store.parts import Parts
from memfs.store.recovery import free_bytes
from memfs.workspace import Workspace, open_workspace

Open = Callable[..., Workspace]
SETTINGS = {"index.engine": "memory", "history.commit": "manual", "history.adopt": "leave"}


def measure(parts: Parts) -> AreaUsage:
    """What every area weighs now, whatever the account says."""
    derived = {HISTORY: weigh_history(parts), INDEX: io.weigh(parts.index.folder)}
    return AreaUsage(areas={**weigh_files(parts), **derived}, free=free_bytes(parts.tree.root))


def set_quotas(root: Path, **quotas: float) -> None:
    """Write quotas as a person would."""
    (root / SYSTEM_CONFIG).write_text(json.dumps({"quotas": quotas}))


def put(workspace: Workspace, name: str, size: int = 1000, **options: Any) -> MemoryItem:
    """Store an item of about so many bytes."""
    return workspace.store.put(MemoryItem("x" * size, "knowledge", id=name), **options)


def fill(workspace: Workspace, name: str, number: int, size: int = 1000) -> None:
    """Store so many items, one by one."""
    for one in range(number):
        put(workspace, f"{name}-{one}", size)


def fill_in_a_batch(workspace: Workspace, number: int) -> None:
    """Store so many items at once."""
    with workspace.store.batch("Many") as batch:
        for one in range(number):
            batch.put(MemoryItem("x" * 1000, "knowledge", id=f"item-{one}"))


def record_events(workspace: Workspace) -> list[Mapping[str, Any]]:
    """The facts of each ``storage_threshold`` from now on."""
    events: list[Mapping[str, Any]] = []
    workspace.behaviours.on("storage_threshold", events.append)
    return events


def items_weight(workspace: Workspace) -> int:
    """What the items weigh, by measuring."""
    return measure(workspace.parts).areas["items"]


@pytest.fixture
def workspace(opened: Open) -> Workspace:
    """A workspace with a quota of 20,000 bytes for its items."""
    made = opened()
    set_quotas(made.root, items_bytes=20_000)
    return made


def test_each_threshold_is_reported_once_and_then_the_write_is_refused(workspace: Workspace) -> None:
    """80, 95 and 100 % each raise one occasion with area, level, use and limit; then a write is refused."""
    events = record_events(workspace)
    with pytest.raises(QuotaExceeded) as refused:
        fill(workspace, "item", 100, 500)
    stored = workspace.store.count()
    assert [(facts["area"], facts["level"]) for facts in events] == [
        ("items", "warning"),
        ("items", "critical"),
        ("items", "full"),
    ]
    assert events[0]["used"] >= 0.8 * 20_000 > events[0]["used"] - 1200
    assert events[1]["limit"] == 20_000
    assert stored > 15
    assert items_weight(workspace) <= 20_000
    assert refused.value.path == SYSTEM_CONFIG
    assert refused.value.field == "quotas.items_bytes"
    assert "20,000" in str(refused.value)
    assert refused.value.hint is not None
    assert "memfs admin gc" in refused.value.hint


@pytest.mark.parametrize("commit", ["each", "interval", "manual"])
def test_a_threshold_is_reported_at_the_share_that_it_names(
    opened: Open, tmp_path: Path, scale: Callable[[int, int], int], commit: str
) -> None:
    """The write that carries use over a threshold raises it, not one before and none after (S16)."""
    for seed in range(scale(1, 60)):
        rng = random.Random(seed)
        workspace = opened(tmp_path / f"seed-{seed}", history__commit=commit)
        export_schemas(workspace.parts.codec.schemas, workspace.root / "ContextMemory/.schemas")
        limit = rng.randrange(260_000, scale(360_000, 660_000))
        warn = rng.choice([0.5, 0.8, 0.9])
        set_quotas(workspace.root, items_bytes=limit, warn_at=warn, critical_at=0.99)
        events = record_events(workspace)
        shares = [0.0]
        while not events:
            text = rng.randbytes(rng.randrange(100, scale(10_000, 4_000))).hex()
            workspace.store.put(MemoryItem(text, "knowledge", id=f"item-{len(shares)}"))
            shares.append(items_weight(workspace) / limit)
        assert [(facts["area"], facts["level"]) for facts in events] == [("items", "warning")]
        assert shares[-2] < warn <= events[0]["share"] <= shares[-1] + 0.001


def test_the_total_counts_history_as_it_was_measured(opened: Open) -> None:
    """What git keeps counts with the next measurement, and a write that no longer fits is refused (S16)."""
    workspace = opened(history__commit="each", history__adopt="leave")
    put(workspace, "one", 15_000)
    before = workspace.quota.measure()
    set_quotas(workspace.root, total_bytes=before.total + 10_000)
    put(workspace, "two", 2_000)
    after = workspace.quota.measure()
    assert after.areas["history"] > before.areas["history"]
    with pytest.raises(QuotaExceeded, match="everything memfs keeps here"):
        put(workspace, "three", 9_000)


def test_a_refused_write_leaves_nothing_behind(workspace: Workspace) -> None:
    """Refused means before the journal sees a byte: no file, no record, and reads go on."""
    put(workspace, "kept", 15_000)
    journal = workspace.parts.journal.path.read_bytes()
    with pytest.raises(QuotaExceeded):
        put(workspace, "big", 15_000)
    assert workspace.parts.journal.path.read_bytes() == journal
    assert [path.stem for path in (workspace.root / "ContextMemory/memories").rglob("*.yaml")] == ["kept"]
    assert workspace.store.get("big") is None
    assert workspace.store.get("kept") is not None


def test_critical_writes_removals_and_smaller_versions_still_land(workspace: Workspace) -> None:
    """At a full quota critical writes (single and batch), removals and a shorter version pass; then room is back."""
    put(workspace, "first", 10_000)
    put(workspace, "second", 9_000)
    with pytest.raises(QuotaExceeded):
        put(workspace, "third", 5_000)
    put(workspace, "third", 5_000, critical=True)
    with workspace.store.batch("More", critical=True) as batch:
        batch.put(MemoryItem("y" * 5_000, "knowledge", id="fourth"))
    put(workspace, "first", 8_000)
    workspace.store.delete("third")
    workspace.store.delete("second")
    workspace.store.delete("fourth")
    put(workspace, "fifth", 5_000)
    assert items_weight(workspace) < 20_000


def test_a_batch_is_refused_whole(workspace: Workspace) -> None:
    """A batch that does not fit writes none of its items."""
    with pytest.raises(QuotaExceeded):
        fill_in_a_batch(workspace, 30)
    assert workspace.store.count() == 0


def test_bringing_back_an_earlier_state_passes_a_full_quota(workspace: Workspace) -> None:
    """What a person asks to be restored is not refused."""
    put(workspace, "old", 15_000)
    workspace.store.flush()
    first = workspace.store.head()[1]
    workspace.store.delete("old")
    put(workspace, "new", 15_000)
    workspace.store.flush()
    assert first is not None
    workspace.history.restore(first, "old")
    assert workspace.store.get("old") is not None


def test_hovering_about_a_threshold_reports_it_once(workspace: Workspace) -> None:
    """Use that falls a little below a threshold and rises again is one crossing; well below and back is another."""
    events = record_events(workspace)
    put(workspace, "base", 15_500)
    for _ in range(5):
        put(workspace, "more", 600)
        workspace.store.delete("more")
    assert [facts["level"] for facts in events] == ["warning"]
    workspace.store.delete("base")
    put(workspace, "other", 100)
    put(workspace, "base", 16_500)
    assert [facts["level"] for facts in events] == ["warning", "warning"]


def test_writes_that_are_refused_far_below_the_quota_are_reported_once(workspace: Workspace) -> None:
    """What still fits between two refusals does not make the second one news; room that came back does."""
    events = record_events(workspace)
    put(workspace, "base", 12_000)
    for number in range(3):
        with pytest.raises(QuotaExceeded):
            put(workspace, "large", 9_000)
        put(workspace, f"small-{number}", 100)
    assert [facts["level"] for facts in events] == ["full"]
    workspace.store.delete("base")
    put(workspace, "other", 10_000)
    with pytest.raises(QuotaExceeded):
        put(workspace, "large", 12_000)
    assert [facts["level"] for facts in events] == ["full", "full"]


def test_two_handles_count_together_and_report_once(workspace: Workspace, opened: Open) -> None:
    """What one handle wrote, another counts; a crossing is reported by one of them only."""
    other = opened(workspace.root)
    events = [record_events(workspace), record_events(other)]
    for number in range(8):
        put(workspace, f"one-{number}")
        put(other, f"two-{number}")
    assert sorted(len(one) for one in events) == [0, 1]
    with pytest.raises(QuotaExceeded):
        fill(other, "three", 8)
    with pytest.raises(QuotaExceeded):
        put(workspace, "four", 5_000)


def _fill(root: str, name: str, found: Any) -> None:
    levels = []
    with open_workspace(root, watch=False, settings=SETTINGS) as workspace:
        workspace.behaviours.on("storage_threshold", lambda facts: levels.append(facts["level"]))
        stored = refused = 0
        for number in range(12):
            try:
                put(workspace, f"{name}-{number}")
                stored += 1
            except QuotaExceeded:
                refused += 1
        found.put((stored, refused, levels))


def test_processes_keep_the_account_in_step(workspace: Workspace) -> None:
    """Four processes that write at once stay under the quota together, and each crossing is reported by one of them."""
    context = multiprocessing.get_context("fork")
    found = context.Queue()
    root = str(workspace.root)
    workspace.close()
    writers = [context.Process(target=_fill, args=(root, f"w{number}", found)) for number in range(4)]
    for writer in writers:
        writer.start()
    answers = [found.get(timeout=120) for _ in writers]
    for writer in writers:
        writer.join()
    stored = sum(answer[0] for answer in answers)
    assert 15 <= stored <= 20
    assert sum(answer[1] for answer in answers) == 48 - stored
    levels = sorted(level for answer in answers for level in answer[2])
    assert levels == sorted(set(levels))
    assert "full" in levels


def test_edits_by_hand_are_counted_by_measuring(workspace: Workspace) -> None:
    """A file that a person laid there counts as soon as the account is made again."""
    put(workspace, "one")
    folder = workspace.root / "ContextMemory/memories/knowledge"
    (folder / "by-hand.yaml").write_text("content: " + "z" * 18_500 + "\n")
    workspace.quota.measure()
    with pytest.raises(QuotaExceeded):
        put(workspace, "two")


@pytest.mark.parametrize("damage", [b"", b"garbage", b"[1]", None])
def test_a_damaged_account_is_made_again(workspace: Workspace, damage: bytes | None) -> None:
    """The account is derived: torn, foreign or gone, it is measured again and nothing is let through by it."""
    put(workspace, "one", 15_000)
    ledger = workspace.repository.state / "ledger"
    if damage is None:
        ledger.unlink()
    else:
        ledger.write_bytes(damage)
    with pytest.raises(QuotaExceeded):
        put(workspace, "two", 6_000)


def test_an_account_that_cannot_be_written_does_not_fail_a_write(workspace: Workspace) -> None:
    """Where the disk takes the write but not the account, the write counts in this process all the same."""
    put(workspace, "one", 15_000)

    def no_account(name: str, path: str) -> None:
        if name == "account":
            raise OSError(5, "no")

    from memfs.fs import io

    before = io.set_hook(no_account)
    try:
        put(workspace, "two", 3_000)
        with pytest.raises(QuotaExceeded):
            put(workspace, "three", 3_000)
    finally:
        io.set_hook(before)


def test_cleanup_makes_room_before_a_write_is_refused(opened: Open) -> None:
    """At a full quota the occasion runs cleanup, and a write that then fits is done instead of refused."""
    workspace = opened(history__adopt="auto", history__commit="interval", history__interval_seconds=3600)
    for number in range(40):
        put(workspace, "same", 200 + number)
        workspace.store.flush()
    usage = workspace.quota.measure()
    set_quotas(workspace.root, total_bytes=usage.total + 1500)
    events = record_events(workspace)
    put(workspace, "next", 3_000)
    assert workspace.store.get("next") is not None
    assert "full" in [facts["level"] for facts in events]
    assert workspace.quota.measure().total < usage.total


def test_a_failing_callback_does_not_fail_the_write(workspace: Workspace) -> None:
    """A callback that raises is named among the problems; the write is done and the next callback called."""

    def fail(facts: Any) -> None:
        raise RuntimeError("no mail server")

    workspace.behaviours.on("storage_threshold", fail)
    events = record_events(workspace)
    put(workspace, "big", 17_000)
    assert [facts["level"] for facts in events] == ["warning"]
    assert any("no mail server" in problem.message for problem in workspace.store.problems())


def test_a_callback_may_write(workspace: Workspace) -> None:
    """A reaction that stores something in the same workspace neither hangs nor loops."""
    workspace.behaviours.on("storage_threshold", lambda facts: put(workspace, "note", 300, critical=True))
    put(workspace, "big", 17_000)
    assert workspace.store.get("note") is not None


@pytest.mark.parametrize("text", ["{", "[]", '{"quotas": {"items_bytes": "many"}}', None])
def test_a_configuration_that_is_invalid_sets_no_quota(workspace: Workspace, text: str | None) -> None:
    """Invalid quotas refuse nothing; ``check`` names the file."""
    path = workspace.root / SYSTEM_CONFIG
    if text is None:
        path.unlink()
    else:
        path.write_text(text)
    put(workspace, "big", 30_000)
    assert workspace.quota.statuses() == []
    assert text is None or any(problem.path == SYSTEM_CONFIG for problem in workspace.checker.check())


def test_a_changed_quota_counts_at_once(workspace: Workspace) -> None:
    """A quota raised by hand lets the next write pass, without opening the workspace again."""
    put(workspace, "one", 18_000)
    with pytest.raises(QuotaExceeded):
        put(workspace, "two", 10_000)
    set_quotas(workspace.root, items_bytes=40_000)
    put(workspace, "two", 10_000)


def test_own_thresholds_are_obeyed(opened: Open) -> None:
    """``warn_at`` and ``critical_at`` move the thresholds."""
    workspace = opened()
    set_quotas(workspace.root, items_bytes=20_000, warn_at=0.2, critical_at=0.5)
    events = record_events(workspace)
    for number in range(12):
        put(workspace, f"item-{number}")
    assert [facts["level"] for facts in events] == ["warning", "critical"]
    assert events[0]["used"] < 6_000


def test_a_workspace_without_quotas_keeps_no_account(opened: Open) -> None:
    """Without a quota a write costs no operation more, and nothing is measured."""
    workspace = opened()
    with injected(Fault()) as seen:
        put(workspace, "one")
    assert not [line for line in seen.seen if "ledger" in line or line.startswith("account")]


def test_areas_add_up(workspace: Workspace) -> None:
    """Each area is weighed for itself, and paths belong to the area of their folder."""
    put(workspace, "one", 5_000)
    workspace.store.flush()
    folder = workspace.root / "ContextMemory/iterations/iteration_001"
    folder.mkdir(parents=True)
    (folder / "system_state.json").write_text("{}" + " " * 98)
    usage = measure(workspace.parts)
    assert set(usage.areas) == set(AREAS)
    assert usage.areas["iterations"] == 100
    assert 5_000 < usage.areas["items"] < 5_200
    assert usage.areas["history"] > 0
    assert usage.areas["state"] > 0
    assert usage.total == sum(usage.areas.values()) - usage.areas["index"] - usage.areas["state"]
    assert usage.free is not None
    assert area_of("ContextMemory/conventions/a.yaml") == "items"
    assert area_of("ContextMemory/checkpoints/c/manifest.json") == "checkpoints"
    assert area_of("memfs.toml") == area_of("ContextMemory/context/x.yaml") == "documents"


def test_the_history_of_other_files_does_not_count(tmp_path: Path, git: Callable[..., str], opened: Open) -> None:
    """In a repository that memfs joined, what the code weighs is not the memory's."""
    root = tmp_path / "project"
    root.mkdir()
    git(root, "init", "--quiet")
    (root / "code.bin").write_bytes(random.Random(7).randbytes(200_000))
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "code")
    workspace = opened(root)
    put(workspace, "one")
    workspace.store.flush()
    assert 0 < measure(workspace.parts).areas["history"] < 100_000


def test_the_account_survives_its_own_form(tmp_path: Path) -> None:
    """What is written is read back, negative sizes included."""
    ledger = Ledger(tmp_path)
    assert ledger.read() is None
    account = Account(at=1.5, sizes={"items": 7, "threads": 7, "archive": -1, "state": 9}, levels={"total": "full"})
    ledger.write(account)
    assert Ledger(tmp_path).read() == account
    assert (account.used("items"), account.used("total")) == (7, 14)


def test_the_sentence_for_people_names_share_and_level() -> None:
    """The message to a person has area, share, bytes and level."""
    facts = {"area": "total", "level": "warning", "used": 850, "limit": 1000, "share": 0.85}
    assert sentence(facts) == "everything memfs keeps here: 85% of the quota, 850 of 1,000 bytes (warning)"


@pytest.mark.parametrize(
    "facts",
    [
        {"base": 5}, {"base": {"items": "10"}}, {"base": {"elsewhere": 1}}, {"since": {"items": None}},
        {"levels": {"items": "enormous"}}, {"levels": [1]}, {"at": "now"}, {"refused": {"items": "then"}},
    ],
)  # fmt: skip
def test_an_account_of_wrong_types_is_made_again(workspace: Workspace, facts: Mapping[str, Any]) -> None:
    """A ledger whose values are not what they should be never breaks a write (faults row 2)."""
    text = json.dumps(facts).encode()
    (workspace.repository.state / "ledger").write_bytes(text)
    put(workspace, "one")
    assert workspace.quota.statuses()[0].used > 1_000


def test_a_measurement_that_the_disk_refuses_breaks_no_write(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """EIO while the areas are weighed reaches neither the write nor a reader (faults row 24)."""

    def refused(path: Any) -> Any:
        raise OSError(5, "Input/output error", path)

    with monkeypatch.context() as patched:
        patched.setattr("memfs.fs.io.os.lstat", refused)
        with pytest.raises(StorageIO):
            io.weigh(workspace.repository.state)
        workspace.quota.prepare()
        workspace.quota.statuses()
    put(workspace, "one")
    assert workspace.store.get("one") is not None


def test_a_write_measures_only_where_nothing_is_known(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """An old account is renewed in the background, not while somebody waits for a write."""
    put(workspace, "one")
    measured: list[bool] = []
    monkeypatch.setattr(workspace.quota, "measure", lambda **_: measured.append(True))
    monkeypatch.setattr(workspace.quota, "_now", lambda: 4e9)
    put(workspace, "two")
    assert measured == []
    workspace.quota.maintain()
    assert measured == [True]


@pytest.mark.parametrize("value", ['"10"', "-1", "10,"])
def test_an_invalid_quota_is_reported_and_the_last_good_one_counts(workspace: Workspace, value: str) -> None:
    """A typing error in the configuration does not switch the quotas off unseen."""
    put(workspace, "one", 18_000)
    (workspace.root / SYSTEM_CONFIG).write_text(f'{{"quotas": {{"items_bytes": {value}}}}}')
    with pytest.raises(QuotaExceeded):
        put(workspace, "two", 10_000)
    assert workspace.quota.problem is not None
    assert workspace.quota.problem.path == SYSTEM_CONFIG
    set_quotas(workspace.root, items_bytes=40_000)
    put(workspace, "two", 10_000)
    assert workspace.quota.problem is None


def test_status_stats_and_writes_name_an_invalid_quota(
    workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    """Anyone who looks, and anyone who writes, reads which file is wrong."""
    (workspace.root / SYSTEM_CONFIG).write_text('{"quotas": {"items_bytes": "10"}}')
    for words in (["status"], ["status", "--storage"], ["remember", "something"]):
        run(["-C", str(workspace.root), *words])
        captured = capsys.readouterr()
        assert "system_config.json" in (captured.err if words[0] == "remember" else captured.out), words


def test_only_a_full_quota_reads_as_100_percent() -> None:
    """Shares are rounded down, and a refusal below the limit says what it means."""
    facts = {"area": "items", "level": "critical", "used": 9_999, "limit": 10_000, "share": 0.9999}
    assert sentence(facts) == "items: 99% of the quota, 9,999 of 10,000 bytes (critical)"
    refused = {**facts, "level": "full", "used": 8_500}
    assert sentence(refused) == "items: 85% of the quota, 8,500 of 10,000 bytes (no room left for a write)"


def test_a_refusal_names_the_remedy_that_helps(workspace: Workspace) -> None:
    """Where cleanup found nothing, raising the quota is named; the ballast, which is room, does not count."""
    put(workspace, "one", 18_000)
    with pytest.raises(QuotaExceeded) as refused:
        put(workspace, "two", 10_000)
    assert "raise the quota" in (refused.value.hint or "")
    before = measure(workspace.parts).areas["state"]
    (workspace.repository.state / "ballast").unlink(missing_ok=True)
    assert measure(workspace.parts).areas["state"] == before

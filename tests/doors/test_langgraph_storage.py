"""LangGraph checkpointer: what is in the workspace, and what becomes of it (B5)."""

from __future__ import annotations

import base64
import contextlib
import errno
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from memfs.admin.backup_file import restore
from memfs.doors.langgraph import MemfsSaver
from memfs.errors import ContentError, MemfsError, QueryInvalid, QuotaExceeded, SecretDetected, StorageIO
from memfs.fs import io
from memfs.workspace import Workspace

KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"  # looks like a token of GitHub
CONFIG: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}


@pytest.fixture
def saver(opened: Callable[..., Workspace]) -> Iterator[MemfsSaver]:
    """A saver in a workspace of its own."""
    with MemfsSaver(workspace=opened()) as made:
        yield made


def put(saver: MemfsSaver, config: Any, **values: Any) -> Any:
    """Put the checkpoint after a config's: all channels keep their values, but those named get another."""
    given = config["configurable"]
    before = saver.get_tuple(config) if "checkpoint_id" in given else None
    step = 0 if before is None else before.metadata["step"] + 1
    checkpoint = empty_checkpoint()
    checkpoint["id"] = str(uuid6(clock_seq=step))
    if before is not None:
        checkpoint["channel_values"] = dict(before.checkpoint["channel_values"])
        checkpoint["channel_versions"] = dict(before.checkpoint["channel_versions"])
    versions = dict.fromkeys(values, step + 1)
    checkpoint["channel_values"].update(values)
    checkpoint["channel_versions"].update(versions)
    return saver.put(config, checkpoint, {"source": "loop", "step": step, "run_id": f"run {step}"}, versions)


def file_of(saver: MemfsSaver, config: Any) -> Path:
    """Where a checkpoint is."""
    folder = saver.workspace.root / "ContextMemory" / "threads" / config["configurable"]["thread_id"]
    return folder / "checkpoints" / f"{config['configurable']['checkpoint_id']}.json"


def values_of(saver: MemfsSaver, config: Any) -> Any:
    """The values of a checkpoint's channels."""
    found = saver.get_tuple(config)
    return None if found is None else found.checkpoint["channel_values"]


def test_versions_grow_in_the_form_they_have(saver: MemfsSaver) -> None:
    """A thread that came from a saver with texts for versions goes on with texts that sort behind them (B5)."""
    assert [saver.get_next_version(current, None) for current in (None, 1, 9)] == [1, 2, 10]
    texts = [f"{number:032}.0.123" for number in (2, 9)]
    following = [saver.get_next_version(current, None) for current in texts]
    assert following == [f"{3:032}.0", f"{10:032}.0"]
    assert all(before < after for before, after in zip(texts, following, strict=True))


# -- what is written ----------------------------------------------------------------------------------------------
def _refer(saver: MemfsSaver, config: Any, channel: str, holder: Any) -> None:
    """Let a checkpoint say that another one keeps a value, as memfs once wrote it."""
    file = file_of(saver, config)
    document = json.loads(file.read_text(encoding="utf-8"))
    document["channels"][channel] = {"kept_in": holder["configurable"]["checkpoint_id"]}
    file.write_text(json.dumps(document), encoding="utf-8")


def test_a_value_that_an_earlier_checkpoint_keeps_is_read_from_there(saver: MemfsSaver) -> None:
    """What an earlier version wrote once, for the checkpoints after it, is found by all of them (B5)."""
    first = put(saver, CONFIG, text="long", turn=1)
    second = put(saver, first, text="long", turn=2)
    _refer(saver, second, "text", first)
    assert values_of(saver, second) == {"text": "long", "turn": 2}


def test_a_thread_can_be_read_in_its_files_and_in_git(saver: MemfsSaver, git: Callable[..., str]) -> None:
    """Readable JSON, one commit for what was put together, and a message that names thread and step (B5)."""
    config = put(saver, {"configurable": {"thread_id": "t", "checkpoint_ns": "", "user": "ada"}}, topic="Größe ≠ 0")
    saver.put_writes(config, [("topic", {"a": (1, 2)})], "task 1", "~path")

    text = file_of(saver, config).read_text(encoding="utf-8")
    assert '"value": "Größe ≠ 0"' in text
    assert json.loads(text)["metadata"]["value"] == {"source": "loop", "step": 0, "run_id": "run 0", "user": "ada"}
    saver.workspace.store.flush()
    root = saver.workspace.root
    assert git(root, "log", "-1", "--format=%s%n%b").splitlines()[:4] == [
        "Keep step 0 (loop) of thread t and 1 more",
        "- Keep step 0 (loop) of thread t",
        "- Keep writes of a task in thread t",
        "",
    ]
    assert git(root, "status", "--porcelain") == ""
    assert list(saver.workspace.checker.check(integrity=True)) == []


@pytest.mark.parametrize("name", ["", "../../etc", "a/b", "ü%2F", "x" * 400, "con", ".git", "a|b:c", "Ä\n\u202e"])
def test_any_name_of_a_thread_or_namespace_is_kept_apart(saver: MemfsSaver, name: str) -> None:
    """Hostile and odd names stay within the folder and come back verbatim (B5, faults row 13)."""
    config: Any = {"configurable": {"thread_id": f"t{name}", "checkpoint_ns": name}}
    if "\u202e" in name:
        with pytest.raises(ContentError):
            put(saver, config, x=1)
        return
    stored = put(saver, config, x=name)
    saver.put_writes(stored, [("x", 2)], name or "task")

    (found,) = saver.list(None)
    assert (found.config, values_of(saver, stored)) == (stored, {"x": name})
    assert found.pending_writes == [(name or "task", "x", 2)]
    root = saver.workspace.root
    assert {one.relative_to(root).parts[:2] for one in root.rglob("*.json") if "threads" in one.parts} == {
        ("ContextMemory", "threads")
    }


def test_invalid_names_are_refused(saver: MemfsSaver) -> None:
    """An empty thread id has no folder: the error names the field."""
    with pytest.raises(QueryInvalid) as caught:
        put(saver, {"configurable": {"thread_id": "", "checkpoint_ns": ""}}, x=1)
    assert (caught.value.field, bool(caught.value.hint)) == ("thread_id", True)


def test_a_large_value_is_beside_its_document(saver: MemfsSaver) -> None:
    """What is too large for a document goes into a sidecar, and comes back (B5)."""
    text = "0123456789" * 900_000
    config = put(saver, CONFIG, text=text, data=b"\x00\xff" * 500_000)

    assert file_of(saver, config).stat().st_size < 16 << 20
    assert values_of(saver, config) == {"text": text, "data": b"\x00\xff" * 500_000}


# -- several at once ----------------------------------------------------------------------------------------------
WRITER = """
import sys
from memfs.doors.langgraph import MemfsSaver
folder, name, checkpoint = sys.argv[1:]
with MemfsSaver(folder) as saver:
    config = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": checkpoint}}
    for at in range(10):
        saver.put_writes(config, [("__error__", name), *[("x", n) for n in range(at + 1)]], "shared task", "")
        saver.put_writes(config, [("x", at)], f"{name} {at}")
"""


def test_two_processes_lose_no_writes(tmp_path: Path, forked_python: Path) -> None:
    """Two processes write to one checkpoint, also to one task: every write is there once (B5)."""
    with MemfsSaver(tmp_path) as saver:
        config = put(saver, CONFIG, x=0)
        words = [str(forked_python), "-c", WRITER, str(tmp_path)]
        checkpoint = config["configurable"]["checkpoint_id"]
        running = [subprocess.Popen([*words, name, checkpoint], stderr=subprocess.PIPE) for name in ("ada", "bob")]
        errors = [one.communicate(timeout=60)[1] for one in running]
        assert [one.returncode for one in running] == [0, 0], errors
        found = saver.get_tuple(config)

    assert found is not None
    assert found.pending_writes is not None
    own = [write for write in found.pending_writes if write[0] != "shared task"]
    shared = [write[1:] for write in found.pending_writes if write[0] == "shared task"]
    assert sorted(own) == sorted((f"{name} {at}", "x", at) for name in ("ada", "bob") for at in range(10))
    assert shared[1:] == [("x", n) for n in range(10)]
    assert shared[0] in [("__error__", "ada"), ("__error__", "bob")]


def test_writes_of_one_task_that_cross_are_all_kept(saver: MemfsSaver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process adds to a task's writes between our reading and writing of them: nothing is lost (B5)."""
    config = put(saver, CONFIG, x=1)
    files = saver.workspace.states.threads.files
    write, crossing = files.write, [True]

    def interrupted(*given: Any, **more: Any) -> Any:
        if crossing:
            crossing.clear()
            saver.put_writes(config, [("__interrupt__", "theirs")], "task")
        return write(*given, **more)

    monkeypatch.setattr(files, "write", interrupted)
    saver.put_writes(config, [("x", "ours")], "task")
    found = saver.get_tuple(config)
    assert found is not None
    assert {(channel, value) for _, channel, value in found.pending_writes or []} == {
        ("__interrupt__", "theirs"),
        ("x", "ours"),
    }


def test_threads_may_share_a_saver(saver: MemfsSaver) -> None:
    """Many threads of one process put and list at once (B5)."""

    def work(name: str) -> None:
        config: Any = {"configurable": {"thread_id": name, "checkpoint_ns": ""}}
        for turn in range(4):
            config = put(saver, config, turn=turn)

    workers = [threading.Thread(target=work, args=(f"t{at}",)) for at in range(6)]
    for one in workers:
        one.start()
    for one in workers:
        one.join()

    assert len(list(saver.list(None))) == 24
    assert {one.checkpoint["channel_values"]["turn"] for one in saver.list(None, filter={"step": 3})} == {3}


def test_a_full_disk_keeps_what_was_there(saver: MemfsSaver) -> None:
    """ENOSPC at every operation of a put: an error, and what was acknowledged stays; then it goes on (B5)."""
    config = put(saver, CONFIG, turn=0)
    for at in range(1, 40):
        left = [at]

        def full(_name: str, _path: str, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] == 0:
                raise OSError(errno.ENOSPC, "No space left on device")

        before = io.set_hook(full)
        try:
            with contextlib.suppress(StorageIO):
                config = put(saver, config, turn=at)
        finally:
            io.set_hook(before)
        assert values_of(saver, config) is not None

    assert values_of(saver, put(saver, config, turn=40)) == {"turn": 40}
    assert saver.workspace.checker.check() == []


# -- people -------------------------------------------------------------------------------------------------------
def test_a_person_may_correct_a_value(saver: MemfsSaver) -> None:
    """An edit by hand counts at once; a broken one is reported, and the last good version is read (B5)."""
    config = put(saver, CONFIG, topic="tpyo")
    saver.workspace.store.flush()
    path = file_of(saver, config)
    path.write_text(path.read_text(encoding="utf-8").replace("tpyo", "typo"), encoding="utf-8")
    assert values_of(saver, config) == {"topic": "typo"}

    path.write_text("{", encoding="utf-8")
    assert values_of(saver, config) == {"topic": "tpyo"}  # what git has
    assert [problem.path for problem in saver.workspace.checker.check()] == [
        path.relative_to(saver.workspace.root).as_posix()
    ]


def chain(saver: MemfsSaver) -> list[Any]:
    """Four checkpoints; ``kept`` is written in the first alone, ``last`` in the third."""
    configs = [put(saver, CONFIG, kept="from the first", turn=0)]
    configs.append(put(saver, configs[-1], turn=1))
    configs.append(put(saver, configs[-1], turn=2, last=[1]))
    configs.append(put(saver, configs[-1], turn=3))
    return configs


def test_a_removed_file_that_others_need_is_named(saver: MemfsSaver) -> None:
    """Where a person removed what a later checkpoint refers to, the error says where and how to get it back (B5)."""
    configs = chain(saver)
    _refer(saver, configs[3], "kept", configs[0])
    file_of(saver, configs[0]).unlink()

    with pytest.raises(ContentError) as caught:
        saver.get_tuple(configs[3])

    assert caught.value.field == "channels.kept"
    assert "git" in str(caught.value.hint)
    assert caught.value.path in [problem.path for problem in saver.workspace.checker.check(integrity=True)]


# -- secrets ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("value", [KEY, {"deep": [f"use {KEY}"]}, {"hidden\u202e": KEY}], ids=["text", "deep", "bytes"])
def test_a_secret_is_refused_with_its_field(saver: MemfsSaver, value: Any) -> None:
    """B6: nothing is written, the error names rule and field, never the value, and what can be done."""
    with pytest.raises(SecretDetected) as caught:
        put(saver, CONFIG, harmless=1, found=value)

    assert str(caught.value.field).startswith("channels.found")
    assert "github-token" in str(caught.value)
    assert KEY not in str(caught.value) + str(caught.value.hint)
    assert "allow_secret" in str(caught.value.hint)
    assert list(saver.list(None)) == []
    assert KEY.encode() not in b"".join(one.read_bytes() for one in saver.workspace.root.rglob("*") if one.is_file())


def test_a_secret_in_a_config_or_a_write_is_refused(saver: MemfsSaver) -> None:
    """LangGraph copies what is configurable into metadata: a key there is refused, too (B6)."""
    with pytest.raises(SecretDetected) as caught:
        put(saver, {"configurable": {"thread_id": "t", "checkpoint_ns": "", "github": KEY}}, x=1)
    assert caught.value.field == "metadata"
    with pytest.raises(SecretDetected) as caught:
        put(saver, {"configurable": {"thread_id": KEY, "checkpoint_ns": ""}}, x=1)
    assert KEY not in f"{caught.value} {caught.value.path} {caught.value.field}"
    config = put(saver, CONFIG, x=1)
    with pytest.raises(SecretDetected) as caught:
        saver.put_writes(config, [("y", 1), ("x", {"key": KEY})], "task")
    assert caught.value.field == "writes.x"
    found = saver.get_tuple(config)
    assert found is not None
    assert found.pending_writes == []


def test_a_reason_lets_a_secret_stay(opened: Callable[..., Workspace]) -> None:
    """``allow_secret``: recorded in the documents that need it, and in no other (B6)."""
    saver = MemfsSaver(workspace=opened(), allow_secret="a test fixture")
    first = put(saver, CONFIG, x=1)
    second = put(saver, first, found=KEY)
    saver.put_writes(second, [("found", KEY)], "task")

    assert values_of(saver, second) == {"x": 1, "found": KEY}
    assert "secret_allowed" not in json.loads(file_of(saver, first).read_text(encoding="utf-8"))
    assert json.loads(file_of(saver, second).read_text(encoding="utf-8"))["secret_allowed"] == "a test fixture"
    assert list(saver.workspace.checker.check()) == []


class Turned:
    """A cipher that hides nothing, but changes every byte."""

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        """Each bit turned."""
        return "turned", bytes(byte ^ 255 for byte in plaintext)

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        """Turned back."""
        assert ciphername == "turned"
        return bytes(byte ^ 255 for byte in ciphertext)


def test_an_encrypting_serializer_hides_all_values(opened: Callable[..., Workspace]) -> None:
    """Values, metadata and writes are kept as its bytes; only names stay readable (B5)."""
    saver = MemfsSaver(workspace=opened(), serde=EncryptedSerializer(Turned(), JsonPlusSerializer()))
    config = put(
        saver, {"configurable": {"thread_id": "t", "checkpoint_ns": "", "who": "Ada"}}, topic="whales", key=KEY
    )
    saver.put_writes(config, [("topic", "dolphins")], "task")

    files = "".join(one.read_text(encoding="utf-8") for one in file_of(saver, config).parents[1].rglob("*.json"))
    assert not [word for word in ("whales", "dolphins", "Ada", KEY) if word in files]
    assert values_of(saver, config) == {"topic": "whales", "key": KEY}
    assert [one.config for one in saver.list(CONFIG, filter={"who": "Ada"})] == [config]


def test_another_serializer_than_it_was_written_with_is_reported(opened: Callable[..., Workspace]) -> None:
    """Without the key there is an error with the field, not a half-read checkpoint (B5)."""
    workspace = opened()
    config = put(
        MemfsSaver(workspace=workspace, serde=EncryptedSerializer(Turned(), JsonPlusSerializer())), CONFIG, x=1
    )

    with pytest.raises(ContentError) as caught:
        MemfsSaver(workspace=workspace).get_tuple(config)
    assert "serializer" in str(caught.value)
    assert caught.value.field is not None


# -- what files may bring to life ---------------------------------------------------------------------------------
@dataclass
class Own:
    """A state's own class."""

    name: str


def test_own_classes_come_back_in_another_process(tmp_path: Path) -> None:
    """What this user's graphs saved is brought back, by a saver that has not seen it (B5)."""
    with MemfsSaver(tmp_path) as saver:
        config = put(saver, CONFIG, own=Own("x"), other={"deep": [Own("y")]})
    with MemfsSaver(tmp_path) as saver:
        assert values_of(saver, config) == {"own": Own("x"), "other": {"deep": [Own("y")]}}


def test_a_planted_checkpoint_runs_no_code(saver: MemfsSaver, tmp_path: Path, own_world: Path) -> None:
    """A file that came with a clone names a class: nothing of it is imported or called, and the error says so (B5)."""
    config = put(saver, CONFIG, x=1)
    path = file_of(saver, config)
    document = json.loads(path.read_text(encoding="utf-8"))
    mark = tmp_path / "ran"
    planted = {"$object": 1, "of": ["os", "system", [f"touch {mark}"]]}
    as_bytes = JsonPlusSerializer().dumps_typed(Own("x"))[1].replace(b"Own", b"Two")
    forms: list[Any] = [
        {"value": planted},
        {"value": {"$object": 7, "of": [planted]}},
        {"value": {"$object": 0, "of": {"$object": 0, "of": ["collections", "deque", ["os", "system", str(mark)]]}}},
        {"value": {"$pairs": [[1, planted]]}},
        {"type": "msgpack", "base64": base64.b64encode(as_bytes).decode()},
        {"type": "pickle", "base64": "gASVCgAAAAAAAACMAm9zlIwGc3lzdGVtlJOULg=="},
        {"value": {"$object": 1, "of": 3}},
        {"value": {"$bytes": "!"}},
        {},
    ]
    for form in forms:
        document["channels"]["x"] = form
        path.write_text(json.dumps(document), encoding="utf-8")
        with contextlib.suppress(ContentError):
            assert not isinstance(values_of(saver, config)["x"], Own)
        assert not mark.exists(), form
    assert not (own_world / ".config" / "memfs" / "langgraph-types.txt").exists()


def test_invalid_metadata_is_an_error(saver: MemfsSaver) -> None:
    """Somebody wrote a number where a mapping belongs: an error with path and field, in every call (B5)."""
    config = put(saver, CONFIG, x=1)
    path = file_of(saver, config)
    document = json.loads(path.read_text(encoding="utf-8"))
    for field in ("metadata", "state"):
        path.write_text(json.dumps({**document, field: {"value": 3}}), encoding="utf-8")
        with pytest.raises(ContentError) as caught:
            list(saver.list(CONFIG, filter={"step": 0}))
        assert (caught.value.field, caught.value.path) == (field, path.relative_to(saver.workspace.root).as_posix())


def test_a_user_without_a_home_has_the_types_of_this_process(
    saver: MemfsSaver, own_world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there is no place for the list of types, what this process saved is read back in it (B5)."""

    def no_home() -> Path:
        raise RuntimeError

    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    assert values_of(saver, put(saver, CONFIG, own=Own("x"))) == {"own": Own("x")}


def test_an_unknown_class_is_named_with_the_way_to_allow_it(saver: MemfsSaver, own_world: Path) -> None:
    """A colleague's graph wrote it: the error says which serializer would take it, and that works (B5)."""
    config = put(saver, CONFIG, own=Own("x"))
    (own_world / ".config" / "memfs" / "langgraph-types.txt").unlink()
    name = (__name__, "Own")

    with pytest.raises(ContentError) as caught:
        values_of(MemfsSaver(workspace=saver.workspace), config)

    assert f"allowed_msgpack_modules=[{name!r}]" in str(caught.value.hint)
    assert caught.value.field == "channels.own"
    allowing = JsonPlusSerializer(allowed_msgpack_modules=[name])
    assert values_of(MemfsSaver(workspace=saver.workspace, serde=allowing), config) == {"own": Own("x")}


# -- as part of a workspace ---------------------------------------------------------------------------------------
def test_the_workspace_knows_its_threads(saver: MemfsSaver, tmp_path: Path) -> None:
    """They count in their own area and quota, and a backup brings them back (B5)."""
    config = put(saver, CONFIG, text="x" * 3000)
    workspace = saver.workspace
    assert workspace.quota.measure().areas["threads"] > 3000
    (kept,) = workspace.backups.make(tmp_path / "backups")
    restored = restore(kept.path, tmp_path / "restored")
    assert values_of(MemfsSaver(restored.root), config) == {"text": "x" * 3000}

    limits = {"quotas": {"threads_bytes": 4000}}
    (workspace.root / "ContextMemory/configuration/system_config.json").write_text(json.dumps(limits), encoding="utf-8")
    with pytest.raises(QuotaExceeded):
        put(saver, config, text="y" * 3000)
    saver.delete_thread("t")
    put(saver, CONFIG, text="y" * 2000)


def test_a_folder_that_leads_out_is_not_followed(saver: MemfsSaver, tmp_path: Path) -> None:
    """A planted link in place of a thread's folder: nothing is read or written beyond it (B5, faults row 13)."""
    config = put(saver, CONFIG, x=1)
    folder = file_of(saver, config).parents[1]
    outside = tmp_path / "outside"
    folder.rename(outside)
    folder.symlink_to(outside)
    before = sorted(outside.rglob("*"))

    with pytest.raises(MemfsError):
        put(saver, CONFIG, x=2)
    with pytest.raises(MemfsError):
        saver.get_tuple(config)
    saver.delete_thread("t")
    assert sorted(outside.rglob("*")) == before


def test_without_the_framework_the_error_says_what_to_install() -> None:
    """Importing the door names the extra that it needs (B5)."""
    script = (
        "import sys\n"
        "sys.modules['langgraph'] = sys.modules['langchain_core'] = None\n"
        "try:\n    import memfs.doors.langgraph\n"
        "except Exception as error:\n    print(type(error).__name__, error.hint)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.strip() == "ExtraMissing pip install 'gitmemfs[langgraph]'", done.stderr

"""The store against a dictionary: whatever is done, in whatever order, by whom, and wherever it stops (design 8).

A Hypothesis state machine plays agents, a person with an editor, a person with git, and the death of the process. After
each step the store must hold what the dictionary holds.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from kit import broken
from kit.faults import Fault, Stopped, injected
from memfs import MemoryItem, Query
from memfs.errors import Conflict, IdExists
from memfs.workspace import Workspace, open_workspace

Value = tuple[str, str]
SETTINGS = {"index.engine": "memory", "history.commit": "session", "history.adopt": "auto"}
DEEDS = ("put", "delete", "batch", "flush")
NAMES = st.sampled_from(["a", "b", "c", "d", "e"])
TYPES = st.sampled_from(["knowledge", "episodic"])
TEXTS = st.sampled_from(
    ["one", "two", "no", "1:30", "a: b\n\n- c", "  led by spaces", "日本 😀", "x" * 3000, "# no comment"]
)
EVERYTHING = Query(limit=10_000)


class StoreMachine(RuleBasedStateMachine):
    """See the module. ``held`` is what the files of the current branch must say: type and content by id."""

    prepared: ClassVar[Path]

    def __init__(self) -> None:
        super().__init__()
        self._folder = Path(tempfile.mkdtemp(dir=self.prepared.parent))
        self.root = self._folder / "w"
        shutil.copytree(self.prepared, self.root, symlinks=True)
        self.held: dict[str, Value] = {}
        self.branches: dict[str, dict[str, Value]] = {"main": {}, "other": {}}
        self.branch = "main"
        self.by_hand = False
        self.workspace = self._open()

    def teardown(self) -> None:
        """Close what is open, and look at everything once more."""
        self.everything_is_in_git()
        self.workspace.close()
        shutil.rmtree(self._folder)

    # -- helpers --------------------------------------------------------------------------------------------------
    def _open(self) -> Workspace:
        return open_workspace(self.root, watch=False, settings=SETTINGS)

    def _git(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["git", "-C", str(self.root), *words], capture_output=True, text=True, check=False)

    def _path(self, name: str) -> Path | None:
        found = [*(self.root / "ContextMemory/memories").rglob(f"{name}.yaml")]
        assert len(found) < 2
        return found[0] if found else None

    def _found(self, workspace: Workspace) -> dict[str, Value]:
        return {item.id: (item.type, item.content) for item in workspace.store.select(EVERYTHING)}

    def _settle(self) -> None:
        flushed = self.workspace.store.flush(adopt=True)
        assert (flushed.waiting, flushed.reason) == (0, "")
        self.by_hand = False
        self.branches[self.branch] = dict(self.held)

    # -- agents ---------------------------------------------------------------------------------------------------
    @rule(name=NAMES, type=TYPES, text=TEXTS)
    def put(self, name: str, type: str, text: str) -> None:  # noqa: A002
        """Store an item, whatever is there."""
        self.workspace.store.put(MemoryItem(text, type, id=name))
        self.held[name] = (type, text)

    @rule(name=NAMES, text=TEXTS)
    def create(self, name: str, text: str) -> None:
        """Store an item that must not be there."""
        if name in self.held:
            with pytest.raises(IdExists):
                self.workspace.store.put(MemoryItem(text, "knowledge", id=name), expected="")
        else:
            self.workspace.store.put(MemoryItem(text, "knowledge", id=name), expected="")
            self.held[name] = ("knowledge", text)

    @rule(name=NAMES, text=TEXTS)
    def put_over_an_old_reading(self, name: str, text: str) -> None:
        """Store over something else than was read."""
        with pytest.raises(Conflict):
            self.workspace.store.put(MemoryItem(text, "knowledge", id=name), expected="0" * 64)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        """Remove an item."""
        name = data.draw(st.sampled_from(sorted(self.held)))
        self.workspace.store.delete(name)
        del self.held[name]

    @rule(writes=st.dictionaries(NAMES, TEXTS, min_size=1, max_size=4))
    def batch(self, writes: Mapping[str, str]) -> None:
        """Store several at once."""
        with self.workspace.store.batch("Several") as batch:
            for name, text in writes.items():
                batch.put(MemoryItem(text, self.held.get(name, ("knowledge",))[0], id=name))
        self.held.update({name: (self.held.get(name, ("knowledge",))[0], text) for name, text in writes.items()})

    # -- a person with an editor ----------------------------------------------------------------------------------
    @rule(name=NAMES, text=st.sampled_from(["by hand", "by another hand"]))
    def edit(self, name: str, text: str) -> None:
        """Write a file without memfs."""
        path = self._path(name) or self.root / f"ContextMemory/memories/knowledge/{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# mine\ncontent: {text}\n")
        self.held[name] = (self.held.get(name, ("knowledge",))[0], text)
        self.by_hand = True

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def remove_by_hand(self, data: st.DataObject) -> None:
        """Remove a file without memfs."""
        name = data.draw(st.sampled_from(sorted(self.held)))
        path = self._path(name)
        assert path is not None
        path.unlink()
        del self.held[name]
        self.by_hand = True

    # -- a person with git ----------------------------------------------------------------------------------------
    @rule()
    def flush(self) -> None:
        """Commit all that waits."""
        self._settle()

    @rule()
    def commit_all_by_hand(self) -> None:
        """A person commits everything with git, before memfs does."""
        self._git("add", "-A")
        self._git("commit", "-q", "-m", "by a person")
        self._settle()

    @precondition(lambda self: not self.by_hand)
    @rule(settled=st.booleans())
    def checkout(self, settled: bool) -> None:
        """Switch to the other branch, also while writes wait for their commit on this one."""
        if settled:
            self._settle()
        other = "other" if self.branch == "main" else "main"
        if self._git("checkout", "-q", other).returncode:
            assert not settled
            return
        self.branches[self.branch] = dict(self.held)
        self.branch, self.held = other, dict(self.branches[other])
        self._settle()

    @rule(steps=st.integers(1, 3))
    def reset(self, steps: int) -> None:
        """Throw commits away: memfs follows."""
        self._settle()
        if self._git("rev-parse", "--verify", "-q", f"first..HEAD~{steps}").returncode:
            return
        if self._git("merge-base", "--is-ancestor", "first", f"HEAD~{steps}").returncode:
            return
        assert self._git("reset", "-q", "--hard", f"HEAD~{steps}").returncode == 0
        self.held = self._read_from_git("HEAD")
        self._settle()

    def _read_from_git(self, revision: str) -> dict[str, Value]:
        """What a revision holds, read without memfs's store."""
        rows = self._git("ls-tree", "-r", "-z", "--name-only", revision, "ContextMemory/memories").stdout
        held = {}
        for path in filter(None, rows.split("\0")):
            data = subprocess.run(
                ["git", "-C", str(self.root), "cat-file", "blob", f"{revision}:{path}"], capture_output=True, check=True
            ).stdout
            item = self.workspace.parts.codec.read(data, path, self.workspace.parts.clock())
            held[item.id] = (item.type, item.content)
        return held

    # -- life and death -------------------------------------------------------------------------------------------
    @rule()
    def reopen(self) -> None:
        """The process ends and another begins."""
        self.workspace.close()
        self.workspace = self._open()

    @rule(
        at=st.integers(1, 60), doing=st.sampled_from(DEEDS), names=st.lists(NAMES, min_size=3, unique=True), text=TEXTS
    )
    def die(self, at: int, doing: str, names: list[str], text: str) -> None:
        """The process stops in the middle of something; what it had acknowledged is there, the rest whole or not."""
        after = self._after(doing, names, text)
        try:
            with injected(Fault(at=at)):
                self._do(doing, after)
            before = after  # it was acknowledged
        except Stopped:
            before = self.held
        for part in (self.workspace.parts.journal, self.workspace.parts.tree):
            part.close()
        self.workspace = self._open()
        self.workspace.store.refresh()
        found = self._found(self.workspace)
        assert found in (before, after)
        self.held = found

    def _after(self, doing: str, names: list[str], text: str) -> dict[str, Value]:
        """What the store is to hold when the deed is done."""
        changed = {} if doing == "flush" else {name: self.held.get(name, ("knowledge",))[0] for name in names}
        if doing in ("put", "delete"):
            changed = dict([*changed.items()][:1])
        if doing == "delete":
            return {name: value for name, value in self.held.items() if name not in changed}
        return {**self.held, **{name: (kept, text) for name, kept in changed.items()}}

    def _do(self, doing: str, after: Mapping[str, Value]) -> None:
        """Carry out what leads from what is held to ``after``."""
        store = self.workspace.store
        if doing == "flush":
            store.flush(adopt=True)
            return
        gone = [name for name in self.held if name not in after]
        written = [MemoryItem(text, kept, id=name) for name, (kept, text) in after.items()]
        changed = [item for item in written if self.held.get(item.id) != (item.type, item.content)]
        if doing == "batch":
            with store.batch("Several") as batch:
                for item in changed:
                    batch.put(item)
        for name in gone:
            store.delete(name)
        if doing == "put":
            for item in changed:
                store.put(item)

    @rule()
    def reindex(self) -> None:
        """The index is made again."""
        self.workspace.store.reindex()

    @rule()
    def fold(self) -> None:
        """Fresh items move into the base of the index."""
        self.workspace.store.fold()

    # -- what must hold -------------------------------------------------------------------------------------------
    @invariant()
    def the_store_holds_what_the_dictionary_holds(self) -> None:
        """By listing, by id, and without a single problem that is not a person's doing."""
        assert self._found(self.workspace) == self.held
        for name in ("a", "b", "c", "d", "e"):
            item = self.workspace.store.get(name)
            assert (None if item is None else (item.type, item.content)) == self.held.get(name)
        assert self.workspace.store.index_sync.problems() == []

    @rule()
    def everything_is_in_git(self) -> None:
        """After a commit: git's tree, a process that just began, and the dictionary agree; nothing is left over."""
        self._settle()
        assert self._read_from_git("HEAD") == self.held
        assert self._git("status", "--porcelain").stdout == ""
        with self._open() as fresh:
            assert self._found(fresh) == self.held
            assert fresh.store.pending().count == 0
        assert [*self.root.rglob("*.tmp"), *self.root.rglob("index.lock"), *self.root.rglob("HEAD.lock")] == []


@pytest.fixture
def prepared(tmp_path: Path) -> Path:
    """A workspace with a second branch, to be copied."""
    root = tmp_path / "prepared"
    open_workspace(root, create=True, watch=False, settings=SETTINGS).close()
    for words in (("branch", "other"), ("tag", "first")):
        subprocess.run(["git", "-C", str(root), *words], check=True)
    return root


def machine_settings(examples: int, *phases: Phase) -> settings:
    """So many runs of 25 steps; few are the same ones each time, many are others each time."""
    return settings(
        max_examples=examples,
        stateful_step_count=25,
        deadline=None,
        database=None,
        derandomize=examples < 100,
        phases=phases or (Phase.generate, Phase.shrink),
        report_multiple_bugs=False,  # one is enough, and looking for others takes as long again
        suppress_health_check=list(HealthCheck),
    )


def test_the_store_behaves_like_a_dictionary(
    prepared: Path, scale: Callable[[int, int], int], figures: Callable[..., None]
) -> None:
    """Agents, editor, git and crashes in random orders: after each step the store holds what it should (section 8)."""

    class Machine(StoreMachine):
        pass

    Machine.prepared = prepared
    examples = scale(5, 600)
    run_state_machine_as_test(Machine, settings=machine_settings(examples))
    figures("state machine", points=examples * 25, lost=0)


@pytest.mark.parametrize("variant", ["no recovery", "no journal"])
def test_the_machine_notices_a_broken_store(prepared: Path, variant: str) -> None:
    """The same runs against a store without one of its safeguards end with a difference."""

    @seed(7)  # any number finds one; this one soon
    class Machine(StoreMachine):
        pass

    Machine.prepared = prepared
    with broken.in_force(variant), pytest.raises((AssertionError, BaseExceptionGroup)):
        run_state_machine_as_test(Machine, settings=machine_settings(60, Phase.generate))
    assert os.listdir(prepared)

"""A crowd: many processes that write to one workspace at once, and a person who works in the same repository.

The writers are forked from one process that has imported memfs already, so that 64 of them cost what 64 forks cost.
Their acknowledgements are lines that a writer writes only after the store returned; the test's own process reads and
keeps them. Run as a script it is that one process.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from kit import broken

FAULTS = Path(__file__).parent.parent
SETTINGS = {"history.commit": "interval", "history.interval_seconds": 0.3, "index.engine": "memory"}


class Crowd:
    """Running writers, and what they said so far."""

    def __init__(self, root: Path, work: str, writers: int, writes: int, variant: str = "") -> None:
        """Start them. ``work`` and ``variant`` are rows of the tables below."""
        command = [sys.executable, "-m", "kit.crowd", str(root), work, str(writers), str(writes), variant]
        self._process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(FAULTS)},
            start_new_session=True,
        )
        self._output: list[str] = []
        self._wrong: list[str] = []
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._readers = [
            threading.Thread(target=lines.extend, args=(stream,))
            for lines, stream in ((self._output, self._process.stdout), (self._wrong, self._process.stderr))
        ]
        for reader in self._readers:
            reader.start()

    def running(self) -> bool:
        """Whether any writer is still at work."""
        return self._process.poll() is None

    def ended(self) -> tuple[list[list[str]], str]:
        """Wait for all; the words of each acknowledgement, and what went wrong in the writers' own words."""
        self._process.wait()
        for reader in self._readers:
            reader.join()
        for stream in (self._process.stdout, self._process.stderr):
            assert stream is not None
            stream.close()
        return self._words(), "".join(self._wrong)

    def ended_or(self, noticed: Callable[[list[list[str]]], bool], seconds: float) -> tuple[list[list[str]], str]:
        """``ended``, but kill all as soon as what they said shows it, or after so long.

        A crowd of broken writers may be in each other's way forever.
        """
        end = time.monotonic() + seconds
        while self.running() and time.monotonic() < end and not self._wrong and not noticed(self._words()):
            time.sleep(0.05)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        return self.ended()

    def _words(self) -> list[list[str]]:
        return [line.split() for line in list(self._output) if line.endswith("\n")]


# -- the person ---------------------------------------------------------------------------------------------------
class Person:
    """Somebody at the keyboard: runs git commands at random, and counts how many of each worked."""

    def __init__(self, root: Path, seed: int, rough: bool = False) -> None:
        """``rough`` adds commands that throw work away."""
        self.root = root
        self.done: dict[str, int] = {}
        self.log: list[str] = []
        self._rng = random.Random(seed)
        self._rough = rough
        self._number = 0

    def act(self) -> None:
        """One command, or one short sequence as people type it."""
        habits: list[Callable[[], None]] = [self._checkout, self._commit, self._commit_all]
        if self._rough:
            habits += [self._reset, self._stash, self._force_checkout, self._amend, self._rebase, self._merge]
            habits += [self._clean, self._detach, self._add_all, self._gc, self._new_branch]
        self._rng.choice(habits)()

    def _git(self, habit: str, *words: str) -> bool:
        done = subprocess.run(["git", "-C", str(self.root), *words], capture_output=True, text=True, check=False)
        self.done[habit] = self.done.get(habit, 0) + (done.returncode == 0)
        self.log.append(f"{' '.join(words)}: {done.returncode} {done.stderr.strip()[:200]}")
        return done.returncode == 0

    def _note(self) -> str:
        self._number += 1
        (self.root / "notes.txt").write_text(f"note {self._number}\n")
        return f"note {self._number}"

    def _checkout(self) -> None:
        self._git("checkout", "checkout", "-q", self._rng.choice(["main", "other"]))

    def _commit(self) -> None:
        message = self._note()
        self._git("add", "add", "notes.txt")
        self._git("commit", "commit", "-q", "-m", message, "notes.txt")

    def _commit_all(self) -> None:
        self._git("commit -a", "commit", "-q", "-a", "-m", self._note())

    def _reset(self) -> None:
        self._git("reset", "reset", "-q", "--hard", "HEAD~1")

    def _stash(self) -> None:
        if self._git("stash", "stash", "push", "-q", "-u"):
            self._git("stash pop", "stash", "pop", "-q")

    def _force_checkout(self) -> None:
        self._git("checkout -f", "checkout", "-q", "-f", self._rng.choice(["main", "other"]))

    def _amend(self) -> None:
        self._git("amend", "commit", "-q", "--amend", "-m", self._note())

    def _rebase(self) -> None:
        if not self._git("rebase", "rebase", "-q", self._rng.choice(["main", "other"])):
            self._git("rebase --abort", "rebase", "--abort")

    def _merge(self) -> None:
        if not self._git("merge", "merge", "-q", "-m", "merged", self._rng.choice(["main", "other"])):
            self._git("merge --abort", "merge", "--abort")

    def _clean(self) -> None:
        self._git("clean", "clean", "-q", "-f", "-d")

    def _detach(self) -> None:
        if self._git("detach", "checkout", "-q", "--detach"):
            self._git("checkout", "checkout", "-q", "main")

    def _add_all(self) -> None:
        self._git("add -A", "add", "-A")
        self._git("commit of all", "commit", "-q", "-m", self._note())

    def _gc(self) -> None:
        self._git("gc", "gc", "-q")

    def _new_branch(self) -> None:
        if self._git("new branch", "checkout", "-q", "-b", "passing"):
            self._git("checkout", "checkout", "-q", "main")
            self._git("branch -d", "branch", "-q", "-D", "passing")

    def settle(self) -> None:
        """End whatever is in progress, and come back to a branch."""
        for verb in ("rebase", "merge"):
            self._git("abort", verb, "--abort")
        self._git("home", "checkout", "-q", "-f", "main")


# -- deliberately broken variants ---------------------------------------------------------------------------------
def add_all() -> None:
    """Commits as a tutorial has it: everything is added and committed, and what git said is not looked at."""
    from memfs.store.commits import Committer
    from memfs.store.parts import FlushResult

    def flush(self: Committer, **_: object) -> FlushResult:
        parts = self._parts
        root = str(parts.tree.root)
        with parts.lock.hold("naive"):
            waiting = {operation.id for operation in parts.journal.operations()}
        subprocess.run(["git", "-C", root, "add", "-A"], capture_output=True, check=False)
        subprocess.run(["git", "-C", root, "commit", "-q", "-m", "all"], capture_output=True, check=False)
        with parts.lock.hold("naive"):
            parts.journal.drop(waiting)
        return FlushResult()

    Committer.flush = flush  # type: ignore[assignment,method-assign]


VARIANTS: dict[str, Callable[[], None]] = {"add all": add_all}
"""Those that make sense for a crowd only; all others are in ``kit.broken``."""


# -- the writers' side --------------------------------------------------------------------------------------------
def _say(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())  # one short write to a pipe is never torn


def items(root: str, name: str, writes: int) -> None:
    """Items of its own, one after the other."""
    from memfs import MemoryItem, Origin, open_workspace

    with open_workspace(root, watch=False, settings=SETTINGS) as workspace:
        for number in range(writes):
            item = MemoryItem(f"{name} says {number}", "knowledge", id=f"{name}-{number}", origin=Origin(agent=name))
            stored = workspace.store.put(item)
            _say(stored.id, stored.sha256)


def counter(root: str, name: str, writes: int) -> None:
    """One item that all count up; each number is acknowledged with the version it replaced."""
    from memfs import Conflict, open_workspace

    with open_workspace(root, watch=False, settings={**SETTINGS, "history.commit": "manual"}) as workspace:
        done = 0
        while done < writes:
            item = workspace.store.get("counter")
            assert item is not None
            try:
                stored = workspace.store.put(item.replace(content=str(int(item.content) + 1)), expected=item.sha256)
            except Conflict as error:
                _say("conflict", item.sha256, error.current)
            else:
                done += 1
                _say("won", item.sha256, stored.sha256)


def create(root: str, name: str, writes: int) -> None:
    """Create-only writes of the same ids."""
    from memfs import IdExists, MemoryItem, open_workspace

    with open_workspace(root, watch=False, settings={**SETTINGS, "history.commit": "manual"}) as workspace:
        for number in range(writes):
            try:
                workspace.store.put(MemoryItem(f"by {name}", "knowledge", id=f"wanted-{number}"), expected="")
            except IdExists:
                _say("exists", number)
            else:
                _say("created", number, name)


WORK: dict[str, Callable[[str, str, int], None]] = {"items": items, "counter": counter, "create": create}


def _writer(work: str, root: str, name: str, writes: int) -> int:
    try:
        WORK[work](root, name, writes)
    except BaseException:  # noqa: BLE001  reported to the test
        os.write(2, traceback.format_exc().encode())
        return 1
    return 0


def main(words: Sequence[str]) -> None:
    """Fork the writers and wait for them."""
    import memfs.workspace

    del memfs
    root, work, writers, writes, variant = words
    if variant in VARIANTS:
        VARIANTS[variant]()
        variant = ""
    with broken.in_force(variant):
        children = [_forked(work, root, f"agent{number}", int(writes)) for number in range(int(writers))]
        for child in children:
            os.waitpid(child, 0)


def _forked(work: str, root: str, name: str, writes: int) -> int:
    child = os.fork()
    if child == 0:
        os._exit(_writer(work, root, name, writes))
    return child


if __name__ == "__main__":
    main(sys.argv[1:])

"""Every test runs in a world of its own: home, git configuration, caches and environment."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

# A busy machine is not a failure. What fails once fails again; 'make soak' takes other examples each time.
settings.register_profile("memfs", deadline=None, derandomize=True, max_examples=50)
settings.register_profile("soak", deadline=None, max_examples=2000)
settings.load_profile("memfs")
pytest.register_assert_rewrite("kit")  # its assertions say what they found
from kit import figures as fault_figures  # noqa: E402
from kit.copies import copy_workspace  # noqa: E402
from kit.forked_command import ForkedCommands  # noqa: E402
from memfs.git import process  # noqa: E402

if TYPE_CHECKING:
    from memfs.workspace import Workspace

_COMMANDS = pytest.StashKey[ForkedCommands]()
_MEMORY_DISK, _ROOM = Path("/dev/shm"), 8 << 30


def pytest_addoption(parser: pytest.Parser) -> None:
    """The long form of the fault tiers, and where their figures go."""
    group = parser.getgroup("memfs")
    group.addoption("--soak", action="store_true", help="run what has a long form, at full length, and nothing else")
    group.addoption("--figures", type=Path, metavar="FILE", help="write what the fault tiers tried to FILE")


def pytest_configure(config: pytest.Config) -> None:
    """Choose how examples of the property tests are found, and keep the tests' files in memory where there is room."""
    settings.load_profile("soak" if config.option.soak else "memfs")
    gc.disable()  # while what is collected stays
    if _MEMORY_DISK.is_dir() and os.access(_MEMORY_DISK, os.W_OK) and shutil.disk_usage(_MEMORY_DISK).free > _ROOM:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY_DISK))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Freeze the collected tests, so that the garbage collector skips them, and collect less often."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()
    session.config.stash[_COMMANDS] = ForkedCommands(large=True)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End what commands are forked from."""
    if _COMMANDS in config.stash:
        config.stash[_COMMANDS].close()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out of a soak what is no longer there than in ``make test``."""
    if config.option.soak:
        short = [item for item in items if not _has_long_form(item)]
        items[:] = [item for item in items if _has_long_form(item)]
        config.hook.pytest_deselected(items=short)


def _has_long_form(item: pytest.Item) -> bool:
    return "scale" in getattr(item, "fixturenames", ()) or hasattr(getattr(item, "obj", None), "hypothesis")


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say what the fault tiers tried, and which of them could not run."""
    reports = [report for found in terminalreporter.stats.values() for report in found if hasattr(report, "when")]
    rows = fault_figures.rows_of(report for report in reports if report.when == "call")
    if rows and (config.option.soak or config.option.verbose > 0):
        terminalreporter.section("fault tiers")
        terminalreporter.write(fault_figures.table(rows))
    if config.option.figures:
        skipped = [f"{report.nodeid}: {report.longrepr[2]}" for report in terminalreporter.stats.get("skipped", [])]
        fault_figures.write(config.option.figures, rows, skipped)


@pytest.fixture
def scale(request: pytest.FixtureRequest) -> Callable[[int, int], int]:
    """How many to try: ``scale(short, long)`` is the first number in ``make test``, the second in ``make soak``."""
    soak = bool(request.config.option.soak)
    return lambda short, long: long if soak else short


@pytest.fixture
def figures(record_property: Callable[[str, object], None]) -> Callable[..., None]:
    """Say what a tier tried: ``figures("kill -9", points=1000, acknowledged=8123, lost=0)``."""
    began = time.monotonic()

    def record(tier: str, **counted: int | float) -> None:
        record_property(fault_figures.PROPERTY, (tier, {**counted, "seconds": round(time.monotonic() - began, 1)}))

    return record


CONFIGURATION = "ContextMemory/configuration"
_homes = count()


@pytest.fixture(autouse=True)
def own_world(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Clear ``GIT_*`` and ``MEMFS_*``, and give the test its own HOME and git identity, in UTC."""
    for name in list(os.environ):
        if name.startswith(("GIT_", "MEMFS_", "XDG_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("MEMFS_RESIDENT", "off")  # a hook would leave one behind
    home = tmp_path_factory.getbasetemp() / "homes" / str(next(_homes))  # mktemp looks through all there are
    home.mkdir(parents=True)
    (home / ".gitconfig").write_text(
        "[user]\n\tname = Ada Person\n\temail = ada@example.org\n"
        "[init]\n\tdefaultBranch = main\n[commit]\n\tgpgSign = false\n[core]\n\tfsync = none\n"
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("MEMFS_RECALL_STATE_SECONDS", "0")  # an answer is whole on a busy machine, too
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    return home


@pytest.fixture(autouse=True)
def _nothing_stays_open(own_world: Path) -> Iterator[None]:
    """Close what facades of the test left open: a watcher of one test must not get in the way of another."""
    yield
    kept = sys.modules.get("memfs.facades.open_workspaces")
    if kept is not None:
        kept.close_all()
    for thread in threading.enumerate():
        if thread.name == "memfs-commit-window":  # of a process that died in the test; it would commit during another
            thread._target.__self__.close()  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def _quick_disk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for the disk only where the power may be cut: the hook before each operation sees a sync all the same."""
    if request.node.get_closest_marker("durable") is None:
        monkeypatch.setattr(os, "fsync", lambda fd: None)
        monkeypatch.setattr(os, "fdatasync", lambda fd: None)
        monkeypatch.setattr("memfs.fs.io.sync", lambda folder: None)
        monkeypatch.setitem(process.SETTINGS, "core.fsync", "none")


@pytest.fixture
def git() -> Callable[..., str]:
    """Run git as a person would, in a folder: ``git(folder, "log", "--oneline")``."""

    def run(folder: Path, *words: str, check: bool = True, **options: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(folder), *words],
            check=False,
            capture_output=True,
            text=True,
            env={**os.environ, **options},
        )
        if check and done.returncode:
            raise AssertionError(f"git {' '.join(words)}: {done.stderr or done.stdout}")
        return done.stdout

    return run


@pytest.fixture
def memfs(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run a command in a folder: ``memfs(folder, "list")``; what it printed, once it ended as expected."""
    from memfs.doors.cli.app import run

    def call(root: Path, *words: str, code: int = 0) -> str:
        capsys.readouterr()
        found = run(["-C", str(root), *words])
        captured = capsys.readouterr()
        assert found == code, captured
        return captured.out + captured.err

    return call


@pytest.fixture(scope="session")
def forked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A ``memfs`` command that is quick to start, for tests that run many as people do."""
    with closing(ForkedCommands()) as commands:
        yield commands.write(tmp_path_factory.mktemp("forked"))


@pytest.fixture(scope="session")
def forked_python(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Path:
    """An interpreter that is quick to start, and has imported whatever the tests have: memfs, libraries of doors."""
    return pytestconfig.stash[_COMMANDS].write(tmp_path_factory.mktemp("forked"), "python")


@pytest.fixture
def memfs_on_path(forked: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a ``memfs`` command of this interpreter on PATH; returns its folder."""
    folder = tmp_path_factory.mktemp("bin")
    shutil.copy(forked, folder / "memfs")
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    return folder


@pytest.fixture
def learning_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """What memfs learns by itself is written, as where a workspace has a memory context or a ``[memory]`` table."""
    monkeypatch.setenv("MEMFS_LEARNING_PATTERNS", "write")
    monkeypatch.setenv("MEMFS_LEARNING_RULES", "write")


@pytest.fixture
def private_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test's workspaces are one person's private memory, in which what is derived from a prompt may quote it."""
    monkeypatch.setattr("memfs.private.projects_folder", lambda: tmp_path)


@pytest.fixture
def opened(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Workspace]]:
    """Open workspaces that are closed at the end of the test; without a path, a new one of its own.

    A new one is a copy of one that ``open_workspace`` made once, except inside a repository: making it takes five times
    as long.
    """
    from memfs.workspace import open_workspace

    pristine = tmp_path_factory.getbasetemp() / "pristine"

    with ExitStack() as stack:

        def open_one(path: Path | None = None, **settings: Any) -> Workspace:
            dotted = {name.replace("__", "."): value for name, value in settings.items()}
            dotted = {"index.engine": "memory", "history.commit": "manual", **dotted}
            root = path or tmp_path / "workspace"
            create = not (root / "ContextMemory").exists()
            if create and not root.exists() and not any((folder / ".git").exists() for folder in root.parents):
                if not pristine.exists():
                    open_workspace(pristine, create=True, watch=False).close()
                    (pristine / CONFIGURATION).mkdir()  # a test may write what a person would
                root.parent.mkdir(parents=True, exist_ok=True)
                copy_workspace(pristine, root)
                create = False
            workspace = open_workspace(root, create=create, watch=False, settings=dotted)
            (root / CONFIGURATION).mkdir(exist_ok=True)
            stack.callback(workspace.close)
            return workspace

        yield open_one

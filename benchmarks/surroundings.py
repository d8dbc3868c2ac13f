"""Surroundings: a HOME, a cache and a git configuration of the benchmark's own, and the facts about the machine.

Everything is written into one temporary folder on the file system of the checkout, outside of any repository.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

_CHECKOUT = Path(__file__).resolve().parent.parent
_CLEARED = ("GIT_", "MEMFS_", "XDG_", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX", "COVERAGE_")
_GIT_CONFIG = "[user]\n\tname = Bench\n\temail = bench@example.org\n[init]\n\tdefaultBranch = main\n[gc]\n\tauto = 0\n"


@contextmanager
def hermetic(folder: Path | None = None) -> Iterator[Path]:
    """A folder for everything the benchmark writes; the environment knows no other. Removed afterwards."""
    before = dict(os.environ)
    place = Path(tempfile.mkdtemp(prefix="memfs-bench-", dir=folder or _same_file_system()))
    try:
        for name in list(os.environ):
            if name.startswith(_CLEARED):
                del os.environ[name]
        home = place / "home"
        home.mkdir()
        (home / ".gitconfig").write_text(_GIT_CONFIG, encoding="utf-8")
        os.environ.update(HOME=str(home), XDG_CACHE_HOME=str(home / "cache"), GIT_CONFIG_NOSYSTEM="1")
        yield place
    finally:
        os.environ.clear()
        os.environ.update(before)
        shutil.rmtree(place, ignore_errors=True)


def _same_file_system() -> Path:
    """The temporary folder if it lies on the checkout's file system, else the folder around the checkout."""
    temporary = Path(tempfile.gettempdir())
    around = _CHECKOUT.parent
    if temporary.stat().st_dev == _CHECKOUT.stat().st_dev or not os.access(around, os.W_OK):
        return temporary
    return around


def facts(folder: Path) -> list[tuple[str, str]]:
    """What a reader must know to judge the figures, as names and values; no paths, no host name."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return [
        ("date", f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"),
        ("processor", f"{os.cpu_count()} cores, {_processor()}"),
        ("memory", _memory()),
        ("system", f"{platform.system()} {platform.release()}"),
        ("file system", _file_system(folder)),
        ("Python", f"{platform.python_implementation()} {platform.python_version()}"),
        ("git", _run("git", "--version").removeprefix("git version ")),
        ("load at the start", f"{load:.1f}"),
    ]


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _memory() -> str:
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return "unknown"
    return f"{size / 2**30:.0f} GiB"


def _file_system(folder: Path) -> str:
    try:
        lines = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    except OSError:
        return "unknown"
    mounts = {words[1]: words[2] for line in lines if len(words := line.split()) > 2}
    above = [str(folder.resolve()), *map(str, folder.resolve().parents)]
    return next((mounts[place] for place in above if place in mounts), "unknown")


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def git(root: Path, *words: str, stdin: str | None = None) -> str:
    """Run git as a person would."""
    done = subprocess.run(["git", "-C", str(root), *words], check=False, capture_output=True, text=True, input=stdin)
    if done.returncode:
        raise RuntimeError(f"git {words[0]}: {done.stderr or done.stdout}")
    return done.stdout


def memfs_command() -> list[str]:
    """The console script of this interpreter, or ``python -m memfs`` where it is not installed."""
    script = Path(sys.executable).parent / "memfs"
    return [str(script)] if script.exists() else [sys.executable, "-m", "memfs"]

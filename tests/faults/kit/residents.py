"""A workspace with a resident: fixtures, and the command as far as a resident answers it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.patience import LONG
from memfs.doors.resident import place

Asked = Callable[..., "subprocess.CompletedProcess[bytes]"]

NOBODY = 77
CLIENT = f"""
import os, sys
sys.path.pop(0)
from memfs.doors.resident import client
code = client.run_in_resident(sys.argv[1:])
os._exit({NOBODY} if code is None else code)
"""
"""The command as far as a resident answers it: it ends with 77 where none does."""


@pytest.fixture
def root(opened: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A workspace with three memories, and with no resident afterwards."""
    monkeypatch.setenv("MEMFS_INDEX_ENGINE", "sqlite")
    monkeypatch.setenv("MEMFS_RESIDENT", str(int(LONG * 1000) % 100_000))
    workspace = opened()
    workspace.remember("Staging is rebuilt on Sundays", tags=["staging"], id="staging")
    workspace.remember("Café and naïve words stay whole: Grüße", type="preference", id="umlauts")
    workspace.remember("The gateway retries three times", title="Retries", importance=2.0, id="retries")
    workspace.close()
    folder = Path(workspace.root)
    yield folder
    place.stop(folder)


@pytest.fixture
def ask(forked: Path, root: Path) -> Asked:
    """Run a command in the workspace's folder; ``alone`` where no resident is to be asked."""

    def call(*words: str, alone: bool = False, cwd: Path | None = None, **given: Any) -> Any:
        env = {**os.environ, **given.pop("env", {}), **({"MEMFS_RESIDENT": "off"} if alone else {})}
        command = [str(forked), *words] if alone else [str(forked), "-c", CLIENT, *words]
        given.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run(command, cwd=cwd or root, env=env, capture_output=True, check=False, **given)

    return call


@pytest.fixture
def resident(forked: Path, root: Path) -> int:
    """A resident of the workspace; its process id."""
    subprocess.run([str(forked), "-C", str(root), "serve", "--detach"], check=True, stdout=subprocess.DEVNULL)
    process = place.resident_of(root)
    assert process
    return process

"""Interrupted: what a process that was killed in the middle of a commit left in git's folder.

Owns noticing it when a workspace is opened. A lock of ours that outlives its process would stop the person's own git,
so it does not wait for the next commit. How a commit is ended is ``memfs.history.commits``'s business.
"""

from __future__ import annotations

import os
from pathlib import Path

from memfs.errors import MemfsError
from memfs.files import io
from memfs.model import Problem
from memfs.store.parts import Parts
from memfs.store.setaside import FOLDER

_TRACES = (".tmp", "commit.json")
_SECOND_NAME = "index."


def end_interrupted(parts: Parts) -> list[Problem]:
    """End the commit that a killed process began, if there is one and nobody is at work; say so.

    It never raises and never waits: whoever commits next comes this way again.
    """
    aside = parts.repository.state / FOLDER
    if not _traces(parts.repository.state) and not _traces(aside):
        return []
    from memfs.history.commits import recover  # a process that finds nothing is spared what commits need

    try:
        with parts.commit_lock.hold("end an interrupted commit", timeout=0):
            io.sweep(aside)  # contents that it was about to set aside
            return recover(parts.repository)
    except MemfsError:
        return []


def _traces(folder: Path) -> bool:
    try:
        names = os.listdir(folder)
    except OSError:
        return False
    return any(name.endswith(_TRACES) or name.startswith(_SECOND_NAME) for name in names)

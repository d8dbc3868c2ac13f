"""Many blobs are read at once, and what is missing or is none is reported."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from memfs.errors import HistoryUnavailable
from memfs.git import process
from memfs.git.repository import Repository


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """An empty repository."""
    return Repository.create(tmp_path)


def test_contents_come_as_they_are(
    repository: Repository, tmp_path: Path, git: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blobs of any bytes come back, in several requests where there are many (K4)."""
    monkeypatch.setattr(process, "_AT_ONCE", 3)
    wanted = {}
    for number, data in enumerate((b"", b"\n", b"one\n", b"\0\xff" * 9, b"x" * 70_000, b"last", b"blob 3\n")):
        (tmp_path / f"f{number}").write_bytes(data)
        wanted[git(tmp_path, "hash-object", "-w", f"f{number}").strip()] = data
    tree = git(tmp_path, "hash-object", "-w", "-t", "tree", "/dev/null").strip()
    sizes = process.sizes(repository.git, [*wanted, "0" * 40, tree])
    assert sizes == {blob: len(data) for blob, data in wanted.items()}
    assert dict(process.contents(repository.git, sizes)) == wanted
    assert dict(process.contents(repository.git, {})) == {}
    assert process.sizes(repository.git, []) == {}


def test_a_missing_blob_is_reported(repository: Repository) -> None:
    """What is not there is an error and no empty file."""
    with pytest.raises(HistoryUnavailable, match="not in the repository"):
        list(process.contents(repository.git, {"1" * 40: 3}))


def test_a_damaged_blob_is_reported(repository: Repository, tmp_path: Path, git: Callable[..., str]) -> None:
    """Other bytes under a blob's name, sound as they are, are an error and no content."""
    blobs = []
    for name in "ab":
        (tmp_path / name).write_text(name)
        blobs.append(git(tmp_path, "hash-object", "-w", name).strip())
    one, other = (repository.common_dir / "objects" / blob[:2] / blob[2:] for blob in blobs)
    one.chmod(0o600)
    one.write_bytes(other.read_bytes())
    with pytest.raises(HistoryUnavailable, match="damaged"):
        list(process.contents(repository.git, {blobs[0]: 1}))

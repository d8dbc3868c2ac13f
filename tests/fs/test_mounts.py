"""Which file system a path is on."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from memfs.fs import io as mounts

TABLE = (
    "rootfs / rootfs rw 0 0\n/dev/vda / ext4 rw 0 0\nserver:/x /mnt/net nfs4 rw 0 0\n"
    "tmpfs /mnt/net/deeper tmpfs rw 0 0\n//s/x /mnt/with\\040space cifs rw 0 0\n"
)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/ada", "ext4"),
        ("/mnt/net", "nfs4"),
        ("/mnt/net/project", "nfs4"),
        ("/mnt/network", "ext4"),
        ("/mnt/net/deeper/x", "tmpfs"),
        ("/mnt/with space/x", "cifs"),
    ],
)
def test_the_nearest_and_latest_mount_counts(monkeypatch: pytest.MonkeyPatch, path: str, kind: str) -> None:
    """Of the mounts that hold a path the deepest counts, of two at one place the later; spaces are read back."""
    monkeypatch.setattr(mounts, "open", lambda *_, **__: io.StringIO(TABLE), raising=False)
    assert mounts.file_system(path) == kind


def test_a_system_that_does_not_know_is_not_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without a table of mounts the answer is empty."""

    def refuse(*_: object, **__: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(mounts, "open", refuse, raising=False)
    assert mounts.file_system(str(tmp_path)) == ""

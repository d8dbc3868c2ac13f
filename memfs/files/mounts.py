"""Mounts: which sort of file system a path is on, as the system tells.

Owns reading the table of mounts. What follows from the sort is decided by those who ask.
"""

from __future__ import annotations

NETWORK_TYPES = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "lustre", "gfs2", "ocfs2", "beegfs"}
    | {"fuse.sshfs", "fuse.rclone", "fuse.s3fs", "fuse.glusterfs", "fuse.ceph"}
)
"""File systems that other machines change: locks cannot be relied on there."""

UNTOLD_TYPES = NETWORK_TYPES | {"vboxsf", "virtiofs", "prl_fs", "fuse.vmhgfs-fuse", "fuse.grpcfuse", "fuse.osxfs"}
"""Those, and folders that a virtual machine shares with its host: no event tells what the other side changes."""

_ESCAPES = (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\"))


def file_system(path: str) -> str:
    """The type of the file system a path is on, "" where the system does not tell."""
    try:
        with open("/proc/self/mounts", encoding="utf-8", errors="surrogateescape") as mounts:
            rows = [line.split() for line in mounts]
    except OSError:
        return ""
    places = [(_plain(row[1]).rstrip("/") + "/", row[2]) for row in rows if len(row) > 2]
    # Of two mounts at one place the later covers the earlier.
    holding = [(len(place), number) for number, (place, _) in enumerate(places) if (path + "/").startswith(place)]
    return places[max(holding)[1]][1] if holding else ""


def _plain(place: str) -> str:
    for escape, character in _ESCAPES:
        place = place.replace(escape, character)
    return place

"""Recognises network file systems, on which SQLite's locks cannot be trusted."""

from __future__ import annotations

import re
from pathlib import Path

NETWORK_FILE_SYSTEMS = frozenset(
    {
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "9p", "ceph", "glusterfs", "lustre"),
        *("fuse.sshfs", "fuse.glusterfs", "fuse.s3fs"),
    }
)
MOUNTS = Path("/proc/self/mountinfo")

_OCTAL = re.compile(r"\\([0-7]{3})")
"""The escape of a space in a mount point."""


def file_system_of(folder: Path, mounts: Path = MOUNTS) -> str:
    """Return the type of the file system that a folder is on; '' if it cannot be determined."""
    try:
        lines = mounts.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    target = folder.resolve()
    deepest, kind = -1, ""
    for line in lines:
        left, _, right = line.partition(" - ")
        point = Path(_OCTAL.sub(lambda match: chr(int(match[1], 8)), left.split(" ")[4]))
        if (point == target or point in target.parents) and len(point.parts) >= deepest:
            deepest, kind = len(point.parts), right.split(" ")[0]
    return kind

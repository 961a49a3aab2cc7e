"""Whether a store lies on the disk of another machine. Asked where the device does not tell that it is our own."""

from __future__ import annotations

import os

from runguard.errors import UnsafeError

# File systems of another machine, where SQLite's locks are not to be relied on. 9p and virtiofs are left out: they
# are how a virtual machine sees its own host.
_NETWORK = frozenset((
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "smb2", "ncpfs", "afs", "coda", "ceph", "glusterfs", "lustre", "beegfs",
    "gpfs", "orangefs", "pvfs2", "davfs", "fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.ceph-fuse", "fuse.s3fs",
    "fuse.gcsfuse", "fuse.rclone", "fuse.juicefs", "fuse.davfs", "fuse.curlftpfs", "fuse.moosefs", "fuse.mfs",
))  # fmt: skip


def refuse_network(path: str, device: int, mountinfo: str | None = None) -> None:
    """Raise UnsafeError where the device is a network file system by `mountinfo` (default: the kernel's)."""
    kind = kind_of(device, mountinfo)
    if kind in _NETWORK:
        raise UnsafeError(
            f"store {path}: it lies on a network file system ({kind}), where SQLite can lose records; "
            "use --store with a path on a local disk"
        )


def is_network(kind: str) -> bool:
    """Tell whether this kind of file system lies on another machine."""
    return kind in _NETWORK


def kind_of(device: int, mountinfo: str | None = None) -> str:
    """Return the kind of the file system on a device, or "" where that is not to be found."""
    if mountinfo is None:
        try:
            with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
                mountinfo = file.read()
        except OSError:
            return ""
    number = f"{os.major(device)}:{os.minor(device)}"
    for row in mountinfo.splitlines():
        words = row.split(" ") if number in row else ()  # containers have hundreds of mounts
        if len(words) > 6 and words[2] == number and "-" in words:
            return words[words.index("-") + 1]
    return ""

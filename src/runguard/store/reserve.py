"""The journal's reserve: room that was claimed before the disk filled, written in place.

The file never changes its length. Lines stand one after another from the start; the rest is NUL.
"""

from __future__ import annotations

import errno
import os

from runguard.errors import reason
from runguard.store import journal


def claim(path: str) -> str:
    """Make the reserve while there is room. Returns "" or a remark.

    The bytes are written, not only allocated: overwriting written blocks needs no room on ext4 and xfs. A file system
    that copies on write (btrfs) promises less.
    """
    try:
        file = journal.locked(path, os.O_RDWR | os.O_CREAT, journal.LOCK_WAIT_S)
        try:
            missing = journal.RESERVE_BYTES - os.fstat(file).st_size
            if missing > 0:
                _write(file, bytes(missing), journal.RESERVE_BYTES - missing)
        finally:
            os.close(file)
    except OSError as error:
        return f"the journal has no reserve for a full disk: {path}: {reason(error)} (uid {os.geteuid()})"
    return ""


def add(path: str, line: bytes, wait_s: float) -> None:
    """Add a line in place, durably. Raises OSError: ENOENT without a reserve, ENOSPC where it is full."""
    file = journal.locked(path, os.O_RDWR, wait_s)
    try:
        kept = read(file)
        if kept and not kept.endswith(b"\n"):
            line = b"\n" + line  # what was torn before stays a line of its own
        if len(kept) + len(line) > os.fstat(file).st_size:
            raise OSError(errno.ENOSPC, "the reserve is full")
        _write(file, line, len(kept))
    finally:
        os.close(file)


def read(file: int) -> bytes:
    """Return what the open reserve holds."""
    return os.pread(file, journal.RESERVE_BYTES, 0).split(b"\0", 1)[0]


def wipe(file: int, length: int) -> None:
    """Empty the open reserve of its `length` bytes, durably. Raises OSError."""
    _write(file, bytes(length), 0)


def _write(file: int, data: bytes, offset: int) -> None:
    done = 0
    while done < len(data):
        done += os.pwrite(file, data[done:], offset + done)
    os.fdatasync(file)

"""File descriptors that commands must not trip over."""

from __future__ import annotations

import fcntl
import os

LOWEST = 64  # shell scripts use 3 to 9 by hand, and some close or reuse everything below a few dozen


def open_missing_stdio() -> None:
    """Open /dev/null on each of 0, 1 and 2 that is closed, or the next file we open would become the command's."""
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            opened = os.open("/dev/null", os.O_RDWR)  # the lowest free number, so fd itself
            os.set_inheritable(opened, True)


def high_fd(fd: int) -> int:
    """Move `fd` to 64 or above and return its new number, close-on-exec; `fd` itself is closed.

    Where the limit on open files leaves nothing there, take the highest free number.
    """
    if fd >= LOWEST:
        return fd
    moved = _duplicate(fd, LOWEST)
    if moved is None:
        limit = min(os.sysconf("SC_OPEN_MAX"), LOWEST)
        moved = next((new for low in range(limit - 1, fd, -1) if (new := _duplicate(fd, low)) is not None), None)
    if moved is None:
        return fd
    os.close(fd)
    return moved


def _duplicate(fd: int, lowest: int) -> int | None:
    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, lowest)
    except OSError:
        return None

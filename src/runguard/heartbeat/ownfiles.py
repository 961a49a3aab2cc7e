"""Files of ours alone: opened where nobody else could have put them, written whole and synced or not at all."""

from __future__ import annotations

import errno
import fcntl
import os
import time

from runguard import private

_ALONE_S = 2.0  # for the few steps that nobody else may take meanwhile; then they are taken all the same


def opened(path: str, flags: int = os.O_RDONLY) -> int:
    """Open a file of ours alone, following no link. Raises OSError: EPERM where it is not."""
    fd = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY)
    if flaw := private.file_flaw(os.fstat(fd)):
        os.close(fd)
        raise OSError(errno.EPERM, flaw)
    return fd


def write(path: str, content: bytes) -> None:
    """Write a new file, 0600 whatever the umask, synced. Raises OSError, leaving nothing behind."""
    remove(path)  # of a process with our number, that died
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.fchmod(fd, 0o600)
        while content:
            content = content[os.write(fd, content) :]
        os.fsync(fd)
    except OSError:
        remove(path)
        raise
    finally:
        os.close(fd)


def remove(path: str) -> None:
    """Remove a file, if it is there and can be removed."""
    try:
        os.unlink(path)
    except OSError:
        return


class Alone:
    """The lock of the directory, for the few steps between looking at a slot and replacing or removing it.

    Held for microseconds: whoever holds it longer has been stopped, and is not waited for.
    """

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def __enter__(self) -> None:
        self._fd = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        until_s = time.monotonic() + _ALONE_S
        while not self._try() and time.monotonic() < until_s:
            time.sleep(0.005)

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    def _try(self) -> bool:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

"""One kernel lock per job: `flock(2)` on a file that is never unlinked.

The command inherits the descriptor, so the lock lives as long as the work even if the guard is killed; on a normal end
`release` unlocks every duplicate at once, so a daemon that the job left behind cannot hold it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat

from runguard import private
from runguard.errors import UnsafeError
from runguard.guard.process import high_fd
from runguard.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

SUFFIX = ".lock"
_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # non-blocking: opening a FIFO must not hang


class Lock(NamedTuple):
    """A lock that this process holds; the command inherits `fd`."""

    fd: int
    path: str

    def note(self, text: bytes) -> None:
        """Write who holds the lock, for display to those it refuses. A full disk is no reason to give it up."""
        try:
            os.pwrite(self.fd, text, 0)
            os.ftruncate(self.fd, len(text))  # emptying it first would cost a block freed and found again
        except OSError:
            return

    def release(self) -> None:
        """Unlock for every duplicate of the descriptor, also those that processes left behind have inherited."""
        unlock(self.fd)


def unlock(fd: int) -> None:
    """Unlock and close `fd`. Where that fails, the end of this process frees it: the job's status comes first."""
    try:
        fcntl.flock(fd, fcntl.LOCK_UN)
        os.close(fd)
    except OSError:
        return


def at_once(fd: int) -> bool:
    """Take the lock on `fd` for ourselves alone, unless somebody holds it."""
    return _try(fd, fcntl.LOCK_EX)


def shared(fd: int) -> bool:
    """Take the lock on `fd` beside others that share it, unless somebody holds it alone."""
    return _try(fd, fcntl.LOCK_SH)


def take(directory: str, job: str, acquire: Callable[[int], bool] = at_once) -> Lock | None:
    """Take the lock of `job`, or return None where `acquire`, called with the open file, does not get it.

    Raises UnsafeError where the lock file cannot be trusted: then nothing may start.
    """
    ensure_private_directory(directory)
    path = path_of(directory, job)
    for _ in range(100):
        fd = _open(path)
        try:
            _refuse_untrusted(fd, path)
            if not acquire(fd):
                os.close(fd)
                return None
            if _still_named(fd, path):
                return Lock(high_fd(fd), path)
            os.close(fd)  # deleted or replaced between open and lock: the name now leads to another file
        except OSError as error:
            os.close(fd)
            raise _unsafe(path, error.strerror or str(error)) from error
        except UnsafeError:
            os.close(fd)
            raise
    raise _unsafe(path, "it is replaced again and again while it is being locked")


def path_of(directory: str, job: str) -> str:
    """Return the lock file of `job` in the directory of locks."""
    return os.path.join(directory, job + SUFFIX)


def read_note(directory: str, job: str) -> bytes:
    """Return what the holder wrote with `Lock.note`, or nothing."""
    try:
        fd = os.open(path_of(directory, job), os.O_RDONLY | _FLAGS)
    except OSError:
        return b""
    try:
        return os.read(fd, 65_536)
    except OSError:
        return b""
    finally:
        os.close(fd)


def ensure_private_directory(directory: str) -> None:
    """Create `directory` with mode 0700, or raise UnsafeError where others could plant files in it."""
    try:
        flaw = private.make(directory)
    except OSError as error:
        raise _unsafe(directory, error.strerror or str(error)) from error
    if flaw:
        raise _unsafe(directory, flaw)


def _try(fd: int, how: int) -> bool:
    try:
        fcntl.flock(fd, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _open(path: str) -> int:
    """Open the lock file without following links, and without O_CREAT where it exists.

    `fs.protected_regular` refuses O_CREAT on another's file even to root.
    """
    attempts = ((os.O_RDWR, 0), (os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), (os.O_RDWR, 0))
    for flags, mode in attempts:
        try:
            fd = os.open(path, flags | _FLAGS, mode)
        except (FileNotFoundError, FileExistsError):
            continue
        except OSError as error:
            if error.errno == errno.EROFS and os.path.exists(path):
                return os.open(path, os.O_RDONLY | _FLAGS)  # flock needs no write access on a local file system
            why = "it is a symbolic link" if error.errno == errno.ELOOP else error.strerror or str(error)
            why = "it is a FIFO or a device" if error.errno == errno.ENXIO else why
            raise _unsafe(path, why) from error
        if mode:
            os.fchmod(fd, mode)  # whatever the umask
        return fd
    raise _unsafe(path, "it appears and vanishes while it is being opened")


def _refuse_untrusted(fd: int, path: str) -> None:
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode):
        raise _unsafe(path, "not a regular file")
    if found.st_uid != os.geteuid():
        raise _unsafe(path, f"it belongs to uid {found.st_uid}")
    if found.st_nlink > 1:
        raise _unsafe(path, f"it has {found.st_nlink} hard links")


def _still_named(fd: int, path: str) -> bool:
    ours = os.fstat(fd)
    try:
        named = os.lstat(path)
    except FileNotFoundError:
        return False
    return (ours.st_dev, ours.st_ino) == (named.st_dev, named.st_ino)


def _unsafe(path: str, why: str) -> UnsafeError:
    return UnsafeError(f"lock {path}: {why} (uid {os.geteuid()}); nothing was started")

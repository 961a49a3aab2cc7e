"""Locks that may be a while in coming: waited for in the kernel's queue, never polled, and never without end."""

from __future__ import annotations

import errno
import fcntl
import os
import time

from runguard import private
from runguard.errors import StoreError, UnsafeError, reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable

    Stop = Callable[[], bool]  # tells whether to give up waiting
else:
    import _signal  # signal itself imports enum


_LOOK_S = 1.0  # each look may cost the place in the queue


class WriteLock:
    """`write.lock` beside the database: taken around every write and around creating the file."""

    def __init__(self, store_path: str) -> None:
        self._store_path = store_path
        self.path = os.path.join(os.path.dirname(store_path), "write.lock")
        self._file = -1

    def take(self, wait_s: float, stop: Stop | None = None) -> None:
        """Queue for the lock, at most `wait_s` seconds, or one second once `stop` returns true.

        Raises StoreError, naming who holds it, and UnsafeError where others could have planted the file.
        """
        try:
            while not self._try(wait_s, stop):
                self.close()  # the file was replaced while we waited: queue at the new one
        except OSError as error:
            raise StoreError(self._store_path, f"{self.path}: {reason(error)} (uid {os.geteuid()})") from error

    def release(self) -> None:
        """Let the next in the queue write."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_UN)
        except OSError:
            self.close()  # nobody has inherited it: closing unlocks

    def close(self) -> None:
        """Close the file; a lock still held is released."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _try(self, wait_s: float, stop: Stop | None) -> bool:
        if self._file < 0:
            self._open()
        if not take(self._file, wait_s, stop):
            if stop is not None and stop():
                raise StoreError(self._store_path, f"told to stop while waiting for {holders(self.path)}")
            raise StoreError(self._store_path, f"locked for {wait_s:g} s by {holders(self.path)}")
        try:
            return os.path.samestat(os.fstat(self._file), os.stat(self.path))
        except FileNotFoundError:
            return False

    def _open(self) -> None:
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            self._file = os.open(self.path, flags)
        except FileNotFoundError:
            self._file = self._create(flags)
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
                raise
            refuse_untrusted(self.path, os.lstat(self.path))
            raise
        try:
            refuse_untrusted(self.path, os.fstat(self._file))
        except UnsafeError:
            self.close()
            raise

    def _create(self, flags: int) -> int:
        try:
            file = os.open(self.path, flags | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return os.open(self.path, flags)  # another start was faster
        os.fchmod(file, 0o600)  # whatever the umask
        return file


def refuse_untrusted(path: str, found: os.stat_result) -> None:
    """Raise UnsafeError unless the file at `path` is a regular one of our own that nobody else may write to."""
    if flaw := private.file_flaw(found):
        raise UnsafeError(f"store {path}: {flaw} (uid {os.geteuid()}); nothing was started")


class _GivenUp(Exception):
    """The time is over, or we were told to stop."""


def take(file: int, limit_s: float, stop: Stop | None = None) -> bool:
    """Take the exclusive `flock` on an open file, first come first served.

    Returns False after `limit_s` seconds, or at most one second after `stop` begins to return true.

    Runs in the main thread: an interval timer interrupts the system call. The caller's handler, mask and timer of
    SIGALRM are put back, a pending alarm with what is left of it. If a wakeup descriptor is set, it may receive
    SIGALRM's number (14).
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return limit_s > 0 and _wait(file, limit_s, stop)
    return True


def holders(path: str) -> str:
    """Return who holds a lock on the file, for a message: `process 123 (runguard)`; names the kernel's view only."""
    try:
        found = os.stat(path)
        with open("/proc/locks", encoding="ascii", errors="replace") as file:
            rows = [row.split() for row in file]
    except OSError:
        return "an unknown process"
    place = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    pids = {words[4] for words in rows if len(words) > 5 and words[1] != "->" and words[5] == place}
    named = [f"process {pid} ({_command(pid)})" for pid in sorted(pids) if pid != str(os.getpid())]
    return ", ".join(named) or "an unknown process"


def _wait(file: int, limit_s: float, stop: Stop | None) -> bool:
    waiting = [True]
    began_s = time.monotonic()

    def ring(_signal_number: int, _frame: object) -> None:
        if waiting and (time.monotonic() >= began_s + limit_s or (stop and stop())):
            raise _GivenUp

    mask = _signal.pthread_sigmask(_signal.SIG_UNBLOCK, [_signal.SIGALRM])
    handler = _signal.signal(_signal.SIGALRM, ring)
    # It rings again and again: the first alarm could fall between two system calls. `stop` is asked when it rings.
    first_s = max(min(limit_s, _LOOK_S) if stop else limit_s, 0.001)
    left_s, interval_s = _signal.setitimer(_signal.ITIMER_REAL, first_s, min(first_s, _LOOK_S))
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        waiting.clear()
        return True
    except _GivenUp:
        waiting.clear()
        fcntl.flock(file, fcntl.LOCK_UN)  # the alarm may have rung after the lock was ours
        return False
    finally:
        waiting.clear()
        _signal.setitimer(_signal.ITIMER_REAL, 0)
        _signal.signal(_signal.SIGALRM, _signal.SIG_DFL if handler is None else handler)
        if left_s:
            _signal.setitimer(_signal.ITIMER_REAL, max(left_s - (time.monotonic() - began_s), 0.001), interval_s)
        _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)


def _command(pid: str) -> str:
    """Return the name of a process: not its arguments, which may hold secrets."""
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            name = file.read().strip()
    except OSError:
        return "gone"
    return "".join(character if character.isprintable() else "?" for character in name)

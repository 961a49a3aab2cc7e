"""Locks that may be a while in coming: waited for in the kernel's queue, never polled, and never without end."""

from __future__ import annotations

import fcntl
import os
import stat
import time

from runguard.errors import StoreError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
else:
    import _signal  # signal itself imports enum


class WriteLock:
    """`write.lock` beside the database: taken around every write and around creating the file."""

    def __init__(self, store_path: str) -> None:
        self._store_path = store_path
        self.path = os.path.join(os.path.dirname(store_path), "write.lock")
        self._file = -1

    def take(self, wait_s: float) -> None:
        """Queue for the lock, at most `wait_s` seconds. Raises StoreError, naming who holds it."""
        try:
            while not self._try(wait_s):
                self.close()  # the file was replaced while we waited: queue at the new one
        except OSError as error:
            raise StoreError(self._store_path, f"{self.path}: {error.strerror} (uid {os.geteuid()})") from error

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

    def _try(self, wait_s: float) -> bool:
        if self._file < 0:
            self._open()
        if not take(self._file, wait_s):
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
            self._file = os.open(self.path, flags | os.O_CREAT, 0o600)
            os.fchmod(self._file, 0o600)
        if not stat.S_ISREG(os.fstat(self._file).st_mode):
            self.close()
            raise StoreError(self._store_path, f"{self.path} is no regular file")


class _Expired(Exception):
    """The alarm rang."""


def take(file: int, limit_s: float) -> bool:
    """Take the exclusive `flock` on an open file, first come first served; False after `limit_s` seconds.

    Runs in the main thread: an interval timer interrupts the system call. The caller's handler, mask and timer of
    SIGALRM are put back, a pending alarm with what is left of it. If a wakeup descriptor is set, it may receive
    SIGALRM's number (14).
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return limit_s > 0 and _wait(file, limit_s)
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


def _wait(file: int, limit_s: float) -> bool:
    waiting = [True]

    def ring(_signal_number: int, _frame: object) -> None:
        if waiting:
            raise _Expired

    mask = _signal.pthread_sigmask(_signal.SIG_UNBLOCK, [_signal.SIGALRM])
    handler = _signal.signal(_signal.SIGALRM, ring)
    began_s = time.monotonic()
    # It rings again and again: the first alarm could fall between two system calls.
    left_s, interval_s = _signal.setitimer(_signal.ITIMER_REAL, limit_s, 0.1)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        waiting.clear()
        return True
    except _Expired:
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

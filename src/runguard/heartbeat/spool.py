"""What monitors have not heard yet: one slot per job and address, the newest outcome wins.

A slot is a file `spool/JOB~ADDRESS`, 0600, synced and put in place by rename. The address itself is not stored:
ADDRESS is a hash of it under this directory's own key, and whoever delivers reads the address again from where it was
said. Whoever delivers holds the lock of the slot's file, so that nothing is sent twice; one that dies lets go, and it
is sent again. A slot that cannot be read is kept aside, and never a reason to stop.
"""

from __future__ import annotations

import errno
import fcntl
import os

from runguard import private
from runguard.errors import reason
from runguard.heartbeat import ownfiles
from runguard.heartbeat.ownfiles import Alone
from runguard.heartbeat.slot import Slot, decode, encode
from runguard.store.lines import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_LARGEST_BYTES = 262_144
_KEY_LENGTH = 64
_NOT_OURS = (errno.EPERM, errno.ELOOP, errno.EISDIR, errno.ENXIO, errno.ENODEV)
_ASIDE = ".damaged"
_ABANDONED_S = 3600  # nobody takes that long to write a slot


class Claim:
    """A slot that only we deliver, until it is dropped, put back or closed."""

    __slots__ = ("_directory", "_fd", "path", "slot")

    def __init__(self, directory: str, path: str, fd: int, slot: Slot) -> None:
        self.path = path
        self.slot = slot
        self._directory = directory
        self._fd = fd

    def drop(self) -> None:
        """Remove the slot, unless a newer outcome has taken its place. Raises OSError."""
        self._if_unchanged(lambda: os.unlink(self.path))

    def put_back(self, why: str) -> None:
        """Keep the slot for a later try: this one came to nothing. Raises OSError."""
        fresh = _write(self._directory, self.slot._replace(tries=self.slot.tries + 1, why=why))
        if not self._if_unchanged(lambda: os.rename(fresh, self.path)):
            ownfiles.remove(fresh)

    def close(self) -> None:
        """Let go of it as it is."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _if_unchanged(self, change: Callable[[], None]) -> bool:
        """Make the change if the file at the path is still ours, and let go of it. Raises OSError."""
        try:
            with Alone(self._directory):
                if not _is_at(self._fd, self.path):
                    return False
                change()
                return True
        finally:
            self.close()


def slots(directory: str) -> list[Slot]:
    """Return what waits in a spool, by job and oldest first; nothing where there is none or it cannot be read.

    Changes nothing and waits for nothing. Slots that cannot be read are left out.
    """
    found = (_load(path) for path in _paths(directory))
    return sorted((each for each in found if isinstance(each, Slot)), key=lambda each: (each.job, each.at_us))


def keep(directory: str, slot: Slot, now_us: int) -> bool:
    """Put an outcome into its slot, durably; returns False where a newer one is there already.

    One that claims to be of later than now is no newer: the clock was set back. Raises OSError: the disk is full, or
    the directory is not private.
    """
    _make(directory)
    path = path_of(directory, slot)
    fresh = _write(directory, slot)
    with Alone(directory):
        there = _load(path)
        if isinstance(there, Slot) and slot.at_us < there.at_us <= now_us:
            ownfiles.remove(fresh)
            return False
        try:
            os.rename(fresh, path)
        except OSError:
            ownfiles.remove(fresh)
            raise
    private.sync(directory)
    return True


def path_of(directory: str, slot: Slot) -> str:
    """Return the file of a slot."""
    return os.path.join(directory, slot.name)


def address(directory: str, *urls: str) -> str:
    """Return the hash of the addresses of a job under the key of this spool, which is made where it is missing.

    Raises OSError.
    """
    _make(directory)
    return digest(b"\0".join((_key(directory), *(url.encode("utf-8", "surrogateescape") for url in urls))))[:16]


def waiting(directory: str, job: str | None = None) -> list[str]:
    """Return the paths of the slots of a job, or of all, sorted; nothing where there is no spool."""
    paths = _paths(directory)
    return paths if job is None else [path for path in paths if job_of(path) == job]


def look(path: str) -> Slot | None:
    """Return the slot in a file, or None where there is none that can be read."""
    found = _load(path)
    return found if isinstance(found, Slot) else None


def flaw(directory: str) -> str:
    """Return why what is in a spool cannot be believed, or ""; there is none to be found where there is no spool."""
    try:
        return private.flaw(directory)
    except FileNotFoundError:
        return ""
    except OSError as error:
        return reason(error)


def job_of(path: str) -> str:
    """Return the job whose slot this is: no job's name has a tilde in it."""
    return os.path.basename(path).rpartition("~")[0]


def claim(path: str) -> Claim | str | None:
    """Return a slot for delivery; None where it is gone or somebody else is delivering it.

    A slot that cannot be read is put aside; returns a sentence about it.
    """
    directory = os.path.dirname(path)
    for _ in range(3):  # a newer outcome may take the place of what was opened
        try:
            fd = ownfiles.opened(path, os.O_RDWR)
        except FileNotFoundError:
            return None
        except OSError as error:
            return _unreadable(path, error)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            return None
        if not _is_at(fd, path):
            os.close(fd)
            continue
        try:
            found = _read(fd, path)
        except OSError as error:
            os.close(fd)
            return _unreadable(path, error)
        if isinstance(found, Slot):
            return Claim(directory, path, fd, found)
        os.close(fd)
        return _put_aside(path, found)
    return None


def supersede(path: str, at_us: int, now_us: int) -> Slot | None:
    """Remove the slot unless it is newer than `at_us`, as `keep` has it; return what was in it. Raises OSError."""
    with Alone(os.path.dirname(path)):
        there = _load(path)
        if isinstance(there, str) or at_us < there.at_us <= now_us:
            return None
        os.unlink(path)
        return there


def tidy(directory: str, now_s: float) -> None:
    """Remove what writers that died have left behind."""
    for name in _names(directory):
        path = os.path.join(directory, name)
        try:
            if name.startswith(".") and now_s - os.lstat(path).st_mtime > _ABANDONED_S:
                os.unlink(path)
        except OSError:
            continue


def _paths(directory: str) -> list[str]:
    names = (name for name in _names(directory) if "~" in name and name[0] != "." and not name.endswith(_ASIDE))
    return [os.path.join(directory, name) for name in names]


def _names(directory: str) -> list[str]:
    """Return what lies in the spool, sorted; nothing where others could have put it there."""
    try:
        return [] if private.flaw(directory) else sorted(os.listdir(directory))
    except OSError:
        return []


def _load(path: str) -> Slot | str:
    """Return the slot in a file, or why it is none."""
    try:
        fd = ownfiles.opened(path)
    except OSError as error:
        return reason(error)
    try:
        return _read(fd, path)
    except OSError as error:
        return reason(error)
    finally:
        os.close(fd)


def _read(fd: int, path: str) -> Slot | str:
    """Return the slot in an open file, or why it is none. Raises OSError."""
    return decode(os.pread(fd, _LARGEST_BYTES, 0), os.path.basename(path))


def _write(directory: str, slot: Slot) -> str:
    """Write a slot into a new file, synced, and return its path. Raises OSError, leaving nothing behind."""
    path = os.path.join(directory, f".{os.getpid()}~{slot.name}")
    ownfiles.write(path, encode(slot))
    return path


def _key(directory: str) -> bytes:
    """Return the key of this spool. One that is lost is made anew: then no slot has the address of its job any more."""
    path = os.path.join(directory, "key")
    for _ in range(2):
        key = _key_in(path)
        if len(key) == _KEY_LENGTH:
            return key
        if key:
            os.unlink(path)  # torn by a power loss
        fresh = os.path.join(directory, f".{os.getpid()}.key")
        ownfiles.write(fresh, os.urandom(_KEY_LENGTH // 2).hex().encode())
        try:
            os.link(fresh, path)
        except FileExistsError:
            pass  # another run was faster
        finally:
            ownfiles.remove(fresh)
        private.sync(directory)
    raise OSError(errno.EIO, "its key cannot be kept")


def _key_in(path: str) -> bytes:
    try:
        fd = ownfiles.opened(path)
    except FileNotFoundError:
        return b""
    try:
        return os.read(fd, _KEY_LENGTH + 1) or b"torn"
    finally:
        os.close(fd)


def _make(directory: str) -> None:
    """Make the spool where it is missing. Raises OSError, also where it is not private."""
    if flaw := private.make(directory):
        raise OSError(errno.EPERM, flaw)


def _unreadable(path: str, error: OSError) -> str:
    """Put aside what is no file of ours alone; what a later try may read stays. Returns a sentence about it."""
    if error.errno in _NOT_OURS:
        return _put_aside(path, reason(error))
    return f"{path}: {reason(error)}; it is left where it is"


def _put_aside(path: str, why: str) -> str:
    """Give a slot that cannot be read a name that is no slot's, and return a sentence about it."""
    kept = path + _ASIDE
    try:
        number = 1
        while os.path.lexists(kept):
            number += 1
            kept = f"{path}.{number}{_ASIDE}"
        os.rename(path, kept)
    except OSError as error:
        return f"{path}: {why}; it is left where it is: {reason(error)}"
    return f"{path}: {why}; kept as {kept}, and not sent"


def _is_at(fd: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path, follow_symlinks=False))
    except OSError:
        return False

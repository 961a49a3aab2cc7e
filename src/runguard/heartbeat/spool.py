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
import time

from runguard import private
from runguard.errors import reason
from runguard.heartbeat.body import Body
from runguard.heartbeat.styles import Event
from runguard.record import NamedTuple
from runguard.store.lines import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

OUTCOMES = ("success", "failure")  # what is spooled: a start that is late would set a timer going

_FORMAT = 1
_DIGEST_LENGTH = 64
_LARGEST_BYTES = 262_144
_KEY = "key"
_NOT_OURS = (errno.EPERM, errno.ELOOP, errno.EISDIR, errno.ENXIO, errno.ENODEV)
_ASIDE = ".damaged"
_ALONE_S = 2.0  # for the few steps that nobody else may take meanwhile; then they are taken all the same
_ABANDONED_S = 3600  # nobody takes that long to write a slot


class Slot(NamedTuple):
    """An outcome that a monitor has not heard."""

    job: str
    at_us: int  # when the run had ended
    from_us: int  # not to be told before: it would count for the window before
    until_us: int | None  # a success counts only before this instant; None: it counts until a newer outcome is told
    tries: int  # deliveries so far that came to nothing
    why: str  # the last one did
    style: str
    target: str  # the address with its secrets masked
    source: str  # where the address was said: "file:/PATH", an option's name, or "" for configuration and environment
    address: str  # its hash
    told: Event

    @property
    def event(self) -> str:
        """Return `success` or `failure`."""
        return self.told.kind

    @property
    def run_id(self) -> str:
        """Return the id of the run that it tells of."""
        return self.told.run_id


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
            _remove(fresh)

    def close(self) -> None:
        """Let go of it as it is."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _if_unchanged(self, change: Callable[[], None]) -> bool:
        """Make the change if the file at the path is still ours, and let go of it. Raises OSError."""
        try:
            with _Alone(self._directory):
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
    with _Alone(directory):
        there = _load(path)
        if isinstance(there, Slot) and slot.at_us < there.at_us <= now_us:
            _remove(fresh)
            return False
        try:
            os.rename(fresh, path)
        except OSError:
            _remove(fresh)
            raise
    _sync(directory)
    return True


def path_of(directory: str, slot: Slot) -> str:
    """Return the file of a slot."""
    return os.path.join(directory, f"{slot.job}~{slot.address}")


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
            fd = _opened(path, os.O_RDWR)
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
    with _Alone(os.path.dirname(path)):
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
        fd = _opened(path)
    except OSError as error:
        return reason(error)
    try:
        return _read(fd, path)
    except OSError as error:
        return reason(error)
    finally:
        os.close(fd)


def _opened(path: str, flags: int = os.O_RDONLY) -> int:
    """Open a file of ours alone, following no link. Raises OSError."""
    fd = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY)
    if flaw := private.file_flaw(os.fstat(fd)):
        os.close(fd)
        raise OSError(errno.EPERM, flaw)
    return fd


def _read(fd: int, path: str) -> Slot | str:
    """Return the slot in an open file, or why it is none. Raises OSError."""
    import json  # the command is running, or has ended

    content = os.pread(fd, _LARGEST_BYTES, 0)
    try:
        if digest(content[_DIGEST_LENGTH:]).encode() != content[:_DIGEST_LENGTH]:
            return "it is damaged"
        slot = _slot(json.loads(content[_DIGEST_LENGTH:]))
    except (ValueError, TypeError, LookupError, RecursionError):
        return "it is of another version"
    named = os.path.basename(path) == f"{slot.job}~{slot.address}"
    return slot if named and slot.event in OUTCOMES else "it belongs elsewhere"


def _slot(fields: dict[str, Any]) -> Slot:
    """Return what a slot's file says. Raises ValueError, TypeError or LookupError."""
    if fields.pop("format") != _FORMAT:
        raise ValueError
    told = {name: value for name, value in fields.pop("told").items() if name in Event._fields}
    body = Body(*fields.pop("body"))
    if not all(isinstance(fields[name], int) for name in ("at_us", "from_us", "tries")):
        raise TypeError
    if not isinstance(fields["until_us"], int | None):
        raise TypeError
    return Slot(told=Event(**told, body=body), **fields)


def _write(directory: str, slot: Slot) -> str:
    """Write a slot into a new file, synced, and return its path. Raises OSError, leaving nothing behind."""
    import json

    told = slot.told._asdict()
    body = told.pop("body")
    fields = {"format": _FORMAT, **slot._asdict(), "told": told, "body": list(body)}
    content = json.dumps(fields).encode() + b"\n"
    path = os.path.join(directory, f".{os.getpid()}~{slot.job}~{slot.address}")
    _remove(path)  # of a process with our number, that died
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.fchmod(fd, 0o600)  # whatever the umask
        _write_all(fd, digest(content).encode() + content)
        os.fsync(fd)
    except OSError:
        _remove(path)
        raise
    finally:
        os.close(fd)
    return path


def _key(directory: str) -> bytes:
    """Return the key of this spool. One that is lost is made anew: then no slot has the address of its job any more."""
    path = os.path.join(directory, _KEY)
    for _ in range(2):
        try:
            fd = _opened(path)
            try:
                key = os.read(fd, 64)
            finally:
                os.close(fd)
            if len(key) == 64:
                return key
            os.unlink(path)  # torn by a power loss
        except FileNotFoundError:
            pass
        _make_key(directory, path)
    raise OSError(errno.EIO, "its key cannot be kept")


def _make_key(directory: str, path: str) -> None:
    fresh = f"{path}.{os.getpid()}"
    _remove(fresh)
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.fchmod(fd, 0o600)
        _write_all(fd, os.urandom(32).hex().encode())
        os.fsync(fd)
        os.link(fresh, path)
    except FileExistsError:
        pass  # another run was faster
    finally:
        os.close(fd)
        _remove(fresh)
    _sync(directory)


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


def _write_all(fd: int, content: bytes) -> None:
    while content:
        content = content[os.write(fd, content) :]


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return


def _sync(directory: str) -> None:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


class _Alone:
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

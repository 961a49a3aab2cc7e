"""Who holds the jobs' locks now: found by the inode of the lock file, without taking it and by no stored pid.

`/proc/locks` names who took a lock. That process may have died and left the lock to the command that inherited the
descriptor, so the descriptors of all living processes are looked through too, as far as this account may see them.
"""

from __future__ import annotations

import os

from runguard.guard import host, locking
from runguard.guard.lock import SUFFIX
from runguard.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from runguard.guard.locking import Descriptor

    Inode = tuple[int, int]  # device, number

_DELETED = " (deleted)"


class LockHolder(NamedTuple):
    """A process that holds a job's lock: the command, where the guard and the command both do."""

    pid: int | None  # None: none that this account can see
    command: str
    age_s: float | None  # how long the process has lived
    pids: tuple[int, ...]  # of every process seen to hold it, oldest first


def holders(locks: str) -> dict[str, LockHolder]:
    """Return who holds the locks in the directory `locks`, by job; a lock that nobody holds has no row.

    A lock file that was deleted while it was held counts too. Nothing is found where this account may not look into
    the directory.
    """
    files = _lock_files(locks)
    if not files:
        return {}
    numbers = {number: job for (_, number), job in files.items()}
    seen: dict[str, list[tuple[int, int, bool]]] = {}
    for job, pid, took in _descriptors(locks, files):
        ticks = host.start_ticks(pid)
        if ticks is not None:
            seen.setdefault(job, []).append((ticks, pid, took))
    found = {job: _holder(sorted(set(processes))) for job, processes in seen.items()}
    for number, taker in _takers():
        job = numbers.get(number, "")
        if job and job not in found:
            found[job] = _unseen(taker)
    return found


def _holder(processes: list[tuple[int, int, bool]]) -> LockHolder:
    """Return the oldest but the one that took the lock: that is the guard, which shows where it is alone.

    `processes` are (start in kernel ticks, pid, whether it took the lock), oldest first.
    """
    ticks, pid, _ = next((each for each in processes if not each[2]), processes[0])
    return LockHolder(pid, _command(pid), host.age_s(ticks), tuple(pid for _, pid, _ in processes))


def _unseen(taker: int) -> LockHolder:
    """Return the process that took a lock, where no descriptor of it is to be seen: it may be another account's."""
    ticks = host.start_ticks(taker)
    if ticks is None or os.access(f"/proc/{taker}/fd", os.R_OK):  # it has gone, or another has its pid now
        return LockHolder(None, "", None, ())
    return LockHolder(taker, _command(taker), host.age_s(ticks), (taker,))


def _command(pid: int) -> str:
    return host.command_line(pid)[: host.SHOWN_COMMAND]


def _lock_files(locks: str) -> dict[Inode, str]:
    """Return the job of every lock file by its inode."""
    found = {}
    try:
        with os.scandir(locks) as entries:
            for entry in entries:
                if entry.name.endswith(SUFFIX):
                    status = entry.stat(follow_symlinks=False)
                    found[status.st_dev, status.st_ino] = entry.name.removesuffix(SUFFIX)
    except OSError:
        return found
    return found


def _takers() -> Iterator[tuple[int, int]]:
    """Yield (inode number, pid) of every flock that is held. The device is another one there on some file systems."""
    try:
        with open("/proc/locks", encoding="ascii", errors="replace") as file:
            rows = [line.split() for line in file]
    except OSError:
        return
    for words in rows:  # a waiter has "->" in the second place
        if len(words) > 5 and words[1] == "FLOCK":
            number = words[5].rpartition(":")[2]
            if number.isdigit() and words[4].isdigit():
                yield int(number), int(words[4])


def _descriptors(locks: str, files: dict[Inode, str]) -> Iterator[tuple[str, int, bool]]:
    """Yield (job, pid, whether it took the lock) of every process with a descriptor that holds one of the locks."""
    for descriptor in locking.descriptors():
        job = _job_of(descriptor, locks, files)
        flock = None if job is None else locking.flock_of(descriptor)
        if job is not None and flock is not None:
            yield job, descriptor.pid, flock.taker == descriptor.pid


def _job_of(descriptor: Descriptor, locks: str, files: dict[Inode, str]) -> str | None:
    """Return the job whose lock file the descriptor is open on, or None.

    The name alone is looked at first: a file on a network file system that hangs is never touched.
    """
    path = descriptor.path
    if path.endswith(SUFFIX):
        try:
            found = os.stat(descriptor.link)
        except OSError:
            return None
        return files.get((found.st_dev, found.st_ino))
    directory, _, name = path.removesuffix(_DELETED).rpartition("/")
    if path.endswith(SUFFIX + _DELETED) and directory == locks:
        return name.removesuffix(SUFFIX)
    return None

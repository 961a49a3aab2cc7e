"""Who holds a kernel lock on a file, found by the file itself: every process that has the locked descriptor."""

from __future__ import annotations

import os

from runguard.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class Descriptor(NamedTuple):
    """An open file of a process. Following its link could block: `path` is what was read."""

    pid: int
    fd: str
    path: str

    @property
    def link(self) -> str:
        """The link to the file itself."""
        return f"/proc/{self.pid}/fd/{self.fd}"


class Flock(NamedTuple):
    """A lock that the open file behind a descriptor holds."""

    exclusive: bool
    taker: int  # the process that took it and may have gone since; 0 where this namespace does not know it


def by(*paths: str) -> list[int]:
    """Return the pids that hold the exclusive `flock` of any of the files, those that inherited it included.

    What the kernel does not let us see, processes of other users, is left out. A start that waits for a lock, or a
    query that looks at one, has the file open too, and holds nothing.
    """
    return sorted({pid for pid, _ in _holding(paths)})


def by_run(path: str, guard_pid: int) -> list[int]:
    """Return the same of one file, where the process `guard_pid` took the lock, or whoever took it has gone."""
    found = _holding((path,))
    takers = {pid for pid, took in found if took}
    return sorted(pid for pid, _ in found) if takers <= {guard_pid} else []


def _holding(paths: tuple[str, ...]) -> set[tuple[int, bool]]:
    """Return who holds a lock, and whether that process took it."""
    wanted = {os.path.realpath(path) for path in paths}
    held = ((each.pid, flock_of(each)) for each in descriptors() if each.path in wanted)
    return {(pid, flock.taker == pid) for pid, flock in held if flock is not None and flock.exclusive}


def descriptors() -> Iterator[Descriptor]:
    """Yield the open files of all processes, as far as this account may see them."""
    try:
        processes = [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return
    for name in processes:
        folder = f"/proc/{name}/fd"
        try:
            fds = os.listdir(folder)
        except OSError:  # it has gone, or it is not ours to look at
            continue
        for fd in fds:
            try:
                yield Descriptor(int(name), fd, os.readlink(f"{folder}/{fd}"))
            except OSError:
                continue


def flock_of(descriptor: Descriptor) -> Flock | None:
    """Return the lock that the open file behind a descriptor holds, or None: the kernel lists its own alone.

    `lock: 1: FLOCK ADVISORY WRITE 4711 08:01:1234 0 EOF`
    """
    try:
        with open(f"/proc/{descriptor.pid}/fdinfo/{descriptor.fd}", encoding="ascii", errors="replace") as file:
            rows = [line.split() for line in file if line.startswith("lock:")]
    except OSError:
        return None
    for words in rows:
        if len(words) > 5 and words[2] == "FLOCK":
            return Flock(words[4] == "WRITE", int(words[5]) if words[5].isdigit() else 0)
    return None

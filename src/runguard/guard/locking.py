"""Who holds a kernel lock on a file, found by the file itself: every process that has the locked descriptor."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def by(*paths: str) -> list[int]:
    """Return the pids that hold the exclusive `flock` of any of the files, those that inherited it included.

    What the kernel does not let us see, processes of other users, is left out. A start that waits for a lock, or a
    query that looks at one, has the file open too, and holds nothing.
    """
    wanted = {os.path.realpath(path) for path in paths}
    return sorted(pid for pid in _pids() if any(_is_locked(pid, fd) for fd in _descriptors(pid, wanted)))


def _pids() -> Iterator[int]:
    for name in os.listdir("/proc"):
        if name.isdigit():
            yield int(name)


def _descriptors(pid: int, wanted: set[str]) -> Iterator[str]:
    """Yield the descriptors of a process that lead to one of the files. Following a link could block: it is read."""
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)
    except OSError:  # it has gone, or it is not ours to look at
        return
    for name in names:
        try:
            if os.readlink(f"{folder}/{name}") in wanted:
                yield name
        except OSError:
            continue


def _is_locked(pid: int, fd: str) -> bool:
    """Return whether the open file behind a descriptor holds an exclusive lock: the kernel lists its own alone."""
    try:
        with open(f"/proc/{pid}/fdinfo/{fd}", encoding="ascii", errors="replace") as file:
            return any(line.startswith("lock:") and "FLOCK" in line and "WRITE" in line for line in file)
    except OSError:
        return False

"""Processes that the command leaves behind, found through /proc."""

from __future__ import annotations

import os

from runguard.guard import host
from runguard.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_COMMAND_CHARACTERS = 200


class Straggler(NamedTuple):
    """A process of the command's that is still there after its end."""

    pid: int
    command: str


def group_exists(pgid: int) -> bool:
    """Return whether the kernel knows any process of the group, dead ones that nobody has reaped included."""
    try:
        os.killpg(pgid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody is there whom we may not signal
        return True
    return True


def members(pgid: int) -> list[int]:
    """Return the pids of the group that are alive."""
    return [pid for pid in _pids() if host.group_of(pid) == pgid]


def visible() -> bool:
    """Return whether /proc shows us processes at all."""
    return os.path.exists(f"/proc/{os.getpid()}/stat")


def holding(fds: Iterable[int]) -> list[int]:
    """Return the pids, but ours, that have the files open which we have open as `fds`."""
    wanted = {link for fd in fds if (link := _link(f"/proc/self/fd/{fd}"))}
    ours = os.getpid()
    return [pid for pid in _pids() if pid != ours and _holds(pid, wanted)]


def describe(pids: Iterable[int]) -> tuple[Straggler, ...]:
    """Return what is known of the processes, each once, by pid."""
    return tuple(Straggler(pid, host.command_line(pid)[:_COMMAND_CHARACTERS]) for pid in sorted(set(pids)))


def _pids() -> Iterator[int]:
    try:
        names = os.listdir("/proc")
    except OSError:
        return
    for name in names:
        if name.isdigit():
            yield int(name)


def _holds(pid: int, wanted: set[str]) -> bool:
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)
    except OSError:  # it has gone, or it is not ours to look at
        return False
    return any(_link(f"{folder}/{name}") in wanted for name in names)


def _link(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None

"""What descends from a command: found, named and reaped, also after it has left the command's session.

On Linux orphans of the command come to us and not to init, so that nothing escapes. Elsewhere, /proc and the command's
process group tell what they can.
"""

from __future__ import annotations

import os

from runguard.guard import host
from runguard.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

LEFT, ENDED, STOPPED = "left", "ended", "stopped"
MOST_NAMED = 100  # in the record of one run

_COMMAND_CHARACTERS = 200
_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
_ENDED = os.WEXITED | os.WNOHANG | os.WNOWAIT


class Straggler(NamedTuple):
    """A process that descends from the command and outlived it, or the end of its group."""

    pid: int
    command: str
    uid: int | None
    fate: str  # LEFT alone; ENDED: we waited for it; STOPPED by us


class Usage(NamedTuple):
    """What processes have used, with their own children as far as they waited for them."""

    user_s: float
    system_s: float
    peak_kib: int


class Kin(NamedTuple):
    """Our children as a command is started: none of them descends from it."""

    adopting: bool  # orphans among our descendants come to us
    others: frozenset[int]
    foreign: frozenset[int]  # those that we had before we adopted any: they are not ours to reap


_foreign: list[frozenset[int]] = []  # once it is known


def adopt() -> Kin:
    """Become the parent of orphans among our descendants, where the system has that: an attribute of ours alone.

    To be called before the command is started, which may be gone in less time than this takes.
    """
    others = _children()
    if not _foreign:
        _foreign.append(others)
    return Kin(_become_subreaper(), others, _foreign[0])


def members(pgid: int) -> list[int]:
    """Return the pids of a group that are alive."""
    return [pid for pid, (_, group) in _living().items() if group == pgid]


def visible() -> bool:
    """Return whether /proc shows us processes, and under the numbers that we know them by."""
    try:
        return os.readlink("/proc/self") == str(os.getpid())
    except OSError:
        return False


def holding(fds: Iterable[int]) -> list[int]:
    """Return the pids, but ours, that have the files open which we have open as `fds`."""
    wanted = {link for fd in fds if (link := _link(f"/proc/self/fd/{fd}"))}
    ours = os.getpid()
    return [pid for pid in _pids() if pid != ours and _holds(pid, wanted)]


def describe(pids: Iterable[int], fate: str) -> list[Straggler]:
    """Return what is known of the processes, each once, by pid."""
    return [
        Straggler(pid, host.command_line(pid)[:_COMMAND_CHARACTERS], host.owner_of(pid), fate)
        for pid in sorted(set(pids))
    ]


class Tree:
    """What descends from the command `pid`, the leader of a group. The command itself does not count.

    The group's number is its own only while it has members, the command included until it is reaped.
    """

    __slots__ = ("_group_gone", "_kin", "_mark", "_pid", "headless", "usages")

    def __init__(self, pid: int, kin: Kin, environ: Mapping[str, str]) -> None:
        self.headless = False  # the command has been reaped
        self.usages = Usage(0.0, 0.0, 0)  # of what of it we have reaped
        self._pid = pid
        self._kin = kin
        self._group_gone = False
        run_id = environ.get("RUNGUARD_RUN_ID")
        self._mark = os.fsencode(f"RUNGUARD_RUN_ID={run_id}") if run_id else None

    @property
    def adopted(self) -> bool:
        """Whether its orphans are children of ours, whose ends wake us."""
        return self._kin.adopting

    def reap(self) -> bool:
        """Reap what has ended of it, and of what earlier commands left; return whether we have no child any more."""
        while self._kin.adopting:
            try:
                found = os.waitid(os.P_ALL, 0, _ENDED)
            except ChildProcessError:
                return True
            if found is None:
                return False
            if not self._is_spared(found.si_pid):
                self._reap(found.si_pid)
                continue
            for pid in _children():  # it stays where it is, and hides what comes after it
                if not self._is_spared(pid):
                    self._reap(pid)
            return False
        return False

    def reap_quietly(self) -> bool:
        """Do the same where nothing may be raised: in a signal handler."""
        try:
            return self.reap()
        except Exception:  # noqa: BLE001 - no memory; the next end of a child tries again
            return False

    def is_empty(self) -> bool:
        """Return whether nothing of it is left, after the command's end.

        Exact and cheap where its orphans come to us. Elsewhere as far as can be seen, by a walk through /proc.
        """
        if self._kin.adopting:
            if self.reap():
                return True
            spared = self._kin.others | _helpers()
            return bool(spared) and _children() <= spared
        return not (self.alive() if visible() else self.group_exists())

    def alive(self, *, in_group: bool = False) -> list[int]:
        """Return what of it, or of its group alone, lives and can be seen: by a walk through /proc."""
        if not visible():
            return []
        living = _living()
        if self._kin.adopting:
            ours = _below(os.getpid(), living, self._kin.others | _helpers() | self._commands())
            return sorted(pid for pid in ours if not in_group or living[pid][1] == self._pid)
        group = {pid for pid, (_, group) in living.items() if group == self._pid} if self.group_exists() else set()
        marked = {pid for pid in living if self._is_marked(pid)} if not in_group else set()
        return sorted((group | marked) - self._commands() - {os.getpid()})

    def group_exists(self) -> bool:
        """Return whether the kernel knows any process of the group, dead ones that nobody has reaped included."""
        if self._group_gone:
            return False
        try:
            os.killpg(self._pid, 0)
        except ProcessLookupError:
            self._group_gone = self.headless
            return False
        except PermissionError:  # somebody is there whom we may not signal
            return True
        return True

    def _reap(self, pid: int) -> None:
        try:
            ended, _, used = os.wait4(pid, os.WNOHANG)
        except ChildProcessError:
            return
        if ended and pid not in self._kin.others:
            before = self.usages
            peak_kib = max(before.peak_kib, used.ru_maxrss)
            self.usages = Usage(before.user_s + used.ru_utime, before.system_s + used.ru_stime, peak_kib)

    def _is_spared(self, pid: int) -> bool:
        return pid in self._commands() or pid in self._kin.foreign or pid in _helpers()

    def _commands(self) -> set[int]:
        return set() if self.headless else {self._pid}

    def _is_marked(self, pid: int) -> bool:
        """Return whether a process was started in the environment of our command."""
        return self._mark is not None and self._mark in host.environment(pid)


def _become_subreaper() -> bool:
    try:
        import _ctypes  # a sixth of what ctypes costs

        prctl = _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")  # type: ignore[arg-type]
        done: int = _ctypes.call_function(prctl, (_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
    except (ImportError, AttributeError, OSError, MemoryError):
        done = -1
    return done == 0 or os.getpid() == 1  # to the init of a container they come anyway


def _helpers() -> set[int]:
    from runguard.children import HELPERS  # most commands leave nothing behind, and no helper runs

    return HELPERS


def _children() -> frozenset[int]:
    """Return our children, dead ones included: where we have any, by a walk through /proc."""
    try:
        os.waitid(os.P_ALL, 0, _ENDED)
    except ChildProcessError:
        return frozenset()
    ours = os.getpid()
    return frozenset(pid for pid in _pids() if host.parent_of(pid) == ours) if visible() else frozenset({-1})


def _living() -> dict[int, tuple[int, int]]:
    """Return parent and group of every process that is alive."""
    return {pid: kin for pid in _pids() if (kin := host.parent_and_group(pid)) is not None}


def _below(root: int, living: dict[int, tuple[int, int]], spared: frozenset[int] | set[int]) -> set[int]:
    """Return what descends from `root`, but those `spared` and what descends from them."""
    by_parent: dict[int, list[int]] = {}
    for pid, (parent, _) in living.items():
        by_parent.setdefault(parent, []).append(pid)
    found: set[int] = set()
    waiting = [root]
    while waiting:
        fresh = [pid for pid in by_parent.get(waiting.pop(), ()) if pid not in spared and pid not in found]
        found.update(fresh)
        waiting += fresh
    return found


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

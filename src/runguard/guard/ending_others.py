"""Stopping an earlier run of the job to make way: its guard is told who asks, and ends it as it would at a time limit.

The order is a file beside the lock, written before the signal: the guard that is told to stop reads there that it is
killed for overlap, and by which run. A guard that is gone, or does not heed, is not needed: whoever holds the run's
files open is stopped directly.
"""

from __future__ import annotations

import os
import time
from _signal import SIGCONT, SIGKILL, SIGTERM  # type: ignore[import-not-found]

from runguard import clock
from runguard.guard import host, liveness, locking, stragglers
from runguard.store import lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from runguard.guard.prepare import Prepared
    from runguard.guard.signals import Signals
    from runguard.model import Holder
    from runguard.paths import Places

WEDGED_S = 5.0  # what a guard may take beyond the grace of its command
_LOOK_S = 0.02


def end(holder: Holder, places: Places, prepared: Prepared, signals: Signals) -> str:
    """Stop the run of `holder` and wait until it has ended; return "" or why it could not be stopped."""
    victim = _Victim(holder, places, prepared.start.job, prepared.start.boot_id)
    _give_order(places.locks, prepared.start.job, holder.run_id, prepared.start.run_id)
    grace_s = prepared.settings.kill_after_s
    steps = (
        (victim.guards, SIGTERM, 2 * grace_s + WEDGED_S),  # it ends the group, then what has left that
        (victim.workers, SIGTERM, grace_s),
        (victim.workers, SIGKILL, WEDGED_S / 2),
        (victim.guards, SIGKILL, WEDGED_S / 2),
    )
    for targets, number, patience_s in steps:
        pids = targets()
        if not pids:
            continue
        refused = _send(pids, number)
        if refused:
            return f"pid {refused} belongs to another user and may not be signalled"
        until_s = clock.look().monotonic_s + patience_s
        while clock.look().monotonic_s < until_s:
            if not victim.lives():
                return ""
            if signals.stop is not None:
                return "told to stop meanwhile"
            time.sleep(_LOOK_S)
    return "" if not victim.lives() else "it was killed, and has not gone"


def ordered_by(locks: str, job: str, run_id: str) -> str | None:
    """Return the id of the run that ordered the end of `run_id`, or None."""
    try:
        with open(_order_path(locks, job), "rb") as file:
            order = lines.parse(file.read(4096))
        return str(order["by"]) if order["run_id"] == run_id else None
    except (OSError, KeyError, TypeError, ValueError):
        return None


class _Victim:
    """The processes of one run."""

    def __init__(self, holder: Holder, places: Places, job: str, boot_id: str) -> None:
        self._holder = holder
        self._run_file = os.path.join(places.runs, holder.run_id)
        self._lock_file = os.path.join(places.locks, f"{job}.lock")
        self._runs = places.runs
        self._boot_id = boot_id
        self._guard_ticks = host.start_ticks(holder.guard_pid)

    def lives(self) -> bool:
        """Return whether the run is still under way: its guard between two attempts counts."""
        life = liveness.judge(self._holder.run_id, self._holder.guard_pid, self._boot_id, self._runs)
        return life.state != liveness.LOST or bool(self.guards() and self._holds_lock())

    def guards(self) -> list[int]:
        """Return the pid of its guard, where that lives and holds one of the run's locks: a pid may be reused."""
        pid = self._holder.guard_pid
        same = self._guard_ticks is not None and host.start_ticks(pid) == self._guard_ticks
        return [pid] if same and pid in locking.by(self._run_file, self._lock_file) else []

    def workers(self) -> list[int]:
        """Return the pids of all others that have inherited the run's lock, and the command's group."""
        having = set(locking.by(self._run_file))
        command = self._holder.command_pid
        if command and host.group_of(command) == command:
            life = liveness.judge(self._holder.run_id, self._holder.guard_pid, self._boot_id, self._runs)
            if life.command_pid == command and life.left and host.start_ticks(command) == life.left.command_start:
                having.update(stragglers.members(command))
        return sorted(having - {self._holder.guard_pid, os.getpid()})

    def _holds_lock(self) -> bool:
        return self._holder.guard_pid in locking.by(self._lock_file)


def _send(pids: Iterable[int], number: int) -> int | None:
    """Signal each process, and CONT after it for one that was stopped; return one that may not be signalled."""
    refused = None
    for pid in pids:
        try:
            os.kill(pid, number)
            os.kill(pid, SIGCONT)
        except ProcessLookupError:
            continue
        except PermissionError:
            refused = pid
    return refused


def _give_order(locks: str, job: str, run_id: str, by: str) -> None:
    path = _order_path(locks, job)
    fresh = f"{path}.{os.getpid()}"
    try:
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, lines.encode({"run_id": run_id, "by": by}))
        finally:
            os.close(fd)
        os.rename(fresh, path)
    except OSError:
        return  # a full disk: the run will say that it was told to stop, and not by whom


def _order_path(locks: str, job: str) -> str:
    return os.path.join(locks, f"{job}.kill")

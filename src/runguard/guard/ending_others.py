"""Stopping an earlier run of the job to make way: its guard is told who asks, and ends it as it would at a time limit.

The order is a file beside the run's own, written before the signal: the guard that is told to stop reads there that it
is killed for overlap, and by which run. A guard that is gone, or does not heed, is not needed: whoever holds the run's
files open is stopped directly. Whoever tidies run files removes the order once that of its run has gone.
"""

from __future__ import annotations

import os
import time
from _signal import SIGCONT, SIGKILL, SIGTERM  # type: ignore[import-not-found]

from runguard import clock
from runguard.guard import holding, host, liveness, lock, locking, stragglers
from runguard.guard.runfile import ORDER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from runguard.guard.execution import Execution
    from runguard.guard.prepare import Prepared
    from runguard.guard.signals import Signals
    from runguard.model import Holder
    from runguard.paths import Places

WEDGED_S = 5.0  # what a guard may take beyond the grace of its command
_LOOK_S = 0.02
_AGAIN_S = 0.2  # between two rounds of KILL: there may be processes that were started since


def end(holder: Holder, places: Places, prepared: Prepared, signals: Signals) -> str:
    """Stop the run of `holder` and wait until it has ended; return "" or why it could not be stopped."""
    victim = _Victim(holder, places, prepared.start.job, prepared.start.boot_id)
    _give_order(places.runs, holder.run_id, prepared.start.run_id)
    grace_s = prepared.settings.kill_after_s
    steps = (
        (victim.guards, SIGTERM, 2 * grace_s + WEDGED_S),  # it ends the group, then what has left that
        (victim.workers, SIGTERM, grace_s),
        (victim.workers, SIGKILL, WEDGED_S / 2),
        (victim.guards, SIGKILL, WEDGED_S / 2),
    )
    found = False
    for targets, number, patience_s in steps:
        pids = targets()
        refused = _send(pids, number)
        if refused:
            if not found:
                _withdraw_order(places.runs, holder.run_id)
            return f"pid {refused} belongs to another user and may not be signalled"
        found = found or bool(pids)
        until_s = clock.look().monotonic_s + (patience_s if pids else 0.0)
        again_s = clock.look().monotonic_s + _AGAIN_S
        while victim.lives() and (now_s := clock.look().monotonic_s) < until_s:
            if signals.stop is not None:
                return "told to stop meanwhile"
            if number == SIGKILL and now_s >= again_s:
                _send(targets(), number)
                again_s = clock.look().monotonic_s + _AGAIN_S
            time.sleep(_LOOK_S)
    if not victim.lives():
        return ""
    if found:
        return "it was killed, and has not gone"
    _withdraw_order(places.runs, holder.run_id)
    return "its processes cannot be seen from here (another pid namespace, or no /proc)"


def as_ordered(done: Execution, runs: str, run_id: str) -> Execution:
    """Return how the command of `run_id` ended, told that another start of the job ordered it, if one did."""
    by = ordered_by(runs, run_id)
    if by is None:
        return done
    return done._replace(verdict=done.verdict._replace(outcome="killed", why="overlap", killed_by=by))


def ordered_by(runs: str, run_id: str) -> str | None:
    """Return the id of the run that ordered the end of `run_id`, or None."""
    try:
        fd = os.open(runs + "/" + run_id + ORDER, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        return _as_run_id(os.read(fd, 64))
    except OSError:
        return None
    finally:
        os.close(fd)


class _Victim:
    """The processes of one run."""

    def __init__(self, holder: Holder, places: Places, job: str, boot_id: str) -> None:
        self._holder = holder
        self._places = places
        self._job = job
        self._boot_id = boot_id
        self._guard_ticks = host.start_ticks(holder.guard_pid)

    def lives(self) -> bool:
        """Return whether the run is still under way: its guard between two attempts counts, and what that has left."""
        return self._life().state != liveness.LOST or bool(self._having_lock())

    def guards(self) -> list[int]:
        """Return the pid of its guard, where that lives and holds one of the run's locks: a pid may be reused."""
        pid = self._holder.guard_pid
        same = self._guard_ticks is not None and host.start_ticks(pid) == self._guard_ticks
        return [pid] if same and pid in (*self._having_file(), *self._having_lock()) else []

    def workers(self) -> list[int]:
        """Return the pids of all others that have inherited the run's locks, and the command's group."""
        having = {*self._having_file(), *self._having_lock()}
        command = self._holder.command_pid
        if command and host.group_of(command) == command:
            life = self._life()
            if life.command_pid == command and life.left and host.start_ticks(command) == life.left.command_start:
                having.update(stragglers.members(command))
        return sorted(having - {self._holder.guard_pid, os.getpid()})

    def _life(self) -> liveness.Life:
        return liveness.judge(self._holder.run_id, self._holder.guard_pid, self._boot_id, self._places.runs)

    def _having_file(self) -> list[int]:
        return locking.by(os.path.join(self._places.runs, self._holder.run_id))

    def _having_lock(self) -> list[int]:
        """Return who holds the job's lock, as long as that is the run's: the lock file says whose it is."""
        noted = holding.holder_by_note(self._places.locks, self._places.runs, self._job)
        if noted is None or noted.run_id != self._holder.run_id:
            return []
        return locking.by_run(lock.path_of(self._places.locks, self._job), self._holder.guard_pid)


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


def _give_order(runs: str, run_id: str, by: str) -> None:
    """Write it, in place of one that another start has given. A full disk: the run will not know by whom."""
    fresh = os.path.join(runs, by + ORDER)  # our own name: nobody else writes it
    try:
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, by.encode())
        finally:
            os.close(fd)
        os.rename(fresh, os.path.join(runs, run_id + ORDER))
    except OSError:
        return


def _withdraw_order(runs: str, run_id: str) -> None:
    try:
        os.unlink(os.path.join(runs, run_id + ORDER))
    except OSError:
        return


def _as_run_id(data: bytes) -> str | None:
    text = data.decode("ascii", "replace")
    return text if len(text) == 36 and not text.strip("0123456789abcdef-") else None

"""Whether a run that has no finish still lives: decided by its lock and its process, never by a stored status."""

from __future__ import annotations

import os

from runguard.guard import host, runfile
from runguard.record import NamedTuple

ALIVE, GUARD_GONE, LOST = "alive", "guard gone", "lost"


class Life(NamedTuple):
    """What is known of a run without a finish."""

    state: str  # ALIVE; GUARD_GONE: the command goes on without its guard; LOST
    because: str
    command_pid: int | None
    left: runfile.Left | None  # what its run file tells


def judge(run_id: str, guard_pid: int | None, boot_id: str | None, runs: str) -> Life:
    """Return whether the run lives, by its run file in the directory `runs`."""
    path = os.path.join(runs, run_id)
    left = left_by(path)
    command_pid = left.command_pid if left else None
    alive = held(path)
    here = host.boot_id()  # "" where there is no /proc
    if not alive and boot_id and here and boot_id != here:  # a lock is never held across a restart
        return Life(LOST, "the host restarted", command_pid, left)
    guard_ticks = left.guard_start if left else None
    boot = boot_id or ""
    if guard_pid is not None and alive and (guard_ticks is None or host.lives(guard_pid, guard_ticks, boot)):
        return Life(ALIVE, f"guard pid {guard_pid} lives", command_pid, left)
    command_lives = left is not None and host.lives(command_pid, left.command_start, boot)
    if command_lives:
        return Life(GUARD_GONE, f"the guard is gone, command pid {command_pid} goes on", command_pid, left)
    if alive:
        return Life(GUARD_GONE, "the guard is gone, processes of the command go on", command_pid, left)
    return Life(LOST, "no end on record; guard and command are gone", command_pid, left)


def left_by(path: str) -> runfile.Left | None:
    """Return what the run file at `path` tells, or None where it tells nothing."""
    try:
        return runfile.read(path)
    except OSError:
        return None


def held(path: str) -> bool:
    """Return whether somebody holds the lock of the run file at `path`: its guard, or what its command left."""
    try:
        return runfile.probe(path)
    except OSError:
        return True  # it exists and cannot be asked: fail closed

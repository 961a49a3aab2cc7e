"""Who holds a job's lock. For display only: exclusion is the kernel's, and nothing is decided by what stands here."""

from __future__ import annotations

from runguard.guard import host, lock
from runguard.instant import from_rfc3339, rfc3339, span
from runguard.model import Holder
from runguard.store import lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runguard.guard.liveness import Life
    from runguard.guard.start import Start
    from runguard.store.reads import Run


def note(start: Start, argv: tuple[str, ...]) -> bytes:
    """Return what a holder writes into its lock file: `argv` has its secrets masked."""
    fields = {
        "run_id": start.run_id,
        "guard_pid": start.guard_pid,
        "guard_start": start.guard_ticks,
        "boot_id": start.boot_id,
        "started": rfc3339(start.at_us),
        "command": " ".join(argv)[: host.SHOWN_COMMAND],
    }
    return lines.encode(fields)


def holder_by_note(locks: str, runs: str, job: str) -> Holder | None:
    """Return the holder that the lock file of `job` names, or None where it names none."""
    from runguard.guard import liveness  # only where a start is refused

    try:
        fields = lines.parse(lock.read_note(locks, job))
        life = liveness.judge(fields["run_id"], fields["guard_pid"], fields["boot_id"], runs)
        started_us = from_rfc3339(fields["started"])
        pid, command = _who_lives(life, fields["guard_pid"], f"{runs}/{fields['run_id']}", lock.path_of(locks, job))
        if pid is None or pid == life.command_pid:
            command = fields["command"]  # that has its secrets masked
        return Holder(fields["run_id"], None, fields["guard_pid"], pid, command, started_us)
    except (KeyError, TypeError, ValueError):
        return None  # the holder has not written it yet, or could not


def holder_of(run: Run, life: Life, runs: str) -> Holder:
    """Return a living run as a holder, by its file in the directory `runs`."""
    pid, command = _who_lives(life, run.guard_pid, f"{runs}/{run.run_id}")
    return Holder(run.run_id, run.number, run.guard_pid or 0, pid, command, run.started_us)


def describe(holder: Holder | None, now_us: int) -> str:
    """Return a clause that names the holder: `run 3f0c12ab (pid 412, for 5m: sleep 600)`."""
    if holder is None:
        return "a run that has not said who it is"
    name = f"run {holder.number}" if holder.number is not None else f"run {holder.run_id[:8]}"
    pid = f"pid {holder.command_pid}" if holder.command_pid else f"guard pid {holder.guard_pid}"
    command = holder.command or "a command that cannot be seen from here"
    return f"{name} ({pid}, for {span(now_us - holder.started_us)}: {command})"


def _who_lives(life: Life, guard_pid: int | None, *files: str) -> tuple[int | None, str]:
    """Return pid and command line of the command; where that has gone, and the guard too, of who holds the locks."""
    pid, left = life.command_pid, life.left
    if pid is not None and left is not None and host.start_ticks(pid) == left.command_start:
        return pid, host.command_line(pid)
    from runguard.guard import locking  # a walk through /proc

    having = locking.by(*files)
    if guard_pid in having:
        return None, ""
    return (having[0], host.command_line(having[0])) if having else (pid, "")

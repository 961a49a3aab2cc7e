"""How a run ended: outcome, the command's exit status and ours (design.md, "Decisions and exit statuses")."""

from __future__ import annotations

from _signal import SIGINT, SIGKILL  # type: ignore[import-not-found]

from runguard.errors import SpawnError
from runguard.guard.frames import omitted_bytes
from runguard.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from runguard.guard.capture import Capture, Kept
    from runguard.guard.provenance import Code
    from runguard.guard.supervise import Ended

TIMED_OUT = 124
UNKNOWN = 125  # the command ended, and nobody can say how
SIGNALLED = 128  # plus the signal's number, as a shell has it


class Verdict(NamedTuple):
    """One run, judged."""

    outcome: str  # of model.OUTCOMES
    exit_status: int | None  # the command's
    returned: int  # ours
    signal: int | None
    why: str | None
    suspect: str | None = None  # what is odd about a success
    killed_by: str | None = None  # the run that it was to make way for

    @property
    def interrupted(self) -> bool:
        """Whether a terminal's Ctrl-C has ended the command, itself or through its shell."""
        return SIGINT in (self.signal, (self.exit_status or 0) - SIGNALLED)


def judge(ended: Ended, *, out_of_memory: bool = False, min_time_s: float = 0.0) -> Verdict:
    """Return the verdict on a command that ran. A success sooner than `min_time_s` is suspect."""
    own = ended.exit_status if ended.signal is None else SIGNALLED + ended.signal
    if own is None:
        why = "its exit status was taken by another process"
        return Verdict("failed", None, UNKNOWN, None, why)
    if ended.timed_out:
        returned = SIGNALLED + SIGKILL if ended.kill_sent else TIMED_OUT
        return Verdict("timed_out", ended.exit_status, returned, ended.signal, None)
    if ended.stop_signal is not None:
        why = f"runguard was told to stop by signal {ended.stop_signal}"
        return Verdict("cancelled", ended.exit_status, own, ended.signal, why)
    if ended.signal is not None:
        oom = out_of_memory and ended.signal == SIGKILL
        return Verdict("killed", None, own, ended.signal, "oom" if oom else None)
    if own != 0:  # a shell says of its own command that was killed what we say of ours
        return Verdict("failed", own, own, None, "oom" if out_of_memory and own == SIGNALLED + SIGKILL else None)
    sooner = ended.duration_s < min_time_s
    suspect = f"it took {ended.duration_s:.1f} s, less than its min_time of {min_time_s:g} s" if sooner else None
    return Verdict("succeeded", own, own, None, None, suspect)


def not_started(error: SpawnError) -> Verdict:
    """Return the verdict on a command that could not be started."""
    return Verdict("failed", None, error.status, None, str(error))


def refused(status: int, why: str | None = None) -> Verdict:
    """Return the verdict on a command that was not to be started, for one of model.REFUSALS."""
    return Verdict("refused", None, status, None, why)


def stopped_before(signal: int) -> Verdict:
    """Return the verdict where we were told to stop before the command was started."""
    return Verdict("cancelled", None, SIGNALLED + signal, None, f"told to stop by signal {signal} before the start")


def remarks(verdict: Verdict, ended: Ended | None, timeout_s: float | None) -> list[str]:
    """Return what a person at three in the morning could not see from the command's own output and status."""
    said = [f"stopped to make way for run {verdict.killed_by} (--overlap kill)"] if verdict.killed_by else []
    if ended is None:
        return said or [verdict.why or "the command was not started"]
    if verdict.outcome == "timed_out":
        killed = ", then killed" if ended.kill_sent else ""
        what = "what the command left behind" if ended.late else "the command"
        said.append(f"timed out after {timeout_s:g} s: {what} was stopped{killed}")
    if verdict.why == "oom":
        whom = "the command" if verdict.signal else "what the command ran"
        said.append(f"the kernel killed {whom} for want of memory")
    if verdict.suspect:
        said.append(f"succeeded, but {verdict.suspect}")
    return [*said, *ended.remarks]


def finish_fields(
    run_id: str, verdict: Verdict, ended: Ended | None, hashed: list[Code], masked: Callable[[str], str]
) -> dict[str, Any]:
    """Return what the `run.finish` entry says of the end itself; `masked` takes secrets out of text."""
    return {
        "run_id": run_id,
        "outcome": verdict.outcome,
        "exit_status": verdict.exit_status,
        "returned": verdict.returned,
        "signal": verdict.signal,
        "why": None if verdict.why is None else masked(verdict.why),
        "suspect": verdict.suspect,
        "killed_by": verdict.killed_by,
        "duration_s": round(ended.duration_s, 6) if ended else 0.0,
        "user_s": round(ended.user_s, 6) if ended else None,
        "system_s": round(ended.system_s, 6) if ended else None,
        "peak_memory_bytes": ended.peak_memory_bytes if ended else None,
        "stragglers": [
            {"pid": each.pid, "command": masked(each.command), "fate": each.fate}
            for each in (ended.stragglers if ended else ())
        ],
        "survivors": [
            {"pid": each.pid, "command": masked(each.command), "uid": each.uid}
            for each in (ended.survivors if ended else ())
        ],
        "hashed": [code.fields(masked) for code in hashed],
    }


def output_fields(capture: Capture, kept: Kept, head: bytes, tail: bytes, *, merged: bool) -> dict[str, Any]:
    """Return what the entry says of the output: sizes, the hash of each whole stream, and those of what is kept."""
    from runguard.guard.provenance import small_sha256

    counts = (capture.count(1), capture.count(2))
    omitted = omitted_bytes(counts, (kept.head, kept.tail)) if kept.omitted_bytes else (0, 0)
    return {
        "merged": merged,
        "stdout": capture.stream(1)._asdict() | {"omitted_bytes": omitted[0]},
        "stderr": capture.stream(2)._asdict() | {"omitted_bytes": omitted[1]},
        "kept_bytes": kept.kept_bytes,
        "omitted_bytes": kept.omitted_bytes,
        "head_sha256": small_sha256(head),
        "tail_sha256": small_sha256(tail),
    }


def oom_kills() -> int:
    """Return how many processes of our control group the kernel has killed for want of memory, or 0."""
    try:
        with open("/proc/self/cgroup", encoding="utf-8", errors="replace") as file:
            groups = [line.strip().split(":", 2)[1:] for line in file]
    except (OSError, ValueError):
        return 0
    for controllers, path in groups:
        if not controllers:  # cgroup v2
            count = _oom_count(f"/sys/fs/cgroup{path}/memory.events")
        else:
            count = _oom_count(f"/sys/fs/cgroup/memory{path}/memory.oom_control") if controllers == "memory" else None
        if count is not None:
            return count
    return 0


def _oom_count(path: str) -> int | None:
    try:
        with open(path, encoding="utf-8") as file:
            return next((int(line.split()[1]) for line in file if line.startswith("oom_kill ")), None)
    except (OSError, ValueError):
        return None

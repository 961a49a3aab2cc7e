"""What the runs of a job were like lately, and which of them live now."""

from __future__ import annotations

import os
from statistics import median

from runguard.coverage.standing import Running, Success
from runguard.guard import host, liveness
from runguard.instant import SECOND_US, from_rfc3339
from runguard.model import Holder
from runguard.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from runguard.guard.liveness import Life
    from runguard.store.reads import Ping, Reader, Run

UNKNOWN = "unknown"  # beside the states of liveness: this account may not ask
_USUAL_OF = 20  # successes
_USUAL_FROM = 3
_ENDS = ("success", "failure")  # what a monitor waits for


class Refusals(NamedTuple):
    """The starts that were refused since the last that ran; duplicates, whose window was done, do not count."""

    number: int
    since_us: int | None
    why: str | None  # of the last one, of model.REFUSALS
    holder: Holder | None  # whom the last one named


class Lately(NamedTuple):
    """The runs of a job, as far as its standing depends on them."""

    last: Run | None
    ended: Run | None
    success: Success | None
    usual_s: float | None
    running: tuple[Running, ...]
    failures: int
    refusals: Refusals
    undelivered: Ping | None  # the report of the last end, where no monitor has taken it


NEVER = Lately(None, None, None, None, (), 0, Refusals(0, None, None, None), None)


def look(store: Reader, job: str, runs: str, now_us: int) -> Lately:
    """Return what is on record of the runs of a job, and what lives of them. Raises StoreError.

    `runs` is the directory of the files of living runs. A run that has died without a finish is `lost`, although
    nobody has recorded that yet.
    """
    last, ended = store.last_started(job), store.last_ended(job)
    running, died = [], {}
    for run in store.running(job):
        life = _life(store, run, runs)
        if life.state == liveness.LOST:
            died[run.start_seq] = life
        else:
            running.append(_running(store, run, life, now_us))
    if last is not None and last.start_seq in died:
        last = ended = last._replace(outcome="lost", why=died[last.start_seq].because)
    successes = store.rows("last_successes", job=job, page=_USUAL_OF)
    success_seq = successes[0][0] if successes else 0
    [(failures,)] = store.rows("failures_since", job=job, seq=success_seq)
    return Lately(
        last,
        ended,
        Success(*successes[0][1:6]) if successes else None,
        _usual_s([row[5] for row in successes if row[5] is not None and row[6] is None]),
        tuple(running),
        failures + sum(seq > success_seq for seq in died),
        _refusals(store, job, last.start_seq if last else 0),
        _undelivered(store, ended),
    )


def _life(store: Reader, run: Run, runs: str) -> Life:
    """Return whether a run lives; where this account may not look at its file, by the pid and start of its guard."""
    life = liveness.judge(run.run_id, run.guard_pid, run.boot_id, runs)
    if life.state == liveness.LOST or os.access(runs, os.X_OK):
        return life
    [start, *_] = store.entries(run.run_id) or [{}]
    if host.lives(run.guard_pid, start.get("guard_start"), run.boot_id or ""):
        return life
    return life._replace(state=UNKNOWN, because="its guard is gone; whether its command lives is not to be seen")


def _running(store: Reader, run: Run, life: Life, now_us: int) -> Running:
    command = host.command_line(life.command_pid) if life.command_pid else ""
    if not command:
        [start, *_] = store.entries(run.run_id) or [{}]
        command = " ".join(start.get("argv") or ())
    return Running(
        run_id=run.run_id,
        number=run.number,
        due_us=run.due_us,
        label=run.label,
        guard_pid=run.guard_pid,
        command_pid=life.command_pid,
        started_us=run.started_us,
        running_s=max(now_us - run.started_us, 0) / SECOND_US,
        command=command[: host.SHOWN_COMMAND],
        state=life.state,
        because=life.because,
        overdue="",
    )


def _usual_s(durations_us: list[int]) -> float | None:
    return median(durations_us) / SECOND_US if len(durations_us) >= _USUAL_FROM else None


def _refusals(store: Reader, job: str, after_seq: int) -> Refusals:
    [(number, since_us, last_seq)] = store.rows("refusals_since", job=job, seq=after_seq)
    if not number:
        return NEVER.refusals
    run_id, why = next((row[3], row[20]) for row in store.rows("run_at", seq=last_seq))
    [entry, *_] = store.entries(run_id) or [{}]
    return Refusals(number, since_us, why, _holder(entry.get("holder")))


def _holder(fields: dict[str, Any] | None) -> Holder | None:
    """Return whom a refusal named, or None where it named nobody as this version does."""
    names = ("run_id", "number", "guard_pid", "command_pid", "command")
    try:
        known = {name: fields[name] for name in names} if fields else {}
        return Holder(**known, started_us=from_rfc3339(fields["started"])) if fields else None
    except (LookupError, TypeError, ValueError, AttributeError):
        return None


def _undelivered(store: Reader, ended: Run | None) -> Ping | None:
    """Return the report of the last end, where no monitor has taken it: what was sent last counts."""
    sent = [ping for ping in store.pings(ended.run_id) if ping.event in _ENDS] if ended else []
    return sent[-1] if sent and sent[-1].verdict != "accepted" else None

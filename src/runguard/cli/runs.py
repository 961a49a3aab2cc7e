"""Runs as queries tell them: the JSON contract, and the cells of a table."""

from __future__ import annotations

from typing import Any

from runguard.cli.output import Column, Row
from runguard.cli.spans import local, span
from runguard.guard import liveness
from runguard.instant import rfc3339
from runguard.store.reads import Run

COLUMNS = (
    Column("RUN", right=True),
    Column("STARTED", short=len("2026-03-29 02:30")),
    Column("JOB"),
    Column("WINDOW", short=len("2026-03-29T02:30")),
    Column("TRY", right=True, cut=True),
    Column("OUTCOME"),
    Column("EXIT", right=True, cut=True),
    Column("TOOK", right=True, cut=True),
    Column("WHY", cut=True),
)
# Columns of CSV, in the order of the JSON contract.
FIELDS = (
    "run_id", "number", "job", "window.key", "window.start", "window.due", "window.label", "window.nominal",
    "window.zone", "attempt", "trigger", "reason", "outcome", "exit_status", "returned", "signal", "why",
    "started_at", "finished_at", "duration_s", "host", "actor", "revision", "supersedes", "superseded_by",
    "suspect", "covers.first", "covers.last", "covers.count",
)  # fmt: skip


class Seen:
    """Runs of one store as they are now: one that is recorded as running may be lost.

    `runs` is the directory of the files of living runs.
    """

    def __init__(self, runs: str) -> None:
        self.runs = runs

    def now(self, run: Run) -> tuple[Run, liveness.Life | None]:
        """Return the run with its outcome as of now, and what is known of a run without a finish.

        A run whose guard and command have gone is `lost`, although nobody has recorded that yet.
        """
        if run.outcome != "running":
            return run, None
        life = liveness.judge(run.run_id, run.guard_pid, run.boot_id, self.runs)
        if life.state == liveness.LOST:
            return run._replace(outcome="lost", why=life.because), life
        if life.state == liveness.GUARD_GONE:
            return run._replace(why=life.because), life
        return run, life

    def row(self, run: Run) -> Row:
        """Return the run as a row of `history`."""
        found, _ = self.now(run)
        return Row(facts(found), cells(found))


def facts(run: Run) -> dict[str, Any]:
    """Return a run by the JSON contract."""
    return {
        "run_id": run.run_id,
        "number": run.number,
        "job": run.job,
        "window": window(run),
        "attempt": run.attempt,
        "trigger": run.trigger,
        "reason": run.reason,
        "outcome": run.outcome,
        "exit_status": run.exit_status,
        "returned": run.returned,
        "signal": run.signal,
        "why": run.why,
        "started_at": rfc3339(run.started_us),
        "finished_at": None if run.finished_us is None else rfc3339(run.finished_us),
        "duration_s": None if run.duration_us is None else run.duration_us / 1_000_000,
        "host": run.host,
        "actor": run.actor,
        "revision": run.revision,
        "supersedes": run.supersedes,
        "superseded_by": run.superseded_by,
        "suspect": run.suspect,
        "covers": covers(run),
    }


def window(run: Run) -> dict[str, Any] | None:
    """Return the run's window by the JSON contract, or None."""
    if run.window_key is None or run.window_start_us is None or run.due_us is None:
        return None
    return {
        "key": run.window_key,
        "start": rfc3339(run.window_start_us),
        "due": rfc3339(run.due_us),
        "label": run.label,
        "nominal": run.nominal,
        "zone": run.zone,
    }


def covers(run: Run) -> dict[str, Any] | None:
    """Return the dues that a catch-up answers besides its own by the JSON contract, or None."""
    if run.covers_first_us is None or run.covers_last_us is None:
        return None
    return {"first": rfc3339(run.covers_first_us), "last": rfc3339(run.covers_last_us), "count": run.covers_count}


def cells(run: Run) -> tuple[str, ...]:
    """Return the cells of `COLUMNS`."""
    return (
        str(run.number),
        local(run.started_us),
        run.job,
        run.label or "",
        "" if run.attempt is None else str(run.attempt),
        run.outcome,
        ended(run),
        span(None if run.duration_us is None else run.duration_us / 1_000_000),
        run.why or (f"suspect: {run.suspect}" if run.suspect else ""),
    )


def ended(run: Run) -> str:
    """Return the command's exit status, or the signal that ended it."""
    if run.exit_status is not None:
        return str(run.exit_status)
    return "" if run.signal is None else f"SIG{run.signal}"

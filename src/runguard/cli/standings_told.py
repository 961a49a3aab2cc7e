"""Standings as `status` and `check` tell them: the JSON contract, and the cells of a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from runguard.cli.output import Column, Row
from runguard.cli.spans import local, span
from runguard.coverage.levels import Assessment
from runguard.coverage.standing import Holding, Running, Standing
from runguard.instant import rfc3339
from runguard.model import Holder

if TYPE_CHECKING:
    from runguard.coverage.onrecord import Ran
    from runguard.coverage.verdicts import Judged

_MINUTE = len("2026-03-29 02:30")
COLUMNS = (
    Column("JOB"),
    Column("LEVEL"),
    Column("LAST RUN", short=_MINUTE),
    Column("OUTCOME"),
    Column("WINDOW", spare=True),
    Column("NEXT DUE", short=_MINUTE),
    Column("STREAK", spare=True),
    Column("NOW", wrap=True),
)
# Columns of CSV, in the order of the JSON contract.
FIELDS = (
    "job", "level", "reasons", "schedule", "zone", "retired", "last.number", "last.outcome", "last.started_at",
    "last_success.finished_at", "last_exit", "usual_duration_s", "running", "holder.pid", "holder.command",
    "holder.held_s", "overdue", "failures_in_a_row", "refusals_in_a_row", "refused_since", "newest.key",
    "newest.verdict", "missing", "failed", "lost", "suspects", "undelivered", "journaled", "next_due",
)  # fmt: skip


def row(assessment: Assessment) -> Row:
    """Return a job as JSON tells it and as cells of `COLUMNS`."""
    return Row(facts(assessment), cells(assessment))


def facts(assessment: Assessment) -> dict[str, Any]:
    """Return how a job stands by the JSON contract."""
    found = assessment.standing
    success = found.last_success
    return {
        "job": found.job,
        "level": assessment.level,
        "reasons": [{"level": reason.level, "text": reason.text} for reason in assessment.reasons],
        "recorded": found.recorded,
        "retired": found.retired,
        "schedule": found.schedule,
        "zone": found.zone,
        "last": _run(found.last),
        "last_success": None if success is None else {
            "run_id": success.run_id, "number": success.number, "finished_at": rfc3339(success.finished_us),
            "due": _instant(success.due_us),
        },
        "last_exit": found.last_exit,
        "usual_duration_s": found.usual_duration_s,
        "running": [_running(run) for run in found.running],
        "holder": _holder(found.holder),
        "overdue": found.overdue,
        "failures_in_a_row": found.failures_in_a_row,
        "refusals_in_a_row": found.refusals_in_a_row,
        "refused_since": _instant(found.refused_since_us),
        "refused_why": found.refused_why,
        "refused_by": _refused_by(found.refused_by),
        "newest": _window(found.newest),
        "missing": len(found.missing),
        "oldest_missing": _window(found.missing[0] if found.missing else None),
        "newest_missing": _window(found.missing[-1] if found.missing else None),
        "failed": len(found.failed),
        "lost": len(found.lost),
        "suspects": len(found.suspects),
        "undelivered": [each._asdict() for each in found.undelivered],
        "journaled": found.journaled,
        "next_due": _instant(found.next_due_us),
    }  # fmt: skip


def cells(assessment: Assessment) -> tuple[str, ...]:
    """Return the cells of `COLUMNS`."""
    found = assessment.standing
    upcoming = "retired" if found.retired else found.upcoming.label if found.upcoming else ""
    return (
        found.job,
        assessment.level,
        local(found.last.started_us) if found.last else "never",
        found.last.outcome if found.last else "",
        found.newest.verdict if found.newest else "",
        upcoming,
        _streak(found),
        "; ".join((*_held(found), *(reason.text for reason in assessment.reasons))),
    )


def _streak(found: Standing) -> str:
    told = ((found.failures_in_a_row, "failed"), (found.refusals_in_a_row, "refused"))
    return ", ".join(f"{count} {what}" for count, what in told if count)


def _held(found: Standing) -> Iterator[str]:
    """Yield who holds the lock and for how long, and the runs that live without it, or whose lock is not to be seen."""
    usually = f", usually {span(found.usual_duration_s)}" if found.usual_duration_s is not None else ""
    holder = found.holder
    if holder is not None:
        name = "a process" if holder.number is None else f"run {holder.number}"
        lasts = "that this account cannot see"
        if holder.pid is not None:
            lasts = f"(pid {holder.pid}, for {span(holder.held_s)}{usually}: {holder.command})"
        yield f"{name} {lasts} holds the lock"
    for run in found.running:
        if holder is None or holder.number != run.number:
            pid = f"pid {run.command_pid}" if run.command_pid else f"guard pid {run.guard_pid}"
            shares = holder is not None and bool({run.guard_pid, run.command_pid} & set(holder.pids))
            does = "holds the lock too" if shares else "is running"
            yield f"run {run.number} ({pid}, for {span(run.running_s)}{usually}: {run.command}) {does}"


def _instant(at_us: int | None) -> str | None:
    return None if at_us is None else rfc3339(at_us)


def _run(run: Ran | None) -> dict[str, Any] | None:
    if run is None:
        return None
    return {
        "run_id": run.run_id,
        "number": run.number,
        "label": run.label,
        "attempt": run.attempt,
        "outcome": run.outcome,
        "exit_status": run.exit_status,
        "signal": run.signal,
        "why": run.why,
        "suspect": run.suspect,
        "started_at": rfc3339(run.started_us),
        "finished_at": _instant(run.finished_us),
        "duration_s": None if run.duration_us is None else run.duration_us / 1_000_000,
    }


def _running(run: Running) -> dict[str, Any]:
    return {
        "run_id": run.run_id,
        "number": run.number,
        "label": run.label,
        "guard_pid": run.guard_pid,
        "command_pid": run.command_pid,
        "command": run.command,
        "started_at": rfc3339(run.started_us),
        "running_s": run.running_s,
        "state": run.state,
        "because": run.because,
        "overdue": run.overdue or None,
    }


def _holder(holder: Holding | None) -> dict[str, Any] | None:
    return None if holder is None else {**holder._asdict(), "pids": list(holder.pids)}


def _refused_by(holder: Holder | None) -> dict[str, Any] | None:
    if holder is None:
        return None
    told: dict[str, Any] = holder._asdict()
    told["started_at"] = rfc3339(told.pop("started_us"))
    return told


def _window(judged: Judged | None) -> dict[str, Any] | None:
    if judged is None:
        return None
    window = judged.window
    return {"key": window.key, "due": rfc3339(window.due_us), "label": window.label, "verdict": judged.verdict,
            "because": judged.because}  # fmt: skip

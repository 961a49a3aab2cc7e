"""One start: everything that is known about a run before anything is locked, written or spawned."""

from __future__ import annotations

import os

from runguard.instant import SECOND_US, from_rfc3339, rfc3339
from runguard.model import Asked, Covers, Resolution, Revision, Schedule, Window
from runguard.record import NamedTuple
from runguard.schedule.windows import Timetable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from runguard.guard.answering import Answer
    from runguard.guard.decide import Proceed, Refuse
    from runguard.model import Earlier, Holder

    Masked = Callable[[str], str]

GIVEN = (
    "RUNGUARD_RUN_ID",
    "RUNGUARD_JOB",
    "RUNGUARD_ATTEMPT",
    "RUNGUARD_TRIGGER",
    "RUNGUARD_WINDOW_KEY",
    "RUNGUARD_SCHEDULED_AT",
    "RUNGUARD_WINDOW_START",
    "RUNGUARD_WINDOW_END",
    "RUNGUARD_ITEMS",
    "RUNGUARD_DONE",
    "RUNGUARD_UNCERTAIN",
    "RUNGUARD_FENCE",
)


class Expected(NamedTuple):
    """What the job's schedule says about this start."""

    schedule: Schedule
    timetable: Timetable | None  # of its own options; None where the window came from elsewhere
    tzdata: str
    resolution: Resolution  # by the schedule alone; the job's revisions may move the window's start


class Start(NamedTuple):
    """Who starts what, where and for which window."""

    run_id: str
    job: str
    argv: tuple[str, ...]
    shell: bool
    cwd: str
    environ: dict[str, str]
    at_us: int  # the one look at the clock
    at_since_boot_s: float  # and at the one that never steps
    intended_us: int  # the instant whose window is answered: at_us, or given from outside
    expected: Expected | None
    asked: Asked | None
    covers: Covers | None
    trigger: str
    reason: str | None
    parent: str | None
    boot_id: str
    guard_pid: int
    guard_ticks: int | None
    waited_s: float = 0.0  # for an earlier run to end
    replaces: Earlier | None = None  # the attempt before, where it is tried again without a window
    ended: tuple[Holder, ...] = ()  # earlier runs that were stopped to make way for this one

    def begun(self, at_us: int, at_since_boot_s: float) -> Start:
        """Return the same start, beginning when the clocks said this."""
        return self._replace(at_us=at_us, at_since_boot_s=at_since_boot_s)


def new_run_id() -> str:
    """Return a random UUID (RFC 9562, version 4) as text."""
    raw = bytearray(os.urandom(16))
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    text = raw.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def parent_of(environ: Mapping[str, str]) -> str | None:
    """Return the run inside which we were started, or None: a variable that is no UUID was not given by runguard."""
    text = environ.get("RUNGUARD_RUN_ID", "").lower()
    parts = text.split("-")
    well_formed = [len(part) for part in parts] == [8, 4, 4, 4, 12] and not text.strip("0123456789abcdef-")
    return text if well_formed else None


def command_environ(start: Start, window: Window | None, attempt: int) -> dict[str, str]:
    """Return the command's environment: ours, with the run's variables and without the ping URL.

    Variables of the run that do not apply are unset, even inherited ones.
    """
    environ = {name: value for name, value in start.environ.items() if name not in GIVEN and name != "RUNGUARD_PING"}
    environ["RUNGUARD_RUN_ID"] = start.run_id
    environ["RUNGUARD_JOB"] = start.job
    environ["RUNGUARD_ATTEMPT"] = str(attempt)
    environ["RUNGUARD_TRIGGER"] = start.trigger
    if window is not None:
        environ["RUNGUARD_WINDOW_KEY"] = window.key
        environ["RUNGUARD_SCHEDULED_AT"] = window.label
        environ["RUNGUARD_WINDOW_START"] = rfc3339(window.start_us)
        environ["RUNGUARD_WINDOW_END"] = rfc3339(window.due_us)
    return environ


def start_fields(start: Start, number: int | None, found: Answer, decision: Proceed, masked: Masked) -> dict[str, Any]:
    """Return what a `run.start` entry says of the start; its command and remarks come to it. `masked` masks secrets."""
    return {
        **_common_fields(start, number, found, masked),
        "attempt": decision.attempt,
        "supersedes": decision.supersedes,
        "covers": _covers_fields(start.covers),
        "waited_s": start.waited_s,
        "ended": [_holder_fields(holder, masked) for holder in start.ended],
    }


def refusal_fields(start: Start, found: Answer, refusal: Refuse, masked: Masked) -> dict[str, Any]:
    """Return the same of a `run.refused` entry."""
    return {
        **_common_fields(start, None, found, masked),
        "why": refusal.why,
        "because": masked(refusal.because),
        "returned": refusal.status,
        "holder": _holder_fields(refusal.holder, masked) if refusal.holder else None,
    }


def expected_fields(expected: Expected) -> dict[str, Any]:
    """Return a window as the ledger tells it: with the schedule, zone, policy and tzdata version actually used."""
    return {
        **window_fields(expected.resolution.window),
        "zone": expected.schedule.zone,
        "tzdata": expected.tzdata,
        "schedule": schedule_fields(expected.schedule),
    }


def window_fields(window: Window) -> dict[str, Any]:
    """Return a window in itself, as the ledger and the JSON contract tell it."""
    return {
        "key": window.key,
        "start": rfc3339(window.start_us),
        "due": rfc3339(window.due_us),
        "label": window.label,
        "nominal": window.nominal,
        "how": window.how,
        "fold": window.fold,
        "collapsed": list(window.collapsed),
    }


def window_of(fields: Mapping[str, Any]) -> Window:
    """Return the window that `window_fields` told. Raises KeyError or ValueError where they are none of a window."""
    return Window(
        key=fields["key"],
        start_us=from_rfc3339(fields["start"]),
        due_us=from_rfc3339(fields["due"]),
        label=fields["label"],
        nominal=fields["nominal"],
        how=fields["how"],
        fold=fields["fold"],
        collapsed=tuple(fields["collapsed"]),
    )


def schedule_fields(schedule: Schedule) -> dict[str, object]:
    """Return a schedule as the ledger tells it."""
    return {
        "expression": schedule.expression,
        "zone": schedule.zone,
        "policy": schedule.policy,
        "gap": schedule.gap,
        "fold": schedule.fold,
    }


def change_fields(job: str, change: str, revision: Revision | None) -> dict[str, object]:
    """Return the fields of `job.changed`: how the ledger tells that a job was registered, edited or retired."""
    schedule = revision.schedule if revision else None
    return {
        "job": job,
        "change": change,
        "revision": revision.number if revision else None,
        "schedule": schedule_fields(schedule) if schedule else None,
        "after": rfc3339(revision.after_us) if revision else None,
    }


def _common_fields(start: Start, number: int | None, found: Answer, masked: Masked) -> dict[str, Any]:
    """Return what starts and refused starts have in common."""
    expected = found.expected
    late_s = (start.at_us - expected.resolution.window.due_us) / SECOND_US if expected else None
    return {
        "run_id": start.run_id,
        "number": number,
        "job": start.job,
        "revision": found.revision,
        "window": expected_fields(expected) if expected else None,
        "late_s": late_s,
        "trigger": start.trigger,
        "reason": None if start.reason is None else masked(start.reason),
        "parent": start.parent,
        "boot_id": start.boot_id,
        "guard_pid": start.guard_pid,
        "guard_start": start.guard_ticks,
    }


def _holder_fields(holder: Holder, masked: Masked) -> dict[str, Any]:
    fields = holder._asdict()
    fields["started"] = rfc3339(fields.pop("started_us"))
    fields["command"] = masked(holder.command)
    return fields


def _covers_fields(covers: Covers | None) -> dict[str, Any] | None:
    """Return the span of dues that a catch-up answers with one run, or None."""
    if covers is None:
        return None
    return {"first": rfc3339(covers.first_due_us), "last": rfc3339(covers.last_due_us), "count": covers.windows}

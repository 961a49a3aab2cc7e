"""The words of the product as records: frozen, and without behaviour beyond themselves.

Instants are UTC microseconds (`_us`), spans seconds (`_s`). A fixed set of words is a plain string here (an enum
would cost its import before the command is spawned); the sets stand beside the records.
"""

from __future__ import annotations

from runguard.record import NamedTuple

# How a run ended. `running` stands for a start without a finish.
OUTCOMES = (
    "running",
    "succeeded",
    "failed",
    "timed_out",
    "killed",
    "cancelled",
    "lost",
    "superseded",
    "refused",
)
# What became of an expected window: exactly one of these (time.md, "Missing").
VERDICTS = ("succeeded", "failed", "running", "lost", "missing", "waived", "pending")
# Why a start was refused.
REFUSALS = ("overlap", "duplicate", "off-schedule", "held", "claimed", "deadline", "unsafe")


class Schedule(NamedTuple):
    """What a job is expected to answer, as it was given. Two equal schedules expect the same windows."""

    expression: str
    zone: str  # IANA name, or "localtime" where the host's zone has no name
    policy: str = "vixie"  # a preset of schedule/policy.py
    gap: str | None = None  # after | shift | skip; None: as the policy says
    fold: str | None = None  # first | second | both; None: as the policy says


class Window(NamedTuple):
    """One expected run: everything in `[start_us, due_us)` is its subject."""

    key: str  # stable across tzdata updates: "L2024-03-10T02:30", "L…~2" or "U2024-03-10T07:00Z"
    start_us: int
    due_us: int
    label: str  # local time of due with its offset: "2024-03-10T03:00-04:00"
    nominal: str  # the local minute that the schedule names: "2024-03-10T02:30"
    how: str  # real | gap | shift
    fold: int  # 1 for the second occurrence of a repeated minute
    collapsed: tuple[str, ...] = ()  # other nominal minutes that landed on the same instant


class Revision(NamedTuple):
    """One period of a job's schedule: it expects the dues later than `after_us`, up to its successor's `after_us`."""

    number: int
    schedule: Schedule | None  # None: the job is retired and nothing is expected
    after_us: int


class Earlier(NamedTuple):
    """What is on record for a window before this start: its latest start or waiver."""

    run_id: str  # waived: of the latest start, or "" where there is none
    number: int | None
    outcome: str  # of OUTCOMES, or "waived"
    attempt: int  # starts of this very window so far: 0 where it was only waived or covered by another's run
    host: str


class Asked(NamedTuple):
    """A window that a start is to answer because it was asked for: by a catch-up or by a person's re-run."""

    trigger: str  # catch-up | rerun
    window: Window | None  # None: the run that is replaced had none
    schedule: Schedule | None
    revision: int | None
    tzdata: str
    replaces: Earlier | None = None  # a run without a window


class Covers(NamedTuple):
    """The windows that a catch-up answers with one run, besides that run's own."""

    first_due_us: int
    last_due_us: int
    windows: int
    start_us: int | None  # where the run's own window begins in their place (merge), or None (latest)


class Resolution(NamedTuple):
    """Which window a start at some instant answers."""

    window: Window
    late_s: float  # negative: early
    next_due_us: int | None  # None: the schedule ends
    off_schedule: bool  # so late that the daemon and the schedule disagree about the zone


class Holder(NamedTuple):
    """Who holds a job's lock. For display only: nothing is ever decided by it."""

    run_id: str
    number: int | None
    guard_pid: int
    command_pid: int | None
    command: str
    started_us: int

"""How one job stands: everything that a person or a monitor is told about it, as one record."""

from __future__ import annotations

from runguard.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from runguard.coverage.onrecord import Ran
    from runguard.coverage.verdicts import Judged
    from runguard.model import Holder, Window


class Running(NamedTuple):
    """A run without a finish that is not known to have died."""

    run_id: str
    number: int
    due_us: int | None  # of its window
    label: str | None
    guard_pid: int | None
    command_pid: int | None
    started_us: int
    running_s: float
    command: str  # of the process, or, where it is not to be seen, as it was recorded
    state: str  # alive | guard gone | unknown: this account may not ask
    because: str  # how that is known
    overdue: str  # why it is taken to run too long, as a clause, or ""


class Holding(NamedTuple):
    """Who holds the job's lock now."""

    pid: int | None  # None: no process that this account can see
    command: str
    held_s: float | None  # since its run started, or since the process did
    number: int | None  # of the run that it belongs to, where that is known
    pids: tuple[int, ...]


class Success(NamedTuple):
    """The last run that succeeded."""

    run_id: str
    number: int
    finished_us: int
    due_us: int | None
    duration_us: int | None


class Undelivered(NamedTuple):
    """The report of an end that no monitor has taken."""

    event: str  # success | failure
    target: str  # the address with its secrets masked
    why: str
    waits: bool  # in the spool, to be sent later


class Standing(NamedTuple):
    """How a job stands at `now_us`. Windows are those of the look-back; see `report.standing`."""

    job: str
    now_us: int
    grace_s: float
    recorded: bool  # False: only the configuration names it
    retired: bool
    since_us: int | None  # when it became known
    schedule: str | None  # the expression that it goes by now
    zone: str | None
    readable: bool  # False: this host cannot read the schedule or the zone, so nothing later is expected
    last: Ran | None  # its latest start that was not refused, `lost` where it has died
    ended: Ran | None  # its latest that has come to an end
    last_success: Success | None
    usual_duration_s: float | None  # median of the last successes
    running: tuple[Running, ...]
    holder: Holding | None
    failures_in_a_row: int  # ends since the last success that were none
    refusals_in_a_row: int  # since the last start that ran; those that were duplicates do not count
    refused_since_us: int | None  # the first of them
    refused_why: str | None  # the last of them, of model.REFUSALS
    refused_by: Holder | None  # whom it named
    newest: Judged | None  # the newest window that is not pending
    missing: Sequence[Judged]  # windows beyond their grace that nobody answered, oldest first
    failed: Sequence[Judged]
    lost: Sequence[Judged]
    suspects: Sequence[Judged]  # windows that were answered, but perhaps not well
    undelivered: Sequence[Undelivered]  # of the last end, and what the spool holds
    journaled: int  # entries of its runs that wait in the journal
    journaled_outcome: str  # of the last run that waits there, "" where none does
    upcoming: Window | None  # the next that becomes due

    @property
    def last_exit(self) -> int | None:
        """The status of the last end: the command's, 128+N where signal N ended it, else what runguard returned."""
        if self.ended is None:
            return None
        if self.ended.exit_status is not None:
            return self.ended.exit_status
        return self.ended.returned if self.ended.signal is None else 128 + self.ended.signal

    @property
    def next_due_us(self) -> int | None:
        """When the next window becomes due."""
        return self.upcoming.due_us if self.upcoming else None

    @property
    def overdue(self) -> bool:
        """Whether a run takes longer than it should."""
        return any(run.overdue for run in self.running)

"""What a start does about its window: a pure function of what is on record."""

from __future__ import annotations

from runguard.model import Earlier, Window
from runguard.record import NamedTuple

OFF_SCHEDULE_US = 3 * 3600 * 1_000_000

DONE = ("succeeded", "waived")


class Proceed(NamedTuple):
    """Run the command as `attempt` of the window."""

    attempt: int
    supersedes: str | None  # run id of the attempt before
    because: str


class Refuse(NamedTuple):
    """Do not run the command: exit with `status`. `why` is one of model.REFUSALS."""

    why: str
    status: int
    because: str
    earlier: Earlier | None = None


class Question(NamedTuple):
    """All that the decision depends on."""

    window: Window | None
    earlier: Earlier | None
    off_schedule: bool = False
    next_in_us: int = OFF_SCHEDULE_US + 1  # from now to the next due
    asked_for: bool = False  # a person runs it again, whatever is on record
    late_us: int = 0
    deadline_us: int | None = None
    on_lost: str = "hold"


def decide(question: Question) -> Proceed | Refuse:
    """Return what a start that holds the lock does (design.md, "Decisions and exit statuses")."""
    window, earlier = question.window, question.earlier
    if window is None and earlier is None:
        return Proceed(1, None, "the run has no window")
    if _is_too_late(question):
        return Refuse("deadline", 75, f"the window was due {question.late_us // 1_000_000} s ago, past its deadline")
    if earlier is None:
        return Proceed(1, None, "the window is open")
    name = f"run {earlier.number}" if earlier.number is not None else f"run {earlier.run_id}"
    # A window that was only waived, or covered by another window's run, has no attempt of its own to replace.
    replaced = earlier.run_id if earlier.attempt else None
    if question.asked_for:
        return Proceed(earlier.attempt + 1, replaced, f"a person runs it again; {name} {earlier.outcome}")
    if earlier.outcome in DONE:
        return _answered(question, earlier, name)
    if earlier.outcome == "lost" and question.on_lost == "hold":
        because = f"{name} of this window was lost and may have done part of its work; look, then run it with --reason"
        return Refuse("held", 75, because, earlier)
    return Proceed(earlier.attempt + 1, replaced, f"{name} of this window {_was(earlier.outcome)}")


def _answered(question: Question, earlier: Earlier, name: str) -> Refuse:
    """A done window: a duplicate, or a sign that the daemon fires by another zone (time.md, rule 4)."""
    if question.off_schedule and question.next_in_us <= OFF_SCHEDULE_US:
        minutes = question.next_in_us // 60_000_000
        because = f"{minutes} min before the next due, and the window before it is done by {name}: another time zone?"
        return Refuse("off-schedule", 0, because, earlier)
    return Refuse("duplicate", 0, f"the window is done by {name} ({earlier.outcome})", earlier)


def _is_too_late(question: Question) -> bool:
    """Whether nobody wants the window's work any more; a window that is done is done all the same."""
    done = question.earlier is not None and question.earlier.outcome in DONE
    overdue = question.deadline_us is not None and question.late_us > question.deadline_us
    return overdue and not question.asked_for and not done


def _was(outcome: str) -> str:
    told = {"failed": "failed", "timed_out": "timed out", "running": "never finished"}
    return told.get(outcome, f"was {outcome}")

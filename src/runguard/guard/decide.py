"""What a start does about its window: a pure function of what is on record."""

from __future__ import annotations

from runguard.instant import span
from runguard.model import Earlier, Holder, Window
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
    holder: Holder | None = None  # who is in the way
    aside: str = ""  # said behind `because`, and never recorded: names of cases


class Question(NamedTuple):
    """All that the decision depends on."""

    window: Window | None
    earlier: Earlier | None
    job: str = ""
    off_schedule: bool = False
    next_in_us: int = OFF_SCHEDULE_US + 1  # from now to the next due
    asked_for: bool = False  # a person runs it again, whatever is on record
    late_us: int = 0
    deadline_us: int | None = None
    on_lost: str = "hold"
    beside: bool = False  # the job may run beside an earlier run of its own
    own: str | None = None  # the attempt before of this very start


def decide(question: Question) -> Proceed | Refuse:
    """Return what a start that holds the lock does (design.md, "Decisions and exit statuses")."""
    window, earlier = question.window, question.earlier
    if window is None and earlier is None:
        return Proceed(1, None, "the run has no window")
    if _is_too_late(question):
        return Refuse("deadline", 75, _too_late(question))
    if earlier is None:
        return Proceed(1, None, "the window is open")
    name = f"run {earlier.number}" if earlier.number is not None else f"run {earlier.run_id}"
    # A window that was only waived, or covered by another window's run, has no attempt of its own to replace.
    replaced = earlier.run_id if earlier.attempt else None
    if question.asked_for:
        was = "it was waived" if earlier.outcome == "waived" else f"{name} {_was(earlier.outcome)}"
        return Proceed(earlier.attempt + 1, replaced, f"a person runs it again; {was}")
    if earlier.outcome in DONE:
        return _answered(question, earlier, name)
    if earlier.outcome == "running" and question.beside:
        return Proceed(earlier.attempt + 1, question.own, f"{name} of this window still runs, and overlap is allowed")
    if earlier.outcome == "lost" and question.on_lost == "hold":
        return Refuse("held", 75, _held(question, earlier, name), earlier)
    return Proceed(earlier.attempt + 1, replaced, f"{name} of this window {_was(earlier.outcome)}")


def _answered(question: Question, earlier: Earlier, name: str) -> Refuse:
    """A done window: a duplicate, or a sign that the daemon fires by another zone (time.md, rule 4)."""
    if question.off_schedule and question.next_in_us <= OFF_SCHEDULE_US:
        early = span(question.next_in_us)
        because = f"{early} before the next due, and the window before it is done by {name}: another time zone?"
        return Refuse("off-schedule", 0, because, earlier)
    if earlier.outcome == "waived":
        because = f"the window is waived; to run it all the same: runguard rerun {_named(question)} --reason TEXT"
        return Refuse("duplicate", 0, because, earlier)
    return Refuse("duplicate", 0, f"the window is done by {name} ({earlier.outcome})", earlier)


def _held(question: Question, earlier: Earlier, name: str) -> str:
    shown = earlier.number if earlier.number is not None else earlier.run_id
    look = f"{name} of this window was lost and may have done part of its work; look: runguard show {shown} --output"
    named = _named(question)
    return f"{look}; then: runguard rerun {named} --reason TEXT, or: runguard waive {named} --reason TEXT"


def _too_late(question: Question) -> str:
    limit = span(question.deadline_us or 0)
    late = f"the window was due {span(question.late_us)} ago, past its deadline of {limit}"
    return f"{late}; to run it all the same: runguard rerun {_named(question)} --reason TEXT"


def _named(question: Question) -> str:
    return f"{question.job}@{question.window.key if question.window else ''}"


def _is_too_late(question: Question) -> bool:
    """Whether nobody wants the window's work any more; a window that is done is done all the same."""
    done = question.earlier is not None and question.earlier.outcome in DONE
    overdue = question.deadline_us is not None and question.late_us > question.deadline_us
    return overdue and not question.asked_for and not done


def _was(outcome: str) -> str:
    told = {"failed": "failed", "timed_out": "timed out", "running": "never finished"}
    return told.get(outcome, f"was {outcome}")

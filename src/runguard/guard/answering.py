"""Which window a start answers once the job's revisions are known: a schedule that was edited keeps windows tiling."""

from __future__ import annotations

from runguard.guard.decide import OFF_SCHEDULE_US, Question
from runguard.guard.start import Expected, change_fields
from runguard.instant import SECOND_US, rfc3339, span
from runguard.model import Covers, Revision
from runguard.record import NamedTuple
from runguard.schedule import revisions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from runguard.guard.decide import Proceed
    from runguard.guard.prepare import Prepared
    from runguard.guard.start import Start
    from runguard.model import Earlier, Window
    from runguard.store.reads import Reader


class Answer(NamedTuple):
    """What a start answers: `expected` by which revision, and the change of the job to record first, if any."""

    expected: Expected | None
    revision: int | None
    change: dict[str, Any] | None = None

    @property
    def window(self) -> Window | None:
        """The window, where there is one."""
        return self.expected.resolution.window if self.expected else None


def answer(store: Reader, start: Start, early_us: int) -> Answer:
    """Return the window that `start` answers, and what has to change of the job first. Raises StoreError.

    A catch-up that merges windows into one lets its own begin where the first of them does.
    """
    found = _answer(store, start, early_us)
    if found.expected is None or start.covers is None or start.covers.start_us is None:
        return found
    resolution = found.expected.resolution
    window = resolution.window._replace(start_us=start.covers.start_us)
    return found._replace(expected=found.expected._replace(resolution=resolution._replace(window=window)))


def _answer(store: Reader, start: Start, early_us: int) -> Answer:
    """Return the window that `start` answers under the job's revisions, registering or revising it where needed.

    A job that is started without a schedule keeps its revision, and this run has no window. A retired job is
    registered again by a start with a schedule. A window that was asked for is answered as it is. Raises StoreError.
    """
    if start.asked is not None:
        return Answer(start.expected, start.asked.revision)
    known = store.revisions(start.job)
    latest = known[-1] if known else None
    if start.expected is None:
        change = None if latest or store.registered(start.job) else change_fields(start.job, "registered", None)
        return Answer(None, latest.number if latest else None, change)
    if latest is None:
        first = Revision(1, start.expected.schedule, start.expected.resolution.window.start_us)
        return Answer(start.expected, 1, change_fields(start.job, "registered", first))
    # A revision that was opened while the clock was ahead, and dues that were answered then, count for nothing once it
    # is back: they would hold the job up until that time comes.
    latest_us = max(start.at_us, start.intended_us) + early_us
    ahead = latest.after_us > latest_us
    if latest.schedule == start.expected.schedule and (latest.number == 1 or not ahead):
        window = start.expected.resolution.window
        if latest.number == 1 or window.start_us > latest.after_us:
            return Answer(start.expected, latest.number)
        return _answer_across(known, start, early_us, None)
    answered_us = store.last_answered_due_us(start.job)
    assert start.expected.timetable is not None
    after_us = revisions.opens_after(
        start.expected.timetable,
        start.intended_us,
        last_answered_due_us=None if answered_us is not None and answered_us > latest_us else answered_us,
        old_after_us=None if ahead else latest.after_us,
        early_us=early_us,
    )
    opened = Revision(latest.number + 1, start.expected.schedule, after_us)
    change = change_fields(start.job, "schedule" if latest.schedule else "registered", opened)
    return _answer_across([*known, opened], start, early_us, change)


def earlier_of(store: Reader, start: Start, found: Answer) -> Earlier | None:
    """Return what is on record for the window of `start`, or the run without a window that it replaces."""
    window = found.window
    if window is None:
        return start.replaces or (start.asked.replaces if start.asked else None)
    return store.latest(start.job, window.key, window.due_us)


def as_first_answered(store: Reader, start: Start, found: Answer, decision: Proceed) -> tuple[Start, Answer]:
    """Return the window as the attempt before recorded it, and let the start answer what that one covered too.

    What is on record is never derived again: a merged window stays one when it is run once more.
    """
    before = store.run(decision.supersedes) if decision.supersedes else None
    if before is None or found.expected is None:
        return start, found
    resolution = found.expected.resolution
    merges = start.covers is not None and start.covers.start_us is not None
    if before.window_key != resolution.window.key or merges:
        return start, found
    assert before.window_start_us is not None
    assert before.due_us is not None
    if before.covers_first_us is not None and before.covers_last_us is not None and start.covers is None:
        covers = Covers(before.covers_first_us, before.covers_last_us, before.covers_count or 0, None)
        start = start._replace(covers=covers)
    window = resolution.window._replace(
        start_us=before.window_start_us, due_us=before.due_us, label=before.label or resolution.window.label
    )
    return start, found._replace(expected=found.expected._replace(resolution=resolution._replace(window=window)))


def clock_stepped(store: Reader, start: Start, early_us: int) -> str:
    """Return a remark where the real clock is before a due that a run has finished for (time.md, rule 5), or ""."""
    if start.expected is None or start.intended_us != start.at_us:
        return ""
    due_us = store.last_finished_due_us(start.job)
    if due_us is None or start.at_us >= due_us - early_us:
        return ""
    return f"clock_stepped: the clock is before {rfc3339(due_us)}, the due of a run that has finished"


def off_schedule(start: Start, found: Answer) -> str:
    """Return a remark where an open window is run so late that the daemon seems to go by another zone, or "".

    time.md, rule 4.
    """
    resolution = found.expected.resolution if found.expected else None
    if resolution is None or not resolution.off_schedule or start.trigger != "schedule":
        return ""
    due_us = resolution.window.due_us
    ago = span(start.intended_us - due_us)
    return f"off schedule: the latest due was {rfc3339(due_us)}, {ago} ago, and the next is nearer"


def question(prepared: Prepared, found: Answer, earlier: Earlier | None) -> Question:
    """Return what the decision about a start depends on."""
    start, settings = prepared.start, prepared.settings
    asked_for = start.trigger in ("manual", "rerun")
    if found.expected is None:
        return Question(None, earlier, start.job, asked_for=asked_for)
    resolution = found.expected.resolution
    next_due_us = resolution.next_due_us
    return Question(
        window=resolution.window,
        earlier=earlier,
        job=start.job,
        off_schedule=resolution.off_schedule,
        next_in_us=OFF_SCHEDULE_US + 1 if next_due_us is None else next_due_us - start.intended_us,
        asked_for=asked_for,
        late_us=start.at_us - resolution.window.due_us,
        deadline_us=None if settings.deadline_s is None else round(settings.deadline_s * SECOND_US),
        on_lost=settings.on_lost,
        beside=settings.overlap == "allow",
        own=start.replaces.run_id if start.replaces else None,
    )


def _answer_across(known: list[Revision], start: Start, early_us: int, change: dict[str, Any] | None) -> Answer:
    """Resolve over all revisions of the job."""
    from runguard.guard.expecting import read  # only around an edit

    expecting = read(known)
    assert expecting is not None
    resolution = revisions.resolve(expecting.succession, start.intended_us, early_us=early_us)
    origin = expecting.origin(resolution.window)
    return Answer(Expected(origin.schedule, None, origin.tzdata, resolution), origin.revision, change)

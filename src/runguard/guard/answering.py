"""Which window a start answers once the job's revisions are known: a schedule that was edited keeps windows tiling."""

from __future__ import annotations

from runguard import zones
from runguard.errors import ScheduleError, ZoneError
from runguard.guard.start import Expected, schedule_fields
from runguard.instant import rfc3339
from runguard.model import Revision
from runguard.record import NamedTuple
from runguard.schedule import revisions
from runguard.schedule.revisions import Piece, Succession

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from runguard.guard.start import Start
    from runguard.model import Schedule
    from runguard.store.reads import Reader


class Answer(NamedTuple):
    """What a start answers: `expected` by which revision, and the change of the job to record first, if any."""

    expected: Expected | None
    revision: int | None
    change: dict[str, Any] | None = None


def answer(store: Reader, start: Start, early_us: int) -> Answer:
    """Return the window that `start` answers under the job's revisions, registering or revising it where needed.

    A job that is started without a schedule keeps its revision, and this run has no window. A retired job is
    registered again by a start with a schedule. Raises StoreError.
    """
    known = store.revisions(start.job)
    latest = known[-1] if known else None
    if start.expected is None:
        change = None if latest or store.registered(start.job) else _change(start.job, "registered", None)
        return Answer(None, latest.number if latest else None, change)
    if latest is None:
        first = Revision(1, start.expected.schedule, start.expected.resolution.window.start_us)
        return Answer(start.expected, 1, _change(start.job, "registered", first))
    if latest.schedule == start.expected.schedule:
        window = start.expected.resolution.window
        if latest.number == 1 or window.start_us > latest.after_us:
            return Answer(start.expected, latest.number)
        return _answer_across(known, start, early_us, None)
    after_us = revisions.opens_after(
        start.expected.timetable,
        start.intended_us,
        last_answered_due_us=store.last_answered_due_us(start.job),
        old_after_us=latest.after_us,
        early_us=early_us,
    )
    opened = Revision(latest.number + 1, start.expected.schedule, after_us)
    change = _change(start.job, "schedule" if latest.schedule else "registered", opened)
    return _answer_across([*known, opened], start, early_us, change)


def _answer_across(known: list[Revision], start: Start, early_us: int, change: dict[str, Any] | None) -> Answer:
    """Resolve over all revisions that expect anything, leaving out a zone or schedule that cannot be read any more."""
    assert start.expected is not None
    pieces: list[Piece] = []
    origin: dict[int, tuple[Schedule, str]] = {}
    for number, schedule, after_us in known:
        if schedule is None:
            continue
        try:
            data = zones.load(schedule.zone)
            pieces.append(Piece(number, after_us, revisions.timetable(schedule, data.zone)))
        except (ZoneError, ScheduleError):
            continue
        origin[number] = schedule, data.tzdata
    succession = Succession(pieces)
    resolution = revisions.resolve(succession, start.intended_us, early_us=early_us)
    piece = succession.piece_of(resolution.window.due_us)
    schedule, tzdata = origin[piece.number]
    return Answer(Expected(schedule, piece.timetable, tzdata, resolution), piece.number, change)


def _change(job: str, change: str, revision: Revision | None) -> dict[str, Any]:
    return {
        "job": job,
        "change": change,
        "revision": revision.number if revision else None,
        "schedule": schedule_fields(revision.schedule) if revision and revision.schedule else None,
        "after": rfc3339(revision.after_us) if revision else None,
    }

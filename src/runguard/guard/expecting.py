"""What a job is expected to answer: its recorded revisions as one set of dues, with the zones of today."""

from __future__ import annotations

from runguard import zones
from runguard.errors import ScheduleError, ZoneError
from runguard.model import Asked
from runguard.record import NamedTuple
from runguard.schedule import revisions
from runguard.schedule.revisions import Piece, Succession

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from runguard.model import Revision, Schedule, Window
    from runguard.store.reads import Reader


class Origin(NamedTuple):
    """Where a window comes from."""

    revision: int
    schedule: Schedule
    tzdata: str


class Expecting(NamedTuple):
    """The revisions of a job, read as far as this host can read them."""

    succession: Succession
    origins: dict[int, Origin]  # by revision number
    since_us: int  # later dues are expected

    def origin(self, window: Window) -> Origin:
        """Return the revision that expects a window."""
        return self.origins[self.succession.piece_of(window.due_us).number]

    def ask(self, window: Window, trigger: str) -> Asked:
        """Return a window as a start is asked to answer it."""
        origin = self.origin(window)
        return Asked(trigger, window, origin.schedule, origin.revision, origin.tzdata)


def expecting(store: Reader, job: str) -> Expecting | None:
    """Return what the job is expected to answer, or None where it has no schedule on record.

    A revision whose zone or schedule cannot be read any more is left out, and its predecessor goes on in its place.
    Nothing is expected of a time whose runs were pruned.
    """
    known = store.revisions(job)
    return read(known, store.forgotten_us()) if known else None


def read(known: Sequence[Revision], forgotten_us: int | None = None) -> Expecting | None:
    """Return revisions, oldest first, as one set of dues; None where none of them expects anything.

    Dues up to `forgotten_us` are not expected any more.
    """
    pieces: list[Piece] = []
    origins: dict[int, Origin] = {}
    for number, schedule, after_us in _effective(known):
        if schedule is None:
            pieces.append(Piece(number, after_us, None))
            continue
        try:
            data = zones.load(schedule.zone)
            pieces.append(Piece(number, after_us, revisions.timetable(schedule, data.zone)))
        except (ZoneError, ScheduleError):
            continue
        origins[number] = Origin(number, schedule, data.tzdata)
    if not origins:
        return None
    since_us = pieces[0].after_us
    return Expecting(Succession(pieces), origins, max(since_us, forgotten_us or since_us))


def _effective(known: Sequence[Revision]) -> list[Revision]:
    """Leave out revisions that a later one takes back: opened while the clock was ahead, they expect nothing."""
    kept: list[Revision] = []
    for revision in reversed(known):
        if not kept or revision.after_us < kept[-1].after_us:
            kept.append(revision)
    return kept[::-1]

"""Which window a start answers, and how windows keep tiling when a schedule is edited."""

from __future__ import annotations

from runguard.errors import ScheduleError
from runguard.instant import SECOND_US, rfc3339
from runguard.model import Resolution
from runguard.record import NamedTuple
from runguard.schedule.cron import parse
from runguard.schedule.policy import rule
from runguard.schedule.windows import Timetable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from runguard.model import Schedule, Window
    from runguard.schedule.cron import Cron
    from runguard.schedule.recurrence import Recurrence
    from runguard.schedule.zone import Zone

EARLY_US = 5 * SECOND_US  # a slewed clock: a start this much before a due answers it
_OFF_SCHEDULE_US = 3600 * SECOND_US
# No two zones differ by less, so a start that is less late is a busy host and no disagreement about the zone.
_SMALLEST_ZONE_DIFFERENCE_US = 15 * 60 * SECOND_US


class Piece(NamedTuple):
    """A revision with its own timetable: it expects the dues later than `after_us`, up to its successor's."""

    number: int
    after_us: int
    timetable: Timetable | None  # None: the job is retired, nothing is expected


class Succession:
    """The revisions of a job as one set of dues.

    The first window of a revision starts at the last due that was expected before it, also over a retirement. Before
    its own `after_us` the first revision goes on into the past, so that a clock that was set back still finds a window.
    """

    __slots__ = ("pieces",)

    def __init__(self, pieces: Sequence[Piece]) -> None:
        """Take at least one piece, by ascending number and `after_us`."""
        self.pieces = tuple(pieces)

    @property
    def shortest_s(self) -> int:
        """The shortest spacing of any revision's nominal minutes; 0 where nothing was ever expected."""
        return min((piece.timetable.shortest_s for piece in self.pieces if piece.timetable), default=0)

    def piece_of(self, due_us: int) -> Piece:
        """Return the revision in whose span a due lies: the one that expects it, if any does."""
        for piece in reversed(self.pieces):
            if piece.after_us < due_us:
                return piece
        return self.pieces[0]

    def previous(self, at_us: int, inclusive: bool = True) -> Window | None:
        """Return the window with the greatest `due <= at_us` (`<` if not inclusive)."""
        for index in range(len(self.pieces) - 1, -1, -1):
            piece = self.pieces[index]
            window = piece.timetable.previous(at_us, inclusive) if piece.timetable else None
            if window is None or (index and window.due_us <= piece.after_us):
                if piece.after_us < at_us:
                    at_us, inclusive = piece.after_us, True
                continue
            if index and window.start_us <= piece.after_us:
                before = Succession(self.pieces[:index]).previous(piece.after_us)
                return window if before is None else window._replace(start_us=before.due_us)
            return window
        return None

    def next(self, after_us: int) -> Window | None:
        """Return the window with the least `due > after_us`."""
        for index, piece in enumerate(self.pieces):
            until_us = self._until_us(index)
            if piece.timetable is None or (until_us is not None and until_us <= after_us):
                continue
            window = piece.timetable.next(max(after_us, piece.after_us) if index else after_us)
            if window is not None and (until_us is None or window.due_us <= until_us):
                return self.previous(window.due_us) if index and window.start_us <= piece.after_us else window
        return None

    def between(self, after_us: int, until_us: int) -> Iterator[Window]:
        """Yield the windows of `after_us < due <= until_us`, ascending."""
        start_us: int | None = None
        for timetable, first_us, last_us in self._parts(after_us, until_us):
            for window in timetable.between(first_us, last_us):
                if start_us is None:
                    before = self.previous(window.due_us, inclusive=False)
                    start_us = window.start_us if before is None else before.due_us
                yield window if window.start_us == start_us else window._replace(start_us=start_us)
                start_us = window.due_us

    def dues(self, after_us: int, until_us: int) -> Iterator[int]:
        """Yield the dues of `after_us < due <= until_us`, in µs, ascending."""
        for timetable, first_us, last_us in self._parts(after_us, until_us):
            yield from timetable.dues(first_us, last_us)

    def windows_at(self, dues: Sequence[tuple[int, int]]) -> Iterator[Window]:
        """Yield the windows of some (due, start), in µs, ascending, each known to be a due of this succession."""
        if dues:
            for timetable, first_us, last_us in self._parts(dues[0][0] - 1, dues[-1][0]):
                yield from timetable.windows_at([pair for pair in dues if first_us < pair[0] <= last_us])

    def by_instant(self, after_us: int, until_us: int) -> bool:
        """Tell whether the keys of all dues of `after_us < due <= until_us` are instants, one with the due."""
        return all(timetable.by_instant for timetable, _, _ in self._parts(after_us, until_us))

    def _parts(self, after_us: int, until_us: int) -> Iterator[tuple[Timetable, int, int]]:
        """Yield (timetable, after, until) of the revisions that expect dues of a span."""
        for index, piece in enumerate(self.pieces):
            end_us = self._until_us(index)
            last_us = until_us if end_us is None else min(until_us, end_us)
            first_us = max(after_us, piece.after_us) if index else after_us
            if piece.timetable is not None and first_us < last_us:
                yield piece.timetable, first_us, last_us

    def _until_us(self, index: int) -> int | None:
        return self.pieces[index + 1].after_us if index + 1 < len(self.pieces) else None


def timetable(schedule: Schedule, zone: Zone) -> Timetable:
    """Return the timetable of a schedule in `zone`, which is the zone that it names.

    Raises ScheduleError.
    """
    text = schedule.expression
    named: Cron | Recurrence
    if text.lstrip()[:7].upper().startswith(("RRULE", "DTSTART")):
        from runguard.schedule import recurrence  # dateutil costs more than the rest of a start

        named = recurrence.parse(text)
    else:
        named = parse(text)
    return Timetable(named, zone, rule(schedule.policy, schedule.gap, schedule.fold, wild=named.wild))


def resolve(expected: Timetable | Succession, now_us: int, *, early_us: int = EARLY_US) -> Resolution:
    """Return the window that a start at `now_us` answers: the greatest due at most `early_us` ahead.

    A tolerance of more than half the shortest spacing, or half the window it would open early, is cut to that.

    Raises ScheduleError where there is no window yet: before the DTSTART of a recurrence, before year 1.
    """
    early_us = min(early_us, expected.shortest_s * SECOND_US // 2)
    window = expected.previous(now_us + early_us)
    # Near a change of offset dues can lie closer together than nominal minutes.
    if window is not None and window.due_us > now_us and (window.due_us - now_us) * 2 > window.due_us - window.start_us:
        window = expected.previous(window.due_us, inclusive=False)
    if window is None:
        first = expected.next(now_us)
        raise ScheduleError("", f"no window yet: the first is due at {rfc3339(first.due_us)}" if first else "no window")
    following = expected.next(window.due_us)
    late_us = now_us - window.due_us
    allowed_us = min(_OFF_SCHEDULE_US, (window.due_us - window.start_us) // 2)
    allowed_us = max(allowed_us, _SMALLEST_ZONE_DIFFERENCE_US - 1)
    return Resolution(
        window=window,
        late_s=late_us / SECOND_US,
        next_due_us=None if following is None else following.due_us,
        off_schedule=late_us > allowed_us and following is not None and following.due_us - now_us < late_us,
    )


def opens_after(
    new: Timetable,
    now_us: int,
    *,
    last_answered_due_us: int | None = None,
    old_after_us: int | None = None,
    early_us: int = EARLY_US,
) -> int:
    """Return the `after_us` of the revision that a start at `now_us` opens: it expects later dues.

    That is the due before the window that the start answers in the new schedule, or the last answered due if that is
    later; never before the revision that it follows. Without either, it registers the job from the window it answers.
    """
    bounds = (resolve(new, now_us, early_us=early_us).window.start_us, last_answered_due_us, old_after_us)
    return max(bound for bound in bounds if bound is not None)

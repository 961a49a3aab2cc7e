"""What daylight saving does to windows, in words: minutes that do not exist, come twice, or stand for others."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from io import BytesIO
from zoneinfo import ZoneInfo

from runguard.instant import DAY_S, SECOND_US, civil_from_days, from_rfc3339
from runguard.record import NamedTuple
from runguard.schedule.windows import clock_text, local_text, offset_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from runguard.model import Window
    from runguard.schedule.windows import Timetable
    from runguard.schedule.zone import Zone

_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_LISTED = 3  # minutes that are named one by one
_FURTHEST_US = 366 * DAY_S * SECOND_US


class Skipped(NamedTuple):
    """Nominal minutes that a change of offset left out, and that have no window under the policy."""

    at_us: int  # the instant of the change
    nominal: tuple[str, ...]  # ascending
    because: str  # "02:30 does not exist on 29 March: no window"


def oddity(timetable: Timetable, window: Window) -> str | None:
    """Return what is not plain about a window of `timetable`, or None: "01:30 comes twice on …: the first counts"."""
    said = [*_moved(timetable.zone, window), *_repeated(timetable, window)]
    return "; ".join(said) or None


def story(timetable: Timetable, window: Window) -> str | None:
    """Return what is not plain about a window and about the time before it: also what was left out there."""
    after_us = max(window.start_us, window.due_us - _FURTHEST_US)
    said = [skip.because for skip in skipped(timetable, after_us, window.due_us)]
    own = oddity(timetable, window)
    return "; ".join([*said, own] if own else said) or None


def skipped(timetable: Timetable, after_us: int, until_us: int) -> Iterator[Skipped]:
    """Yield the nominal minutes without a window in the gaps of `after < change <= until`, one record for each gap."""
    zone = timetable.zone
    reach_s = zone.highest_s - zone.lowest_s + 60
    for at_s, before_s, after_s in zone.changes(after_us // SECOND_US + 1, until_us // SECOND_US + 1):
        if after_s <= before_s:
            continue
        spans = list(zone.spans(at_s - reach_s, at_s + reach_s))
        minutes = timetable.nominal.between(at_s + before_s, at_s + after_s)
        left_out = [local_s for local_s in minutes if not timetable.dues_of(local_s, spans)]
        if left_out:
            because = f"{_do_not_exist(left_out)}: no window"
            yield Skipped(at_s * SECOND_US, tuple(map(local_text, left_out)), because)


def _moved(zone: Zone, window: Window) -> Iterator[str]:
    others = [_local_s(text) for text in window.collapsed]
    local_s = _local_s(window.nominal)
    if window.how != "real":
        due_s = window.due_us // SECOND_US
        due_local_s = due_s + zone.offset_at(due_s)
        due = f"{_clock(due_local_s)} {_abbreviation(zone, due_s)}"
        if due_local_s // DAY_S != local_s // DAY_S:
            due += f" on {_date(due_local_s)}"
        yield f"{_do_not_exist([local_s])}: due {due}" + (f", also for {_listed(others)}" if others else "")
    elif others:
        yield f"{_do_not_exist(others)}: {_clock(local_s)} stands for {'it' if len(others) == 1 else 'them'} too"


def _repeated(timetable: Timetable, window: Window) -> Iterator[str]:
    local_s = _local_s(window.nominal)
    zone = timetable.zone
    spans = list(zone.spans(local_s - zone.highest_s - 1, local_s - zone.lowest_s + 1))
    if sum(start_s <= local_s - offset_s < end_s for start_s, end_s, offset_s in spans) < 2:
        return
    which = "second" if window.fold else "first"
    both = len(timetable.dues_of(local_s, spans)) > 1
    counts = f"both count, this is the {which}" if both else f"the {which} counts"
    yield f"{_clock(local_s)} comes twice on {_date(local_s)}: {counts}"


def _do_not_exist(minutes: Sequence[int]) -> str:
    """Return "02:30 does not exist on 29 March", of minutes ascending."""
    does = "does" if len(minutes) == 1 else "do"
    return f"{_listed(minutes)} {does} not exist on {_date(minutes[0])}"


def _listed(minutes: Sequence[int]) -> str:
    if len(minutes) > _LISTED:
        return f"{len(minutes)} minutes from {_clock(minutes[0])} to {_clock(minutes[-1])}"
    *firsts, last = map(_clock, minutes)
    return f"{', '.join(firsts)} and {last}" if firsts else last


def _clock(local_s: int) -> str:
    return clock_text(local_s % DAY_S)[1:]


def _date(local_s: int) -> str:
    _, month, day = civil_from_days(local_s // DAY_S)
    return f"{day} {_MONTHS[month - 1]}"


def _local_s(nominal: str) -> int:
    return from_rfc3339(nominal + "Z") // SECOND_US


def _abbreviation(zone: Zone, at_s: int) -> str:
    """Return "BST", or the offset where the zone has only a number for a name."""
    offset = offset_text(zone.offset_at(at_s))
    if not zone.data:
        return offset
    name = (datetime.fromtimestamp(at_s, UTC).astimezone(_reference(zone.data))).tzname()
    return name if name and name.isalpha() else offset


@cache
def _reference(data: bytes) -> ZoneInfo:
    return ZoneInfo.from_file(BytesIO(data))

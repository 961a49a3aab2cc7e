"""The dues and windows of long spans, fast: what is the same for a whole quiet stretch, or a day, is computed once.

Instants are taken in seconds and given in µs. Not on the hot path: a start asks for single windows only.
"""

from __future__ import annotations

from itertools import chain

from runguard.instant import DAY_S, SECOND_US
from runguard.model import Window
from runguard.schedule.cron import Cron
from runguard.schedule.nominal import Nominal
from runguard.schedule.windows import beginning_us, clock_text, date_text, local_text, offset_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence

    from runguard.schedule.windows import Timetable


def dues(timetable: Timetable, from_s: int, until_s: int) -> Iterator[int]:
    """Return the dues of `from_s <= due < until_s`, ascending, in constant memory."""
    return chain.from_iterable(_runs(timetable, from_s, until_s))


def windows(timetable: Timetable, from_s: int, until_s: int) -> Iterator[Window]:
    """Yield the windows of `from_s <= due < until_s`, ascending, in constant memory."""
    before = timetable.last_before(from_s)
    start_us = None if before is None else before[0] * SECOND_US
    nominal = timetable.nominal
    for start_s, end_s, offset_s in timetable.stretches(from_s, until_s):
        if offset_s is None:
            for moment in timetable.moments(start_s, end_s):
                yield timetable.record(moment, start_us)
                start_us = moment[0] * SECOND_US
        elif isinstance(nominal, Nominal):
            start_us = yield from _quiet(timetable.by_instant, nominal, (start_s, end_s, offset_s), start_us)
        else:
            for local_s in nominal.between(start_s + offset_s, end_s + offset_s):
                yield timetable.record((local_s - offset_s, local_s, "real", 0, ()), start_us)
                start_us = (local_s - offset_s) * SECOND_US


def windows_at(timetable: Timetable, wanted: Sequence[tuple[int, int]]) -> Iterator[Window]:
    """Yield the windows of some (due, start), in µs, ascending, each known to be a due of the timetable.

    For a few out of many: each costs several times what it costs in a span, but nothing lies between them.
    """
    if not wanted:
        return
    index = 0
    for _, end_s, offset_s in timetable.stretches(wanted[0][0] // SECOND_US, wanted[-1][0] // SECOND_US + 1):
        moments = None
        while index < len(wanted) and wanted[index][0] < end_s * SECOND_US:
            due_us, start_us = wanted[index]
            due_s = due_us // SECOND_US
            if offset_s is not None:
                local = local_text(due_s + offset_s)
                key = f"U{local_text(due_s)}Z" if timetable.by_instant else "L" + local
                yield Window(key, start_us, due_us, local + offset_text(offset_s), local, "real", 0, ())
            else:
                if moments is None:
                    moments = {moment[0]: moment for moment in timetable.moments(due_s, end_s)}
                yield timetable.record(moments[due_s], start_us)
            index += 1


def _runs(timetable: Timetable, from_s: int, until_s: int) -> Iterator[Iterable[int]]:
    """Yield runs of dues: one per day, or one per quiet stretch where the schedule is a single beat."""
    nominal = timetable.nominal
    beat_us = _beat_us(timetable)
    in_day_us = tuple(minute * 60 * SECOND_US for minute in nominal.minutes)
    for start_s, end_s, offset_s in timetable.stretches(from_s, until_s):
        if offset_s is None:
            yield [moment[0] * SECOND_US for moment in timetable.moments(start_s, end_s)]
            continue
        offset_us, start_us, end_us = offset_s * SECOND_US, start_s * SECOND_US, end_s * SECOND_US
        if not isinstance(nominal, Nominal):
            yield (at_s * SECOND_US - offset_us for at_s in nominal.between(start_s + offset_s, end_s + offset_s))
        elif beat_us:
            yield range(start_us + (in_day_us[0] - offset_us - start_us) % beat_us, end_us, beat_us)
        else:
            for day in nominal.days((start_s + offset_s) // DAY_S, (end_s - 1 + offset_s) // DAY_S):
                midnight_us = day * DAY_S * SECOND_US - offset_us
                if start_us <= midnight_us + in_day_us[0] and midnight_us + in_day_us[-1] < end_us:
                    yield map(midnight_us.__add__, in_day_us)
                else:
                    yield [midnight_us + at for at in in_day_us if start_us <= midnight_us + at < end_us]


def _beat_us(timetable: Timetable) -> int:
    """Return the spacing if the schedule is one even beat over all days, else 0."""
    cron, minutes = timetable.cron, timetable.nominal.minutes
    if not isinstance(cron, Cron):
        return 0
    even = 1440 // len(minutes)
    if 1440 % len(minutes) or minutes != tuple(range(minutes[0], 1440, even)):
        return 0
    # 31 days and 7 weekdays, whatever joins them, are every day.
    if len(cron.days) < 31 or len(cron.weekdays) < 7 or len(cron.months) < 12:
        return 0
    return even * 60 * SECOND_US


def _quiet(
    by_instant: bool, nominal: Nominal, stretch: tuple[int, int, int], start_us: int | None
) -> Generator[Window, None, int | None]:
    """Yield the windows of a quiet stretch; return the last due, or `start_us` where there is none."""
    start_s, end_s, offset_s = stretch
    suffix = offset_text(offset_s)
    rows = [_row(minute * 60, offset_s, by_instant) for minute in nominal.minutes]
    days_off = {row[3] for row in rows}
    make = tuple.__new__  # half the price of a call with names, for the million windows of a minutely job
    for day in nominal.days((start_s + offset_s) // DAY_S, (end_s - 1 + offset_s) // DAY_S):
        midnight_us = (day * DAY_S - offset_s) * SECOND_US
        first_us, last_us = start_s * SECOND_US - midnight_us, end_s * SECOND_US - midnight_us
        today = rows
        if first_us > 0 or last_us < DAY_S * SECOND_US:
            today = [row for row in rows if first_us <= row[0] < last_us]
        date = date_text(day)
        dates = {off: "U" + date_text(day + off) if by_instant else "L" + date for off in days_off}
        for in_day_us, clock, key_clock, off in today:
            due_us = midnight_us + in_day_us
            local = date + clock
            began_us = beginning_us(due_us) if start_us is None else start_us
            yield make(Window, (dates[off] + key_clock, began_us, due_us, local + suffix, local, "real", 0, ()))
            start_us = due_us
    return start_us


def _row(in_day_s: int, offset_s: int, by_instant: bool) -> tuple[int, str, str, int]:
    """Return (µs in the local day, its clock, the key's clock, days from the local date to the key's date)."""
    clock = clock_text(in_day_s)
    if not by_instant:
        return in_day_s * SECOND_US, clock, clock, 0
    off, utc_s = divmod(in_day_s - offset_s, DAY_S)
    return in_day_s * SECOND_US, clock, clock_text(utc_s) + "Z", off

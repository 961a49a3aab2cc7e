"""Read RRULE schedules (RFC 5545) and find the local minutes that they name, through dateutil.

A rule without an end is never walked from its start: it is entered at a period before the minutes asked for, a whole
number of its intervals after DTSTART. Not on the hot path: imported where a schedule is an RRULE.
"""

from __future__ import annotations

from datetime import MAXYEAR, datetime, timedelta
from itertools import islice, pairwise
from math import gcd

from dateutil import rrule

from runguard.errors import ScheduleError
from runguard.instant import DAY_S
from runguard.schedule.ruletext import EPOCH, Parts, read, refuse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_SECOND = timedelta(seconds=1)
# The calendar repeats after 400 years: what does not come in the last 400 never comes.
_LAST_CYCLE = datetime(MAXYEAR - 399, 1, 1)
_CYCLE_DAYS = 146_097
_MOST_COUNTED = 10_000  # COUNT can only be found by counting


def parse(text: str) -> Recurrence:
    """Return what `text` names: `RRULE:…`, with `DTSTART:…` before it or not, parted by spaces or newlines.

    All times are local and of whole minutes. Without DTSTART the rule starts at 1970-01-01T00:00.

    Raises ScheduleError with the part that cannot be read, or that is refused.
    """
    parts = read(text)
    try:
        return Recurrence(text, parts)
    except ValueError as error:  # dateutil finds some rules empty by itself
        raise ScheduleError(text[:60], f"it names no minute: {str(error).rstrip('.')}", field="RRULE") from error


class Recurrence:
    """The local minutes of a rule, in the terms of `nominal`: seconds since 1970-01-01T00:00 by the wall clock."""

    __slots__ = ("_last", "_parts", "all_hours", "expression", "minutes", "shortest_s", "wild")

    def __init__(self, text: str, parts: Parts) -> None:
        """Raise ScheduleError, or ValueError, where no minute can ever come."""
        self.expression = text
        self.wild = parts.freq >= rrule.HOURLY and "byhour" not in parts.by
        self.all_hours = self.wild  # keys are instants
        self.minutes: tuple[int, ...] = ()  # those of a day differ from day to day
        self._parts = _complete(text, parts)
        self.shortest_s = _shortest_s(self._parts)
        self._last = parts.until
        self._refuse_empty()
        if parts.counted is not None:
            self._last = self._counted(parts.counted)

    def at_or_after(self, local_s: int) -> int | None:
        """Return the first nominal minute at or after a local time, or None after the last."""
        found = next(self._walk(max(local_s, self._start_s)), None)
        return None if found is None else _seconds(found)

    def at_or_before(self, local_s: int) -> int | None:
        """Return the last nominal minute at or before a local time, or None before DTSTART."""
        if self._last is not None:
            local_s = min(local_s, _seconds(self._last))
        until_s = min(local_s, _seconds(datetime.max)) + 1
        width_s = _PERIOD_S[self._parts.freq] * self._parts.interval
        while until_s > self._start_s:
            from_s = max(until_s - width_s, self._start_s)
            found = None
            for found in self.between(from_s, until_s):  # noqa: B007 - the last one
                pass
            if found is not None:
                return found
            until_s, width_s = from_s, width_s * 2
        return None

    def between(self, from_s: int, until_s: int) -> Iterator[int]:
        """Yield the nominal minutes of `from_s <= local < until_s`, ascending."""
        from_s = max(from_s, self._start_s)
        if from_s >= until_s:
            return
        for found in self._walk(from_s):
            found_s = _seconds(found)
            if found_s >= until_s:
                return
            yield found_s

    @property
    def _start_s(self) -> int:
        return _seconds(self._parts.start)

    def _walk(self, from_s: int) -> Iterator[datetime]:
        """Yield the minutes from a local time on, not before DTSTART, to the rule's end or that of the calendar."""
        if from_s > _seconds(datetime.max):
            return
        first = EPOCH + from_s * _SECOND
        try:
            for found in self._of_days(first) if self._parts.freq >= rrule.DAILY else self._entered(first):
                if self._last is not None and found > self._last:
                    return
                if found >= first:
                    yield found
        except (ValueError, OverflowError):
            return  # dateutil runs past the year 9999 in weeks that cross its end

    def _of_days(self, at: datetime) -> Iterator[datetime]:
        """Yield the minutes of a DAILY, HOURLY or MINUTELY rule from the day of `at` on.

        dateutil names the days; which of their minutes are in phase is arithmetic, and would take it seconds.
        """
        start_day = self._parts.start.toordinal()
        last_day = at.toordinal()
        for midnight in _rule(self._parts, at.replace(hour=0, minute=0, second=0)):
            day = midnight.toordinal()
            if day - last_day > _CYCLE_DAYS:
                return
            for minute in _minutes(self._parts, day - start_day):
                yield midnight + timedelta(minutes=minute)
                last_day = day

    def _entered(self, at: datetime) -> Iterator[datetime]:
        """Return the minutes of a YEARLY, MONTHLY or WEEKLY rule from its last period that begins by `at` on."""
        parts = self._parts
        start = parts.start
        if parts.freq == rrule.YEARLY:
            skipped = _multiple(at.year - start.year, parts.interval)
            entry = datetime(start.year + skipped, 1, 1)
        elif parts.freq == rrule.MONTHLY:
            skipped = _multiple(12 * (at.year - start.year) + at.month - start.month, parts.interval)
            year, month = divmod(12 * start.year + start.month - 1 + skipped, 12)
            entry = datetime(year, month + 1, 1)
        else:
            # The first period ends with the week of DTSTART; the others are whole weeks.
            first_week = start.toordinal() - (start.weekday() - parts.week_start) % 7
            skipped = _multiple((at.toordinal() - first_week) // 7, parts.interval)
            entry = datetime.fromordinal(max(first_week + 7 * skipped, 1))
        return iter(_rule(parts, entry if skipped else start))

    def _refuse_empty(self) -> None:
        """Refuse a rule that names no minute."""
        if self._last is not None and self._last < self._parts.start:
            refuse(self.expression, "UNTIL", "it lies before the rule's start")
        if not _ever_in_phase(self._parts):
            refuse(self.expression, "INTERVAL", "counted from the rule's start it never meets BYHOUR and BYMINUTE")
        if next(iter(_rule(self._parts._replace(interval=1), _LAST_CYCLE)), None) is None:
            refuse(self.expression, "", "no such date in any year")
        if next(self._walk(self._start_s), None) is None:
            refuse(self.expression, "", "it names no minute from its start to its end")

    def _counted(self, counted: int) -> datetime:
        """Return the last minute of a rule with COUNT, or the calendar's last of it."""
        if counted > _MOST_COUNTED:
            refuse(self.expression, "COUNT", f"more than {_MOST_COUNTED}: end the rule with UNTIL instead")
        return max(islice(self._walk(self._start_s), counted))


def _rule(parts: Parts, start: datetime) -> rrule.rrule:
    by, week_start = dict(parts.by), parts.week_start
    if parts.freq >= rrule.DAILY:  # its days alone
        by = {name: values for name, values in by.items() if name not in ("byhour", "byminute")}
        return rrule.rrule(rrule.DAILY, start, wkst=week_start, byhour=0, byminute=0, bysecond=0, **by)
    return rrule.rrule(parts.freq, start, interval=parts.interval, wkst=week_start, bysecond=0, **by)


def _minutes(parts: Parts, day: int) -> Iterable[int]:
    """Return the minutes of the day that lies `day` days after that of DTSTART, ascending."""
    start, interval = parts.start, parts.interval
    if parts.freq == rrule.DAILY:
        return () if day % interval else parts.clock
    hours = parts.by.get("byhour", range(24))
    if parts.freq == rrule.HOURLY:
        in_phase = (hour for hour in hours if (24 * day + hour - start.hour) % interval == 0)
        return (60 * hour + minute for hour in in_phase for minute in parts.clock)
    first = (60 * start.hour + start.minute - 1440 * day) % interval
    wanted = parts.by.get("byminute", range(60))
    return (at for at in range(first, 1440, interval) if at // 60 in hours and at % 60 in wanted)


def _ever_in_phase(parts: Parts) -> bool:
    """Tell whether any minute of any day is a whole number of intervals after DTSTART."""
    unit, per_day = {rrule.HOURLY: (60, 24), rrule.MINUTELY: (1, 1440)}.get(parts.freq, (1440, 1))
    common = unit * gcd(parts.interval, per_day)
    start = 60 * parts.start.hour + parts.start.minute
    minutes = parts.by.get("byminute", range(60))
    return any(
        (60 * hour + minute) // unit * unit % common == start // unit * unit % common
        for hour in parts.by.get("byhour", range(24))
        for minute in minutes
    )


_PERIOD_S = {
    rrule.YEARLY: 366 * DAY_S,
    rrule.MONTHLY: 31 * DAY_S,
    rrule.WEEKLY: 7 * DAY_S,
    rrule.DAILY: DAY_S,
    rrule.HOURLY: 3600,
    rrule.MINUTELY: 60,
}


def _multiple(periods: int, interval: int) -> int:
    """Return the greatest multiple of `interval` up to `periods`, never below 0."""
    return max(periods, 0) // interval * interval


def _complete(text: str, parts: Parts) -> Parts:
    """Write out what a rule takes from DTSTART, so that it can be entered later than there (RFC 5545, 3.3.10)."""
    by, start = dict(parts.by), parts.start
    if not by.keys() & {"byweekno", "byyearday", "bymonthday", "byweekday"}:
        if parts.freq == rrule.YEARLY:
            by.setdefault("bymonth", (start.month,))
        if parts.freq in (rrule.YEARLY, rrule.MONTHLY):
            by["bymonthday"] = (start.day,)
        if parts.freq == rrule.WEEKLY:
            by["byweekday"] = (start.weekday(),)
    if parts.freq < rrule.HOURLY:
        by.setdefault("byhour", (start.hour,))
    if parts.freq < rrule.MINUTELY:
        by.setdefault("byminute", (start.minute,))
    if parts.freq < rrule.DAILY:
        return parts._replace(by=by)
    minutes = by.get("byminute", (0,))
    clock = (
        [60 * hour + minute for hour in by["byhour"] for minute in minutes] if parts.freq == rrule.DAILY else minutes
    )
    positions = by.pop("bysetpos", None)
    if positions is not None:  # a period is a day, an hour or a minute
        clock = [clock[at - (at > 0)] for at in positions if -len(clock) <= at <= len(clock)]
        if not clock or (parts.freq == rrule.MINUTELY and not {1, -1} & set(positions)):
            refuse(text, "BYSETPOS", "no period of this FREQ has so many minutes")
    return parts._replace(by=by, clock=tuple(sorted(set(clock))))


def _shortest_s(parts: Parts) -> int:
    """Return what no two minutes of the rule lie closer together than, as if every day matched."""
    if parts.freq == rrule.MINUTELY:
        return 60 * parts.interval
    minutes = sorted(parts.by.get("byminute", (parts.start.minute,)))
    if parts.freq == rrule.HOURLY:
        return 60 * _closest([*minutes, minutes[0] + 60 * parts.interval])
    hours = parts.by.get("byhour", (parts.start.hour,))
    times = sorted(60 * hour + minute for hour in hours for minute in minutes)
    return 60 * _closest([*times, times[0] + 1440])


def _closest(ascending: list[int]) -> int:
    return min(later - earlier for earlier, later in pairwise(ascending))


def _seconds(local: datetime) -> int:
    return (local - EPOCH) // _SECOND

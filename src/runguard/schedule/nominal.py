"""The local minutes that a schedule names, on a time line without a zone.

A local time is a number of seconds since 1970-01-01T00:00 by the wall clock; a day is a number of days since then.
"""

from __future__ import annotations

from _bisect import bisect_left, bisect_right
from _operator import sub

from runguard.instant import DAY_S, civil_from_days, days_from_civil

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from runguard.schedule.cron import Cron

FIRST_DAY = days_from_civil(1, 1, 1)
LAST_DAY = days_from_civil(9999, 12, 31)
_WEEKLY = sum(1 << day for day in range(0, 31, 7))


class Nominal:
    """The minutes of a day, computed once, and the days, found month by month."""

    __slots__ = ("_by_weekday", "_months", "_seconds", "minutes", "shortest_s")

    def __init__(self, cron: Cron) -> None:
        self.minutes = tuple(hour * 60 + minute for hour in cron.hours for minute in cron.minutes)
        self._seconds = tuple(minute * 60 for minute in self.minutes)
        following = (*self._seconds[1:], self._seconds[0] + DAY_S)
        # The shortest spacing, as if every day matched.
        self.shortest_s: int = min(map(sub, following, self._seconds))
        self._months = frozenset(cron.months)
        by_date = sum(1 << day for day in cron.days)
        self._by_weekday = tuple(_days_of_month(cron, by_date, first_weekday) for first_weekday in range(7))

    def days(self, first: int, last: int) -> Iterator[int]:
        """Yield the matching days of `first`..`last`, both included, ascending."""
        first, last = max(first, FIRST_DAY), min(last, LAST_DAY)
        year, month, day = civil_from_days(first)
        before = first - day  # the day before the first of the month
        skipped = (1 << day) - 1
        while before < last:
            length = _length(year, month)
            if month in self._months:
                days = self._of_month(before, length) & ~skipped
                while days:
                    lowest = days & -days
                    found = before + lowest.bit_length() - 1
                    if found > last:
                        return
                    yield found
                    days ^= lowest
            skipped = 0
            before += length
            month += 1
            if month > 12:
                year, month = year + 1, 1

    def days_back(self, last: int, first: int) -> Iterator[int]:
        """Yield the matching days of `first`..`last`, both included, descending."""
        first, last = max(first, FIRST_DAY), min(last, LAST_DAY)
        year, month, day = civil_from_days(last)
        before = last - day
        length = _length(year, month)
        wanted = (2 << day) - 1
        while before + length >= first:
            if month in self._months:
                days = self._of_month(before, length) & wanted
                while days:
                    found = before + days.bit_length() - 1
                    if found < first:
                        return
                    yield found
                    days ^= 1 << (days.bit_length() - 1)
            wanted = -1
            month -= 1
            if month < 1:
                year, month = year - 1, 12
            length = _length(year, month)
            before -= length

    def at_or_after(self, local_s: int) -> int | None:
        """Return the first nominal minute at or after a local time, or None before the calendar's end."""
        day, second = divmod(local_s, DAY_S)
        for found in self.days(day, LAST_DAY):
            if found > day:
                return found * DAY_S + self._seconds[0]
            if self._seconds[-1] >= second:
                return day * DAY_S + self._seconds[bisect_left(self._seconds, second)]
        return None

    def at_or_before(self, local_s: int) -> int | None:
        """Return the last nominal minute at or before a local time, or None after the calendar's start."""
        day, second = divmod(local_s, DAY_S)
        for found in self.days_back(day, FIRST_DAY):
            if found < day:
                return found * DAY_S + self._seconds[-1]
            if self._seconds[0] <= second:
                return day * DAY_S + self._seconds[bisect_right(self._seconds, second) - 1]
        return None

    def between(self, from_s: int, until_s: int) -> Iterator[int]:
        """Yield the nominal minutes of `from_s <= local < until_s`, ascending."""
        for day in self.days(from_s // DAY_S, (until_s - 1) // DAY_S):
            midnight_s = day * DAY_S
            first = bisect_left(self._seconds, from_s - midnight_s)
            last = bisect_left(self._seconds, until_s - midnight_s)
            for second in self._seconds[first:last]:
                yield midnight_s + second

    def _of_month(self, before: int, length: int) -> int:
        """Return the matching days of a month as bits: bit n for day n."""
        # 1970-01-01, day 0, was a Thursday.
        return self._by_weekday[(before + 5) % 7] & ((2 << length) - 1)


def _days_of_month(cron: Cron, by_date: int, first_weekday: int) -> int:
    """Return the matching days of a month that starts on a weekday, as bits; `by_date` are those of the day field."""
    first_week = sum(1 << (weekday - first_weekday) % 7 + 1 for weekday in cron.weekdays)
    by_weekday = first_week * _WEEKLY
    return by_date & by_weekday if cron.day_and else by_date | by_weekday


def _length(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31

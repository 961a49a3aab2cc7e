"""The POSIX TZ string in the footer of a zone file: the rule for every year after the table."""

from __future__ import annotations

from runguard.instant import DAY_S, days_from_civil

# What glibc and zic assume where a string names daylight saving time and gives no dates.
_DEFAULT_DATES = ",M3.2.0,M11.1.0"
_BEFORE_MONTH = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)


class PosixRule:
    """Standard and daylight saving offset, and when they change; `standard_s == daylight_s` where they never do."""

    __slots__ = ("_cache", "_end", "_start", "daylight_s", "standard_s")

    def __init__(self, standard_s: int, daylight_s: int, start: _Date | None, end: _Date | None) -> None:
        self.standard_s = standard_s
        self.daylight_s = daylight_s
        self._start = start
        self._end = end
        self._cache: dict[int, tuple[tuple[int, int], ...]] = {}

    def changes(self, first_year: int, last_year: int) -> list[tuple[int, int]]:
        """Return (instant, offset from then on) of the changes that belong to `first_year`..`last_year`, ascending.

        A change may fall up to a week outside the year it belongs to. Where an end and a start coincide, as in
        daylight saving time all year round, the start comes last.
        """
        found = [change for year in range(first_year, last_year + 1) for change in self._of_year(year)]
        return sorted(found, key=lambda change: (change[0], change[1] == self.daylight_s))

    def _of_year(self, year: int) -> tuple[tuple[int, int], ...]:
        if self._start is None or self._end is None:
            return ()
        known = self._cache.get(year)
        if known is None:
            start = (self._start.local_s(year) - self.standard_s, self.daylight_s)
            end = (self._end.local_s(year) - self.daylight_s, self.standard_s)
            known = self._cache[year] = (start, end)
        return known


def parse_posix(text: str) -> PosixRule:
    """Read a TZ string such as `GMT0BST,M3.5.0/1,M10.5.0` or `<+0330>-3:30`.

    Raises ValueError where it is none.
    """
    rest = _after_name(text)
    hours_s, rest = _offset(rest)
    standard_s = -hours_s
    if not rest:
        return PosixRule(standard_s, standard_s, None, None)
    rest = _after_name(rest)
    daylight_s = standard_s + 3600
    if rest and not rest.startswith(","):
        hours_s, rest = _offset(rest)
        daylight_s = -hours_s
    _, start, end = (rest or _DEFAULT_DATES).split(",")
    return PosixRule(standard_s, daylight_s, _Date(start), _Date(end))


class _Date:
    """A day of the year and the local second of that day: `Mm.w.d`, `Jn` or `n`, then `/time`."""

    __slots__ = ("_day", "_form", "_month", "_second", "_week")

    def __init__(self, text: str) -> None:
        day, slash, time = text.partition("/")
        self._form = day[:1]
        self._month = self._week = 0
        if self._form == "M":
            month, week, weekday = day[1:].split(".")
            self._month, self._week, self._day = _digits(month, 1, 12), _digits(week, 1, 5), _digits(weekday, 0, 6)
        elif self._form == "J":
            self._day = _digits(day[1:], 1, 365)
        else:
            self._day = _digits(day, 0, 365)
        self._second = 7200
        if slash:
            self._second, rest = _clock(time, 167)
            if rest:
                raise ValueError(f"{text!r} has something after its time")

    def local_s(self, year: int) -> int:
        """Return the local time of the change in a year."""
        return self._day_number(year) * DAY_S + self._second

    def _day_number(self, year: int) -> int:
        new_year = days_from_civil(year, 1, 1)
        leap = days_from_civil(year, 3, 1) - new_year - 59
        if self._form == "J":  # 29 February is never counted
            return new_year + self._day - 1 + (leap if self._day > 59 else 0)
        if self._form != "M":
            return new_year + self._day
        first = new_year + _BEFORE_MONTH[self._month - 1] + (leap if self._month > 2 else 0)
        found = first + (self._day - (first + 4)) % 7 + 7 * (self._week - 1)
        following = new_year + 365 + leap if self._month == 12 else days_from_civil(year, self._month + 1, 1)
        return found if found < following else found - 7  # week 5 is the last one


def _after_name(text: str) -> str:
    """Return what follows a zone name: three or more letters, or anything within `<>`."""
    if text.startswith("<"):
        name, closed, rest = text[1:].partition(">")
        if not name or not closed:
            raise ValueError(f"{text!r} has no closed name")
        return rest
    rest = text.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
    if len(text) - len(rest) < 3:
        raise ValueError(f"{text!r} does not start with a name")
    return rest


def _offset(text: str) -> tuple[int, str]:
    return _clock(text, 24)


def _clock(text: str, most_hours: int) -> tuple[int, str]:
    """Return (seconds, rest) of `[+-]h[h[h]][:mm[:ss]]`."""
    sign = -1 if text.startswith("-") else 1
    rest = text[1:] if text[:1] in ("+", "-") else text
    seconds = 0
    for unit, most in ((3600, most_hours), (60, 59), (1, 59)):
        after = rest.lstrip("0123456789")
        seconds += unit * _digits(rest[: len(rest) - len(after)], 0, most)
        rest = after
        if unit == 1 or not rest.startswith(":"):
            break
        rest = rest[1:]
    return sign * seconds, rest


def _digits(text: str, low: int, high: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 3 and low <= int(text) <= high):
        raise ValueError(f"{text[:20]!r} is not a number from {low} to {high}")
    return int(text)

"""The text of an RRULE schedule: its parts, strictly as RFC 5545 has them.

dateutil reads such texts too, but forgives or misreads much of what it does not know, and tells no place.
"""

from __future__ import annotations

from datetime import datetime

from dateutil import rrule

from runguard.errors import ScheduleError
from runguard.record import NamedTuple
from runguard.schedule.cron import cut, is_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

EPOCH = datetime(1970, 1, 1)  # where a rule starts without DTSTART
_LONGEST = 1000  # characters
_WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_FREQUENCIES = {
    "YEARLY": rrule.YEARLY,
    "MONTHLY": rrule.MONTHLY,
    "WEEKLY": rrule.WEEKLY,
    "DAILY": rrule.DAILY,
    "HOURLY": rrule.HOURLY,
    "MINUTELY": rrule.MINUTELY,
}
_LONGEST_INTERVAL = 1_000_000
# Part → (dateutil's name, lowest, highest, whether counted from the end too).
_LISTS = {
    "BYMONTH": ("bymonth", 1, 12, False),
    "BYWEEKNO": ("byweekno", 1, 53, True),
    "BYYEARDAY": ("byyearday", 1, 366, True),
    "BYMONTHDAY": ("bymonthday", 1, 31, True),
    "BYHOUR": ("byhour", 0, 23, False),
    "BYMINUTE": ("byminute", 0, 59, False),
    "BYSETPOS": ("bysetpos", 1, 366, True),
}
# What RFC 5545, 3.3.10 rules out, and dateutil takes for something else.
_ONLY_WITH = {
    "BYWEEKNO": ("YEARLY",),
    "BYYEARDAY": ("YEARLY", "HOURLY", "MINUTELY"),
    "BYMONTHDAY": ("YEARLY", "MONTHLY", "DAILY", "HOURLY", "MINUTELY"),
}


class Parts(NamedTuple):
    """A rule as it was written: `by` holds dateutil's names."""

    start: datetime  # naive, of a whole minute
    freq: Any  # dateutil's constant: YEARLY is 0, MINUTELY 5
    interval: int
    week_start: int  # Monday is 0
    counted: int | None  # COUNT
    until: datetime | None  # the last minute that may be named
    by: dict[str, Any]
    clock: tuple[int, ...] = ()  # filled in by `recurrence`


def read(text: str) -> Parts:
    """Return the parts of `DTSTART:… RRULE:…`; any letter case. Raises ScheduleError."""
    if len(text) > _LONGEST:
        refuse(text, "", f"longer than {_LONGEST} characters")
    start, rule = EPOCH, ""
    for piece in text.split():
        head, colon, value = piece.partition(":")
        name, *parameters = head.upper().split(";")
        if not colon or name not in ("DTSTART", "RRULE"):
            refuse(text, name if colon else "", f"{cut(piece)!r} is not known: write 'DTSTART:… RRULE:FREQ=…'")
        if rule:
            refuse(text, name, "a schedule is one RRULE, with DTSTART before it")
        if name == "RRULE":
            if parameters or not value:
                refuse(text, "RRULE", "it looks like 'RRULE:FREQ=MONTHLY;BYDAY=MO'")
            rule = value.upper()
        elif start is not EPOCH:
            refuse(text, "DTSTART", "there are two")
        else:
            start = _start(text, parameters, value.upper())
    if not rule:
        refuse(text, "RRULE", "it is missing: write 'DTSTART:… RRULE:FREQ=…'")
    return _parts(text, start, _pairs(text, rule))


def refuse(text: str, part: str, why: str) -> NoReturn:
    """Raise the error of a part, with its column where the text has it."""
    column = text.upper().find(part) + 1 if part else 0
    raise ScheduleError(cut(" ".join(text.split())), why, field=part, position=column)


def _start(text: str, parameters: list[str], value: str) -> datetime:
    for parameter in parameters:
        if parameter.startswith("TZID="):
            refuse(text, "TZID", "its times are local to the schedule's time zone: give that as --timezone")
        if parameter not in ("VALUE=DATE", "VALUE=DATE-TIME"):
            refuse(text, "DTSTART", f"{cut(parameter)!r} is not known")
    return _moment(text, "DTSTART", value, (0, 0))


def _pairs(text: str, rule: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in rule.removesuffix(";").split(";"):
        name, equals, value = pair.partition("=")
        if not equals or not value:
            refuse(text, name, f"{cut(pair)!r} is no NAME=VALUE")
        if name in found:
            refuse(text, name, "it is there twice")
        found[name] = value
    return found


def _parts(text: str, start: datetime, pairs: dict[str, str]) -> Parts:
    frequency = pairs.pop("FREQ", "")
    if frequency == "SECONDLY":
        refuse(text, "FREQ", "windows begin on whole minutes: SECONDLY is none")
    if frequency not in _FREQUENCIES:
        refuse(text, "FREQ", f"{cut(frequency)!r} is not one of {' '.join(_FREQUENCIES)}")
    if "COUNT" in pairs and "UNTIL" in pairs:
        refuse(text, "UNTIL", "a rule ends by COUNT or by UNTIL, not by both")
    if pairs.pop("BYSECOND", "0") not in ("0", "00"):
        refuse(text, "BYSECOND", "windows begin on whole minutes: only 0 is one")
    by: dict[str, Any] = {}
    single: dict[str, Any] = {"INTERVAL": 1, "COUNT": None, "UNTIL": None, "WKST": 0}
    for name, value in pairs.items():
        if name in _ONLY_WITH and frequency not in _ONLY_WITH[name]:
            refuse(text, name, f"it goes with FREQ {' or '.join(_ONLY_WITH[name])} only (RFC 5545)")
        if name in _LISTS:
            key, lowest, highest, backwards = _LISTS[name]
            by[key] = _numbers(text, name, value, lowest, highest, backwards)
        elif name == "BYDAY":
            numbered = frequency == "MONTHLY" or (frequency == "YEARLY" and "BYWEEKNO" not in pairs)
            by["byweekday"] = [_weekday(text, day, numbered) for day in value.split(",")]
        elif name in single:
            single[name] = _SINGLE[name](text, name, value)
        else:
            refuse(text, name, "no such part of an RRULE here")
    if "bysetpos" in by and len(by) == 1:
        refuse(text, "BYSETPOS", "it chooses among what another BY… part names, and there is none")
    interval, counted, until, week_start = (single[name] for name in ("INTERVAL", "COUNT", "UNTIL", "WKST"))
    return Parts(start, _FREQUENCIES[frequency], interval, week_start, counted, until, by)


def _numbers(text: str, name: str, value: str, lowest: int, highest: int, backwards: bool) -> tuple[int, ...]:
    found = set()
    for word in value.split(","):
        digits = word[1:] if word[:1] in ("+", "-") and backwards else word
        if not is_number(digits) or not lowest <= int(digits) <= highest:
            span = f"{lowest}-{highest}" + (f" or -{highest} to -1" if backwards else "")
            refuse(text, name, f"{cut(word)!r} is not in {span}")
        found.add(-int(digits) if word.startswith("-") else int(digits))
    return tuple(sorted(found))


def _weekday(text: str, word: str, numbered: bool) -> rrule.weekday:
    day, number = word[-2:], word[:-2]
    if day not in _WEEKDAYS:
        refuse(text, "BYDAY", f"{cut(word)!r} is none of {' '.join(_WEEKDAYS)}, nor one with a number before it")
    weekday = rrule.weekday(_WEEKDAYS.index(day))
    if not number:
        return weekday
    if not numbered:
        refuse(text, "BYDAY", f"{cut(word)!r}: a number goes with MONTHLY, or YEARLY without BYWEEKNO (RFC 5545)")
    (which,) = _numbers(text, "BYDAY", number, 1, 53, True)
    return weekday(which)


def _one(text: str, name: str, value: str) -> int:
    return _numbers(text, name, value, 1, _LONGEST_INTERVAL, False)[0]


def _week_start(text: str, name: str, value: str) -> int:
    if value not in _WEEKDAYS:
        refuse(text, name, f"{cut(value)!r} is none of {' '.join(_WEEKDAYS)}")
    return _WEEKDAYS.index(value)


def _until(text: str, name: str, value: str) -> datetime:
    return _moment(text, name, value, (23, 59))  # a date alone: that day is the last


def _moment(text: str, name: str, value: str, clock: tuple[int, int]) -> datetime:
    """Read `YYYYMMDD` at `clock`, or `YYYYMMDDTHHMMSS`; the second of UNTIL does not matter, others are 0."""
    if value.endswith("Z"):
        refuse(text, name, f"{cut(value)!r} is UTC; times are local here: leave out the Z")
    date, tee, time = value.partition("T")
    well_formed = is_number(date) and len(date) == 8 and (not tee or (is_number(time) and len(time) == 6))
    try:
        if not well_formed:
            raise ValueError
        hour, minute, second = (int(time[:2]), int(time[2:4]), int(time[4:])) if tee else (*clock, 0)
        found = datetime(int(date[:4]), int(date[4:6]), int(date[6:]), hour, minute, second)
    except ValueError:
        refuse(text, name, f"{cut(value)!r} is no local time such as 20260101T090000")
    if found.second and name != "UNTIL":
        refuse(text, name, "windows begin on whole minutes: its second must be 00")
    return found


_SINGLE: dict[str, Callable[[str, str, str], Any]] = {
    "INTERVAL": _one,
    "COUNT": _one,
    "UNTIL": _until,
    "WKST": _week_start,
}

"""Instants as integers: microseconds since 1970-01-01T00:00Z, and their RFC 3339 text.

Plain arithmetic on the proleptic Gregorian calendar (Howard Hinnant's "days from civil"), because the module runs
before the command is spawned and `datetime` is not free there.
"""

from __future__ import annotations

SECOND_US = 1_000_000
DAY_S = 86_400


def days_from_civil(year: int, month: int, day: int) -> int:
    """Return the days from 1970-01-01 to the date."""
    year -= month <= 2
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * 146_097 + day_of_era - 719_468


def civil_from_days(days: int) -> tuple[int, int, int]:
    """Return (year, month, day) of the date that lies `days` after 1970-01-01."""
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted_month + 2) // 5 + 1
    month = shifted_month + (3 if shifted_month < 10 else -9)
    return year_of_era + era * 400 + (month <= 2), month, day


def rfc3339(at_us: int) -> str:
    """Return `YYYY-MM-DDTHH:MM:SSZ`, with a fraction only where there is one."""
    seconds, fraction_us = divmod(at_us, SECOND_US)
    days, second = divmod(seconds, DAY_S)
    year, month, day = civil_from_days(days)
    fraction = f".{fraction_us:06d}".rstrip("0") if fraction_us else ""
    return f"{year:04d}-{month:02d}-{day:02d}T{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}{fraction}Z"


def from_rfc3339(text: str) -> int:
    """Return the microseconds of what `rfc3339` wrote.

    Reads an offset (`+01:00`) in the place of `Z` too, and a missing second as 0.

    Raises ValueError where the text is no such instant.
    """
    date, _, rest = text.partition("T")
    if rest.endswith(("Z", "z")):
        clock, offset_s = rest[:-1], 0
    else:
        sign_at = max(rest.rfind("+"), rest.rfind("-"))
        if sign_at < 0:
            raise ValueError(f"{text!r} has no offset from UTC")
        offset_hours, _, offset_minutes = rest[sign_at + 1 :].partition(":")
        offset_s = _digits(offset_hours, 0, 23) * 3600 + _digits(offset_minutes or "0", 0, 59) * 60
        offset_s = -offset_s if rest[sign_at] == "-" else offset_s
        clock = rest[:sign_at]
    year, month, day = date.split("-")
    whole, _, fraction = clock.partition(".")
    hour, minute, *second = whole.split(":")
    if len(second) > 1 or (fraction and not second):
        raise ValueError(f"{text!r} is no RFC 3339 instant")
    days = days_from_civil(_digits(year, 1, 9999), _digits(month, 1, 12), _digits(day, 1, 31))
    if civil_from_days(days)[2] != int(day):
        raise ValueError(f"{text!r}: there is no such day")
    seconds = days * DAY_S + _digits(hour, 0, 23) * 3600 + _digits(minute, 0, 59) * 60
    seconds += (_digits(second[0], 0, 60) if second else 0) - offset_s
    return seconds * SECOND_US + (_digits(fraction[:6].ljust(6, "0"), 0, 999_999) if fraction else 0)


def span(span_us: int) -> str:
    """Return a span in the two largest units that say something: `3d2h`, `4h10m`, `12m`, `45s`."""
    seconds = max(0, span_us // SECOND_US)
    for unit, length_s, finer, finer_s in (("d", DAY_S, "h", 3600), ("h", 3600, "m", 60), ("m", 60, "s", 1)):
        if seconds >= length_s:
            rest = seconds % length_s // finer_s
            return f"{seconds // length_s}{unit}" + (f"{rest}{finer}" if rest else "")
    return f"{seconds}s"


def seconds(span_s: float) -> str:
    """Return a span of seconds in words, below a minute to the fraction: `0.2s`, `45s`, `4h10m`."""
    return f"{span_s:g}s" if span_s < 60 else span(round(span_s * SECOND_US))


def _digits(text: str, low: int, high: int) -> int:
    if not (text.isascii() and text.isdigit() and low <= int(text) <= high):
        raise ValueError(f"{text!r} is not a number from {low} to {high}")
    return int(text)

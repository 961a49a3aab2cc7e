"""Instants that people type at a terminal: `--since 7d`, `--until 2026-03-29`, `--since "last monday"`.

Read in two steps: a text means the same everywhere, but only a zone and a now make an instant of it. Nothing is
guessed: what could mean two days is refused, and so is what names none.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

from runguard import values
from runguard.errors import UsageError
from runguard.instant import DAY_S, SECOND_US
from runguard.schedule.zone import Zone

KNOWN = "2026-03-29, 2026-03-29T02:30+01:00, 29 March 2026, 14:00, yesterday 14:00, last monday, 3 days ago, 7d"

USUAL_SPAN_US = 7 * DAY_S * SECOND_US  # how far a query looks back that names no beginning

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NAIVE_EPOCH = datetime(1970, 1, 1)
_SECOND = timedelta(seconds=1)

# Returns local time by the wall clock (naive), or an instant (aware), for a now in local time with its offset.
_Meaning = Callable[[datetime], datetime]

_CLOCK = r"(?: +(?:at +)?(?P<hour>[0-9]{1,2})(?::(?P<minute>[0-9]{2}))?(?::(?P<second>[0-9]{2}))? ?(?P<half>am|pm)?)?"
_DAYS = re.compile(r"(?P<word>today|yesterday|tomorrow)" + _CLOCK)
_TIME = re.compile(r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?(?: ?[ap]m)?")
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NAMED = {day: number for number, name in enumerate(_WEEKDAYS) for day in (name, name[:3])}
_NEXT = re.compile(r"(?P<which>last|next) +(?P<day>" + "|".join(_NAMED) + ")" + _CLOCK)
_UNITS = "second|minute|hour|day|week|month|year"
_AGO = re.compile(
    rf"(?P<n>[0-9]{{1,6}}|an?) +(?P<unit>{_UNITS})s? +ago|in +(?P<m>[0-9]{{1,6}}|an?) +(?P<ahead>{_UNITS})s?"
)
_TWO_WAYS = re.compile(r"[0-9]{1,2}[/.-][0-9]{1,2}[/.-](?:[0-9]{2}|[0-9]{4})(?:[ t].*)?")
# What dateutil may be shown: words of which it would guess nothing.
_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
           "december")  # fmt: skip
_WORDS = frozenset({*_NAMED, *_MONTHS, *(month[:3] for month in _MONTHS), "sept", "am", "pm", "utc",
                    "gmt", "at", "of", "on"})  # fmt: skip


class When:
    """A point in time as a person named it; `option` is where, for messages."""

    def __init__(self, option: str, text: str, meaning: _Meaning) -> None:
        self.option = option
        self.text = text
        self._meaning = meaning

    def at_us(self, now_us: int, zone: Zone | None = None) -> int:
        """Return the UTC microseconds of it in `zone`, without one in our own time zone (`$TZ`).

        In `zone`, of a local time that comes twice the first counts, of one that does not exist the first instant after
        it. Raises UsageError where no calendar has it.
        """
        try:
            now = _EPOCH + timedelta(seconds=now_us // SECOND_US)  # nobody means microseconds by "3 days ago"
            local = now.astimezone() if zone is None else _local(now, zone)
            meant = self._meaning(local)
            if meant.tzinfo is None and zone is not None:
                return _instant_us(meant, zone)
            return (meant.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1)
        except (ValueError, OverflowError, OSError):
            raise UsageError(f"{self.option}: {values.short(self.text)}: no calendar goes there") from None


def when(option: str, text: str) -> When:
    """Return what `text` says: a date or instant, a day in words, or a duration ago. Raises UsageError.

    A date or day without a time is its beginning, a time without a day is one of today.
    """
    said = " ".join(text.lower().split())
    said = f"today {said}" if _TIME.fullmatch(said) else said
    for read in (_iso, _duration_ago, _day, _weekday, _ago, _date_in_words):
        meaning = read(said)
        if meaning is not None:
            return When(option, text, meaning)
    if _TWO_WAYS.fullmatch(said):
        raise UsageError(f"{option}: {values.short(text)} can be read in more than one way (write 2026-03-29)")
    raise UsageError(f"{option}: {values.short(text)} is no instant ({KNOWN})")


def local(at_us: int, timespec: str = "seconds") -> str:
    """Return an instant in local time, to the second (or as datetime's `timespec` has it), with its offset."""
    at = _EPOCH + timedelta(microseconds=at_us)
    return at.astimezone().isoformat(sep=" ", timespec=timespec)


def span(duration_s: float | None) -> str:
    """Return a duration for people: `0.42s`, `59.1s`, `1h02m`, `3d04h`; nothing where there is none."""
    if duration_s is None:
        return ""
    if duration_s < 10:
        return f"{duration_s:.2f}s"
    if duration_s < 60:
        return f"{duration_s:.1f}s"
    minutes, seconds = divmod(round(duration_s), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}d{hours:02d}h"
    return f"{hours}h{minutes:02d}m" if hours else f"{minutes}m{seconds:02d}s"


def _iso(said: str) -> _Meaning | None:
    if said.strip("0123456789-:.+ twz,"):
        return None  # any letter would do for Python between date and time
    try:
        at = datetime.fromisoformat(said.upper())
    except ValueError:
        return None
    return lambda _: at


def _duration_ago(said: str) -> _Meaning | None:
    if said == "now":
        return lambda now: now
    try:
        span = timedelta(seconds=values.duration(said.removesuffix(" ago"))) if said[-1:].isalpha() else None
    except ValueError:
        return None
    return None if span is None else lambda now: now.astimezone(UTC) - span


def _day(said: str) -> _Meaning | None:
    found = _DAYS.fullmatch(said)
    clock = _clock(found)
    if found is None or clock is None:
        return None
    days = timedelta({"yesterday": -1, "today": 0, "tomorrow": 1}[found["word"]])
    return lambda now: _midnight(now) + days + clock


def _weekday(said: str) -> _Meaning | None:
    """Read `last monday`, the one before today, and `next monday`, the one after today."""
    found = _NEXT.fullmatch(said)
    clock = _clock(found)
    if found is None or clock is None:
        return None
    day = _NAMED[found["day"]]

    def meaning(now: datetime) -> datetime:
        behind, ahead = (now.weekday() - day) % 7 or 7, (day - now.weekday()) % 7 or 7
        return _midnight(now) + timedelta(-behind if found["which"] == "last" else ahead) + clock

    return meaning


def _ago(said: str) -> _Meaning | None:
    """Read `3 days ago` and `in 2 hours`: days and more by the calendar, less by the clock."""
    found = _AGO.fullmatch(said)
    if found is None:
        return None
    sign, figure, unit = (-1, found["n"], found["unit"]) if found["n"] else (1, found["m"], found["ahead"])
    number = sign * (int(figure) if figure.isdigit() else 1)
    if unit in ("second", "minute", "hour"):
        span = timedelta(**{unit + "s": number})
        return lambda now: now.astimezone(UTC) + span

    def meaning(now: datetime) -> datetime:
        from dateutil.relativedelta import relativedelta

        return now.replace(tzinfo=None) + relativedelta(**{unit + "s": number})  # type: ignore[arg-type]

    return meaning


def _date_in_words(said: str) -> _Meaning | None:
    """Read `29 March 2026`, `Sun, 29 Mar 2026 02:30:00 +0100`: a day, a month by name and all four digits of a year.

    dateutil takes what is missing from a default, so two of them have to give the same, and it skips a weekday that is
    not the date's.
    """
    words = re.findall(r"[a-z]+", re.sub(r"(?<=[0-9])(?:st|nd|rd|th)\b", "", said))
    if not said.isascii() or not _WORDS.issuperset(words) or not any(word[:3] in _MONTH_STARTS for word in words):
        return None
    if sorted(map(len, re.findall(r"[0-9]+", _TIMES.sub("", said)))) not in ([1, 4], [2, 4]):
        return None
    from dateutil import parser

    try:
        found, again = (parser.parse(said.upper(), default=default) for default in _DEFAULTS)
    except (ValueError, OverflowError):
        return None
    days = [_NAMED[word] for word in words if word in _NAMED]
    if found != again or any(day != found.weekday() for day in days):
        return None
    return lambda _: found


_TIMES = re.compile(
    r"[0-9]{1,2}:[0-9:.]+(?:[+-][0-9]{2}:?[0-9]{2})?|(?<= )[+-][0-9]{2}:?[0-9]{2}\b|\b[0-9]{1,2} ?[ap]m\b"
)
_MONTH_STARTS = frozenset(month[:3] for month in _MONTHS)
_DEFAULTS = (datetime(2000, 1, 1), datetime(2004, 2, 2))


def _clock(found: re.Match[str] | None) -> timedelta | None:
    """Return the time of day that stands at the end of a match, midnight where none does, or None where it is none."""
    if found is None:
        return None
    if found["hour"] is None:
        return timedelta()
    hour, minute, second = (int(found[name] or 0) for name in ("hour", "minute", "second"))
    if found["half"]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + 12 * (found["half"] == "pm")
    elif found["minute"] is None:
        return None  # "yesterday 14" is hardly a time
    if hour > 23 or minute > 59 or second > 59:
        return None
    return timedelta(hours=hour, minutes=minute, seconds=second)


def _midnight(now: datetime) -> datetime:
    return now.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)


def _local(now: datetime, zone: Zone) -> datetime:
    return now.astimezone(timezone(zone.offset_at((now - _EPOCH) // _SECOND) * _SECOND))


def _instant_us(local: datetime, zone: Zone) -> int:
    """Return the first instant at which clocks in `zone` show `local`, or the first after a gap that it falls into."""
    local_us = (local - _NAIVE_EPOCH) // timedelta(microseconds=1)
    local_s = local_us // SECOND_US
    for start_s, end_s, offset_s in zone.spans(local_s - zone.highest_s, local_s - zone.lowest_s + 1):
        at_us = local_us - offset_s * SECOND_US
        if at_us < end_s * SECOND_US:
            return max(at_us, start_s * SECOND_US)
    raise ValueError("a span ends after the least offset")

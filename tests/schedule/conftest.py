"""What the tests of this room share: zone bytes, timetables, expressions with known values, and a walk by the minute.

The walk shares nothing with the product: it asks zoneinfo for the local time of every UTC minute.
"""

from __future__ import annotations

import base64
import io
import json
import random
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pytest

from runguard.instant import SECOND_US, from_rfc3339
from runguard.schedule.cron import parse
from runguard.schedule.policy import rule
from runguard.schedule.windows import Timetable
from runguard.schedule.zone import Zone, fixed, parse_tzif

DATA = Path(__file__).parent.parent / "data"
MINUTE = timedelta(minutes=1)


class Expression(NamedTuple):
    """An expression and what it names, made side by side so that neither is derived from the other."""

    text: str
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]  # Sunday is 0

    def names_day(self, at: datetime) -> bool:
        """Apply the day rule as crontab(5) of Debian words it."""
        fields = self.text.split()
        in_month, in_week = at.day in self.days, at.isoweekday() % 7 in self.weekdays
        either = fields[2][0] != "*" and fields[4][0] != "*"
        return at.month in self.months and ((in_month or in_week) if either else (in_month and in_week))

    def names(self, at: datetime) -> bool:
        return at.minute in self.minutes and at.hour in self.hours and self.names_day(at)


@pytest.fixture(scope="session")
def schedules() -> SimpleNamespace:
    """Hand out the functions of this file: test modules cannot import it."""
    return SimpleNamespace(
        zone_bytes=zone_bytes,
        zone=zone,
        zone_names=zone_names,
        reference=reference,
        table=table,
        expression=lambda seed, *, dense=False: make_expression(random.Random(seed), dense=dense),
        walk=walk,
        changes=changes,
    )


@cache
def _cases() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((DATA / "windows.json").read_text())
    return loaded


@cache
def zone_bytes(name: str) -> bytes:
    """Return the TZif bytes of a zone of the tzdata package, or of one that the cases bring (`Zone@version`)."""
    if "@" in name:
        return base64.b64decode(_cases()["tzif"][name])
    return files("tzdata").joinpath("zoneinfo", *name.split("/")).read_bytes()


@cache
def zone(name: str) -> Zone:
    return fixed(name) if name[0] in "+-" else parse_tzif(zone_bytes(name), name)


@cache
def zone_names() -> tuple[str, ...]:
    return tuple(sorted(files("tzdata").joinpath("zones").read_text().split()))


def table(
    text: str, zone_name: str = "UTC", policy: str = "vixie", gap: str | None = None, fold: str | None = None
) -> Timetable:
    cron = parse(text)
    return Timetable(cron, zone(zone_name), rule(policy, gap, fold, wild=cron.wild))


@cache
def reference(name: str) -> ZoneInfo:
    return ZoneInfo.from_file(io.BytesIO(zone_bytes(name)), name)


_SPANS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
_NAMES = (
    (),
    (),
    (),
    ("JAN", "feb", "Mar", "apr", "may", "jun", "jul", "AUG", "sep", "oct", "nov", "dec"),
    ("sun", "Mon", "tue", "WED", "thu", "fri", "sat"),
)


def make_expression(chance: random.Random, *, dense: bool = False) -> Expression:
    """Make an expression that some day matches; `dense`: of every day, most of them in the small hours."""
    while True:
        fields = [_field(chance, index, dense) for index in range(5)]
        text = " ".join(field for field, _ in fields)
        values = [found for _, found in fields]
        made = Expression(text, *map(frozenset, values[:4]), frozenset(value % 7 for value in values[4]))
        if any(made.names_day(datetime(2000, 1, 1) + timedelta(days=day)) for day in range(366)):
            return made


def _field(chance: random.Random, index: int, dense: bool) -> tuple[str, set[int]]:
    low, high = _SPANS[index]
    if dense and index > 1:
        return "*", set(range(low, high + 1))
    if dense and index == 1:
        high = 5
    items = [_item(chance, index, low, high) for _ in range(chance.choice((1, 1, 1, 2, 3)))]
    return ",".join(item for item, _ in items), set().union(*(found for _, found in items))


def _item(chance: random.Random, index: int, low: int, high: int) -> tuple[str, set[int]]:
    whole = range(_SPANS[index][0], _SPANS[index][1] + 1)
    first = chance.randint(low, high)
    last = chance.randint(first, high)
    step = chance.choice((1, 2, 3, 5, 7, 15, 20, 30, 90))
    match chance.choice(("star", "star", "star step", "number", "number", "span", "span step", "name")):
        case "star":
            return "*", set(whole)
        case "star step":
            return f"*/{step}", set(whole[::step])
        case "span":
            return f"{first}-{last}", set(range(first, last + 1))
        case "span step":
            # Not `n-n/step`, which cronsim takes for `n/step`.
            last = max(last, min(first + 1, high))
            if last == first:
                return f"{first}", {first}
            return f"{first}-{last}/{step}", set(range(first, last + 1, step))
        case "name" if _NAMES[index]:
            value = chance.randrange(len(_NAMES[index]))
            return _NAMES[index][value], {value + low}
        case _:
            return chance.choice((f"{first}", f"{first:02d}")), {first}


@cache
def _local_minutes(name: str, first: datetime, last: datetime) -> tuple[tuple[datetime, datetime], ...]:
    """Return (UTC minute, its naive local time) of every minute from `first` to `last`."""
    tz = reference(name)
    return tuple(
        (at, at.astimezone(tz).replace(tzinfo=None))
        for at in (first + MINUTE * n for n in range(int((last - first) / MINUTE) + 1))
    )


def walk(made: Expression, name: str, gap: str, fold: str, limits: bool, first_us: int, last_us: int) -> list[int]:
    """Return the dues of `first <= due <= last` by a walk over every UTC minute, for whole-minute offsets.

    `limits`: leave out gaps of 180 minutes or more, and repeat what comes twice more than 180 minutes apart.
    """
    margin = timedelta(hours=27)
    first, last = (datetime.fromtimestamp(at_us / SECOND_US, UTC) for at_us in (first_us, last_us))
    occurrences: dict[datetime, list[datetime]] = {}
    gaps: list[tuple[datetime, datetime, datetime]] = []
    before = None
    for at, local in _local_minutes(name, first - margin, last + margin):
        occurrences.setdefault(local, []).append(at)
        if before is not None and local > before + MINUTE:
            gaps.append((at, before + MINUTE, local))
        before = local
    due: set[datetime] = set()
    for local, found in occurrences.items():
        if made.names(local):
            repeated = fold == "both" or (limits and found[-1] - found[0] > 180 * MINUTE)
            due |= set(found if repeated else found[:1] if fold == "first" else found[-1:])
    for at, missing_from, missing_until in gaps:
        if gap == "skip" or (limits and missing_until - missing_from >= 180 * MINUTE):
            continue
        for moved in range(int((missing_until - missing_from) / MINUTE)):
            local = missing_from + MINUTE * moved
            if local not in occurrences and made.names(local):
                due.add(at if gap == "after" else at + MINUTE * moved)
    return sorted(int(at.timestamp()) * SECOND_US for at in due if first <= at <= last)


@cache
def changes(name: str) -> tuple[int, ...]:
    """Return the UTC seconds at which the reference's offset changes from 1980 to 2040, found by halving weeks."""
    tz = reference(name)

    def offset(at_s: int) -> timedelta | None:
        return datetime.fromtimestamp(at_s, tz).utcoffset()

    found = []
    at_s, end_s = from_rfc3339("1980-01-01T00:00:00Z") // SECOND_US, from_rfc3339("2040-01-01T00:00:00Z") // SECOND_US
    while at_s < end_s:
        later_s = at_s + 7 * 86_400
        if offset(at_s) != offset(later_s):
            low, high = at_s, later_s
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if offset(middle) == offset(at_s) else (low, middle)
            found.append(high)
        at_s = later_s
    return tuple(found)

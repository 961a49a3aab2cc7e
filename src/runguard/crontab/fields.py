"""What a daemon really reads in five fields: more than it should, and not always what stands there."""

from __future__ import annotations

import re
from typing import NamedTuple

from runguard.crontab.daemons import Daemon, unread
from runguard.schedule.cron import MACROS, Cron

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
FIELDS: tuple[tuple[str, int, int, tuple[str, ...]], ...] = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of week", 0, 7, _WEEKDAYS),
)
_ITEM = re.compile(r"(\*|[A-Za-z0-9]+)(?:-([A-Za-z0-9]+))?(?:/([A-Za-z0-9]+))?")


Values = tuple[frozenset[int], ...]  # of the five fields, Sunday as 0


class Reading(NamedTuple):
    """The values that a daemon takes; `refused` names the field that it does not read."""

    values: Values = ()
    refused: str = ""

    @property
    def empty(self) -> str:
        """The field that names nothing, so that the line never fires, or ""."""
        return next((field[0] for field, found in zip(FIELDS, self.values, strict=False) if not found), "")


def values_of(cron: Cron) -> Values:
    """Return what runguard reads, in the same form."""
    fields = (cron.minutes, cron.hours, cron.days, cron.months, cron.weekdays)
    return tuple(frozenset(values) for values in fields)


def read(schedule: str, daemon: Daemon) -> Reading:
    """Return what `daemon` reads in five fields, or in an @name that it knows."""
    pieces = MACROS.get(schedule, schedule).split()
    if len(pieces) != 5:
        return Reading(refused="minute")
    one = _busybox if daemon.name == "busybox" else _vixie
    found = []
    for index, piece in enumerate(pieces):
        values = one(piece, index, strict=daemon.name == "cronie")
        if values is None:
            return Reading(refused=FIELDS[index][0])
        found.append(frozenset(value % 7 for value in values) if index == 4 else frozenset(values))
    return Reading(tuple(found))


def takes(schedule: bytes, daemon: Daemon) -> bool:
    """Tell whether a daemon reads five fields, or an @name, whatever it makes of them."""
    if schedule.startswith(b"@"):
        return not unread(schedule, daemon)
    return not read(schedule.decode("utf-8", "surrogateescape"), daemon).refused


def _vixie(piece: str, index: int, *, strict: bool) -> set[int] | None:
    """Read a field as get_list of Vixie's cron: what stands behind the first item it can read is passed over."""
    _, low, high, names = FIELDS[index]
    values: set[int] = set()
    at = 0
    while True:
        item = _ITEM.match(piece, at)
        if not item:
            return None
        first, last, step = item.groups()
        at = item.end()
        if step is not None and not step.isdigit():
            return None
        if first == "*":
            if last is not None:
                at = item.end(1)  # `*-5` is `*`
                step = None
            start, stop = low, high
        else:
            start, stop = _number(first, low, names), _number(last or first, low, names)
            if last is None and piece[item.end(1) : item.end(1) + 1] in ("/", "-"):
                return None
        if not _within(start, low, high) or not _within(stop, low, high):
            return None
        following = piece[at : at + 1]
        if following == "/" or (step is not None and int(step) == 0):
            return None
        if strict and (
            (start > stop and not (index == 4 and stop == 0)) or (first != "*" and following not in ("", ","))
        ):
            return None
        if strict and start > stop:
            stop = 7  # `fri-sun`
        values.update(range(start, stop + 1, int(step or 1)))
        if following != ",":
            return values
        at += 1


def _busybox(piece: str, index: int, *, strict: bool) -> set[int] | None:  # noqa: ARG001
    """Read a field as BusyBox does: ranges wrap around, a step needs no range, Sunday is only 0; days begin at 0."""
    _, low, high, names = FIELDS[index]
    low, high = 0 if index == 2 else low, 6 if index == 4 else high
    values: set[int] = set()
    for item in piece.split(","):
        found = _ITEM.fullmatch(item)
        if not found or (found[1] == "*" and found[2] is not None) or not (found[3] or "0").isdigit():
            return None
        first, last, step = found.groups()
        if first == "*":
            span = range(low, high + 1)
        else:
            start, stop = _number(first, low, names), _number(last or first, low, names)
            if index == 3 and start == stop == 0:
                continue  # it takes a month 0, which never comes
            if not _within(start, low, high) or not _within(stop, low, high):
                return None
            span = range(start, stop + 1 + (high - low + 1 if start > stop else 0))
        every = len(span) if step is not None and int(step) == 0 else int(step or 1)  # a step of 0: the first alone
        values.update((value - low) % (high - low + 1) + low if value > high else value for value in span[::every])
    return values - {0} if index == 2 else values


def _number(word: str, low: int, names: tuple[str, ...]) -> int:
    """Return the number of a name or of digits, or -1."""
    if word.lower() in names:
        return names.index(word.lower()) + low
    return int(word) if word.isascii() and word.isdigit() and len(word) < 10 else -1


def _within(value: int, low: int, high: int) -> bool:
    return low <= value <= high

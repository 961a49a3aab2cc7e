"""How fast ten years of windows are enumerated, and what of them is missing is found among a million dues."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Never

from benchmarks.table import show
from runguard import zones
from runguard.coverage.missing import missing
from runguard.instant import from_rfc3339
from runguard.model import Schedule
from runguard.schedule import revisions
from runguard.schedule.revisions import Piece, Succession

_AFTER_US, _UNTIL_US = from_rfc3339("2020-01-01T00:00:00Z"), from_rfc3339("2030-01-01T00:00:00Z")
_ZONE = "Europe/London"
_ROUNDS = 3


def measure() -> None:
    """Print the measurements."""
    show(f"Windows of ten years, {_ZONE}, best of {_ROUNDS}", ("", "count", "s", "wanted s"), rows())


def rows() -> list[tuple[str, str, str, str]]:
    """Return (what, how many, seconds, seconds wanted) of each measurement."""
    minutely, five = _expected("* * * * *"), _expected("*/5 * * * *")
    rule = _expected("RRULE:FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1;BYHOUR=18")
    dues = list(five.dues(_AFTER_US, _UNTIL_US))
    answered = _Listed([due_us for n, due_us in enumerate(dues) if n % 20])
    found = lambda: missing(five, answered, "job", _AFTER_US, _UNTIL_US, 0)  # noqa: E731 - a row of the table
    return [
        _row("dues, every minute", lambda: minutely.dues(_AFTER_US, _UNTIL_US), "1"),
        _row("windows, every minute", lambda: minutely.between(_AFTER_US, _UNTIL_US), "6"),
        _row("windows, every five minutes", lambda: five.between(_AFTER_US, _UNTIL_US), ""),
        _row("windows, last working day (RRULE)", lambda: rule.between(_AFTER_US, _UNTIL_US), ""),
        _row(f"missing, every five minutes, {len(answered.dues):,} dues answered", found, "1.5 with the command"),
    ]


class _Listed:
    """A record of answered dues in memory: what a store answers without its cost."""

    def __init__(self, dues: list[int]) -> None:
        self.dues = dues

    def answered_dues(self, _job: str, after_us: int, until_us: int) -> Sequence[int]:
        """Return those of a span."""
        return self.dues[bisect_right(self.dues, after_us) : bisect_right(self.dues, until_us)]

    def answered_keys(self, _job: str, _keys: Iterable[str]) -> set[str]:
        """Return none: a due is its key here."""
        return set()

    def covers(self, _job: str, _after_us: int, _until_us: int) -> Sequence[Never]:
        """Return none."""
        return ()

    refusals = waivers = covers


def _expected(text: str) -> Succession:
    zone = zones.load(_ZONE).zone
    return Succession([Piece(1, _AFTER_US, revisions.timetable(Schedule(text, _ZONE), zone))])


def _row(what: str, enumerate_: Callable[[], Iterable[object]], wanted: str) -> tuple[str, str, str, str]:
    best_s, count = float("inf"), 0
    for _ in range(_ROUNDS):
        began_s = time.perf_counter()
        last = deque(enumerate(enumerate_(), 1), maxlen=1)
        best_s, count = min(best_s, time.perf_counter() - began_s), last[0][0]
    return what, f"{count:,}", f"{best_s:.3f}", wanted


if __name__ == "__main__":
    measure()

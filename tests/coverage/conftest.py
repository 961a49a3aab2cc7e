"""What is on record, as plain values: starts and waivers with every field named, and a record to ask."""

from __future__ import annotations

from importlib.resources import files
from types import SimpleNamespace
from typing import NamedTuple

import pytest

from runguard.instant import from_rfc3339
from runguard.model import Schedule
from runguard.schedule import revisions
from runguard.schedule.revisions import Piece, Succession
from runguard.schedule.zone import fixed, parse_tzif


class Start(NamedTuple):
    seq: int
    key: str | None = "L2024-06-03T09:00"
    outcome: str = "succeeded"
    due_us: int = from_rfc3339("2024-06-03T09:00:00Z")
    start_us: int = from_rfc3339("2024-06-02T09:00:00Z")
    label: str | None = "2024-06-03T09:00+00:00"
    nominal: str | None = "2024-06-03T09:00"
    exit_status: int | None = None
    why: str | None = None
    suspect: str | None = None
    covers_first_us: int | None = None
    covers_last_us: int | None = None

    @property
    def number(self) -> int:
        return self.seq * 10


class Waiver(NamedTuple):
    seq: int
    key: str | None = None
    since_us: int | None = None
    until_us: int | None = None
    withdraw: bool = False
    reason: str | None = "planned downtime"
    actor: str | None = "anna"


class Span(NamedTuple):
    first_us: int
    last_us: int


class Record:
    """A record of a few starts and waivers, read by the walk: what a store answers by its indexes."""

    def __init__(self, starts=(), waivers=()):
        self._starts = starts
        self._waivers = waivers

    def answered_dues(self, job, after_us, until_us):
        return sorted({start.due_us for start in self._ran() if after_us < start.due_us <= until_us})

    def answered_keys(self, job, keys):
        return {start.key for start in self._ran()} & set(keys)

    def covers(self, job, after_us, until_us):
        spans = [Span(start.covers_first_us, start.covers_last_us) for start in self._ran() if start.covers_first_us]
        return [span for span in spans if span.first_us <= until_us and span.last_us > after_us]

    def refusals(self, job, after_us, until_us):
        return [s for s in self._starts if s.outcome == "refused" and after_us < s.due_us <= until_us]

    def waivers(self, job, after_us, until_us):
        return self._waivers

    def _ran(self):
        return [start for start in self._starts if start.outcome != "refused"]


def _zone(name):
    if name[0] in "+-":
        return fixed(name)
    return parse_tzif(files("tzdata").joinpath("zoneinfo", *name.split("/")).read_bytes(), name)


def _expected(text, zone="UTC", policy="vixie", gap=None, fold=None, *, found=None):
    """Return the succession of one revision since the beginning; `found` is a zone to take in place of the named."""
    schedule = Schedule(text, zone, policy, gap, fold)
    return Succession([Piece(1, 0, revisions.timetable(schedule, found or _zone(zone)))])


def _ran(windows, first_seq=1):
    """Return a start that succeeded for each window."""
    return [
        Start(seq, window.key, "succeeded", window.due_us, window.start_us, window.label, window.nominal)
        for seq, window in enumerate(windows, first_seq)
    ]


@pytest.fixture(scope="session")
def on_record() -> SimpleNamespace:
    """Hand out what this file has: test modules cannot import it."""
    return SimpleNamespace(Start=Start, Waiver=Waiver, Record=Record, expected=_expected, ran=_ran)

"""What real daemons fired over changes of offset, resolved to windows (data/fired-by-real-crons.json)."""

from __future__ import annotations

from collections import Counter

import pytest

from fired import ROWS, firings
from runguard.instant import SECOND_US, from_rfc3339
from runguard.schedule.revisions import resolve


def _answered(row, timetable):
    """Return (windows expected, windows answered once, later firings for an answered window) of one row."""
    from_us = from_rfc3339(row["from"])
    expected = {window.key for window in timetable.between(from_us, from_us + round(row["hours"] * 3600) * SECOND_US)}
    answered: set[str] = set()
    duplicates = 0
    for fired_us in firings(row):
        key = resolve(timetable, fired_us).window.key
        duplicates += key in answered
        answered.add(key)
    return expected, answered, duplicates


def test_debian_cron_answers_every_window_and_no_other(schedules):
    rows = [row for row in ROWS if row["daemon"] == "debian"]
    found = Counter()
    for row in rows:
        expected, answered, duplicates = _answered(row, schedules.table(row["schedule"], row["tz"]))
        assert answered == expected, row
        found.update(windows=len(expected), duplicates=duplicates)
    assert len(rows) == 310
    assert found == {"windows": 890, "duplicates": 21}


def test_debian_cron_is_never_more_than_a_minute_and_a_half_late(schedules):
    for row in ROWS:
        if row["daemon"] == "debian":
            timetable = schedules.table(row["schedule"], row["tz"])
            for fired_us in firings(row):
                found = resolve(timetable, fired_us)
                assert 0 <= found.late_s <= 90, row
                assert not found.off_schedule, row


@pytest.mark.parametrize(
    ("daemon", "counts"),
    [
        ("cronie", {"firings": 874, "windows": 842, "answered": 808, "missing": 34, "others": 20, "duplicates": 46}),
        ("busybox", {"firings": 771, "windows": 750, "answered": 723, "missing": 27, "others": 1, "duplicates": 47}),
    ],
)
def test_what_another_daemon_leaves_out_is_missing_and_what_it_repeats_is_a_duplicate(daemon, counts, schedules):
    found = Counter()
    for row in ROWS:
        if row["daemon"] == daemon:
            expected, answered, duplicates = _answered(row, schedules.table(row["schedule"], row["tz"]))
            found.update(
                firings=len(row["fired_local"]),
                windows=len(expected),
                answered=len(answered & expected),
                missing=len(expected - answered),
                others=len(answered - expected),
                duplicates=duplicates,
            )
    assert found == counts

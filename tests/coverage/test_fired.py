"""Whatever real daemons fired (data/fired-by-real-crons.json): each window ends answered once, or missing."""

from __future__ import annotations

from collections import Counter

from fired import ROWS, firings
from runguard.coverage.missing import missing
from runguard.coverage.verdicts import judge
from runguard.instant import from_rfc3339
from runguard.schedule.revisions import resolve


def test_what_was_never_fired_is_missing_and_everything_else_has_one_success(on_record):
    told = Counter()
    for row in ROWS:
        expected = on_record.expected(row["schedule"], row["tz"])
        after_us = from_rfc3339(row["from"])
        until_us = after_us + round(row["hours"] * 3600) * 1_000_000
        answered = {}
        for fired_us in firings(row):
            window = resolve(expected, fired_us).window
            told[f"{row['daemon']} duplicates"] += window.key in answered
            answered[window.key] = window
        starts = on_record.ran(sorted(answered.values(), key=lambda window: window.due_us))
        windows = list(expected.between(after_us, until_us))
        verdicts = list(judge(windows, starts, [], until_us, 0, span=(after_us, until_us)))
        assert [found.window.key for found in verdicts] == [window.key for window in windows], row
        left_out = [found.window.key for found in verdicts if found.verdict == "missing"]
        assert left_out == [window.key for window in windows if window.key not in answered], row
        found = missing(expected, on_record.Record(starts), "job", after_us, until_us, 0)
        assert [gap.window.key for gap in found] == left_out, row
        told.update(f"{row['daemon']} {found.verdict}" for found in verdicts)
    assert told == {
        "debian succeeded": 890,
        "debian duplicates": 21,
        "cronie succeeded": 808,
        "cronie missing": 34,
        "cronie duplicates": 46,
        "busybox succeeded": 723,
        "busybox missing": 27,
        "busybox duplicates": 47,
    }

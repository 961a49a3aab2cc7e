"""Verdicts: every path into each, what decides between two, and windows that are on record only."""

from __future__ import annotations

import pytest

from runguard.coverage.verdicts import MARGIN_US, judge
from runguard.instant import SECOND_US, from_rfc3339, rfc3339
from runguard.model import OUTCOMES, VERDICTS, Window

_GRACE_US = 300 * SECOND_US


def _at(text):
    return from_rfc3339(text)


_DUE_US = _at("2024-06-03T09:00:00Z")
_WINDOW = Window(
    key="L2024-06-03T09:00",
    start_us=_at("2024-06-02T09:00:00Z"),
    due_us=_DUE_US,
    label="2024-06-03T09:00+00:00",
    nominal="2024-06-03T09:00",
    how="real",
    fold=0,
)
_LATER = "2024-06-04T00:00:00Z"
_COVERS = {
    "key": "L2024-06-05T09:00",
    "due_us": _DUE_US + 2 * 86_400 * SECOND_US,
    "covers_first_us": _DUE_US,
    "covers_last_us": _DUE_US,
}
_PLANNED = {"since_us": _DUE_US - 1, "until_us": _DUE_US}

# starts (seq is the number / 10), waivers, now, verdict, because, runs
_TABLE = {
    "succeeded": ([{"seq": 1}], [], _LATER, "succeeded", "run 10 succeeded", (10,)),
    "succeeded too soon": (
        [{"seq": 1, "suspect": "2 s, sooner than 10 s"}],
        [],
        _LATER,
        "succeeded",
        "run 10 succeeded, suspect: 2 s, sooner than 10 s",
        (10,),
    ),
    "succeeded at last": (
        [{"seq": 1, "outcome": "failed", "exit_status": 1}, {"seq": 2}],
        [],
        _LATER,
        "succeeded",
        "run 20 succeeded",
        (10, 20),
    ),
    "a duplicate decides nothing": (
        [{"seq": 1}, {"seq": 2, "outcome": "refused", "why": "duplicate"}],
        [],
        _LATER,
        "succeeded",
        "run 10 succeeded",
        (10, 20),
    ),
    "covered": ([{"seq": 1, **_COVERS}], [], _LATER, "succeeded", "covered by run 10, which succeeded", (10,)),
    "run after a waiver": ([{"seq": 2}], [{"seq": 1, **_PLANNED}], _LATER, "succeeded", "run 20 succeeded", (20,)),
    "failed": (
        [{"seq": 1, "outcome": "failed", "exit_status": 3}],
        [],
        _LATER,
        "failed",
        "run 10 failed with exit status 3",
        (10,),
    ),
    "not started": (
        [{"seq": 1, "outcome": "failed", "why": "not found"}],
        [],
        _LATER,
        "failed",
        "run 10 failed (not found)",
        (10,),
    ),
    "timed out": ([{"seq": 1, "outcome": "timed_out"}], [], _LATER, "failed", "run 10 timed out", (10,)),
    "killed": ([{"seq": 1, "outcome": "killed", "why": "oom"}], [], _LATER, "failed", "run 10 was killed (oom)", (10,)),
    "cancelled": ([{"seq": 1, "outcome": "cancelled"}], [], _LATER, "failed", "run 10 was cancelled", (10,)),
    "failed twice": (
        [{"seq": 1, "outcome": "timed_out"}, {"seq": 2, "outcome": "failed", "exit_status": 3}],
        [],
        _LATER,
        "failed",
        "failed twice, last run 20 failed with exit status 3",
        (10, 20),
    ),
    "failed three times": (
        [{"seq": seq, "outcome": "failed", "exit_status": 1} for seq in (1, 2, 3)],
        [],
        _LATER,
        "failed",
        "failed 3 times, last run 30 failed with exit status 1",
        (10, 20, 30),
    ),
    "a failed re-run reopens a success": (
        [{"seq": 1}, {"seq": 2, "outcome": "failed", "exit_status": 1}],
        [],
        _LATER,
        "failed",
        "run 20 failed with exit status 1",
        (10, 20),
    ),
    "covered by a failure": (
        [{"seq": 2, "outcome": "timed_out", **_COVERS}],
        [],
        _LATER,
        "failed",
        "covered by run 20, which timed out",
        (20,),
    ),
    "its own success within the span of a failed catch-up": (
        [{"seq": 1}, {"seq": 2, "outcome": "timed_out", **_COVERS}],
        [],
        _LATER,
        "succeeded",
        "run 10 succeeded",
        (10, 20),
    ),
    "a waiver before the failure": (
        [{"seq": 2, "outcome": "failed", "exit_status": 1}],
        [{"seq": 1, "key": "L2024-06-03T09:00"}],
        _LATER,
        "failed",
        "run 20 failed with exit status 1",
        (20,),
    ),
    "running": ([{"seq": 1, "outcome": "running"}], [], _LATER, "running", "run 10 is running", (10,)),
    "running again": (
        [{"seq": 1, "outcome": "lost"}, {"seq": 2, "outcome": "running"}],
        [],
        _LATER,
        "running",
        "run 20 is running",
        (10, 20),
    ),
    "lost": (
        [{"seq": 1, "outcome": "lost", "why": "the host restarted"}],
        [],
        _LATER,
        "lost",
        "run 10 was lost (the host restarted)",
        (10,),
    ),
    "taken over, and no more is known": (
        [{"seq": 1, "outcome": "superseded"}],
        [],
        _LATER,
        "lost",
        "run 10 was superseded",
        (10,),
    ),
    "taken over by a success": (
        [{"seq": 1}, {"seq": 2, "outcome": "superseded"}],
        [],
        _LATER,
        "succeeded",
        "run 10 succeeded",
        (10, 20),
    ),
    "no start": ([], [], _LATER, "missing", "no start at all", ()),
    "no start at the end of grace": ([], [], "2024-06-03T09:05:00Z", "missing", "no start at all", ()),
    "refused": (
        [{"seq": 1, "outcome": "refused", "why": "overlap"}],
        [],
        _LATER,
        "missing",
        "refused by run 10 (overlap)",
        (10,),
    ),
    "refused twice": (
        [{"seq": 1, "outcome": "refused", "why": "held"}, {"seq": 2, "outcome": "refused", "why": "overlap"}],
        [],
        _LATER,
        "missing",
        "refused twice, last by run 20 (overlap)",
        (10, 20),
    ),
    "past its deadline": (
        [{"seq": 1, "outcome": "refused", "why": "deadline"}],
        [],
        _LATER,
        "missing",
        "past its deadline, refused by run 10",
        (10,),
    ),
    "the waiver was withdrawn": (
        [],
        [{"seq": 1, **_PLANNED}, {"seq": 2, "withdraw": True, "actor": "ben", **_PLANNED}],
        _LATER,
        "missing",
        "no start at all; the waiver was withdrawn by ben",
        (),
    ),
    "waived": (
        [],
        [{"seq": 1, "key": "L2024-06-03T09:00"}],
        _LATER,
        "waived",
        "waived by anna: planned downtime",
        (),
    ),
    "waived with a span": ([], [{"seq": 1, **_PLANNED}], _LATER, "waived", "waived by anna: planned downtime", ()),
    "waived ahead": (
        [],
        [{"seq": 1, **_PLANNED}],
        "2024-06-01T00:00:00Z",
        "waived",
        "waived by anna: planned downtime",
        (),
    ),
    "waived though refused since": (
        [{"seq": 2, "outcome": "refused", "why": "duplicate"}],
        [{"seq": 1, **_PLANNED}],
        _LATER,
        "waived",
        "waived by anna: planned downtime",
        (20,),
    ),
    "waived after a failure": (
        [{"seq": 1, "outcome": "failed", "exit_status": 1}],
        [{"seq": 2, "key": "L2024-06-03T09:00", "reason": "done by hand"}],
        _LATER,
        "waived",
        "waived by anna: done by hand",
        (10,),
    ),
    "waived again": (
        [],
        [{"seq": 1, **_PLANNED}, {"seq": 2, "withdraw": True, **_PLANNED}, {"seq": 3, "key": "L2024-06-03T09:00"}],
        _LATER,
        "waived",
        "waived by anna: planned downtime",
        (),
    ),
    "within the grace": ([], [], "2024-06-03T09:04:59Z", "pending", "within the grace", ()),
    "refused within the grace": (
        [{"seq": 1, "outcome": "refused", "why": "overlap"}],
        [],
        "2024-06-03T09:01:00Z",
        "pending",
        "within the grace, refused by run 10 (overlap)",
        (10,),
    ),
}


@pytest.mark.parametrize(("starts", "waivers", "now", "verdict", "because", "runs"), _TABLE.values(), ids=_TABLE)
def test_a_window_has_exactly_one_verdict(starts, waivers, now, verdict, because, runs, on_record):
    found = judge(
        [_WINDOW],
        [on_record.Start(**start) for start in starts],
        [on_record.Waiver(**waiver) for waiver in waivers],
        _at(now),
        _GRACE_US,
        span=(_DUE_US - 1, _DUE_US),
    )
    assert [each[:4] for each in found] == [(_WINDOW, verdict, because, runs)]


def test_the_doubt_about_a_success_is_told_beside_the_verdict(on_record):
    starts = [on_record.Start(seq=1, suspect="2 s, sooner than 10 s"), on_record.Start(seq=2)]
    [[doubted], [sound]] = [list(judge([_WINDOW], starts[:n], [], _at(_LATER), _GRACE_US)) for n in (1, 2)]
    assert (doubted.suspect, sound.suspect) == ("2 s, sooner than 10 s", None)


def test_the_table_drives_into_every_verdict_by_every_outcome():
    assert {row[3] for row in _TABLE.values()} == set(VERDICTS)
    outcomes = {start.get("outcome", "succeeded") for row in _TABLE.values() for start in row[0]}
    assert outcomes == set(OUTCOMES)


@pytest.mark.parametrize(("since", "until"), [(_DUE_US, _DUE_US + 1), (_DUE_US - 2, _DUE_US - 1)])
def test_a_waived_span_is_open_at_its_start_and_closed_at_its_end(since, until, on_record):
    waiver = on_record.Waiver(1, since_us=since, until_us=until)
    (found,) = judge([_WINDOW], [], [waiver], _at(_LATER), _GRACE_US)
    assert found.verdict == "missing"


def test_a_withdrawal_of_another_span_changes_nothing(on_record):
    waivers = [
        on_record.Waiver(1, **_PLANNED),
        on_record.Waiver(2, since_us=_DUE_US, until_us=_DUE_US + 5, withdraw=True),
    ]
    (found,) = judge([_WINDOW], [], waivers, _at(_LATER), _GRACE_US)
    assert found.verdict == "waived"


def test_covers_reach_from_the_first_due_to_the_last(on_record):
    windows = [_WINDOW._replace(key=f"U{n}", due_us=_DUE_US + n) for n in range(5)]
    covering = on_record.Start(7, key="U4", due_us=_DUE_US + 4, covers_first_us=_DUE_US + 1, covers_last_us=_DUE_US + 2)
    found = list(judge(windows, [covering], [], _at(_LATER), _GRACE_US))
    assert [judged.verdict for judged in found] == ["missing", "succeeded", "succeeded", "missing", "succeeded"]


# Vancouver under the data of 2025 and of 2026: the same key, an hour apart.
def test_a_window_that_ran_keeps_the_bounds_that_were_recorded(on_record):
    derived = _WINDOW._replace(start_us=_DUE_US - 23 * 3_600_000_000, due_us=_DUE_US - 3_600_000_000)
    (found,) = judge([derived], [on_record.Start(1)], [], _at(_LATER), _GRACE_US)
    assert found.verdict == "succeeded"
    assert (rfc3339(found.window.start_us), rfc3339(found.window.due_us)) == (
        "2024-06-02T09:00:00Z",
        "2024-06-03T09:00:00Z",
    )


def test_a_window_that_is_not_expected_any_more_is_told_with_its_recorded_bounds(on_record):
    recorded = on_record.Start(1, key="L2024-06-03T08:00", due_us=_DUE_US - 60, nominal="2024-06-03T08:00")
    expected, only_recorded = judge([_WINDOW], [recorded], [], _at(_LATER), _GRACE_US)
    assert (expected.verdict, only_recorded.verdict) == ("missing", "succeeded")
    assert only_recorded.window.key == "L2024-06-03T08:00"
    assert (only_recorded.window.start_us, only_recorded.window.due_us) == (recorded.start_us, _DUE_US - 60)


def test_a_window_that_only_a_refused_start_names_is_not_expected(on_record):
    refused = on_record.Start(1, key="L2024-06-03T08:00", outcome="refused", why="overlap")
    assert [judged.window for judged in judge([_WINDOW], [refused], [], _at(_LATER), _GRACE_US)] == [_WINDOW]


def test_what_lies_beyond_the_span_is_matched_and_not_told(on_record):
    hour_us = 3_600_000_000
    windows = [_WINDOW._replace(due_us=_DUE_US - hour_us), _WINDOW._replace(key="L2024-06-04T09:00")]
    starts = [on_record.Start(1), on_record.Start(2, key="other", due_us=_DUE_US + MARGIN_US)]
    found = judge(windows, starts, [], _at(_LATER), _GRACE_US, span=(_DUE_US - 2 * hour_us, _DUE_US - 1))
    assert list(found) == []

"""Which window a start answers, and what an edit of the schedule does to windows."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runguard.errors import ScheduleError
from runguard.instant import SECOND_US, from_rfc3339, rfc3339
from runguard.model import Schedule
from runguard.schedule.revisions import Piece, Succession, opens_after, resolve, timetable

_MINUTE_US = 60 * SECOND_US


def _at(text):
    return from_rfc3339(text)


def _span(window):
    return rfc3339(window.start_us), rfc3339(window.due_us)


def _windows(succession, after, until):
    return [_span(window) for window in succession.between(_at(after), _at(until))]


def test_a_schedule_becomes_a_timetable_with_its_own_policy(schedules):
    made = timetable(Schedule("30 1 * * *", "America/New_York", "systemd", fold="both"), schedules.zone("+00:00"))
    assert (made.rule.gap, made.rule.fold, made.cron.expression) == ("skip", "both", "30 1 * * *")


@pytest.mark.parametrize(
    "schedule", [Schedule("x", "UTC"), Schedule("0 0 * * *", "UTC", "x"), Schedule("0 0 * * *", "UTC", gap="x")]
)
def test_a_schedule_that_cannot_be_read_is_a_schedule_error(schedule, schedules):
    with pytest.raises(ScheduleError):
        timetable(schedule, schedules.zone("UTC"))


@pytest.mark.parametrize(
    ("now", "early_s", "due"),
    [
        ("2024-06-01T11:59:55Z", 5, "2024-06-01T12:00:00Z"),
        ("2024-06-01T11:59:54.999999Z", 5, "2024-06-01T11:59:00Z"),
        ("2024-06-01T11:59:30Z", 300, "2024-06-01T12:00:00Z"),
        ("2024-06-01T11:59:29.999999Z", 300, "2024-06-01T11:59:00Z"),
    ],
)
def test_a_start_is_early_by_no_more_than_half_the_shortest_spacing(now, early_s, due, schedules):
    found = resolve(schedules.table("* * * * *"), _at(now), early_us=early_s * SECOND_US)
    assert rfc3339(found.window.due_us) == due


def test_uneven_minutes_are_as_close_as_their_closest_two(schedules):
    assert schedules.table("0,50,58 * * * *").shortest_s == 120
    assert schedules.table("59 23 * * *").shortest_s == 86_400
    assert schedules.table("0 0,23 * * *").shortest_s == 3600


# New York 2024-03-10: 01:59:59-05:00 → 03:00:00-04:00; nominal 02:30 is due at 03:00 and 03:01 a minute later.
def test_a_window_made_short_by_a_gap_is_answered_early_by_no_more_than_its_half(schedules):
    expected = schedules.table("30 2,3 * * *", "America/New_York")
    short = schedules.table("1,30 2,3 * * *", "America/New_York")
    early_us = 14 * _MINUTE_US
    assert resolve(short, _at("2024-03-10T07:00:40Z"), early_us=early_us).window.nominal == "2024-03-10T03:01"
    assert resolve(short, _at("2024-03-10T07:00:20Z"), early_us=early_us).window.nominal == "2024-03-10T02:01"
    assert resolve(expected, _at("2024-03-10T07:20:00Z"), early_us=early_us).window.nominal == "2024-03-10T03:30"


@pytest.mark.parametrize(
    ("expression", "now", "off_schedule"),
    [
        # Above an hour late, and the next due nearer.
        ("0 12 * * *", "2024-06-02T00:00:00Z", False),
        ("0 12 * * *", "2024-06-02T00:00:01Z", True),
        ("0 12 * * *", "2024-06-02T11:00:00Z", True),
        # Half of an hour's window is 30 minutes.
        ("0 * * * *", "2024-06-01T12:30:00Z", False),
        ("0 * * * *", "2024-06-01T12:30:01Z", True),
        # No two zones differ by less than 15 minutes: a busy host.
        ("*/5 * * * *", "2024-06-01T12:04:59Z", False),
        ("*/20 * * * *", "2024-06-01T12:14:59Z", False),
        ("*/20 * * * *", "2024-06-01T12:15:00Z", True),
        # The window of 12:00 is 23 hours long, so an hour counts, not the half of what follows.
        ("0 12,13 * * *", "2024-06-01T12:40:00Z", False),
        ("0 12,14 * * *", "2024-06-01T13:00:00Z", False),
        ("0 12,14 * * *", "2024-06-01T13:00:01Z", True),
        ("0 12 * * *", "2024-06-01T13:00:01Z", False),
        ("0 12 * * *", "2024-06-01T11:59:56Z", False),
    ],
)
def test_a_start_is_off_schedule_when_it_is_nearer_the_next_due(expression, now, off_schedule, schedules):
    assert resolve(schedules.table(expression), _at(now)).off_schedule is off_schedule


def test_no_lateness_is_too_late(schedules):
    found = resolve(schedules.table("0 0 1 1 *"), _at("2024-12-20T06:00:00.5Z"))
    assert (found.window.nominal, found.late_s) == ("2024-01-01T00:00", 30_607_200.5)


def test_before_the_first_due_there_is_no_window(schedules):
    with pytest.raises(ScheduleError, match="no window yet: the first is due at 0001-01-01T06:00:00Z"):
        resolve(schedules.table("0 6 * * *"), _at("0001-01-01T00:00:00Z"))


def test_after_the_last_due_there_is_a_window_and_no_next_due(schedules):
    found = resolve(schedules.table("0 6 * * *"), _at("9999-12-31T23:00:00Z"))
    assert (found.window.nominal, found.next_due_us, found.off_schedule) == ("9999-12-31T06:00", None, False)


def test_a_first_run_registers_its_job_from_the_window_it_answers(schedules):
    new = schedules.table("0 9 * * *")
    after_us = opens_after(new, _at("2024-06-03T14:00:00Z"))
    assert rfc3339(after_us) == "2024-06-02T09:00:00Z"
    first = Succession([Piece(1, after_us, new)]).next(after_us)
    assert _span(first) == ("2024-06-02T09:00:00Z", "2024-06-03T09:00:00Z")


def _edit(schedules, old, new, now, answered=None):
    """Return (after, succession) of an edit that a start meets, the old revision being open since 1 June."""
    old_after_us = _at("2024-06-01T00:00:00Z")
    new_table = schedules.table(*new)
    after_us = opens_after(
        new_table,
        _at(now),
        last_answered_due_us=None if answered is None else _at(answered),
        old_after_us=old_after_us,
    )
    pieces = [Piece(1, old_after_us, schedules.table(*old)), Piece(2, after_us, new_table)]
    return rfc3339(after_us), Succession(pieces)


def test_a_later_hour_never_runs_the_day_again(schedules):
    # 09:00 answered, then edited to 09:10 at 14:00; the next start meets it in the morning.
    after, succession = _edit(
        schedules, ("0 9 * * *",), ("10 9 * * *",), "2024-06-04T09:10:01Z", answered="2024-06-03T09:00:00Z"
    )
    assert after == "2024-06-03T09:10:00Z"
    assert _windows(succession, "2024-06-02T00:00:00Z", "2024-06-05T00:00:00Z") == [
        ("2024-06-01T09:00:00Z", "2024-06-02T09:00:00Z"),
        ("2024-06-02T09:00:00Z", "2024-06-03T09:00:00Z"),
        ("2024-06-03T09:00:00Z", "2024-06-04T09:10:00Z"),
    ]


def test_an_earlier_hour_never_runs_the_day_again(schedules):
    # 09:10 answered, then edited to 09:00; a start by hand at 14:00 meets the edit and finds 09:10 answered.
    after, succession = _edit(
        schedules, ("10 9 * * *",), ("0 9 * * *",), "2024-06-03T14:00:00Z", answered="2024-06-03T09:10:00Z"
    )
    assert after == "2024-06-03T09:10:00Z"
    found = resolve(succession, _at("2024-06-03T14:00:00Z"))
    assert _span(found.window) == ("2024-06-02T09:10:00Z", "2024-06-03T09:10:00Z")
    assert rfc3339(found.next_due_us) == "2024-06-04T09:00:00Z"
    assert succession.piece_of(found.window.due_us).number == 1
    assert succession.piece_of(found.next_due_us).number == 2
    assert _span(succession.next(found.window.due_us)) == ("2024-06-03T09:10:00Z", "2024-06-04T09:00:00Z")


def test_an_edit_hides_no_miss_of_the_old_schedule(schedules):
    # Nothing ran since the 1st; the edit to hourly is met on the 3rd at 14:00: what was due before stays expected.
    after, succession = _edit(
        schedules, ("0 9 * * *",), ("0 * * * *",), "2024-06-03T14:00:01Z", answered="2024-06-01T09:00:00Z"
    )
    assert after == "2024-06-03T13:00:00Z"
    assert _windows(succession, "2024-06-01T09:00:00Z", "2024-06-03T15:00:00Z") == [
        ("2024-06-01T09:00:00Z", "2024-06-02T09:00:00Z"),
        ("2024-06-02T09:00:00Z", "2024-06-03T09:00:00Z"),
        ("2024-06-03T09:00:00Z", "2024-06-03T14:00:00Z"),
        ("2024-06-03T14:00:00Z", "2024-06-03T15:00:00Z"),
    ]


def test_a_revision_opens_no_earlier_than_the_one_before_it(schedules):
    after, _ = _edit(schedules, ("0 9 * * *",), ("0 9 1 * *",), "2024-06-20T12:00:00Z")
    assert after == "2024-06-01T00:00:00Z"


def test_a_new_zone_is_a_new_revision_with_its_own_data(schedules):
    # The job moves from Vancouver by the tzdata of 2025 to that of 2026, which has no winter time any more.
    old, new = (
        schedules.table("0 9 * * *", "America/Vancouver@2025b"),
        schedules.table("0 9 * * *", "America/Vancouver@2026f"),
    )
    succession = Succession([Piece(1, _at("2026-10-01T00:00:00Z"), old), Piece(2, _at("2026-11-03T12:00:00Z"), new)])
    windows = list(succession.between(_at("2026-11-01T00:00:00Z"), _at("2026-11-05T00:00:00Z")))
    assert [(w.key, *_span(w)) for w in windows] == [
        ("L2026-11-01T09:00", "2026-10-31T16:00:00Z", "2026-11-01T17:00:00Z"),
        ("L2026-11-02T09:00", "2026-11-01T17:00:00Z", "2026-11-02T17:00:00Z"),
        ("L2026-11-03T09:00", "2026-11-02T17:00:00Z", "2026-11-03T16:00:00Z"),
        ("L2026-11-04T09:00", "2026-11-03T16:00:00Z", "2026-11-04T16:00:00Z"),
    ]


def test_revisions_without_a_due_of_their_own_leave_no_trace(schedules):
    at_us = _at("2024-06-03T12:00:00Z")
    succession = Succession(
        [
            Piece(1, _at("2024-06-01T00:00:00Z"), schedules.table("0 9 * * *")),
            Piece(2, at_us, schedules.table("* * * * *")),
            Piece(3, at_us, schedules.table("0 0 1 1 *")),
            Piece(4, at_us + _MINUTE_US, schedules.table("0 10 * * *")),
        ]
    )
    assert _windows(succession, "2024-06-03T00:00:00Z", "2024-06-05T00:00:00Z") == [
        ("2024-06-02T09:00:00Z", "2024-06-03T09:00:00Z"),
        ("2024-06-03T09:00:00Z", "2024-06-04T10:00:00Z"),
    ]


def _retired(schedules):
    """Return 09:00 daily, retired on 3 June after 09:00, registered again on the 10th at 10:00 for 10:00 daily."""
    return Succession(
        [
            Piece(1, _at("2024-06-01T00:00:00Z"), schedules.table("0 9 * * *")),
            Piece(2, _at("2024-06-03T12:00:00Z"), None),
            Piece(3, _at("2024-06-09T10:00:00Z"), schedules.table("0 10 * * *")),
        ]
    )


def test_a_retired_job_expects_nothing_until_it_is_registered_again(schedules):
    succession = _retired(schedules)
    assert _windows(succession, "2024-06-02T00:00:00Z", "2024-06-12T00:00:00Z") == [
        ("2024-06-01T09:00:00Z", "2024-06-02T09:00:00Z"),
        ("2024-06-02T09:00:00Z", "2024-06-03T09:00:00Z"),
        ("2024-06-03T09:00:00Z", "2024-06-10T10:00:00Z"),
        ("2024-06-10T10:00:00Z", "2024-06-11T10:00:00Z"),
    ]
    dues = list(succession.dues(_at("2024-06-02T00:00:00Z"), _at("2024-06-12T00:00:00Z")))
    assert [rfc3339(due_us) for due_us in dues] == [
        "2024-06-02T09:00:00Z",
        "2024-06-03T09:00:00Z",
        "2024-06-10T10:00:00Z",
        "2024-06-11T10:00:00Z",
    ]


def test_around_a_retirement_next_and_previous_are_inverse(schedules):
    succession = _retired(schedules)
    within_us = _at("2024-06-06T00:00:00Z")
    last, first = succession.previous(within_us), succession.next(within_us)
    assert (_span(last)[1], _span(first)[1]) == ("2024-06-03T09:00:00Z", "2024-06-10T10:00:00Z")
    assert succession.next(last.due_us) == first
    assert succession.previous(first.due_us, inclusive=False) == last
    assert [succession.piece_of(at_us).number for at_us in (last.due_us, within_us, first.due_us)] == [1, 2, 3]


def test_a_job_that_stays_retired_has_no_next_due(schedules):
    succession = Succession(_retired(schedules).pieces[:2])
    found = resolve(succession, _at("2024-07-01T00:00:00Z"))
    assert (rfc3339(found.window.due_us), found.next_due_us) == ("2024-06-03T09:00:00Z", None)
    assert succession.next(found.window.due_us) is None


def test_a_job_that_was_never_anything_but_retired_has_no_window():
    succession = Succession([Piece(1, 0, None)])
    assert list(succession.between(0, _at("2024-07-01T00:00:00Z"))) == []
    with pytest.raises(ScheduleError, match="no window"):
        resolve(succession, _at("2024-07-01T00:00:00Z"))


def test_a_clock_set_back_before_the_first_revision_still_finds_a_window(schedules):
    succession = Succession([Piece(1, _at("2024-06-01T00:00:00Z"), schedules.table("0 9 * * *"))])
    assert resolve(succession, _at("2014-01-01T12:00:00Z")).window.nominal == "2014-01-01T09:00"


@settings(max_examples=150, deadline=None)
@given(
    seeds=st.lists(st.integers(0, 100_000), min_size=1, max_size=4),
    hours=st.lists(st.integers(0, 100), min_size=4, max_size=4),
    minute=st.integers(0, 9000),
    retired=st.sets(st.integers(2, 4), max_size=2),
)
def test_windows_tile_across_any_edits_and_retirements(seeds, hours, minute, retired, schedules):
    first_us = _at("2024-03-09T00:00:00Z")
    opened_us = sorted(first_us + hour * 60 * _MINUTE_US for hour in hours)
    zones = ("America/New_York", "UTC", "Europe/London", "Australia/Lord_Howe")
    succession = Succession(
        [
            Piece(
                n, at_us, None if n in retired else schedules.table(schedules.expression(seed, dense=True).text, zone)
            )
            for n, (seed, at_us, zone) in enumerate(zip(seeds, opened_us, zones, strict=False), 1)
        ]
    )
    until_us = first_us + 150 * 60 * _MINUTE_US

    windows = list(succession.between(opened_us[0], until_us))

    assert [w.due_us for w in windows] == sorted({w.due_us for w in windows})
    assert all(later.start_us == earlier.due_us for earlier, later in pairwise(windows))
    for n, piece in enumerate(succession.pieces):
        end_us = succession.pieces[n + 1].after_us if n + 1 < len(succession.pieces) else until_us
        own = [w.due_us for w in windows if succession.piece_of(w.due_us) is piece]
        assert own == (list(piece.timetable.dues(piece.after_us, end_us)) if piece.timetable else [])
    assert [w.due_us for w in windows] == list(succession.dues(opened_us[0], until_us))
    assert list(succession.windows_at([(w.due_us, w.start_us) for w in windows])) == windows
    at_us = first_us + minute * _MINUTE_US
    earlier, later = succession.previous(at_us), succession.next(at_us)
    if later is None:
        assert succession.pieces[-1].timetable is None
        return
    assert earlier.due_us <= at_us < later.due_us
    assert later.start_us == earlier.due_us
    assert succession.previous(later.due_us, inclusive=False) == earlier
    assert succession.next(earlier.due_us) == later

"""Daylight saving in words, and the minutes that have no window."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runguard.instant import SECOND_US, from_rfc3339, rfc3339
from runguard.model import Schedule
from runguard.schedule.oddities import oddity, skipped, story
from runguard.schedule.revisions import timetable


def _told(schedules, text, zone, day, *policy):
    """Return (label, words) of the windows of a UTC day and of the hours around it."""
    made = timetable(Schedule(text, zone, *policy), schedules.zone(zone))
    midnight_us = from_rfc3339(f"{day}T00:00:00Z")
    found = made.between(midnight_us - 6 * 3600 * SECOND_US, midnight_us + 20 * 3600 * SECOND_US)
    return [(window.label, oddity(made, window)) for window in found]


def test_a_plain_window_has_no_oddity(schedules):
    assert _told(schedules, "0 12 * * *", "Europe/London", "2026-03-29") == [("2026-03-29T12:00+01:00", None)]


# London 2026-03-29: 00:59:59+00:00 → 02:00:00+01:00
def test_a_minute_that_does_not_exist_is_due_after_the_gap(schedules):
    assert _told(schedules, "30 1 * * *", "Europe/London", "2026-03-29") == [
        ("2026-03-29T02:00+01:00", "01:30 does not exist on 29 March: due 02:00 BST")
    ]
    assert _told(schedules, "30 1 * * *", "Europe/London", "2026-03-29", "shift") == [
        ("2026-03-29T02:30+01:00", "01:30 does not exist on 29 March: due 02:30 BST")
    ]


def test_one_window_stands_for_several_minutes(schedules):
    assert _told(schedules, "0,30,45 1 * * *", "Europe/London", "2026-03-29") == [
        ("2026-03-29T02:00+01:00", "01:00 does not exist on 29 March: due 02:00 BST, also for 01:30 and 01:45")
    ]
    assert _told(schedules, "0 1,2 * * *", "Europe/London", "2026-03-29") == [
        ("2026-03-29T02:00+01:00", "01:00 does not exist on 29 March: 02:00 stands for it too")
    ]
    assert _told(schedules, "0-59 1-1,2 * * *", "Europe/London", "2026-03-29")[0] == (
        "2026-03-29T02:00+01:00",
        "60 minutes from 01:00 to 01:59 do not exist on 29 March: 02:00 stands for them too",
    )


# Apia left out 2011-12-30; its offset of +14:00 has no name of letters.
def test_a_day_that_does_not_exist_is_due_on_the_next(schedules):
    assert _told(schedules, "0 12 30 12 *", "Pacific/Apia", "2011-12-30", "vixie", "after") == [
        ("2011-12-31T00:00+14:00", "12:00 does not exist on 30 December: due 00:00 +14:00 on 31 December")
    ]


# London 2026-10-25: 01:59:59+01:00 → 01:00:00+00:00
@pytest.mark.parametrize(
    ("policy", "told"),
    [
        ("vixie", [("2026-10-25T01:30+01:00", "the first counts")]),
        ("quartz", [("2026-10-25T01:30+00:00", "the second counts")]),
        (
            "walk",
            [
                ("2026-10-25T01:30+01:00", "both count, this is the first"),
                ("2026-10-25T01:30+00:00", "both count, this is the second"),
            ],
        ),
    ],
)
def test_a_minute_that_comes_twice(policy, told, schedules):
    assert _told(schedules, "30 1 * * *", "Europe/London", "2026-10-25", policy) == [
        (label, f"01:30 comes twice on 25 October: {words}") for label, words in told
    ]


def _skipped(schedules, text, zone, after, until, policy="vixie"):
    made = timetable(Schedule(text, zone, policy), schedules.zone(zone))
    return list(skipped(made, from_rfc3339(after), from_rfc3339(until)))


def test_minutes_in_a_gap_without_a_window_are_named(schedules):
    (found,) = _skipped(
        schedules, "30 1 * * *", "Europe/London", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z", "walk"
    )
    assert (rfc3339(found.at_us), found.nominal) == ("2026-03-29T01:00:00Z", ("2026-03-29T01:30",))
    assert found.because == "01:30 does not exist on 29 March: no window"


def test_many_minutes_in_a_gap_are_told_as_one(schedules):
    (found,) = _skipped(schedules, "*/5 * * * *", "Europe/London", "2026-03-29T00:59:59Z", "2026-03-29T01:00:00Z")
    assert (len(found.nominal), found.nominal[-1]) == (12, "2026-03-29T01:55")
    assert found.because == "12 minutes from 01:00 to 01:55 do not exist on 29 March: no window"
    (few,) = _skipped(schedules, "*/20 * * * *", "Europe/London", "2026-03-29T00:59:59Z", "2026-03-29T01:00:00Z")
    assert few.because == "01:00, 01:20 and 01:40 do not exist on 29 March: no window"


def test_a_gap_belongs_to_the_span_that_its_change_lies_in(schedules):
    assert _skipped(schedules, "* * * * *", "Europe/London", "2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z") == []
    assert _skipped(schedules, "* * * * *", "Europe/London", "2026-03-29T00:00:00Z", "2026-03-29T00:59:59Z") == []


def test_what_has_a_window_is_not_skipped(schedules):
    assert _skipped(schedules, "30 1 * * *", "Europe/London", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z") == []
    # A rule that is asked long before its start.
    rule = "DTSTART:20270101T013000 RRULE:FREQ=DAILY"
    assert _skipped(schedules, rule, "Europe/London", "2020-01-01T00:00:00Z", "2027-01-01T00:00:00Z", "walk") == []


def test_the_story_of_a_window_tells_what_was_left_out_before_it(schedules):
    made = timetable(Schedule("30 1 * * *", "Europe/London", "walk"), schedules.zone("Europe/London"))
    window = made.next(from_rfc3339("2026-03-28T12:00:00Z"))
    assert window.label == "2026-03-30T01:30+01:00"
    assert story(made, window) == "01:30 does not exist on 29 March: no window"
    assert story(made, made.next(window.due_us)) is None


@settings(max_examples=150, deadline=None)
@given(data=st.data(), seed=st.integers(0, 1_000_000), policy=st.sampled_from(("vixie", "walk", "shift", "quartz")))
def test_every_nominal_minute_names_a_window_or_is_collapsed_or_skipped(data, seed, policy, schedules):
    name = data.draw(st.sampled_from(schedules.zone_names()))
    made = schedules.table(schedules.expression(seed, dense=True).text, name, policy)
    at_s = data.draw(st.sampled_from(schedules.changes(name) or (1_710_054_000,)))
    first_s, last_s = at_s + made.zone.lowest_s - 86_400, at_s + made.zone.highest_s + 86_400
    span_us = (first_s - 2 * 86_400) * SECOND_US, (last_s + 2 * 86_400) * SECOND_US

    windows = list(made.between(*span_us))
    left_out = [text for skip in skipped(made, *span_us) for text in skip.nominal]

    answered = {text for window in windows for text in (window.nominal, *window.collapsed)}
    assert answered.isdisjoint(left_out)
    wanted = {rfc3339(local_s * SECOND_US) for local_s in made.nominal.between(first_s, last_s)}
    assert wanted <= {rfc3339(from_rfc3339(text + "Z")) for text in (*answered, *left_out)}
    for window in windows:
        assert (oddity(made, window) is None) <= (window.how == "real" and not window.fold and not window.collapsed)

"""RRULE schedules: their minutes against dateutil walked from DTSTART, their windows in zones, literal answers."""

from __future__ import annotations

import random
import sys
from bisect import bisect_left, bisect_right
from datetime import datetime, timedelta
from itertools import islice, pairwise, takewhile

import pytest
from dateutil.rrule import rrulestr
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from runguard.errors import ScheduleError
from runguard.instant import SECOND_US, from_rfc3339, rfc3339
from runguard.model import Schedule
from runguard.schedule.cron import parse as parse_cron
from runguard.schedule.recurrence import parse
from runguard.schedule.revisions import opens_after, resolve, timetable

_EPOCH = datetime(1970, 1, 1)
_HOUR_US = 3600 * SECOND_US
_SEEDS = st.integers(0, 10_000_000)
_WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")


def _made(schedules, text, zone="UTC", **halves):
    return timetable(Schedule(text, zone, **halves), schedules.zone(zone))


def _dues(made, after, until):
    return [rfc3339(due_us) for due_us in made.dues(from_rfc3339(after), from_rfc3339(until))]


def _rule(seed, *, finite=True):
    """Make a rule, often an odd one, that starts around 2000."""
    chance = random.Random(seed)
    freq = chance.choice(("YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY"))

    def numbers(low, high, most, *, signed=False):
        sign = (1, -1) if signed else (1,)
        return ",".join(str(chance.choice(sign) * chance.randint(low, high)) for _ in range(chance.randint(1, most)))

    parts = [f"FREQ={freq}"]
    optional = [
        (0.5, "INTERVAL", lambda: chance.choice((1, 2, 3, 5, 7, 10, 14, 24, 25, 90, 1440, 1441))),
        (0.3, "BYMONTH", lambda: numbers(1, 12, 6)),
        (0.2 * (freq != "WEEKLY"), "BYMONTHDAY", lambda: numbers(1, 31, 5, signed=True)),
        (0.1 * (freq == "YEARLY"), "BYWEEKNO", lambda: numbers(1, 53, 5, signed=True)),
        (0.1 * (freq in ("YEARLY", "HOURLY")), "BYYEARDAY", lambda: numbers(1, 366, 5, signed=True)),
        (0.4, "BYDAY", lambda: ",".join(chance.choice(_WEEKDAYS) for _ in range(chance.randint(1, 4)))),
        (0.4, "BYHOUR", lambda: numbers(0, 23, 3)),
        (0.4, "BYMINUTE", lambda: numbers(0, 59, 3)),
        (0.3, "WKST", lambda: chance.choice(_WEEKDAYS)),
        (0.15 * finite, "COUNT", lambda: chance.randint(1, 40)),
    ]
    parts += [f"{name}={value()}" for share, name, value in optional if chance.random() < share]
    if freq == "MONTHLY" and chance.random() < 0.5:
        parts = [f"BYDAY={numbers(1, 4, 1, signed=True)}FR" if part.startswith("BYDAY") else part for part in parts]
    if any(part.startswith("BY") for part in parts) and chance.random() < 0.3:
        parts.append(f"BYSETPOS={numbers(1, 4, 2, signed=True)}")
    if finite and "COUNT" not in str(parts) and chance.random() < 0.2:
        parts.append(f"UNTIL={chance.randint(2003, 2006)}0615T120000")
    start = datetime(1998, 1, 1) + timedelta(minutes=chance.randrange(5 * 366 * 1440))
    return f"DTSTART:{start:%Y%m%dT%H%M%S} RRULE:{';'.join(parts)}"


def _parsed(text):
    try:
        return parse(text)
    except ScheduleError:
        assume(False)  # about a fifth of them name no minute


@settings(max_examples=250, deadline=None)
@given(seed=_SEEDS, data=st.data())
def test_a_rule_entered_late_names_what_dateutil_names_from_its_start(seed, data):
    text = _rule(seed)
    rule = _parsed(text)
    walked = takewhile(lambda at: at < datetime(2012, 1, 1), islice(rrulestr(text), 5000))
    expected = [(at - _EPOCH) // timedelta(seconds=1) for at in walked]
    assume(expected)
    at_s = data.draw(st.sampled_from(expected)) + data.draw(st.integers(-3_000_000, 3_000_000))
    assume(at_s < expected[-1])

    following, before = bisect_left(expected, at_s), bisect_right(expected, at_s)

    assert rule.at_or_after(at_s) == expected[following]
    assert rule.at_or_before(at_s) == (expected[before - 1] if before else None)
    until_s = min(at_s + 10 * 86_400, expected[-1])
    assert list(rule.between(at_s, until_s)) == expected[following : bisect_left(expected, until_s)]
    assert rule.shortest_s <= min((later - sooner for sooner, later in pairwise(expected)), default=sys.maxsize)


def test_a_rule_that_ends_names_nothing_after_its_end():
    rule = parse("DTSTART:20240101T090000 RRULE:FREQ=DAILY;COUNT=3")
    last_s = (datetime(2024, 1, 3, 9) - _EPOCH) // timedelta(seconds=1)
    assert rule.at_or_before(last_s + 10_000_000_000) == last_s
    assert rule.at_or_after(last_s + 1) is None


@settings(max_examples=200, deadline=None)
@given(data=st.data(), seed=_SEEDS, policy=st.sampled_from(("vixie", "walk", "systemd", "quartz", "shift")))
def test_windows_of_a_rule_tile_in_every_zone(data, seed, policy, schedules):
    zone = data.draw(st.sampled_from(schedules.zone_names()))
    text = _rule(seed, finite=False)
    _parsed(text)
    made = _made(schedules, text, zone, policy=policy)
    changes = [at_s for at_s in schedules.changes(zone) if at_s > 1_100_000_000] or [1_710_054_000]
    at_us = (data.draw(st.sampled_from(changes)) + data.draw(st.integers(-108_000, 108_000))) * SECOND_US

    later, earlier = made.next(at_us), made.previous(at_us)
    assume(later is not None and earlier is not None)

    assert earlier.start_us < earlier.due_us <= at_us < later.due_us
    assert later.start_us == earlier.due_us
    assert made.next(earlier.due_us) == later
    assert made.previous(later.due_us, inclusive=False) == earlier
    until_us = at_us + 60 * _HOUR_US
    windows = list(made.between(earlier.due_us - 1, until_us))
    assert windows[0] == earlier
    assert all(after.start_us == before.due_us for before, after in pairwise(windows))
    assert [window.due_us for window in windows] == list(made.dues(earlier.due_us - 1, until_us))
    assert len({window.key for window in windows}) == len(windows)
    assert list(made.windows_at([(window.due_us, window.start_us) for window in windows])) == windows


def _same(rule, cron):
    return pytest.param(rule, cron, id=cron)


@pytest.mark.parametrize(
    ("rule", "cron"),
    [
        _same("RRULE:FREQ=DAILY;BYHOUR=2;BYMINUTE=30", "30 2 * * *"),
        _same("RRULE:FREQ=HOURLY", "0 * * * *"),
        _same("RRULE:FREQ=MINUTELY;INTERVAL=15", "*/15 * * * *"),
        _same("RRULE:FREQ=MONTHLY;BYMONTHDAY=31;BYHOUR=1,2;BYMINUTE=0,30", "0,30 1,2 31 * *"),
        _same("RRULE:FREQ=WEEKLY;BYDAY=SU,MO;BYHOUR=1;BYMINUTE=30", "30 1 * * 0,1"),
    ],
)
@pytest.mark.parametrize("zone", ["America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Antarctica/Troll"])
@pytest.mark.parametrize("policy", ["vixie", "walk", "shift"])
def test_a_rule_has_the_windows_of_the_cron_expression_that_names_the_same_minutes(rule, cron, zone, policy, schedules):
    after_us, until_us = from_rfc3339("2011-06-01T00:00:00Z"), from_rfc3339("2012-12-01T00:00:00Z")
    found = list(_made(schedules, rule, zone, policy=policy).between(after_us, until_us))
    assert found == list(schedules.table(cron, zone, policy).between(after_us, until_us))


def test_the_last_working_day_of_the_month(schedules):
    rule = "RRULE:FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1;BYHOUR=18;BYMINUTE=0"
    assert _dues(_made(schedules, rule, "Europe/London"), "2026-01-01T00:00:00Z", "2026-06-01T00:00:00Z") == [
        "2026-01-30T18:00:00Z",
        "2026-02-27T18:00:00Z",
        "2026-03-31T17:00:00Z",
        "2026-04-30T17:00:00Z",
        "2026-05-29T17:00:00Z",
    ]


# London 2026-03-29: 00:59:59+00:00 → 02:00:00+01:00; 2026-10-25: 01:59:59+01:00 → 01:00:00+00:00
def test_a_rule_with_an_hour_is_fixed_and_has_local_keys(schedules):
    made = _made(schedules, "RRULE:FREQ=DAILY;BYHOUR=1;BYMINUTE=30", "Europe/London")
    gap = made.previous(from_rfc3339("2026-03-29T12:00:00Z"))
    assert (gap.key, gap.how, gap.label) == ("L2026-03-29T01:30", "gap", "2026-03-29T02:00+01:00")
    fold = made.previous(from_rfc3339("2026-10-25T12:00:00Z"))
    assert (fold.key, fold.label) == ("L2026-10-25T01:30", "2026-10-25T01:30+01:00")


def test_an_hourly_rule_without_hours_is_wild_and_has_keys_of_instants(schedules):
    made = _made(schedules, "RRULE:FREQ=HOURLY;BYMINUTE=30", "Europe/London")
    found = made.between(from_rfc3339("2026-10-25T00:00:00Z"), from_rfc3339("2026-10-25T02:00:00Z"))
    assert [(window.key, window.label) for window in found] == [
        ("U2026-10-25T00:30Z", "2026-10-25T01:30+01:00"),
        ("U2026-10-25T01:30Z", "2026-10-25T01:30+00:00"),
    ]
    assert _dues(made, "2026-03-29T00:00:00Z", "2026-03-29T02:00:00Z") == [
        "2026-03-29T00:30:00Z",
        "2026-03-29T01:30:00Z",
    ]


def test_an_hourly_rule_with_hours_is_fixed():
    assert not parse("RRULE:FREQ=HOURLY;BYHOUR=0,1,2").wild
    assert parse("RRULE:FREQ=MINUTELY;INTERVAL=5").wild
    assert not parse("RRULE:FREQ=DAILY").wild


@pytest.mark.parametrize("between", [" ", "\n", "\r\n", "  \n"])
def test_a_start_stands_before_the_rule(between, schedules):
    made = _made(schedules, f"DTSTART:20260106T090000{between}RRULE:FREQ=WEEKLY;INTERVAL=2")
    assert _dues(made, "2025-12-01T00:00:00Z", "2026-02-10T00:00:00Z") == [
        "2026-01-06T09:00:00Z",
        "2026-01-20T09:00:00Z",
        "2026-02-03T09:00:00Z",
    ]


def test_without_a_start_a_rule_starts_in_1970(schedules):
    made = _made(schedules, "RRULE:FREQ=YEARLY;INTERVAL=20")
    assert _dues(made, "1900-01-01T00:00:00Z", "2031-01-01T00:00:00Z") == [
        "1970-01-01T00:00:00Z",
        "1990-01-01T00:00:00Z",
        "2010-01-01T00:00:00Z",
        "2030-01-01T00:00:00Z",
    ]


@pytest.mark.parametrize(
    "text", ["rrule:freq=daily;byhour=9", "dtstart;value=date:20200101 rrule:freq=daily;byhour=9;"]
)
def test_letter_case_is_free(text, schedules):
    assert _dues(_made(schedules, text), "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z") == ["2026-01-01T09:00:00Z"]


def test_a_date_alone_as_the_end_is_its_last_day(schedules):
    made = _made(schedules, "RRULE:FREQ=HOURLY;INTERVAL=9;UNTIL=19700101")
    assert _dues(made, "1969-01-01T00:00:00Z", "1999-01-01T00:00:00Z") == [
        "1970-01-01T00:00:00Z",
        "1970-01-01T09:00:00Z",
        "1970-01-01T18:00:00Z",
    ]


_FINITE = "DTSTART:20260105T090000 RRULE:FREQ=DAILY;COUNT=2"


def test_before_the_first_due_a_start_has_no_window_and_is_told_when(schedules):
    with pytest.raises(ScheduleError, match="no window yet: the first is due at 2026-01-05T09:00:00Z"):
        resolve(_made(schedules, _FINITE), from_rfc3339("2026-01-04T12:00:00Z"))


def test_after_the_last_due_there_is_no_next_one(schedules):
    made = _made(schedules, _FINITE)
    found = resolve(made, from_rfc3339("2026-03-01T12:00:00Z"))
    assert (rfc3339(found.window.due_us), found.next_due_us, found.off_schedule) == (
        "2026-01-06T09:00:00Z",
        None,
        False,
    )
    assert made.next(found.window.due_us) is None
    assert made.previous(from_rfc3339("2026-01-05T08:59:59Z")) is None


def test_the_first_window_of_all_reaches_back_to_1970_and_is_expected(schedules):
    made = _made(schedules, _FINITE)
    first = made.next(0)
    assert (rfc3339(first.start_us), rfc3339(first.due_us)) == ("1970-01-01T00:00:00Z", "2026-01-05T09:00:00Z")
    after_us = opens_after(made, from_rfc3339("2026-01-05T09:00:01Z"))
    assert list(made.between(after_us, from_rfc3339("2026-01-06T00:00:00Z"))) == [first]
    assert made.previous(first.due_us) == first


def test_a_first_window_of_1970_starts_a_day_before_it_is_due(schedules):
    first = _made(schedules, "RRULE:FREQ=DAILY").next(from_rfc3339("1960-01-01T00:00:00Z"))
    assert (rfc3339(first.start_us), rfc3339(first.due_us)) == ("1969-12-31T00:00:00Z", "1970-01-01T00:00:00Z")


def test_a_rule_without_an_end_goes_on_to_the_end_of_the_calendar(schedules):
    made = _made(schedules, "RRULE:FREQ=WEEKLY;BYDAY=MO,FR")
    assert made.next(from_rfc3339("9999-12-30T00:00:00Z")).nominal == "9999-12-31T00:00"
    assert made.next(from_rfc3339("9999-12-31T00:00:00Z")) is None
    assert made.previous(from_rfc3339("9999-12-31T23:00:00Z")).nominal == "9999-12-31T00:00"


def test_centuries_away_a_rule_is_in_phase(schedules):
    made = _made(schedules, "DTSTART:20260101T000700 RRULE:FREQ=MINUTELY;INTERVAL=11")
    # 328718 days are 473353920 minutes, 5 short of a multiple of 11.
    found = made.next(from_rfc3339("2926-01-01T00:07:00Z") - 1)
    assert rfc3339(found.due_us) == "2926-01-01T00:12:00Z"


@pytest.mark.parametrize(
    ("text", "field", "position", "why"),
    [
        ("RRULE:FREQ=SECONDLY", "FREQ", 7, "whole minutes"),
        ("RRULE:FREQ=SOMETIMES", "FREQ", 7, "'SOMETIMES' is not one of YEARLY MONTHLY WEEKLY DAILY HOURLY MINUTELY"),
        ("RRULE:INTERVAL=2", "FREQ", 0, "not one of"),
        ("RRULE:FREQ=DAILY;INTERVAL=0", "INTERVAL", 18, "'0' is not in 1-1000000"),
        ("RRULE:FREQ=DAILY;INTERVAL=٣", "INTERVAL", 18, "is not in 1-1000000"),
        ("RRULE:FREQ=DAILY;BYHOUR=24", "BYHOUR", 18, "'24' is not in 0-23"),
        ("RRULE:FREQ=DAILY;BYHOUR=-1", "BYHOUR", 18, "'-1' is not in 0-23"),
        ("RRULE:FREQ=MONTHLY;BYMONTHDAY=0", "BYMONTHDAY", 20, "'0' is not in 1-31 or -31 to -1"),
        ("RRULE:FREQ=DAILY;BYSECOND=30", "BYSECOND", 18, "only 0 is one"),
        ("RRULE:FREQ=DAILY;BYDAY=XX", "BYDAY", 18, "'XX' is none of MO TU WE TH FR SA SU"),
        ("RRULE:FREQ=WEEKLY;BYDAY=1MO", "BYDAY", 19, "'1MO': a number goes with MONTHLY"),
        ("RRULE:FREQ=YEARLY;BYWEEKNO=3;BYDAY=1MO", "BYDAY", 30, "without BYWEEKNO"),
        ("RRULE:FREQ=MONTHLY;BYWEEKNO=3", "BYWEEKNO", 20, "FREQ YEARLY only"),
        ("RRULE:FREQ=DAILY;BYYEARDAY=3", "BYYEARDAY", 18, "only (RFC 5545)"),
        ("RRULE:FREQ=WEEKLY;BYMONTHDAY=3", "BYMONTHDAY", 19, "only (RFC 5545)"),
        ("RRULE:FREQ=MONTHLY;BYSETPOS=1", "BYSETPOS", 20, "there is none"),
        ("RRULE:FREQ=HOURLY;BYMINUTE=0,30;BYSETPOS=3", "BYSETPOS", 33, "no period of this FREQ has so many minutes"),
        ("RRULE:FREQ=DAILY;BYEASTER=1", "BYEASTER", 18, "no such part"),
        ("RRULE:FREQ=DAILY;FREQ=DAILY", "FREQ", 7, "it is there twice"),
        ("RRULE:FREQ=DAILY;BYHOUR", "BYHOUR", 18, "'BYHOUR' is no NAME=VALUE"),
        ("RRULE:FREQ=DAILY;COUNT=2;UNTIL=20260101", "UNTIL", 26, "not by both"),
        ("RRULE:FREQ=DAILY;COUNT=10001", "COUNT", 18, "end the rule with UNTIL instead"),
        ("RRULE:FREQ=DAILY;UNTIL=20260101T000000Z", "UNTIL", 18, "leave out the Z"),
        ("RRULE:FREQ=DAILY;UNTIL=20261301", "UNTIL", 18, "no local time such as"),
        ("RRULE:FREQ=DAILY;UNTIL=1969-01-01", "UNTIL", 18, "no local time such as"),
        ("RRULE:FREQ=DAILY;UNTIL=19690101", "UNTIL", 18, "before the rule's start"),
        ("DTSTART:20260101T090000Z RRULE:FREQ=DAILY", "DTSTART", 1, "leave out the Z"),
        ("DTSTART:20260101T090030 RRULE:FREQ=DAILY", "DTSTART", 1, "its second must be 00"),
        ("DTSTART;TZID=Europe/London:20260101T090000 RRULE:FREQ=DAILY", "TZID", 9, "--timezone"),
        ("DTSTART;X-A=1:20260101T090000 RRULE:FREQ=DAILY", "DTSTART", 1, "'X-A=1' is not known"),
        ("DTSTART:20260101;RRULE:FREQ=DAILY", "DTSTART", 1, "no local time such as"),
        ("DTSTART:20260101 DTSTART:20260102 RRULE:FREQ=DAILY", "DTSTART", 1, "there are two"),
        ("DTSTART:20260101T090000", "RRULE", 0, "it is missing"),
        ("RRULE:FREQ=DAILY DTSTART:20260101", "DTSTART", 18, "with DTSTART before it"),
        ("RRULE:FREQ=DAILY RRULE:FREQ=DAILY", "RRULE", 1, "one RRULE"),
        ("RRULE:FREQ=DAILY EXDATE:20260101T000000", "EXDATE", 18, "is not known"),
        ("RRULE:FREQ=DAILY RDATE:20260101T000000", "RDATE", 18, "is not known"),
        ("RRULE:", "RRULE", 1, "it looks like"),
        ("RRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", "", 0, "no such date in any year"),
        ("RRULE:FREQ=MINUTELY;BYMONTH=2;BYMONTHDAY=30", "", 0, "no such date in any year"),
        ("DTSTART:20230228T000000 RRULE:FREQ=YEARLY;INTERVAL=4;BYMONTH=2;BYMONTHDAY=29", "", 0, "it names no minute"),
        ("RRULE:FREQ=HOURLY;INTERVAL=24;BYHOUR=3", "INTERVAL", 19, "never meets BYHOUR and BYMINUTE"),
        ("RRULE:FREQ=MINUTELY;INTERVAL=2;BYMINUTE=31", "INTERVAL", 21, "never meets BYHOUR and BYMINUTE"),
        ("RRULE:FREQ=DAILY;" + "BYHOUR=9;" * 150, "", 0, "longer than 1000 characters"),
    ],
)
def test_refuses(text, field, position, why):
    with pytest.raises(ScheduleError) as caught:
        parse(text)
    assert (caught.value.field, caught.value.position) == (field, position)
    assert why in caught.value.why
    assert "\n" not in str(caught.value)


def test_a_rule_without_its_name_is_told_what_is_accepted():
    with pytest.raises(ScheduleError, match=r"or 'RRULE:FREQ=…' with 'DTSTART:…' before it or not"):
        parse_cron("FREQ=DAILY")

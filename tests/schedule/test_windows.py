"""Windows: properties over zones and expressions, a walk by the minute as the judge, and literal oddities."""

from __future__ import annotations

import tracemalloc
from collections import deque
from datetime import datetime
from itertools import pairwise

from cronsim import CronSim
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from runguard.instant import SECOND_US, from_rfc3339, rfc3339
from runguard.schedule.cron import parse
from runguard.schedule.policy import Rule, rule
from runguard.schedule.windows import Timetable
from runguard.schedule.zone import Zone

_HOUR_US = 3600 * SECOND_US
# Gaps and folds of every kind: at midnight, across a date, of 15, 30, 120 and 180 minutes and 24 hours, negative.
_ODD_ZONES = (
    "America/New_York",
    "Europe/London",
    "Europe/Dublin",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Africa/Casablanca",
    "Africa/Cairo",
    "America/Sao_Paulo",
    "Antarctica/Troll",
    "Antarctica/Casey",
    "Asia/Kathmandu",
    "America/Caracas",
    "Asia/Pyongyang",
    "America/Havana",
    "America/Nuuk",
    "Asia/Gaza",
    "America/Santiago",
    "Asia/Beirut",
    "Asia/Almaty",
    "Pacific/Kwajalein",
    "Asia/Colombo",
)
_PRESETS = st.sampled_from(("vixie", "walk", "systemd", "quartz", "shift"))
_GAPS = st.sampled_from((None, "after", "shift", "skip"))
_FOLDS = st.sampled_from((None, "first", "second", "both"))
_SEEDS = st.integers(0, 1_000_000)
_HOURS = st.integers(-30, 30)


def _zone_names(schedules):
    return st.one_of(st.sampled_from(_ODD_ZONES), st.sampled_from(schedules.zone_names()))


def _near_a_change(data, schedules, name):
    """Draw an instant within 30 hours of a change of offset, where the zone has one."""
    changes = schedules.changes(name) or (from_rfc3339("2024-03-10T07:00:00Z") // SECOND_US,)
    minutes = data.draw(st.integers(-1800, 1800))
    return (data.draw(st.sampled_from(changes)) + minutes * 60) * SECOND_US


@settings(max_examples=250, deadline=None)
@given(data=st.data(), seed=_SEEDS, policy=_PRESETS, gap=_GAPS, fold=_FOLDS)
def test_dues_are_those_of_a_walk_over_every_minute(data, seed, policy, gap, fold, schedules):
    name = data.draw(_zone_names(schedules))
    made = schedules.expression(seed, dense=data.draw(st.booleans()))
    timetable = schedules.table(made.text, name, policy, gap, fold)
    changes = schedules.changes(name) or (from_rfc3339("2024-03-10T07:00:00Z") // SECOND_US,)
    middle_us = data.draw(st.sampled_from(changes)) * SECOND_US
    first_us, last_us = middle_us - 28 * _HOUR_US, middle_us + 28 * _HOUR_US
    wild = made.text.startswith("*") or made.text.split()[1].startswith("*")
    given_gap = gap or {"vixie": "skip" if wild else "after", "shift": "shift"}.get(policy, "skip")
    given_fold = fold or {"vixie": "both" if wild else "first", "walk": "both", "quartz": "second"}.get(policy, "first")
    # The limits of vixie fall away with the half that is given.
    lengths = [abs(after - before) for _, before, after in schedules.zone(name).changes(*_seconds(first_us, last_us))]
    assume(policy != "vixie" or (gap is None) == (fold is None) or max(lengths, default=0) < 10_800)

    found = list(timetable.dues(first_us - 1, last_us))

    limits = policy == "vixie" and gap is None
    assert found == schedules.walk(made, name, given_gap, given_fold, limits, first_us, last_us)


def _seconds(first_us, last_us):
    return first_us // SECOND_US - 86_400, last_us // SECOND_US + 86_400


@settings(max_examples=200, deadline=None)
@given(data=st.data(), seed=_SEEDS, policy=_PRESETS, gap=_GAPS, fold=_FOLDS)
def test_windows_tile_and_dues_increase(data, seed, policy, gap, fold, schedules):
    name = data.draw(_zone_names(schedules))
    timetable = schedules.table(schedules.expression(seed, dense=True).text, name, policy, gap, fold)
    after_us = _near_a_change(data, schedules, name)
    until_us = after_us + 40 * _HOUR_US

    windows = list(timetable.between(after_us, until_us))

    assert all(after_us < window.due_us <= until_us for window in windows)
    assert all(window.start_us < window.due_us for window in windows)
    assert all(later.start_us == earlier.due_us for earlier, later in pairwise(windows))
    assert [window.due_us for window in windows] == list(timetable.dues(after_us, until_us))
    assert len({window.key for window in windows}) == len(windows)
    at_once = [timetable.next(after_us)]
    while at_once[-1].due_us <= until_us:
        at_once.append(timetable.next(at_once[-1].due_us))
    assert at_once[:-1] == windows


@settings(max_examples=300, deadline=None)
@given(data=st.data(), seed=_SEEDS, dense=st.booleans(), policy=_PRESETS, gap=_GAPS, fold=_FOLDS)
def test_next_and_previous_are_inverse_in_both_directions(data, seed, dense, policy, gap, fold, schedules):
    name = data.draw(_zone_names(schedules))
    timetable = schedules.table(schedules.expression(seed, dense=dense).text, name, policy, gap, fold)
    at_us = _near_a_change(data, schedules, name) + data.draw(st.integers(0, 59_999_999))

    later, earlier = timetable.next(at_us), timetable.previous(at_us)

    assert earlier.due_us <= at_us < later.due_us
    assert later.start_us == earlier.due_us
    assert timetable.next(earlier.due_us) == later
    assert timetable.previous(later.due_us, inclusive=False) == earlier
    assert timetable.previous(earlier.due_us) == earlier
    assert timetable.previous(earlier.due_us + 1, inclusive=False) == earlier
    assert timetable.next(later.due_us - 1) == later
    assert timetable.next(timetable.previous(earlier.due_us, inclusive=False).due_us) == earlier


# cronsim follows Debian too. It differs, and is not asked, where
# - the offset changes by a part of an hour: its steps are whole hours, so it loses minutes or itself;
# - the clock jumps by three hours or more: it knows no limit;
# - it starts at the second occurrence of a minute: it then goes on from the first;
# - a wild schedule meets a midnight that does not exist: it fires at the minute after the gap;
# - `fri-sun` (it refuses it) and `n-n/step` (it takes it for `n/step`), neither of which is generated.
@settings(max_examples=250, deadline=None)
@given(data=st.data(), seed=_SEEDS, dense=st.booleans())
def test_dues_are_those_of_cronsim(data, seed, dense, schedules):
    name = data.draw(_zone_names(schedules))
    timetable = schedules.table(schedules.expression(seed, dense=dense).text, name)
    after_us = _near_a_change(data, schedules, name)
    start = datetime.fromtimestamp(after_us // SECOND_US, schedules.reference(name))
    assume(start.fold == 0)
    found = []
    while len(found) < 20:
        found.append(timetable.next(found[-1] if found else after_us).due_us)
    # Before it is asked: it may never come back from what is left out here.
    for at_s, before_s, after_s in schedules.zone(name).changes(*_seconds(after_us, found[-1])):
        assume((after_s - before_s) % 3600 == 0 and abs(after_s - before_s) < 10_800)
        assume(not (timetable.cron.wild and (at_s + before_s - 1) // 86_400 < (at_s + after_s - 1) // 86_400))

    second_opinion = CronSim(timetable.cron.expression, start)

    assert found == [int(next(second_opinion).timestamp()) * SECOND_US for _ in range(20)]


@settings(max_examples=60, deadline=None)
@given(data=st.data(), seed=_SEEDS, years=st.integers(1, 12))
def test_long_spans_give_what_short_ones_give(data, seed, years, schedules):
    name = data.draw(_zone_names(schedules))
    timetable = schedules.table(schedules.expression(seed).text, name)
    after_us = _near_a_change(data, schedules, name)
    until_us = after_us + years * 366 * 24 * _HOUR_US
    cut_us = data.draw(st.integers(after_us, until_us))

    whole = list(timetable.dues(after_us, until_us))[:20_000]

    parts = [*timetable.dues(after_us, cut_us), *timetable.dues(cut_us, until_us)]
    assert whole == parts[:20_000]


def _dues(timetable, after, until):
    return [rfc3339(due_us) for due_us in timetable.dues(from_rfc3339(after), from_rfc3339(until))]


def test_ten_years_of_minutes_are_all_there(schedules):
    dues = schedules.table("* * * * *", "Europe/London").dues(
        from_rfc3339("2020-01-01T00:00:00Z"), from_rfc3339("2030-01-01T00:00:00Z")
    )
    assert sum(1 for _ in dues) == 3653 * 1440


def test_enumeration_takes_constant_memory(schedules):
    timetable = schedules.table("1-59 * * * *", "Europe/London")
    after_us, until_us = from_rfc3339("2024-01-01T00:00:00Z"), from_rfc3339("2025-01-01T00:00:00Z")
    deque(timetable.between(after_us, after_us + 24 * _HOUR_US), maxlen=0)
    tracemalloc.start()
    try:
        deque(timetable.dues(after_us, until_us), maxlen=0)
        deque(timetable.between(after_us, after_us + 100 * 24 * _HOUR_US), maxlen=0)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 1_500_000


def test_29_february_on_a_sunday_is_found_forty_years_away_in_both_directions(schedules):
    timetable = schedules.table("0 0 29 2 */7", "Europe/London")

    later = timetable.next(from_rfc3339("2088-03-01T00:00:00Z"))

    assert (rfc3339(later.start_us), rfc3339(later.due_us)) == ("2088-02-29T00:00:00Z", "2128-02-29T00:00:00Z")
    assert timetable.previous(from_rfc3339("2128-02-28T23:59:59Z")).nominal == "2088-02-29T00:00"


class _CountingZone(Zone):
    """A zone that counts how often it is asked for its changes."""

    asked = 0

    def changes(self, from_s: int, until_s: int) -> list[tuple[int, int, int]]:
        self.asked += 1
        return super().changes(from_s, until_s)


def test_a_day_that_does_not_exist_is_crossed_in_a_few_looks():
    # Pacific/Fakaofo left out 30 December 2011: no minute of it is walked to find the 30th of January.
    at_s = from_rfc3339("2011-12-30T11:00:00Z") // SECOND_US
    timetable = Timetable(
        parse("* * 30 * *"), _CountingZone("test", -11 * 3600, [(at_s, 13 * 3600)], None), Rule("skip", "both")
    )

    window = timetable.next((at_s - 3600) * SECOND_US)

    assert (window.nominal, rfc3339(window.start_us)) == ("2012-01-30T00:00", "2011-12-01T10:59:00Z")
    assert timetable.zone.asked < 40


def test_a_leap_day_window_is_eight_years_long_over_2100(schedules):
    assert _dues(schedules.table("0 12 29 2 *"), "2096-01-01T00:00:00Z", "2105-01-01T00:00:00Z") == [
        "2096-02-29T12:00:00Z",
        "2104-02-29T12:00:00Z",
    ]


def test_a_date_that_the_gap_takes_in_some_years_only_is_found_beyond_them(schedules):
    # New York: 8 March is the Sunday of the change in 2026, 2037, 2048; under `skip` nothing is due then.
    timetable = schedules.table("30 2 8 3 *", "America/New_York", "walk")
    window = timetable.next(from_rfc3339("2025-12-31T00:00:00Z"))
    assert (window.nominal, rfc3339(window.start_us)) == ("2027-03-08T02:30", "2025-03-08T07:30:00Z")


def test_the_calendar_ends_with_the_year_9999(schedules):
    timetable = schedules.table("0 0 1 1 *")
    assert timetable.next(from_rfc3339("9998-06-01T00:00:00Z")).nominal == "9999-01-01T00:00"
    assert timetable.next(from_rfc3339("9999-06-01T00:00:00Z")) is None


def test_the_calendar_starts_with_the_year_1(schedules):
    timetable = schedules.table("0 0 1 1 *")
    first = timetable.previous(from_rfc3339("0001-06-01T00:00:00Z"))
    assert (first.nominal, first.start_us) == ("0001-01-01T00:00", first.due_us)
    assert timetable.previous(first.due_us, inclusive=False) is None


# London 1847-12-01: 00:00:00-00:01:15 → 00:01:15+00:00
def test_local_mean_time_has_seconds(schedules):
    windows = schedules.table("0 0 * * *", "Europe/London").between(
        from_rfc3339("1847-11-29T12:00:00Z"), from_rfc3339("1847-12-02T12:00:00Z")
    )
    assert [(rfc3339(w.due_us), w.label, w.how, w.key) for w in windows] == [
        ("1847-11-30T00:01:15Z", "1847-11-30T00:00-00:01:15", "real", "L1847-11-30T00:00"),
        ("1847-12-01T00:01:15Z", "1847-12-01T00:01:15+00:00", "gap", "L1847-12-01T00:00"),
        ("1847-12-02T00:00:00Z", "1847-12-02T00:00+00:00", "real", "L1847-12-02T00:00"),
    ]


def test_a_key_by_instant_has_seconds_where_the_offset_has(schedules):
    window = schedules.table("0 * * * *", "Europe/London").next(from_rfc3339("1840-01-01T12:00:00Z"))
    assert (window.key, window.label) == ("U1840-01-01T12:01:15Z", "1840-01-01T12:00-00:01:15")


def test_a_key_by_instant_takes_the_date_of_utc(schedules):
    windows = schedules.table("30 * * * *", "Asia/Tokyo").between(
        from_rfc3339("2024-05-31T22:00:00Z"), from_rfc3339("2024-06-01T00:00:00Z")
    )
    assert [(w.key, w.nominal) for w in windows] == [
        ("U2024-05-31T22:30Z", "2024-06-01T07:30"),
        ("U2024-05-31T23:30Z", "2024-06-01T08:30"),
    ]


# New York 2024-03-10: 01:59:59-05:00 → 03:00:00-04:00
def test_a_shifted_minute_after_a_later_real_one_comes_after_it(schedules):
    windows = schedules.table("10,50 2,3 * * *", "America/New_York", "shift").between(
        from_rfc3339("2024-03-10T06:00:00Z"), from_rfc3339("2024-03-10T09:00:00Z")
    )
    assert [(rfc3339(w.due_us), w.nominal, w.collapsed) for w in windows] == [
        ("2024-03-10T07:10:00Z", "2024-03-10T03:10", ("2024-03-10T02:10",)),
        ("2024-03-10T07:50:00Z", "2024-03-10T03:50", ("2024-03-10T02:50",)),
    ]


# New York 2024-11-03: 01:59:59-04:00 → 01:00:00-05:00
def test_a_second_occurrence_has_a_key_of_its_own_only_under_both(schedules):
    span = from_rfc3339("2024-11-03T04:30:00Z"), from_rfc3339("2024-11-03T12:00:00Z")
    both = schedules.table("30 1 * * *", "America/New_York", fold="both").between(*span)
    second = schedules.table("30 1 * * *", "America/New_York", fold="second").between(*span)
    assert [(w.key, w.fold, w.label) for w in both] == [
        ("L2024-11-03T01:30", 0, "2024-11-03T01:30-04:00"),
        ("L2024-11-03T01:30~2", 1, "2024-11-03T01:30-05:00"),
    ]
    assert [(w.key, w.fold, w.label) for w in second] == [("L2024-11-03T01:30", 1, "2024-11-03T01:30-05:00")]


def _jump(by_s, text, asked):
    """Return the nominal minute and due of each window over a change of offset at 2024-06-01T12:00Z from +00:00."""
    at_us = from_rfc3339("2024-06-01T12:00:00Z")
    zone = Zone("test", 0, [(at_us // SECOND_US, by_s)], None)
    windows = Timetable(parse(text), zone, asked).between(at_us - 6 * _HOUR_US, at_us + 9 * _HOUR_US)
    return [(w.key, rfc3339(w.due_us)) for w in windows]


_VIXIE = rule("vixie", None, None, wild=False)


def test_vixie_repeats_a_fixed_job_where_the_clock_goes_back_by_more_than_three_hours():
    assert _jump(-10_860, "30 11 * * *", _VIXIE) == [
        ("L2024-06-01T11:30", "2024-06-01T11:30:00Z"),
        ("L2024-06-01T11:30~2", "2024-06-01T14:31:00Z"),
    ]
    assert _jump(-10_800, "30 11 * * *", _VIXIE) == [("L2024-06-01T11:30", "2024-06-01T11:30:00Z")]
    assert _jump(-10_860, "30 11 * * *", Rule("after", "first")) == [("L2024-06-01T11:30", "2024-06-01T11:30:00Z")]


def test_vixie_skips_a_fixed_job_where_the_clock_jumps_by_three_hours():
    assert _jump(10_800, "30 12 * * *", _VIXIE) == []
    assert _jump(10_740, "30 12 * * *", _VIXIE) == [("L2024-06-01T12:30", "2024-06-01T12:00:00Z")]
    assert _jump(10_800, "30 12 * * *", Rule("after", "first")) == [("L2024-06-01T12:30", "2024-06-01T12:00:00Z")]


def test_a_minute_that_comes_three_times_is_due_each_time_under_both():
    at_s = from_rfc3339("2024-06-01T12:00:00Z") // SECOND_US
    zone = Zone("test", 0, [(at_s, -3600), (at_s + 3600, -7200)], None)
    timetable = Timetable(parse("30 11 * * *"), zone, Rule("skip", "both"))
    assert [w.key for w in timetable.between((at_s - 7200) * SECOND_US, (at_s + 18_000) * SECOND_US)] == [
        "L2024-06-01T11:30",
        "L2024-06-01T11:30~2",
        "L2024-06-01T11:30~3",
    ]


def test_two_changes_close_together_repeat_minutes_further_away_than_either():
    # Two hours back at 12:00Z, two more at 13:00Z: local 09:30 comes at 09:30Z and 13:30Z.
    at_s = from_rfc3339("2024-06-01T12:00:00Z") // SECOND_US
    zone = Zone("test", 0, [(at_s, -7200), (at_s + 3600, -14_400)], None)
    timetable = Timetable(parse("30 9 * * *"), zone, Rule("skip", "second"))
    assert _dues(timetable, "2024-06-01T06:00:00Z", "2024-06-02T06:00:00Z") == ["2024-06-01T13:30:00Z"]


@settings(max_examples=150, deadline=None)
@given(
    changes=st.lists(st.tuples(st.integers(0, 96), st.integers(-52, 52)), max_size=5),
    seed=_SEEDS,
    gap=_GAPS.filter(bool),
    fold=_FOLDS.filter(bool),
)
def test_windows_tile_in_a_zone_that_changes_every_few_hours(changes, seed, gap, fold, schedules):
    first_s = from_rfc3339("2024-06-01T00:00:00Z") // SECOND_US
    steps = {first_s + hour * 3600: half * 1800 for hour, half in changes}
    zone = Zone("test", 0, sorted(steps.items()), None)
    cron = parse(schedules.expression(seed, dense=True).text)
    timetable = Timetable(cron, zone, Rule(gap, fold))
    dues = list(timetable.dues((first_s - 200_000) * SECOND_US, (first_s + 600_000) * SECOND_US))

    forwards = [timetable.next((first_s - 200_000) * SECOND_US)]
    while forwards[-1].due_us < dues[-1] and len(forwards) < 40:
        forwards.append(timetable.next(forwards[-1].due_us))
    backwards = [timetable.previous(dues[-1])]
    while backwards[-1].due_us > dues[0] and len(backwards) < 40:
        backwards.append(timetable.previous(backwards[-1].start_us))

    assert dues == sorted(set(dues))
    assert [w.due_us for w in forwards] == dues[: len(forwards)]
    assert [w.due_us for w in backwards[::-1]] == dues[-len(backwards) :]
    # A real minute is due by its own occurrence: the offset at the due gives it back.
    windows = timetable.between((first_s - 200_000) * SECOND_US, (first_s + 600_000) * SECOND_US)
    assert all(w.label.startswith(w.nominal) for w in windows if w.how == "real")

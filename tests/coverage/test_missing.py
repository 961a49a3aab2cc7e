"""Missing windows: the cases of data/windows.json, edits of the zone's data, and expected = answered + missing."""

from __future__ import annotations

import base64
import json
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runguard.coverage.missing import missing
from runguard.coverage.verdicts import judge
from runguard.instant import SECOND_US, from_rfc3339, rfc3339
from runguard.schedule.revisions import Piece, Succession
from runguard.schedule.zone import parse_tzif

_DATA = json.loads((Path(__file__).parent.parent / "data" / "windows.json").read_text())
_CASES = [pytest.param(case, id=case["id"]) for case in _DATA["cases"] if case["kind"] == "missing"]
_ZONES = sorted(files("tzdata").joinpath("zones").read_text().split())
_DAY_US = 86_400 * SECOND_US


def _at(text):
    return from_rfc3339(text)


def _shown(window):
    shown = {
        "due": rfc3339(window.due_us),
        "start": rfc3339(window.start_us),
        "label": window.label,
        "nominal": window.nominal,
        "how": window.how,
        "fold": window.fold,
        "key": window.key,
    }
    return {**shown, "collapsed": list(window.collapsed)} if window.collapsed else shown


@pytest.mark.parametrize("case", _CASES)
def test_finds_what_nobody_answered(case, on_record):
    given_, policy = case["input"], case["policy"]
    halves = {"policy": policy} if isinstance(policy, str) else policy
    expected = on_record.expected(case["schedule"], case["tz"], **halves)
    answered = {*given_["done"], given_.get("current")}
    since_us, now_us = _at(given_["since"]), _at(given_["now"])
    ran = on_record.ran(w for w in expected.between(since_us - 1, now_us) if rfc3339(w.due_us) in answered)
    assert len(ran) >= len(given_["done"])

    found = list(missing(expected, on_record.Record(ran), "job", since_us, now_us, given_["grace_s"] * SECOND_US))

    assert [_shown(judged.window) for judged in found] == case["expected"]["windows"]
    assert {judged.verdict for judged in found} <= {"missing"}


def test_there_are_seventeen_cases():
    assert len(_CASES) == 17


def test_a_missing_window_tells_who_was_refused(on_record):
    expected = on_record.expected("0 9 * * *")
    refused = on_record.Start(4, outcome="refused", why="overlap")
    found = missing(
        expected, on_record.Record([refused]), "job", _at("2024-06-02T12:00:00Z"), _at("2024-06-04T12:00:00Z"), 0
    )
    assert [(judged.window.nominal, judged.because, judged.runs) for judged in found] == [
        ("2024-06-03T09:00", "refused by run 40 (overlap)", (40,)),
        ("2024-06-04T09:00", "no start at all", ()),
    ]


def test_covered_and_waived_windows_are_not_missing(on_record):
    expected = on_record.expected("0 9 * * *")
    covering = on_record.Start(
        1,
        key="L2024-06-05T09:00",
        due_us=_at("2024-06-05T09:00:00Z"),
        covers_first_us=_at("2024-06-03T09:00:00Z"),
        covers_last_us=_at("2024-06-04T09:00:00Z"),
    )
    waivers = [
        on_record.Waiver(2, key="L2024-06-06T09:00"),
        on_record.Waiver(3, since_us=_at("2024-06-07T00:00:00Z"), until_us=_at("2024-06-08T23:00:00Z")),
        on_record.Waiver(4, key="L2024-06-08T09:00", withdraw=True),
    ]
    record = on_record.Record([covering], waivers)
    found = missing(expected, record, "job", _at("2024-06-02T12:00:00Z"), _at("2024-06-09T12:00:00Z"), 0)
    assert [(judged.window.nominal, judged.because) for judged in found] == [
        ("2024-06-08T09:00", "no start at all; the waiver was withdrawn by anna"),
        ("2024-06-09T09:00", "no start at all"),
    ]


def _vancouver(version, text, on_record):
    data = base64.b64decode(_DATA["tzif"][f"America/Vancouver@{version}"])
    return on_record.expected(text, "America/Vancouver", found=parse_tzif(data, "America/Vancouver"))


@pytest.mark.parametrize("text", ["0 9 * * *", "0 9,10 * * *", "*/30 0-22 * * *", "30 1,2 * * *"])
def test_a_change_of_the_zones_data_makes_no_miss_and_hides_none(text, on_record):
    # From November 2026 the two versions are an hour apart. Every fifth window was not run.
    since_us, now_us = _at("2026-08-01T12:00:00Z"), _at("2027-02-01T00:00:00Z")
    recorded = list(_vancouver("2025b", text, on_record).between(since_us, now_us))
    ran = [window for n, window in enumerate(recorded) if n % 5]
    expected = _vancouver("2026f", text, on_record)

    found = missing(expected, on_record.Record(on_record.ran(ran)), "job", since_us, now_us, 0)

    wanted = {w.key for w in expected.between(since_us, now_us)} - {w.key for w in ran}
    assert [judged.window.key for judged in found] == sorted(wanted)


def test_a_retired_job_misses_nothing(on_record):
    daily = on_record.expected("0 9 * * *").pieces[0].timetable
    expected = Succession([Piece(1, 0, daily), Piece(2, _at("2024-06-03T12:00:00Z"), None)])
    found = missing(expected, on_record.Record(), "job", _at("2024-06-02T12:00:00Z"), _at("2025-06-09T12:00:00Z"), 0)
    assert [judged.window.nominal for judged in found] == ["2024-06-03T09:00"]


_TEXTS = st.sampled_from(
    ("0 * * * *", "30 2 * * *", "*/15 1,2 * * *", "0 0,1,2,3 * * *", "RRULE:FREQ=DAILY;BYHOUR=0,2,23", "0 */2 * * 1-5")
)


@settings(max_examples=120, deadline=None)
@given(
    data=st.data(),
    zone=st.sampled_from(_ZONES),
    text=_TEXTS,
    policy=st.sampled_from(("vixie", "walk", "systemd", "quartz", "shift")),
    first=st.integers(3650, 25_000),
    days=st.integers(1, 150),
    retired=st.booleans(),
)
def test_what_is_expected_is_answered_or_missing(data, zone, text, policy, first, days, retired, on_record):
    timetable = on_record.expected(text, zone, policy).pieces[0].timetable
    since_us = first * _DAY_US + data.draw(st.integers(0, _DAY_US))
    now_us = since_us + days * _DAY_US
    middle_us = since_us + days * _DAY_US // 2
    pieces = [Piece(1, since_us, timetable), Piece(2, middle_us, None), Piece(3, middle_us + 5 * _DAY_US, timetable)]
    expected = Succession(pieces if retired else pieces[:1])
    windows = list(expected.between(since_us, now_us))
    step = data.draw(st.integers(1, 40))
    ran = [window for n, window in enumerate(windows) if n % step]
    grace_us = data.draw(st.sampled_from((0, 300 * SECOND_US, _DAY_US)))
    starts = on_record.ran(ran)

    found = [judged.window for judged in missing(expected, on_record.Record(starts), "j", since_us, now_us, grace_us)]

    graced = [window for window in windows if window.due_us <= now_us - grace_us]
    assert sorted([*found, *(w for w in ran if w.due_us <= now_us - grace_us)], key=lambda w: w.due_us) == graced
    judged = list(judge(windows, starts, [], now_us, grace_us))
    assert [each.window for each in judged] == windows
    assert [each.window for each in judged if each.verdict == "missing"] == found

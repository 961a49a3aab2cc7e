"""The known-right answers of data/windows.json, made by methods that share no code with this room."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runguard.errors import ScheduleError
from runguard.instant import SECOND_US, from_rfc3339, rfc3339
from runguard.model import Window
from runguard.schedule.cron import parse
from runguard.schedule.revisions import resolve
from runguard.schedule.windows import Timetable

_CASES = json.loads((Path(__file__).parent.parent / "data" / "windows.json").read_text())["cases"]


def _of(kind: str, *, refused: bool = False) -> list[Any]:
    return [
        pytest.param(case, id=case["id"])
        for case in _CASES
        if case["kind"] == kind and ("error" in case["expected"]) == refused
    ]


def _timetable(schedules: Any, case: dict[str, Any]) -> Timetable:
    policy = case["policy"]
    halves = {"policy": policy} if isinstance(policy, str) else policy
    found: Timetable = schedules.table(case["schedule"], case["input"].get("tzif", case["tz"]), **halves)
    return found


def _shown(window: Window) -> dict[str, Any]:
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


def test_the_data_are_whole():
    assert len(_CASES) == 236
    assert [len(_of(kind)) for kind in ("enumerate", "resolve", "missing")] == [171, 36, 17]
    assert len(_of("enumerate", refused=True)) == 12


@pytest.mark.parametrize("case", _of("enumerate"))
def test_enumerates(case, schedules):
    timetable = _timetable(schedules, case)
    after_us, until_us = from_rfc3339(case["input"]["after"]), from_rfc3339(case["input"]["until"])

    assert ("wild" if timetable.cron.wild else "fixed") == case["expected"]["class"]
    windows = list(timetable.between(after_us, until_us))
    assert [_shown(window) for window in windows] == case["expected"]["windows"]
    assert list(timetable.dues(after_us, until_us)) == [window.due_us for window in windows]
    # One at a time, forwards and backwards, they are the same windows.
    assert [timetable.previous(window.due_us) for window in windows] == windows
    assert [timetable.next(window.start_us) for window in windows] == windows


@pytest.mark.parametrize("case", _of("enumerate", refused=True))
def test_refuses(case):
    with pytest.raises(ScheduleError) as caught:
        parse(case["schedule"])
    assert case["expected"]["detail"] in caught.value.why


@pytest.mark.parametrize("case", _of("resolve"))
def test_resolves(case, schedules):
    expected = case["expected"]
    early_us = case["input"]["early_s"] * SECOND_US

    found = resolve(_timetable(schedules, case), from_rfc3339(case["input"]["now"]), early_us=early_us)

    assert _shown(found.window) == expected["window"]
    assert found.late_s == expected["late_s"]
    assert rfc3339(found.next_due_us) == expected["next_due"]
    if "-> off-schedule" in case["why"]:
        assert found.off_schedule


@pytest.mark.parametrize("case", _of("missing"))
def test_what_nobody_answered_is_what_is_left_of_the_windows(case, schedules):
    given = case["input"]
    answered = {*given["done"], given.get("current")}
    until_us = from_rfc3339(given["now"]) - given["grace_s"] * SECOND_US

    windows = _timetable(schedules, case).between(from_rfc3339(given["since"]), until_us)

    assert [_shown(w) for w in windows if rfc3339(w.due_us) not in answered] == case["expected"]["windows"]

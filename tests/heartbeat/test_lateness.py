"""What may still be told of an outcome that a monitor did not hear in time."""

from __future__ import annotations

import pytest

from runguard import zones
from runguard.heartbeat.body import Body
from runguard.heartbeat.lateness import is_too_soon, kind_now, late_event, valid_until_us
from runguard.heartbeat.slot import Slot
from runguard.heartbeat.styles import Event
from runguard.instant import from_rfc3339, rfc3339
from runguard.model import Schedule
from runguard.schedule import revisions

ENDED = from_rfc3339("2026-03-29T01:32:00Z")


def slot(kind: str, until: str | None = None) -> Slot:
    told = Event(kind, "01957a0e", 3, body=Body("failed, exit 3", "no paper", 7))
    until_us = None if until is None else from_rfc3339(until)
    return Slot(
        "letters", ENDED, ENDED, until_us, 1, "timed out", "healthchecks", "https://…", "", "0123456789abcdef", told
    )


@pytest.mark.parametrize(
    ("now", "kind"),
    [
        ("2026-03-29T01:33:00Z", "success"),
        ("2026-03-30T01:29:59Z", "success"),
        ("2026-03-30T01:30:00Z", "log"),
        ("2026-04-30T01:30:00Z", "log"),
    ],
)
def test_a_success_counts_until_the_next_one_is_due(now: str, kind: str) -> None:
    assert kind_now(slot("success", "2026-03-30T01:30:00Z"), from_rfc3339(now)) == kind


def test_a_success_does_not_count_once_a_newer_outcome_is_about_to_be_told() -> None:
    assert kind_now(slot("success", "2026-03-30T01:30:00Z"), ENDED, superseded=True) == "log"


@pytest.mark.parametrize(
    ("now", "kind"), [("2026-03-29T01:31:30Z", "success"), ("2026-03-28T22:32:00Z", "log")], ids=["slewed", "set back"]
)
def test_a_success_of_the_future_is_none_to_rely_on(now: str, kind: str) -> None:
    assert kind_now(slot("success", "2026-03-30T01:30:00Z"), from_rfc3339(now)) == kind


@pytest.mark.parametrize(
    ("now", "expected"),
    [("2026-03-29T01:32:01Z", True), ("2026-03-29T01:34:00Z", False), ("2026-03-28T22:32:00Z", False)],
    ids=["before its due", "at its due", "set back"],
)
def test_what_ended_before_its_due_waits_for_it_unless_the_clock_was_set_back(now: str, expected: bool) -> None:
    early = slot("failure")._replace(from_us=from_rfc3339("2026-03-29T01:34:00Z"))
    assert is_too_soon(early, from_rfc3339(now)) is expected


@pytest.mark.parametrize("superseded", [False, True])
def test_a_failure_counts_for_ever(superseded: bool) -> None:
    assert kind_now(slot("failure"), from_rfc3339("2029-01-01T00:00:00Z"), superseded=superseded) == "failure"


@pytest.mark.parametrize(
    ("now", "said"),
    [
        ("2026-03-29T03:45:00Z", "2h 13m"),
        ("2026-03-29T01:32:45Z", "45s"),
        ("2026-03-29T03:32:10Z", "2h"),
        ("2026-04-01T03:32:00Z", "3d 2h"),
        ("2026-03-29T01:31:00Z", "0s"),  # the clock was set back
    ],
)
def test_the_body_says_first_how_late_it_is_and_when_the_run_ended(now: str, said: str) -> None:
    event = late_event(slot("failure"), "failure", from_rfc3339(now))
    told = f"delivered late by {said} (it ended 2026-03-29T01:32:00Z): failed, exit 3"
    assert event == Event("failure", "01957a0e", 3, body=Body(told, "no paper", 7))


def until(expression: str | None, at: str) -> str | None:
    timetable = None
    if expression is not None:
        zone = zones.load("Europe/London").zone
        timetable = revisions.timetable(Schedule(expression, "Europe/London"), zone)
    found = valid_until_us(from_rfc3339(at), timetable)
    return None if found is None else rfc3339(found)


def test_without_a_schedule_a_success_counts_for_an_hour() -> None:
    assert until(None, "2026-03-29T01:32:00Z") == "2026-03-29T02:32:00Z"


def test_with_one_it_counts_until_the_next_due_after_its_end() -> None:
    # 02:30 London is 01:30Z from 29 March 2026 on
    assert until("30 2 * * *", "2026-03-29T01:32:00Z") == "2026-03-30T01:30:00Z"
    assert until("0 * * * *", "2026-06-01T03:10:00Z") == "2026-06-01T04:00:00Z"


def test_what_counts_from_its_own_due_on_counts_until_the_next_one() -> None:
    assert until("30 2 * * *", "2026-03-29T01:30:00Z") == "2026-03-30T01:30:00Z"


def test_where_nothing_is_due_any_more_it_counts_until_a_newer_outcome() -> None:
    rule = "DTSTART:20260301T000000\nRRULE:FREQ=DAILY;COUNT=2"
    assert until(rule, "2026-03-05T00:00:00Z") is None
    assert kind_now(slot("success"), from_rfc3339("2029-01-01T00:00:00Z")) == "success"

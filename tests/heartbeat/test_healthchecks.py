"""The receiver keeps to Healthchecks' pages: what masks a failure there masks it here."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from healthchecks import Check

A, B = "aaaaaaaa-0000-4000-8000-000000000000", "bbbbbbbb-0000-4000-8000-000000000000"
MINUTE = 60.0
GRACE = 10 * MINUTE


class Clock:
    """The monitor's clock, which a test sets."""

    def __init__(self, at: str = "2026-03-10T02:00:00Z") -> None:
        self.set(at)

    def set(self, at: str) -> None:
        self.now_s = datetime.fromisoformat(at).astimezone(UTC).timestamp()

    def go_on(self, minutes: float) -> None:
        self.now_s += minutes * MINUTE


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def check(clock: Clock) -> Check:
    """A check with a period of an hour and ten minutes of grace."""
    return Check(lambda: clock.now_s, period_s=60 * MINUTE, grace_s=GRACE)


def test_a_check_is_new_up_late_down_and_up_again(check: Check, clock: Clock) -> None:
    seen = [check.status]
    check.ping("", None, b"")
    for minutes in (59, 1, 9, 1):
        seen.append(check.status)
        clock.go_on(minutes)
    seen.append(check.status)
    check.ping("", None, b"")
    assert [*seen, check.status] == ["new", "up", "up", "late", "late", "down", "up"]
    assert check.flips == ["up", "down", "up"]


def test_neither_a_start_nor_a_log_line_makes_a_new_check_up(check: Check) -> None:
    check.ping("start", None, b"")
    check.ping("log", None, b"so far so good")
    assert (check.status, check.started) == ("new", True)


@pytest.mark.parametrize(
    ("action", "status"), [("", "up"), ("0", "up"), ("1", "down"), ("255", "down"), ("fail", "down")]
)
def test_an_exit_status_is_a_success_or_a_failure(check: Check, action: str, status: str) -> None:
    check.ping(action, None, b"")
    assert check.status == status


def test_a_start_that_is_not_followed_within_the_grace_is_down(check: Check, clock: Clock) -> None:
    check.ping("", None, b"")
    check.ping("start", A, b"")
    clock.go_on(9)
    assert (check.status, check.started) == ("up", True)
    clock.go_on(1)
    assert (check.status, check.started) == ("down", True)


@pytest.mark.parametrize(("action", "rid"), [("", A), ("", None), ("0", None), ("fail", A), ("fail", B), ("3", None)])
def test_what_clears_the_timer_of_a_start(check: Check, clock: Clock, action: str, rid: str | None) -> None:
    check.ping("start", A, b"")
    clock.go_on(2)
    check.ping(action, rid, b"")
    assert not check.started
    before = check.status
    clock.go_on(10)
    assert check.status == before


def test_a_success_with_another_rid_leaves_the_timer_which_then_alarms(check: Check, clock: Clock) -> None:
    check.ping("start", A, b"")
    clock.go_on(2)
    check.ping("", B, b"")
    assert (check.status, check.started) == ("up", True)
    clock.go_on(8)
    assert check.status == "down"


def test_a_success_with_another_rid_after_the_timer_ran_out_stays_down(check: Check, clock: Clock) -> None:
    check.ping("start", A, b"")
    clock.go_on(10)
    check.ping("", B, b"")
    assert check.status == "down"


def test_starts_that_keep_coming_hide_a_run_that_hangs(check: Check, clock: Clock) -> None:
    check.ping("", None, b"")
    for _ in range(7):  # over an hour, though nothing ever ended
        check.ping("start", None, b"")
        clock.go_on(9)
    assert check.status == "late"


def test_only_the_run_that_started_last_is_watched(check: Check, clock: Clock) -> None:
    check.ping("start", A, b"")
    clock.go_on(5)
    check.ping("start", B, b"")
    check.ping("", B, b"")
    clock.go_on(30)
    assert (check.status, check.started) == ("up", False)


def test_a_late_success_of_an_older_run_turns_a_failed_check_green(check: Check) -> None:
    check.ping("3", B, b"")
    check.ping("", A, b"delivered late")
    assert check.flips == ["down", "up"]


def test_a_ping_before_the_due_time_counts_for_the_slot_before(clock: Clock) -> None:
    check = Check(lambda: clock.now_s, grace_s=GRACE, schedule="0 3 * * *", zone="UTC")
    clock.set("2026-03-10T02:59:00Z")  # a minute early
    check.ping("", None, b"")
    clock.set("2026-03-10T03:00:00Z")
    assert check.status == "late"
    clock.set("2026-03-10T03:10:00Z")
    assert check.status == "down"


def test_a_ping_after_the_due_time_counts_until_the_next_one(clock: Clock) -> None:
    check = Check(lambda: clock.now_s, grace_s=GRACE, schedule="0 3 * * *", zone="Europe/London")
    clock.set("2026-03-28T03:00:05Z")
    check.ping("", None, b"")
    clock.set("2026-03-29T01:59:59Z")  # clocks went forward: 02:59:59+01:00
    assert check.status == "up"
    clock.set("2026-03-29T02:10:00Z")
    assert check.status == "down"

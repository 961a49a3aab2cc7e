"""Whether a failed run is tried again, and after how long."""

import pytest

from runguard.guard.ending import Verdict
from runguard.guard.retrying import Again, again
from runguard.model import Window
from runguard.settings import TABLE, Settings

HOUR_US = 3_600_000_000
WINDOW = Window("L2026-03-29T02:30", 0, HOUR_US, "2026-03-29T02:30+01:00", "2026-03-29T02:30", "real", 0)
FAILED = Verdict("failed", 3, 3, None, None)


def settings(**given: object) -> Settings:
    return Settings(**{setting.into: setting.default for setting in TABLE} | {"job": "letters"} | given)  # type: ignore[arg-type]


def test_without_retries_nothing_follows_and_nothing_is_said() -> None:
    assert again(FAILED, settings(), 1, WINDOW, HOUR_US) == Again(None)


@pytest.mark.parametrize(("tried", "delay_s"), [(1, 10.0), (2, 20.0), (3, 40.0), (14, 81_920.0), (15, 86_400.0)])
def test_the_delay_doubles_up_to_a_day(tried: int, delay_s: float) -> None:
    assert again(FAILED, settings(retries=20), tried, None, 0) == Again(delay_s)


def test_a_delay_of_more_than_a_day_stays_as_it_is() -> None:
    assert again(FAILED, settings(retries=20, retry_delay_s=200_000.0), 5, None, 0) == Again(200_000.0)


def test_the_last_attempt_is_given_up() -> None:
    assert again(FAILED, settings(retries=2), 3, WINDOW, HOUR_US) == Again(None, "given up after 3 attempts")


@pytest.mark.parametrize("outcome", ["succeeded", "cancelled", "lost"])
def test_only_a_failure_is_tried_again(outcome: str) -> None:
    assert again(Verdict(outcome, 0, 0, None, None), settings(retries=2), 1, None, 0) == Again(None)


def test_a_command_that_a_signal_ended_is_tried_again() -> None:
    assert again(Verdict("killed", None, 137, 9, "oom"), settings(retries=1), 1, None, 0) == Again(10.0)


def test_a_run_that_made_way_for_another_is_not_tried_again() -> None:
    assert again(Verdict("killed", None, 143, 15, "overlap"), settings(retries=1), 1, None, 0) == Again(None)


def test_a_time_limit_is_tried_again_only_where_asked() -> None:
    timed_out = Verdict("timed_out", None, 124, 15, None)
    said = "stopped at its time limit: not tried again (retry_timeouts)"
    assert again(timed_out, settings(retries=1), 1, None, 0) == Again(None, said)
    assert again(timed_out, settings(retries=1, retry_timeouts=True), 1, None, 0) == Again(10.0)


@pytest.mark.parametrize(
    ("deadline_s", "expected"),
    [
        (10.0, Again(10.0)),
        (9.0, Again(None, "not tried again: that would be past the window's deadline of 9s")),
    ],
)
def test_no_attempt_begins_past_the_deadline(deadline_s: float, expected: Again) -> None:
    assert again(FAILED, settings(retries=1, deadline_s=deadline_s), 1, WINDOW, HOUR_US) == expected

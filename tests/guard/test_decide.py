"""What a start does about its window (design.md, "Decisions and exit statuses")."""

import pytest

from runguard.guard.decide import Proceed, Question, Refuse, decide
from runguard.model import Earlier, Window

WINDOW = Window("L2026-03-29T02:30", 0, 86_400_000_000, "2026-03-29T02:30+01:00", "2026-03-29T02:30", "real", 0)
HOUR_US = 3_600_000_000


def earlier(outcome: str, attempt: int = 1) -> Earlier:
    return Earlier("3f0c", 41, outcome, attempt, "host")


def test_a_run_without_a_window_proceeds_as_its_first_attempt() -> None:
    assert decide(Question(None, None)) == Proceed(1, None, "the run has no window")


def test_an_open_window_is_run() -> None:
    assert decide(Question(WINDOW, None)) == Proceed(1, None, "the window is open")


def test_a_done_window_is_a_duplicate_with_status_0() -> None:
    refusal = decide(Question(WINDOW, earlier("succeeded")))
    assert isinstance(refusal, Refuse)
    assert (refusal.why, refusal.status) == ("duplicate", 0)
    assert "run 41" in refusal.because


def test_a_waived_window_is_a_duplicate_and_says_how_to_run_it() -> None:
    refusal = decide(Question(WINDOW, Earlier("", None, "waived", 0, "host"), "letters"))
    assert isinstance(refusal, Refuse)
    assert (refusal.why, refusal.status) == ("duplicate", 0)
    assert "waived; to run it all the same: runguard rerun letters@L2026-03-29T02:30 --reason TEXT" in refusal.because


@pytest.mark.parametrize("outcome", ["failed", "timed_out", "killed", "cancelled", "superseded"])
def test_a_failed_window_is_run_again_as_the_next_attempt(outcome: str) -> None:
    answer = decide(Question(WINDOW, earlier(outcome, attempt=2)))
    assert isinstance(answer, Proceed)
    assert (answer.attempt, answer.supersedes) == (3, "3f0c")


def test_a_further_attempt_beside_another_run_of_the_window_replaces_the_one_before_it() -> None:
    answer = decide(Question(WINDOW, earlier("running", attempt=2), beside=True, own="2e0b"))
    assert isinstance(answer, Proceed)
    assert (answer.attempt, answer.supersedes) == (3, "2e0b")


def test_a_lost_window_is_held() -> None:
    refusal = decide(Question(WINDOW, earlier("lost"), "letters"))
    assert isinstance(refusal, Refuse)
    assert (refusal.why, refusal.status) == ("held", 75)
    assert "look: runguard show 41 --output" in refusal.because
    assert "runguard rerun letters@L2026-03-29T02:30 --reason TEXT" in refusal.because
    assert "runguard waive letters@L2026-03-29T02:30 --reason TEXT" in refusal.because


def test_a_lost_window_of_an_idempotent_job_is_run_again() -> None:
    answer = decide(Question(WINDOW, earlier("lost"), on_lost="rerun"))
    assert isinstance(answer, Proceed)
    assert answer.attempt == 2


@pytest.mark.parametrize("outcome", ["succeeded", "lost", "waived", "failed"])
def test_a_person_with_a_reason_runs_any_window_again(outcome: str) -> None:
    answer = decide(Question(WINDOW, earlier(outcome), asked_for=True))
    assert isinstance(answer, Proceed)
    assert (answer.attempt, answer.supersedes) == (2, "3f0c")


def test_a_done_window_shortly_before_the_next_due_is_off_schedule() -> None:
    refusal = decide(Question(WINDOW, earlier("succeeded"), off_schedule=True, next_in_us=HOUR_US))
    assert isinstance(refusal, Refuse)
    assert (refusal.why, refusal.status) == ("off-schedule", 0)
    assert refusal.because.startswith("1h before the next due")


def test_a_done_window_more_than_three_hours_before_the_next_due_is_a_duplicate() -> None:
    refusal = decide(Question(WINDOW, earlier("succeeded"), off_schedule=True, next_in_us=3 * HOUR_US + 1))
    assert isinstance(refusal, Refuse)
    assert refusal.why == "duplicate"


def test_an_open_window_off_schedule_is_run() -> None:
    answer = decide(Question(WINDOW, None, off_schedule=True, next_in_us=HOUR_US))
    assert isinstance(answer, Proceed)


def test_a_window_past_its_deadline_is_refused() -> None:
    refusal = decide(Question(WINDOW, None, late_us=2 * HOUR_US, deadline_us=HOUR_US))
    assert isinstance(refusal, Refuse)
    assert (refusal.why, refusal.status) == ("deadline", 75)
    assert refusal.because.startswith("the window was due 2h ago, past its deadline of 1h; ")


@pytest.mark.parametrize("late_us", [HOUR_US, -1])
def test_a_window_within_its_deadline_is_run(late_us: int) -> None:
    assert isinstance(decide(Question(WINDOW, None, late_us=late_us, deadline_us=HOUR_US)), Proceed)


def test_a_done_window_past_its_deadline_is_a_duplicate() -> None:
    refusal = decide(Question(WINDOW, earlier("succeeded"), late_us=2 * HOUR_US, deadline_us=HOUR_US))
    assert isinstance(refusal, Refuse)
    assert refusal.why == "duplicate"


def test_a_person_runs_a_window_past_its_deadline() -> None:
    assert isinstance(decide(Question(WINDOW, None, late_us=2 * HOUR_US, deadline_us=HOUR_US, asked_for=True)), Proceed)


def test_a_re_run_without_a_window_names_the_run_that_it_replaces() -> None:
    answer = decide(Question(None, earlier("succeeded", attempt=2), asked_for=True))
    assert isinstance(answer, Proceed)
    assert (answer.attempt, answer.supersedes) == (3, "3f0c")

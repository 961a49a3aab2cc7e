"""How bad a standing is, and why: one case for each thing that can be wrong."""

from __future__ import annotations

from typing import Any

import pytest

from runguard.coverage.levels import Limits, assess, worst
from runguard.coverage.standing import Holding, Running, Standing, Success, Undelivered
from runguard.coverage.verdicts import Judged
from runguard.instant import from_rfc3339
from runguard.model import Holder, Window
from runguard.store.reads import Run

NOW_US = from_rfc3339("2026-03-30T12:00:00Z")
LIMITS = Limits(alarm_after=3, max_age_s=None, holds_lost=True)
HOUR_US = 3_600_000_000


def judged(day: int, verdict: str = "missing", because: str = "no start at all", suspect: str | None = None) -> Judged:
    """Return the window that was due at 02:30 UTC on a day of March 2026."""
    due_us = from_rfc3339(f"2026-03-{day}T02:30:00Z")
    minute = f"2026-03-{day}T02:30"
    window = Window(f"L{minute}", due_us - 24 * HOUR_US, due_us, f"{minute}+00:00", minute, "real", 0)
    return Judged(window, verdict, because, (), suspect)


def run(outcome: str = "succeeded", **fields: Any) -> Run:
    """Return run 7."""
    known = dict.fromkeys(Run._fields)
    given = {"run_id": "7d0f3c59-2f7e-4c3c-9c53-0a3c0b1d8f11", "number": 7, "outcome": outcome, "started_us": NOW_US}
    return Run(**{**known, **given, **fields})


def running(**fields: Any) -> Running:
    """Return run 12, which has been running for an hour."""
    known = Running("12345678", 12, None, None, 411, 412, NOW_US - HOUR_US, 3600.0, "sleep 9", "alive", "it lives", "")
    return known._replace(**fields)


def stand(*windows: Judged, schedule: str | None = "30 2 * * *", **fields: Any) -> Standing:
    """Return the standing of a job with these windows, all well otherwise."""
    only = {verdict: tuple(w for w in windows if w.verdict == verdict) for verdict in ("missing", "failed", "lost")}
    standing = Standing(
        job="letters", now_us=NOW_US, grace_s=300.0, recorded=True, retired=False, since_us=0, schedule=schedule,
        zone="UTC", readable=True, last=None, ended=None, last_success=None, usual_duration_s=None, running=(),
        holder=None, failures_in_a_row=0, refusals_in_a_row=0, refused_since_us=None, refused_why=None,
        refused_by=None, newest=windows[-1] if windows else None, **only,
        suspects=tuple(window for window in windows if window.suspect), undelivered=(), journaled=0,
        journaled_outcome="", upcoming=None,
    )  # fmt: skip
    return standing._replace(**fields)


def told(standing: Standing, **limits: Any) -> list[tuple[str, str]]:
    """Return the reasons, after making sure that the level is that of the first."""
    found = assess(standing, LIMITS._replace(**limits))
    assert found.level == (found.reasons[0].level if found.reasons else "ok")
    return [tuple(reason) for reason in found.reasons]


WELL = judged(30, "succeeded", "run 9 succeeded")


@pytest.mark.parametrize("verdict", ["succeeded", "waived", "running"])
def test_a_window_that_is_answered_is_ok(verdict: str) -> None:
    assert told(stand(judged(30, verdict))) == []


def test_a_job_of_which_nothing_was_due_yet_is_ok() -> None:
    assert told(stand()) == []


@pytest.mark.parametrize(
    ("windows", "text"),
    [
        ([judged(30)], "window 2026-03-30T02:30+00:00 missing: no start at all"),
        ([judged(28), judged(29), judged(30)], "window 2026-03-30T02:30+00:00 missing (2 more): no start at all"),
        (
            [judged(30, "failed", "run 9 failed with exit status 3")],
            "window 2026-03-30T02:30+00:00 failed: run 9 failed with exit status 3",
        ),
        (
            [judged(29, "lost", "run 8 was lost"), judged(30, "lost", "run 9 was lost")],
            "window 2026-03-30T02:30+00:00 lost (1 more): run 9 was lost",
        ),
    ],
)
def test_the_newest_window_is_critical(windows: list[Judged], text: str) -> None:
    assert told(stand(*windows)) == [("critical", text)]


def test_failures_in_a_row_are_counted() -> None:
    failed = stand(judged(30, "failed", "run 9 timed out"), failures_in_a_row=4)
    [(_, text)] = told(failed)
    assert text == "window 2026-03-30T02:30+00:00 failed (4 failures in a row): run 9 timed out"


def test_a_failed_window_within_its_grace_waits_for_whoever_holds_the_lock() -> None:
    held = Holding(412, "sleep 9", 5.0, None, (412,))
    failed = stand(judged(30, "failed", "run 9 failed"), holder=held)
    assert told(failed._replace(grace_s=10 * 3600.0)) == []
    assert told(failed._replace(grace_s=10 * 3600.0, holder=None))[0][0] == "critical"
    assert told(failed)[0][0] == "critical"


def test_a_failure_is_not_over_while_the_next_window_runs() -> None:
    failed = judged(29, "failed", "run 7 failed")
    again = stand(failed, judged(30, "running"), ended=run("failed", exit_status=3, due_us=failed.window.due_us))
    assert told(again) == [("critical", "run 7 failed (exit status 3)")]
    assert told(again._replace(ended=run("succeeded", due_us=failed.window.due_us))) == []


def test_a_window_that_failed_and_runs_again_is_ok_for_now() -> None:
    again = judged(30, "running")
    assert told(stand(again, ended=run("failed", exit_status=3, due_us=again.window.due_us))) == []


def test_older_holes_are_a_warning() -> None:
    assert told(stand(judged(28), WELL)) == [("warning", "window 2026-03-28T02:30+00:00 missing")]
    assert told(stand(judged(27), judged(28), judged(29), WELL)) == [
        ("warning", "3 windows missing, from 2026-03-27T02:30+00:00 to 2026-03-29T02:30+00:00")
    ]


def test_an_older_lost_window_is_a_warning_where_it_is_held() -> None:
    lost = stand(judged(28, "lost"), WELL)
    assert told(lost) == [("warning", "window 2026-03-28T02:30+00:00 lost and held")]
    assert told(lost, holds_lost=False) == []


def test_an_older_failure_is_history() -> None:
    assert told(stand(judged(28, "failed"), WELL)) == []


def test_a_suspect_run_is_a_warning() -> None:
    suspect = judged(30, "succeeded", suspect="0.1 s, sooner than 60 s")
    assert told(stand(suspect)) == [("warning", "window 2026-03-30T02:30+00:00 suspect: 0.1 s, sooner than 60 s")]


HOLDER = Holder("12345678", 12, 411, 412, "sleep 9", NOW_US - 2 * HOUR_US)
HOLDING = Holding(412, "sleep 9", 5.0, 12, (411, 412))


@pytest.mark.parametrize(("number", "level"), [(2, None), (3, "critical"), (4, "critical")])
def test_refusals_are_critical_from_the_third_on(number: int, level: str | None) -> None:
    since_us = NOW_US - HOUR_US
    refused = stand(
        WELL, refusals_in_a_row=number, refused_since_us=since_us, refused_why="overlap", refused_by=HOLDER,
        holder=HOLDING,
    )  # fmt: skip
    expected = f"refused {number} times in a row since 2026-03-30T11:00:00Z, by run 12 (pid 412, for 2h: sleep 9)"
    assert told(refused) == ([(level, expected)] if level else [])


def test_a_run_that_refused_others_and_has_gone_since_is_not_said_to_live() -> None:
    over = stand(WELL, refusals_in_a_row=3, refused_since_us=NOW_US, refused_why="overlap", refused_by=HOLDER)
    said = "refused 3 times in a row since 2026-03-30T12:00:00Z, by run 12 (pid 412: sleep 9), which has gone"
    assert told(over) == [("critical", said)]
    assert told(over._replace(holder=HOLDING._replace(pid=99, pids=(99,)))) == [("critical", said)]


def test_a_job_may_set_from_when_on_refusals_are_critical() -> None:
    once = stand(WELL, refusals_in_a_row=1, refused_since_us=NOW_US, refused_why="held")
    assert told(once, alarm_after=1) == [("critical", "refused at 2026-03-30T12:00:00Z (held)")]


def test_an_overdue_run_is_a_warning() -> None:
    late = stand(WELL, running=(running(overdue="longer than usual"),), usual_duration_s=120.0)
    assert told(late) == [("warning", "run 12 runs for 1h, usually 2m: longer than usual")]


def test_a_run_without_its_guard_is_a_warning() -> None:
    alone = stand(WELL, running=(running(state="guard gone"),))
    assert told(alone) == [("warning", "the guard of run 12 is gone, its command goes on")]


def test_a_run_of_which_nothing_is_to_be_seen_is_a_warning() -> None:
    alone = stand(WELL, running=(running(state="unknown", because="its guard is gone"),))
    assert told(alone) == [("warning", "run 12: its guard is gone")]


def test_a_ping_that_was_not_delivered_and_a_journal_that_is_not_empty_are_warnings() -> None:
    waiting = Undelivered("failure", "https://hc.example/…", "HTTP 503", waits=True)
    assert told(stand(WELL, undelivered=(waiting,), journaled=2)) == [
        ("warning", "failure ping to https://hc.example/… not delivered, it waits in the spool: HTTP 503"),
        ("warning", "2 entries wait in the journal"),
    ]


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        ("running", [("critical", "run 7 failed")]),
        ("succeeded", []),
        ("timed_out", [("critical", "the last run, which waits in the journal, timed out")]),
    ],
)
def test_without_a_schedule_a_run_in_the_journal_is_the_last(outcome: str, expected: list[tuple[str, str]]) -> None:
    standing = stand(schedule=None, ended=run("failed"), journaled=1, journaled_outcome=outcome)
    assert told(standing) == [*expected, ("warning", "1 entry waits in the journal")]


@pytest.mark.parametrize(
    ("outcome", "fields", "expected"),
    [
        ("succeeded", {}, []),
        ("succeeded", {"suspect": "too soon"}, [("warning", "run 7 is suspect: too soon")]),
        ("failed", {"exit_status": 3}, [("critical", "run 7 failed (exit status 3)")]),
        ("timed_out", {"exit_status": 143}, [("critical", "run 7 timed out (exit status 143)")]),
        ("killed", {"why": "oom"}, [("critical", "run 7 killed (oom)")]),
        ("lost", {"why": "the host restarted"}, [("critical", "run 7 lost (the host restarted)")]),
    ],
)
def test_the_last_run_of_a_job_without_a_schedule(outcome: str, fields: Any, expected: Any) -> None:
    assert told(stand(schedule=None, ended=run(outcome, **fields))) == expected


SUCCESS = Success("7d0f3c59", 7, NOW_US - 26 * HOUR_US, None, None)


@pytest.mark.parametrize(
    ("max_age_h", "level"), [(None, None), (26, None), (25, "warning"), (13, "warning"), (12.9, "critical")]
)
def test_the_last_success_may_be_as_old_as_max_age(max_age_h: float | None, level: str | None) -> None:
    found = told(stand(schedule=None, last_success=SUCCESS), max_age_s=max_age_h and max_age_h * 3600)
    assert [each for each, _ in found] == ([level] if level else [])


def test_a_job_that_never_succeeded_ages_from_when_it_became_known() -> None:
    young = stand(schedule=None, since_us=NOW_US - 3 * HOUR_US)
    assert told(young, max_age_s=3600.0) == [
        ("critical", "there was no success since it became known, 3h ago, longer than max_age (1h)")
    ]


def test_a_job_that_is_only_configured_is_no_all_clear() -> None:
    assert told(stand(recorded=False)) == [
        ("warning", "only the configuration names it: nothing is recorded of it yet")
    ]
    assert told(stand(judged(30), recorded=False)) == [
        ("critical", "window 2026-03-30T02:30+00:00 missing: no start at all, and nothing is recorded of the job")
    ]


def test_a_schedule_that_cannot_be_read_here_is_unknown() -> None:
    assert told(stand(readable=False, zone="Mars/Olympus")) == [
        ("unknown", "its schedule '30 2 * * *' in Mars/Olympus cannot be read on this host")
    ]


def test_of_a_retired_job_only_what_still_runs_counts() -> None:
    gone = stand(judged(30), retired=True, schedule=None, refusals_in_a_row=9, running=(running(state="guard gone"),))
    assert told(gone) == [("warning", "the guard of run 12 is gone, its command goes on")]


def test_the_gravest_reason_comes_first() -> None:
    bad = stand(judged(28), judged(30, "failed", "run 9 failed"), journaled=1, readable=False)
    assert [level for level, _ in told(bad)] == ["critical", "unknown", "warning", "warning"]


def test_critical_is_worse_than_unknown_and_that_is_worse_than_a_warning() -> None:
    assert worst(["ok", "warning", "critical", "unknown"]) == "critical"
    assert worst(["ok", "warning", "unknown"]) == "unknown"
    assert worst([]) == "ok"

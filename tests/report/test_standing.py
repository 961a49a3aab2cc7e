"""How jobs stand: the store, the configuration, the journal and what lives, at a moment that stands still."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from entries import WINDOW, run_id
from runguard import paths
from runguard.config import strict
from runguard.coverage.standing import Standing
from runguard.guard import host, runfile
from runguard.heartbeat import spool
from runguard.heartbeat.body import Body
from runguard.heartbeat.slot import Slot
from runguard.heartbeat.styles import Event
from runguard.instant import from_rfc3339, rfc3339
from runguard.report.assessment import assessments
from runguard.store.journal import Journal
from runguard.store.reads import Ping
from runguard.store.sqlite import open_reader
from shell import AUTHOR, Shell

NOW = "2026-03-30T12:00:00Z"  # the last due was 01:30Z
LONDON = {"expression": "30 2 * * *", "zone": "Europe/London", "policy": "vixie", "gap": None, "fold": None}


def changed(job: str = "letters", number: int = 1, after: str = "2026-03-26T02:30:00Z", **schedule: Any) -> Any:
    entry = {"job": job, "change": "registered", "revision": number, "schedule": {**LONDON, **schedule}}
    return "job.changed", after, {**entry, "after": after}


def window(day: str, due: str = "02:30:00Z", offset: str = "+00:00") -> dict[str, Any]:
    """Return the window of the small hours of a day of March 2026."""
    key = f"L2026-03-{day}T02:30"
    return {**WINDOW, "key": key, "due": f"2026-03-{day}T{due}", "start": f"2026-03-{int(day) - 1:02}T02:30:00Z",
            "label": f"2026-03-{day}T02:30{offset}", "nominal": key[1:]}  # fmt: skip


@pytest.fixture
def stand(shell: Shell) -> Callable[..., Standing]:
    """Return how a job stands: `stand("letters", now="…")`."""

    def look(job: str = "letters", now: str = NOW) -> Standing:
        kept = paths.places(str(shell.state), None)
        store = open_reader(kept.store) if os.path.exists(kept.store) else None
        loaded = strict.load(shell.environ)
        [found] = assessments(shell.environ, loaded, store, kept, from_rfc3339(now), [job])
        return found.standing

    return look


def keys(windows: Any) -> list[str]:
    return [each.window.key for each in windows]


# Windows


def test_the_windows_of_the_look_back_by_their_verdicts(shell: Shell, stand: Any, started: Any, finished: Any) -> None:
    shell.write(
        changed(),
        started(1, "2026-03-28T02:30:01Z", window=window("28")), finished(1, "failed", exit_status=3),
        started(2, "2026-03-29T01:30:01Z"), finished(2, "lost"),
    )  # fmt: skip
    found = stand()
    assert keys(found.missing) == ["L2026-03-27T02:30", "L2026-03-30T02:30"]
    assert keys(found.failed) == ["L2026-03-28T02:30"]
    assert keys(found.lost) == ["L2026-03-29T02:30"]
    assert (found.newest.window.key, found.newest.verdict) == ("L2026-03-30T02:30", "missing")
    assert found.next_due_us == from_rfc3339("2026-03-31T01:30:00Z")
    assert (found.schedule, found.zone, found.readable, found.retired) == ("30 2 * * *", "Europe/London", True, False)


def test_a_window_within_its_grace_is_not_the_newest(shell: Shell, stand: Any) -> None:
    shell.write(changed())
    assert stand(now="2026-03-30T01:34:59Z").newest.window.key == "L2026-03-29T02:30"
    assert stand(now="2026-03-30T01:35:00Z").newest.window.key == "L2026-03-30T02:30"


def test_a_daily_job_is_looked_at_over_thirty_windows_and_a_minutely_one_over_seven_days(
    shell: Shell, stand: Any
) -> None:
    shell.write(changed(after="2026-01-01T02:30:00Z"),
                changed("poll", after="2026-01-01T00:00:00Z", expression="* * * * *"))  # fmt: skip
    assert len(stand().missing) == 30
    assert len(stand("poll").missing) == 10_075  # of 10,080: those of the last five minutes are pending


def test_a_suspect_success_is_told(shell: Shell, stand: Any, started: Any, finished: Any) -> None:
    shell.write(changed(), started(1), finished(1, suspect="took 0.1 s, less than min_time"))
    [suspect] = stand().suspects
    assert (suspect.window.key, suspect.suspect) == ("L2026-03-29T02:30", "took 0.1 s, less than min_time")


def test_a_retired_job_is_due_no_more(shell: Shell, stand: Any) -> None:
    gone = {"job": "letters", "change": "retired", "revision": 2, "schedule": None, "after": "2026-03-28T02:30:00Z"}
    shell.write(changed(), ("job.changed", "2026-03-28T12:00:00Z", {**gone, "reason": "gone"}))
    found = stand()
    assert (found.retired, found.schedule, found.next_due_us) == (True, None, None)
    assert keys(found.missing) == ["L2026-03-27T02:30", "L2026-03-28T02:30"]


def test_a_zone_that_this_host_does_not_know_is_no_all_clear(shell: Shell, stand: Any) -> None:
    shell.write(changed(zone="Mars/Olympus"))
    found = stand()
    assert (found.readable, found.zone, found.newest) == (False, "Mars/Olympus", None)


# Runs


def test_a_job_that_never_ran(shell: Shell, stand: Any) -> None:
    shell.write(changed())
    found = stand()
    assert found.recorded
    assert (found.last, found.ended, found.last_exit, found.last_success, found.usual_duration_s) == (None,) * 5
    assert (found.running, found.holder, found.failures_in_a_row, found.refusals_in_a_row) == ((), None, 0, 0)


def test_the_last_success_and_the_failures_since(shell: Shell, stand: Any, started: Any, finished: Any) -> None:
    shell.write(
        started(1), finished(1), started(2), finished(2, "failed", exit_status=3), started(3),
        finished(3, "killed", exit_status=None, signal=9, returned=137),
    )  # fmt: skip
    found = stand()
    assert (found.last_success.number, found.last_success.finished_us) == (1, from_rfc3339("2026-03-29T01:31:34Z"))
    assert (found.failures_in_a_row, found.last.number, found.ended.number, found.last_exit) == (2, 3, 3, 137)


def test_the_usual_duration_is_the_median_of_three_or_more_successes(
    shell: Shell, stand: Any, started: Any, finished: Any
) -> None:
    shell.write(started(1), finished(1, duration_s=10.0), started(2), finished(2, duration_s=900.0))
    assert stand().usual_duration_s is None
    shell.write(started(3), finished(3, duration_s=20.0), started(4), finished(4, duration_s=0.1, suspect="short"))
    assert stand().usual_duration_s == 20.0


def test_a_run_that_died_without_a_finish_is_lost_and_a_failure(
    shell: Shell, stand: Any, started: Any, finished: Any
) -> None:
    shell.write(changed(), started(1), finished(1), started(2))
    found = stand()
    assert (found.last.outcome, found.ended.number, found.running, found.failures_in_a_row) == ("lost", 2, (), 1)
    assert found.last.why == "the host restarted"


# Refusals


def test_refusals_since_the_last_start_that_ran(shell: Shell, stand: Any, started: Any, refused: Any) -> None:
    shell.write(refused(1), started(2), refused(3), refused(4, why="duplicate", returned=0), refused(5, why="held"))
    found = stand()
    assert (found.refusals_in_a_row, found.refused_why) == (2, "held")
    assert found.refused_since_us == from_rfc3339("2026-03-29T01:30:09Z")
    assert (found.refused_by.number, found.refused_by.command_pid) == (1, 4712)
    assert found.refused_by.command == "/opt/letters/send --all"


@pytest.mark.parametrize("holder", [None, {}, {"run_id": "1"}, {"started": "soon"}, ["who"]])
def test_a_refusal_that_names_nobody_is_counted_all_the_same(
    shell: Shell, stand: Any, refused: Any, holder: Any
) -> None:
    shell.write(refused(1, holder=holder))
    assert (stand().refusals_in_a_row, stand().refused_by) == (1, None)


def test_a_claim_elsewhere_that_went_well_is_no_refusal(shell: Shell, stand: Any, started: Any, refused: Any) -> None:
    shell.write(started(1), refused(2, why="claimed", returned=0, holder=None), refused(3, why="claimed", holder=None))
    found = stand()
    assert (found.refusals_in_a_row, found.refused_by) == (1, None)


# What lives


@pytest.fixture
def living(shell: Shell, started: Any) -> Any:
    """Start runs that this very process guards; `label` and more as in an entry."""
    files = []

    def start(number: int, at: str, **fields: Any) -> None:
        directory = shell.state / "db" / "runs"
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        ticks = host.start_ticks(os.getpid())
        files.append(runfile.create(str(directory), run_id(number), guard_start=ticks))
        shell.write(started(number, at, boot_id=host.boot_id(), guard_pid=os.getpid(), guard_start=ticks, **fields))

    yield start
    for file in files:
        file.remove()


def test_a_run_that_lives(stand: Any, living: Any) -> None:
    living(1, "2026-03-30T11:59:30Z", window=None)
    [run] = stand().running
    assert (run.number, run.guard_pid, run.command_pid, run.running_s) == (1, os.getpid(), None, 30.0)
    assert (run.command, run.state, run.overdue) == ("/opt/letters/send --all", "alive", "")


@pytest.mark.parametrize(("now", "overdue"), [("12:01:00", ""), ("12:01:01", "longer than usual")])
def test_a_short_job_is_overdue_after_a_minute(
    shell: Shell, stand: Any, living: Any, started: Any, finished: Any, now: str, overdue: str
) -> None:
    shell.write(*(each for n in (1, 2, 3) for each in (started(n), finished(n, duration_s=2.0))))
    living(4, "2026-03-30T12:00:00Z", window=None)
    assert [run.overdue for run in stand(now=f"2026-03-30T{now}Z").running] == [overdue]


def test_a_long_job_is_overdue_after_three_times_its_usual_duration(
    shell: Shell, stand: Any, living: Any, started: Any, finished: Any
) -> None:
    shell.write(*(each for n in (1, 2, 3) for each in (started(n), finished(n, duration_s=600.0))))
    living(4, "2026-03-30T12:00:00Z", window=None)
    assert not stand(now="2026-03-30T12:30:00Z").overdue
    assert stand(now="2026-03-30T12:30:01Z").overdue


def test_a_run_is_overdue_once_another_window_has_become_due(shell: Shell, stand: Any, living: Any) -> None:
    shell.write(changed())
    living(1, "2026-03-29T01:30:01Z")
    assert [run.overdue for run in stand(now="2026-03-30T01:29:59Z").running] == [""]
    assert [run.overdue for run in stand(now="2026-03-30T01:30:00Z").running] == [
        "another window has become due meanwhile"
    ]


def test_a_late_catch_up_is_not_overdue_for_the_windows_before_its_start(shell: Shell, stand: Any, living: Any) -> None:
    shell.write(changed())
    living(1, "2026-03-30T11:00:00Z", window=window("27"))
    assert not stand().overdue


# What waits


def test_what_waits_in_the_journal_is_not_missing(shell: Shell, stand: Any, started: Any, finished: Any) -> None:
    shell.write(changed())
    journal = Journal(str(shell.state), AUTHOR)
    for number, day, outcome in ((7, "27", "succeeded"), (8, "28", "timed_out"), (9, "29", None)):
        kind, at, fields = started(number, window=window(day))
        journal.write(kind, from_rfc3339(at), {**fields, "number": None})
        if outcome:
            kind, at, fields = finished(number, outcome)
            journal.write(kind, from_rfc3339(at), fields)
    found = stand(now="2026-03-29T12:00:00Z")
    assert (found.journaled, keys(found.missing), keys(found.failed)) == (5, [], ["L2026-03-28T02:30"])
    assert (found.newest.verdict, found.newest.because) == ("running", "a run that waits in the journal: running")
    assert found.journaled_outcome == "running"


def test_a_report_that_was_not_delivered(shell: Shell, stand: Any, started: Any, finished: Any) -> None:
    shell.write(started(1), finished(1))
    sent = Ping("success", "plain", "https://hc.example/…", "retry", None, 3, 1, 1, "timed out")
    with shell.open() as store:
        store.record_pings(run_id(1), [sent._replace(event="start"), sent])
    assert stand().undelivered == (("success", "https://hc.example/…", "timed out", False),)
    with shell.open() as store:
        store.record_pings(run_id(1), [sent._replace(verdict="accepted", http_status=200, error=None)])
    assert stand().undelivered == ()


def test_an_outcome_that_waits_in_the_spool_is_told_once(shell: Shell, stand: Any, started: Any, finished: Any) -> None:
    shell.write(started(1), finished(1, "failed"))
    directory = str(shell.state / "spool")
    told = Event("failure", run_id(1), 3, None, False, Body("failed"))
    address = spool.address(directory, "https://hc.example/1")
    slot = Slot("letters", 1, 1, None, 1, "HTTP 503", "plain", "https://hc.example/…", "", address, told)
    spool.keep(directory, slot, 1)
    with shell.open() as store:
        store.record_pings(run_id(1), [Ping("failure", "plain", "https://hc.example/…", "retry", 503, 1, 1, 1, "")])
    assert stand().undelivered == (("failure", "https://hc.example/…", "HTTP 503", True),)
    assert stand("other").undelivered == ()


# The configuration


def after(shell: Shell, seconds: int) -> str:
    """Return an instant so long after the configuration was changed."""
    return rfc3339(os.stat(shell.config).st_ctime_ns // 1000 + seconds * 1_000_000)


def test_a_job_that_only_the_configuration_names_is_expected_from_the_change_on(shell: Shell, stand: Any) -> None:
    shell.write(changed("other"))
    shell.config.write_text('[jobs.letters]\nschedule = "* * * * *"\ngrace = 0\n')
    assert (stand(now=after(shell, 0)).recorded, len(stand(now=after(shell, 0)).missing)) == (False, 0)
    assert len(stand(now=after(shell, 120)).missing) == 2


def test_a_schedule_that_was_edited_counts_from_the_edit_on(shell: Shell, stand: Any) -> None:
    shell.write(changed(expression="0 0 1 1 *"))
    shell.config.write_text('[jobs.letters]\nschedule = "* * * * *"\ngrace = 0\n')
    found = stand(now=after(shell, 180))
    assert (found.schedule, [each.window.key[0] for each in found.missing]) == ("* * * * *", ["U", "U", "U"])


def test_every_job_on_record_or_in_the_configuration_is_told_by_name(shell: Shell, started: Any) -> None:
    shell.write(changed("b"), started(1, job="c", window=None))
    shell.config.write_text('[jobs.a]\nschedule = "@daily"\n[jobs.d]\ntimeout = 5\n')
    kept = paths.places(str(shell.state), None)
    loaded = strict.load(shell.environ)
    found = assessments(shell.environ, loaded, open_reader(kept.store), kept, from_rfc3339(NOW))
    assert [each.standing.job for each in found] == ["a", "b", "c", "d"]
    found = assessments(shell.environ, loaded, None, kept, from_rfc3339(NOW))
    assert [each.standing.job for each in found] == ["a", "d"]

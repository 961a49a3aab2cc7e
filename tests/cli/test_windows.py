"""`windows`: every expected window of a span with its verdict and why."""

from __future__ import annotations

import csv
import json
import re
import sys
from typing import Any

import pytest

from runguard.model import VERDICTS

LONDON = {"expression": "30 2 * * *", "zone": "Europe/London", "policy": "vixie", "gap": None, "fold": None}


def changed(job: str = "letters", after: str = "2026-03-26T02:30:00Z", **schedule: Any) -> tuple[str, str, Any]:
    entry = {"job": job, "change": "registered", "revision": 1, "schedule": {**LONDON, **schedule}, "after": after}
    return "job.changed", "2026-03-26T03:00:00Z", entry


def window(day: str, start: str, due: str, offset: str = "+00:00") -> dict[str, Any]:
    return {
        "key": f"L{day}T02:30", "start": start, "due": due, "label": f"{day}T02:30{offset}", "nominal": f"{day}T02:30",
        "how": "real", "fold": 0, "collapsed": [], "zone": "Europe/London", "tzdata": "2026a", "schedule": LONDON,
    }  # fmt: skip


# 02:30 in London is 02:30 UTC before 29 March 2026, and 01:30 UTC from then on.
FRIDAY = window("2026-03-27", "2026-03-26T02:30:00Z", "2026-03-27T02:30:00Z")
SATURDAY = window("2026-03-28", "2026-03-27T02:30:00Z", "2026-03-28T02:30:00Z")
MONDAY = window("2026-03-30", "2026-03-29T01:30:00Z", "2026-03-30T01:30:00Z", "+01:00")
SPAN = ("--since", "2026-03-26", "--until", "2026-03-31")


@pytest.fixture
def letters(shell: Any, started: Any, finished: Any, refused: Any) -> Any:
    """Friday missing, Saturday refused only, Sunday (the 29th) succeeded, Monday failed twice, Tuesday waived."""
    waived = {"job": "letters", "key": "L2026-03-31T02:30", "since": None, "until": None, "reason": "no paper"}
    shell.write(
        changed(),
        refused(1, window=SATURDAY),
        started(2),
        finished(2),
        started(3, window=MONDAY),
        finished(3, "failed", exit_status=3),
        started(4, window=MONDAY, attempt=2),
        finished(4, "timed_out", exit_status=None, why="after 5 s"),
        ("window.waived", "2026-03-31T12:00:00Z", {**waived, "withdraw": False}),
    )
    return shell


def verdicts(shell: Any, *arguments: str) -> list[tuple[str, str]]:
    return [(found["key"], found["verdict"]) for found in shell.json("windows", *arguments)]


def test_every_expected_window_has_one_verdict_oldest_first(letters: Any) -> None:
    assert verdicts(letters, "letters", "--since", "2026-03-26", "--until", "2026-03-31T02:30") == [
        ("L2026-03-27T02:30", "missing"),
        ("L2026-03-28T02:30", "missing"),
        ("L2026-03-29T02:30", "succeeded"),
        ("L2026-03-30T02:30", "failed"),
        ("L2026-03-31T02:30", "waived"),
    ]


def test_the_reason_is_told_in_a_clause(letters: Any) -> None:
    assert [found["because"] for found in letters.json("windows", *SPAN)] == [
        "no start at all",
        "refused by run 1 (overlap)",
        "run 2 succeeded",
        "failed twice, last run 4 timed out (after 5 s)",
    ]


def test_a_window_by_the_json_contract(letters: Any) -> None:
    assert letters.json("windows", "letters", *SPAN)[3] == {
        "job": "letters",
        "key": "L2026-03-30T02:30",
        "start": "2026-03-29T01:30:00Z",
        "due": "2026-03-30T01:30:00Z",
        "label": "2026-03-30T02:30+01:00",
        "nominal": "2026-03-30T02:30",
        "how": "real",
        "fold": 0,
        "collapsed": [],
        "verdict": "failed",
        "because": "failed twice, last run 4 timed out (after 5 s)",
        "runs": [3, 4],
    }


def test_a_table_that_is_piped_is_plain_and_whole(letters: Any) -> None:
    assert letters("windows", *SPAN).stdout.splitlines() == [
        "JOB      WINDOW                  VERDICT    RUNS  WHY",
        "letters  2026-03-27T02:30+00:00  missing          no start at all",
        "letters  2026-03-28T02:30+00:00  missing    1     refused by run 1 (overlap)",
        "letters  2026-03-29T02:30+01:00  succeeded  2     run 2 succeeded",
        "letters  2026-03-30T02:30+01:00  failed     3 4   failed twice, last run 4 timed out (after 5 s)",
    ]


def test_csv_has_a_column_for_every_fact(letters: Any) -> None:
    rows = list(csv.DictReader(letters("windows", *SPAN, "--format", "csv").stdout.splitlines()))
    assert (rows[3]["verdict"], rows[3]["runs"], rows[3]["collapsed"]) == ("failed", "[3, 4]", "[]")


def test_a_narrow_terminal_keeps_window_and_verdict(letters: Any) -> None:
    shown = re.sub(r"\x1b\[[0-9;]*m", "", letters.on_terminal("windows", *SPAN, columns=50))
    lines = [line.rstrip() for line in shown.splitlines()]
    assert max(map(len, lines)) <= 50
    assert lines[1].startswith("letters 2026-03-27T02:30 missing")


def test_the_span_is_since_exclusive_until_inclusive(letters: Any) -> None:
    span = ("--since", "2026-03-28T02:30", "--until", "2026-03-30T02:30")
    assert [key for key, _ in verdicts(letters, "letters", *span)] == ["L2026-03-29T02:30", "L2026-03-30T02:30"]


def test_a_long_span_tells_every_window_once(shell: Any) -> None:
    shell.write(changed(after="2026-01-01T02:30:00Z"))
    found = shell.json("windows", "letters", "--since", "2026-01-01 03:00", "--until", "2026-05-01")
    assert [window["nominal"][:10] for window in found[:1] + found[-1:]] == ["2026-01-02", "2026-04-30"]
    assert len({window["key"] for window in found}) == len(found) == 119


def test_a_window_that_other_zone_data_moved_is_told_once(shell: Any, started: Any, finished: Any) -> None:
    # Windows are looked at in pieces of 31 days: this one was recorded in the piece after the one that expects it.
    moved = window("2026-02-01", "2026-01-31T03:30:00Z", "2026-02-01T03:30:00Z", "-01:00")
    shell.write(changed(after="2025-12-01T02:30:00Z"), started(1, window=moved), finished(1))
    found = shell.json("windows", "letters", "--since", "2026-01-01 03:00", "--until", "2026-02-03")
    assert [(each["key"], each["verdict"], each["due"]) for each in found if each["runs"]] == [
        ("L2026-02-01T02:30", "succeeded", "2026-02-01T03:30:00Z")
    ]
    assert len(found) == 32


def test_windows_to_come_have_no_verdict(shell: Any) -> None:
    shell.write(changed(expression="0 0 * * *", zone="UTC"))
    assert len(shell.json("windows", "letters", "--since", "7d", "--until", "in 3 days")) == 7


def test_dates_are_those_of_the_jobs_zone(shell: Any) -> None:
    shell.write(changed(expression="30 0 * * *", zone="Pacific/Auckland", after="2026-06-30T00:00:00Z"))
    # 2 July in Auckland begins at 12:00 UTC on 1 July
    found = verdicts(shell, "letters", "--since", "2026-07-02", "--until", "2026-07-03")
    assert found == [("L2026-07-02T00:30", "missing")]


def test_one_verdict_can_be_asked_for(letters: Any) -> None:
    assert verdicts(letters, *SPAN, "--verdict", "failed") == [("L2026-03-30T02:30", "failed")]


def test_several_verdicts_can_be_asked_for(letters: Any) -> None:
    told = verdicts(letters, *SPAN)
    kinds = {"failed", told[0][1]}
    assert kinds != {"failed"}
    options = [word for kind in kinds for word in ("--verdict", kind)]
    assert verdicts(letters, *SPAN, *options) == [each for each in told if each[1] in kinds]


def test_nothing_is_expected_before_the_registration(letters: Any) -> None:
    assert verdicts(letters, "--since", "2026-01-01", "--until", "2026-03-27")[:1] == []


def test_a_run_outside_of_the_schedule_is_told_too(shell: Any, started: Any, finished: Any) -> None:
    shell.write(changed(expression="40 2 * * *"), started(1), finished(1))
    assert verdicts(shell, "letters", "--since", "2026-03-28 03:00", "--until", "2026-03-29 03:00") == [
        ("L2026-03-29T02:30", "succeeded"),
        ("L2026-03-29T02:40", "missing"),
    ]


def test_a_run_whose_guard_and_command_are_gone_is_lost(shell: Any, started: Any) -> None:
    shell.write(changed(), started(1))
    (found,) = shell.json("windows", "letters", "--since", "2026-03-29", "--until", "2026-03-30")
    assert (found["verdict"], found["because"]) == ("lost", "run 1 was lost (the host restarted)")


def test_a_run_that_lives_is_running(shell: Any) -> None:
    run = ("run", "-j", "letters", "-s", "0 0 * * *", "-z", "UTC", "--scheduled-at", "2026-03-29T00:00Z", "-c")
    command = '"$0" -m runguard windows letters --since 2026-03-28T12:00 --until 2026-03-29T12:00 --json'
    done = shell(*run, command.replace("$0", sys.executable))
    (found,) = json.loads(done.stdout)
    assert (found["verdict"], found["because"]) == ("running", "run 1 is running")


def test_a_window_is_pending_within_the_jobs_grace(shell: Any) -> None:
    # Within the grace of 900 days lies every window since 2026-03-27 for a long time to come, whatever today is.
    shell.write(changed())
    shell.config.write_text('[jobs.letters]\ngrace = "900d"\n')
    assert verdicts(shell, "letters", "--since", "2026-03-26", "--until", "2026-03-27 03:00") == [
        ("L2026-03-27T02:30", "pending")
    ]


def test_all_jobs_are_told_by_name(letters: Any, started: Any) -> None:
    letters.write(changed("backup", zone="UTC"), started(9, job="adhoc", window=None))
    told = [
        found["job"] for found in letters.json("windows", "--since", "2026-03-27T12:00", "--until", "2026-03-28T12:00")
    ]
    assert told == ["backup", "letters"]


def test_a_retired_job_is_expected_up_to_there(letters: Any) -> None:
    entry = {"job": "letters", "change": "retired", "revision": 2, "schedule": None, "after": "2026-03-28T02:30:00Z"}
    letters.write(("job.changed", "2026-03-28T12:00:00Z", {**entry, "reason": "gone"}))
    assert verdicts(letters, "letters", *SPAN)[:2] == [
        ("L2026-03-27T02:30", "missing"),
        ("L2026-03-28T02:30", "missing"),
    ]
    assert ("L2026-03-31T02:30", "waived") not in verdicts(letters, "letters", "--since", "2026-03-26")


def test_windows_tile_over_an_edit(letters: Any) -> None:
    schedule = {**LONDON, "expression": "0 12 * * *"}
    entry = {"job": "letters", "change": "schedule", "revision": 2, "schedule": schedule}
    letters.write(("job.changed", "2026-03-28T12:00:00Z", {**entry, "after": "2026-03-28T12:00:00Z"}))
    told = letters.json("windows", "letters", "--since", "2026-03-27", "--until", "2026-03-29T13:00")
    assert [(found["key"], found["start"]) for found in told] == [
        ("L2026-03-27T02:30", "2026-03-26T02:30:00Z"),
        ("L2026-03-28T02:30", "2026-03-27T02:30:00Z"),
        ("L2026-03-29T02:30", "2026-03-28T02:30:00Z"),
        ("L2026-03-29T12:00", "2026-03-28T02:30:00Z"),
    ]


def test_a_job_of_the_configuration_is_expected_before_it_ever_ran(shell: Any) -> None:
    shell.config.write_text('[jobs.letters]\nschedule = "30 2 * * *"\ntimezone = "Europe/London"\n')
    assert verdicts(shell, "letters") == []
    with shell.open() as store:
        assert [revision.number for revision in store.revisions("letters")] == [1]


def test_without_since_it_looks_back_seven_days(shell: Any) -> None:
    shell.write(changed(expression="0 0 * * *", zone="UTC"))
    assert len(shell.json("windows", "letters")) == 7


def test_a_person_is_told_where_there_is_nothing(letters: Any, shell: Any) -> None:
    done = letters("windows", "letters", "--since", "2026-01-01", "--until", "2026-02-01")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "runguard: no such windows of letters\n")


def test_a_host_without_records_has_nothing_to_show(shell: Any) -> None:
    done = shell("windows")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", shell.nothing_recorded)
    assert not shell.state.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["lettres"], "windows: no job 'lettres' on record; did you mean letters?"),
        (["--since", "in 3 days"], "lies ahead; runguard next shows what is to come"),
        (["--since", "2026-03-28", "--until", "2026-03-27"], "is not before --until (2026-03-27T00:00:00Z)"),
        (["--verdict", "mising"], "did you mean missing?"),
    ],
)
def test_what_is_refused(letters: Any, arguments: list[str], said: str) -> None:
    done = letters("windows", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith(f"{said}\n")
    assert done.stderr.count("\n") == 1


def test_the_help_names_every_verdict(shell: Any) -> None:
    told = " ".join(shell("windows", "-h").stdout.split())
    assert ", ".join(VERDICTS) in told

"""`missing`: the windows that nobody answered."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from runguard.instant import from_rfc3339
from runguard.store.journal import Journal
from shell import AUTHOR

LONDON = {"expression": "30 2 * * *", "zone": "Europe/London", "policy": "vixie", "gap": None, "fold": None}
UNTIL = ("--until", "2026-03-30 03:00")


def changed(job: str = "letters", **schedule: Any) -> tuple[str, str, Any]:
    entry = {"job": job, "change": "registered", "revision": 1, "schedule": {**LONDON, **schedule}}
    return "job.changed", "2026-03-26T03:00:00Z", {**entry, "after": "2026-03-26T02:30:00Z"}


@pytest.fixture
def letters(shell: Any, started: Any, finished: Any, refused: Any) -> Any:
    """Of 27 to 30 March, run 1 answered the 29th, and run 2 was refused on the 28th."""
    saturday = {
        "key": "L2026-03-28T02:30", "start": "2026-03-27T02:30:00Z", "due": "2026-03-28T02:30:00Z",
        "label": "2026-03-28T02:30+00:00", "nominal": "2026-03-28T02:30", "how": "real", "fold": 0, "collapsed": [],
        "zone": "Europe/London", "tzdata": "2026a", "schedule": LONDON,
    }  # fmt: skip
    shell.write(changed(), started(1), finished(1, "failed"), refused(2, window=saturday))
    return shell


def told(shell: Any, *arguments: str) -> list[dict[str, Any]]:
    """Return what is missing; the status says whether anything is."""
    done = shell("missing", *arguments, "--json")
    found: list[dict[str, Any]] = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (1 if found else 0, "")
    return found


def keys(shell: Any, *arguments: str) -> list[str]:
    return [window["key"] for window in told(shell, *arguments)]


def test_every_hole_since_the_registration_is_told(letters: Any) -> None:
    assert keys(letters, "letters", *UNTIL) == ["L2026-03-27T02:30", "L2026-03-28T02:30", "L2026-03-30T02:30"]


def test_a_missing_window_by_the_json_contract(letters: Any) -> None:
    assert told(letters, "letters", *UNTIL)[1] == {
        "job": "letters",
        "key": "L2026-03-28T02:30",
        "start": "2026-03-27T02:30:00Z",
        "due": "2026-03-28T02:30:00Z",
        "label": "2026-03-28T02:30+00:00",
        "nominal": "2026-03-28T02:30",
        "how": "real",
        "fold": 0,
        "collapsed": [],
        "verdict": "missing",
        "because": "refused by run 2 (overlap)",
        "runs": [2],
    }


def test_a_table_that_is_piped_is_plain(letters: Any) -> None:
    done = letters("missing", "letters", *UNTIL)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "JOB      WINDOW                  VERDICT  RUNS  WHY",
        "letters  2026-03-27T02:30+00:00  missing        no start at all",
        "letters  2026-03-28T02:30+00:00  missing  2     refused by run 2 (overlap)",
        "letters  2026-03-30T02:30+01:00  missing        no start at all",
    ]


@pytest.mark.parametrize(
    ("span", "found"),
    [
        (["--since", "2026-03-27 02:30", *UNTIL], ["L2026-03-28T02:30", "L2026-03-30T02:30"]),
        (["--since", "2026-03-28", "--until", "2026-03-28 02:30"], ["L2026-03-28T02:30"]),
        (["--since", "2026-01-01", "--until", "2026-03-27"], []),
    ],
)
def test_the_span_can_be_narrowed(letters: Any, span: list[str], found: list[str]) -> None:
    assert keys(letters, "letters", *span) == found


def test_a_waived_window_is_not_missing(letters: Any) -> None:
    letters("waive", "letters@L2026-03-27T02:30", "--reason", "no paper")
    letters("waive", "letters", "--since", "2026-03-30", "--until", "2026-03-31", "--reason", "no paper")
    assert keys(letters, "letters", *UNTIL) == ["L2026-03-28T02:30"]


def test_a_waiver_that_was_withdrawn_leaves_it_missing(letters: Any) -> None:
    letters("waive", "letters@L2026-03-27T02:30", "--reason", "no paper")
    letters("waive", "letters@L2026-03-27T02:30", "--withdraw")
    assert told(letters, "letters", *UNTIL)[0]["because"].startswith("no start at all; the waiver was withdrawn by ")


def test_a_window_that_a_catch_up_covers_is_not_missing(letters: Any, started: Any) -> None:
    covers = {"first": "2026-03-27T02:30:00Z", "last": "2026-03-28T02:30:00Z", "count": 2}
    letters.write(started(3, covers=covers, attempt=2))
    assert keys(letters, "letters", *UNTIL) == ["L2026-03-30T02:30"]


def test_a_window_within_the_jobs_grace_is_not_missing_yet(letters: Any) -> None:
    letters.config.write_text('[jobs.letters]\ngrace = "900d"\n')
    assert keys(letters, "letters", *UNTIL) == []


def test_a_retired_job_misses_nothing_later(letters: Any) -> None:
    entry = {"job": "letters", "change": "retired", "revision": 2, "schedule": None, "after": "2026-03-28T02:30:00Z"}
    letters.write(("job.changed", "2026-03-28T12:00:00Z", {**entry, "reason": "gone"}))
    assert keys(letters) == ["L2026-03-27T02:30", "L2026-03-28T02:30"]


def test_nothing_missing_is_status_0(letters: Any) -> None:
    done = letters("missing", "letters", "--until", "2026-03-27")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "runguard: nothing is missing\n")


@pytest.mark.parametrize(("job", "asked"), [("letters", "letters"), (None, "JOB")])
def test_a_person_hears_how_many_are_missing_and_what_to_do(letters: Any, job: str | None, asked: str) -> None:
    done = letters("missing", *([job] if job else []), *UNTIL)
    assert done.stderr == f"runguard: 3 missing; runguard catchup {asked} --dry-run tells what would be run\n"


def test_a_person_hears_of_windows_that_were_answered_badly(shell: Any) -> None:
    shell.config.write_text('[jobs.letters]\nschedule = "* * * * *"\n')
    # Not now: a start in the last seconds of a minute answers the next one, which no query tells before it is due.
    last_minute = f"{datetime.now(UTC) - timedelta(minutes=1):%Y-%m-%dT%H:%MZ}"
    shell("run", "-j", "letters", "--scheduled-at", last_minute, "--", "false")
    done = shell("missing", "letters")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == (
        "runguard: nothing is missing\nrunguard: but in 7 days 1 failed: runguard windows letters --verdict failed\n"
    )
    assert len(shell.json("windows", "letters", "--verdict", "failed")) == 1


def test_all_jobs_are_looked_at_by_name(letters: Any, started: Any) -> None:
    letters.write(changed("backup", zone="UTC"), started(9, job="adhoc", window=None))
    found = [(window["job"], window["key"]) for window in told(letters, "--until", "2026-03-27T12:00")]
    assert found == [("backup", "L2026-03-27T02:30"), ("letters", "L2026-03-27T02:30")]


def test_what_waits_in_the_journal_is_not_missing(letters: Any, started: Any) -> None:
    friday = {
        "key": "L2026-03-27T02:30", "start": "2026-03-26T02:30:00Z", "due": "2026-03-27T02:30:00Z",
        "label": "2026-03-27T02:30+00:00", "nominal": "2026-03-27T02:30", "how": "real", "fold": 0, "collapsed": [],
        "zone": "Europe/London", "tzdata": "2026a", "schedule": LONDON,
    }  # fmt: skip
    kind, at, fields = started(7, "2026-03-27T02:30:01Z", window=friday)
    Journal(str(letters.state), AUTHOR).write(kind, from_rfc3339(at), {**fields, "number": None})
    assert keys(letters, "letters", *UNTIL) == ["L2026-03-28T02:30", "L2026-03-30T02:30"]


def test_a_host_without_records_misses_nothing(shell: Any) -> None:
    done = shell("missing")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", shell.nothing_recorded)
    assert not shell.state.exists()


def test_what_is_refused(letters: Any) -> None:
    done = letters("missing", "lettres")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "runguard: missing: no job 'lettres' on record; did you mean letters?\n"
    ahead = letters("missing", "letters", "--since", "tomorrow")
    assert (ahead.returncode, ahead.stdout) == (2, "")
    assert ahead.stderr.endswith(" lies ahead; runguard next shows what is to come\n")


def test_a_plain_table_imports_nothing_that_only_a_terminal_or_a_recurrence_needs(letters: Any) -> None:
    code = "import os, sys; from runguard.cli import commands; commands.call(sys.argv[1:], dict(os.environ));"
    code += "print({'rich', 'dateutil', 'requests'} & set(sys.modules))"
    command = [sys.executable, "-c", code, "missing", "letters", *UNTIL]
    done = subprocess.run(command, env=letters.environ, capture_output=True, text=True, check=True)
    assert done.stdout.endswith("no start at all\nset()\n")

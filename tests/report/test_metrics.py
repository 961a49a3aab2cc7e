"""The text that Prometheus reads, at a moment that stands still."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

import pytest

from runguard import paths
from runguard.config import strict
from runguard.instant import from_rfc3339
from runguard.report import metrics
from runguard.report.assessment import assessments
from runguard.store.sqlite import open_reader
from shell import Shell

STORE = "/var/lib/runguard/db/runguard.sqlite"
NOW_US = from_rfc3339("2026-03-29T12:00:00Z")
LONDON = {"expression": "30 2 * * *", "zone": "Europe/London", "policy": "vixie", "gap": None, "fold": None}
REGISTERED = (
    "job.changed",
    "2026-03-28T02:30:00Z",
    {"job": "letters", "change": "registered", "revision": 1, "schedule": LONDON, "after": "2026-03-28T02:30:00Z"},
)
# One job whose window of 29 March, due 01:30Z, was run in 92.5 s; the next is due at 01:30Z on the 30th.
TEXT = """\
# HELP runguard_level How the job stands: 0 ok, 1 warning, 2 critical, 3 unknown.
# TYPE runguard_level gauge
runguard_level{job_name="letters",store="/var/lib/runguard/db/runguard.sqlite"} 0
# HELP runguard_last_success_timestamp_seconds When a run of the job last succeeded, in Unix time.
# TYPE runguard_last_success_timestamp_seconds gauge
runguard_last_success_timestamp_seconds{job_name="letters",store="/var/lib/runguard/db/runguard.sqlite"} 1774747894
# HELP runguard_last_exit_status Exit status of the job's last run; never 0 for a failure.
# TYPE runguard_last_exit_status gauge
runguard_last_exit_status{job_name="letters",store="/var/lib/runguard/db/runguard.sqlite"} 0
# HELP runguard_last_finish_timestamp_seconds When the job's last run ended, in Unix time.
# TYPE runguard_last_finish_timestamp_seconds gauge
runguard_last_finish_timestamp_seconds{job_name="letters",store="/var/lib/runguard/db/runguard.sqlite"} 1774747894
# HELP runguard_last_duration_seconds How long the job's last run took.
# TYPE runguard_last_duration_seconds gauge
runguard_last_duration_seconds{job_name="letters",store="/var/lib/runguard/db/runguard.sqlite"} 92.5
# HELP runguard_missing_windows Windows of the last days that nobody answered in time.
# TYPE runguard_missing_windows gauge
runguard_missing_windows{job_name="letters",store="/var/lib/runguard/db/runguard.sqlite"} 0
# HELP runguard_refusals_in_a_row Starts refused since the last that ran.
# TYPE runguard_refusals_in_a_row gauge
runguard_refusals_in_a_row{job_name="letters",store="/var/lib/runguard/db/runguard.sqlite"} 0
# HELP runguard_failures_in_a_row Runs since the last success that were none.
# TYPE runguard_failures_in_a_row gauge
runguard_failures_in_a_row{job_name="letters",store="/var/lib/runguard/db/runguard.sqlite"} 0
# HELP runguard_running_since_timestamp_seconds When the run that goes on was started, in Unix time.
# TYPE runguard_running_since_timestamp_seconds gauge
runguard_running_since_timestamp_seconds{job_name="letters",store="/var/lib/runguard/db/runguard.sqlite"} NaN
# HELP runguard_next_due_timestamp_seconds When the job's next window is due, in Unix time.
# TYPE runguard_next_due_timestamp_seconds gauge
runguard_next_due_timestamp_seconds{job_name="letters",store="/var/lib/runguard/db/runguard.sqlite"} 1774834200
# HELP runguard_generated_timestamp_seconds When this was read from the records, in Unix time.
# TYPE runguard_generated_timestamp_seconds gauge
runguard_generated_timestamp_seconds{store="/var/lib/runguard/db/runguard.sqlite"} 1774785600
# HELP runguard_store_readable 1 if the records could be read, else 0.
# TYPE runguard_store_readable gauge
runguard_store_readable{store="/var/lib/runguard/db/runguard.sqlite"} 1
"""


@pytest.fixture
def text(shell: Shell) -> Callable[..., str]:
    """Return the metrics of the shell's records at NOW_US: `text()`."""

    def read(store: str = STORE) -> str:
        kept = paths.places(str(shell.state), None)
        records = open_reader(kept.store) if os.path.exists(kept.store) else None
        found = assessments(shell.environ, strict.load(shell.environ), records, kept, NOW_US)
        return metrics.exposition(found, store, NOW_US)

    return read


def values(text: str, job: str = "letters") -> dict[str, str]:
    """Return the samples of a job by the words between `runguard_` and the unit."""
    found = re.findall(rf'^runguard_(\w+)\{{job_name="{job}",.*?\}} (.*)$', text, re.MULTILINE)
    return {name.replace("_timestamp_seconds", "").replace("_seconds", ""): value for name, value in found}


def test_the_whole_text_of_a_job_that_is_well(shell: Shell, text: Any, started: Any, finished: Any) -> None:
    shell.write(REGISTERED, started(1), finished(1))
    assert text() == TEXT


def test_a_job_that_has_never_run_has_the_same_series(shell: Shell, text: Any) -> None:
    shell.write(REGISTERED)
    assert values(text()) == {
        "level": "2",
        "last_success": "0",
        "last_exit_status": "NaN",
        "last_finish": "NaN",
        "last_duration": "NaN",
        "missing_windows": "1",
        "refusals_in_a_row": "0",
        "failures_in_a_row": "0",
        "running_since": "NaN",
        "next_due": "1774834200",
    }


def test_a_job_without_a_schedule_is_never_due(shell: Shell, text: Any, started: Any, finished: Any) -> None:
    shell.write(started(1, window=None, revision=None), finished(1))
    found = values(text())
    assert (found["next_due"], found["missing_windows"], found["last_exit_status"]) == ("NaN", "0", "0")


@pytest.mark.parametrize(
    ("end", "status"),
    [
        ({"outcome": "failed", "exit_status": 3, "returned": 3}, "3"),
        ({"outcome": "killed", "exit_status": None, "signal": 9, "returned": 137}, "137"),
        ({"outcome": "timed_out", "exit_status": 0, "returned": 124}, "1"),
        ({"outcome": "cancelled", "exit_status": 0, "returned": 0}, "1"),
        ({"outcome": "lost", "exit_status": None, "returned": None}, "1"),
        ({"outcome": "succeeded", "suspect": "it took 0.1 s"}, "1"),
    ],
    ids=lambda value: value if isinstance(value, str) else value["outcome"],
)
def test_an_exit_status_is_0_for_nothing_but_a_success(
    shell: Shell, text: Any, started: Any, finished: Any, end: dict[str, Any], status: str
) -> None:
    shell.write(REGISTERED, started(1), finished(1, **end))
    assert values(text())["last_exit_status"] == status


def test_failures_are_counted_and_the_last_success_stays(shell: Shell, text: Any, started: Any, finished: Any) -> None:
    shell.write(REGISTERED, started(1), finished(1))
    for number in (2, 3):
        shell.write(started(number, attempt=number), finished(number, "failed", exit_status=3, duration_s=0.0625))
    found = values(text())
    assert (found["failures_in_a_row"], found["last_success"]) == ("2", "1774747894")
    assert (found["last_exit_status"], found["last_duration"]) == ("3", "0.0625")


def test_refusals_are_counted(shell: Shell, text: Any, started: Any, refused: Any) -> None:
    shell.write(REGISTERED, started(1), refused(2), refused(3))
    assert values(text())["refusals_in_a_row"] == "2"


def test_a_retired_job_has_no_series(shell: Shell, text: Any) -> None:
    gone = {"job": "letters", "change": "retired", "revision": 2, "schedule": None, "after": "2026-03-28T12:00:00Z"}
    shell.write(REGISTERED, ("job.changed", "2026-03-28T12:00:00Z", {**gone, "reason": "gone"}))
    assert values(text()) == {}


def test_a_path_of_any_bytes_is_one_label(shell: Shell, text: Any) -> None:
    shell.write(REGISTERED)
    last = text('/srv/a "b"\\c\n\udcff').splitlines()[-1]
    assert last == r'runguard_store_readable{store="/srv/a \"b\"\\c\\n\\xff"} 1'


def test_no_command_line_is_told(shell: Shell, text: Any, started: Any) -> None:
    shell.write(REGISTERED, started(1, argv=["/opt/letters/send", "--password=hunter2"]))
    assert "send" not in text()


# Where the records cannot be read


def test_what_was_said_of_the_jobs_stays_when_the_records_cannot_be_read() -> None:
    assert metrics.unreadable(TEXT, STORE) == TEXT.removesuffix("1\n") + "0\n"


def test_the_files_of_others_are_not_kept() -> None:
    assert metrics.unreadable(TEXT, "/srv/other.sqlite") == (
        "# HELP runguard_store_readable 1 if the records could be read, else 0.\n"
        "# TYPE runguard_store_readable gauge\n"
        'runguard_store_readable{store="/srv/other.sqlite"} 0\n'
    )

"""`check`: for monitors, a status from 0 to 3 and one line."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runguard.cli.asking import find
from runguard.cli.check import Judgement, judge
from runguard.instant import from_rfc3339
from runguard.store.journal import Journal
from shell import AUTHOR, Shell

LONDON = {"expression": "30 2 * * *", "zone": "Europe/London", "policy": "vixie", "gap": None, "fold": None}
# https://www.monitoring-plugins.org/doc/guidelines.html#AEN197: 'label'=value[UOM];[warn];[crit];[min];[max]
LINE = re.compile(
    r"RUNGUARD (OK|WARNING|CRITICAL|UNKNOWN) - [^|]+"
    r"( \|(?: (?:'[^'=]+'|[a-z]+)=[0-9.]+s?;[0-9]*;[0-9]*;0)+)?"
)


def changed(job: str = "letters", after: str = "2026-03-28T02:30:00Z", **schedule: Any) -> Any:
    entry = {"job": job, "change": "registered", "revision": 1, "schedule": {**LONDON, **schedule}}
    return "job.changed", after, {**entry, "after": after}


def at(shell: Shell, now: str, *jobs: str) -> Judgement:
    """Return what a monitor is told at an instant."""
    return judge(shell.environ, find(shell.environ, None), jobs, from_rfc3339(now))


def text(judgement: Judgement) -> str:
    assert LINE.fullmatch(judgement.line), judgement.line
    return judgement.line.partition(" | ")[0].removeprefix(f"RUNGUARD {judgement.level.upper()} - ")


# What is said, and with which status


def test_all_is_well(shell: Any, started: Any, finished: Any) -> None:
    shell.write(changed(), started(1), finished(1))
    told = at(shell, "2026-03-29T12:00:00Z")
    assert (told.status, told.line) == (
        0,
        "RUNGUARD OK - 1 job as expected | jobs=1;;;0 warning=0;;;0 critical=0;;;0 unknown=0;;;0 missing=0;;;0"
        " lost=0;;;0 refused=0;;;0 running=0;;;0 undelivered=0;;;0",
    )


def test_a_registered_job_without_any_row_for_two_windows_is_critical(shell: Any) -> None:
    shell.write(changed())
    assert at(shell, "2026-03-29T01:34:59Z").status == 0
    told = at(shell, "2026-03-30T01:35:00Z")
    assert (told.status, text(told)) == (
        2,
        "letters: window 2026-03-30T02:30+01:00 missing (1 more): no start at all",
    )


def test_an_answered_window_after_a_hole_is_a_warning(shell: Any, started: Any, finished: Any) -> None:
    shell.write(changed(after="2026-03-27T02:30:00Z"), started(1), finished(1))
    told = at(shell, "2026-03-29T12:00:00Z")
    assert (told.status, text(told)) == (1, "letters: window 2026-03-28T02:30+00:00 missing")


def test_a_waiver_answers(shell: Any) -> None:
    shell.write(changed())
    shell("waive", "letters@L2026-03-29T02:30", "--reason", "no letters on Sundays")
    assert at(shell, "2026-03-29T12:00:00Z").status == 0


def test_the_gravest_job_comes_first_and_numbers_are_totals(shell: Any, started: Any, finished: Any) -> None:
    none: dict[str, Any] = {"window": None, "revision": None}
    shell.write(
        changed(after="2026-03-26T02:30:00Z"), started(1), finished(1),
        started(2, job="zap", **none), finished(2, "failed", exit_status=3),
    )  # fmt: skip
    told = at(shell, "2026-03-29T12:00:00Z")
    assert text(told) == (
        "zap: run 2 failed (exit status 3); "
        "letters: 2 windows missing, from 2026-03-27T02:30+00:00 to 2026-03-28T02:30+00:00"
    )
    assert " jobs=2;;;0 warning=1;;;0 critical=1;;;0 unknown=0;;;0 missing=2;;;0 " in told.line


def test_only_the_jobs_that_are_named_count_and_get_numbers_of_their_own(
    shell: Any, started: Any, finished: Any
) -> None:
    shell.write(changed(), started(1), finished(1), changed("backup", "2026-03-20T00:00:00Z"))
    told = at(shell, "2026-03-29T01:32:34Z", "letters")
    assert (told.status, text(told)) == (0, "1 job as expected")
    assert told.line.endswith(
        " 'letters missing'=0;;;0 'letters failures'=0;;;0 'letters age'=60s;;;0 'letters duration'=92.500s;;;0"
    )


def test_a_lost_run_and_a_timed_out_one(shell: Any, started: Any, finished: Any) -> None:
    shell.write(changed(), started(1), finished(1, "lost", why="the host restarted"))
    shell.write(changed("b"), started(2, job="b"), finished(2, "timed_out", exit_status=None, signal=15))
    assert text(at(shell, "2026-03-29T12:00:00Z")) == (
        "b: window 2026-03-29T02:30+01:00 failed: run 2 timed out; "
        "letters: window 2026-03-29T02:30+01:00 lost: run 1 was lost (the host restarted)"
    )


def test_what_waits_in_the_journal_answers_and_is_a_warning(shell: Any, started: Any, finished: Any) -> None:
    shell.write(changed())
    journal = Journal(str(shell.state), AUTHOR)
    kind, instant, fields = started(1)
    journal.write(kind, from_rfc3339(instant), {**fields, "number": None})
    kind, instant, fields = finished(1)
    journal.write(kind, from_rfc3339(instant), fields)
    told = at(shell, "2026-03-29T12:00:00Z")
    assert (told.status, text(told)) == (1, "letters: 2 entries wait in the journal")


def test_a_journal_that_nobody_can_read_is_a_warning_all_the_same(shell: Any, started: Any, finished: Any) -> None:
    shell.write(changed(), started(1), finished(1))
    (shell.state / "journal").mkdir(mode=0o700)
    (shell.state / "journal" / "torn.jsonl").write_text("{")
    told = at(shell, "2026-03-29T12:00:00Z")
    assert (told.status, text(told)) == (1, f"the journal in {shell.state} is not empty")


def test_a_key_of_the_configuration_decides_about_refusals(shell: Any, started: Any, refused: Any) -> None:
    shell.write(changed(expression="0 0 1 1 *"), started(1), *(refused(number) for number in (2, 3, 4)))
    assert at(shell, "2026-03-29T01:31:00Z").level == "critical"
    shell.config.write_text("[jobs.letters]\nalarm_after = 4\n")
    assert at(shell, "2026-03-29T01:31:00Z", "letters").jobs[0].reasons[0].text.startswith("window ")  # run 1 is lost


@pytest.mark.parametrize(("max_age", "status"), [("11h", 0), ("10h", 1), ("5h", 2)])
def test_a_key_of_the_configuration_decides_how_old_a_success_may_be(
    shell: Any, started: Any, finished: Any, max_age: str, status: int
) -> None:
    shell.write(started(1, window=None, revision=None), finished(1))
    shell.config.write_text(f'[jobs.letters]\nmax_age = "{max_age}"\n')
    assert at(shell, "2026-03-29T12:00:00Z").status == status


def verify(shell: Shell, at: str, problems: int) -> None:
    row = {"at_us": from_rfc3339(at), "since_seq": 0, "upto_seq": 1, "upto_hash": "0" * 64, "problems": problems}
    with shell.open() as store, store.write() as tx:
        tx.send("insert_verified", row)


def test_a_record_that_nobody_verified_for_long_is_a_warning(shell: Any, started: Any, finished: Any) -> None:
    shell.config.write_text("verify_within = '2h'\n")
    shell.write(changed(), started(1), finished(1))
    told = at(shell, "2026-03-29T04:00:00Z")
    assert (told.status, text(told)) == (1, "nobody has verified the record for 2h29m: runguard verify")
    verify(shell, "2026-03-29T03:30:00Z", 0)
    assert at(shell, "2026-03-29T04:00:00Z").status == 0
    assert at(shell, "2026-03-29T05:29:59Z").status == 0
    assert at(shell, "2026-03-29T05:30:00Z").status == 1


def test_a_record_that_did_not_verify_is_critical(shell: Any, started: Any, finished: Any) -> None:
    shell.write(changed(), started(1), finished(1))
    verify(shell, "2026-03-29T03:30:00Z", 2)
    told = at(shell, "2026-03-29T04:00:00Z")
    assert (told.status, text(told)) == (2, "the record did not verify 30m ago: runguard verify --full")


def test_a_line_stays_one_line_and_its_first_bar_ends_the_text(shell: Any, started: Any, refused: Any) -> None:
    holder = {"run_id": "1", "number": 1, "guard_pid": 1, "command_pid": 2, "command": "sort | tee \x1b]52;x\x07\n",
              "started": "2026-03-29T01:30:00Z"}  # fmt: skip
    shell.write(started(1, window=None), *(refused(n, window=None, holder=holder) for n in (2, 3, 4)))
    told = at(shell, "2026-03-29T02:30:00Z")
    assert text(told).endswith(r", by run 1 (pid 2: sort \x7c tee \x1b]52;x\x07\n), which has gone")
    assert told.line.count("|") == 1


def test_a_long_story_is_cut_and_counted(shell: Any, started: Any, finished: Any) -> None:
    for n in range(1, 31):
        shell.write(started(n, job=f"job{n:02}", window=None), finished(n, "failed", why="x" * 60))
    told = at(shell, "2026-03-29T12:00:00Z")
    assert len(text(told)) <= 400
    assert re.search(r"; and \d\d more$", text(told))


# Unknown


def test_a_host_without_records_is_unknown(shell: Any) -> None:
    done = shell("check")
    said = shell.nothing_recorded.removeprefix("runguard: ")
    assert (done.returncode, done.stdout, done.stderr) == (3, f"RUNGUARD UNKNOWN - {said}", "")
    assert not shell.state.exists()


def test_an_empty_store_is_unknown(shell: Any) -> None:
    with shell.open() as store:
        store.head()
    done = shell("check")
    assert (done.returncode, done.stdout) == (3, "RUNGUARD UNKNOWN - no job is on record | " + NO_NUMBERS)


NO_NUMBERS = (
    "jobs=0;;;0 warning=0;;;0 critical=0;;;0 unknown=0;;;0 missing=0;;;0 lost=0;;;0 refused=0;;;0 running=0;;;0"
    " undelivered=0;;;0\n"
)


def test_a_store_that_cannot_be_read_is_unknown(shell: Any) -> None:
    shell.write(changed())
    (shell.state / "db" / "runguard.sqlite").write_bytes(b"no database" * 999)
    done = shell("check")
    assert (done.returncode, done.stdout.count("\n"), done.stderr.count("\n")) == (3, 1, 1)
    assert done.stdout.startswith(f"RUNGUARD UNKNOWN - store {shell.state}/db/runguard.sqlite: the file is corrupt")


def test_a_store_that_was_removed_is_unknown(shell: Any) -> None:
    shell("run", "-j", "letters", "--", "true")
    (shell.state / "db" / "runguard.sqlite").unlink()
    done = shell("check")
    assert done.returncode == 3
    assert "history lost" in done.stdout


def test_a_mistake_in_the_configuration_is_unknown(shell: Any) -> None:
    shell.config.write_text("tiemout = 5\n")
    done = shell("check")
    said = f"{shell.config}:1: tiemout: no such key; did you mean timeout?"
    assert (done.returncode, done.stdout, done.stderr) == (3, f"RUNGUARD UNKNOWN - {said}\n", f"runguard: {said}\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--jobs", "x"], "check: no such option: --jobs; did you mean --job?"),
        (["--format", "xml"], "check: --format: 'xml' is not one of table, json, jsonl, csv"),
        (["letters"], "check: got unexpected extra argument (letters)"),
        (["--job", "lettres"], "check: no job 'lettres' on record; did you mean letters?"),
        (["--job", "../x|y"], r"check: no job '../x\x7cy' on record"),
        (["--store", "/nowhere/rg.sqlite"], "check: store /nowhere/rg.sqlite: there is no such file"),
    ],
)
def test_usage_is_unknown_too(shell: Any, arguments: list[str], said: str) -> None:
    shell.write(changed())
    done = shell("check", *arguments)
    assert (done.returncode, done.stdout) == (3, f"RUNGUARD UNKNOWN - {said}\n")
    assert done.stderr == f"runguard: {said}\n".replace(r"\x7c", "|")


# As a process


def test_the_status_comes_with_the_line_and_nothing_is_written(shell: Any) -> None:
    shell("run", "-j", "adhoc", "--", "sh", "-c", "exit 3")
    shell.config.write_text('[jobs.letters]\nschedule = "0 0 1 1 *"\n')
    before = {path: path.stat().st_mtime_ns for path in Path(shell.state).rglob("*")}
    done = shell("check")
    assert (done.returncode, done.stderr) == (2, "")
    assert done.stdout.startswith(
        "RUNGUARD CRITICAL - adhoc: run 1 failed (exit status 3); "
        "letters: only the configuration names it: nothing is recorded of it yet | jobs=2;;;0 "
    )
    assert {path: path.stat().st_mtime_ns for path in Path(shell.state).rglob("*")} == before


def test_json_tells_each_job_as_status_does(shell: Any) -> None:
    shell("run", "-j", "adhoc", "--", "false")
    done = shell("check", "--json")
    [told] = json.loads(done.stdout)
    assert done.returncode == 2
    assert told["reasons"] == [{"level": "critical", "text": "run 1 failed (exit status 1)"}]
    assert [told] == shell.json("status")
    nothing = shell("check", "--json", environ={"RUNGUARD_STATE_DIR": str(shell.directory / "none")})
    assert (nothing.returncode, nothing.stdout) == (3, "[]\n")
    assert nothing.stderr.startswith("runguard: RUNGUARD UNKNOWN - nothing has been recorded yet")


@pytest.mark.parametrize(("sink", "status"), [("| exec true", 2), (">&-", 2), ("> /dev/full", 3)])
def test_a_monitor_that_does_not_read_gets_a_status_all_the_same(shell: Any, sink: str, status: int) -> None:
    shell("run", "-j", "adhoc", "--", "false")
    command = shlex.join([sys.executable, "-m", "runguard", "check"])
    line = f"{{ {command}; echo $? >&3; }} 3>&2 2>/dev/null {sink}"
    done = subprocess.run(["sh", "-c", line], env=shell.environ, capture_output=True, text=True, check=False)
    assert done.stderr == f"{status}\n"


def test_a_start_is_never_refused_for_a_check(shell: Any) -> None:
    shell("run", "-j", "a", "--", "true")
    checks = [subprocess.Popen([sys.executable, "-m", "runguard", "check"], env=shell.environ,
                               stdout=subprocess.DEVNULL) for _ in range(3)]  # fmt: skip
    assert [shell("run", "-j", "a", "--", "true").returncode for _ in range(5)] == [0] * 5
    assert [each.wait() for each in checks] == [0, 0, 0]


def test_help_is_no_alarm(shell: Any) -> None:
    done = shell("check", "--help")
    assert done.returncode == 0
    assert done.stdout.startswith("Usage: ")

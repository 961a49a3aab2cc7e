"""`status`: every job at a glance."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from shell import Shell, wait_until


@pytest.fixture
def desk(shell: Any, started: Any, finished: Any, refused: Any) -> Any:
    """Three jobs without a schedule: one succeeded, one failed twice, one was refused after its host had restarted."""
    none: dict[str, Any] = {"window": None, "revision": None}
    shell.write(
        started(1, **none), finished(1),
        started(2, job="backup", **none), finished(2, "failed", exit_status=3, returned=3),
        started(3, job="backup", **none), finished(3, "timed_out", exit_status=None, signal=15, returned=124),
        started(4, job="sync", **none), *(refused(number, job="sync", **none) for number in (5, 6, 7)),
    )  # fmt: skip
    return shell


def test_a_table_that_is_piped_is_plain(desk: Any) -> None:
    done = desk("status")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[:3] == [
        "JOB      LEVEL     LAST RUN                   OUTCOME    WINDOW  NEXT DUE  STREAK               NOW",
        "backup   critical  2026-03-29 01:30:02+00:00  timed_out                    2 failed             "
        "run 3 timed out, 2 failures in a row",
        "letters  ok        2026-03-29 01:30:02+00:00  succeeded",
    ]
    assert lines[3] == (
        "sync     critical  2026-03-29 01:30:02+00:00  lost                         1 failed, 3 refused  "
        "run 4 lost (the host restarted); refused 3 times in a row since 2026-03-29T01:30:09Z, by run 1 (pid 4712: "
        "/opt/letters/send --all), which has gone"
    )


def test_a_table_fits_its_terminal(desk: Any) -> None:
    lines = re.sub(r"\x1b\[[0-9;]*m", "", desk.on_terminal("status", columns=80)).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].split() == ["JOB", "LEVEL", "LAST", "RUN", "OUTCOME", "NEXT", "DUE", "NOW"]
    told = "".join(line[52:].strip() for line in lines if not line.startswith("letters")).replace(" ", "")
    assert "refused3timesinarow" in told


def test_jobs_can_be_chosen(desk: Any) -> None:
    assert [job["job"] for job in desk.json("status", "sync", "backup", "sync")] == ["sync", "backup"]
    assert [job["job"] for job in desk.json("status")] == ["backup", "letters", "sync"]


def test_a_job_by_the_json_contract(desk: Any) -> None:
    [told] = desk.json("status", "letters")
    run_id = "00000001-0000-4000-8000-000000000000"
    assert told == {
        "job": "letters", "level": "ok", "reasons": [], "recorded": True, "retired": False, "schedule": None,
        "zone": None,
        "last": {
            "run_id": run_id, "number": 1, "label": None, "attempt": 1, "outcome": "succeeded", "exit_status": 0,
            "signal": None, "why": None, "suspect": None, "started_at": "2026-03-29T01:30:02Z",
            "finished_at": "2026-03-29T01:31:34Z", "duration_s": 92.5,
        },
        "last_success": {"run_id": run_id, "number": 1, "finished_at": "2026-03-29T01:31:34Z", "due": None},
        "last_exit": 0, "usual_duration_s": None, "running": [], "holder": None, "overdue": False,
        "failures_in_a_row": 0, "refusals_in_a_row": 0, "refused_since": None, "refused_why": None, "refused_by": None,
        "newest": None, "missing": 0, "oldest_missing": None, "newest_missing": None, "failed": 0, "lost": 0,
        "suspects": 0, "undelivered": [], "journaled": 0, "next_due": None,
    }  # fmt: skip


def test_csv_has_one_line_for_each_job(desk: Any) -> None:
    head, *lines = desk("status", "--format", "csv").stdout.splitlines()
    assert head.startswith("job,level,reasons,schedule,zone,retired,last_number,last_outcome,")
    assert [line.partition(",")[0] for line in lines] == ["backup", "letters", "sync"]


def test_a_job_of_the_configuration_is_told_before_it_ever_ran(shell: Any) -> None:
    shell.config.write_text('[jobs.letters]\nschedule = "0 0 1 1 *"\ntimezone = "UTC"\n[jobs.adhoc]\ntimeout = 5\n')
    adhoc, letters = shell("status").stdout.splitlines()[1:]
    assert adhoc.split()[:3] == ["adhoc", "warning", "never"]
    assert re.fullmatch(r"letters +ok +never +\d{4}-01-01T00:00\+00:00", letters)


def test_a_retired_job_says_so(desk: Any) -> None:
    desk("retire", "backup", "--reason", "gone")
    assert "retired" in desk("status", "backup").stdout.splitlines()[1].split()
    [told] = desk.json("status", "backup")
    assert (told["retired"], told["level"], told["reasons"]) == (True, "ok", [])


def test_a_host_without_records(shell: Any) -> None:
    done = shell("status")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", shell.nothing_recorded)
    assert shell("status", "--json").stdout == "[]\n"
    assert not shell.state.exists()


def test_what_is_refused(desk: Any) -> None:
    done = desk("status", "lettres")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "runguard: status: no job 'lettres' on record; did you mean letters?\n"


def test_a_store_that_cannot_be_read(desk: Any) -> None:
    (desk.state / "db" / "runguard.sqlite").write_bytes(b"no database" * 999)
    done = desk("status")
    assert (done.returncode, done.stdout) == (74, "")
    assert done.stderr.startswith("runguard: store ")


def test_a_store_that_is_being_written_is_read_as_it_was(desk: Any, refused: Any) -> None:
    kind, _, fields = refused(8, job="fourth", window=None)
    with desk.open() as store, store.write() as transaction:
        transaction.append(kind, 1_774_747_800_000_000, fields)
        assert [job["job"] for job in desk.json("status")] == ["backup", "letters", "sync"]


# Who holds the lock now


@pytest.fixture
def start(shell: Shell) -> Iterator[Callable[..., tuple[subprocess.Popen[bytes], int]]]:
    """Start `runguard run -j JOB -- sleep 60` and return the guard and the command's pid."""
    started: list[tuple[subprocess.Popen[bytes], int]] = []

    def run(job: str, shell: Shell = shell) -> tuple[subprocess.Popen[bytes], int]:
        seconds = str(60 + len(started))
        command = [sys.executable, "-m", "runguard", "run", "-j", job, "--", "sleep", seconds]
        guard = subprocess.Popen(command, env=shell.environ, cwd=shell.directory, stdin=subprocess.DEVNULL)
        wait_until(lambda: bool(shell.processes(f"sleep {seconds}")))
        [pid] = shell.processes(f"sleep {seconds}")
        started.append((guard, pid))
        return guard, pid

    yield run
    for guard, pid in started:
        guard.kill()
        guard.wait()
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def test_who_holds_the_lock_and_for_how_long(shell: Shell, start: Any) -> None:
    guard, pid = start("letters")
    [told] = shell.json("status")
    assert (told["level"], told["last"]["outcome"], told["refusals_in_a_row"]) == ("ok", "running", 0)
    holder, [run] = told["holder"], told["running"]
    assert (holder["pid"], holder["pids"], holder["number"]) == (pid, [guard.pid, pid], 1)
    assert holder["command"] == run["command"] == "sleep 60"
    assert (run["guard_pid"], run["command_pid"], run["state"], run["overdue"]) == (guard.pid, pid, "alive", None)
    assert 0 <= holder["held_s"] == run["running_s"] < 60
    [_, line] = shell("status").stdout.splitlines()
    assert re.search(rf"running +run 1 \(pid {pid}, for \d+\.\d+s: sleep 60\) holds the lock$", line)


def test_a_command_whose_guard_was_killed_still_holds_the_lock_and_refuses(shell: Shell, start: Any) -> None:
    guard, pid = start("letters")
    guard.send_signal(signal.SIGKILL)
    guard.wait()
    assert shell("run", "-j", "letters", "--", "true").returncode == 75
    [told] = shell.json("status")
    assert (told["holder"]["pid"], told["holder"]["pids"], told["holder"]["number"]) == (pid, [pid], 1)
    assert (told["running"][0]["state"], told["level"]) == ("guard gone", "warning")
    assert (told["refusals_in_a_row"], told["refused_by"]["number"], told["refused_by"]["command_pid"]) == (1, 1, pid)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not shell.processes("sleep 60"))
    [told] = shell.json("status")
    assert (told["holder"], told["running"], told["last"]["outcome"], told["level"]) == (None, [], "lost", "critical")


def test_the_usual_duration_stands_beside_the_age(shell: Shell, start: Any, started: Any, finished: Any) -> None:
    shell.write(*(each for n in (1, 2, 3) for each in (started(n, window=None), finished(n, duration_s=120.0))))
    start("letters")
    [_, line] = shell("status").stdout.splitlines()
    assert re.search(r"run 4 \(pid \d+, for \d+\.\d+s, usually 2m00s: sleep 60\) holds the lock$", line)


def test_runs_that_share_the_lock_are_all_told(shell: Shell, start: Any) -> None:
    shell.config.write_text('[jobs.letters]\noverlap = "allow"\n')
    pids = [start("letters")[1], start("letters")[1]]
    [_, line] = shell("status").stdout.splitlines()
    told = re.findall(r"run (\d) \(pid (\d+), for \S+: sleep \d+\) (holds the lock|holds the lock too)(?:; |$)", line)
    assert sorted((number, int(pid)) for number, pid, _ in told) == [("1", pids[0]), ("2", pids[1])]
    assert {what for _, _, what in told} == {"holds the lock", "holds the lock too"}


def test_asking_never_lets_a_start_look_refused(shell: Shell, desk: Any) -> None:
    asking = [subprocess.Popen([sys.executable, "-m", "runguard", "status"], env=shell.environ, cwd=shell.directory,
                               stdout=subprocess.DEVNULL) for _ in range(3)]  # fmt: skip
    assert [shell("run", "-j", "letters", "--", "true").returncode for _ in range(5)] == [0] * 5
    assert [each.wait() for each in asking] == [0, 0, 0]


# Another account


@pytest.fixture
def audited() -> Iterator[Shell]:
    """A state directory whose database all may read, asked as another user; pytest's own are closed to them."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("needs root and setpriv")
    directory = Path(tempfile.mkdtemp())
    shell = Shell(directory)
    shell("run", "-j", "backup", "--", "false")
    for path in (directory, shell.state, shell.state / "db"):
        path.chmod(0o755)
    (shell.state / "db" / "runguard.sqlite").chmod(0o644)
    shell.environ["RUNGUARD_CONFIG"] = "/dev/null"
    yield shell
    shutil.rmtree(directory)


def as_an_auditor(shell: Shell) -> None:
    shell.prefix = ("setpriv", "--reuid=1234", "--regid=1234", "--clear-groups")
    if shell("--version").returncode != 0:
        pytest.skip("another user may not read this interpreter or the sources")


def test_an_auditor_is_told_what_is_on_record_and_which_guards_live(audited: Shell, start: Any) -> None:
    guard, _ = start("letters", audited)
    as_an_auditor(audited)
    backup, letters = audited.json("status")
    assert (backup["level"], letters["level"]) == ("critical", "ok")
    assert (letters["holder"], letters["running"][0]["state"]) == (None, "alive")
    assert (letters["running"][0]["guard_pid"], letters["running"][0]["command"]) == (guard.pid, "sleep 60")
    guard.kill()
    guard.wait()
    [run] = audited.json("status", "letters")[0]["running"]
    assert (run["state"], run["because"]) == (
        "unknown",
        "its guard is gone; whether its command lives is not to be seen",
    )

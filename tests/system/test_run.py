"""The main job, end to end: real processes on a real store."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from runguard.guard import runfile
from shell import Shell, wait_until

OUTER = "0b1cfa3e-64a7-4c15-a1a6-62ac15ad21a5"
EVERY_5 = ("-s", "*/5 * * * *", "-z", "Europe/London")


def test_output_and_status_are_the_commands_own_and_the_run_has_its_window(shell: Shell) -> None:
    done = shell("run", "-j", "demo", *EVERY_5, "--", "sh", "-c", "echo hi; echo oops >&2; exit 3")
    assert (done.stdout, done.stderr, done.returncode) == ("hi\n", "oops\n", 3)
    [run] = shell.json("history")
    assert (run["outcome"], run["exit_status"], run["attempt"], run["trigger"]) == ("failed", 3, 1, "schedule")
    assert run["window"]["zone"] == "Europe/London"
    assert run["window"]["key"].startswith("U20")


def test_a_done_window_is_not_run_again(shell: Shell) -> None:
    daily = ("run", "-j", "daily", "-s", "0 0 * * *", "--scheduled-at", "2026-03-01T00:00Z", "-z", "UTC")
    assert shell(*daily, "--", "touch", "first").returncode == 0
    again = shell(*daily, "--", "touch", "second")
    assert (again.stdout, again.stderr, again.returncode) == ("", "", 0)
    assert not (shell.directory / "second").exists()
    refused, ran = shell.json("history")
    assert (refused["outcome"], refused["why"], ran["outcome"]) == ("refused", "duplicate", "succeeded")


def test_a_failed_window_is_run_as_its_next_attempt(shell: Shell) -> None:
    daily = ("run", "-j", "daily", "-s", "0 0 * * *", "--scheduled-at", "2026-03-01T00:00Z", "-z", "UTC")
    shell(*daily, "--", "false")
    assert shell(*daily, "--", "sh", "-c", "echo $RUNGUARD_ATTEMPT").stdout == "2\n"
    second, first = shell.json("history")
    assert second["supersedes"] == first["run_id"]
    assert (first["outcome"], first["superseded_by"]) == ("failed", second["run_id"])


def test_a_person_with_a_reason_runs_a_done_window_again(shell: Shell) -> None:
    daily = ("run", "-j", "daily", "-s", "0 0 * * *", "--scheduled-at", "2026-03-01T00:00Z", "-z", "UTC")
    shell(*daily, "--", "true")
    again = shell(*daily, "--reason", "the printer was out of paper", "--", "sh", "-c", "echo $RUNGUARD_TRIGGER")
    assert again.stdout == "manual\n"
    assert shell.json("history")[0]["reason"] == "the printer was out of paper"


def test_the_command_learns_who_it_is_and_which_window_it_answers(shell: Shell) -> None:
    done = shell(
        "run", "-j", "letters", "-s", "30 2 * * *", "-z", "America/New_York", "--scheduled-at", "2024-03-10T07:00:31Z",
        "--ping", "http://127.0.0.1:1/ping", "--", "env",
        environ={"RUNGUARD_FENCE": "7", "RUNGUARD_ITEMS": "/x", "RUNGUARD_DONE": "/x", "RUNGUARD_UNCERTAIN": "/x",
                 "RUNGUARD_PING": "http://127.0.0.1:1/",
                 "RUNGUARD_RUN_ID": OUTER},
    )  # fmt: skip
    given = dict(line.split("=", 1) for line in done.stdout.splitlines() if line.startswith("RUNGUARD_"))
    run_id = given.pop("RUNGUARD_RUN_ID")
    assert given.pop("RUNGUARD_ITEMS") == str(shell.state / "db" / "runs" / f"{run_id}.items")
    settings = {"RUNGUARD_STATE_DIR", "RUNGUARD_CONFIG"}
    assert {name: value for name, value in given.items() if name not in settings} == {
        "RUNGUARD_JOB": "letters",
        "RUNGUARD_ATTEMPT": "1",
        "RUNGUARD_TRIGGER": "schedule",
        "RUNGUARD_WINDOW_KEY": "L2024-03-10T02:30",
        "RUNGUARD_SCHEDULED_AT": "2024-03-10T03:00-04:00",
        "RUNGUARD_WINDOW_START": "2024-03-09T07:30:00Z",
        "RUNGUARD_WINDOW_END": "2024-03-10T07:00:00Z",
    }
    assert len(run_id) == 36
    assert shell.entries(run_id)[0]["parent"] == OUTER


def test_without_a_schedule_window_variables_are_unset_even_inherited_ones(shell: Shell) -> None:
    done = shell("run", "-j", "x", "--", "env", environ={"RUNGUARD_WINDOW_KEY": "L1999", "RUNGUARD_WINDOW_END": "x"})
    assert "RUNGUARD_WINDOW" not in done.stdout
    assert shell.json("history")[0]["window"] is None


def start(shell: Shell, *arguments: str, **options: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "runguard", *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL, **options}
    return subprocess.Popen(command, env=shell.environ, cwd=shell.directory, text=True, **pipes)  # type: ignore[call-overload,no-any-return]


def ready(process: subprocess.Popen[str]) -> None:
    """Wait until the command has printed `ready`."""
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"


def mirrored(work: Path) -> int:
    """Return how many bytes of output the run file counts: its header is written after them."""
    left = runfile.read(str(work))
    return left.stdout_bytes + left.stderr_bytes if left else 0


def test_a_start_while_the_job_runs_is_refused_and_names_the_holder(shell: Shell) -> None:
    running = start(shell, "run", "-j", "slow", "--", "sh", "-c", "echo ready; exec sleep 60")
    ready(running)
    refused = shell("run", "-j", "slow", "--", "true")
    assert (refused.returncode, refused.stdout) == (75, "")
    assert refused.stderr.startswith("runguard: slow: not run (overlap): run ")
    assert "sleep 60" in refused.stderr
    running.terminate()
    assert running.wait(timeout=20) == 128 + signal.SIGTERM
    row, held = shell.json("history")
    assert (row["outcome"], row["why"], row["returned"]) == ("refused", "overlap", 75)
    holder = shell.entries(row["run_id"])[0]["holder"]
    assert holder["run_id"] == held["run_id"]
    assert holder["guard_pid"] == running.pid


def test_a_conflict_has_the_exit_status_that_the_job_wants(shell: Shell) -> None:
    running = start(shell, "run", "-j", "slow", "--", "sh", "-c", "echo ready; exec sleep 60")
    ready(running)
    assert shell("run", "-j", "slow", "--conflict-exit", "0", "--", "true").returncode == 0
    running.terminate()
    running.wait(timeout=20)


def test_jobs_do_not_lock_each_other_out(shell: Shell) -> None:
    running = start(shell, "run", "-j", "slow", "--", "sh", "-c", "echo ready; exec sleep 60")
    ready(running)
    assert shell("run", "-j", "other", "--", "true").returncode == 0
    running.terminate()
    running.wait(timeout=20)


def test_a_killed_guard_leaves_the_lock_with_its_command_and_the_run_is_lost_afterwards(shell: Shell) -> None:
    running = start(shell, "run", "-j", "slow", "--", "sh", "-c", "echo ready; sleep 60; true")
    ready(running)
    [work] = (path for path in (shell.state / "db" / "runs").iterdir() if not path.suffix)
    wait_until(lambda: mirrored(work) == len("ready\n"))  # a moment after it was relayed
    running.kill()
    running.wait()
    [run] = shell.json("history")
    assert run["outcome"] == "running"
    refused = shell("run", "-j", "slow", "--", "true")
    assert refused.returncode == 75
    assert "pid" in refused.stderr
    for pid in shell.processes("sleep 60"):
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not shell.processes("sleep 60"))
    after = shell("run", "-j", "slow", "--", "true")
    assert after.returncode == 0
    assert "lost" in after.stderr
    lost = shell.json("history")[-1]
    assert (lost["outcome"], lost["why"]) == ("lost", "no end on record; guard and command are gone")
    assert shell("show", "1", "--output").stdout == "ready\n"


def test_a_lost_window_is_held_for_a_person(shell: Shell) -> None:
    daily = ("run", "-j", "daily", "-s", "0 0 * * *", "--scheduled-at", "2026-03-01T00:00Z", "-z", "UTC")
    running = start(shell, *daily, "--", "sh", "-c", "echo ready; exec sleep 60", start_new_session=True)
    ready(running)
    os.killpg(running.pid, signal.SIGKILL)
    for pid in shell.processes("sleep 60"):
        os.kill(pid, signal.SIGKILL)
    running.wait()
    wait_until(lambda: not shell.processes("sleep 60"))
    held = shell(*daily, "--", "true")
    assert held.returncode == 75
    assert "--reason" in held.stderr
    assert shell(*daily, "--reason", "looked: nothing was sent", "--", "true").returncode == 0
    assert [run["outcome"] for run in shell.json("history")] == ["succeeded", "refused", "lost"]


def test_a_job_that_may_be_repeated_runs_a_lost_window_again(shell: Shell) -> None:
    shell.config.write_text('[jobs.daily]\non_lost = "rerun"\n')
    daily = ("run", "-j", "daily", "-s", "0 0 * * *", "--scheduled-at", "2026-03-01T00:00Z", "-z", "UTC")
    running = start(shell, *daily, "--", "sh", "-c", "echo ready; exec sleep 60")
    ready(running)
    running.kill()
    for pid in shell.processes("sleep 60"):
        os.kill(pid, signal.SIGKILL)
    running.wait()
    wait_until(lambda: not shell.processes("sleep 60"))
    assert shell(*daily, "--", "sh", "-c", "echo $RUNGUARD_ATTEMPT").stdout == "2\n"


def test_a_deleted_lock_file_does_not_let_a_second_run_in(shell: Shell) -> None:
    running = start(shell, "run", "-j", "slow", "--", "sh", "-c", "echo ready; exec sleep 60")
    ready(running)
    (shell.state / "db" / "locks" / "slow.lock").unlink()
    refused = shell("run", "-j", "slow", "--", "touch", "second")
    assert refused.returncode == 75
    assert not (shell.directory / "second").exists()
    running.terminate()
    running.wait(timeout=20)


def test_two_hundred_starts_at_once_leave_two_hundred_rows(shell: Shell) -> None:
    command = [sys.executable, "-m", "runguard", "run", "-j", "storm", "--", "true"]
    guards = [subprocess.Popen(command, env=shell.environ, stderr=subprocess.DEVNULL) for _ in range(200)]
    statuses = [guard.wait(timeout=120) for guard in guards]
    assert set(statuses) <= {0, 75}
    runs = shell.json("history", "-n", "1000")
    assert len(runs) == 200
    assert sorted(run["number"] for run in runs) == list(range(1, 201))
    assert {run["outcome"] for run in runs} <= {"succeeded", "refused"}
    assert sum(run["outcome"] == "succeeded" for run in runs) == statuses.count(0)


def test_a_script_without_a_shebang_is_run_by_the_shell(shell: Shell) -> None:
    script = shell.directory / "job"
    script.write_text('echo "$0 $1"\n')
    script.chmod(0o755)
    assert shell("run", "-j", "x", "--", "./job", "a").stdout == "./job a\n"


def test_quiet_success_says_nothing_and_a_failure_says_all(shell: Shell) -> None:
    assert shell("run", "-q", "-j", "x", "--", "sh", "-c", "echo fine").stdout == ""
    failed = shell("run", "-q", "-j", "x", "--", "sh", "-c", "echo bad; echo worse >&2; exit 1")
    assert (failed.stdout, failed.stderr) == ("bad\n", "worse\n")
    assert shell("show", "1", "--output").stdout == "fine\n"


def test_closed_standard_descriptors_are_no_obstacle(shell: Shell) -> None:
    line = f'{sys.executable} -m runguard run -j x -- sh -c "echo hi > hi" <&- >&- 2>&-'
    done = subprocess.run(line, shell=True, env=shell.environ, cwd=shell.directory, check=False)
    assert done.returncode == 0
    assert (shell.directory / "hi").read_text() == "hi\n"


def test_secrets_in_arguments_are_not_recorded(shell: Shell) -> None:
    shell("run", "-j", "x", "--", "true", "--password=swordfish", "s3cr3t-value", environ={"API_TOKEN": "s3cr3t-value"})
    database = (shell.state / "db" / "runguard.sqlite").read_bytes()
    assert b"swordfish" not in database
    assert b"s3cr3t-value" not in database


def test_a_dry_run_does_nothing_and_says_what_would_happen(shell: Shell) -> None:
    daily = ("run", "-j", "daily", "-s", "30 2 * * *", "-z", "Europe/London", "--scheduled-at", "2026-03-29T01:30Z")
    done = shell(*daily, "--dry-run", "--", "touch", "done")
    assert done.returncode == 0
    assert done.stdout == (
        "job      daily\n"
        "window   2026-03-29T02:30+01:00 (L2026-03-29T02:30)\n"
        "covers   from 2026-03-28T02:30:00Z up to 2026-03-29T01:30:00Z\n"
        "next due 2026-03-30T01:30:00Z\n"
        "would    run the command as attempt 1\n"
        "because  the window is open\n"
    )
    assert not (shell.directory / "done").exists()
    assert not shell.state.exists()


def test_a_dry_run_beside_a_running_job_does_not_disturb_it(shell: Shell) -> None:
    running = start(shell, "run", "-j", "slow", "--", "sh", "-c", "echo ready; exec sleep 60")
    ready(running)
    done = shell("run", "-j", "slow", "--dry-run", "--", "true")
    assert "would    refuse (overlap), exit status 75\n" in done.stdout
    assert len(shell.json("history")) == 1
    running.terminate()
    running.wait(timeout=20)


def test_a_guarded_command_may_guard_another(shell: Shell) -> None:
    inner = f"{sys.executable} -m runguard run -j inner -- true"
    assert shell("run", "-j", "outer", "-c", inner).returncode == 0
    outer, inner_run = sorted(shell.json("history"), key=lambda run: str(run["number"]))
    assert shell.entries(inner_run["run_id"])[0]["parent"] == outer["run_id"]
    assert shell.entries(outer["run_id"])[0]["parent"] is None


def test_an_edit_of_the_schedule_opens_a_revision_and_reruns_nothing(shell: Shell) -> None:
    def at(schedule: str, instant: str) -> str:
        job = ("run", "-j", "e", "-s", schedule, "-z", "UTC", "--scheduled-at", instant)
        return shell(*job, "--", "sh", "-c", "echo $RUNGUARD_WINDOW_START $RUNGUARD_WINDOW_END").stdout

    assert at("0 9 * * *", "2026-03-01T09:00Z") == "2026-02-28T09:00:00Z 2026-03-01T09:00:00Z\n"
    assert at("10 9 * * *", "2026-03-02T09:10Z") == "2026-03-01T09:00:00Z 2026-03-02T09:10:00Z\n"
    assert at("10 9 * * *", "2026-03-03T09:10Z") == "2026-03-02T09:10:00Z 2026-03-03T09:10:00Z\n"
    assert [run["revision"] for run in shell.json("history")] == [2, 2, 1]


def test_a_job_that_is_started_without_its_schedule_keeps_its_revision(shell: Shell) -> None:
    shell("run", "-j", "e", "-s", "0 9 * * *", "-z", "UTC", "--", "true")
    shell("run", "-j", "e", "--", "true")
    second, first = shell.json("history")
    assert (second["window"], second["revision"], first["revision"]) == (None, 1, 1)


def test_the_timers_own_instant_is_answered_in_the_process_that_systemd_started(shell: Shell) -> None:
    command = (
        "export SYSTEMD_EXEC_PID=$$ TRIGGER_TIMER_REALTIME_USEC=1772329200000000; "
        f"exec {sys.executable} -m runguard run -j t -s '0 0 * * *' -z UTC -- sh -c 'echo $RUNGUARD_WINDOW_END'"
    )
    done = subprocess.run(["sh", "-c", command], env=shell.environ, capture_output=True, text=True, check=True)
    assert done.stdout == "2026-03-01T00:00:00Z\n"


def test_the_working_directory_may_be_gone(shell: Shell, tmp_path: Path) -> None:
    line = f"mkdir gone && cd gone && rmdir ../gone && {sys.executable} -m runguard run -j x -- true"
    done = subprocess.run(line, shell=True, env=shell.environ, cwd=shell.directory, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_secrets_in_the_command_lines_of_what_was_left_behind_are_not_told(shell: Shell) -> None:
    script = "(sh -c 'sleep 63; : --password=swordfish s3cr3t-value' &); echo hi"
    done = shell("run", "-j", "x", "-c", script, environ={"API_TOKEN": "s3cr3t-value"})
    assert "the command left behind" in done.stderr
    assert "swordfish" not in done.stderr
    database = (shell.state / "db" / "runguard.sqlite").read_bytes()
    assert b"swordfish" not in database
    assert b"s3cr3t-value" not in database
    for pid in shell.processes("sleep 63"):
        os.kill(pid, signal.SIGKILL)


def test_a_mistyped_instant_far_ahead_does_not_stop_the_job_after_an_edit(shell: Shell) -> None:
    job = ("run", "-j", "e", "-z", "UTC")
    shell(*job, "-s", "@daily", "--", "true")
    shell(*job, "-s", "@daily", "--scheduled-at", "2062-01-01T00:00Z", "--", "true")
    assert shell(*job, "-s", "@hourly", "--", "echo", "ran").stdout == "ran\n"


def test_an_edit_made_while_the_clock_was_ahead_is_made_again_once_it_is_back(shell: Shell) -> None:
    job = ("run", "-j", "e", "-z", "UTC")
    shell(*job, "-s", "@daily", "--", "true")
    shell(*job, "-s", "@hourly", "--scheduled-at", "2062-01-01T00:00Z", "--", "true")
    assert shell(*job, "-s", "@hourly", "--", "echo", "ran").stdout == "ran\n"
    assert shell(*job, "-s", "@hourly", "--", "echo", "again").stdout == ""
    assert [run["revision"] for run in shell.json("history")] == [3, 3, 2, 1]


def test_a_dry_run_whose_output_cannot_be_written_says_so(shell: Shell) -> None:
    with open("/dev/full", "wb") as full:
        done = shell("run", "-j", "x", "--dry-run", "--", "true", stdout=full)
    assert (done.returncode, done.stderr) == (74, "runguard: stdout cannot be written: No space left on device\n")


def test_a_dry_run_says_that_the_stores_history_is_lost(shell: Shell) -> None:
    shell("run", "-j", "x", "--", "true")
    (shell.state / "db" / "runguard.sqlite").unlink()
    assert "history lost" in shell("run", "-j", "x", "--dry-run", "--", "true").stdout

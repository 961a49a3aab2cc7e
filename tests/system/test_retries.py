"""Further attempts in one window: real processes, each attempt a record of its own."""

from __future__ import annotations

import signal
import subprocess
import sys

from keyboard import Terminal
from shell import Shell, wait_until

DAILY = ("run", "-j", "letters", "-s", "0 2 * * *", "-z", "UTC", "--scheduled-at", "2026-03-01T02:00Z")
THIRD = ("--", "sh", "-c", 'echo "try $RUNGUARD_ATTEMPT"; test "$RUNGUARD_ATTEMPT" = 3 || exit 4')


def test_a_command_that_works_at_the_third_attempt_is_three_records_of_one_window(shell: Shell) -> None:
    done = shell(*DAILY, "--retries", "5", "--retry-delay", "0.05", *THIRD)
    assert (done.returncode, done.stdout) == (0, "try 1\ntry 2\ntry 3\n")
    assert done.stderr == (
        "runguard: letters: attempt 1 of 6 failed, status 4; the next in 0.05s\n"
        "runguard: letters: attempt 2 of 6 failed, status 4; the next in 0.1s\n"
    )
    third, second, first = shell.json("history", "--since", "2026-01-01")
    assert [run["attempt"] for run in (first, second, third)] == [1, 2, 3]
    assert [run["outcome"] for run in (first, second, third)] == ["failed", "failed", "succeeded"]
    assert {run["window"]["key"] for run in (first, second, third)} == {"L2026-03-01T02:00"}
    assert (second["supersedes"], third["supersedes"]) == (first["run_id"], second["run_id"])
    assert third["superseded_by"] is None


def test_attempts_without_a_window_are_numbered_too(shell: Shell) -> None:
    done = shell("run", "-j", "x", "--retries", "2", "--retry-delay", "0", *THIRD)
    assert (done.returncode, done.stdout) == (0, "try 1\ntry 2\ntry 3\n")
    assert [run["attempt"] for run in shell.json("history")] == [3, 2, 1]


def test_when_all_attempts_fail_the_status_is_the_last_ones(shell: Shell) -> None:
    command = ("--", "sh", "-c", 'exit "$((RUNGUARD_ATTEMPT + 6))"')
    done = shell(*DAILY, "--retries", "1", "--retry-delay", "0", *command)
    assert done.returncode == 8
    assert done.stderr.splitlines()[-1] == "runguard: letters: given up after 2 attempts"


def test_a_command_that_is_not_found_is_tried_again(shell: Shell) -> None:
    done = shell("run", "-j", "x", "--retries", "1", "--retry-delay", "0", "--", "./absent")
    assert done.returncode == 127
    assert [run["outcome"] for run in shell.json("history")] == ["failed", "failed"]


def test_a_time_limit_is_not_tried_again(shell: Shell) -> None:
    done = shell("run", "-j", "x", "--retries", "3", "-t", "0.1", "--", "sleep", "60")
    assert done.returncode == 124
    assert len(shell.json("history")) == 1


def test_a_time_limit_is_tried_again_where_asked(shell: Shell) -> None:
    shell.config.write_text("[jobs.x]\nretry_timeouts = true\nretry_delay = 0\n")
    done = shell("run", "-j", "x", "--retries", "1", "-t", "0.1", "--", "sleep", "60")
    assert done.returncode == 124
    assert [run["outcome"] for run in shell.json("history")] == ["timed_out", "timed_out"]


def test_no_attempt_begins_past_the_deadline_of_the_window(shell: Shell) -> None:
    shell.config.write_text("[jobs.letters]\ndeadline = '2d'\n")
    daily = ("run", "-j", "letters", "-s", "@daily", "-z", "UTC")
    done = shell(*daily, "--retries", "3", "--retry-delay", "3d", "--", "false")
    assert done.returncode == 1
    assert "not tried again: that would be past the window's deadline of 2d" in done.stderr
    assert len(shell.json("history")) == 1


def test_the_lock_is_kept_between_two_attempts_and_a_stop_signal_ends_the_wait(shell: Shell) -> None:
    command = [sys.executable, "-m", "runguard", "run", "-j", "x", "--retries", "3", "--retry-delay", "1h"]
    with subprocess.Popen([*command, "--", "sh", "-c", "exit 5"], env=shell.environ, cwd=shell.directory) as guard:
        wait_until(lambda: [run["outcome"] for run in shell.runs_so_far()] == ["failed"])
        refused = shell("run", "-j", "x", "--", "true")
        assert refused.returncode == 75
        assert "holds the lock" in refused.stderr
        guard.send_signal(signal.SIGTERM)
        assert guard.wait(timeout=30) == 5
    assert shell("run", "-j", "x", "--", "true").returncode == 0


def test_a_job_that_is_quiet_unless_it_fails_is_quiet_when_it_recovers(shell: Shell) -> None:
    quiet = ("--retries", "5", "--retry-delay", "0", "--output", "on-failure")
    recovered = shell(*DAILY, *quiet, *THIRD)
    assert (recovered.returncode, recovered.stdout, recovered.stderr) == (0, "", "")
    (_, _, first) = shell.json("history", "--since", "2026-01-01")
    assert shell("show", str(first["number"]), "--output").stdout == "try 1\n"


def test_output_that_was_kept_back_is_pointed_at_when_no_attempt_follows(shell: Shell) -> None:
    command = [sys.executable, "-m", "runguard", "run", "-j", "x", "-q", "--retries", "3", "--retry-delay", "1h"]
    guard = subprocess.Popen(
        [*command, "--", "sh", "-c", "exit 5"],
        env=shell.environ,
        cwd=shell.directory,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: [run["outcome"] for run in shell.runs_so_far()] == ["failed"])
    guard.terminate()
    _, said = guard.communicate(timeout=30)
    (run,) = shell.json("history")
    look = f"its output: runguard show {run['run_id']} --output"
    assert said == f"runguard: x: told to stop by signal 15: not tried again; {look}\n"


def test_a_command_that_ctrl_c_has_ended_is_not_tried_again(shell: Shell) -> None:
    terminal = Terminal(shell.directory, shell.environ)
    line = f"{sys.executable} -m runguard run -j x --retries 1 --retry-delay 1h -- sh -c 'echo beg''un; exec sleep 60'"
    terminal.type(f'{line}; echo "end""ed $?"')
    terminal.expect("begun")
    terminal.key(b"\x03")
    terminal.expect("ended 130")
    terminal.close()
    assert [run["signal"] for run in shell.json("history")] == [2]


# The store fails while the command of the first attempt runs.
LOSES_THE_STORE = (
    "--",
    "sh",
    "-c",
    'echo "$RUNGUARD_ATTEMPT"; echo broken > "$RUNGUARD_STATE_DIR/db/runguard.sqlite"; exit 9',
)


def test_attempts_keep_counting_where_the_store_is_lost_between_them(shell: Shell) -> None:
    assert shell(*DAILY, "--retries", "2", "--retry-delay", "0", *LOSES_THE_STORE).stdout == "1\n2\n3\n"


def test_the_commands_own_status_stands_where_the_store_refuses_a_further_attempt(shell: Shell) -> None:
    shell.config.write_text("[jobs.letters]\non_store_failure = 'refuse'\n")
    done = shell(*DAILY, "--retries", "2", "--retry-delay", "0", *LOSES_THE_STORE)
    assert (done.returncode, done.stdout) == (9, "1\n")
    assert done.stderr.rstrip().endswith(": not tried again")


def test_each_attempt_finds_the_file_on_its_stdin_where_the_first_one_did(shell: Shell) -> None:
    (shell.directory / "input").write_text("of somebody else\nours\n")
    with open(shell.directory / "input", "rb") as stdin:
        stdin.seek(17)
        done = shell(
            "run", "-j", "x", "--retries", "1", "--retry-delay", "0", "--", "sh", "-c", "cat; false", stdin=stdin
        )
    assert done.stdout == "ours\nours\n"

"""What broke for users of other tools: pipes, process trees, signals, exit statuses. And the faults of that kind.

Elsewhere: a mailer that hangs and one that fails, under real cron (test_cron); a reader that has gone or takes nothing
(guard/test_relay); locks (test_scenarios_of_locks); every signal by itself (guard/test_signals).
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from guarded import command_of, lives, running
from runguard.guard import runfile
from shell import Shell, wait_until

IGNORES_TERM = ("sh", "-c", "trap '' TERM; while :; do sleep 0.1; done")
EATS_MEMORY = (sys.executable, "-c", "x = bytearray(400 << 20)")


# Pipes, process tree, signals, exit statuses


def test_a_grandchild_that_keeps_the_output_does_not_keep_the_guard(shell: Shell) -> None:
    began = time.monotonic()
    done = shell("run", "-j", "x", "--", "sh", "-c", "(sleep 62 &); echo hi; exit 3")
    assert (done.returncode, done.stdout) == (3, "hi\n")
    assert time.monotonic() - began < 30  # and not the 62 s of the grandchild
    [sleeper] = shell.processes("sleep 62")
    assert done.stderr == f"runguard: x: the command left behind {sleeper} (sleep 62)\n"
    os.kill(sleeper, signal.SIGKILL)


def test_a_job_that_forks_twice_leaves_no_zombie_and_the_next_start_runs(shell: Shell) -> None:
    of_the_guard = 'for s in /proc/[0-9]*/status; do grep -qs "^PPid:.$PPID$" $s && grep ^State $s; done'
    done = shell("run", "-j", "x", "--", "sh", "-c", f"(true &); (sh -c 'sleep 0.1 &'); sleep 0.4; {of_the_guard}")
    [of_the_job_itself] = done.stdout.splitlines()
    assert "Z" not in of_the_job_itself
    assert shell("run", "-j", "x", "--", "true").returncode == 0


def test_a_stop_signal_reaches_the_job_once_and_its_own_status_is_kept(shell: Shell) -> None:
    with running(
        shell, command="trap 'echo TERM >> got; echo bye; exit 5' TERM; while :; do sleep 0.05; done"
    ) as guard:
        guard.terminate()
        assert guard.wait(timeout=20) == 5
    assert (shell.directory / "got").read_text() == "TERM\n"
    [run] = shell.json("history")
    assert (run["outcome"], run["exit_status"]) == ("cancelled", 5)
    assert run["why"] == "runguard was told to stop by signal 15"
    assert "bye\n" in shell("show", "1", "--output").stdout  # beside what the shell says of its `sleep`


@pytest.mark.parametrize(
    ("options", "status", "outcome", "why"),
    [
        (("-c", "exit 7"), 7, "failed", None),
        (("-c", "exit 255"), 255, "failed", None),
        (("-q", "-c", "exit 7"), 7, "failed", None),  # reporting it does not change it
        (("--", "sh", "-c", "kill -TERM $$"), 143, "killed", None),
        (("--", "sh", "-c", "kill -KILL $$"), 137, "killed", None),
        (("--", "./no-such-program"), 127, "failed", "cannot run './no-such-program': No such file or directory"),
        (("--", "/etc/passwd"), 126, "failed", "cannot run '/etc/passwd': it is not executable"),
        (("--timeout", "0.5s", "--", "sleep", "60"), 124, "timed_out", None),
        (("--timeout", "0.5s", "--kill-after", "0.3s", "--", *IGNORES_TERM), 137, "timed_out", None),
    ],
)
def test_the_status_says_how_the_job_ended_and_the_record_why(
    shell: Shell, options: tuple[str, ...], status: int, outcome: str, why: str | None
) -> None:
    assert shell("run", "-j", "x", *options).returncode == status
    [run] = shell.json("history")
    assert (run["outcome"], run["returned"], run["why"]) == (outcome, status, why)


def test_a_program_that_is_not_found_is_told_where_it_was_looked_for(shell: Shell) -> None:
    assert shell("run", "-j", "x", "--", "no-such-program").returncode == 127
    assert shell.json("history")[0]["why"] == "cannot run 'no-such-program': not found; PATH is '/usr/bin:/bin'"


def test_a_timeout_ends_also_what_has_a_session_of_its_own(shell: Shell) -> None:
    done = shell("run", "-j", "x", "--timeout", "1s", "--", "sh", "-c", "setsid sleep 99 & sleep 99")
    assert done.returncode == 124
    assert shell.processes("sleep 99") == []
    [shown] = shell.json("show", "1")
    assert [(each["command"], each["fate"]) for each in shown["stragglers"]] == [("sleep 99", "stopped")]
    assert shown["survivors"] == []
    assert f"stopped too   pid {shown['stragglers'][0]['pid']}: sleep 99\n" in shell("show", "1").stdout


@pytest.mark.parametrize(
    ("choice", "fate", "written"), [("leave", "left", False), ("wait", "ended", True), ("kill", "stopped", False)]
)
def test_what_a_job_leaves_behind_is_left_waited_for_or_ended_as_the_job_says(
    shell: Shell, choice: str, fate: str, written: bool
) -> None:
    writer = "sh -c 'while [ ! -e go ]; do sleep 0.05; done; sleep 0.7; touch written'"
    shell.config.write_text(f'[jobs.x]\nstragglers = "{choice}"\n')
    done = shell("run", "-j", "x", "-c", f"touch go; setsid {writer} >/dev/null 2>&1 & exit 3")
    assert done.returncode == 3
    assert (shell.directory / "written").exists() is written
    [shown] = shell.json("show", "1")
    assert {each["fate"] for each in shown["stragglers"]} == {fate}
    alive = [each["pid"] for each in shown["stragglers"] if lives(each["pid"])]
    assert bool(alive) is (choice == "leave")
    for pid in alive:
        os.kill(pid, signal.SIGKILL)


def test_of_a_job_whose_guard_was_killed_history_says_that_it_goes_on(shell: Shell) -> None:
    with running(shell) as guard:
        [run] = shell.json("history")
        work = shell.state / "db" / "runs" / run["run_id"]
        wait_until(lambda: (left := runfile.read(str(work))) is not None and left.command_pid is not None)
        guard.kill()
        guard.wait()
        [run] = shell.json("history")
        assert run["outcome"] == "running"
        assert run["why"] == f"the guard is gone, command pid {command_of(shell)} goes on"


# Faults


@pytest.fixture
def cgroup() -> Iterator[Path]:
    """A control group of at most 100 MiB below our own."""
    groups = [line.strip().split(":", 2)[1:] for line in Path("/proc/self/cgroup").read_text().splitlines()]
    place = Path("/sys/fs/cgroup")
    homes = {
        "memory.limit_in_bytes": [Path(f"{place}/memory{path}") for names, path in groups if names == "memory"],
        "memory.max": [Path(f"{place}{path}") for names, path in groups if not names],
    }
    for limit, found in homes.items():
        for home in found:
            group = home / f"runguard-test-{os.getpid()}"
            try:
                group.mkdir()
            except OSError:
                continue
            if (group / limit).exists():
                (group / limit).write_text("100M")
                yield group
                wait_until(lambda: not (group / "cgroup.procs").read_text())  # noqa: B023
                group.rmdir()
                return
            group.rmdir()
    pytest.skip("control groups with a memory limit cannot be made here")


def test_a_job_that_was_killed_for_want_of_memory_is_said_to_be(shell: Shell, cgroup: Path) -> None:
    shell.prefix = ("sh", "-c", f'echo $$ >{cgroup}/cgroup.procs; exec "$@"', "sh")
    done = shell("run", "-j", "x", "--", "sh", "-c", 'sleep 0.2; exec "$@"', "sh", *EATS_MEMORY)
    assert done.returncode == 137
    assert done.stderr == "runguard: x: the kernel killed the command for want of memory\n"
    shell.prefix = ()
    [run] = shell.json("history")
    assert (run["outcome"], run["signal"], run["why"]) == ("killed", 9, "oom")


def test_a_job_whose_own_command_was_killed_for_want_of_memory_is_said_to_be(shell: Shell, cgroup: Path) -> None:
    shell.prefix = ("sh", "-c", f'echo $$ >{cgroup}/cgroup.procs; exec "$@"', "sh")
    done = shell("run", "-j", "x", "--", "sh", "-c", 'sleep 0.2; "$@"; exit $?', "sh", *EATS_MEMORY)
    assert done.returncode == 137
    assert "runguard: x: the kernel killed what the command ran for want of memory\n" in done.stderr
    shell.prefix = ()
    [run] = shell.json("history")
    assert (run["outcome"], run["exit_status"], run["why"]) == ("failed", 137, "oom")


def can_trace() -> bool:
    probe = ["strace", "-e", "inject=getpid:error=EIO:when=1", "true"]
    return bool(shutil.which("strace")) and subprocess.run(probe, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not can_trace(), reason="needs strace and the right to trace")
@pytest.mark.parametrize(
    ("call", "moment", "ran", "outcome", "status"),
    [
        ("flock", 1, False, "cancelled", 143),  # the job's lock
        ("flock", 3, False, "cancelled", 143),  # the store's
        ("fdatasync", 3, False, "cancelled", 143),  # the start becomes durable
        ("flock", 4, False, "cancelled", 143),  # the store's is let go
        ("clone3", 1, True, "cancelled", 143),  # the command
        ("wait4", 1, True, "cancelled", 143),
        ("flock", 5, True, "succeeded", 0),  # the store's, for the end
        ("fdatasync", 8, True, "succeeded", 0),  # the end becomes durable
        ("unlink", 1, True, "succeeded", 0),  # the run's own file
    ],
)
def test_a_stop_at_any_step_leaves_one_outcome_and_no_process(
    shell: Shell, call: str, moment: int, ran: bool, outcome: str, status: int
) -> None:
    shell("run", "-j", "other", "--", "true")  # the store is there
    inject = ("-e", f"trace={call}", "-e", f"inject={call}:signal=TERM:when={moment}")
    shell.prefix = ("strace", "-o", "/dev/null", *inject)
    done = shell("run", "-j", "x", "--", "sh", "-c", "echo began; sleep 0.1; echo ended")
    shell.prefix = ()
    assert done.returncode == status
    [run, _] = shell.json("history")
    assert (run["outcome"], run["returned"]) == (outcome, status)
    assert [entry["kind"] for entry in shell.entries(run["run_id"])] == ["run.start", "run.finish"]
    assert (run["why"] == "told to stop by signal 15 before the start") is not ran
    kept = shell("show", str(run["number"]), "--output").stdout
    assert kept in ({"began\nended\n"} if status == 0 else {"", "began\n"} if ran else {""})
    assert shell.processes("sleep 0.1") == []


def test_a_stop_ends_also_what_has_a_session_of_its_own(shell: Shell) -> None:
    with running(shell, command="setsid sleep 98 & wait") as guard:
        wait_until(lambda: len(shell.processes("sleep 98")) == 1)
        guard.send_signal(signal.SIGHUP)
        assert guard.wait(timeout=20) == 128 + signal.SIGHUP
    assert shell.processes("sleep 98") == []
    [shown] = shell.json("show", "1")
    assert (shown["outcome"], [each["fate"] for each in shown["stragglers"]]) == ("cancelled", ["stopped"])


def test_a_stop_while_a_straggler_is_waited_for_is_cancelled_with_the_jobs_own_status(shell: Shell) -> None:
    options = ("--stragglers", "wait")
    with running(shell, *options, command="setsid sleep 97 >/dev/null 2>&1 & echo done; exit 0") as guard:
        wait_until(lambda: not lives(command_of(shell)))
        guard.terminate()
        assert guard.wait(timeout=20) == 0
    assert shell.processes("sleep 97") == []
    [run] = shell.json("history")
    assert (run["outcome"], run["exit_status"], run["returned"]) == ("cancelled", 0, 0)


def test_while_stragglers_are_waited_for_the_lock_is_held(shell: Shell) -> None:
    with running(shell, "--stragglers", "wait", command="setsid sleep 96 >/dev/null 2>&1 &") as guard:
        wait_until(lambda: not lives(command_of(shell)))
        assert shell("run", "-j", "x", "--", "true").returncode == 75
        for pid in shell.processes("sleep 96"):
            os.kill(pid, signal.SIGKILL)
        assert guard.wait(timeout=20) == 0
    assert shell("run", "-j", "x", "--", "true").returncode == 0

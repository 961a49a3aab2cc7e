"""`--overlap wait|kill|allow`: what a start does while an earlier run of its job lives."""

from __future__ import annotations

import fcntl
import glob
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from guarded import command_of, guarded, lives, queued, running
from shell import Shell, wait_until

# wait


def order(shell: Shell) -> Path:
    """Return the file beside that of the one run that lives, in which another one orders its end."""
    (run,) = [path for path in (shell.state / "db" / "runs").iterdir() if not path.suffix]
    return run.with_suffix(".kill")


WAIT_FOR_GO = "while [ ! -e go ]; do sleep 0.02; done; echo first >> order"
LIBRARY = next(iter(glob.glob("/usr/lib/*/faketime/libfaketime.so.1")), "")
SECOND = ("--", "sh", "-c", "echo second >> order")


def test_a_start_that_waits_begins_after_the_earlier_run_has_ended(shell: Shell) -> None:
    with running(shell, command=WAIT_FOR_GO) as guard:
        waiting = queued(shell, "--overlap", "wait", *SECOND)
        (shell.directory / "go").touch()
        assert (guard.wait(timeout=30), waiting.wait(timeout=30)) == (0, 0)
    assert (shell.directory / "order").read_text() == "first\nsecond\n"
    second, first = shell.json("history")
    assert second["started_at"] >= first["finished_at"]
    (shown,) = shell.json("show", str(second["number"]))
    assert shown["waited_s"] > 0


def test_a_start_that_waited_long_enough_is_refused(shell: Shell) -> None:
    with running(shell):
        done = shell("run", "-j", "x", "--wait", "0.2", "--", "touch", "ran")
        assert done.returncode == 75
        assert done.stderr.rstrip().endswith("holds the lock; waited 0.2s")
    assert not (shell.directory / "ran").exists()


def test_a_start_that_is_told_to_stop_while_it_waits_is_refused_with_that_signal(shell: Shell) -> None:
    with running(shell):
        waiting = queued(shell, "--overlap", "wait", "--", "true")
        waiting.send_signal(signal.SIGTERM)
        _, said = waiting.communicate(timeout=30)
        assert waiting.returncode == 143
        assert "not run (overlap): told to stop by signal 15 while waiting for run 1 (pid" in said
        assert shell.json("history")[0]["why"] == "overlap"


def test_a_start_waits_for_a_command_whose_guard_has_been_killed(shell: Shell) -> None:
    with running(shell, command=WAIT_FOR_GO) as guard:
        guard.kill()
        guard.wait(timeout=30)
        waiting = queued(shell, "--overlap", "wait", *SECOND)
        (shell.directory / "go").touch()
        assert waiting.wait(timeout=30) == 0
    assert (shell.directory / "order").read_text() == "first\nsecond\n"


def test_a_waiting_start_that_finds_its_window_done_runs_nothing(shell: Shell) -> None:
    window = ("-s", "0 2 * * *", "-z", "UTC", "--scheduled-at", "2026-03-01T02:00Z")
    with running(shell, *window, command=WAIT_FOR_GO):
        waiting = queued(shell, *window, "--overlap", "wait", *SECOND)
        (shell.directory / "go").touch()
        assert waiting.wait(timeout=30) == 0
    assert shell.json("history", "--since", "2026-01-01")[0]["why"] == "duplicate"
    assert (shell.directory / "order").read_text() == "first\n"


@pytest.mark.skipif(not LIBRARY, reason="needs libfaketime")
def test_an_old_window_that_is_run_again_waits_until_the_next_due_at_most(shell: Shell) -> None:
    shell.config.write_text("[jobs.x]\noverlap = 'wait'\n")
    shell("run", "-j", "x", "-s", "@hourly", "-z", "UTC", "--scheduled-at", "2026-03-01T02:00Z", "--", "true")
    with running(shell):
        a_second_before = {
            "LD_PRELOAD": LIBRARY,
            "FAKETIME": "2030-03-01 02:59:59",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
        done = shell("rerun", "1", "--reason", "again", environ=a_second_before)
        assert done.returncode == 75
        assert "holds the lock; waited 1s" in done.stderr


# kill


def test_a_start_that_kills_stops_the_earlier_run_and_both_records_name_the_other(shell: Shell) -> None:
    with running(shell) as guard:
        victim = command_of(shell)
        done = shell("run", "-j", "x", "--overlap", "kill", "--", "echo", "mine")
        assert (done.returncode, done.stdout, done.stderr) == (0, "mine\n", "")
        assert guard.wait(timeout=30) == 143
        second, first = shell.json("history")
        assert f"stopped to make way for run {second['run_id']} (--overlap kill)" in guard.stderr.read()  # type: ignore[union-attr]
    assert (first["outcome"], first["why"], first["signal"]) == ("killed", "overlap", 15)
    (shown,) = shell.json("show", str(first["number"]))
    assert shown["killed_by"] == second["run_id"]
    (shown,) = shell.json("show", str(second["number"]))
    (ended,) = shown["ended"]
    assert (ended["run_id"], ended["command_pid"]) == (first["run_id"], victim)
    assert not lives(victim)


def test_a_command_that_ignores_term_is_killed(shell: Shell) -> None:
    with running(shell, "--kill-after", "0.2", command='trap "" TERM; sleep 60 & wait; sleep 60'):
        victim = command_of(shell)
        assert shell("run", "-j", "x", "--overlap", "kill", "--kill-after", "0.2", "--", "true").returncode == 0
        assert not lives(victim)
    assert shell.json("history")[1]["signal"] == 9


def test_a_run_whose_guard_was_killed_is_stopped_and_closed_as_killed(shell: Shell) -> None:
    with running(shell) as guard:
        victim = command_of(shell)
        guard.kill()
        guard.wait(timeout=30)
        assert lives(victim)
        done = shell("run", "-j", "x", "--overlap", "kill", "--", "true")
        assert (done.returncode, done.stderr) == (0, "")
        assert not lives(victim)
    second, first = shell.json("history")
    assert (first["outcome"], first["why"]) == ("killed", "overlap")
    (shown,) = shell.json("show", str(first["number"]))
    assert shown["killed_by"] == second["run_id"]


def test_a_guard_that_is_stopped_ends_its_run_all_the_same(shell: Shell) -> None:
    with running(shell) as guard:
        guard.send_signal(signal.SIGSTOP)
        assert shell("run", "-j", "x", "--overlap", "kill", "--", "true").returncode == 0
    assert shell.json("history")[1]["why"] == "overlap"


def test_what_escaped_into_a_session_of_its_own_is_stopped_with_a_run_whose_guard_is_gone(shell: Shell) -> None:
    with running(shell, command="setsid sh -c 'echo $$ > escaped; exec sleep 60' & wait") as guard:
        wait_until(lambda: (shell.directory / "escaped").exists() and bool((shell.directory / "escaped").read_text()))
        escaped = command_of(shell, "escaped")
        guard.kill()
        guard.wait(timeout=30)
        assert shell("run", "-j", "x", "--overlap", "kill", "--", "true").returncode == 0
        assert not lives(escaped)


def test_a_start_that_waits_is_not_stopped_by_one_that_kills(shell: Shell) -> None:
    with running(shell):
        waiting = queued(shell, "--overlap", "wait", *SECOND)
        assert shell("run", "-j", "x", "--overlap", "kill", "--", "true").returncode == 0
        assert waiting.wait(timeout=30) == 0
    assert (shell.directory / "order").read_text() == "second\n"


def test_a_command_that_ignores_term_and_forks_is_stopped_where_its_guard_is_gone(shell: Shell) -> None:
    forking = "trap '' TERM; while :; do (sleep 0.1; sleep 60) & sleep 0.003; done"
    with running(shell, command=forking) as guard:
        victim = command_of(shell)
        guard.kill()
        guard.wait(timeout=30)
        assert shell("run", "-j", "x", "--overlap", "kill", "--kill-after", "0.2", "--", "true").returncode == 0
        assert not lives(victim)
    assert shell.processes("sleep 60") == []


def test_a_start_that_would_not_run_stops_nobody(shell: Shell) -> None:
    window = ("-s", "0 2 * * *", "-z", "UTC", "--scheduled-at", "2026-03-01T02:00Z")
    assert shell("run", "-j", "x", *window, "--", "true").returncode == 0
    with running(shell):
        assert shell("run", "-j", "x", *window, "--overlap", "kill", "--", "touch", "ran").returncode == 0
        assert (
            "not run (duplicate)" in shell("run", "-j", "x", *window, "--overlap", "kill", "--dry-run", "true").stdout
        )
        assert lives(command_of(shell))
    assert not (shell.directory / "ran").exists()


@pytest.mark.parametrize("policy", ["wait", "kill"])
def test_a_start_inside_the_run_that_is_in_the_way_is_refused(shell: Shell, policy: str) -> None:
    inner = (sys.executable, "-m", "runguard", "run", "-j", "x", "--overlap", policy, "--", "true")
    done = shell("run", "-j", "x", "--", "setsid", "-w", *inner)
    assert done.returncode == 75
    assert done.stderr.rstrip().endswith("holds the lock; this start is part of it")


def test_a_run_that_ends_by_the_order_of_another_says_so_whoever_signalled_its_command(shell: Shell) -> None:
    with running(shell) as guard:
        order(shell).write_text("0a0b0c0d-0000-4000-8000-000000000000")
        os.kill(command_of(shell), signal.SIGKILL)
        assert guard.wait(timeout=30) == 137
    (shown,) = shell.json("show", "1")
    assert (shown["outcome"], shown["why"]) == ("killed", "overlap")
    assert shown["killed_by"] == "0a0b0c0d-0000-4000-8000-000000000000"


def test_a_run_that_was_to_make_way_before_its_command_began_says_so(shell: Shell) -> None:
    shell("run", "-j", "x", "--", "true")
    with open(shell.state / "db" / "write.lock", "rb+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiting = guarded(shell, "--", "touch", "ran")
        wait_until(lambda: len(list((shell.state / "db" / "runs").glob("[!.]*"))) == 1)  # it has its lock
        order(shell).write_text("0a0b0c0d-0000-4000-8000-000000000000")
        waiting.terminate()
        _, said = waiting.communicate(timeout=30)
    assert said.splitlines()[-1] == (
        "runguard: x: stopped to make way for run 0a0b0c0d-0000-4000-8000-000000000000 (--overlap kill)"
    )
    assert not (shell.directory / "ran").exists()


@pytest.mark.parametrize("plant", [os.mkfifo, os.mkdir, lambda path: os.symlink("started", path)])
def test_what_is_no_order_does_not_hold_a_run_up(shell: Shell, plant: Callable[[Path], None]) -> None:
    with running(shell) as guard:
        plant(order(shell))
        guard.terminate()
        assert guard.wait(timeout=30) == 143
    assert shell.json("history")[0]["outcome"] == "cancelled"


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="needs root and unshare")
@pytest.mark.parametrize(
    "how", [("-pf", "--mount-proc"), ("-m", "sh", "-c", 'mount -t tmpfs none /proc && "$@"', "sh")]
)
def test_a_run_whose_processes_cannot_be_seen_is_not_said_to_be_killed(shell: Shell, how: tuple[str, ...]) -> None:
    with running(shell) as guard:
        shell.prefix = ("unshare", *how)
        done = shell("run", "-j", "x", "--overlap", "kill", "--", "true")
        assert done.returncode == 75
        assert "its processes cannot be seen from here (another pid namespace, or no /proc)" in done.stderr
        shell.prefix = ()
        guard.terminate()
        assert guard.wait(timeout=30) == 143
    assert [run["outcome"] for run in shell.json("history")] == ["refused", "cancelled"]


def test_a_run_that_is_stopped_between_two_attempts_says_by_whom(shell: Shell) -> None:
    retrying = guarded(shell, "--retries", "1", "--retry-delay", "1h", "--", "sh", "-c", "exit 5")
    wait_until(lambda: [run["outcome"] for run in shell.runs_so_far()] == ["failed"])
    assert shell("run", "-j", "x", "--overlap", "kill", "--", "true").returncode == 0
    _, said = retrying.communicate(timeout=30)
    assert retrying.returncode == 5
    assert said.rstrip().endswith(
        f"make way for run {shell.json('history')[0]['run_id']} (--overlap kill): not tried again"
    )


def test_what_an_attempt_left_holding_the_lock_is_stopped_where_the_guard_was_killed_before_the_next(
    shell: Shell,
) -> None:
    leaves = ("--", "sh", "-c", "setsid sleep 49 > left 2>&1 & exit 5")
    retrying = guarded(shell, "--retries", "1", "--retry-delay", "1h", *leaves)
    wait_until(lambda: [run["outcome"] for run in shell.runs_so_far()] == ["failed"])
    retrying.kill()
    retrying.communicate(timeout=30)
    (left,) = shell.processes("sleep 49")
    assert f"run 1 (pid {left}, for " in shell("run", "-j", "x", "--", "true").stderr
    assert shell("run", "-j", "x", "--overlap", "kill", "--", "true").returncode == 0
    assert not lives(left)


def test_nothing_living_means_that_a_start_that_kills_just_runs(shell: Shell) -> None:
    assert shell("run", "-j", "x", "--overlap", "kill", "--", "echo", "mine").stdout == "mine\n"


# allow


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="needs root and unshare")
def test_a_start_that_sees_no_proc_does_not_take_a_run_beside_it_for_lost(shell: Shell) -> None:
    with running(shell, "--overlap", "allow"):
        shell.prefix = ("unshare", "-m", "sh", "-c", 'mount -t tmpfs none /proc && "$@"', "sh")
        assert shell("run", "-j", "x", "--overlap", "allow", "--", "true").returncode == 0
        shell.prefix = ()
        assert [run["outcome"] for run in shell.json("history")] == ["succeeded", "running"]


def test_runs_beside_each_other_have_identities_of_their_own(shell: Shell) -> None:
    with running(shell, "--overlap", "allow"):
        done = shell("run", "-j", "x", "--overlap", "allow", "--", "sh", "-c", "echo $RUNGUARD_RUN_ID")
        second, first = shell.json("history")
        assert (first["outcome"], second["outcome"]) == ("running", "succeeded")
        assert done.stdout == second["run_id"] + "\n" != first["run_id"] + "\n"


def test_runs_beside_each_other_in_one_window_are_attempts_that_replace_nothing(shell: Shell) -> None:
    window = ("-s", "0 2 * * *", "-z", "UTC", "--scheduled-at", "2026-03-01T02:00Z", "--overlap", "allow")
    with running(shell, *window):
        assert shell("run", "-j", "x", *window, "--", "true").returncode == 0
        second, first = shell.json("history", "--since", "2026-01-01")
        assert (second["attempt"], second["supersedes"], first["superseded_by"]) == (2, None, None)


@pytest.mark.parametrize("earlier", ["allow", "skip"])
def test_a_start_that_does_not_allow_it_is_refused_beside_any_run(shell: Shell, earlier: str) -> None:
    with running(shell, "--overlap", earlier):
        assert shell("run", "-j", "x", "--", "true").returncode == 75


def test_a_start_that_allows_it_runs_beside_one_that_does_not(shell: Shell) -> None:
    with running(shell):
        assert shell("run", "-j", "x", "--overlap", "allow", "--", "true").returncode == 0


# refusals, counted


def test_a_refusal_names_what_a_dead_command_has_left_holding_the_lock(shell: Shell) -> None:
    with running(shell, command="sleep 47 & wait") as guard:
        guard.kill()
        guard.wait(timeout=30)
        os.kill(command_of(shell), signal.SIGKILL)
        wait_until(lambda: not lives(command_of(shell)))
        (left,) = shell.processes("sleep 47")
        assert f"run 1 (pid {left}, for " in (said := shell("run", "-j", "x", "--", "true").stderr)
        assert ": sleep 47) holds the lock" in said


def test_repeated_refusals_are_counted_with_the_holder(shell: Shell) -> None:
    with running(shell):
        pid = command_of(shell)
        first = shell("run", "-j", "x", "--", "true").stderr
        assert f"not run (overlap): run 1 (pid {pid}, for " in first
        assert "sh -c 'echo" in first or "sh -c echo" in first
        assert "in a row" not in first
        shell("run", "-j", "x", "--", "true")
        third = shell("run", "-j", "x", "--", "true").stderr
        since = shell.json("history")[2]["started_at"][: len("2026-03-29T02:30:00")] + "Z"
        assert third.rstrip().endswith(f"refused 3 times in a row, since {since}")


@pytest.mark.parametrize(
    ("policy", "would"),
    [
        ("skip", "refuse (overlap), exit status 75"),
        ("wait", "wait for its end, then run the command, or refuse (overlap), exit status 75"),
        ("kill", "stop it, then run the command"),
        ("allow", "run the command as attempt 1"),
    ],
)
def test_a_dry_run_says_what_the_policy_would_do(shell: Shell, policy: str, would: str) -> None:
    with running(shell):
        assert f"would    {would}\n" in shell("run", "-j", "x", "--overlap", policy, "--dry-run", "--", "true").stdout

"""What broke for users of other tools: locks and overlap. Each test is one thing that really happened to somebody.

Elsewhere: a lock file that cannot be trusted, directories of other accounts (test_private_places, test_paths), network
file systems (store/test_sqlite), a killed guard, a deleted lock file (test_run).
"""

from __future__ import annotations

import os
import signal

import pytest

from guarded import command_of, lives, running
from runguard.guard import host
from shell import Shell, wait_until

DAILY = ("-s", "0 2 * * *", "-z", "UTC", "--scheduled-at", "2026-03-01T02:00Z")
START = {
    "run_id": "3f0c12ab-0000-4000-8000-000000000001", "number": 1, "job": "x", "revision": None, "window": None,
    "attempt": 1, "trigger": "schedule", "reason": None, "supersedes": None, "covers": None, "boot_id": "",
    "guard_pid": 0, "guard_start": 1, "argv": ["sleep", "60"], "remarks": [],
}  # fmt: skip


@pytest.mark.parametrize(
    "daemon",
    [
        "setsid sleep 60 > /dev/null 2>&1 &",
        "(((sleep 60 > /dev/null 2>&1 &) &) &)",
        "sleep 60 &",  # it keeps the output, too
    ],
)
def test_what_a_job_leaves_behind_does_not_hold_its_lock(shell: Shell, daemon: str) -> None:
    left = shell("run", "-j", "x", "--", "sh", "-c", daemon)
    assert left.returncode == 0
    assert shell("run", "-j", "x", "--", "true").returncode == 0
    (sleeper,) = shell.processes("sleep 60")
    os.kill(sleeper, signal.SIGKILL)


def test_a_daemon_that_keeps_the_output_is_named_with_its_pid(shell: Shell) -> None:
    left = shell("run", "-j", "x", "--", "sh", "-c", "sleep 60 & echo $! > daemon")
    daemon = int((shell.directory / "daemon").read_text())
    assert f"the command left behind {daemon} (sleep 60)" in left.stderr
    (run,) = shell.json("history")
    (shown,) = shell.json("show", str(run["number"]))
    assert [each["pid"] for each in shown["stragglers"]] == [daemon]
    os.kill(daemon, signal.SIGKILL)


def test_while_a_job_puts_its_end_off_nobody_else_starts(shell: Shell) -> None:
    stubborn = "trap 'touch told' TERM; while [ ! -e go ]; do sleep 0.02; done; exit 3"
    with running(shell, command=stubborn) as guard:
        guard.send_signal(signal.SIGTERM)
        wait_until((shell.directory / "told").exists)
        assert shell("run", "-j", "x", "--", "true").returncode == 75
        (shell.directory / "go").touch()
        assert guard.wait(timeout=30) == 3
    assert shell("run", "-j", "x", "--", "true").returncode == 0


@pytest.mark.parametrize("whose", ["an unrelated living process", "nobody"])
def test_a_stored_run_without_an_end_is_history_and_no_lock(shell: Shell, whose: str) -> None:
    pid = os.getpid() if whose == "an unrelated living process" else 2**22 - 1
    shell.write(("run.start", "2026-03-01T02:00:00Z", {**START, "boot_id": host.boot_id(), "guard_pid": pid}))
    done = shell("run", "-j", "x", "--", "echo", "mine")
    assert (done.returncode, done.stdout) == (0, "mine\n")
    assert [run["outcome"] for run in shell.json("history", "--since", "2026-01-01")] == ["succeeded", "lost"]


def test_after_guard_and_command_were_killed_the_next_start_runs_and_closes_the_run_as_lost(shell: Shell) -> None:
    with running(shell) as guard:
        guard.kill()
        os.killpg(command_of(shell), signal.SIGKILL)
        wait_until(lambda: not lives(command_of(shell)))
        assert shell("run", "-j", "x", "--", "true").returncode == 0
    assert [run["outcome"] for run in shell.json("history")] == ["succeeded", "lost"]


def test_a_slow_job_keeps_no_other_job_waiting(shell: Shell) -> None:
    with running(shell, job="slow"):
        assert shell("run", "-j", "fast", "--", "true").returncode == 0


def test_a_refused_start_leaves_one_row_for_its_window(shell: Shell) -> None:
    with running(shell):
        assert shell("run", "-j", "x", *DAILY, "--", "true").returncode == 75
    (refused,) = [run for run in shell.json("history", "--since", "2026-01-01") if run["outcome"] == "refused"]
    assert refused["window"]["key"] == "L2026-03-01T02:00"
    (window,) = shell.json("windows", "x", "--since", "2026-03-01T01:00Z", "--until", "2026-03-01T03:00Z")
    assert (window["verdict"], window["because"]) == ("missing", f"refused by run {refused['number']} (overlap)")


@pytest.mark.parametrize("argv", [("./job", "a"), ("./x.lock",), ("./x",)])
def test_a_jobs_own_files_are_never_taken_for_its_lock(shell: Shell, argv: tuple[str, ...]) -> None:
    script = shell.directory / argv[0]
    script.write_text("#!/bin/sh\necho ran\n")
    script.chmod(0o755)
    assert shell("run", "-j", "x", "--", *argv).stdout == "ran\n"
    assert script.read_text() == "#!/bin/sh\necho ran\n"
    assert (shell.state / "db" / "locks" / "x.lock").stat().st_ino != script.stat().st_ino

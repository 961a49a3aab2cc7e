"""Who holds a job's lock now: processes, found by the inode of the lock file."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runguard.guard import lock, lockholders
from shell import wait_until

# Takes the lock as a guard does, hands it down to `sleep`, tells its pid, and waits.
GUARD = """
import os, subprocess, sys
from runguard.guard import lock
held = lock.take(sys.argv[1], sys.argv[2])
os.set_inheritable(held.fd, True)
child = subprocess.Popen(sys.argv[3:], close_fds=False)
print(child.pid, flush=True)
child.wait()
"""


class Held:
    """A lock that a guard took and its command inherited."""

    def __init__(self, guard: subprocess.Popen[str]) -> None:
        assert guard.stdout is not None
        self.guard = guard
        self.command_pid = int(guard.stdout.readline())


@pytest.fixture
def locks(tmp_path: Path) -> str:
    directory = tmp_path / "locks"
    directory.mkdir(mode=0o700)
    return str(directory)


@pytest.fixture
def hold(locks: str) -> Iterator[Callable[..., Held]]:
    """Let a guard hold the lock of a job: `hold("letters", "sleep", "60")`."""
    started: list[Held] = []

    def start(job: str, *command: str) -> Held:
        words = [sys.executable, "-c", GUARD, locks, job, *(command or ("sleep", "60"))]
        started.append(Held(subprocess.Popen(words, stdout=subprocess.PIPE, text=True)))
        return started[-1]

    yield start
    for each in started:
        for pid in (each.command_pid, each.guard.pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        each.guard.wait()


def test_a_lock_that_nobody_holds_has_no_holder(locks: str) -> None:
    Path(locks, "letters.lock").touch(mode=0o600)
    assert lockholders.holders(locks) == {}


def test_of_guard_and_command_the_command_is_shown(locks: str, hold: Callable[..., Held]) -> None:
    held = hold("letters", "sleep", "61")
    found = lockholders.holders(locks)["letters"]
    assert (found.pid, found.command) == (held.command_pid, "sleep 61")
    assert found.pids == (held.guard.pid, held.command_pid)
    assert found.age_s is not None
    assert 0 <= found.age_s < 60


def test_a_command_whose_guard_was_killed_holds_the_lock(locks: str, hold: Callable[..., Held]) -> None:
    held = hold("letters", "sleep", "62")
    held.guard.kill()
    held.guard.wait()
    found = lockholders.holders(locks)["letters"]
    assert (found.pid, found.command, found.pids) == (held.command_pid, "sleep 62", (held.command_pid,))


def test_a_lock_file_that_was_deleted_and_made_anew_still_shows_its_holder(
    locks: str, hold: Callable[..., Held]
) -> None:
    held = hold("letters")
    Path(locks, "letters.lock").unlink()
    Path(locks, "letters.lock").touch(mode=0o600)
    assert lockholders.holders(locks)["letters"].pid == held.command_pid


def test_a_process_that_merely_has_the_file_open_holds_nothing(locks: str) -> None:
    path = Path(locks, "letters.lock")
    path.touch(mode=0o600)
    with path.open("rb"):
        assert lockholders.holders(locks) == {}


def test_a_process_that_waits_for_the_lock_is_no_holder(locks: str, hold: Callable[..., Held]) -> None:
    held = hold("letters")
    path = Path(locks, "letters.lock")
    waiter = subprocess.Popen(["flock", str(path), "true"])
    try:
        waits = f"-> FLOCK  ADVISORY  WRITE {waiter.pid} "
        wait_until(lambda: waits in Path("/proc/locks").read_text())
        assert lockholders.holders(locks)["letters"].pids == (held.guard.pid, held.command_pid)
    finally:
        waiter.kill()
        waiter.wait()


def test_asking_takes_no_lock(locks: str) -> None:
    Path(locks, "letters.lock").touch(mode=0o600)
    lockholders.holders(locks)
    held = lock.take(locks, "letters")
    assert held is not None
    with open(held.path, "rb") as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
    held.release()
    assert lockholders.holders(locks) == {}


def test_of_runs_that_share_a_lock_every_process_is_told_and_the_oldest_command_shown(locks: str) -> None:
    Path(locks, "letters.lock").touch(mode=0o600)
    with open(Path(locks, "letters.lock")) as one, open(Path(locks, "letters.lock")) as other:
        for file in (one, other):
            fcntl.flock(file, fcntl.LOCK_SH)
        with subprocess.Popen(["sleep", "63"], pass_fds=[one.fileno()]) as command:
            found = lockholders.holders(locks)["letters"]
            command.kill()
    assert (found.pid, found.pids) == (command.pid, (os.getpid(), command.pid))


def test_each_job_has_its_own_holder(locks: str, hold: Callable[..., Held]) -> None:
    letters, backup = hold("letters"), hold("backup")
    found = lockholders.holders(locks)
    assert {job: holder.pid for job, holder in found.items()} == {
        "letters": letters.command_pid,
        "backup": backup.command_pid,
    }


def test_the_holders_secrets_are_masked(locks: str, hold: Callable[..., Held]) -> None:
    hold("letters", "sh", "-c", "sleep 60; : https://ann:hunter2@mail.example/")
    assert "hunter2" not in lockholders.holders(locks)["letters"].command


def test_a_directory_that_is_not_to_be_seen_has_no_holders(tmp_path: Path) -> None:
    assert lockholders.holders(str(tmp_path / "absent")) == {}

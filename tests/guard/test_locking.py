"""Who holds the lock on a file: every process with the locked descriptor, and nobody else."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

from runguard.guard import locking


def test_a_lock_that_nobody_holds_has_no_holders(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with path.open("w"):
        assert locking.by(str(path)) == []


def test_the_process_that_took_it_and_its_heir_hold_a_lock(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with subprocess.Popen(["/bin/sleep", "60"], pass_fds=[file.fileno()]) as heir:
            assert locking.by(str(path)) == sorted([os.getpid(), heir.pid])
            heir.kill()


def test_whoever_only_has_the_file_open_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with subprocess.Popen(["/bin/sleep", "60"], stdin=path.open()) as other:
            assert locking.by(str(path)) == [os.getpid()]
            other.kill()


def test_a_lock_is_a_runs_where_its_guard_took_it_or_whoever_did_has_gone(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with path.open("w") as file:
        takes = "import fcntl, sys; fcntl.flock(int(sys.argv[1]), fcntl.LOCK_EX)"
        subprocess.run([sys.executable, "-c", takes, str(file.fileno())], pass_fds=[file.fileno()], check=True)
        assert locking.by_run(str(path), 1) == [os.getpid()]
        fcntl.flock(file, fcntl.LOCK_UN)
        fcntl.flock(file, fcntl.LOCK_EX)
        assert locking.by_run(str(path), 1) == []
        assert locking.by_run(str(path), os.getpid()) == [os.getpid()]

"""A guarded command that lives while a test looks at it, and what lives of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from shell import Shell, wait_until


@contextmanager
def running(
    shell: Shell, *options: str, command: str = "sleep 60", started: str = "started", job: str = "x"
) -> Iterator[subprocess.Popen[str]]:
    """Give the guard of a run whose command, a line of shell that notes its pid in the file `started`, has begun."""
    mark = shell.directory / started
    mark.unlink(missing_ok=True)
    guard = guarded(shell, *options, "--", "sh", "-c", f"echo $$ > {started}; {command}", job=job)
    try:
        wait_until(lambda: mark.exists() and mark.read_text().endswith("\n"))
        yield guard
    finally:
        guard.kill()
        with suppress(OSError, ValueError):
            os.killpg(command_of(shell, started), signal.SIGKILL)
        guard.communicate(timeout=30)


def guarded(shell: Shell, *arguments: str, job: str = "x") -> subprocess.Popen[str]:
    """Start `runguard run` of a job and leave it alone."""
    line = [*shell.prefix, sys.executable, "-m", "runguard", "run", "-j", job, *arguments]
    return subprocess.Popen(line, env=shell.environ, cwd=shell.directory, text=True, stderr=subprocess.PIPE)


def queued(shell: Shell, *arguments: str, job: str = "x") -> subprocess.Popen[str]:
    """Start one that waits for the job's lock, and return it once it has the lock file open."""
    waiting = guarded(shell, *arguments, job=job)
    lock = str(shell.state / "db" / "locks" / f"{job}.lock")
    wait_until(lambda: lock in [str(fd.resolve()) for fd in Path(f"/proc/{waiting.pid}/fd").iterdir()])
    return waiting


def command_of(shell: Shell, started: str = "started") -> int:
    """Return the pid that a command has noted."""
    return int((shell.directory / started).read_text())


def lives(pid: int) -> bool:
    """Return whether a process lives; one that nobody has reaped does not."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False

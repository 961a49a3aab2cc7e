"""The command line as a process, on a state directory with records of our choice."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import runguard
from runguard.instant import from_rfc3339
from runguard.store.database import Store
from runguard.store.lines import Author
from runguard.store.sqlite import open_store

SOURCE = str(Path(runguard.__file__).parents[1])
AUTHOR = Author("alpha", {"uid": 1000, "user": "ann", "login": "ann", "sudo_user": None}, "0.1.0")


class Shell:
    """A state directory and the command line on it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.state = directory / "state"
        self.config = directory / "runguard.toml"
        self.config.write_text("")
        self.environ = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(directory),
            "TZ": "UTC",
            "RUNGUARD_STATE_DIR": str(self.state),
            "RUNGUARD_CONFIG": str(self.config),
            "PYTHONPATH": SOURCE,
        }

    def __call__(self, *arguments: str | bytes, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run `runguard` with these arguments; `environ` adds variables."""
        environ = {**self.environ, **options.pop("environ", {})}
        command = [sys.executable, "-m", "runguard", *arguments]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL, **options}
        return subprocess.run(
            command, env=environ, cwd=self.directory, encoding="utf-8", errors="surrogateescape", timeout=60, **pipes
        )

    def json(self, *arguments: str) -> Any:
        """Return what a query says with --json."""
        done = self(*arguments, "--json")
        assert (done.returncode, done.stderr) == (0, "")
        return json.loads(done.stdout)

    def write(self, *entries: tuple[str, str, dict[str, Any]]) -> None:
        """Append (kind, instant, fields) to the ledger."""
        with self.open() as store, store.write() as transaction:
            for kind, at, fields in entries:
                transaction.append(kind, from_rfc3339(at), fields)

    @contextmanager
    def open(self) -> Iterator[Store]:
        """Give the store for writing."""
        store = open_store(
            str(self.state / "db" / "runguard.sqlite"),
            author=AUTHOR,
            create=True,
            witness_directory=str(self.state / "witness"),
        )
        yield store
        store.close()

    def on_terminal(self, *arguments: str, columns: int = 80, **environ: str) -> str:
        """Return what `runguard` writes to a terminal of that width, with its line ends as \\n."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        command = [sys.executable, "-m", "runguard", *arguments]
        everything = {**self.environ, "TERM": "xterm-256color", **environ}
        process = subprocess.Popen(
            command, env=everything, cwd=self.directory, stdin=theirs, stdout=theirs, stderr=theirs
        )
        os.close(theirs)
        seen = b""
        try:
            while part := os.read(ours, 65536):
                seen += part
        except OSError:  # EIO: the last holder of the terminal has gone
            pass
        os.close(ours)
        assert process.wait(timeout=60) == 0
        return seen.decode("utf-8", "surrogateescape").replace("\r\n", "\n")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    os.chmod(tmp_path, 0o700)
    return Shell(tmp_path)


def run_id(number: int) -> str:
    return f"{number:08x}-0000-4000-8000-000000000000"


WINDOW = {
    "key": "L2026-03-29T02:30",
    "start": "2026-03-28T02:30:00Z",
    "due": "2026-03-29T01:30:00Z",
    "label": "2026-03-29T02:30+01:00",
    "nominal": "2026-03-29T02:30",
    "how": "real",
    "fold": 0,
    "collapsed": [],
    "zone": "Europe/London",
    "tzdata": "2026a",
    "schedule": {"expression": "30 2 * * *", "zone": "Europe/London", "policy": "vixie", "gap": None, "fold": None},
}


@pytest.fixture
def started() -> Callable[..., tuple[str, str, dict[str, Any]]]:
    """Return a maker of `run.start`; keywords replace fields."""

    def make(number: int, at: str = "2026-03-29T01:30:02Z", **fields: Any) -> tuple[str, str, dict[str, Any]]:
        run = {
            "run_id": run_id(number), "number": number, "job": "letters", "revision": 1, "window": WINDOW,
            "late_s": 2.0, "attempt": 1, "trigger": "schedule", "reason": None, "supersedes": None, "parent": None,
            "boot_id": "b00t", "guard_pid": 4711, "guard_start": 99, "argv": ["/opt/letters/send", "--all"],
            "shell": False, "cwd": "/home/ann", "path": "/usr/bin:/bin", "program": None, "inputs": [],
            "commit": None, "python": "3.11.2", "remarks": [],
        }  # fmt: skip
        return "run.start", at, {**run, **fields}

    return make


@pytest.fixture
def finished() -> Callable[..., tuple[str, str, dict[str, Any]]]:
    """Return a maker of `run.finish`; keywords replace fields."""

    def make(number: int, outcome: str = "succeeded", **fields: Any) -> tuple[str, str, dict[str, Any]]:
        end = {
            "run_id": run_id(number), "outcome": outcome, "exit_status": 0, "returned": 0, "signal": None,
            "why": None, "started": "2026-03-29T01:30:02Z", "finished": "2026-03-29T01:31:34Z", "duration_s": 92.5,
            "user_s": 1.25, "system_s": 0.5, "peak_memory_bytes": 3145728, "command_pid": 4712,
            "output": None, "stragglers": [], "remarks": [],
        }  # fmt: skip
        return "run.finish", "2026-03-29T01:31:34Z", {**end, **fields}

    return make


@pytest.fixture
def refused() -> Callable[..., tuple[str, str, dict[str, Any]]]:
    """Return a maker of `run.refused`; keywords replace fields."""

    def make(number: int, **fields: Any) -> tuple[str, str, dict[str, Any]]:
        run = {
            "run_id": run_id(number), "number": number, "job": "letters", "revision": 1, "window": WINDOW,
            "late_s": 9.0, "why": "overlap", "because": "run 1 still runs", "returned": 75, "trigger": "schedule",
            "reason": None, "holder": {"run_id": run_id(1), "number": 1, "guard_pid": 4711, "command_pid": 4712,
            "command": "/opt/letters/send --all", "started": "2026-03-29T01:30:02Z"}, "argv": ["/opt/letters/send"],
            "cwd": "/", "remarks": [],
        }  # fmt: skip
        return "run.refused", "2026-03-29T01:30:09Z", {**run, **fields}

    return make

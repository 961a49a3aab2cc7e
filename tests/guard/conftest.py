"""Real guards around real commands: see drive.py."""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import runguard

SOURCE = str(Path(runguard.__file__).parents[1])
DRIVE = str(Path(__file__).with_name("drive.py"))


class Driven(NamedTuple):
    """A driven command's end."""

    status: int
    out: bytes
    err: bytes
    report: dict[str, Any]


class Guard(NamedTuple):
    """A guard that runs; `report_path` is where it will say how its command ended."""

    process: subprocess.Popen[bytes]
    report_path: Path

    def finish(self, timeout_s: float = 30) -> Driven:
        out, err = self.process.communicate(timeout=timeout_s)
        report = json.loads(self.report_path.read_text()) if self.report_path.exists() else {}
        return Driven(self.process.returncode, out or b"", err or b"", report)


@pytest.fixture(autouse=True)
def own_orphans() -> Iterator[None]:
    """Hand back to init what a guard inside the test's own process has adopted."""
    yield
    ctypes.CDLL(None).prctl(36, 0, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


@pytest.fixture
def guard(tmp_path: Path) -> Iterator[Callable[..., Guard]]:
    """Start a guard around a command: `guard("sh", "-c", "…", options={…}, **for Popen)`."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*command: str, options: dict[str, Any] | None = None, **popen: Any) -> Guard:
        report_path = tmp_path / f"report{len(started)}.json"
        popen = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **popen}
        popen["env"] = {**popen.get("env", os.environ), "PYTHONPATH": SOURCE}
        wrapper = popen.pop("wrapper", [])
        given = json.dumps({"report": str(report_path), **(options or {})})
        process = subprocess.Popen([*wrapper, sys.executable, DRIVE, given, *command], **popen)
        started.append(process)
        return Guard(process, report_path)

    yield start
    for process in started:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()
        process.wait()


@pytest.fixture
def drive(guard: Callable[..., Guard]) -> Callable[..., Driven]:
    """Run a command under a guard to its end."""

    def run(*command: str, timeout_s: float = 30, **more: Any) -> Driven:
        given = more.pop("input", None)
        if given is not None:
            more["stdin"] = subprocess.PIPE
        started = guard(*command, **more)
        if given is not None:
            assert started.process.stdin is not None
            started.process.stdin.write(given)
            started.process.stdin.close()
            started.process.stdin = None
        return started.finish(timeout_s)

    return run


@pytest.fixture
def ready(tmp_path: Path) -> Iterator[Callable[[], bytes]]:
    """A FIFO `ready` in tmp_path: a command says `echo >ready` when it is where a test wants it; calling waits."""
    path = tmp_path / "ready"
    os.mkfifo(path)
    fd = os.open(path, os.O_RDWR)  # both ends, so that neither side ever waits for the other to open it

    def wait() -> bytes:
        assert select.select([fd], [], [], 30)[0], "the command never got there"
        return os.read(fd, 4096)

    yield wait
    os.close(fd)

"""Entries of the ledger, made to measure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


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

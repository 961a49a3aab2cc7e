"""How long questions take on a store with a million runs: ten years of a job that is due every five minutes."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.table import show
from runguard.instant import SECOND_US, rfc3339
from runguard.store.lines import Author
from runguard.store.sqlite import open_store

RUNS = 1_000_000
ONE_IN = 21  # windows that nobody answered
_STEP_US = 300 * SECOND_US
_ROUNDS = 5
_QUESTIONS = (
    ("missing, ten years", ("missing", "poll"), "1.5"),
    ("history, the last seven days", ("history", "poll"), "0.3"),
    ("history, the last 20 runs", ("history", "poll", "-n", "20"), "0.3"),
    ("windows, the last seven days", ("windows", "poll"), ""),
    ("status", ("status",), ""),
    ("check", ("check",), ""),
)


def measure(directory: Path) -> None:
    """Fill a store below `directory` and print what each question takes as a whole command."""
    environ = {**os.environ, "RUNGUARD_STATE_DIR": str(directory / "state"), "RUNGUARD_CONFIG": os.devnull}
    (directory / "state" / "db").mkdir(parents=True, mode=0o700)
    (directory / "state").chmod(0o700)
    store = directory / "state" / "db" / "runguard.sqlite"
    _fill(store)
    rows = []
    for name, question, wanted in _QUESTIONS:
        took, count = zip(*(_ask(question, environ) for _ in range(_ROUNDS)), strict=True)
        rows.append((name, f"{count[0]:,}", f"{median(took):.2f}", wanted))
    title = f"Questions to {RUNS:,} runs in {store.stat().st_size >> 20} MiB, whole commands, medians of {_ROUNDS}"
    show(title, ("", "rows", "s", "wanted s"), rows)


def _ask(question: tuple[str, ...], environ: dict[str, str]) -> tuple[float, int]:
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "runguard", *question], env=environ, capture_output=True, check=False)
    return time.perf_counter() - began, done.stdout.count(b"\n") - 1


def _fill(path: Path) -> None:
    """Write the tables directly: a million starts and ends through the ledger would take minutes."""
    author = Author("alpha", {"uid": 0, "user": "root", "login": "ada", "sudo_user": None}, "0")
    store = open_store(str(path), author=author, create=True)
    store.head()
    store.close()
    end_us = int(time.time()) // 300 * 300 * SECOND_US
    begin_us = end_us - RUNS * ONE_IN // (ONE_IN - 1) * _STEP_US
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA synchronous = OFF")
    database.execute("PRAGMA journal_mode = OFF")
    database.execute("BEGIN")
    columns = ", ".join(_run(1, end_us, uuid.UUID(int=1)))
    places = ", ".join("?" * len(_run(1, end_us, uuid.UUID(int=1))))
    database.executemany(f"INSERT INTO run ({columns}) VALUES ({places})", _runs(begin_us, end_us))
    database.execute("INSERT INTO job VALUES ('poll', ?, 1)", (begin_us,))
    database.execute(
        "INSERT INTO revision VALUES ('poll', 1, '*/5 * * * *', 'Europe/London', 'vixie', NULL, NULL, ?, ?, 1)",
        (begin_us, begin_us),
    )
    database.execute("COMMIT")
    database.close()


def _runs(begin_us: int, end_us: int) -> Iterator[tuple[Any, ...]]:
    chance = random.Random(1)
    number = 0
    for at, due_us in enumerate(range(begin_us + _STEP_US, end_us + 1, _STEP_US)):
        if at % ONE_IN:
            number += 1
            yield tuple(_run(number, due_us, uuid.UUID(int=chance.getrandbits(128), version=4)).values())


def _run(number: int, due_us: int, run_id: uuid.UUID) -> dict[str, Any]:
    minute = rfc3339(due_us)[:16]
    return {
        "start_seq": 2 * number, "finish_seq": 2 * number + 1, "run_id": str(run_id), "number": number, "job": "poll",
        "revision": 1, "window_key": f"U{minute}Z", "window_start_us": due_us - _STEP_US, "due_us": due_us,
        "label": f"{minute}+00:00", "nominal": minute, "zone": "Europe/London", "attempt": 1, "trigger": "schedule",
        "outcome": "succeeded", "exit_status": 0, "returned": 0, "started_us": due_us + SECOND_US,
        "finished_us": due_us + 3 * SECOND_US, "duration_us": 2 * SECOND_US, "host": "alpha", "boot_id": "b" * 36,
        "guard_pid": 4711, "actor": "ada", "answered_due_us": due_us,
    }  # fmt: skip

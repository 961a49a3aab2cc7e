"""What `explain` takes on a year of case entries: inside, and as a whole command that puts on record that it asked."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from runguard.evidence import lists, words
from runguard.evidence.explain import explain
from runguard.evidence.found import Asked
from runguard.evidence.ran import Moment
from runguard.instant import SECOND_US
from runguard.store.sqlite import open_reader

_GRACE_US = 300 * SECOND_US


def inside(path: Path, cases: list[str], now_us: int) -> list[float]:
    """Return how long each of `cases` took to be told, to its last line, on an open store: in ms, ascending."""
    took_ms = []
    moment = Moment(now_us, str(path.parent / "runs"))
    with open_reader(str(path)) as reader:
        for case in cases:
            began_s = time.perf_counter()
            told = explain(reader, Asked(case, moment, lambda _: _GRACE_US))
            assert told is not None
            assert sum(1 for _ in words.lines(told)) > 10
            took_ms.append((time.perf_counter() - began_s) * 1000)
    return sorted(took_ms)


def whole(state: Path, cases: list[str]) -> list[float]:
    """Return how long `runguard explain` took for each of `cases`: in ms, ascending."""
    environ = {**os.environ, "RUNGUARD_STATE_DIR": str(state), "RUNGUARD_CONFIG": os.devnull}
    took_ms = []
    for case in cases:
        began_s = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "runguard", "explain", case], env=environ, capture_output=True, check=True
        )
        took_ms.append((time.perf_counter() - began_s) * 1000)
        assert done.stdout.endswith(b" of the ledger.\n")
    return sorted(took_ms)


def some(path: Path, runs: list[tuple[int, str]], entries: int, count: int) -> list[str]:
    """Return cases that random entries of random runs are about."""
    chance = random.Random(4)
    database = sqlite3.connect(path)
    found = []
    for _ in range(count):
        start_seq, _id = chance.choice(runs)
        id = lists.number(start_seq, chance.randrange(entries) + 1)
        found.append(database.execute("SELECT case_id FROM item WHERE id = ?", (id,)).fetchone()[0])
    database.close()
    return found


def rows(name: str, took_ms: list[float], wanted: str) -> list[tuple[str, str, str]]:
    """Return median and 99th percentile as rows of a table."""
    return [
        (f"{name}, median, ms", f"{median(took_ms):.1f}", ""),
        (f"{name}, 99th percentile, ms", f"{took_ms[int(len(took_ms) * 0.99)]:.1f}", wanted),
    ]

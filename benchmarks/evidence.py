"""Case entries on a year of 6,000 cases a day: taking more in, and finding one case among 2.2 million entries."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import explaining, verifying
from benchmarks.table import show
from runguard.evidence import lists
from runguard.evidence.tally import Tally
from runguard.guard.intake import Intake
from runguard.instant import DAY_S, SECOND_US, rfc3339
from runguard.store import items
from runguard.store.database import Store
from runguard.store.lines import Author
from runguard.store.sqlite import open_store

DAYS = 365
CASES = 6000  # a day
FRESH_RUNS = 10  # that are taken in afterwards, intents and results
_AUTHOR = Author("alpha", {"uid": 0, "user": "root", "login": "ada", "sudo_user": None}, "0")
_LOOKUPS = 1000
_SCHEDULE = {"expression": "0 0 * * *", "zone": "UTC", "policy": "vixie", "gap": None, "fold": None}
_BEGAN_US = 1_735_689_600 * SECOND_US  # 2025-01-01T00:00:00Z


def measure(directory: Path) -> None:
    """Fill a store below `directory`, and print what it takes to add to it and to ask it."""
    for name, ordered in (("each day the same cases, in order", True), ("cases without any order", False)):
        state = directory / ("ordered" if ordered else "unordered")
        path = state / "db" / "runguard.sqlite"
        path.parent.mkdir(parents=True, mode=0o700)
        state.chmod(0o700)
        runs = _fill(path, ordered=ordered)
        verified = verifying.whole(state)
        entries = DAYS * CASES
        per_entry = path.stat().st_size / entries
        with _open(path) as store:
            rate, longest_s = _take_in(store, state, ordered=ordered)
            found_ms = _find(store, ordered=ordered)
        asked = explaining.some(path, runs, CASES, _LOOKUPS // 10 if ordered else _LOOKUPS)  # 365 touches each, or 2
        told_ms = explaining.inside(path, asked, _BEGAN_US + DAYS * DAY_S * SECOND_US)
        commands_ms = explaining.whole(state, asked)
        rows = [
            ("taken in, entries a second", f"{rate:,.0f}", "25,000"),
            ("longest hold of the write lock, ms", f"{longest_s * 1000:.0f}", "150"),
            ("finding one case, median, ms", f"{median(found_ms):.2f}", ""),
            ("finding one case, 99th percentile, ms", f"{found_ms[int(len(found_ms) * 0.99)]:.2f}", "10"),
            *explaining.rows("explaining one case", told_ms, "10"),
            *explaining.rows("runguard explain as a whole command", commands_ms, "250"),
            *verifying.rows(verified),
            ("bytes of the store for each entry", f"{per_entry:.0f}", ""),
            ("bytes of the job's line", f"{len(_line(1, 'HB-000001', 'intent')):.0f}", ""),
        ]
        show(f"Case entries in a store that has {entries:,}: {name}", ("", "", "wanted"), rows)


def _open(path: Path) -> Store:
    return open_store(str(path), author=_AUTHOR, create=True)


def _register(store: Store) -> None:
    after = rfc3339(_BEGAN_US - DAY_S * SECOND_US)
    fields = {"job": "letters", "change": "registered", "revision": 1, "schedule": _SCHEDULE, "after": after}
    with store.write() as tx:
        tx.append("job.changed", _BEGAN_US - SECOND_US, fields)


def _run(store: Store, day: int, run_id: str, list_sha256: str | None, size_bytes: int) -> int:
    """Record the run of a day, whose entries have that list and size; return the entry of its start."""
    due_us = _BEGAN_US + day * DAY_S * SECOND_US
    minute = rfc3339(due_us)[:16]
    window = {
        "key": f"L{minute}", "start": rfc3339(due_us - DAY_S * SECOND_US), "due": rfc3339(due_us),
        "label": f"{minute}+00:00", "nominal": minute, "how": "real", "fold": 0, "collapsed": [], "zone": "UTC",
        "tzdata": "2025b", "schedule": _SCHEDULE,
    }  # fmt: skip
    code = {"path": "/opt/letters/send.py", "sha256": "ab" * 32, "size": 9000}
    start = {
        "run_id": run_id, "job": "letters", "revision": 1, "window": window, "late_s": 1.0, "trigger": "schedule",
        "reason": None, "parent": None, "boot_id": "b" * 36, "guard_pid": 4711, "guard_start": 99, "attempt": 1,
        "supersedes": None, "covers": None, "waited_s": 0.0, "ended": [], "argv": ["/opt/letters/send.py", "--all"],
        "masked": False, "shell": False, "cwd": "/", "path": "/usr/bin:/bin", "program": code, "inputs": [],
        "commit": "c" * 40, "python": "3.11.2", "remarks": [],
    }  # fmt: skip
    items = {**dict.fromkeys(Tally._fields, 0), "entries": CASES, "cases": CASES, "done": CASES, "bytes": size_bytes,
             "expected": None, "list_sha256": list_sha256, "rejected_sha256": None}  # fmt: skip
    stream = {"bytes": 0, "sha256": "0" * 64, "omitted_bytes": 0}
    finish = {
        "run_id": run_id, "outcome": "succeeded", "exit_status": 0, "returned": 0, "signal": None, "why": None,
        "suspect": None, "duration_s": 99.5, "items": items, "finished": rfc3339(due_us + 100 * SECOND_US),
        "output": {"merged": True, "stdout": stream, "stderr": stream, "omitted_bytes": 0}, "remarks": [],
    }  # fmt: skip
    with store.write() as tx:
        start["number"] = store.next_number()
        seq = tx.append("run.start", due_us + SECOND_US, start).seq
        tx.append("run.finish", due_us + 100 * SECOND_US, finish)
    return seq


def _case(n: int, chance: random.Random, *, ordered: bool) -> str:
    return f"HB-{n % CASES:06}" if ordered else f"HB-{chance.randrange(1_000_000):06}"


def _line(n: int, case: str, phase: str) -> bytes:
    said = {"result": "done", "reason": "No reply for 28 days since the first letter."} if phase == "result" else {}
    head = {"case": case, "phase": phase, "key": f"{n:08x}", "action": "reminder", "at": "2026-03-29T01:30:07Z"}
    return json.dumps({**head, "rule": {"id": "R7", "version": "3"}, **said}, separators=(",", ":")).encode()


def _fill(path: Path, *, ordered: bool) -> list[tuple[int, str]]:
    """Write a year; return the entry and the id of each start. Case entries go into the tables directly."""
    with _open(path) as store:
        _register(store)
        database = sqlite3.connect(path, isolation_level=None)
        for pragma in ("synchronous = OFF", "cache_size = -200000"):
            database.execute(f"PRAGMA {pragma}")
        chance = random.Random(1)
        runs = []
        for day in range(DAYS):
            run_id = str(uuid.uuid4())
            rows = list(_rows(run_id, chance, ordered=ordered))
            run_list = lists.RunList()
            pieces = run_list.extend(row[-1] for row in rows)
            size_bytes = rows[-1][2] + len(lists.item_of(rows[-1][-1])) + 1
            start_seq = _run(store, day, run_id, run_list.sha256(), size_bytes)
            database.execute("BEGIN")
            database.executemany(
                "INSERT INTO item (id, case_id, said, file_offset, received_us, line) VALUES (?, ?, ?, ?, ?, ?)",
                ((lists.number(start_seq, n), *row) for n, row in enumerate(rows, 1)),
            )
            database.executemany(
                "INSERT INTO item_list VALUES (?, ?)", ((lists.number(start_seq, seq), each) for seq, each in pieces)
            )
            totals = (start_seq, size_bytes, 0, len(rows), CASES, CASES, 0, 0, 0, 0, 0, None, 0, len(rows), 1)
            database.execute(f"INSERT INTO item_run VALUES ({', '.join('?' * len(totals))})", totals)
            database.execute("COMMIT")
            runs.append((start_seq, run_id))
        database.close()
    return runs


def _rows(run_id: str, chance: random.Random, *, ordered: bool) -> Iterator[tuple[Any, ...]]:
    offset = 0
    for n in range(CASES):
        case = _case(n, chance, ordered=ordered)
        said = _line(n, case, "result")
        yield case, "done", offset, _BEGAN_US + n, lists.record_line(run_id, n + 1, os.urandom(16).hex(), said)
        offset += len(said) + 1


def _take_in(store: Store, directory: Path, *, ordered: bool) -> tuple[float, float]:
    """Take in the files of some runs; return entries a second and the longest hold of the write lock in seconds."""
    chance = random.Random(2)
    held_s = [0.0]
    took_at = 0.0
    take, release = store.lock.take, store.lock.release

    def timed_take(*arguments: Any) -> None:
        nonlocal took_at
        take(*arguments)
        took_at = time.perf_counter()

    def timed_release() -> None:
        held_s.append(time.perf_counter() - took_at)
        release()

    entries, took_s = 0, 0.0
    for _ in range(FRESH_RUNS):
        run_id = str(uuid.uuid4())
        _run(store, DAYS, run_id, None, 0)
        path = directory / run_id
        path.touch(0o600)
        with open(path, "wb") as file:
            for n in range(CASES):
                case = _case(n, chance, ordered=ordered)
                file.writelines(_line(n, case, phase) + b"\n" for phase in ("intent", "result"))
        intake = Intake(str(path), run_id)
        store.lock.take, store.lock.release = timed_take, timed_release  # type: ignore[method-assign, assignment]
        began_s = time.perf_counter()
        while intake.take(store, last=True):
            pass
        took_s += time.perf_counter() - began_s
        store.lock.take, store.lock.release = take, release  # type: ignore[method-assign]
        entries += intake.entries
        intake.close()
        path.unlink()
    return entries / took_s, max(held_s)


def _find(store: Store, *, ordered: bool) -> list[float]:
    """Return how long each of some questions for a case took, in ms, in order."""
    chance = random.Random(3)
    took_ms = []
    for _ in range(_LOOKUPS):
        case = _case(chance.randrange(CASES), chance, ordered=ordered)
        began_s = time.perf_counter()
        items.of_case(store, case)
        took_ms.append((time.perf_counter() - began_s) * 1000)
    return sorted(took_ms)

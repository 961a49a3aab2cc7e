"""Runs with case entries on record, as old as a test wants them, taken in as those of a guard are."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from runguard.evidence import checkpoints
from runguard.guard.intake import Intake
from runguard.instant import from_rfc3339
from runguard.store.database import Store
from shell import Shell


def intent(case: str, **fields: Any) -> bytes:
    said = {"case": case, "phase": "intent", "action": "reminder", **fields}
    return json.dumps(said, ensure_ascii=False).encode() + b"\n"


def done(case: str, **fields: Any) -> bytes:
    said = {"case": case, "phase": "result", "action": "reminder", "result": "done", **fields}
    return json.dumps(said, ensure_ascii=False).encode() + b"\n"


def both(*cases: str) -> bytes:
    return b"".join(intent(case) + done(case) for case in cases)


def run_id(number: int) -> str:
    return f"{number:08x}-0000-4000-8000-000000000000"


def record(shell: Shell, number: int, at: str, lines: bytes, job: str = "letters", *, end: bool = True) -> None:
    """Put a run on record that was started at `at`, wrote `lines` to its file, and ended a minute later."""
    path = shell.directory / "items"
    path.write_bytes(lines)
    path.chmod(0o600)
    window = {
        "key": f"L{at[:16]}", "start": "2020-01-01T00:00:00Z", "due": at, "label": f"{at[:16]}+00:00",
        "nominal": at[:16], "how": "real", "fold": 0, "collapsed": [], "zone": "UTC", "tzdata": "2026a",
    }  # fmt: skip
    start = {
        "run_id": run_id(number), "number": number, "job": job, "revision": None, "window": window, "attempt": 1,
        "trigger": "schedule", "reason": None, "supersedes": None, "boot_id": "b00t", "guard_pid": 1,
        "argv": ["/opt/letters/send"], "program": {"path": "/opt/letters/send", "sha256": "c0de" * 16},
    }  # fmt: skip
    with shell.open() as store:
        with store.write() as tx:
            tx.append("run.start", from_rfc3339(at), start)
        intake = Intake(str(path), run_id(number))
        while intake.take(store, last=True):
            pass
        if end:
            finish(store, number, at, intake)
        intake.close()


def finish(store: Store, number: int, at: str, intake: Intake) -> None:
    tally = intake.tally(store)
    with store.write() as tx:
        if tally.bytes:
            intake.complete(tx, tally)
        end = {
            "run_id": run_id(number), "outcome": "succeeded", "exit_status": 0, "returned": 0, "signal": None,
            "why": None, "started": at, "finished": at, "duration_s": 60.0, "output": None,
            "items": tally.fields() if tally.bytes else None,
        }  # fmt: skip
        tx.append("run.finish", from_rfc3339(at) + 60_000_000, end)
        tx.keep_output(run_id(number), b"", b"")


def checkpoint(shell: Shell, at: str) -> int:
    """Make the checkpoint that is due then, and return its entry."""
    with shell.open() as store, store.write() as tx:
        (made,) = checkpoints.make(tx, from_rfc3339(at))
    return made.seq


def rows(shell: Shell, statement: str) -> list[tuple[Any, ...]]:
    """Ask the database itself."""
    import sqlite3

    with sqlite3.connect(path(shell)) as connection:
        return connection.execute(statement).fetchall()


def path(shell: Shell) -> Path:
    return shell.state / "db" / "runguard.sqlite"


def entry(shell: Shell, seq: int) -> dict[str, Any]:
    """Return what an entry of the ledger says."""
    [(line,)] = rows(shell, f"SELECT line FROM ledger WHERE seq = {seq}")
    found: dict[str, Any] = json.loads(line)
    return found


def can_trace() -> bool:
    """Tell whether faults can be injected into system calls."""
    if not shutil.which("strace"):
        return False
    probe = ["strace", "-e", "inject=getpid:error=EIO:when=1", "true"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0

"""Whether a ledger is whole after what was done to its writers."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import Counter

from shell import Shell


def ledger(shell: Shell) -> list[dict[str, object]]:
    """Return the entries, their chain checked with nothing but SHA-256 and JSON."""
    database = sqlite3.connect(shell.state / "db" / "runguard.sqlite")
    assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    entries, previous = [], "0" * 64
    for number, (seq, line) in enumerate(database.execute("SELECT seq, line FROM ledger ORDER BY seq"), start=1):
        entry = json.loads(line)
        assert (seq, entry["seq"], entry["prev"]) == (number, number, previous)
        previous = hashlib.sha256(line).hexdigest()
        entries.append(entry)
    database.close()
    return entries


def check(shell: Shell, *, killed: bool) -> None:
    """Every start has one end, every window at most one automatic success, every attempt ran at most once."""
    entries = ledger(shell)
    starts = [entry["run_id"] for entry in entries if entry["kind"] == "run.start"]
    ends = Counter(entry["run_id"] for entry in entries if entry["kind"] == "run.finish")
    assert {run_id: ends[run_id] for run_id in starts} == dict.fromkeys(starts, 1)
    ran = Counter((shell.directory / "ran").read_text().split()) if (shell.directory / "ran").exists() else Counter()
    assert set(ran) <= set(starts), "a command ran without a trace"
    assert set(ran.values()) <= {1}
    # A guard killed between creating its file and locking it leaves a hidden one, tidied an hour later.
    left = [path for path in (shell.state / "db" / "runs").iterdir() if not (killed and path.name.startswith("."))]
    assert left == []

"""A store that version 0.1.0 has written last: every question is answered as far as that version kept anything."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

import oldruns
import runguard.store
from runguard.evidence.verify import Since, Trusted, integrity
from runguard.store.sqlite import open_reader
from shell import Shell

FIRST = Path(runguard.store.__file__).parent / "migrations" / "sqlite" / "0001.sql"
RUN = ("run", "-j", "letters", "-s", "@daily", "-z", "UTC", "--scheduled-at", "2026-03-01T00:00Z", "--", "true")


@pytest.fixture
def older(shell: Shell) -> Shell:
    """One run of the job letters in the tables of the first schema."""
    shell(*RUN)
    path = oldruns.path(shell)
    with sqlite3.connect(path) as known, sqlite3.connect(f"{path}.new") as made:
        made.executescript(FIRST.read_text())
        for table in ("ledger", "job", "revision", "run", "output"):
            columns = [row[1] for row in made.execute(f"PRAGMA table_info({table})")]
            marks = ", ".join("?" * len(columns))
            rows = known.execute(f"SELECT {', '.join(columns)} FROM {table}").fetchall()
            made.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)
    os.chmod(f"{path}.new", 0o600)
    os.replace(f"{path}.new", path)
    return shell


QUESTIONS = (
    "status", "check", "windows", "missing", "next", "history", "show 1", "show 1 --items", "explain HB-1", "metrics",
    "verify --full", "prune --keep 400d --reason x --dry-run", "export --job letters -o x",
)  # fmt: skip


@pytest.mark.parametrize("command", QUESTIONS)
def test_a_query_answers(older: Shell, command: str) -> None:
    done = older(*command.split())
    assert done.returncode in (0, 1, 2)  # what it says of old windows is not the matter
    assert "no such table" not in done.stderr


def test_whoever_may_only_read_it_is_answered_too(older: Shell) -> None:
    with open_reader(str(oldruns.path(older))) as reader:
        assert integrity(reader, Since(), Trusted(), {}, lambda count: None).findings == ()
        assert reader.rows("last_verified") == []
    assert oldruns.rows(older, "PRAGMA user_version") == [(1,)]


def test_what_writes_to_it_brings_it_up_to_date(older: Shell) -> None:
    older("verify")
    assert oldruns.rows(older, "PRAGMA user_version") > [(1,)]

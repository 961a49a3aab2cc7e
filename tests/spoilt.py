"""Databases changed as somebody with every right would do it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path


@contextmanager
def unguarded(path: Path) -> Iterator[sqlite3.Connection]:
    """Give a connection on which neither triggers nor checks refuse anything; afterwards the triggers are as before."""
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA synchronous = OFF")
        database.execute("PRAGMA journal_mode = MEMORY")
        database.execute("PRAGMA ignore_check_constraints = ON")
        triggers = database.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            database.execute(f"DROP TRIGGER {name}")
        yield database
        for _, sql in triggers:
            database.execute(sql)

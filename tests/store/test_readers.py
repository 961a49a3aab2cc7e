"""Readers beside writers that die."""

from __future__ import annotations

import subprocess
import sys
import textwrap

from runguard.store.sqlite import open_reader
from shell import Shell

# Writes more than the cache holds, so that the file is half changed, and dies.
DIES = textwrap.dedent("""
    import os, signal, sqlite3, sys
    database = sqlite3.connect(sys.argv[1], isolation_level=None)
    database.execute("PRAGMA journal_mode = TRUNCATE")
    database.execute("PRAGMA cache_size = 1")
    database.execute("BEGIN IMMEDIATE")
    database.executemany("INSERT INTO verified VALUES (1, 1, 1, ?, 0)", [("x" * 3000,) for _ in range(200)])
    os.kill(os.getpid(), signal.SIGKILL)
""")


def test_what_a_writer_leaves_behind_that_died_meanwhile_is_undone(shell: Shell) -> None:
    shell("run", "-j", "x", "--", "true")
    path = str(shell.state / "db" / "runguard.sqlite")
    with open_reader(path) as reader:
        before = reader.head()
        subprocess.run([sys.executable, "-c", DIES, path], check=False)
        assert reader.head() == before
        assert reader.rows("last_verified") == []

"""Whoever changes a column, adds a row or removes one: it is found, or the table is one of those beside the record."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from runguard.errors import StoreError
from runguard.evidence.checkpoints import list_sha256
from runguard.evidence.verify import Since, Trusted, integrity
from runguard.store.sqlite import open_reader
from shell import Shell
from spoilt import unguarded

# What is kept beside the record: what became of pings and anchors, and who verified when.
BESIDE = {"ping", "anchored", "verified", "lifted"}
TABLES = (
    "bearing", "checkpoint", "item", "item_list", "item_open", "item_rejected", "item_run", "job", "ledger", "output",
    "pruned", "revision", "run", "waiver",
)  # fmt: skip
# What stands under no hash and can be derived from nothing: when a line was received, why it was no entry, how far a
# file that has gone was read.
OPEN = {
    "item": {"received_us"},
    "item_rejected": {"received_us", "why"},
    "item_run": {"shift", "told"},
}
CASES = """
for n in 1 2 3; do
    printf '{"case": "HB-%d", "phase": "intent", "action": "letter", "key": "%d"}\\n' $n $n
    printf '{"case":"HB-%d","phase":"result","action":"letter","key":"%d","result":"done"}\\n' $n $n
done > cases
printf '{"case":"HB-4","phase":"intent","action":"letter"}\\nno entry\\n' >> cases
cat cases >> "$RUNGUARD_ITEMS"
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which every one of these tables has a row, but `pruned`."""
    shell = Shell(tmp_path_factory.mktemp("store"))
    letters = ("run", "-j", "letters", "-s", "0 2 * * *", "-z", "UTC", "--scheduled-at", "2026-03-01T02:00Z", "--")
    shell(*letters, "sh", "-c", "echo no; exit 1")
    shell(*letters, "true")
    shell(*letters, "true")
    shell("run", "-j", "lost", "--", "sh", "-c", "echo lost; sleep 0.3; kill -9 $PPID")
    shell("run", "-j", "lost", "--", "true")
    shell("run", "-j", "cases", "--", "sh", "-c", CASES)
    shell("waive", "letters", "--since", "2026-03-01T12:00Z", "--until", "2026-03-09T12:00Z", "--reason", "nothing")
    shell("hold", "--job", "letters", "--reason", "court")
    shell("retire", "letters", "--reason", "nothing more is missing")
    path = shell.state / "db" / "runguard.sqlite"
    with shell.open() as store, store.write() as tx:
        head = tx.head()
        assert head is not None
        lines = [line for _, line in store.rows("lines_after", seq=0, page=head.seq)]
        made = make_checkpoint(lines)
        tx.append("checkpoint", 1_800_000_000_000_000, made)
    assert findings(path) == []
    return path


def make_checkpoint(lines: list[bytes]) -> dict[str, Any]:
    """Return what a checkpoint says that names these lines."""
    digests = [sha256(line).hexdigest() for line in lines]
    listed = {"first": 1, "last": len(digests), "count": len(digests), "head": digests[-1]}
    return {**listed, "list_sha256": list_sha256(1, digests), "previous": None}


def findings(path: Path) -> list[str]:
    """Return what is found; a value that no column of its kind can hold ends the search, with a status of its own."""
    with open_reader(str(path)) as reader:
        try:
            return [each.text for each in integrity(reader, Since(), Trusted(), {}, lambda count: None).findings]
        except StoreError as error:
            return [error.why]


@contextmanager
def spoilt(path: Path) -> Iterator[tuple[sqlite3.Connection, Path]]:
    """Give a copy of the store in which nothing is refused."""
    copy = path.with_name("copy")
    shutil.copy(path, copy)
    with unguarded(copy) as database:
        yield database, copy


def rows(path: Path, table: str) -> tuple[list[str], list[dict[str, Any]]]:
    """Return a table's columns, and its rows by them."""
    with closing(sqlite3.connect(path)) as database:
        database.row_factory = sqlite3.Row
        columns = [row["name"] for row in database.execute(f"PRAGMA table_info({table})")]
        return columns, [dict(row) for row in database.execute(f"SELECT * FROM {table}")]


def another(column: str, value: Any) -> Any:
    if isinstance(value, int):
        return value + (1_000_000 if column == "file_offset" else 1)
    if isinstance(value, bytes):
        return value + b"z"
    return "x" if value is None else value[:-1] + ("y" if value.endswith("x") else "x")


def changes(path: Path, table: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield every change of one column of one row, each removed row, and rows put in: statement and parameters."""
    columns, there = rows(path, table)
    assert there or table == "pruned", table
    for number, row in enumerate(there):
        this = " AND ".join(f"{column} IS :{column}" for column in columns)
        if table != "output" or row["head"]:  # nothing said and nothing there is the same
            yield f"row {number} removed", f"DELETE FROM {table} WHERE {this}", row
        for column in set(columns) - OPEN.get(table, set()):
            changed = f"UPDATE OR IGNORE {table} SET {column} = :value WHERE {this}"
            yield f"{column} of row {number}", changed, {**row, "value": another(column, row[column])}
    for far in (-1000, 1, 1000):
        for row in there[-1:]:
            added = {
                column: value + far * (1 << 21 if column == "id" else 1)
                if column.endswith(("seq", "id")) and isinstance(value, int)
                else value
                for column, value in row.items()
            }
            added |= {"run_id": "put in", "number": 999} if table == "run" else {}
            added |= {"run_id": f"{far}"} if table == "output" else {}
            added |= {"job": "put in"} if table == "job" else {}
            into = (
                f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join(f':{column}' for column in columns)})"
            )
            yield f"a row put in {far} further", into, added


@pytest.mark.parametrize("table", TABLES)
def test_every_change_is_found(store: Path, table: str) -> None:
    unnoticed = []
    for what, statement, parameters in changes(store, table):
        with spoilt(store) as (database, copy):
            try:
                changed = database.execute(statement, parameters).rowcount
            except sqlite3.IntegrityError:
                continue  # the database itself cannot hold it
        if changed and not findings(copy):
            unnoticed.append(what)
    assert unnoticed == []


def test_every_table_is_looked_at_or_kept_beside_the_record(store: Path) -> None:
    with closing(sqlite3.connect(store)) as database:
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    assert tables == BESIDE | set(TABLES) | {"signature", "erasure", "entry_list"}  # they have tests of their own

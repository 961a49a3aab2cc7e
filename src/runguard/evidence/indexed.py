"""Whether the tables that queries use hold what the ledger's lines say, and nothing else.

From both ends: each line's rows are there, and each row is what lines make of it. Of a run that is its start and, as
far as they have come, its end, its late end and who came after it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from runguard.evidence.chain import Finding, raw
from runguard.store import index
from runguard.store.database import ReadOnlyStore

_Row = Mapping[str, Any]

# Statements that put in a row which nothing changes later → the rows of some entries, and what names one.
_FIXED = {
    "insert_job": ("jobs_between", "registered_seq", ("job",)),
    "insert_revision": ("revisions_between", "seq", ()),
    "insert_waiver": ("waivers_between", "seq", ()),
    "insert_checkpoint": ("checkpoint_rows_between", "seq", ()),
    "insert_pruned": ("pruned_between", "seq", ()),
    "insert_bearing": ("bearings_between", "seq", ("about", "which")),
}


class Indexed:
    """The rows of the entries `first_seq` to `last_seq`, of which `lines` are sound and `unsound` told already."""

    def __init__(
        self,
        store: ReadOnlyStore,
        lines: Iterable[tuple[int, bytes]],
        first_seq: int,
        last_seq: int,
        unsound: Iterable[int] = (),
    ) -> None:
        self._store = store
        self._between = {"first_seq": first_seq, "last_seq": last_seq}
        self._passed = set(unsound)
        self._sent: dict[str, dict[tuple[Any, ...], _Row]] = {}  # statement → what names its row → the row
        self._lines = lines

    def findings(self) -> Iterator[Finding]:
        """Yield where a table differs from what the lines say. Raises StoreError."""
        yield from self._read()
        for statement, (rows, seq, named) in _FIXED.items():
            yield from self._fixed(statement, rows, seq, named)
        yield from self._runs()

    def _read(self) -> Iterator[Finding]:
        for seq, line in self._lines:
            sent = _sent(line)
            if sent is None:
                self._passed.add(seq)
                yield Finding("index", seq, f"entry {seq} cannot be read as one of its kind")
                continue
            for name, row in sent:
                key = (seq, *(row[column] for column in _FIXED[name][2])) if name in _FIXED else (seq,)
                self._sent.setdefault(name, {})[key] = row

    def _fixed(self, statement: str, rows: str, seq: str, named: tuple[str, ...]) -> Iterator[Finding]:
        expected = self._sent.get(statement, {})
        there = set()
        for row in self._store.labelled(rows, **self._between):
            key = (row[seq], *(row[column] for column in named))
            there.add(key)
            if key in expected:
                yield from _differing(row[seq], row, expected[key])
            elif row[seq] not in self._passed:
                yield _nobody(statement, row[seq])
        for key, said in expected.items():
            if key not in there and not (statement == "insert_job" and self._was_known(said)):
                yield _no_row(statement, key[0])

    def _was_known(self, row: _Row) -> bool:
        """Tell whether a job was registered by an entry before this one."""
        found = self._store.unjudged("registered", job=row["job"])
        return bool(found) and type(found[0][0]) is int and found[0][0] < row["registered_seq"]

    def _runs(self) -> Iterator[Finding]:
        starts = self._sent.get("insert_run", {})
        rows = {row["run_id"]: row for row in self._store.labelled("run_rows_between", **self._between)}
        there = set()
        for row in rows.values():
            seq = row["start_seq"]
            there.add((seq,))
            if (seq,) in starts:
                yield from self._run(row, starts[seq,])
            elif seq not in self._passed:
                yield _nobody("insert_run", seq)
        for (seq,) in starts.keys() - there:
            yield _no_row("insert_run", seq)
        for statement in ("finish_run", "finish_lost_run", "supersede_run"):
            for (seq,), said in self._sent.get(statement, {}).items():
                yield from self._changed(statement, seq, said, rows)

    def _run(self, row: _Row, start: _Row) -> Iterator[Finding]:
        """Compare a run's row with its start, and with the later entries that the row names."""
        expected: dict[str, Any] = dict.fromkeys(row) | dict(start)
        expected["superseded_by"] = row["superseded_by"] if self._is_superseded(row) else None
        for statement, seq in (("finish_run", row["finish_seq"]), ("finish_lost_run", row["late_seq"])):
            if seq is None:
                continue
            said = next((each for name, each in self._said_by(seq) if name == statement), None)
            if said is None or said["run_id"] != row["run_id"]:
                yield Finding("index", seq, f"a row of the tables names entry {seq}, which does not end its run")
                continue
            yield from _differing(seq, row, said)
            expected = {column: value for column, value in expected.items() if column not in said}
        yield from _differing(row["start_seq"], row, expected)

    def _is_superseded(self, row: _Row) -> bool:
        """Tell whether the run that a row names as its successor says so itself; one that was pruned cannot."""
        if row["superseded_by"] is None:
            return False
        for other in self._store.labelled("run_by_id", run_id=row["superseded_by"]):
            said = [each for name, each in self._said_by(other["start_seq"]) if name == "supersede_run"]
            return [each["supersedes"] for each in said] == [row["run_id"]]
        return bool(self._store.unjudged("pruned", what="entries"))

    def _changed(self, statement: str, seq: int, said: _Row, rows: Mapping[str, _Row]) -> Iterator[Finding]:
        """Look whether the row that an entry changed tells so."""
        run_id = said["supersedes"] if statement == "supersede_run" else said["run_id"]
        named = "finish_seq" if statement == "finish_run" else "late_seq"
        row = rows.get(run_id) or next(iter(self._store.labelled("run_by_id", run_id=run_id)), None)
        if statement == "supersede_run":
            if row is not None and row["superseded_by"] is None:
                yield from _differing(seq, row, {"superseded_by": said["run_id"]})
        elif row is None:
            yield Finding("index", seq, f"entry {seq} ends a run that has no row in the tables")
        elif row[named] != seq or row["start_seq"] < self._between["first_seq"]:  # otherwise compared with its start
            yield from _differing(seq, row, said)

    def _said_by(self, seq: int) -> list[tuple[str, _Row]]:
        here = [(name, rows[seq,]) for name, rows in self._sent.items() if (seq,) in rows]
        if here:
            return here
        return [each for (line,) in self._store.unjudged("line_at", seq=seq) for each in _sent(raw(line)) or ()]


def strays(store: ReadOnlyStore) -> Iterator[Finding]:
    """Yield the rows that are filed under entries which the ledger never had. Raises StoreError."""
    for table, seq in store.unjudged("strays"):
        yield Finding("index", None, f"a row of the table {table} is filed under entry {seq}, which never was: put in")


def orphans(store: ReadOnlyStore) -> Iterator[Finding]:
    """Yield the rows beside the record that belong to nothing which is on record. Raises StoreError."""
    for table, named in store.unjudged("orphans"):
        yield Finding("index", None, f"a row of the table {table} names {named}, which is not on record: put in")


def _sent(line: bytes) -> list[tuple[str, _Row]] | None:
    """Return what an entry sends to the tables, or None where it cannot be read as one of its kind."""
    sent: list[tuple[str, _Row]] = []
    try:
        index.index(lambda name, row: sent.append((name, row)) or 1, json.loads(line))  # type: ignore[func-returns-value]
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return sent


def _differing(seq: int, row: _Row, expected: _Row) -> Iterator[Finding]:
    differing = [column for column, value in expected.items() if column in row and row[column] != value]
    if differing:
        yield Finding("index", seq, f"the tables tell entry {seq} otherwise: {', '.join(differing)}")


def _nobody(statement: str, seq: int) -> Finding:
    table = statement.removeprefix("insert_")
    return Finding("index", seq, f"a row of the table {table} names entry {seq}, which is none of its kind")


def _no_row(statement: str, seq: int) -> Finding:
    table = statement.removeprefix("insert_")
    return Finding("index", seq, f"entry {seq} has no row in the tables ({table})")

"""Lawful erasure: the record lines of a case go, with their salts; their hashes stay in the lists.

So the lists still prove everything else, and nobody can guess the text from a hash. What of the case is in other places
that runguard holds is found, and told: intents without result and the heads of rejected lines go too; entries of the
ledger and kept output stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any, NamedTuple

from runguard.errors import UsageError
from runguard.evidence import erasure, lists, waiting
from runguard.evidence.retention import Held, held, said
from runguard.store import bearings, items
from runguard.store.database import Transaction
from runguard.store.items import Record, Reject
from runguard.store.reads import Reader, Run
from runguard.store.removing import lifted


class Found(NamedTuple):
    """What is on record of a case, and what of it goes: records and rejected lines, each with its run."""

    case: str
    records: tuple[tuple[Run, Record], ...]
    rejected: tuple[tuple[Run, Reject], ...]
    outputs: tuple[int, ...]  # numbers of the runs whose kept output holds the id: it stays
    entries: tuple[tuple[int, str], ...]  # of the ledger that name the case, with their kinds: they stay

    @property
    def runs(self) -> tuple[int, ...]:
        """The numbers of the runs that records are of, in order."""
        return tuple(dict.fromkeys(run.number for run, _ in self.records))


def of_case(reader: Reader, case: str) -> Found:
    """Return what is to go of a case.

    Raises UsageError where nothing is on record, it is held, or a run that handled it is not over.
    """
    return _found(reader, case, items.of_case(reader, case), whole=True)


def of_record(reader: Reader, run: Run, seq: int) -> Found:
    """Return what is to go where one case entry is meant: the `seq`-th of the run. Raises UsageError as `of_case`."""
    number = lists.number(run.start_seq, seq)
    these = list(items.records(reader, number - 1, number + 1))
    if not these:
        raise UsageError(f"run {run.number} has no case entry {seq} on record")
    return _found(reader, these[0].case, these, whole=False)


def redact(tx: Transaction, found: Found, authority: str | None, reason: str, now_us: int) -> int:
    """Remove it, and return the entry of the ledger that says so. Raises StoreError."""
    secret = erasure.new_secret()
    records = [
        {"run": run.run_id, "seq": lists.place(record.id)[1], "sha256": sha256(record.line).hexdigest()}
        for run, record in found.records
    ]
    rejected = [
        {"run": run.run_id, "offset": piece.file_offset, "sha256": piece.sha256} for run, piece in found.rejected
    ]
    fields: dict[str, Any] = {
        "about": [{"erased": erasure.spelled(secret, found.case)}],
        "records": records,
        "rejected": rejected,
        "authority": authority,
        "reason": reason,
    }
    entry = tx.append("redact", now_us, fields)
    erasure.keep(tx, entry.seq, secret)
    with lifted(tx, entry):
        for run, record in found.records:
            remove(tx, run.start_seq, record.id, record.case)
        for run, piece in found.rejected:
            blank(tx, run.start_seq, piece.file_offset, entry.seq)
    return entry.seq


def remove(tx: Transaction, start_seq: int, number: int, case: str) -> None:
    """Remove one record line, the triggers lifted, and the note that it waits for a result. Raises StoreError."""
    tx.send("delete_item", {"id": number})
    tx.send("delete_open", {"start_seq": start_seq, "case_id": case, "id": number})


def blank(tx: Transaction, start_seq: int, file_offset: int, seq: int) -> None:
    """Remove the text of a rejected line, the triggers lifted; entry `seq` says so. Raises StoreError."""
    gone = {"head": b"", "why": f"its text was removed by entry {seq}"}
    tx.send("blank_rejected", {**gone, "start_seq": start_seq, "file_offset": file_offset})


def _found(reader: Reader, case: str, these: list[Record], *, whole: bool) -> Found:
    runs: dict[int, Run] = {}
    for record in these:
        start_seq = lists.place(record.id)[0]
        if start_seq not in runs:
            runs[start_seq] = _run_at(reader, start_seq)
    rejected = tuple(_rejected(reader, case)) if whole else ()
    if not these and not rejected:
        raise UsageError(_nothing(reader, case))
    holds = held(reader)
    for run in {run.start_seq: run for run in (*runs.values(), *(run for run, _ in rejected))}.values():
        _check(reader, holds, case, run)
    outputs = tuple(run.number for run in runs.values() if _in_output(reader, run.run_id, case))
    entries = {each.seq: each.kind for each in bearings.on(reader, "case", [case])} | dict(
        _spelling(reader, case, runs)
    )
    records = tuple((runs[lists.place(record.id)[0]], record) for record in these)
    return Found(case, records, rejected, outputs, tuple(sorted(entries.items())))


def _check(reader: Reader, holds: Held, case: str, run: Run) -> None:
    hold = holds.case(case, run)
    if hold is not None:
        raise UsageError(f"{hold.named()} ({hold.reason}); nothing was removed (runguard release {hold.seq} ends it)")
    progress = items.progress(reader, run.start_seq)
    if run.outcome == "running" or progress is None or not progress.complete:
        raise UsageError(f"run {run.number} is not over, or not all of its case entries are on record; wait for that")


def _nothing(reader: Reader, case: str) -> str:
    before = erasure.names_of(reader, case)
    if before:
        return f"nothing is on record of case {case}: it was redacted before, by entry {max(before)}"
    return f"nothing is on record of case {case}"


def _run_at(reader: Reader, start_seq: int) -> Run:
    ((*row,),) = reader.rows("run_at", seq=start_seq)
    return Run(*row)


def _rejected(reader: Reader, case: str) -> Iterator[tuple[Run, Reject]]:
    """Yield the rejected lines, of all runs, whose kept beginning names the case."""
    for (start_seq,) in reader.rows("item_runs_rejected"):
        for piece in items.rejects(reader, start_seq):
            if waiting.names(piece.head, case):
                yield _run_at(reader, start_seq), piece


def _spelling(reader: Reader, case: str, runs: dict[int, Run]) -> Iterator[tuple[int, str]]:
    """Yield the entries of these runs, and those about them, that spell the case: in a command line, or in a text."""
    for run in runs.values():
        ends = [seq for seq in (run.start_seq, run.finish_seq, run.late_seq) if seq is not None]
        about = bearings.on(reader, "run", [run.run_id]) + bearings.on(reader, "entry", map(str, ends))
        for seq in dict.fromkeys((*ends, *(each.seq for each in about))):
            for (line,) in reader.rows("line_at", seq=seq):
                if waiting.names(line, case):
                    yield seq, said(reader, seq)["kind"]


def _in_output(reader: Reader, run_id: str, case: str) -> bool:
    return any(waiting.names(part, case) for part in reader.output(run_id) or ())

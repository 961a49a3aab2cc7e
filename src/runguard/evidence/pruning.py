"""Retention of case text: record lines of runs that are old enough go, a few thousand in a transaction.

Each transaction has an entry of the ledger that names its range of records, so that it is whole in itself: what is
missing inside the range was lawfully removed, and what was held there is named by the hash of its list. A range never
reaches across a run that is not over, is not old enough, or is held as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any, NamedTuple

from runguard.evidence import lists
from runguard.evidence.redaction import blank, remove
from runguard.evidence.retention import Held, Hold
from runguard.instant import rfc3339
from runguard.store import items
from runguard.store.database import Transaction
from runguard.store.reads import Reader, Run
from runguard.store.removing import lifted

CHUNK = 4_000  # records that one transaction removes: a tenth of a second
LOOK = 100_000  # records that one transaction looks at


class Asked(NamedTuple):
    """What a person asked for: text as typed, and the instant that it means."""

    keep: str
    before_us: int
    reason: str | None


class Chunk(NamedTuple):
    """What one transaction removes. Numbers are those of evidence.lists.number, both ends included."""

    first: int
    last: int
    removed: tuple[tuple[int, str], ...]  # number and case
    kept: tuple[int, ...]  # between first and last
    rejected: tuple[tuple[int, int], ...]  # start of the run, offset
    started_us: tuple[int, int]  # of the first and the last of its runs


class Passed(NamedTuple):
    """What was left alone on the way."""

    holds: tuple[Hold, ...]
    unfinished: tuple[int, ...]  # numbers of runs


class Look(NamedTuple):
    """What one look found: perhaps a chunk; where the next look begins, None at the end; what was left alone."""

    chunk: Chunk | None
    next: int | None
    passed: Passed


def look(reader: Reader, held: Held, before_us: int, begin: int = 0, most: int = CHUNK) -> Look:
    """Look for at most `most` records to remove from the number `begin` on. Raises StoreError."""
    gathering = _Gathering(reader, held, most)
    following = None
    for run, over in _runs(reader, before_us, max((begin >> 21) - 1, 0)):
        if not over:
            gathering.unfinished.append(run.number)
        hold = held.run(run)
        if hold is not None:
            gathering.holds[hold.seq] = hold
        if not over or hold is not None or gathering.gap_before(run):
            if gathering.removed or gathering.rejected:
                following = lists.number(run.start_seq, 0)
                break
            if not over or hold is not None:
                continue
        following = gathering.add(run, begin)
        if following is not None:
            break
    return Look(gathering.chunk(), following, Passed(tuple(gathering.holds.values()), tuple(gathering.unfinished)))


def prune(tx: Transaction, asked: Asked, chunk: Chunk, holds: tuple[Hold, ...], now_us: int) -> int:
    """Remove a chunk that was found in the same transaction; return the entry that says so. Raises StoreError."""
    fields: dict[str, Any] = {
        "about": [{"since": rfc3339(chunk.started_us[0]), "until": rfc3339(chunk.started_us[1] + 1)}],
        "what": "cases",
        "keep": asked.keep,
        "before": rfc3339(asked.before_us),
        "records": {
            "first": _placed(chunk.first),
            "last": _placed(chunk.last),
            "removed": len(chunk.removed),
            "kept": len(chunk.kept),
            "kept_sha256": kept_sha256(tx.store, chunk.kept) if chunk.kept else None,
        },
        "rejected": len(chunk.rejected),
        "entries": None,
        "checkpoint": None,
        "held": [hold.seq for hold in holds],
        "reason": asked.reason,
    }
    entry = tx.append("prune", now_us, fields)
    with lifted(tx, entry):
        for number, case in chunk.removed:
            remove(tx, lists.place(number)[0], number, case)
        for start_seq, offset in chunk.rejected:
            blank(tx, start_seq, offset, entry.seq)
    return entry.seq


def kept_sha256(reader: Reader, numbers: tuple[int, ...]) -> str:
    """Return the hash of the list of records that stay inside a range: SHA-256 of each line, two spaces, its place."""
    hash = sha256()
    for number in numbers:
        for record in items.records(reader, number - 1, number + 1):
            hash.update(kept_line(number, sha256(record.line).hexdigest()))
    return hash.hexdigest()


def kept_line(number: int, digest: str) -> bytes:
    """Return the line of that list: entry of the run's start (10 digits), a hyphen, the record's number (7)."""
    start_seq, seq = lists.place(number)
    return b"%s  %010d-%07d\n" % (digest.encode(), start_seq, seq)


def _placed(number: int) -> dict[str, int]:
    start_seq, seq = lists.place(number)
    return {"entry": start_seq, "record": seq}


def _runs(reader: Reader, before_us: int, after: int) -> Iterator[tuple[Run, bool]]:
    """Yield the runs with case entries that were started before, each with whether it is over and all on record."""
    while page := reader.rows("item_runs_before", before_us=before_us, after=after, page=items.PAGE):
        for start_seq, outcome, complete in page:
            for row in reader.rows("run_at", seq=start_seq):
                yield Run(*row), outcome != "running" and bool(complete)
        after = page[-1][0]


class _Gathering:
    """A chunk as it grows."""

    def __init__(self, reader: Reader, held: Held, most: int) -> None:
        self._reader = reader
        self._held = held
        self._most = most
        self._looked = 0
        self._runs: list[Run] = []
        self._ends: list[int] = []
        self._kept: list[int] = []
        self._waiting: list[int] = []  # kept, and perhaps nothing more is removed after them
        self.removed: list[tuple[int, str]] = []
        self.rejected: list[tuple[int, int]] = []
        self.holds: dict[int, Hold] = {}
        self.unfinished: list[int] = []

    def gap_before(self, run: Run) -> bool:
        """Tell whether a run with case entries that is not old enough lies between the last one and this."""
        if not self._ends:
            return False
        between = {"after": self._runs[-1].start_seq, "beyond": run.start_seq}
        return bool(self._reader.rows("item_runs_between", **between))

    def add(self, run: Run, begin: int) -> int | None:
        """Take a run's records; return where to go on, if there is enough, or None."""
        after, beyond = lists.bounds(run.start_seq)
        before = len(self._ends)
        if begin <= after:
            self._add_rejected(run)
        after = max(after, begin - 1)
        while page := self._reader.rows("item_words", after=after, beyond=beyond, page=items.PAGE):
            for number, case, _ in page:
                hold = self._held.case(case, run)
                if hold is not None:
                    self.holds[hold.seq] = hold
                    self._waiting.append(number)
                    continue
                if self._ends:
                    self._kept += self._waiting
                self._waiting.clear()
                self.removed.append((number, case))
                self._ends.append(number)
                if len(self.removed) >= self._most:
                    self._runs.append(run)
                    return int(number) + 1
            after = page[-1][0]
            self._looked += len(page)
        if len(self._ends) > before:
            self._runs.append(run)
        return beyond if self._looked >= LOOK else None

    def chunk(self) -> Chunk | None:
        """Return what there is to remove, or None."""
        if not self._ends:
            return None
        started = sorted(run.started_us for run in self._runs)
        removed, rejected = tuple(self.removed), tuple(self.rejected)
        return Chunk(self._ends[0], self._ends[-1], removed, tuple(self._kept), rejected, (started[0], started[-1]))

    def _add_rejected(self, run: Run) -> None:
        """Take the text of rejected lines; what a hold on one case alone covers cannot be told, so all of it stays."""
        if any(self._reader.rows("item_of_case_in_run", **asked) for asked in self._held_in(run)):
            return
        for piece in items.rejects(self._reader, run.start_seq):
            if piece.head:
                self._ends.append(lists.number(run.start_seq, 0))
                self.rejected.append((run.start_seq, piece.file_offset))

    def _held_in(self, run: Run) -> Iterator[dict[str, Any]]:
        after, beyond = lists.bounds(run.start_seq)
        for case in self._held.cases:
            yield {"start_seq": run.start_seq, "case_id": case, "after": after, "beyond": beyond}

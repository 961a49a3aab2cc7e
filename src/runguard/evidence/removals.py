"""What was lawfully removed of case entries, as redact and prune entries of the ledger name it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, NamedTuple

from runguard.evidence import lists
from runguard.evidence.chain import Finding
from runguard.evidence.pruning import kept_line
from runguard.store import bearings, items
from runguard.store.database import ReadOnlyStore


class Removed(NamedTuple):
    """What an entry of the ledger has lawfully removed, in words."""

    seq: int
    text: str


class Range(NamedTuple):
    """A range of case entries, both ends included, that was pruned, and what stayed in it."""

    seq: int
    first: int
    last: int
    kept: int
    kept_sha256: str | None


class Removals:
    """All of them, as far as their entries can be read; `counts` grows as missing records are looked up."""

    def __init__(self, store: ReadOnlyStore) -> None:
        self._store = store
        self._redacted: dict[int, tuple[int, str]] = {}  # number of a record → entry, SHA-256 of the record line
        self._ranges: list[Range] = []
        self.runs: dict[int, set[str]] = {}  # redact entry → runs
        self.counts: Counter[int] = Counter()
        for entry in _entries(store, "redact"):
            self._read_redact(entry)
        for entry in _entries(store, "prune"):
            self._read_prune(entry)

    def of(self, number: int, digest: bytes) -> int | None:
        """Return the entry that removed the record with this number and hash, or None. Counts it."""
        seq, hex = self._redacted.get(number, (None, ""))
        if seq is None or hex != digest.hex():
            seq = next((each.seq for each in self._ranges if each.first <= number <= each.last), None)
        if seq is not None:
            self.counts[seq] += 1
        return seq

    def redacts(self, number: int) -> bool:
        """Tell whether the record with this number was redacted."""
        return number in self._redacted

    def looked_up(self) -> Iterator[Removed]:
        """Yield, for each entry, how many records it has removed of those that were looked up."""
        for seq, count in sorted(self.counts.items()):
            yield Removed(seq, f"{count:,} record{'s' * (count != 1)} lawfully removed by entry {seq}; list intact")

    def what_stayed(self) -> Iterator[Finding]:
        """Yield the ranges of which something that stayed when they were pruned is gone or changed."""
        for at, each in enumerate(self._ranges):
            later = self._ranges[at + 1 :]
            if not each.kept or any(other.first <= each.last and each.first <= other.last for other in later):
                continue  # a later prune tells what stayed of it
            numbers, hash = 0, sha256()
            for number, hex in self._there(each):
                numbers += 1
                hash.update(kept_line(number, hex))
            if (numbers, hash.hexdigest()) != (each.kept, each.kept_sha256):
                text = (
                    f"of the {each.kept} records that entry {each.seq} left, {numbers} are there, or they were changed"
                )
                yield Finding("records", each.seq, text)

    def _there(self, range: Range) -> list[tuple[int, str]]:
        """Return number and hash of what is there of a range, or was redacted since it was pruned."""
        found = [
            (record.id, sha256(record.line).hexdigest())
            for record in items.records(self._store, range.first - 1, range.last + 1)
        ]
        found += [
            (number, hex)
            for number, (seq, hex) in self._redacted.items()
            if seq > range.seq and range.first <= number <= range.last
        ]
        return sorted(found)

    def _read_redact(self, entry: dict[str, Any]) -> None:
        for each in entry["records"]:
            run = self._store.run(each["run"])
            if run is not None:
                self._redacted[lists.number(run.start_seq, each["seq"])] = entry["seq"], each["sha256"]
                self.runs.setdefault(entry["seq"], set()).add(run.run_id)

    def _read_prune(self, entry: dict[str, Any]) -> None:
        told = entry["records"]
        if told is not None:
            first, last = (lists.number(each["entry"], each["record"]) for each in (told["first"], told["last"]))
            self._ranges.append(Range(entry["seq"], first, last, told["kept"], told["kept_sha256"]))


def _entries(store: ReadOnlyStore, kind: str) -> Iterator[dict[str, Any]]:
    """Yield the entries of a kind that can be read: those that cannot are told by the chain."""
    for seq in bearings.of_kind(store, kind):
        for (line,) in store.unjudged("line_at", seq=seq):
            try:
                entry = json.loads(line)
                if (entry["kind"], entry["seq"]) == (kind, seq):
                    yield entry
            except (ValueError, KeyError, TypeError):
                continue

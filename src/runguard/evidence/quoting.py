"""What the record says, quoted: entries of the ledger and case entries, each held against the hash that names it.

A damaged one does not stop the rest: it is told as damage, and what can be read of it is told all the same.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from hashlib import sha256
from typing import Any

from runguard.evidence import lists
from runguard.evidence.touches import Said
from runguard.instant import rfc3339
from runguard.store import items, lines
from runguard.store.items import Record
from runguard.store.reads import Reader

_AT_ONCE = 4  # entries of one statement, each with the one after it

Entry = dict[str, Any]


class Quotes:
    """Quotes of one store. `damage` collects what is not as it was written, one sentence each."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.damage: list[dict[str, Any]] = []

    def entries(self, seqs: Collection[int]) -> dict[int, Entry]:
        """Return what these entries say, by number; one that cannot be read is left out and told as damage."""
        wanted = sorted(set(seqs))
        found = {}
        for at in range(0, len(wanted), _AT_ONCE):
            some = wanted[at : at + _AT_ONCE]
            near = self._near(some)
            for seq in some:
                entry = self._entry(seq, near)
                if entry is not None:
                    found[seq] = entry
        return found

    def record(self, run_id: str, record: Record) -> Said | None:
        """Return what a case entry says, or None where it cannot be read."""
        start_seq, seq = lists.place(record.id)
        digest = sha256(record.line)
        try:
            told = json.loads(record.line)
            item = told["item"]
            whose, said, case = (told["run"], told["seq"]), item["phase"], item["case"]
            if item["phase"] == "result":
                said = item["result"]
        except (ValueError, LookupError, TypeError) as error:
            self._damaged(None, f"case entry {seq} of run {run_id} cannot be read: {error}")
            return None
        if whose != (run_id, seq) or said != record.said or case != record.case:
            self._damaged(None, f"case entry {seq} of run {run_id} is indexed as another one: {record.said}")
        named = self._named(start_seq, seq)
        if named is not None and named != digest.digest():
            self._damaged(None, f"case entry {seq} of run {run_id} was changed: its list names another hash")
        return Said(seq, said, item, rfc3339(record.received_us), digest.hexdigest())

    def _near(self, seqs: list[int]) -> dict[int, bytes]:
        asked = [seq + beyond for seq in seqs for beyond in (0, 1)]
        asked += [0] * (2 * _AT_ONCE - len(asked))
        return dict(self.reader.rows("lines_among", **{f"seq_{n}": seq for n, seq in enumerate(asked)}))

    def _entry(self, seq: int, near: dict[int, bytes]) -> Entry | None:
        line = near.get(seq)
        if line is None:
            self._damaged(seq, f"entry {seq} of the ledger is missing")
            return None
        following = near.get(seq + 1)
        # A line begins with its own number and the hash of the line before, at fixed places.
        prev = b'{"v":1,"seq":%d,"prev":"%s",' % (seq + 1, lines.digest(line).encode())
        if following is not None and not following.startswith(prev):
            self._damaged(seq, f"entry {seq} of the ledger is not what entry {seq + 1} names: one of them was changed")
        try:
            return lines.parse(line)
        except (ValueError, RecursionError) as error:
            self._damaged(seq, f"entry {seq} of the ledger cannot be read: {error}")
            return None

    def _named(self, start_seq: int, seq: int) -> bytes | None:
        """Return the digest by which a list names a record; None where the list is not complete yet."""
        first = (seq - 1) // lists.GROUP * lists.GROUP + 1
        id = lists.number(start_seq, first)
        for _, digests in self.reader.rows("item_lists", after=id - 1, beyond=id + 1, page=1):
            at = (seq - first) * lists.DIGEST_BYTES
            return digests[at : at + lists.DIGEST_BYTES]  # type: ignore[no-any-return]
        return None

    def _damaged(self, seq: int | None, text: str) -> None:
        self.damage.append({"entry": seq, "text": text})


def of_case(reader: Reader, case: str) -> dict[int, list[Record]]:
    """Return the case entries about a case, by the entry that started their run, all in order."""
    found: dict[int, list[Record]] = {}
    for record in items.of_case(reader, case):
        found.setdefault(lists.place(record.id)[0], []).append(record)
    return found

"""What one transaction puts on record of a job's case entries: judged, salted and hashed before the store is locked."""

from __future__ import annotations

import os
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from runguard.errors import StoreError
from runguard.evidence import entries, lists
from runguard.evidence.lists import RunList
from runguard.evidence.tail import HEAD_BYTES, Line
from runguard.store import items
from runguard.store.items import Progress

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runguard.store.database import Transaction

MOST_KEPT_SINGLY = 1000  # rejected lines of a run; more in a row are kept as one piece
_NO_ROW: dict[str, Any] = {}


class MovedError(StoreError):
    """Somebody else has taken in lines of the file meanwhile."""


class Batch:
    """Lines of one run's file, from where `progress` stands on; `list` grows by them."""

    def __init__(self, run_id: str, progress: Progress, run_list: RunList, at_us: int) -> None:
        self.before = progress
        self.progress = progress
        self.list = run_list
        self.personal: dict[str, list[int]] = {}
        self._run_id = run_id
        self._at_us = at_us
        self._items: list[dict[str, Any]] = []
        self._keys: list[tuple[str, str, str]] = []  # case, said, key: of each item
        self._pieces: list[tuple[int, bytes]] = []
        self._rejects: list[dict[str, Any]] = []

    def add(self, lines: list[Line], size_bytes: int) -> None:
        """Take lines as they stand in the file, which is `size_bytes` long."""
        salts = os.urandom(lists.SALT_BYTES * len(lines)).hex()
        width = 2 * lists.SALT_BYTES
        counts = dict.fromkeys(entries.SAID, 0)
        offset, shift = self.before.file_offset, self.before.shift
        rejected, expected, seq = self.before.rejected, self.before.expected, self.before.entries
        beyond = 0
        for n, line in enumerate(lines):
            over = seq + rejected >= lists.MOST_ENTRIES and line.data != b""
            if over or line.offset + line.size_bytes > lists.MOST_BYTES:
                beyond = max(size_bytes - line.offset, 0)
                break
            offset = shift + line.offset + line.size_bytes
            if line.data == b"":
                continue
            try:
                first = expected is None and not seq and not rejected
                if (number := _judge_first(line, first=first)) is not None:
                    expected = number
                    continue
                assert line.data is not None
                entry = entries.judge(line.data)
            except entries.Rejected as error:
                rejected += 1
                self._reject(line, shift, rejected, str(error))
                continue
            seq += 1
            counts[entry.said] += 1
            self._item(entry, seq, shift + line.offset, salts[n * width : n * width + width], line.data)
        self._pieces = self.list.extend(item["line"] for item in self._items)
        results = {name: getattr(self.before, name) + counts[name] for name in entries.RESULTS}
        self.progress = self.before._replace(
            file_offset=offset, entries=seq, rejected=rejected, expected=expected, beyond_bytes=beyond, **results
        )

    def note_new_file(self, how: str) -> None:
        """Begin with the file anew: the job has truncated or replaced it, and what was on record stays there."""
        was = self.before.file_offset
        why = f"the file was {how} after {was - self.before.shift} bytes were on record"
        line = Line(was, 0, b"")
        self.progress = self.before._replace(file_offset=was + 1, shift=was + 1, rejected=self.before.rejected + 1)
        self._reject(line, 0, 0, why)

    def untold(self) -> int:
        """Return how many entries no entry of the ledger has named."""
        return self.progress.entries - self.progress.told

    def write(self, tx: Transaction, *, tell: bool) -> Progress:
        """Put it on record and return how far the file is now. Raises MovedError where the file is elsewhere by now."""
        start_seq = self.before.start_seq
        if not self.before.file_offset:
            tx.send("begin_item_run", {"start_seq": start_seq})
        fresh, unannounced = self._fresh_cases(tx), self._pair(tx)
        progress = self.progress._replace(
            cases=self.progress.cases + fresh,
            unannounced=self.progress.unannounced + unannounced,
            told=self.progress.entries if tell else self.progress.told,
        )
        advance(tx, self.before, progress)
        tx.store.send_many("insert_item", self._items)
        tx.store.send_many(
            "insert_item_list",
            [{"id": lists.number(start_seq, first), "digests": digests} for first, digests in self._pieces],
        )
        tx.store.send_many("insert_item_rejected", self._rejects)
        if tell:
            tx.append("items", self._at_us, _told(self._run_id, progress, self.list))
        return progress

    def _item(self, entry: entries.Entry, seq: int, offset: int, salt: str, item: bytes) -> None:
        self._items.append(
            {
                "id": lists.number(self.before.start_seq, seq),
                "case_id": entry.case,
                "said": entry.said,
                "file_offset": offset,
                "received_us": self._at_us,
                "line": lists.record_line(self._run_id, seq, salt, item),
            }
        )
        self._keys.append((entry.case, entry.said, entry.key))
        if entry.personal:
            self.personal.setdefault(entry.personal, []).append(seq)

    def _reject(self, line: Line, shift: int, count: int, why: str) -> None:
        """Keep a line that is no entry. After a thousand of them, those that follow one another are one piece."""
        data = None if line.data is None else line.data + b"\n" * (line.size_bytes - len(line.data))
        before = self._rejects[-1] if self._rejects else _NO_ROW
        if count > MOST_KEPT_SINGLY and data is not None and _adjoins(before, shift + line.offset):
            before["hash"].update(data)
            before["size_bytes"] += line.size_bytes
            before["lines"] += 1
            before["sha256"] = before["hash"].hexdigest()
            return
        hash = None if data is None else sha256(data)
        row = {
            "start_seq": self.before.start_seq,
            "file_offset": shift + line.offset,
            "size_bytes": line.size_bytes,
            "lines": 1,
            "sha256": line.sha256 if hash is None else hash.hexdigest(),
            "head": line.head if data is None else data[:HEAD_BYTES],
            "why": why,
            "received_us": self._at_us,
        }
        self._rejects.append(row if hash is None else {**row, "hash": hash})

    def _fresh_cases(self, tx: Transaction) -> int:
        """Return how many cases have their first intent or result of the run here."""
        reached = {case for case, said, _ in self._keys if said != "note"}
        if not self.before.entries:
            return len(reached)
        start_seq = self.before.start_seq
        after, beyond = lists.bounds(start_seq)
        asked = {"start_seq": start_seq, "after": after, "beyond": beyond}
        return sum(not tx.store.rows("item_reached", case_id=case, **asked) for case in reached)

    def _pair(self, tx: Transaction) -> int:
        """Note intents that wait for their results, strike out those that have them; return results without intent."""
        start_seq = self.before.start_seq
        opened: dict[tuple[str, str], int] = {}
        closed: dict[tuple[str, str], bool] = {}  # what had a result: whether its first one needs an intent of before
        unannounced = 0
        for (case, said, key), item in zip(self._keys, self._items, strict=True):
            if said == "intent":
                opened[case, key] = item["id"]
            elif said != "note":
                alone = opened.pop((case, key), None) is None and said in ("done", "failed")
                if (case, key) in closed:
                    unannounced += alone
                else:
                    closed[case, key] = alone
        waiting = bool(self.before.entries) and bool(items.still_open(tx.store, start_seq, limit=1))
        for (case, key), alone in closed.items():
            was_open = waiting and tx.send("close_item", {"start_seq": start_seq, "case_id": case, "key": key})
            unannounced += alone and not was_open
        rows = [{"start_seq": start_seq, "case_id": case, "key": key, "id": n} for (case, key), n in opened.items()]
        tx.store.send_many("open_item", rows)
        return unannounced


def advance(tx: Transaction, before: Progress, after: Progress) -> None:
    """Record how far the file is now. Raises MovedError where it is no longer where it was before."""
    if tx.send("advance_item_run", {**after._asdict(), "was": before.file_offset}) != 1:
        raise MovedError(tx.store.path, "the case entries of this run were taken in by another process meanwhile")


def _told(run_id: str, progress: Progress, run_list: RunList) -> Mapping[str, Any]:
    """Return what the ledger says of a run's entries while the run lives."""
    told = {
        "entries": progress.entries,
        "rejected": progress.rejected,
        "expected": progress.expected,
        "bytes": progress.file_offset,
        "list_sha256": run_list.sha256(),
    }
    return {"run_id": run_id, "final": False, "items": told}


def _judge_first(line: Line, *, first: bool) -> int | None:
    """Return N where the line is `{"expected": N}`, or None for any other that is worth judging. Raises Rejected."""
    if line.data is None:
        raise entries.Rejected(entries.too_long(line.size_bytes))
    number = entries.expected(line.data)
    if number is not None and not first:
        raise entries.Rejected("expected stands in the first line only")
    return number


def _adjoins(before: Mapping[str, Any], offset: int) -> bool:
    return "hash" in before and before["file_offset"] + before["size_bytes"] == offset

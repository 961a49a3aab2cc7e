"""From a damaged store to a new one: what is kept beside the ledger and cannot be derived from its lines.

A row is recognised by its shape, for its page does not say whose it is, and comes over only where the ledger's lines
know of it: output that the end of its run tells by hash, records of a run that was started, a checkpoint's signature.
Records that an entry has lawfully removed do not come back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from runguard.errors import StoreError
from runguard.evidence import lists
from runguard.store import items, lines, pages
from runguard.store.database import UNFIT, Store, Transaction
from runguard.store.items import Progress, Record, Reject
from runguard.store.pages import Row
from runguard.store.reads import Ping, Run

# Every table is one or the other. What is derived is derived by `salvage`, or below.
KEPT = (
    "anchored", "entry_list", "erasure", "item", "item_list", "item_rejected", "item_run", "output", "ping",
    "signature", "verified",
)  # fmt: skip
DERIVED = ("bearing", "checkpoint", "item_open", "job", "ledger", "pruned", "revision", "run", "waiver")
NEVER_KEPT = ("lifted",)  # of one transaction

_OF_ITEM = ("id", "case_id", "said", "file_offset", "received_us", "line")
_OF_PING = ("run_id", "n", *Ping._fields)
_OF_REJECTED = ("start_seq", *Reject._fields)
_OF_VERIFIED = ("at_us", "since_seq", "upto_seq", "upto_hash", "problems")


def take_rows(
    store: Store, fd: int, removed: Callable[[int], bool], advance: Callable[[int], None]
) -> Mapping[str, int]:
    """Take over the rows of KEPT tables that the open file still holds; returns how many, by table.

    `removed` tells whether a record was lawfully removed, by its number across all runs. Raises StoreError for faults
    of the new store.
    """
    taken: Counter[str] = Counter()
    with store.write() as tx:
        known = _Known(tx.store, removed)
        for page in pages.pages(fd):
            for shape, values in filter(None, map(_recognised, page.rows)):
                table, fields = known.told_apart(shape, values)
                if known.to_the_ledger(table, fields) and _put(tx, table, fields):
                    taken[table] += 1
            advance(1)
        _derive(tx)
    return taken


def _recognised(row: Row) -> tuple[str, dict[str, Any]] | None:
    """Return the table and the fields of a row, or None where its shape is of none of these tables."""
    values = row.values
    match values:
        case None, bytes() as digests if digests and len(digests) % lists.DIGEST_BYTES == 0:
            return "digests", {"id": row.rowid, "digests": digests}
        case None, str():
            return "signature", {"seq": row.rowid, "text": values[1]}
        case None, int(), str() | None:
            return "anchored", {"seq": row.rowid, "at_us": values[1], "error": values[2]}
        case None, str(), str(), int(), int(), bytes():
            return "item", dict(zip(_OF_ITEM, (row.rowid, *values[1:]), strict=True))
        case None, int(), int(), int(), int(), int(), int(), *_ if len(values) == len(Progress._fields):
            return "item_run", dict(zip(Progress._fields, (row.rowid, *values[1:]), strict=True))
        case int(), int(), int(), int(), str(), bytes(), str(), int():
            return "item_rejected", dict(zip(_OF_REJECTED, values, strict=True))
        case str(), bytes(), bytes():
            return "output", dict(zip(("run_id", "head", "tail"), values, strict=True))
        case str(), int(), str(), str(), str(), str(), *_ if len(values) == len(_OF_PING):
            return "ping", dict(zip(_OF_PING, values, strict=True))
        case int(), int(), int(), str(), int():
            return "verified", dict(zip(_OF_VERIFIED, values, strict=True))
    return None


class _Known:
    """Whether the ledger knows of a row."""

    def __init__(self, store: Store, removed: Callable[[int], bool]) -> None:
        self._store = store
        self._removed = removed
        self._run: Run | None = None  # the one that the last row was of: they lie side by side

    def told_apart(self, shape: str, values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Return the table of a row, where three have the same shape: the entry that it belongs to tells."""
        if shape != "digests":
            return shape, values
        id, digests = values["id"], values["digests"]
        kind = next((line.partition(b'"kind":"')[2].partition(b'"')[0] for line in self._lines(id)), b"")
        if kind == b"redact" and len(digests) == lists.DIGEST_BYTES:
            return "erasure", {"seq": id, "secret": digests}
        if kind == b"checkpoint":
            return "entry_list", {"checkpoint_seq": id, "digests": digests}
        return "item_list", values

    def to_the_ledger(self, table: str, fields: Mapping[str, Any]) -> bool:
        try:
            match table:
                case "item":
                    return self._record(fields["id"], fields["line"])
                case "item_list":
                    return self._run_at(lists.place(fields["id"])[0]) is not None
                case "item_rejected" | "item_run":
                    return self._run_at(fields["start_seq"]) is not None
                case "output":
                    return self._output(**fields)
                case "verified":
                    return any(map(_is(fields["upto_hash"]), self._lines(fields["upto_seq"])))
        except UNFIT:
            return False
        return True  # the tables ask for a row of the run or the checkpoint

    def _record(self, id: int, line: bytes) -> bool:
        start_seq, seq = lists.place(id)
        run = self._run_at(start_seq)
        if run is None or self._removed(id):
            return False
        return bool(lists.item_of(line)) and line.startswith(
            b'{"v":1,"run":"%s","seq":%d,' % (run.run_id.encode(), seq)
        )

    def _output(self, run_id: str, head: bytes, tail: bytes) -> bool:
        """Tell whether the end of a run is on record and names this output."""
        run = self._store.run(run_id)
        told = [lines.parse(line).get("output") or {} for line in self._lines(run.finish_seq if run else None)]
        kept = (("head_sha256", head), ("tail_sha256", tail))
        return any(all(each.get(name) in (None, lines.digest(data)) for name, data in kept) for each in told)

    def _run_at(self, start_seq: int) -> Run | None:
        if self._run is None or self._run.start_seq != start_seq:
            self._run = next((Run(*row) for row in self._store.rows("run_at", seq=start_seq)), None)
        return self._run if self._run is not None and self._run.outcome != "refused" else None

    def _lines(self, seq: int | None) -> list[bytes]:
        return [line for (line,) in self._store.unjudged("line_at", seq=seq)]


def _is(hash: str) -> Callable[[bytes], bool]:
    return lambda line: lines.digest(line) == hash


def _put(tx: Transaction, table: str, fields: dict[str, Any]) -> bool:
    """Insert a row; returns False where the tables do not take it: it is damaged, or stands there already."""
    try:
        if table == "item_run":
            tx.send("begin_item_run", {"start_seq": fields["start_seq"]})
            tx.send("advance_item_run", {**fields, "was": 0})
        else:
            tx.send("keep_entry_list" if table == "entry_list" else f"insert_{table}", fields)
    except StoreError as error:
        if "constraint" not in str(error.__cause__):
            raise
        return False
    return True


def _derive(tx: Transaction) -> None:
    """Derive how far the files of runs are on record, where that is lost, and which intents wait for a result."""
    for start_seq in list(_runs_with_records(tx)):
        records = items.records(tx.store, *lists.bounds(start_seq))
        if items.progress(tx.store, start_seq) is None:
            tx.send("begin_item_run", {"start_seq": start_seq})
            counted = _counted(start_seq, records)
            tx.send("advance_item_run", {**counted._asdict(), "was": 0})
            records = items.records(tx.store, *lists.bounds(start_seq))
        waiting: dict[tuple[str, str], int] = {}
        for record in records:
            key = _key(record.line)
            if record.said == "intent":
                waiting[record.case, key] = record.id
            elif record.said != "note":
                waiting.pop((record.case, key), None)
        rows = [{"start_seq": start_seq, "case_id": case, "key": key, "id": n} for (case, key), n in waiting.items()]
        tx.store.send_many("open_item", rows)


def _runs_with_records(tx: Transaction) -> Iterator[int]:
    after = 0
    while found := tx.store.rows("item_next", after=after):
        start_seq = lists.place(found[0][0])[0]
        yield start_seq
        after = lists.bounds(start_seq)[1] - 1


def _counted(start_seq: int, records: Iterator[Record]) -> Progress:
    """Return how far a file is on record, by its records alone: lines after the last of them are read again."""
    said: Counter[str] = Counter()
    reached = set()
    progress = Progress(start_seq)
    for record in records:
        said[record.said] += 1
        if record.said != "note":
            reached.add(record.case)
        end = record.file_offset + len(lists.item_of(record.line)) + 1
        progress = progress._replace(entries=lists.place(record.id)[1], file_offset=end)
    counts = {name: said[name] for name in ("done", "no_action", "failed", "skipped")}
    return progress._replace(cases=len(reached), **counts)


def _key(line: bytes) -> str:
    if b'"key"' not in line:
        return ""
    try:
        return str(lines.parse(lists.item_of(line) + b"\n").get("key") or "")
    except UNFIT:
        return ""

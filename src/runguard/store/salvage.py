"""From a damaged store to a new one: first the ledger's lines, every one that is what was written, under its number.

Lines that a damaged page has made illegible, or that the line after them proves to be altered, are left out: their
numbers are gaps, and the new ledger's first entry names them. Tables that are an index over the ledger are derived from
its lines again; the rest is the matter of `salvage_rows`.
"""

from __future__ import annotations

import _sqlite3
import os
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from runguard import instant
from runguard.errors import StoreError
from runguard.store import creation, lines, pages, sqlite
from runguard.store.database import FAULTS, UNFIT, Appended, Store, Transaction, failed
from runguard.store.index import index
from runguard.store.lines import Author
from runguard.store.witness import Seen
from runguard.store.writelock import WriteLock

_LINE = re.compile(rb'\{"v":1,"seq":([0-9]{1,18}),"prev":"([0-9a-f]{64})",[^\n]*\}\n')
_TRIGGERS = "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'"
_PAGE = 2_000
_FAR = 1 << 62
_MOST_LOOSE = 100_000

Gap = tuple[int, int, str | None, str | None]  # first and last entry, instants of the entries around them


class Salvaged(NamedTuple):
    """What was salvaged of a ledger."""

    entries: int
    last: Seen | None
    last_at: str | None
    lost: tuple[Gap, ...]
    unindexed: tuple[int, ...]  # entries without rows: the start of their run is lost
    unproven: tuple[int, ...] = ()  # entries that no later line names, because that one is lost


def begin(path: str, author: Author) -> tuple[Store, list[str]]:
    """Make a new, empty store at `path` that takes entries in any order until it is sealed with its triggers.

    Raises StoreError.
    """

    triggers: list[str] = []

    def opened(path: str, _witness: object, wait_s: float) -> _sqlite3.Connection:
        connection = sqlite.connect(path, "rw", wait_s)
        try:
            # Nobody needs it while it is not whole: it is synced once, at the end.
            begin = "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; PRAGMA foreign_keys = ON;"
            connection.executescript("\n".join([begin, *creation.migrations(0)]))
            for name, statement in connection.execute(_TRIGGERS).fetchall():
                triggers.append(statement)
                connection.execute(f"DROP TRIGGER {name}")
        except FAULTS as error:
            raise failed(path, error) from error
        return connection

    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    return Store(path, opened, author, WriteLock(path), None, sqlite.WAIT_S), triggers


def seal(store: Store, triggers: list[str]) -> None:
    """Give the store its triggers, close it and make it durable. Raises StoreError or OSError."""
    for trigger in triggers:
        store.control(trigger)
    store.close()
    fd = os.open(store.path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def take_lines(store: Store, fd: int, seen: Seen | None, advance: Callable[[int], None]) -> Salvaged:
    """Take over what the open file still holds of a ledger, of which the witness has `seen` an entry.

    `advance` is told of pages. Raises StoreError for faults of the new store.
    """
    with store.write() as tx:
        loose = _gather(tx, fd, advance)
        unproven = _Settling(tx, seen, loose).settle()
        salvaged = _index_all(tx)
        there = tuple(seq for seq in unproven if tx.store.unjudged("line_at", seq=seq))
        salvaged = salvaged._replace(unproven=there)
    last_seq = salvaged.last.seq if salvaged.last else 0
    if seen is None:
        return salvaged
    if seen.seq <= last_seq:
        # Another line stands where the witness saw one: that one is lost, and nobody knows of when it was.
        instead = any(lines.digest(line) != seen.hash for (line,) in store.unjudged("line_at", seq=seen.seq))
        found = (*salvaged.lost, (seen.seq, seen.seq, None, None)) if instead else salvaged.lost
        return salvaged._replace(lost=tuple(sorted(found, key=lambda gap: gap[0])))
    tail = (last_seq + 1, seen.seq, salvaged.last_at, None)
    return salvaged._replace(lost=(*salvaged.lost, tail))


def resume(store: Store, salvaged: Salvaged, seen: Seen | None, at_us: int, fields: dict[str, Any]) -> Appended:
    """Append the entry `recovery`, the first that is new: it follows on the last one that is known. Raises StoreError.

    Known is what the witness has seen, or a later line. `about` of the fields may be empty: it is about itself then.
    """
    last = salvaged.last
    if seen is not None and (last is None or last.seq < seen.seq):
        last = seen
    seq, prev = (last.seq + 1, last.hash) if last else (1, lines.FIRST_PREV)
    fields = {**fields, "about": fields["about"] or [{"entry": seq}]}
    with store.write() as tx:
        entry = lines.entry(seq, prev, "recovery", at_us, store.author, fields)
        index(tx.send, entry)
        line = lines.encode(entry)
        tx.send("append_line", {"seq": seq, "line": line})
    return Appended(seq, lines.digest(line))


def _gather(tx: Transaction, fd: int, advance: Callable[[int], None]) -> dict[int, list[bytes]]:
    """Copy every line that stands in its place; return those that were found loose, in damaged pages, by number."""
    loose: dict[int, list[bytes]] = {}
    count = 0
    for page in pages.pages(fd):
        for row in page.rows:
            match row.values:
                case (None, bytes() as line) if (found := _LINE.fullmatch(line)) is not None:
                    if int(found[1]) == row.rowid > 0:
                        tx.send("salvage_line", {"seq": row.rowid, "line": line})
                    else:
                        loose.setdefault(int(found[1]), []).append(line)
        if not page.whole:
            for found in _LINE.finditer(page.data):
                count += 1
                if count <= _MOST_LOOSE:
                    loose.setdefault(int(found[1]), []).append(found[0])
        advance(1)
    return loose


class _Above(NamedTuple):
    """A line that was kept, or what the witness has seen of it: which line comes before it."""

    seq: int
    prev: str
    proven: bool


class _Settling:
    """Goes through the lines backwards: each one tells by its `prev` what the one before it was.

    A line that is not the one that a proven line names was altered. One that nobody names stays, unless it names
    another line than the one that stands there, too: then it is the altered one. What was found loose counts only
    where it is named.
    """

    def __init__(self, tx: Transaction, seen: Seen | None, loose: dict[int, list[bytes]]) -> None:
        self._tx = tx
        self._loose = loose
        self._unproven: set[int] = set()
        self._above: _Above | None = None
        self._witness = _Above(seen.seq + 1, seen.hash, proven=True) if seen else None

    def settle(self) -> tuple[int, ...]:
        """Do it, and return the lines that stay although nobody names them, ascending."""
        before = _FAR
        while page := self._tx.store.unjudged("lines_before", seq=before, page=_PAGE):
            for seq, line in page:
                self._fill(seq)
                self._judge(seq, line)
            before = page[-1][0]
        self._fill(0)
        return tuple(sorted(self._unproven))

    def _judge(self, seq: int, line: bytes) -> None:
        hash = lines.digest(line)
        above = self._naming(seq)
        if above is not None and above.prev != hash:
            if above.proven:
                self._tx.send("discard_line", {"seq": seq})
                self._above = above
                self._fill(seq - 1)
                return
            self._tx.send("discard_line", {"seq": above.seq})
            self._unproven.discard(above.seq)
            above = None
        self._above = _Above(seq, _prev(line), proven=above is not None)
        if above is None:
            self._unproven.add(seq)

    def _fill(self, down_to: int) -> None:
        """Put loose lines into the gap above the line `down_to`, as far as they are named."""
        while (filled := self._next_loose(down_to)) is not None:
            self._tx.send("salvage_line", {"seq": filled[0], "line": filled[1]})
            self._above = _Above(filled[0], _prev(filled[1]), proven=True)

    def _next_loose(self, down_to: int) -> tuple[int, bytes] | None:
        for above in (self._above, self._witness):
            if above is None or above.seq - 1 <= down_to or (self._above and above.seq > self._above.seq):
                continue
            for line in self._loose.get(above.seq - 1, ()):
                if lines.digest(line) == above.prev:
                    return above.seq - 1, line
        return None

    def _naming(self, seq: int) -> _Above | None:
        return next((each for each in (self._above, self._witness) if each and each.seq == seq + 1), None)


def _prev(line: bytes) -> str:
    return line[line.index(b'"prev":"') + 8 :][:64].decode("ascii")


def _index_all(tx: Transaction) -> Salvaged:
    """Derive the tables from the lines, in order; return what there is, and what is missing."""
    count, unindexed = 0, []
    last: int | None = None
    last_at: str | None = None
    gaps: list[Gap] = []
    removed: list[tuple[int, int]] = []
    seq, hash = 0, lines.FIRST_PREV
    while page := tx.store.unjudged("lines_after", seq=seq, page=_PAGE):
        for seq, line in page:
            try:
                entry = lines.parse(line)
                at = instant.rfc3339(instant.from_rfc3339(entry["at"]))
            except UNFIT:
                tx.send("discard_line", {"seq": seq})
                continue
            if seq > (last or 0) + 1:
                gaps.append(((last or 0) + 1, seq - 1, last_at, at))
            if not _indexed(tx, entry):
                unindexed.append(seq)
            removed += _removed(entry)
            count, last, last_at, hash = count + 1, seq, at, lines.digest(line)
    lost = tuple(gap for gap in gaps for gap in _without(gap, removed))
    return Salvaged(count, Seen(last, hash) if last else None, last_at, lost, tuple(unindexed))


def _indexed(tx: Transaction, entry: dict[str, Any]) -> bool:
    store = tx.store
    store.control("SAVEPOINT entry")
    try:
        if index(tx.send, entry):
            store.control("RELEASE entry")
            return True
    except (*UNFIT, StoreError):
        pass
    store.control("ROLLBACK TO entry")
    store.control("RELEASE entry")
    return False


def _removed(entry: dict[str, Any]) -> Iterator[tuple[int, int]]:
    """Yield the spans of entries that are missing for a reason that this one tells: lawfully, or known before."""
    kind = entry.get("kind")
    try:
        if kind == "prune" and entry["what"] == "entries":
            yield int(entry["entries"]["first"]), int(entry["entries"]["last"])
        if kind == "recovery":
            yield from [(int(first), int(last)) for first, last in entry["lost"]]
    except UNFIT:
        return


def _without(gap: Gap, removed: list[tuple[int, int]]) -> Iterator[Gap]:
    """Yield what is left of a gap without spans that are accounted for."""
    first, last, since, until = gap
    for begun, ended in sorted(removed):
        if ended < first or begun > last:
            continue
        if begun > first:
            yield first, begun - 1, since, until
        first = max(first, ended + 1)
    if first <= last:
        yield first, last, since, until

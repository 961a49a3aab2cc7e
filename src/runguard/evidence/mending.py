"""Case entries that were salvaged from a damaged store are held against what the ledger says of them.

Where the records of a run make the list that the ledger names, its digests are derived from them anew. Where they do
not, records that differ from their digests were altered, and are left out: the copy that was kept aside has them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import NamedTuple

from runguard.evidence import checkpoints, lists, records
from runguard.evidence.records import Telling, Tellings
from runguard.evidence.removals import Removals
from runguard.store import items, lines
from runguard.store.database import Store, Transaction
from runguard.store.items import Progress, Record
from runguard.store.reads import Reader, Run

_FAR = 1 << 62
_PAGE = 2_000
_UNKNOWN = bytes(lists.DIGEST_BYTES)


def mend(store: Store) -> list[str]:
    """Mend what can be mended and return the runs whose case entries are not whole. Raises StoreError."""
    told = read(store)
    for run_id in told.by_run:
        run = store.run(run_id)
        if run is not None:
            with store.write() as tx:
                _mend(tx, run.start_seq, told.by_run[run_id][-1])
    removals = Removals(store)
    known = [run_id for run_id in told.by_run if store.run(run_id) is not None]
    flawed = [run_id for run_id in known if _has_flaw(store, told, removals, run_id)]
    for run in [Run(*row) for row in store.rows("all_running")]:
        progress = items.progress(store, run.start_seq)
        if progress is not None:
            with store.write() as tx:
                if not _close_up(tx, progress) and run.run_id not in flawed:
                    flawed.append(run.run_id)
    return flawed


class Listed(NamedTuple):
    """Entries that no checkpoint proves any more, as spans, and the hash of their list."""

    spans: tuple[tuple[int, int], ...]
    sha256: str | None


def complete_lists(store: Store) -> Listed:
    """Keep the lists of checkpoints that can be had although entries are lost; return what none of them proves.

    The line after a gap names the last entry in it: of a gap of one, that is all of it. Raises StoreError.
    """
    proven, upto = set[tuple[int, int]](), 0
    with store.write() as tx:
        for seq, first, last, list_sha256 in store.rows("checkpoints_before", before_us=_FAR):
            upto = max(upto, last)
            present = [sha256(line).hexdigest() for _, line in _lines(store, first, last)]
            digests = present if len(present) == last - first + 1 else list(_named(store, first, last))
            if len(digests) == last - first + 1 and checkpoints.list_sha256(first, digests) == list_sha256:
                proven.add((first, last))
                if digests is not present:
                    tx.send("keep_entry_list", {"seq": seq, "digests": bytes.fromhex("".join(digests))})
    return listed(store, _between(store, sorted(proven), upto))


def listed(store: Reader, spans: Iterable[tuple[int, int]]) -> Listed:
    """Return the list of the entries that are there of these spans. Raises StoreError."""
    spans, hash = tuple(spans), sha256()
    for line in list_of(store, spans):
        hash.update(line)
    return Listed(spans, hash.hexdigest() if spans else None)


def list_of(store: Reader, spans: Iterable[tuple[int, int]]) -> Iterator[bytes]:
    """Yield that list: the SHA-256 of each line, two spaces, e and its seq, as in the list of a checkpoint."""
    for first, last in spans:
        for seq, line in _lines(store, first, last):
            yield checkpoints.entry_list(seq, [sha256(line).hexdigest()])


def _between(store: Store, proven: list[tuple[int, int]], upto: int) -> Iterator[tuple[int, int]]:
    """Yield the spans of entries up to one that lie between those that are proven, without the gaps in them."""
    after = 0
    for first, last in (*proven, (upto + 1, upto + 1)):
        begun = before = 0
        for seq, _ in _lines(store, after + 1, first - 1):
            if begun and seq != before + 1:
                yield begun, before
                begun = 0
            begun, before = begun or seq, seq
        if begun:
            yield begun, before
        after = max(after, last)


def _lines(store: Reader, first: int, last: int) -> Iterator[tuple[int, bytes]]:
    while first <= last:
        page = store.rows("lines_between", first_seq=first, last_seq=min(first + _PAGE - 1, last))
        yield from page
        first += _PAGE


def _named(store: Store, first: int, last: int) -> Iterator[str]:
    """Yield the hashes of the entries from `first` to `last` that stand there or that the next one names."""
    after = first
    for seq, line in _lines(store, first, last + 1):
        if seq == after + 1:
            yield lines.parse(line)["prev"]
            after += 1
        if seq > last:
            return
        if seq == after:
            yield sha256(line).hexdigest()
            after += 1


def read(store: Store) -> Tellings:
    """Return what all lines of the ledger say of case entries. Raises StoreError."""
    told, seq = Tellings(), 0
    while page := store.unjudged("lines_after", seq=seq, page=1_000):
        for seq, line in page:
            told.read(seq, line)
    return told


def _mend(tx: Transaction, start_seq: int, last: Telling) -> None:
    """Derive the digests of a run's records, if they are those that were told, or leave out what was altered."""
    bounds = lists.bounds(start_seq)
    derived, listed = lists.RunList(), lists.RunList()
    pieces = derived.extend(record.line for record in _first(tx.store, bounds, last.entries))
    if derived.entries == last.entries and derived.sha256() == last.list_sha256:
        rest = derived.rest()
        tx.send("discard_item_lists", {"after": bounds[0], "beyond": bounds[1]})
        rows = [
            {"id": lists.number(start_seq, first), "digests": digests}
            for first, digests in (*pieces, *([rest] if rest and last.final else ()))
        ]
        tx.store.send_many("insert_item_list", rows)
        return
    found = list(items.digests(tx.store, *bounds))
    listed.resume(found)
    proven = listed.entries == last.entries and listed.sha256() == last.list_sha256
    digests = b"".join(found) if proven else b""
    altered = [record.id for record in items.records(tx.store, *bounds) if not _is_whole(record, digests)]
    for id in altered:
        tx.send("discard_item", {"id": id})


def _first(store: Store, bounds: tuple[int, int], entries: int) -> list[Record]:
    return list(items.records(store, bounds[0], min(bounds[0] + entries + 1, bounds[1])))


def _is_whole(record: Record, digests: bytes) -> bool:
    """Tell whether a record is the one with the digest in its place, or, without that, one at all."""
    seq = lists.place(record.id)[1]
    digest = digests[(seq - 1) * lists.DIGEST_BYTES : seq * lists.DIGEST_BYTES]
    if digest:
        return sha256(record.line).digest() == digest
    try:
        return bool(json.loads(lists.item_of(record.line)).get("case") == record.case)
    except (ValueError, AttributeError):
        return False


def _close_up(tx: Transaction, progress: Progress) -> bool:
    """Make the digests of a run whose end is not on record follow one another, as whoever closes it expects.

    A record that is lost, and its digest with it, gets a digest of zeros. Returns whether nothing was lost.
    """
    start_seq = progress.start_seq
    bounds = lists.bounds(start_seq)
    known: dict[int, bytes] = {}
    for first, piece in items.pieces(tx.store, *bounds):
        for at in range(len(piece) // lists.DIGEST_BYTES):
            known[first + at - bounds[0]] = piece[at * lists.DIGEST_BYTES : (at + 1) * lists.DIGEST_BYTES]
    listed = set(known)
    stood = {}
    for record in items.records(tx.store, *bounds):
        stood[lists.place(record.id)[1]] = sha256(record.line).digest()
    entries = max((progress.entries, *known, *stood))
    rejected = sum(each.lines for each in items.rejects(tx.store, start_seq))
    whole = (
        entries == progress.entries == len(stood)
        and rejected == progress.rejected
        and all(known[seq] == stood.get(seq) for seq in listed)
    )
    # Whoever closes it expects every group that is complete to be listed.
    groups = len(listed) >= entries // lists.GROUP * lists.GROUP
    if not (whole and groups and listed == set(range(1, len(listed) + 1))):
        digests = b"".join(known.get(seq) or stood.get(seq) or _UNKNOWN for seq in range(1, entries + 1))
        tx.send("discard_item_lists", {"after": bounds[0], "beyond": bounds[1]})
        for first in range(1, entries + 1, lists.GROUP):
            piece = digests[(first - 1) * lists.DIGEST_BYTES :][: lists.GROUP * lists.DIGEST_BYTES]
            tx.send("insert_item_list", {"id": lists.number(start_seq, first), "digests": piece})
        after = progress._replace(entries=entries)
        tx.send("advance_item_run", {**after._asdict(), "was": progress.file_offset})
    return whole


def _has_flaw(store: Store, told: Tellings, removals: Removals, run_id: str) -> bool:
    of_run = Tellings()
    of_run.by_run = {run_id: told.by_run[run_id]}
    return any(True for _ in records.compare(store, of_run, removals, lambda _: None))

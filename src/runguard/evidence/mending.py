"""Case entries that were salvaged from a damaged store are held against what the ledger says of them.

Where the records of a run make the list that the ledger names, its digests are derived from them anew. Where they do
not, records that differ from their digests were altered, and are left out: the copy that was kept aside has them.
"""

from __future__ import annotations

import json
from hashlib import sha256

from runguard.evidence import lists, records
from runguard.evidence.records import Telling, Tellings
from runguard.evidence.removals import Removals
from runguard.store import items
from runguard.store.database import Store, Transaction
from runguard.store.items import Progress, Record
from runguard.store.reads import Run

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

"""Whether what the tables derive from case entries is what these say: counts, open intents, rejected lines."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from hashlib import sha256
from typing import Any

from runguard.evidence import lists
from runguard.evidence.tail import HEAD_BYTES
from runguard.store import items
from runguard.store.database import ReadOnlyStore
from runguard.store.items import Open, Progress, Reject

_COUNTS = ("entries", "cases", "done", "no_action", "failed", "skipped", "unannounced", "rejected", "expected",
           "beyond_bytes")  # fmt: skip
_MANY = 1_000  # cases of a run that are asked for one by one
_REMOVALS = (b'"kind":"redact"', b'"kind":"prune"')


def runs(store: ReadOnlyStore, after_seq: int) -> Iterator[int]:
    """Yield the entries, after one, under which anything of case entries is filed."""
    found = {start_seq for (start_seq,) in store.unjudged("runs_with_items", after=after_seq)}
    yield from sorted(each for each in found if type(each) is int)


def flaws(store: ReadOnlyStore, start_seq: int, seq: int, told: Mapping[str, Any], *, whole: bool) -> Iterator[str]:
    """Yield, each as a clause, where the tables differ from what entry `seq` told in the end.

    `whole`: all records are there, so that what is uncertain can be derived.
    """
    progress = items.progress(store, start_seq)
    if progress is None:
        if told["bytes"]:
            yield "what its case entries come to is missing"
    else:
        differing = list(_differing(progress, told))
        if differing:
            yield f"the tables count its case entries otherwise than entry {seq}: {', '.join(differing)}"
    yield from _rejected(store, start_seq, seq, told)
    if whole:
        yield from _open(store, start_seq, seq, told)


def _differing(progress: Progress, told: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of what differs. `shift` only counts while there is a file."""
    yield from (name for name in _COUNTS if getattr(progress, name) != told.get(name))
    if progress.file_offset != told["bytes"]:
        yield "file_offset"
    if progress.told > progress.entries:
        yield "told"
    if progress.shift > progress.file_offset:
        yield "shift"
    if progress.complete != 1:
        yield "complete"


def _rejected(store: ReadOnlyStore, start_seq: int, seq: int, told: Mapping[str, Any]) -> Iterator[str]:
    hash, count = sha256(), 0
    for piece in items.rejects(store, start_seq):
        hash.update(lists.reject_list([(piece.sha256, piece.file_offset)]))
        count += piece.lines
        if not _has_its_head(store, piece):
            yield f"what is kept of the rejected line at {piece.file_offset} was changed"
    if (hash.hexdigest() if count else None, count) != (told.get("rejected_sha256"), told.get("rejected")):
        yield f"its rejected lines are not those that entry {seq} names"


def _has_its_head(store: ReadOnlyStore, piece: Reject) -> bool:
    """Tell whether the beginning that is kept can be that of the piece, or was lawfully removed."""
    if piece.size_bytes == len(piece.head):
        return sha256(piece.head).hexdigest() == piece.sha256
    if len(piece.head) == HEAD_BYTES or (piece.head and piece.lines > 1):  # of many lines, that of the first
        return piece.size_bytes > len(piece.head)
    seq = piece.why.rpartition(" ")[2]
    removing = store.unjudged("line_at", seq=int(seq)) if seq.isascii() and seq.isdigit() else []
    return not piece.head and any(kind in line[:200] for (line,) in removing for kind in _REMOVALS)


def _open(store: ReadOnlyStore, start_seq: int, seq: int, told: Mapping[str, Any]) -> Iterator[str]:
    """Derive what is uncertain again, case by case."""
    by_case: dict[str, list[Open]] = {}
    for each in items.still_open(store, start_seq):
        by_case.setdefault(each.case, []).append(each)
    if len(by_case) != told.get("uncertain"):
        yield f"{len(by_case)} of its cases are uncertain, and entry {seq} counts {told.get('uncertain')}"
    derived: dict[str, dict[str, int]] = {case: {} for case in by_case}
    for case, number, said, line in _said(store, start_seq, by_case):
        try:
            key = json.loads(lists.item_of(line)).get("key") or ""
        except (ValueError, AttributeError, TypeError):
            continue  # it was changed, and that is told
        if said == "intent":
            derived[case][key] = number
        elif said != "note":
            derived[case].pop(key, None)
    for case, waiting in by_case.items():
        if derived[case] != {each.key: each.id for each in waiting}:
            yield f"what is uncertain of case {case!r} is not what its entries say"


def _said(store: ReadOnlyStore, start_seq: int, cases: Collection[str]) -> Iterator[tuple[str, int, str, bytes]]:
    """Yield what a run said of these cases, in order for each: asking for each, or reading all where they are many."""
    after, beyond = lists.bounds(start_seq)
    if len(cases) > _MANY:
        for record in items.records(store, after, beyond):
            if record.case in cases:
                yield record.case, record.id, record.said, record.line
        return
    asked = {"start_seq": start_seq, "after": after, "beyond": beyond}
    for case in cases:
        for row in store.unjudged("items_of_case_in_run", case_id=case, **asked):
            yield case, *row

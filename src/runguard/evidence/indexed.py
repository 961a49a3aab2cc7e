"""Whether the tables that queries use say what the ledger's lines say."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from runguard.evidence.chain import Finding
from runguard.store import index
from runguard.store.database import ReadOnlyStore

# What later entries change of the row that a start has made: its end, and who came after it.
_CHANGES = ("outcome", "returned", "why", "finish_seq", "late_seq", "superseded_by", "exit_status", "signal",
            "finished_us", "duration_us", "suspect")  # fmt: skip
_ROW_OF = {"insert_run": "run_at", "insert_revision": "revision_at", "insert_waiver": "waiver_at",
           "insert_checkpoint": "checkpoint_at", "insert_pruned": "pruned_at"}  # fmt: skip


def compare(store: ReadOnlyStore, lines: Iterable[tuple[int, bytes]]) -> Iterator[Finding]:
    """Yield where a table differs from what these lines say. Raises StoreError."""
    for seq, line in lines:
        try:
            entry = json.loads(line)
            sent: list[tuple[str, Mapping[str, Any]]] = []
            index.index(lambda name, row, sent=sent: sent.append((name, row)) or 1, entry)  # type: ignore[misc]
        except (ValueError, KeyError, TypeError, AttributeError):
            yield Finding("index", seq, f"entry {seq} cannot be read as one of its kind")
            continue
        for name, row in sent:
            yield from _judge(store, seq, name, row)


def _judge(store: ReadOnlyStore, seq: int, name: str, row: Mapping[str, Any]) -> Iterator[Finding]:
    if name in _ROW_OF:
        found = store.labelled(_ROW_OF[name], seq=seq)
        if not found:
            yield Finding("index", seq, f"entry {seq} has no row in the tables")
            return
        differing = [key for key in row if key in found[0] and found[0][key] != row[key] and key not in _skipped(row)]
    elif name in ("finish_run", "finish_lost_run"):
        found = store.labelled("run_by_id", run_id=row["run_id"])
        if not found:
            yield Finding("index", seq, f"entry {seq} ends a run that has no row in the tables")
            return
        differing = [key for key in row if key in found[0] and found[0][key] != row[key]]
    elif name == "insert_bearing":
        asked = {key: row[key] for key in ("about", "which", "seq")}
        differing = [] if store.rows("bearing_at", **asked) else [f"what it is about ({row['about']})"]
    else:
        return
    if differing:
        yield Finding("index", seq, f"the tables tell entry {seq} otherwise: {', '.join(differing)}")


def _skipped(row: Mapping[str, Any]) -> tuple[str, ...]:
    return _CHANGES if row.get("outcome") == "running" else ()


def surplus(store: ReadOnlyStore, first_seq: int, last_seq: int) -> Iterator[Finding]:
    """Yield rows of runs, among those of these entries, that no entry of the ledger made or ended."""
    for start_seq, finish_seq in store.rows("run_seqs", first_seq=first_seq, last_seq=last_seq):
        for seq, kinds in ((start_seq, (b"run.start", b"run.refused")), (finish_seq, (b"run.finish",))):
            lines = store.rows("line_at", seq=seq) if seq is not None else []
            if seq is not None and not any(b'"kind":"%s"' % kind in line[:200] for (line,) in lines for kind in kinds):
                yield Finding("index", seq, f"a row of the tables names entry {seq}, which is none of a run")

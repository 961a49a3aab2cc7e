"""The case entries of one run, as `show RUN --items` tells them, and what they come to."""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator
from typing import Any

from runguard.cli.output import Column, Row
from runguard.cli.spans import local
from runguard.evidence import lists
from runguard.evidence.tally import of_fields
from runguard.guard.earlier_cases import named, uncertain_after
from runguard.guard.intake import list_of, tally_of
from runguard.instant import rfc3339
from runguard.store import items
from runguard.store.database import ReadOnlyStore
from runguard.store.items import Record, Reject
from runguard.store.reads import Run

COLUMNS = (
    Column("ENTRY", right=True),
    Column("RECEIVED", short=len("2026-03-29 02:30"), spare=True),
    Column("CASE"),
    Column("SAYS"),
    Column("ACTION"),
    Column("RULE", cut=True),
    Column("REASON", cut=True),
)
FIELDS = ("entry", "offset", "received_at", "case", "phase", "key", "action", "result", "rejected.why")


def rows(records: ReadOnlyStore, run: Run) -> Iterator[Row]:
    """Yield the entries of a run and the rejected pieces between them, in the order of its file."""
    entries = ((each.file_offset, _entry(each)) for each in items.records(records, *lists.bounds(run.start_seq)))
    rejects = ((each.file_offset, _reject(each)) for each in items.rejects(records, run.start_seq))
    for _, row in heapq.merge(entries, rejects, key=lambda pair: pair[0]):
        yield row


def totals(records: ReadOnlyStore, run: Run, finish: dict[str, Any]) -> dict[str, Any] | None:
    """Return what the entries of a run come to: as its end told, or as they stand where that could not tell all."""
    told: dict[str, Any] | None = finish.get("items")
    if told is not None and not told.get("pending_bytes"):
        return told
    progress = items.progress(records, run.start_seq)
    if progress is None:
        return told
    return tally_of(records, progress, list_of(records, run.start_seq)).fields()


def lines(records: ReadOnlyStore, run: Run, told: dict[str, Any] | None) -> Iterator[tuple[str, str]]:
    """Yield what the entries come to, and the uncertain cases by name, for a person."""
    if told is None:
        return
    tally = of_fields(told)
    results = ", ".join(f"{told[name]:,} {name}" for name in ("done", "no_action", "failed", "skipped") if told[name])
    yield "cases", f"{tally.sentence()} ({tally.entries:,} entries{f': {results}' if results else ''})"
    yield "", ", ".join(tally.flaws())
    if tally.uncertain:
        yield "uncertain", named(uncertain_after(records, run)).removeprefix(": ")


def _entry(record: Record) -> Row:
    item = json.loads(lists.item_of(record.line))
    _, seq = lists.place(record.id)
    facts = {
        "entry": seq,
        "offset": record.file_offset,
        "received_at": rfc3339(record.received_us),
        "case": record.case,
        "phase": item["phase"],
        "key": item.get("key"),
        "action": item["action"],
        "result": item["result"] if item["phase"] == "result" else None,
        "item": item,
        "rejected": None,
    }
    cells = (
        str(seq),
        local(record.received_us),
        record.case,
        record.said,
        item["action"],
        _rule(item.get("rule")),
        _text(item.get("reason")),
    )
    return Row(facts, cells)


def _reject(piece: Reject) -> Row:
    text = piece.head.decode("utf-8", "surrogateescape")
    facts = {
        **dict.fromkeys(("entry", "offset", "received_at", "case", "phase", "key", "action", "result", "item")),
        "offset": piece.file_offset,
        "received_at": rfc3339(piece.received_us),
        "rejected": {
            "why": piece.why,
            "bytes": piece.size_bytes,
            "lines": piece.lines,
            "sha256": piece.sha256,
            "head": text,
        },
    }
    said = "rejected" if piece.lines == 1 else f"rejected {piece.lines}"
    return Row(facts, ("", local(piece.received_us), "", said, "", "", f"{piece.why}: {text}"))


def _rule(rule: object) -> str:
    if isinstance(rule, dict):
        return " ".join(str(rule[name]) for name in ("id", "version") if rule.get(name) is not None)
    return _text(rule)


def _text(value: object) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)

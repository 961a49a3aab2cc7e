"""Retention of the ledger itself: entries that are old enough go, those of one checkpoint in a transaction.

Checkpoints never go, and neither does what is still needed: what a hold matches, runs that are not over or answer
windows that still count, the last runs of each job, definitions, known defects, and what was said about any of these.
The entry that prunes names what stays by the hash of its list; where a checkpoint has such entries, the digests of all
its lines stay too, so that its list still proves them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any, NamedTuple

from runguard.errors import StoreError
from runguard.evidence import checkpoints, lists
from runguard.evidence.pruning import Asked
from runguard.evidence.retention import Held
from runguard.instant import from_rfc3339, rfc3339
from runguard.store import bearings, items, lines, recoveries
from runguard.store.database import Transaction
from runguard.store.reads import Reader, Run
from runguard.store.removing import lifted


class Checkpoint(NamedTuple):
    """A checkpoint as the tables have it."""

    seq: int
    first_seq: int
    last_seq: int
    list_sha256: str


class Gone(NamedTuple):
    """An entry that goes, as far as its rows in the tables need it. `run_id` is "" where it is no start."""

    seq: int
    kind: str
    at: str
    run_id: str


class Old(NamedTuple):
    """What of the entries up to a checkpoint goes and what stays, checkpoints left out of both."""

    checkpoint: Checkpoint
    digests: bytes  # of all lines that the checkpoint names
    removed: tuple[Gone, ...]
    kept: tuple[tuple[int, str], ...]  # number and digest

    @property
    def starts(self) -> tuple[Gone, ...]:
        """The starts, refused or not, among what goes."""
        return tuple(gone for gone in self.removed if gone.kind in ("run.start", "run.refused"))


def old_checkpoints(reader: Reader, before_us: int) -> list[Checkpoint]:
    """Return the checkpoints all of whose entries were written before, oldest first. Raises StoreError."""
    return [Checkpoint(*row) for row in reader.rows("checkpoints_before", before_us=before_us)]


def to_look_at(reader: Reader, before_us: int) -> list[Checkpoint]:
    """Return those of them up to which entries are to be looked at, one after another: all that came since the last
    prune, or where there is none the newest, for what has been released since. Raises StoreError.
    """
    old, upto_seq = old_checkpoints(reader, before_us), pruned_upto(reader)
    return [each for each in old if each.last_seq > upto_seq] or old[-1:]


def pruned_upto(reader: Reader) -> int:
    """Return up to which entry the ledger was pruned, 0 for not at all. Raises StoreError."""
    return max((last for _, _, _, last, _ in reader.rows("pruned", what="entries")), default=0)


def foresee(reader: Reader, held: Held, before_us: int) -> Iterator[Old]:
    """Yield, for each checkpoint, what of its own entries would go: case text that is old enough counts as gone."""
    these = to_look_at(reader, before_us)
    for each in these:
        staying = _Staying(reader, held, before_us, these[-1].last_seq, text_goes=True)
        yield _judged(reader, staying, each, each.first_seq if len(these) > 1 else 1)


def look(reader: Reader, held: Held, before_us: int, checkpoint: Checkpoint) -> Old:
    """Return what goes of all entries up to a checkpoint.

    Raises StoreError where its entries are not those that the checkpoint names: nothing may be removed then.
    """
    staying = _Staying(reader, held, before_us, checkpoint.last_seq, text_goes=False)
    return _judged(reader, staying, checkpoint, 1)


def _judged(reader: Reader, staying: _Staying, checkpoint: Checkpoint, first_seq: int) -> Old:
    digests: list[bytes] = []
    removed, kept = [], []
    for seq, line in _lines(reader, first_seq, checkpoint.last_seq):
        digest = sha256(line)
        if seq >= checkpoint.first_seq:
            digests.append(digest.digest())
        entry = _parsed(reader, seq, line)
        if entry["kind"] == "checkpoint":
            continue
        if staying.stays(entry):
            kept.append((seq, digest.hexdigest()))
        else:
            removed.append(Gone(seq, entry["kind"], entry["at"], entry.get("run_id", "")))
    return Old(checkpoint, _whole(reader, checkpoint, b"".join(digests)), tuple(removed), tuple(kept))


def prune(tx: Transaction, asked: Asked, held: Held, old: Old, now_us: int) -> int:
    """Remove what was found in the same transaction; return the entry that says so. Raises StoreError."""
    checkpoint, kept = old.checkpoint, kept_sha256(old.kept)
    started_us = sorted(from_rfc3339(gone.at) for gone in old.starts)
    fields: dict[str, Any] = {
        "about": [
            {
                "since": rfc3339(started_us[0]) if started_us else None,
                "until": rfc3339(started_us[-1] + 1 if started_us else asked.before_us),
            }
        ],
        "what": "entries",
        "keep": asked.keep,
        "before": rfc3339(asked.before_us),
        "records": None,
        "rejected": 0,
        "entries": {
            "first": 1,
            "last": checkpoint.last_seq,
            "removed": len(old.removed),
            "kept": len(old.kept),
            "kept_sha256": kept,
        },
        "checkpoint": checkpoint.seq,
        "held": [hold.seq for hold in held.holds],
        "reason": asked.reason,
    }
    entry = tx.append("prune", now_us, fields)
    if old.digests and old.kept and old.kept[-1][0] >= checkpoint.first_seq:
        tx.send("keep_entry_list", {"seq": checkpoint.seq, "digests": old.digests})
    with lifted(tx, entry):
        for gone in old.removed:
            _remove(tx, gone)
    return entry.seq


def kept_sha256(kept: tuple[tuple[int, str], ...]) -> str | None:
    """Return the hash of the list of entries that stay, in the format of a checkpoint's list, or None for none."""
    if not kept:
        return None
    return sha256(b"".join(checkpoints.entry_list(seq, [digest]) for seq, digest in kept)).hexdigest()


def _lines(reader: Reader, first_seq: int, last_seq: int) -> Iterator[tuple[int, bytes]]:
    after = first_seq - 1
    while after < last_seq:
        page = reader.rows("lines_after", seq=after, page=1_000)
        yield from ((seq, line) for seq, line in page if seq <= last_seq)
        if not page:
            return
        after = page[-1][0]


def _parsed(reader: Reader, seq: int, line: bytes) -> dict[str, Any]:
    try:
        return lines.parse(line)
    except (ValueError, RecursionError) as error:
        raise _suspicious(reader, f"entry {seq} is damaged ({error})") from error


def _whole(reader: Reader, checkpoint: Checkpoint, digests: bytes) -> bytes:
    """Return the digests of all lines that a checkpoint names, held against its list."""
    for (kept,) in reader.rows("entry_list", seq=checkpoint.seq):
        digests = kept
    hexes = [digests[at : at + 32].hex() for at in range(0, len(digests), 32)]
    whole = len(hexes) == checkpoint.last_seq - checkpoint.first_seq + 1
    if whole and checkpoints.list_sha256(checkpoint.first_seq, hexes) == checkpoint.list_sha256:
        return digests
    named = recoveries.look(reader).within(checkpoint.first_seq, checkpoint.last_seq)
    if named is None and (whole or checkpoint.last_seq > pruned_upto(reader)):
        raise _suspicious(reader, f"the entries that checkpoint {checkpoint.seq} names are not those that are there")
    return b""  # pruned before, and nothing of it stayed; or lost with a damaged store, and a recovery says so


def _suspicious(reader: Reader, why: str) -> StoreError:
    return StoreError(
        reader.path, f"{why}: nothing is removed from a record that does not hold; runguard verify --full"
    )


def _remove(tx: Transaction, gone: Gone) -> None:
    """Remove one entry and its rows, the triggers lifted."""
    seq = gone.seq
    tx.send("delete_line", {"seq": seq})
    tx.send("delete_bearings", {"seq": seq})
    match gone.kind:
        case "run.start" | "run.refused":
            _remove_run(tx, seq, gone.run_id)
        case "window.waived":
            tx.send("delete_waiver", {"seq": seq})
        case "redact":
            tx.send("delete_erasure", {"seq": seq})
        case "prune":
            tx.send("delete_pruned", {"seq": seq})


def _remove_run(tx: Transaction, start_seq: int, run_id: str) -> None:
    tx.send("delete_output", {"run_id": run_id})
    tx.send("delete_pings", {"run_id": run_id})
    after, beyond = lists.bounds(start_seq)
    if tx.send("delete_item_run", {"start_seq": start_seq}):
        tx.send("delete_item_lists", {"after": after, "beyond": beyond})
        tx.send("delete_rejected", {"start_seq": start_seq})
    tx.send("delete_run", {"start_seq": start_seq})


class _Staying:
    """Tells of entries up to `upto_seq`, in ascending order, which of them stay."""

    def __init__(self, reader: Reader, held: Held, before_us: int, upto_seq: int, *, text_goes: bool) -> None:
        self._reader = reader
        self._held = held
        self._before_us = before_us
        self._upto_seq = upto_seq
        self._text_goes = text_goes
        self._runs: dict[str, bool] = {}
        self._starts: list[int] = []  # of runs that stay
        self._stayed: set[int] = set()
        self._ends = {said["hold"]: seq for seq, said in _releases(reader)}
        self._last = set(_last_runs(reader))
        self._held_starts = {lists.place(record.id)[0] for case in held.cases for record in items.of_case(reader, case)}

    def stays(self, entry: Mapping[str, Any]) -> bool:
        """Tell whether an entry that is no checkpoint stays."""
        seq = entry["seq"]
        stays = seq in self._held.entries or self._is_needed(seq, entry)
        if stays:
            self._stayed.add(seq)
        return stays

    def _is_needed(self, seq: int, entry: Mapping[str, Any]) -> bool:
        match entry["kind"]:
            case "run.start" | "run.refused" | "run.finish" | "items":
                return self._run(entry["run_id"])
            case "clock" | "restart" | "release":
                return False
            case "window.waived":
                return entry["until"] is not None and from_rfc3339(entry["until"]) >= self._before_us
            case "hold":
                return self._ends.get(seq, self._upto_seq + 1) > self._upto_seq
            case "access":
                return any(target.get("case") in self._held.cases for target in entry["about"])
            case "correction":
                return any(self._is_there(target) for target in entry["about"])
            case "redact":
                return any(self._run(each["run"]) for each in (*entry["records"], *entry["rejected"]))
            case "prune":
                return entry["what"] == "cases" and self._touches_what_stays(entry["records"])
        return True  # definitions, defects, and what a later version writes

    def _run(self, run_id: str) -> bool:
        if run_id not in self._runs:
            run = next((Run(*row) for row in self._reader.rows("run_by_id", run_id=run_id)), None)
            self._runs[run_id] = run is not None and self._run_stays(run)
            if run is not None and self._runs[run_id]:
                self._starts.append(run.start_seq)
        return self._runs[run_id]

    def _run_stays(self, run: Run) -> bool:
        last_seq = max(run.start_seq, run.finish_seq or 0, run.late_seq or 0)
        last_us = max(run.started_us, run.due_us or 0, run.covers_last_us or 0)
        if last_seq > self._upto_seq or last_us >= self._before_us or run.outcome == "running":
            return True
        if run.run_id in self._last or run.start_seq in self._held_starts or self._held.run(run) is not None:
            return True
        told = items.progress(self._reader, run.start_seq)
        if told is None:
            return False
        after, beyond = lists.bounds(run.start_seq)
        left = not self._text_goes and self._reader.rows("items_left", after=after, beyond=beyond)
        return not told.complete or bool(left)

    def _is_there(self, target: Mapping[str, Any]) -> bool:
        """Tell whether what a correction is about is still there."""
        if "run" in target:
            return self._run(target["run"])
        if "case" in target:
            return bool(items.of_case(self._reader, target["case"]))
        if "entry" in target:
            return target["entry"] in self._stayed or target["entry"] > self._upto_seq
        return True

    def _touches_what_stays(self, records: Mapping[str, Any]) -> bool:
        first, last = records["first"]["entry"], records["last"]["entry"]
        return last > self._upto_seq or any(first <= start_seq <= last for start_seq in self._starts)


def _releases(reader: Reader) -> Iterator[tuple[int, dict[str, Any]]]:
    for seq in bearings.of_kind(reader, "release"):
        for (line,) in reader.rows("line_at", seq=seq):
            yield seq, _parsed(reader, seq, line)


def _last_runs(reader: Reader) -> Iterator[str]:
    """Yield the runs that tell how each job stands, and the one with the highest number: it is not given again."""
    for row in reader.rows("last_run"):
        yield Run(*row).run_id
    for job in reader.jobs():
        for run in (reader.last_started(job), reader.last_ended(job)):
            if run is not None:
                yield run.run_id
        for _, run_id, *_ in reader.rows("last_successes", job=job, page=1):
            yield run_id

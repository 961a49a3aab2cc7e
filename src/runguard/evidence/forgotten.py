"""What a prune has left of the ledger's beginning, and whether that still is what was written.

Checkpoints are all there, and each names the one before. The other entries that stayed are proved by the list of their
checkpoint, whose digests stay as long as one of them does, and their whole list stands in the entry that pruned.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, NamedTuple

from runguard.evidence import checkpoints
from runguard.evidence.chain import Finding, raw
from runguard.store import recoveries
from runguard.store.database import ReadOnlyStore

_DIGEST = 32


class Pruned(NamedTuple):
    """The ledger begins after entry `upto_seq`, whose hash the checkpoint has kept; entry `seq` says so."""

    seq: int
    upto_seq: int
    upto_hash: str
    checkpoint_seq: int
    kept: int
    kept_sha256: str | None


def pruned(store: ReadOnlyStore) -> Pruned | None:
    """Return up to where the ledger was pruned, or None where it begins with entry 1. Raises StoreError."""
    rows = store.rows("pruned", what="entries")
    if not rows:
        return None
    seq, _, _, upto_seq, checkpoint_seq = max(rows, key=lambda row: (row[3], row[0]))
    told, checkpoint = _entry(store, seq), _entry(store, checkpoint_seq)
    try:
        entries = told["entries"]
        if (entries["last"], told["checkpoint"], checkpoint["last"]) != (upto_seq, checkpoint_seq, upto_seq):
            return None
        return Pruned(seq, upto_seq, checkpoint["head"], checkpoint_seq, entries["kept"], entries["kept_sha256"])
    except (KeyError, TypeError):
        return None  # then the chain says that its beginning is missing


class Rest:
    """What is there up to `pruned.upto_seq`: read one checkpoint's entries at a time; `findings` grows meanwhile."""

    def __init__(self, store: ReadOnlyStore, pruned: Pruned) -> None:
        self.findings: list[Finding] = []
        self._store = store
        self._pruned = pruned
        self._kept, self._count = sha256(), 0
        self._previous: dict[str, Any] | None = None
        self._lost = recoveries.look(store)

    def pages(self) -> Iterator[tuple[int, list[tuple[int, bytes]]]]:
        """Yield the lines that are proved, by checkpoint, with the last entry that it names."""
        upto_seq = 0
        for seq, first_seq, last_seq in self._store.rows("checkpoints_upto", seq=self._pruned.checkpoint_seq):
            told = self._checkpoint(seq)
            lost = self._lost.within(upto_seq + 1, first_seq - 1) is not None
            if lost:  # the checkpoint between them is: nothing names what is left there
                yield first_seq - 1, list(self._left(upto_seq + 1, first_seq - 1))
            follows = first_seq == upto_seq + 1 or lost
            if not follows or (told.get("first"), told.get("last")) != (first_seq, last_seq):
                self._find("checkpoint", seq, f"checkpoint {seq} does not follow on entry {upto_seq}, or is another")
            upto_seq = last_seq
            page = self._store.unjudged("lines_between", first_seq=first_seq, last_seq=last_seq)
            yield last_seq, list(self._proved(told, first_seq, [(number, raw(line)) for number, line in page]))
        if upto_seq != self._pruned.upto_seq:
            self._find("checkpoint", self._pruned.checkpoint_seq, f"no checkpoint names the entries after {upto_seq}")
        kept = (self._count, self._kept.hexdigest() if self._count else None)
        if kept != (self._pruned.kept, self._pruned.kept_sha256):
            text = f"of the {self._pruned.kept} entries that entry {self._pruned.seq} left, {self._count} are there"
            self._find("chain", self._pruned.seq, f"{text}, or they were changed")

    def _left(self, first_seq: int, last_seq: int) -> Iterator[tuple[int, bytes]]:
        """Yield the lines that are there, unproven."""
        for seq, line in self._store.unjudged("lines_between", first_seq=first_seq, last_seq=last_seq):
            self._count_kept(seq, raw(line), sha256(raw(line)).hexdigest())
            yield seq, raw(line)

    def _count_kept(self, seq: int, line: bytes, hex: str) -> bool:
        """Count what a prune has kept; returns whether it is a checkpoint, which is always kept."""
        is_checkpoint = b'"kind":"checkpoint"' in line[:200]
        if not is_checkpoint:
            self._kept.update(checkpoints.entry_list(seq, [hex]))
            self._count += 1
        return is_checkpoint

    def _checkpoint(self, seq: int) -> dict[str, Any]:
        """Return what a checkpoint says, judged by the one before it, or nothing."""
        for (line,) in self._store.unjudged("line_at", seq=seq):
            try:
                told: dict[str, Any] = json.loads(line)
                if told["kind"] == "checkpoint" and self._is_next(told["previous"]):
                    self._previous = {"seq": seq, "sha256": sha256(raw(line)).hexdigest()}
                    return told
            except (ValueError, KeyError, TypeError):
                break
            self._find("checkpoint", seq, f"checkpoint {seq} does not name the one before it")
            self._previous = {"seq": seq, "sha256": sha256(raw(line)).hexdigest()}
            return told
        self._find("checkpoint", seq, f"checkpoint {seq} is missing or cannot be read: checkpoints are never removed")
        return {}

    def _is_next(self, previous: dict[str, Any] | None) -> bool:
        """Tell whether that is the checkpoint before, or one that a recovery has named as lost."""
        if previous == self._previous:
            return True
        return previous is not None and self._lost.within(previous["seq"], previous["seq"]) is not None

    def _proved(
        self, told: dict[str, Any], first_seq: int, page: list[tuple[int, bytes]]
    ) -> Iterator[tuple[int, bytes]]:
        """Yield the lines that the list of their checkpoint names."""
        size = told.get("count", 0)
        hexes = [sha256(raw(line)).hexdigest() for _, line in page]
        listed = hexes if len(page) == size else self._list(told.get("seq", 0))
        if listed is not None and checkpoints.list_sha256(first_seq, listed) != told.get("list_sha256"):
            self._find("checkpoint", told.get("seq"), f"the list of checkpoint {told.get('seq')} is another: changed")
            listed = None
        for (seq, line), hex in zip(page, hexes, strict=True):
            is_checkpoint = self._count_kept(seq, line, hex)  # the one after it names it
            lost = listed is None and self._lost.within(first_seq, first_seq + size - 1) is not None
            if lost or (listed is None and is_checkpoint) or (listed is not None and listed[seq - first_seq] == hex):
                yield seq, line
            else:
                self._find("chain", seq, f"entry {seq} is not what its checkpoint names: changed after it was written")

    def _list(self, checkpoint_seq: int) -> list[str] | None:
        for (digests,) in self._store.unjudged("entry_list", seq=checkpoint_seq):
            return [digests[at : at + _DIGEST].hex() for at in range(0, len(digests), _DIGEST)]
        return None

    def _find(self, what: str, seq: int | None, text: str) -> None:
        self.findings.append(Finding(what, seq, text))


def _entry(store: ReadOnlyStore, seq: int) -> dict[str, Any]:
    for (line,) in store.unjudged("line_at", seq=seq):
        try:
            found: dict[str, Any] = json.loads(line)
        except ValueError:
            break
        return found
    return {}

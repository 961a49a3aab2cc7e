"""Whether the ledger is what was written: its chain, line by line, and the lists of its checkpoints.

A line is looked at as bytes: it begins with its own number and the SHA-256 of the line before, at fixed places.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any, NamedTuple

from runguard.evidence.checkpoints import list_sha256
from runguard.store.lines import FIRST_PREV

PAGE = 2_000


class Finding(NamedTuple):
    """Something that is not as it was written; `seq` is the entry where it shows, None where it is no entry's."""

    what: str  # chain checkpoint signature witness anchor index output records file windows
    seq: int | None
    text: str


def raw(value: object) -> bytes:
    """Return what stands in the place of a line: in a spoilt file that may be no bytes at all."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogateescape")


class Line(NamedTuple):
    """One line of the ledger as it is found."""

    seq: int
    line: bytes
    hash: str


def _no_gap(_first: int, _last: int) -> bool:
    return False


class Chain:
    """The lines in order; `follow` tells what is wrong with each, and goes on with the next."""

    def __init__(
        self, after_seq: int = 0, after_hash: str = FIRST_PREV, named_gap: Callable[[int, int], bool] = _no_gap
    ) -> None:
        """Begin after an entry; `named_gap` tells whether entries, first to last, are missing and that is known."""
        self._named_gap = named_gap
        self.seq = after_seq
        self.hash = after_hash
        self.entries = 0
        self.checkpoints = 0
        self._since: int | None = after_seq + 1  # first entry of `_digests`; None: not known any more
        self._digests: list[str] = []
        self._previous: tuple[int, str] | None = None  # seq and hash of the checkpoint before, once there was one
        self._seen_previous = after_seq == 0

    def follow(self, seq: int, line: bytes) -> Iterator[Finding]:
        """Yield what is wrong with the line `seq`, which follows on the last one."""
        if seq != self.seq + 1:
            missing = f"entry {self.seq + 1} is" if seq == self.seq + 2 else f"entries {self.seq + 1} to {seq - 1} are"
            if not self._named_gap(self.seq + 1, seq - 1):
                yield Finding("chain", self.seq + 1, f"{missing} missing: deleted after they were written")
            self._since, self._digests = seq, []
            self._seen_previous = False
        elif not line.startswith(b'{"v":1,"seq":%d,"prev":"%s",' % (seq, self.hash.encode())):
            yield Finding("chain", seq, _broken(seq, line))
        self.seq, self.hash = seq, sha256(line).hexdigest()
        self.entries += 1
        if b'"kind":"checkpoint"' in line[:200]:
            yield from self._judge_checkpoint(seq, line)
        self._digests.append(self.hash)

    def _judge_checkpoint(self, seq: int, line: bytes) -> Iterator[Finding]:
        """Compare a checkpoint with the lines that it names, as far as they were seen."""
        self.checkpoints += 1
        try:
            told: dict[str, Any] = json.loads(line)
            first, last = int(told["first"]), int(told["last"])
            named = self._named(first, last)
            if named is not None and (len(named), named[-1:], list_sha256(first, named)) != (
                told["count"], [told["head"]], told["list_sha256"],
            ):  # fmt: skip
                yield Finding("checkpoint", seq, f"checkpoint {seq} names the entries {first} to {last} otherwise")
            previous = told["previous"]
            before = (previous["seq"], previous["sha256"]) if previous else None
            if self._seen_previous and before != self._previous:
                yield Finding("checkpoint", seq, f"checkpoint {seq} does not name the one before it")
            if self._since is not None and last + 1 >= self._since:
                self._digests = self._digests[last + 1 - self._since :]
                self._since = last + 1
        except (ValueError, KeyError, TypeError, IndexError):
            yield Finding("checkpoint", seq, f"checkpoint {seq} cannot be read as one")
        self._previous, self._seen_previous = (seq, self.hash), True

    def _named(self, first: int, last: int) -> list[str] | None:
        """Return the digests of these entries, None where not all of them were seen."""
        if self._since is None or first < self._since or not first <= last <= self.seq:
            return None if self._since is None or first < self._since else []
        return self._digests[first - self._since : last + 1 - self._since]


def _broken(seq: int, line: bytes) -> str:
    """Return in words how a line does not continue the one before it."""
    said = line[len(b'{"v":1,"seq":') :].partition(b",")[0]
    if line.startswith(b'{"v":1,"seq":') and said.isdigit() and int(said) != seq:
        return f"in the place of entry {seq} stands one that says it is {int(said)}: moved or put in"
    if not line.startswith(b'{"v":1,"seq":%d,"prev":"' % seq):
        return f"entry {seq} is no line of the ledger: changed after it was written"
    return f"entry {seq} does not continue entry {seq - 1}: one of the two was changed after it was written"

"""What recoveries of a damaged store have named as lost: where the ledger has a break that is known.

An entry `recovery` is the first of a new ledger, which goes on with the numbers of the old one. What was salvaged of
that stands before it, under its own numbers; what was not is named here and is no finding any more.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from runguard import instant
from runguard.errors import StoreError
from runguard.store import bearings
from runguard.store.reads import Reader

UNWITNESSED = "as far as can be told without a witness"  # nobody else knows how far the ledger went


class Recovery(NamedTuple):
    """One recovery."""

    seq: int
    at: str
    who: str
    why: str  # what was wrong with the store
    reason: str
    head: tuple[int, str] | None  # of the ledger before, as the witness knew it: entry and SHA-256 of its line
    lost: tuple[tuple[int, int], ...]  # entries, from first to last
    listed: tuple[tuple[int, int], ...]  # entries, from first to last, that no checkpoint proves any more
    list_sha256: str | None  # of the list of these
    unproven: tuple[int, ...]  # entries that stayed, and that no line names because the next one is lost
    findings: frozenset[tuple[str, int]]  # what else a verification has found then: kind and entry
    incomplete: frozenset[str]  # runs whose case entries or lists are not whole
    spans: tuple[tuple[int | None, int | None], ...]  # instants around each of `lost`; None where nothing is known

    @classmethod
    def of_gaps(cls, lost: Sequence[tuple[int, int]]) -> Recovery:
        """Return a recovery that names nothing but lost entries: one that is about to be recorded."""
        return cls(0, "", "", "", "", None, tuple(lost), (), None, (), frozenset(), frozenset(), ())

    def sentence(self) -> str:
        """Return what it has to tell, for a person."""
        return f"recovered by entry {self.seq} on {self.at} ({self.who}: {self.reason}): {self.loss()}; {self.why}"

    def loss(self) -> str:
        """Return what was lost, in words."""
        parts = [f"{in_words(self.lost)} lost"] if self.lost else ["no entry was lost"]
        if self.head is None:
            parts.append(UNWITNESSED)
        if self.unproven:
            parts.append(f"{in_words([(seq, seq) for seq in self.unproven])} not proven")
        if self.incomplete:
            count = len(self.incomplete)
            parts.append(f"case entries of {count} run{'s' if count > 1 else ''} not whole")
        return ", ".join(parts)


class Recoveries:
    """All recoveries of a store, by entry."""

    def __init__(self, found: list[Recovery]) -> None:
        self.found = tuple(found)
        self._findings = frozenset(finding for each in found for finding in each.findings)
        self.incomplete = frozenset(run for each in found for run in each.incomplete)

    def losses(self) -> Iterator[tuple[int, str]]:
        """Yield the entry of each recovery that lost something, and what."""
        return ((each.seq, each.loss()) for each in self.found if each.lost or each.unproven or each.incomplete)

    def names(self, what: str, seq: int | None) -> bool:
        """Tell whether a finding about an entry was there when a recovery was made, and is named by it."""
        return seq is not None and (what, seq) in self._findings

    def knows(self, seq: int, hash: str) -> bool:
        """Tell whether a recovery has named this entry as the head of the ledger that it replaced."""
        return any(each.head == (seq, hash) for each in self.found)

    def name_gap(self, first: int, last: int) -> bool:
        """Tell whether all of the entries from `first` to `last` are named as lost."""
        for begun, ended in sorted(span for each in self.found for span in each.lost):
            if begun <= first <= ended:
                first = ended + 1
        return first > last

    def within(self, first: int, last: int) -> int | None:
        """Return the recovery that has named an entry from `first` to `last` as lost, or None."""
        found = (each.seq for each in self.found for span in each.lost if span[0] <= last and first <= span[1])
        return next(found, None)

    def over(self, due_us: int) -> str:
        """Return, as a clause, that the record of an instant may be lost, or ""."""
        for each in self.found:
            for (since_us, until_us), lost in zip(each.spans, each.lost, strict=False):
                end_us = instant.from_rfc3339(each.at) if until_us is None else until_us
                if (since_us is None or since_us <= due_us) and due_us <= end_us:
                    return f"{in_words([lost])} of that time are lost (recovery {each.seq})"
        return ""

    def until_us(self) -> int | None:
        """Return up to when records may be lost, or None where none are."""
        ends = [span[1] or instant.from_rfc3339(each.at) for each in self.found for span in each.spans]
        return max(ends, default=None)


def read(store: Reader) -> Recoveries:
    """Return the recoveries that the ledger tells of. Raises StoreError."""
    return Recoveries([each for seq in bearings.of_kind(store, "recovery") for each in _of_entry(store, seq)])


def look(store: Reader) -> Recoveries:
    """Return the same; none where a store of an older schema knows of none."""
    try:
        return read(store)
    except StoreError:
        return Recoveries([])


def _of_entry(store: Reader, seq: int) -> Iterator[Recovery]:
    """Yield the recovery, or nothing where its line was touched: then it names nothing any more."""
    for (line,) in store.rows("line_at", seq=seq):
        try:
            told = json.loads(line)
            actor = told["actor"]
            yield Recovery(
                seq=seq,
                at=told["at"],
                who=str(actor.get("login") or actor.get("user") or actor.get("uid")),
                why=told["why"],
                reason=told["reason"],
                head=(told["head"]["seq"], told["head"]["sha256"]) if told["head"] else None,
                lost=tuple((int(first), int(last)) for first, last in told["lost"]),
                listed=tuple((int(first), int(last)) for first, last in told["listed"]),
                list_sha256=told["list_sha256"],
                unproven=tuple(int(each) for each in told["unproven"]),
                findings=frozenset((str(what), int(at)) for what, at in told["findings"]),
                incomplete=frozenset(told["incomplete"]),
                spans=tuple((_us(each["since"]), _us(each["until"])) for each in told["about"] if "since" in each),
            )
        except (ValueError, KeyError, TypeError, AttributeError):
            continue


def _us(text: str | None) -> int | None:
    return None if text is None else instant.from_rfc3339(text)


def in_words(lost: Sequence[tuple[int, int]]) -> str:
    """Return spans of entries: `entry 3`, `entries 3, 5 to 9 and 12`."""
    spans = [f"{first} to {last}" if first < last else str(first) for first, last in lost]
    entries = "entry" if len(lost) == 1 and lost[0][0] == lost[0][1] else "entries"
    return f"{entries} {_joined(spans)}"


def _joined(spans: list[str]) -> str:
    return spans[0] if len(spans) == 1 else ", ".join(spans[:-1]) + f" and {spans[-1]}"

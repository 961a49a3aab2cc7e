"""What the case entries of a run come to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple


class Tally(NamedTuple):
    """The entries of one run, counted."""

    entries: int = 0  # records: intents, results and notes
    cases: int = 0  # different ones with an intent or a result
    done: int = 0  # results, by what they say
    no_action: int = 0
    failed: int = 0
    skipped: int = 0
    uncertain: int = 0  # cases with an intent and no result for it
    unannounced: int = 0  # results, done or failed, without an intent
    rejected: int = 0  # lines
    expected: int | None = None  # cases, as the job said first
    list_sha256: str | None = None  # of the run list; None without entries
    rejected_sha256: str | None = None  # of the reject list; None without rejected lines
    bytes: int = 0  # of the file, as far as it is on record
    beyond_bytes: int = 0  # of the file, over a limit: kept beside, not on record
    pending_bytes: int = 0  # of the file, not on record yet
    removed: bool = False  # the command removed or replaced the file before anything of it was on record

    def fields(self) -> dict[str, Any]:
        """Return the tally as the ledger tells it."""
        return self._asdict()

    @property
    def accounted(self) -> int:
        """How many cases have a result, or said that nothing is open."""
        return self.cases - self.uncertain

    def sentence(self) -> str:
        """Return what was accounted for: `5,998 of 6,000 cases accounted for`."""
        total = self.cases if self.expected is None else self.expected
        return f"{self.accounted:,} of {total:,} case{'s' * (total != 1)} accounted for"

    def flaws(self) -> Iterator[str]:
        """Yield, each as a clause, what keeps the run from being clean."""
        if self.expected is not None and self.cases != self.expected:
            yield f"{self.cases:,} of {self.expected:,} expected cases were reached"
        if self.uncertain:
            yield f"{_count(self.uncertain, 'case')} uncertain"
        if self.failed:
            yield f"{self.failed:,} failed"
        if self.unannounced:
            yield f"{_count(self.unannounced, 'result')} without an intent"
        if self.rejected:
            yield f"{_count(self.rejected, 'line')} rejected"
        if self.beyond_bytes:
            yield f"{self.beyond_bytes:,} bytes over the limit are not on record"
        if self.removed:
            yield "the command removed or replaced the file of its case entries"
        if self.pending_bytes:
            are = "byte is" if self.pending_bytes == 1 else "bytes are"
            yield f"{self.pending_bytes:,} {are} not on record yet"

    def verdict(self) -> str | None:
        """Return why the run is no clean success, as one clause, or None."""
        flaws = ", ".join(self.flaws())
        return f"{self.sentence()}: {flaws}" if flaws else None


def of_fields(fields: dict[str, Any]) -> Tally:
    """Return the tally that `fields` told; what a later version added is passed over."""
    return Tally(**{name: fields[name] for name in Tally._fields if name in fields})


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"

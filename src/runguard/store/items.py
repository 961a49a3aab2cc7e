"""Case entries as they are on record: what can be asked of them. Everything is read in pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typing import Any

    from runguard.store.reads import Reader

PAGE = 500


class Record(NamedTuple):
    """One case entry. `id` numbers it across all runs (evidence.lists.place), `line` is its record line."""

    id: int
    case: str
    said: str  # of evidence.entries.SAID
    file_offset: int
    received_us: int
    line: bytes


class Reject(NamedTuple):
    """A piece of a run's file that is no entry."""

    file_offset: int
    size_bytes: int
    lines: int
    sha256: str  # of all its bytes
    head: bytes
    why: str
    received_us: int


class Open(NamedTuple):
    """An intent without a result: `key` is "" where the entry has none."""

    case: str
    key: str
    id: int


class Progress(NamedTuple):
    """How far the file of a run is on record, and what its entries come to so far; see the migration."""

    start_seq: int
    file_offset: int = 0
    shift: int = 0
    entries: int = 0
    cases: int = 0
    done: int = 0
    no_action: int = 0
    failed: int = 0
    skipped: int = 0
    unannounced: int = 0
    rejected: int = 0
    expected: int | None = None
    beyond_bytes: int = 0
    told: int = 0
    complete: int = 0


def progress(reader: Reader, start_seq: int) -> Progress | None:
    """Return how far the run's file is on record, or None where nothing of it is."""
    for row in reader.rows("item_run", start_seq=start_seq):
        return Progress(*row)
    return None


def records(reader: Reader, after: int, beyond: int) -> Iterator[Record]:
    """Yield the entries whose ids lie between `after` and `beyond`, both excluded, in order."""
    for row in _paged(reader, "items", after, beyond=beyond):
        yield Record(*row)


def words(reader: Reader, after: int, beyond: int) -> Iterator[tuple[str, str]]:
    """Yield case and said of the entries whose ids lie between `after` and `beyond`, both excluded, in order."""
    for _, case, said in _paged(reader, "item_words", after, beyond=beyond):
        yield case, said


def of_case(reader: Reader, case: str) -> list[Record]:
    """Return every entry about a case, over all runs, in order."""
    return [Record(*row) for row in reader.rows("items_of_case", case_id=case)]


def rejects(reader: Reader, start_seq: int) -> Iterator[Reject]:
    """Yield the rejected pieces of a run, in order."""
    for row in _paged(reader, "items_rejected", -1, start_seq=start_seq):
        yield Reject(*row)


def still_open(reader: Reader, start_seq: int, limit: int = 1_000_000_000) -> list[Open]:
    """Return the intents of a run without a result, by case, at most `limit`."""
    return [Open(*row) for row in reader.rows("items_open", start_seq=start_seq, limit=limit)]


def uncertain_cases(reader: Reader, start_seq: int) -> int:
    """Return how many cases of a run have an intent without a result."""
    return int(reader.rows("items_open_count", start_seq=start_seq)[0][1])


def digests(reader: Reader, after: int, beyond: int) -> Iterator[bytes]:
    """Yield the digests of record lines that are on record, in order, by ids as `records` does."""
    return (found for _, found in pieces(reader, after, beyond))


def pieces(reader: Reader, after: int, beyond: int) -> Iterator[tuple[int, bytes]]:
    """Yield the same, each with the id of the record that its first digest is of."""
    yield from _paged(reader, "item_lists", after, beyond=beyond)


def _paged(reader: Reader, name: str, after: int, **fixed: int) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a statement that gives a page of them, by their first column, beyond `after`."""
    while True:
        page = reader.rows(name, after=after, page=PAGE, **fixed)
        yield from page
        if len(page) < PAGE:
            return
        after = page[-1][0]

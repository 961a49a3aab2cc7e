r"""Record lines, and the two levels of lists that name them by their hashes. Byte for byte:

    record line   {"v":1,"run":"UUID","seq":N,"salt":"32 hex digits","item":ITEM}\n
    group list    of at most 100 records of one run:   SHA-256 of each record line, two spaces, its seq (7 digits), \n
    run list      of all groups of one run:            SHA-256 of each group list, two spaces, g and its number (5), \n
    reject list   of all rejected pieces of one run:   SHA-256 of each piece, two spaces, x and its offset (10), \n

ITEM is the job's line exactly, without its newline. `seq` counts the records of a run from 1, in the order of its file;
group G holds the records 100 * G - 99 to 100 * G. The lists are in the format of sha256sum(1), without a path: in a
directory with the record lines as files `0000001`, `0000002`, …, `sha256sum -c` checks a group list, and in one with
the group lists as files `g00001`, … a run list.

The hash of the run list stands in the ledger: in `run.finish`, or where the file could only be read later in a last
`items`, and in an `items` every 1,000 entries or 5 s while the run lives. A list "as of n entries" is that of the first
n records alone, so its last group may be shorter. The salt keeps others from guessing records from their hashes.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

VERSION = 1
SALT_BYTES = 16
GROUP = 100  # records of a group
DIGEST_BYTES = 32
MOST_ENTRIES = 2_000_000  # of one run
MOST_BYTES = 1 << 30  # of the file of one run

# A record is numbered across all runs by the entry of its run's start and its place in the run.
_SEQ_BITS = 21
_SEQ_MASK = (1 << _SEQ_BITS) - 1

_ITEM = b',"item":'


def record_line(run_id: str, seq: int, salt: str, item: bytes) -> bytes:
    """Return the record line of a job's line `item`, which has no newline."""
    return b'{"v":1,"run":"%s","seq":%d,"salt":"%s","item":%s}\n' % (run_id.encode(), seq, salt.encode(), item)


def item_of(line: bytes) -> bytes:
    """Return the job's bytes in a record line. Raises ValueError where it is none."""
    head, mark, tail = line.partition(_ITEM)
    if not mark or not head.startswith(b'{"v":1,') or not tail.endswith(b"}\n"):
        raise ValueError("it is no record line")
    return tail[:-2]


def number(start_seq: int, seq: int) -> int:
    """Return the number, in its table, of record `seq` of the run that entry `start_seq` of the ledger started."""
    return start_seq << _SEQ_BITS | seq


def bounds(start_seq: int) -> tuple[int, int]:
    """Return numbers between which, both excluded, those of all records of a run lie."""
    return number(start_seq, 0), number(start_seq + 1, 0)


def place(number: int) -> tuple[int, int]:
    """Return the entry of the run's start and the record's `seq`, from its number."""
    return number >> _SEQ_BITS, number & _SEQ_MASK


def group_list(first_seq: int, digests: bytes) -> bytes:
    """Return the list of a group whose first record is `first_seq`; `digests` are the SHA-256 of its record lines."""
    each = range(0, len(digests), DIGEST_BYTES)
    return b"".join(
        b"%s  %07d\n" % (digests[at : at + DIGEST_BYTES].hex().encode(), first_seq + n) for n, at in enumerate(each)
    )


def group_line(first_seq: int, digests: bytes) -> bytes:
    """Return the line of the run list that names that group."""
    digest = sha256(group_list(first_seq, digests)).hexdigest()
    return b"%s  g%05d\n" % (digest.encode(), (first_seq - 1) // GROUP + 1)


def reject_list(pieces: Iterable[tuple[str, int]]) -> bytes:
    """Return the list of rejected pieces, each with its SHA-256 in hex and its offset, by offset."""
    return b"".join(b"%s  x%010d\n" % (digest.encode(), offset) for digest, offset in pieces)


class RunList:
    """The run list as it grows: `entries` records so far, in memory for one group.

    What is put on record of it are pieces: the number of a first record, and the digests of that and the next ones, of
    one group at most.
    """

    def __init__(self) -> None:
        self.entries = 0
        self._hash = sha256()  # of the lines of all complete groups
        self._open = b""  # digests of the group that is not complete
        self._stored = 0  # records whose digests are on record

    def copy(self) -> RunList:
        """Return a list that grows by itself from here."""
        other = RunList()
        other.entries, other._stored = self.entries, self._stored
        other._hash, other._open = self._hash.copy(), self._open
        return other

    def resume(self, pieces: Iterable[bytes]) -> None:
        """Take up the digests that are on record, in order."""
        for digests in pieces:
            self._add(digests)
            self._stored = self.entries

    def extend(self, lines: Iterable[bytes]) -> list[tuple[int, bytes]]:
        """Add record lines; return the pieces that complete their groups."""
        return self._add(b"".join(sha256(line).digest() for line in lines))

    def rest(self) -> tuple[int, bytes] | None:
        """Return the piece of the group that is not complete, or None where all is on record; it is, from now on."""
        if self._stored == self.entries:
            return None
        piece = self._piece(self._open)
        self._stored = self.entries
        return piece

    def sha256(self) -> str | None:
        """Return the hash of the run list as of now, in hex; None while there is no record."""
        if not self.entries:
            return None
        hash = self._hash.copy()
        if self._open:
            hash.update(group_line(self._first_seq(), self._open))
        return hash.hexdigest()

    def _add(self, digests: bytes) -> list[tuple[int, bytes]]:
        pieces = []
        size = GROUP * DIGEST_BYTES
        joined = self._open + digests
        first_seq = self._first_seq()
        self.entries += len(digests) // DIGEST_BYTES
        while len(joined) >= size:
            group, joined = joined[:size], joined[size:]
            self._hash.update(group_line(first_seq, group))
            skipped = max(self._stored + 1 - first_seq, 0)
            pieces.append((first_seq + skipped, group[skipped * DIGEST_BYTES :]))
            first_seq += GROUP
            self._stored = first_seq - 1
        self._open = joined
        return pieces

    def _piece(self, digests: bytes) -> tuple[int, bytes]:
        first_seq = self._first_seq()
        skipped = max(self._stored + 1 - first_seq, 0)
        return first_seq + skipped, digests[skipped * DIGEST_BYTES :]

    def _first_seq(self) -> int:
        """Return the first record of the group that is not complete."""
        return self.entries // GROUP * GROUP + 1

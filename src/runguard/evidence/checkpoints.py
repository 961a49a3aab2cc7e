r"""Checkpoints: entries of the ledger that name all entries since the one before, daily and every 10,000 entries.

A checkpoint's list, in the format of sha256sum(1), byte for byte:

    entry list    of the entries `first` to `last`:   SHA-256 of each line, two spaces, e and its seq (10 digits), \n

Its SHA-256 stands in the checkpoint, beside `head`, the SHA-256 of the line `last`, and `previous`, the seq and the
SHA-256 of the checkpoint before; `previous_signed` says whether that was signed by then. That one is made even when
nothing else happened is what proves an absence.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

from runguard.record import NamedTuple
from runguard.store.lines import CHECKPOINT_ENTRIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runguard.store.database import Transaction
    from runguard.store.reads import Reader

_PAGE = 1_000


class Made(NamedTuple):
    """A checkpoint as it stands in the ledger."""

    seq: int
    line: bytes


def make(tx: Transaction, now_us: int, upto_seq: int = 0) -> list[Made]:
    """Append what checkpoints are due: several where many entries came since the last. Raises StoreError.

    Also where none is due, until one names the entry `upto_seq`.
    """
    made: list[Made] = []
    while (head := tx.head()) is not None:
        ((after_seq, _),) = tx.store.rows("checkpointed")
        if after_seq >= min(upto_seq, head.seq) and not tx.store.wants_checkpoint(head.seq, now_us):
            break
        first_seq, digests = _following(tx.store, after_seq)
        previous = [(seq, sha256(line).hexdigest()) for seq, line in tx.store.rows("last_checkpoint")]
        signed = [tx.store.rows("signature", seq=seq) for seq, _ in previous]
        fields = {
            "first": first_seq,
            "last": first_seq + len(digests) - 1,
            "count": len(digests),
            "head": digests[-1],
            "list_sha256": list_sha256(first_seq, digests),
            "previous": dict(zip(("seq", "sha256"), previous[0], strict=True)) if previous else None,
            "previous_signed": any(signed),
        }
        appended = tx.append("checkpoint", now_us, fields)
        made += [Made(appended.seq, line) for (line,) in tx.store.rows("line_at", seq=appended.seq)]
    return made


def entry_list(first_seq: int, digests: Iterable[str]) -> bytes:
    """Return the list of entries from `first_seq` on, by the SHA-256 of their lines in hex."""
    return "".join(f"{digest}  e{first_seq + n:010d}\n" for n, digest in enumerate(digests)).encode("ascii")


def list_sha256(first_seq: int, digests: Iterable[str]) -> str:
    """Return the SHA-256 of that list, in hex."""
    return sha256(entry_list(first_seq, digests)).hexdigest()


def _following(store: Reader, after_seq: int) -> tuple[int, list[str]]:
    """Return the first entry after another, and the hashes of that and of those that follow one another after it.

    A checkpoint has no gap: where a recovery has left one, the next begins behind it.
    """
    first_seq, found = 0, list[str]()
    seq = after_seq
    while len(found) < CHECKPOINT_ENTRIES:
        page = store.rows("lines_after", seq=seq, page=min(_PAGE, CHECKPOINT_ENTRIES - len(found)))
        for seq, line in page:
            first_seq = first_seq or seq
            if seq != first_seq + len(found):
                return first_seq, found
            found.append(sha256(line).hexdigest())
        if not page:
            break
    return first_seq, found

"""Removing what is otherwise never removed: for one entry of the ledger, in its transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from runguard.store.database import Appended, Transaction


@contextmanager
def lifted(tx: Transaction, entry: Appended) -> Iterator[None]:
    """Lift the triggers of ledger and case entries for `entry`, the last one, until the block ends. Raises StoreError.

    The block appends nothing. Whatever happens in it, they are back with the end of the transaction.
    """
    tx.send("lift", {"seq": entry.seq})
    yield
    tx.send("lower", {})

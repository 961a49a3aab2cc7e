"""Writing to the store beside any run: what a person or the configuration says, in one transaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from runguard.guard import host
from runguard.paths import Places
from runguard.store.database import Transaction
from runguard.store.journal import Journal
from runguard.store.sqlite import WAIT_S, open_store


@contextmanager
def writing(
    environ: Mapping[str, str], places: Places, *, create: bool, wait_s: float = WAIT_S
) -> Iterator[Transaction]:
    """Give a transaction on the store; it is undone where the block raises. Raises StoreError, UnsafeError.

    The journal is brought over first: what was started before must not come later in the ledger.
    """
    author = host.author(environ)
    journal = Journal(places.state, author)
    witness = places.witness
    with open_store(places.store, author=author, create=create, witness_directory=witness, wait_s=wait_s) as opened:
        with opened.write() as tx:
            reconciled = journal.reconcile(tx)
            yield tx
        journal.clear(reconciled)

"""Writing to the store beside any run: what a person or the configuration says, in one transaction."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from runguard import __version__
from runguard.guard import host
from runguard.store.database import Transaction
from runguard.store.journal import Journal
from runguard.store.lines import Author
from runguard.store.sqlite import open_store


def author(environ: Mapping[str, str]) -> Author:
    """Return who is behind this process, as entries of the ledger name them."""
    return Author(host.name(), host.actor(dict(environ))._asdict(), __version__)


@contextmanager
def writing(environ: Mapping[str, str], state: str, store: str, *, create: bool) -> Iterator[Transaction]:
    """Give a transaction on the store at `store`; it is undone where the block raises. Raises StoreError, UnsafeError.

    The journal is brought over first: what was started before must not come later in the ledger.
    """
    who = author(environ)
    journal = Journal(state, who)
    with open_store(store, author=who, create=create, witness_directory=os.path.join(state, "witness")) as opened:
        with opened.write() as tx:
            reconciled = journal.reconcile(tx)
            yield tx
        journal.clear(reconciled)

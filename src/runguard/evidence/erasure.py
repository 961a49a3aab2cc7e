"""What a redact entry calls the case that it is about: the id is not to be read from it, and yet to be found by it.

HMAC-SHA256 of the id under a secret of this one entry, which stands outside of the ledger and is never exported.
Whoever holds lines of the ledger cannot try ids against them; whoever has the store can.
"""

from __future__ import annotations

import hmac
import os
from hashlib import sha256

from runguard.store import items
from runguard.store.database import Transaction
from runguard.store.reads import Reader

SECRET_BYTES = 32


def new_secret() -> bytes:
    """Return the secret of a redact entry to come."""
    return os.urandom(SECRET_BYTES)


def spelled(secret: bytes, case: str) -> str:
    """Return what the entry with this secret calls the case, in hex."""
    return hmac.new(secret, case.encode(), sha256).hexdigest()


def keep(tx: Transaction, seq: int, secret: bytes) -> None:
    """Keep the secret of the entry `seq`, in the transaction that appends it. Raises StoreError."""
    tx.send("insert_erasure", {"seq": seq, "secret": secret})


def names_of(reader: Reader, case: str) -> dict[int, str]:
    """Return the redact entries that are about a case, ascending, each with what it calls it. Raises StoreError."""
    names = ((seq, spelled(secret, case)) for seq, secret in reader.rows("erasures"))
    return {seq: name for seq, name in names if reader.rows("bearing_at", about="erased", which=name, seq=seq)}


def target_of(reader: Reader, case: str) -> dict[str, str]:
    """Return the case as an entry is to name it: a redacted case of which nothing is left is never spelled again."""
    names = names_of(reader, case)
    if not names or items.of_case(reader, case):
        return {"case": case}
    return {"erased": names[max(names)]}

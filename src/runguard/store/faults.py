"""What went wrong with a store, in words: imported when something did."""

from __future__ import annotations

import _sqlite3
import os

from runguard.errors import StoreError, reason
from runguard.store import writelock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runguard.store.witness import Seen, Witness

# SQLite's primary result codes: https://www.sqlite.org/rescode.html
_BUSY, _LOCKED, _READONLY, _IOERR, _CORRUPT, _FULL, _CANTOPEN, _NOTADB = 5, 6, 8, 10, 11, 13, 14, 26
_READONLY_RECOVERY, _READONLY_ROLLBACK = 264, 776
_RECOVER = "or: runguard doctor --recover --reason TEXT"
_CONVERTED = f"nothing was repaired; restore a copy, {_RECOVER}"
_PUT_BACK = f"put the right file back, {_RECOVER}"


def failed(path: str, error: Exception) -> StoreError:
    """Return the StoreError that says in plain words why SQLite could not do what was asked."""
    if isinstance(error, UnicodeDecodeError):
        return StoreError(path, f"the file is corrupt ({error}); {_CONVERTED}")
    if isinstance(error, (OSError, MemoryError)):
        return StoreError(path, reason(error))
    code = getattr(error, "sqlite_errorcode", 0)
    said = str(error)
    match code & 0xFF:
        case 5 | 6:
            why = f"locked by {writelock.holders(path)}"
        case 8:
            why = _read_only(path, code, said)
        case 10:
            why = f"input/output error ({getattr(error, 'sqlite_errorname', code)}){_file_size_limit()}"
        case 11:
            why = f"the file is corrupt ({said}); {_CONVERTED}"
        case 13:
            why = "the disk is full"
        case 14:
            why = _cannot_open(path)
        case 26:
            why = f"the file is corrupt or no SQLite database ({said}); {_CONVERTED}"
        case _ if said.startswith("Could not decode"):
            why = f"the file is corrupt (a text is no UTF-8); {_CONVERTED}"
        case _:
            why = said
    return StoreError(path, why)


def corrupt(flaw: str) -> str:
    """Return, as a clause, that the file holds what it cannot."""
    return f"the file is corrupt ({flaw}); {_CONVERTED}"


def without_advice(why: str) -> str:
    """Return the same without what to do about it."""
    return why.partition(f"; {_CONVERTED}")[0].partition(f"; {_PUT_BACK}")[0]


def needs_rollback(error: StoreError) -> bool:
    """Tell whether a reader met what an interrupted write left behind, and may not undo it itself."""
    cause = error.__cause__
    code = getattr(cause, "sqlite_errorcode", 0)
    return isinstance(cause, _sqlite3.Error) and code & 0xFF in (_READONLY, _CANTOPEN)


def history_lost(path: str, witness: Witness | None, seen: Seen, found: str) -> StoreError:
    """Return the StoreError for a store that knows less than its witness."""
    where = witness.path if witness else "?"
    return StoreError(path, f"history lost: the witness {where} saw entry {seen.seq}, {found}; {_PUT_BACK}")


def damaged(witness: Witness | None, error: Exception) -> str:
    """Return the remark on a witness that cannot be read."""
    why = getattr(error, "strerror", None) or str(error)
    return f"witness {witness.path if witness else '?'}: {why}; it cannot tell whether history was lost"


def _read_only(path: str, code: int, said: str) -> str:
    if code in (_READONLY_RECOVERY, _READONLY_ROLLBACK):
        return (
            f"an interrupted write must be undone first, which uid {os.geteuid()} may not do; ask as the file's owner"
        )
    if os.access(path, os.W_OK, effective_ids=True):
        return f"read-only for uid {os.geteuid()}: its directory cannot be written ({said})"
    return f"read-only for uid {os.geteuid()} ({said})"


def _cannot_open(path: str) -> str:
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK))
    except OSError as error:
        return f"cannot be opened: {reason(error)} (uid {os.geteuid()})"
    return f"cannot be opened, or its directory cannot be written (uid {os.geteuid()})"


def _file_size_limit() -> str:
    import resource

    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    return "" if limit == resource.RLIM_INFINITY else f"; ulimit -f allows {limit} bytes a file"

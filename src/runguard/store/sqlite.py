"""The store in one SQLite file: opened, recognised, and refused where it is not what it should be.

`journal_mode=TRUNCATE` and `synchronous=FULL`; every write stands behind `write.lock` beside the file, a kernel queue
in which nothing is polled. Not WAL: it cannot be read from a read-only account, and Debian 12's SQLite can corrupt it.
"""

from __future__ import annotations

import _sqlite3
import os
import stat

from runguard.errors import NothingRecordedError, StoreError, reason
from runguard.store.database import FAULTS, ReadOnlyStore, Store, failed, words
from runguard.store.lines import Author
from runguard.store.witness import Witness, look
from runguard.store.writelock import WriteLock, refuse_untrusted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runguard.store.writelock import Stop

APPLICATION_ID = 1919382116  # "rgrd"
SCHEMA = 5
WAIT_S = 30.0
READER_WAIT_S = 10.0

_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._-")
_NO_DISK = 0  # major number of devices without a disk of their own: tmpfs, overlay, btrfs, and every network


def open_store(
    path: str,
    *,
    author: Author,
    create: bool,
    witness_directory: str | None = None,
    wait_s: float = WAIT_S,
    mountinfo: str | None = None,
    stop: Stop | None = None,
) -> Store:
    """Return the store at `path` for writing; with `create`, make it where there is none yet.

    The directory is made 0700 where it is missing and the files 0600, whatever the umask. `mountinfo` replaces
    `/proc/self/mountinfo`. An existing file is opened by the first write or question, behind the write lock, so that
    a start queues once and nothing is polled beside another's commit. Once `stop` returns true,
    waiting for the lock ends within a second, with a StoreError.

    Raises UnsafeError for a network file system, and where the file or the lock is no regular file, belongs to another
    account or may be written by others. Here or at the first use raises StoreError where the store cannot be
    used, where its schema is newer than this program, and where it is missing, empty or rewound though the witness
    knows more ("history lost"): it is never repaired and never begun anew.
    """
    path = _resolved(path)
    lock = WriteLock(path)
    witness = Witness(witness_directory, path) if witness_directory else None
    found = _status(path)
    if found is not None:
        refuse_untrusted(path, found)
    try:
        if found is None or found.st_size == 0:
            from runguard.store import creation  # once in the life of a store

            if not create:
                raise creation.absent(path, witness)
            creation.create(path, lock, witness, wait_s, mountinfo, stop)
        elif mountinfo is not None or os.major(found.st_dev) == _NO_DISK:
            from runguard.store import network

            network.refuse_network(path, found.st_dev, mountinfo)
    except (ImportError, OSError) as error:  # no descriptor is left
        raise failed(path, error) from error
    return Store(path, _open_locked, author, lock, witness, wait_s, stop)


def open_reader(path: str, *, witness_directory: str | None = None, wait_s: float = READER_WAIT_S) -> ReadOnlyStore:
    """Open the store at `path` for questions only; works from a read-only account and file system.

    Raises StoreError as `open_store` does, and NothingRecordedError. A newer schema is read as far as its columns
    allow.
    """
    path = _resolved(path)
    witness = Witness(witness_directory, path) if witness_directory else None
    seen, damage = look(witness)
    found = _status(path)
    if found is not None and not stat.S_ISREG(found.st_mode):
        raise StoreError(path, "it is no regular file")
    if found is None or found.st_size == 0:
        raise _absent(path, witness)
    connection = connect(path, "ro", wait_s)
    try:
        version = identify(connection, path)
    except StoreError as error:
        if not words(path).needs_rollback(error):
            raise
        connection.close()
        _roll_back(path, wait_s)
        connection = connect(path, "ro", wait_s)
        version = identify(connection, path)
    if version == 0:
        raise NothingRecordedError(path, "nothing has been recorded in it yet")
    if version < SCHEMA:
        _as_if_up_to_date(connection, path, version)
    store = ReadOnlyStore(path, connection, lambda: _roll_back(path, wait_s))
    if damage and not isinstance(damage, PermissionError):  # an auditor may not see the witness
        store.remark_witness(witness, damage)
    if seen:
        store.compare(seen, store.last_line(), witness)
    return store


def connect(path: str, mode: str, wait_s: float) -> _sqlite3.Connection:
    """Open the file, which must exist, in mode `rw` or `ro`. Raises StoreError."""
    place = "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in os.fsencode(path))
    try:
        return _sqlite3.connect(f"file://{place}?mode={mode}", timeout=wait_s, isolation_level=None, uri=True)
    except FAULTS as error:
        raise failed(path, error) from error


def identify(connection: _sqlite3.Connection, path: str) -> int:
    """Return the schema version, 0 for an empty database. Raises StoreError where the file is not runguard's."""
    try:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if application == APPLICATION_ID:
            return int(version)
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
    except FAULTS as error:
        raise failed(path, error) from error
    if pages == 0:
        return 0
    raise StoreError(path, "it is a database of another program, not runguard's")


def _open_locked(path: str, witness: Witness | None, wait_s: float) -> _sqlite3.Connection:
    """Open the file for writing. The caller holds the write lock. Raises StoreError."""
    connection = connect(path, "rw", wait_s)
    version = identify(connection, path)
    if version != SCHEMA:
        from runguard.store import creation

        creation.upgrade(connection, path, version, witness)
    try:
        (mode,) = connection.execute("PRAGMA journal_mode = TRUNCATE").fetchone()
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("PRAGMA foreign_keys = ON")
    except FAULTS as error:
        raise failed(path, error) from error
    if mode != "truncate":
        raise StoreError(path, f"its journal mode is {mode} and cannot be changed now")
    return connection


def _absent(path: str, witness: Witness | None) -> StoreError:
    try:
        from runguard.store import creation
    except (ImportError, OSError) as error:  # no descriptor is left
        return failed(path, error)
    return creation.absent(path, witness)


def _as_if_up_to_date(connection: _sqlite3.Connection, path: str, version: int) -> None:
    """Give a reader the tables, empty, that the version which has written last did not know. Raises StoreError."""
    try:
        from runguard.store import creation

        creation.make_empty(connection, version)
    except (ImportError, *FAULTS, OSError) as error:
        raise failed(path, error) from error


def _roll_back(path: str, wait_s: float) -> None:
    """Undo what an interrupted write left behind, where this account may. Raises StoreError."""
    connection = connect(path, "rw", wait_s)
    try:
        identify(connection, path)
    finally:
        connection.close()


def _resolved(path: str) -> str:
    """Return the absolute path without symbolic links: two names of one store must have one write lock."""
    try:
        return os.path.realpath(path)
    except (OSError, ValueError) as error:
        raise StoreError(path, str(error)) from error


def _status(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise StoreError(path, f"{reason(error)} (uid {os.geteuid()})") from error

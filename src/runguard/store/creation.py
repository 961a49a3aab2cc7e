"""What happens once in the life of a store: the place for it, the file, its schema. Imported when that is due."""

from __future__ import annotations

import _sqlite3
import os

from runguard import private
from runguard.errors import NothingRecordedError, StoreError, reason
from runguard.store import faults, sqlite
from runguard.store.database import FAULTS
from runguard.store.network import refuse_network
from runguard.store.writelock import refuse_untrusted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runguard.store.witness import Witness
    from runguard.store.writelock import Stop, WriteLock


def create(
    path: str, lock: WriteLock, witness: Witness | None, wait_s: float, mountinfo: str | None, stop: Stop | None = None
) -> None:
    """Make the store behind the write lock, unless another start just did.

    Raises StoreError where the witness knows of entries, UnsafeError on a network file system and where an empty file
    is not our own.
    """
    directory = os.path.dirname(path)
    try:
        _make_directory(directory)
        refuse_network(path, os.stat(directory).st_dev, mountinfo)
    except OSError as error:
        raise StoreError(path, f"{directory}: {reason(error)} (uid {os.geteuid()})") from error
    lock.take(wait_s, stop)
    try:
        if not os.path.exists(path) or os.path.getsize(path) == 0:
            _refuse_to_begin_anew(path, witness)
            _make_file(path, directory)
            connection = sqlite.connect(path, "rw", wait_s)
            try:
                if sqlite.identify(connection, path) == 0:
                    _migrate(connection, path, 0)
            finally:
                connection.close()
    except OSError as error:
        raise StoreError(path, f"cannot be created: {reason(error)} (uid {os.geteuid()})") from error
    finally:
        lock.release()


def upgrade(connection: _sqlite3.Connection, path: str, version: int, witness: Witness | None) -> None:
    """Bring an older schema up to date. The caller holds the write lock. Raises StoreError for a newer one."""
    if version > sqlite.SCHEMA:
        why = f"its schema is {version}, newer than this program's ({sqlite.SCHEMA}); upgrade runguard on this host"
        raise StoreError(path, why)
    if version == 0:
        _refuse_to_begin_anew(path, witness)
    _migrate(connection, path, version)


def absent(path: str, witness: Witness | None) -> StoreError:
    """Return the error for a store that is missing or empty: a NothingRecordedError unless the witness knows more."""
    try:
        _refuse_to_begin_anew(path, witness)
    except StoreError as error:
        return error
    return NothingRecordedError(path, "nothing has been recorded yet: there is no such file")


def _refuse_to_begin_anew(path: str, witness: Witness | None) -> None:
    if witness is None:
        return
    try:
        seen = witness.read()
    except OSError:
        return
    except ValueError as error:
        why = f"history lost: the store is missing or empty, and the witness {witness.path}: {error}"
        raise StoreError(path, why) from error
    if seen:
        raise faults.history_lost(path, witness, seen, "the store is missing or empty")


def _make_directory(directory: str) -> None:
    """Make the directory and its missing parents 0700, also beside another start that does the same."""
    if os.path.isdir(directory):
        return
    _make_directory(os.path.dirname(directory))
    private.make(directory)


def _make_file(path: str, directory: str) -> None:
    """Make the empty file 0600 before SQLite sees it, so that its own files get the same mode."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    try:
        refuse_untrusted(path, os.fstat(file))
        os.fchmod(file, 0o600)
    finally:
        os.close(file)
    private.sync(directory)


def migrations(version: int) -> list[str]:
    """Return the scripts of the migrations after `version`, in order. Raises OSError."""
    scripts = []
    for number in range(version + 1, sqlite.SCHEMA + 1):
        name = os.path.join(os.path.dirname(__file__), "migrations", "sqlite", f"{number:04d}.sql")
        with open(name, encoding="ascii") as file:
            scripts.append(file.read())
    return scripts


def make_empty(connection: _sqlite3.Connection, version: int) -> None:
    """Make the tables of the migrations after `version` for this connection alone. Raises sqlite3.Error or OSError."""
    import re  # no start comes here

    connection.execute("PRAGMA temp_store = MEMORY")
    for script in migrations(version):
        for table in re.findall(r"^CREATE (TABLE .*?;)$", script, re.MULTILINE | re.DOTALL):
            connection.execute(f"CREATE TEMP {table}")


def _migrate(connection: _sqlite3.Connection, path: str, version: int) -> None:
    """Apply the migrations after `version`, all in one transaction. The caller holds the write lock."""
    begin = "PRAGMA journal_mode = TRUNCATE; PRAGMA synchronous = FULL; BEGIN IMMEDIATE;"
    try:
        connection.executescript("\n".join([begin, *migrations(version), "COMMIT;"]))
    except FAULTS as error:
        raise faults.failed(path, error) from error

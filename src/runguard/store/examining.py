"""Whether a store can be used: what `doctor` and a recovery have to know before they touch anything."""

from __future__ import annotations

import _sqlite3
import fcntl
import os
from collections.abc import Iterator

from runguard.errors import NothingRecordedError, StoreError
from runguard.store import creation, faults, sqlite
from runguard.store.database import FAULTS, failed
from runguard.store.witness import Witness, look
from runguard.store.writelock import WriteLock

# SQLite's primary result codes: https://www.sqlite.org/rescode.html
_DAMAGE = (10, 11, 26)  # an input/output error, a corrupt file, no database
_SHOWN = 3
_SCHEMA = "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
_NAMES = "SELECT type, name FROM sqlite_schema WHERE type IN ('table', 'trigger', 'index', 'view')"
_ABSURD = 10_000  # no program has so many schemas


def damage(path: str, witness_directory: str) -> str:
    """Return why no start can use the store although it was known before, as a clause, or "" where all is well.

    A store that nobody knows of and that does not exist is well. Raises StoreError where it cannot be told: locked, not
    readable for us, of a newer program, or another program's that the witness does not know.
    """
    witness = Witness(witness_directory, path)
    seen, _ = look(witness)
    try:
        reader = sqlite.open_reader(path)
    except NothingRecordedError:
        return f"the store is missing or empty, and the witness saw entry {seen.seq}" if seen else ""
    except StoreError as error:
        if is_damage(error) or (seen is not None and "database of another program" in error.why):
            return error.why
        raise
    with reader:
        try:
            if found := quick_check(path):
                return f"the file is corrupt ({found})"
            if seen is not None:
                reader.compare(seen, reader.last_line(), witness)
        except StoreError as error:
            if not is_damage(error) and "history lost" not in error.why and "is corrupt" not in error.why:
                raise
            return error.why
    return ""


def quick_check(path: str) -> str:
    """Return what SQLite's own quick check has against the file, or "". Raises StoreError."""
    connection = sqlite.connect(path, "ro", sqlite.READER_WAIT_S)
    try:
        version = sqlite.identify(connection, path)
        if version > _ABSURD:
            return f"its schema is said to be {version}"
        if version > sqlite.SCHEMA:
            why = f"its schema is {version}, newer than this program's ({sqlite.SCHEMA}); upgrade runguard on this host"
            raise StoreError(path, why)
        rows = connection.execute(f"PRAGMA quick_check({_SHOWN})").fetchall()
        missing = _missing(connection) if version == sqlite.SCHEMA else ""
    except FAULTS as error:
        raise failed(path, error) from error
    finally:
        connection.close()
    said = [line for (text,) in rows for line in str(text).splitlines() if not line.startswith("***")]
    return missing if said == ["ok"] else "; ".join(said[:_SHOWN])


def flaws(path: str) -> list[str]:
    """Return, each as a sentence, what SQLite has against the file, and which tables and triggers are not ours.

    Looks at every page, and holds up writers meanwhile: about a second for half a gigabyte. Raises StoreError.
    """
    while True:
        sqlite.open_reader(path).close()  # undoes what an interrupted write left behind
        try:
            return _flaws(path)
        except StoreError as error:
            if not faults.needs_rollback(error):  # a writer that died meanwhile
                raise


def _flaws(path: str) -> list[str]:
    connection = sqlite.connect(path, "ro", sqlite.READER_WAIT_S)
    try:
        version = sqlite.identify(connection, path)
        found = [f"SQLite: {text}" for (text,) in connection.execute("PRAGMA integrity_check(20)") if text != "ok"]
        if version == sqlite.SCHEMA:
            found += _differing(connection)
        return found
    except FAULTS as error:
        raise failed(path, error) from error
    finally:
        connection.close()


def _differing(connection: _sqlite3.Connection) -> Iterator[str]:
    ours = _sqlite3.connect(":memory:")
    try:
        ours.executescript("\n".join(creation.migrations(0)))
        wanted = {(kind, name): sql for kind, name, sql in ours.execute(_SCHEMA)}
    finally:
        ours.close()
    found = {(kind, name): sql for kind, name, sql in connection.execute(_SCHEMA)}
    for kind, name in sorted(wanted.keys() | found.keys()):
        if (kind, name) not in found:
            yield f"the {kind} {name} is missing"
        elif (kind, name) not in wanted:
            yield f"the {kind} {name} is not runguard's: put in"
        elif found[kind, name] != wanted[kind, name]:
            yield f"the {kind} {name} is not as runguard makes it: changed"
    if connection.execute("SELECT count(1) FROM lifted").fetchone() != (0,):
        yield "the triggers that refuse changes are lifted"


def _missing(connection: _sqlite3.Connection) -> str:
    """Return what the schema should have and has not, as a clause, or "". Raises sqlite3.Error or OSError."""
    whole = _sqlite3.connect(":memory:")
    try:
        whole.executescript("\n".join(creation.migrations(0)))
        missing = sorted({*whole.execute(_NAMES)} - {*connection.execute(_NAMES)})
    finally:
        whole.close()
    return ", ".join(f"its {kind} {name} is missing" for kind, name in missing[:_SHOWN])


def sqlite_version() -> tuple[int, ...]:
    """Return the version of SQLite that we run on."""
    return tuple(int(part) for part in _sqlite3.sqlite_version.split("."))


def is_damage(error: StoreError) -> bool:
    """Tell whether an error comes from damage in the file."""
    cause = error.__cause__
    if isinstance(cause, UnicodeDecodeError) or str(cause).startswith("Could not decode"):
        return True
    return isinstance(cause, _sqlite3.Error) and getattr(cause, "sqlite_errorcode", 0) & 0xFF in _DAMAGE


def interrupted(path: str) -> bool:
    """Tell whether an interrupted write waits to be undone: SQLite's own journal is not empty."""
    try:
        with open(f"{path}-journal", "rb") as file:
            return file.read(8) not in (b"", bytes(8))
    except OSError:
        return False


def waits_to_be_undone(path: str) -> bool:
    """Tell whether a write was cut off and nobody is at it: whoever opens the store next undoes it."""
    return interrupted(path) and _is_free(WriteLock(path).path) and interrupted(path)


def _is_free(lock: str) -> bool:
    """Tell whether nobody holds the write lock; that is asked for without making or changing the file."""
    try:
        fd = os.open(lock, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        return isinstance(error, FileNotFoundError)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


def upgrade(path: str) -> None:
    """Bring a store of an older schema up to date, as any start would. The caller holds the write lock.

    Raises StoreError.
    """
    connection = sqlite.connect(path, "rw", sqlite.WAIT_S)
    try:
        version = sqlite.identify(connection, path)
        if 0 < version < sqlite.SCHEMA:
            creation.upgrade(connection, path, version, None)
    finally:
        connection.close()


def roll_back(path: str) -> None:
    """Let SQLite undo an interrupted write, as any start would; where it cannot, its journal is emptied.

    Then it belongs to a file that is not the one it was written for any more.
    """
    try:
        connection = sqlite.connect(path, "rw", 0.0)
        try:
            sqlite.identify(connection, path)
        finally:
            connection.close()
    except StoreError:
        pass
    if interrupted(path):
        os.truncate(f"{path}-journal", 0)

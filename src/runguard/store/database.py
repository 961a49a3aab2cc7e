"""The store once it is open: questions, and transactions that append to the ledger and index what they append."""

from __future__ import annotations

import _sqlite3
import os
import time

from runguard.errors import StoreError, reason
from runguard.record import NamedTuple
from runguard.store import lines, statements
from runguard.store.index import index
from runguard.store.lines import Author
from runguard.store.reads import Head, Ping, Reader
from runguard.store.witness import Seen, Witness, look
from runguard.store.writelock import WriteLock, refuse_untrusted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import ModuleType, TracebackType
    from typing import Any, Self

    from runguard.store.writelock import Stop

# What comes out of SQLite. It words some errors with bytes of a corrupt file.
FAULTS = (_sqlite3.Error, MemoryError, UnicodeDecodeError)
# What an entry may raise that does not fit: of an unknown shape, beyond the numbers of a database, nested too deep.
UNFIT = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
_UNFIT_TO_SQLITE = (_sqlite3.IntegrityError, _sqlite3.InterfaceError, _sqlite3.ProgrammingError, _sqlite3.DataError)


class Appended(NamedTuple):
    """An entry that was added: its number and the SHA-256 of its line."""

    seq: int
    hash: str
    superseded: bool = False  # it is the late end of a run that was taken for lost


class ReadOnlyStore(Reader):
    """A store that is asked and never written. `remarks` are sentences for the person at the terminal.

    `roll_back` undoes what a writer that was killed meanwhile has left behind; it raises StoreError.
    """

    def __init__(
        self, path: str, connection: _sqlite3.Connection | None, roll_back: Callable[[], None] | None = None
    ) -> None:
        self.path = path
        self._roll_back = roll_back
        self.remarks: list[str] = []
        self._connection = connection
        self._shapes: dict[str, set[tuple[type, ...]]] = {}  # statement → what its rows were like
        try:
            self._statements = statements.load()
        except (OSError, MemoryError) as error:
            raise failed(path, error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def rows(self, name: str, **parameters: Any) -> list[tuple[Any, ...]]:
        from runguard.store import shapes

        cursor, found = self._fetch(name, parameters)
        columns = [column[0] for column in cursor.description]
        if flaw := shapes.flaw(columns, found, self._shapes.setdefault(name, set())):
            raise StoreError(self.path, words(self.path).corrupt(flaw))
        return found

    def labelled(self, name: str, **parameters: Any) -> list[dict[str, Any]]:
        """Send the named statement and return all rows by the names of their columns, unjudged. Raises StoreError."""
        cursor, found = self._fetch(name, parameters)
        labels = [column[0] for column in cursor.description]
        return [dict(zip(labels, row, strict=True)) for row in found]

    def unjudged(self, name: str, **parameters: Any) -> list[tuple[Any, ...]]:
        """Send the named statement and return all rows, for who judges each by its hash. Raises StoreError."""
        return self._fetch(name, parameters)[1]

    def last_line(self) -> tuple[int, bytes] | None:
        """Return the number and the bytes of the last entry, or None."""
        for seq, line in self.rows("head"):
            return seq, line
        return None

    def compare(self, seen: Seen, last: tuple[int, bytes] | None, witness: Witness | None) -> None:
        """Raise StoreError unless the ledger holds the entry that the witness saw."""
        seq, line = last or (0, b"")
        if seq > seen.seq:
            line = next((old for (old,) in self.rows("line_at", seq=seen.seq)), b"")
        if seq < seen.seq or lines.digest(line) != seen.hash:
            if self._begins_anew_after(seen):
                return
            found = f"the store ends at {seq}" if seq < seen.seq else "which the store has not or has otherwise"
            raise words(self.path).history_lost(self.path, witness, seen, found)

    def remark_witness(self, witness: Witness | None, error: Exception) -> None:
        """Remark that the witness cannot be read."""
        self.remarks.append(words(self.path).damaged(witness, error))

    def _begins_anew_after(self, seen: Seen) -> bool:
        """Tell whether a recovery has named that entry as the head of the ledger that it replaced."""
        from runguard.store import recoveries  # hardly ever

        return recoveries.look(self).knows(seen.seq, seen.hash)

    def _fetch(self, name: str, parameters: Mapping[str, Any]) -> tuple[_sqlite3.Cursor, list[tuple[Any, ...]]]:
        try:
            return self._execute(name, parameters)
        except StoreError as error:
            if self._roll_back is None or not words(self.path).needs_rollback(error):
                raise
        self._roll_back()
        return self._execute(name, parameters)

    def _execute(self, name: str, parameters: Mapping[str, Any]) -> tuple[_sqlite3.Cursor, list[tuple[Any, ...]]]:
        try:
            cursor = self._open().execute(self._statements[name], parameters)
            return cursor, cursor.fetchall()
        except FAULTS as error:
            raise failed(self.path, error) from error

    def close(self) -> None:
        """Close the database."""
        if self._connection is not None:
            self._connection.close()

    def _open(self) -> _sqlite3.Connection:
        assert self._connection is not None
        return self._connection


class Store(ReadOnlyStore):
    """A store that can be written, one transaction at a time: `with store.write() as transaction`."""

    def __init__(
        self,
        path: str,
        open_locked: Callable[[str, Witness | None, float], _sqlite3.Connection],
        author: Author,
        lock: WriteLock,
        witness: Witness | None,
        wait_s: float,
        stop: Stop | None = None,
    ) -> None:
        super().__init__(path, None)
        self.author = author
        self.lock = lock
        self.witness = witness
        self.wait_s = wait_s
        self.stop = stop
        self._open_locked = open_locked
        self._found: os.stat_result | None = None
        self._schema = 0

    def rows(self, name: str, **parameters: Any) -> list[tuple[Any, ...]]:
        return self._fetch(name, parameters)[1]

    def write(self) -> Transaction:
        """Return a transaction to enter: it queues for the write lock, commits at the end, undoes all on an error."""
        return Transaction(self)

    def record_pings(self, run_id: str, pings: Iterable[Ping]) -> None:
        """Add to the pings of a run. Raises StoreError."""
        with self.write() as transaction:
            n = (self.rows("last_ping", run_id=run_id)[0][0] or 0) + 1
            for i, ping in enumerate(pings):
                transaction.send("insert_ping", {"run_id": run_id, "n": n + i, **ping._asdict()})

    def send(self, name: str, parameters: Mapping[str, Any]) -> int:
        """Send a statement and return how many rows it changed. Raises StoreError."""
        try:
            return self._open().execute(self._statements[name], parameters).rowcount
        except FAULTS as error:
            raise failed(self.path, error) from error

    def send_many(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Send a statement once for each of `rows`. Raises StoreError."""
        try:
            self._open().executemany(self._statements[name], rows)
        except FAULTS as error:
            raise failed(self.path, error) from error

    def control(self, statement: str) -> None:
        """Send a statement that begins or ends a transaction. Raises StoreError."""
        try:
            self._open().execute(statement)
        except FAULTS as error:
            raise failed(self.path, error) from error

    def compact(self) -> None:
        """Give back to the file system what was removed; nobody writes meanwhile. Raises StoreError."""
        self.lock.take(self.wait_s, self.stop)
        try:
            self.open_locked(self.wait_s)
            self.control("VACUUM")
        finally:
            self.lock.release()

    def in_transaction(self) -> bool:
        """Tell whether a transaction is open: SQLite ends one by itself on some errors."""
        return self._connection is not None and self._connection.in_transaction

    def open_locked(self, wait_s: float) -> None:
        """Open the file unless it is open. The caller holds the write lock.

        Raises StoreError, also where the open file is no longer the one at the path, and UnsafeError where others
        could have planted it.
        """
        try:
            found = os.stat(self.path)
        except OSError as error:
            raise StoreError(self.path, f"{reason(error)} (uid {os.geteuid()})") from error
        refuse_untrusted(self.path, found)
        if self._found is None:
            try:
                self._connection, self._found = self._open_locked(self.path, self.witness, wait_s), found
            except (ImportError, OSError) as error:  # no descriptor is left to load what an upgrade needs
                raise failed(self.path, error) from error
            self._schema = self._schema_version()
        elif not os.path.samestat(found, self._found):
            raise StoreError(self.path, "the file was replaced while it was open")
        elif self._schema_version() != self._schema:
            raise StoreError(self.path, "its schema was changed while it was open")

    def close(self) -> None:
        super().close()
        self.lock.close()

    def _schema_version(self) -> int:
        try:
            (version,) = super()._open().execute("PRAGMA user_version").fetchone()
        except FAULTS as error:
            raise failed(self.path, error) from error
        return int(version)

    def _open(self) -> _sqlite3.Connection:
        if self._connection is None:
            self.lock.take(self.wait_s, self.stop)
            try:
                self.open_locked(self.wait_s)
            finally:
                self.lock.release()
        return super()._open()


class Transaction:
    """One write: entries and their rows become durable together, or not at all."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.found = b""  # the last line of the ledger as it was found
        self._seq = 0
        self._hash = lines.FIRST_PREV
        self._appended = False

    def __enter__(self) -> Transaction:
        store = self.store
        until_s = time.monotonic() + store.wait_s
        store.lock.take(store.wait_s, store.stop)
        try:
            store.open_locked(max(until_s - time.monotonic(), 0.1))
            seen, damage = look(store.witness)
            store.control("BEGIN IMMEDIATE")
            last = store.last_line()
            if last:
                self._seq, self.found = last
                self._hash = lines.digest(self.found)
            if damage:
                store.remark_witness(store.witness, damage)
            if seen and seen != (self._seq, self._hash):
                store.compare(seen, last, store.witness)
        except BaseException:
            self._undo()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._undo()
            return
        try:
            self.store.control("COMMIT")
        except BaseException:
            self._undo()
            raise
        try:
            self._remember()
        finally:
            self.store.lock.release()

    def append(self, kind: str, at_us: int, fields: Mapping[str, Any], *, author: Author | None = None) -> Appended:
        """Add an entry to the ledger and its row to the tables.

        A `run.finish` of a run that was taken for lost is written with `superseded: true`, once. Raises StoreError,
        also where a finish finds no run that waits for it; KeyError, TypeError or ValueError for fields that are not
        those of the kind.
        """
        seq = self._seq + 1
        entry = lines.entry(seq, self._hash, kind, at_us, author or self.store.author, fields)
        if not index(self.send, entry):
            entry["superseded"] = True
            if not index(self.send, entry):
                raise StoreError(self.store.path, f"run {fields['run_id']} is not waiting for a finish")
        line = lines.encode(entry)
        self.send("append_line", {"seq": seq, "line": line})
        self._seq, self._hash, self._appended = seq, lines.digest(line), True
        return Appended(seq, self._hash, "superseded" in entry)

    def keep_output(self, run_id: str, head: bytes, tail: bytes) -> None:
        """Keep the head and the tail of a run's output. Raises StoreError."""
        self.send("insert_output", {"run_id": run_id, "head": head, "tail": tail})

    def send(self, name: str, parameters: Mapping[str, Any]) -> int:
        """Send a statement and return how many rows it changed. Raises StoreError."""
        return self.store.send(name, parameters)

    def attempt(self, kind: str, at_us: int, fields: Mapping[str, Any], author: Author) -> str:
        """Append an entry that may not fit, and return "" or why it does not; what was done before stays."""
        store, before = self.store, (self._seq, self._hash, self._appended)
        store.control("SAVEPOINT entry")
        try:
            self.append(kind, at_us, fields, author=author)
        except UNFIT as error:
            why = f"{type(error).__name__}: {error}"
        except StoreError as error:
            if error.__cause__ is not None and not isinstance(error.__cause__, _UNFIT_TO_SQLITE):
                raise
            why = error.why
        else:
            store.control("RELEASE entry")
            return ""
        store.control("ROLLBACK TO entry")
        store.control("RELEASE entry")
        self._seq, self._hash, self._appended = before
        return why

    def head(self) -> Head | None:
        """Return the last entry, those of this transaction included."""
        return Head(self._seq, self._hash) if self._seq else None

    def _undo(self) -> None:
        """Roll back and let go of the lock; the error that led here is the one to tell."""
        try:
            if self.store.in_transaction():
                self.store.control("ROLLBACK")
        except StoreError:
            pass  # the journal file is hot now: whoever opens the store next rolls back
        finally:
            self.store.lock.release()

    def _remember(self) -> None:
        if self._appended and self.store.witness:
            try:
                self.store.witness.write(self._seq, self._hash)
            except OSError as error:
                self.store.remarks.append(f"witness {self.store.witness.path}: {reason(error)}; it lags behind")


def failed(path: str, error: Exception) -> StoreError:
    """Return the StoreError that says why what was asked of the store could not be done."""
    try:
        stated: StoreError = words(path).failed(path, error)
    except StoreError as missing:
        return StoreError(path, f"{reason(error)}; {missing.why}")
    return stated


def words(path: str) -> ModuleType:
    """Return the module that words faults. Raises StoreError where nothing is left to load it with."""
    try:
        from runguard.store import faults  # only when something went wrong
    except (ImportError, OSError, MemoryError) as error:
        raise StoreError(path, reason(error)) from error
    return faults

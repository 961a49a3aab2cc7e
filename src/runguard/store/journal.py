"""The fallback journal: where a record goes when the store cannot take it, until a later start brings it over.

One file per run, `journal/RUN_ID.jsonl`, one entry a line, synced. Where that cannot be written (a full disk, a quota,
a limit) the line goes into `journal.reserve`, whose 256 KiB were claimed while there was room. Writers and readers of
either file lock it, so that a run that still lives never loses the line it adds while another start reads.
"""

from __future__ import annotations

import errno
import os

from runguard import instant, private
from runguard.errors import NoTraceError, reason
from runguard.model import Earlier
from runguard.record import NamedTuple
from runguard.store import lines
from runguard.store.lines import Author

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from runguard.store.database import Transaction

RESERVE_BYTES = 256 * 1024
LOCK_WAIT_S = 5.0


class Source(NamedTuple):
    """What was read of one journal file: `length` bytes, as whole lines. The reserve's bytes end at its first NUL."""

    path: str
    length: int
    lines: tuple[bytes, ...]
    is_reserve: bool


class Reconciled(NamedTuple):
    """What `reconcile` did: entries added, remarks for the person at the terminal, and what may now be cleared."""

    added: int
    remarks: tuple[str, ...]
    sources: tuple[Source, ...] = ()
    rejected: tuple[tuple[str, bytes], ...] = ()  # the file to keep it in, the line


class Journal:
    """The journal in a state directory: `journal/` and `journal.reserve`."""

    def __init__(self, state_directory: str, author: Author, *, wait_s: float = LOCK_WAIT_S) -> None:
        self.directory = os.path.join(state_directory, "journal")
        self.reserve = os.path.join(state_directory, "journal.reserve")
        self.author = author
        self.wait_s = wait_s

    def prepare(self) -> str:
        """Make the directory, and claim the reserve while there is room. Cheap once they exist.

        Returns "" or a remark: why there is no reserve, or why the directory is not used.
        """
        try:
            flaw = private.make(self.directory)
        except OSError as error:
            flaw = reason(error)
        unused = f"journal {self.directory}: {flaw} (uid {os.geteuid()}); it is not used" if flaw else ""
        return "; ".join(remark for remark in (unused, self._claim()) if remark)

    def _claim(self) -> str:
        try:
            found = os.lstat(self.reserve)
            if found.st_size >= RESERVE_BYTES and not private.file_flaw(found):
                return ""
        except OSError:
            pass
        try:
            from runguard.store import reserve  # once in the life of a state directory
        except (ImportError, OSError) as error:
            return f"the journal has no reserve for a full disk: {reason(error)}"
        return reserve.claim(self.reserve)

    def write(self, kind: str, at_us: int, fields: dict[str, Any]) -> str:
        """Write an entry of the run `fields["run_id"]` durably and return the file that took it.

        Raises NoTraceError where neither the run's file nor the reserve takes it.
        """
        line = lines.encode(lines.unnumbered(kind, at_us, self.author, fields))
        path = os.path.join(self.directory, f"{fields['run_id']}.jsonl")
        try:
            _make(self.directory)
            _append(path, line, self.wait_s)
        except OSError as error:
            return self._write_reserve(line, f"{path}: {reason(error)}")
        return path

    def pending(self) -> bool:
        """Tell whether something waits to be brought over."""
        return any(name.endswith(".jsonl") for name in names(self.directory)) or _begins(self.reserve)

    def entries(self) -> list[dict[str, Any]]:
        """Return every readable entry, oldest first by its own time; a run's start comes before its finish."""
        if not self.pending():
            return []
        from runguard.store import reconciling

        return reconciling.entries(self)

    def latest(self, job: str, key: str, due_us: int) -> Earlier | None:
        """Return the latest start for a window that the journal knows of, or None. A start without a finish runs.

        A start that covers the window decides where it has none of its own.
        """
        own = covering = None
        outcomes: dict[str, str] = {}
        attempts = 0
        for entry in self.entries():
            if entry["kind"] == "run.finish":
                outcomes[entry["run_id"]] = entry["outcome"]
            elif entry["kind"] == "run.start" and entry["job"] == job:
                if (entry["window"] or {}).get("key") == key:
                    own = entry
                    attempts = max(attempts, entry["attempt"])
                elif _covers(entry, due_us):
                    covering = entry
        found = own or covering
        if found is None:
            return None
        outcome = outcomes.get(found["run_id"], "running")
        return Earlier(found["run_id"], found.get("number"), outcome, attempts, found["host"])

    def reconcile(self, transaction: Transaction) -> Reconciled:
        """Append everything that the ledger has not yet; safe to repeat: an entry is known by its run and kind.

        A run without a number gets the next one, a window without a revision that of its due. Lines that are torn or
        do not fit are kept aside. Pass the result to `clear` once the transaction is committed.
        """
        if not self.pending():
            return Reconciled(0, ())
        try:
            from runguard.store import reconciling
        except (ImportError, OSError) as error:  # no descriptor is left
            return Reconciled(0, (f"journal {self.directory}: {reason(error)}; it is left for a later start",))
        return reconciling.reconcile(self, transaction)

    def clear(self, reconciled: Reconciled) -> list[str]:
        """Remove what was brought over, unless a run has added to it since. Returns remarks on what could not be."""
        if not reconciled.sources:
            return []
        from runguard.store import reconciling

        return reconciling.clear(self, reconciled)

    def _write_reserve(self, line: bytes, why: str) -> str:
        try:
            from runguard.store import reserve

            reserve.add(self.reserve, line, self.wait_s)
        except (ImportError, OSError) as error:
            message = f"no trace can be kept: {why}; {self.reserve}: {reason(error)} (uid {os.geteuid()})"
            raise NoTraceError(message) from error
        return self.reserve


def opened(path: str, flags: int) -> int:
    """Open the file, with O_CREAT made 0600 whatever the umask, and return it.

    Raises OSError, also where it is no regular file of our own that nobody else may write to: what it says could be
    anybody's. No link is followed and no pipe waited for.
    """
    try:
        file = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY, 0o600)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR, errno.EACCES) and (flaw := _flaw(path)):
            raise OSError(errno.EPERM, flaw) from error
        raise
    try:
        found = os.fstat(file)
        if flaw := private.file_flaw(found):
            raise OSError(errno.EPERM, flaw)
        if flags & os.O_CREAT and found.st_size == 0:
            os.fchmod(file, 0o600)
    except OSError:
        os.close(file)
        raise
    return file


def locked(path: str, flags: int, wait_s: float) -> int:
    """Open the file as `opened` does and lock it; the lock goes with the close. Raises OSError.

    A file that is removed while we wait is opened anew.
    """
    from runguard.store import writelock

    while True:
        file = opened(path, flags)
        try:
            if not writelock.take(file, wait_s):
                raise TimeoutError(0, f"locked by {writelock.holders(path)}")
            if os.fstat(file).st_nlink:
                return file
        except BaseException:
            os.close(file)
            raise
        os.close(file)


def _covers(entry: dict[str, Any], due_us: int) -> bool:
    covers = entry.get("covers")
    return covers is not None and instant.from_rfc3339(covers["first"]) <= due_us <= instant.from_rfc3339(
        covers["last"]
    )


def _append(path: str, line: bytes, wait_s: float) -> None:
    """Append the line whole and durably, or leave the file as it was. Raises OSError."""
    file = locked(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, wait_s)
    try:
        size = os.fstat(file).st_size
        if size and os.pread(file, 1, size - 1) != b"\n":
            line = b"\n" + line  # what was torn before stays a line of its own
        try:
            written = os.write(file, line)
            while written < len(line):
                written += os.write(file, line[written:])
            os.fsync(file)
        except OSError:
            os.ftruncate(file, size)
            raise
        if size == 0:
            private.sync(os.path.dirname(path))
    finally:
        os.close(file)


def _make(directory: str) -> None:
    """Make the directory where it is missing. Raises OSError, also where it is not private."""
    missing = not os.path.lexists(directory)
    if flaw := private.make(directory):
        raise OSError(errno.EPERM, flaw)
    if missing:
        private.sync(os.path.dirname(directory))


def names(directory: str) -> list[str]:
    """Return what lies in the directory, sorted; nothing where others could have put it there."""
    try:
        return [] if private.flaw(directory) else sorted(os.listdir(directory))
    except OSError:
        return []


def _flaw(path: str) -> str:
    try:
        return private.file_flaw(os.lstat(path))
    except OSError:
        return ""


def _begins(reserve: str) -> bool:
    """Tell whether the reserve holds anything: its first byte is no NUL."""
    try:
        file = opened(reserve, os.O_RDONLY)
    except OSError:
        return False
    try:
        return os.read(file, 1) not in (b"", b"\0")
    except OSError:
        return False
    finally:
        os.close(file)

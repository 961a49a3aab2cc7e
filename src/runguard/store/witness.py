"""The witness: a small file outside the database's directory that remembers the last entry that was committed.

An emptied, replaced or rewound database is then refused instead of being begun anew. The line is overwritten in place
after each commit (a rename would make ext4 write it out at once) and not synced: after a power loss it may be older
than the store, which is harmless, never newer. A witness that cannot be read as one is a remark, not a reason to stop:
it is written anew after the next commit.
"""

from __future__ import annotations

import errno
import os

from runguard import private
from runguard.record import NamedTuple
from runguard.store import lines

_MAGIC = "runguard-witness-1"


class Seen(NamedTuple):
    """The last entry that a witness saw: its number and the SHA-256 of its line."""

    seq: int
    hash: str


class Witness:
    """The witness of the store at `store_path`, a file in `directory` that is named after that path."""

    def __init__(self, directory: str, store_path: str) -> None:
        name = os.path.basename(store_path) + "." + lines.digest(os.fsencode(store_path))[:16]
        self.path = os.path.join(directory, name)
        self._directory = directory

    def read(self) -> Seen | None:
        """Return what was seen last, or None where there is no witness yet.

        Raises ValueError where the file is damaged or others could have written it, OSError where it cannot be read.
        """
        try:
            file = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            # An auditor reads it too: what counts is that it belongs to whom the state directory belongs to.
            if flaw := private.flaw(self._directory, os.stat(os.path.dirname(self._directory)).st_uid):
                raise ValueError(f"{self._directory}: {flaw}")
            line = b""
            while line != (again := os.pread(file, 200, 0)):  # it may be overwritten at this moment
                line = again
        finally:
            os.close(file)
        words = line.split(b"\n")[0].decode("ascii", "replace").split(" ")
        if len(words) != 3 or words[0] != _MAGIC or len(words[2]) != 64 or not words[1].isdigit():
            raise ValueError("it is damaged")
        return Seen(int(words[1]), words[2])

    def write(self, seq: int, hash: str) -> None:
        """Remember the entry. The caller holds the store's write lock. Raises OSError."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        if flaw := private.make(self._directory):
            raise OSError(errno.EPERM, f"{self._directory}: {flaw}")
        file = os.open(self.path, flags, 0o600)
        try:
            line = f"{_MAGIC} {seq} {hash}\n".encode("ascii")
            os.pwrite(file, line, 0)
            found = os.fstat(file)
            if found.st_size > len(line):
                os.ftruncate(file, len(line))
            if found.st_mode & 0o777 != 0o600:
                os.fchmod(file, 0o600)  # whatever the umask
        finally:
            os.close(file)


def look(witness: Witness | None) -> tuple[Seen | None, Exception | None]:
    """Return what the witness saw, or what is wrong with it."""
    try:
        return (witness.read() if witness else None), None
    except (OSError, ValueError) as error:
        return None, error

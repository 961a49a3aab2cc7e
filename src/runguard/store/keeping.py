"""What is left of a store is kept aside, whole, before anything is put into its place. Nothing is ever deleted."""

from __future__ import annotations

import errno
import os
import shutil
from hashlib import sha256
from typing import NamedTuple

from runguard import private
from runguard.errors import StoreError, reason
from runguard.store import examining

_WITH_IT = ("-journal", "-wal", "-shm")  # files of SQLite's own beside the database
_PIECE_BYTES = 1 << 20


class Kept(NamedTuple):
    """One file that was kept."""

    name: str
    bytes: int
    sha256: str


def keep_aside(path: str, also: tuple[str, ...], stamp: str) -> tuple[str, list[Kept]]:
    """Keep the store at `path` and the files `also` in a new directory beside it; return that, and what is in it.

    The file itself gets a second name where that does; it is copied where SQLite has yet to undo a write in it, and
    where the file system has no second names. Raises StoreError.
    """
    directory = _fresh(path, stamp)
    interrupted = examining.interrupted(path)
    kept = []
    try:
        for source in (path, *(path + suffix for suffix in _WITH_IT), *also):
            if os.path.isfile(source) and not os.path.islink(source):
                target = os.path.join(directory, os.path.basename(source))
                if source != path or interrupted or not _linked(source, target):
                    _copy(source, target)
                kept.append(Kept(os.path.basename(source), os.path.getsize(target), _digest(target)))
        private.sync(directory)
        private.sync(os.path.dirname(path))
    except OSError as error:
        shutil.rmtree(directory, ignore_errors=True)  # all of it is still in its place
        why = f"it cannot be kept aside in {directory}: {reason(error)}; nothing was changed"
        raise StoreError(path, why) from error
    return directory, kept


def _fresh(path: str, stamp: str) -> str:
    """Make a directory of ours alone beside the store that was not there before. Raises StoreError."""
    for number in range(1, 1_000):
        directory = os.path.join(os.path.dirname(path), f"aside-{stamp}" + (f".{number}" if number > 1 else ""))
        try:
            os.mkdir(directory, 0o700)
            os.chmod(directory, 0o700)
            return directory
        except FileExistsError:
            continue
        except OSError as error:
            raise StoreError(path, f"{directory}: {reason(error)} (uid {os.geteuid()})") from error
    raise StoreError(path, f"{directory} exists already, and so do the next ones")


def _linked(source: str, target: str) -> bool:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise
        return False
    return True


def _copy(source: str, target: str) -> None:
    """Copy a file, as far as the disk gives it, durably. Raises OSError."""
    with open(source, "rb", buffering=0) as reading, open(target, "xb", buffering=0) as writing:
        os.fchmod(writing.fileno(), 0o600)
        try:
            shutil.copyfileobj(reading, writing, _PIECE_BYTES)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            _copy_what_can_be_read(reading.fileno(), writing.fileno())
        os.fsync(writing.fileno())


def _copy_what_can_be_read(reading: int, writing: int) -> None:
    """Copy sector by sector; what the disk does not give stays zeros."""
    size = os.fstat(reading).st_size
    os.ftruncate(writing, size)
    for at in range(0, size, 4096):
        try:
            os.pwrite(writing, os.pread(reading, 4096, at), at)
        except OSError as error:
            if error.errno != errno.EIO:
                raise


def _digest(path: str) -> str:
    hash = sha256()
    with open(path, "rb", buffering=0) as file:
        try:
            while piece := file.read(_PIECE_BYTES):
                hash.update(piece)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return ""  # of a file that cannot be read whole there is no hash
    return hash.hexdigest()

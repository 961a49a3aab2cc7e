"""Putting a bundle where it was asked for: beside its place until it is whole, then there at once, or not at all."""

from __future__ import annotations

import gzip
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256

from runguard import private
from runguard.errors import UsageError

ARCHIVE = ".tar.gz"
MTIME_S = 315_532_800  # 1980: the same record gives the same archive


class Parcel:
    """A directory to fill, which becomes the directory or the archive at `path`."""

    def __init__(self, path: str, place: str) -> None:
        self.path = path
        self.archive_sha256: str | None = None
        self.directory = os.path.join(place, "bundle")
        self._archive = os.path.join(place, "archive")
        os.mkdir(self.directory, 0o700)

    def close(self) -> None:
        """Nothing is added any more: pack it, where an archive is wanted. Raises OSError."""
        for directory, names, files in os.walk(self.directory):
            for name in (*files, *names):
                os.utime(os.path.join(directory, name), (MTIME_S, MTIME_S))
        if self.path.endswith(ARCHIVE):
            name = os.path.basename(self.path).removesuffix(ARCHIVE) or "bundle"
            _pack(self.directory, name, self._archive)
            self.archive_sha256 = _sha256(self._archive)

    def deliver(self) -> None:
        """Give it its name. Raises OSError, also where something has that name by now."""
        if self.archive_sha256 is not None:
            os.link(self._archive, self.path)  # a rename would replace what is there
        else:
            os.mkdir(self.path, 0o700)
            try:
                os.rename(self.directory, self.path)
            except OSError:
                os.rmdir(self.path)
                raise
        private.sync(os.path.dirname(self.path) or ".")


@contextmanager
def parcel(path: str) -> Iterator[Parcel]:
    """Give a parcel for `path`; what was not delivered is removed. Raises UsageError where PATH exists, and OSError."""
    path = os.path.abspath(path)
    if os.path.lexists(path):
        raise UsageError(f"export: {path} exists: nothing is overwritten; name another")
    place = tempfile.mkdtemp(prefix=f".{os.path.basename(path)[:100]}.", suffix=".partial", dir=os.path.dirname(path))
    try:
        yield Parcel(path, place)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _pack(directory: str, name: str, archive: str) -> None:
    fd = os.open(archive, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(fd, "wb") as file:
        with (
            gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=MTIME_S) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar,
        ):
            tar.add(directory, arcname=name, filter=_plain)
        file.flush()
        os.fsync(file.fileno())


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Leave out what differs from host to host; members come in the order of their names."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = MTIME_S
    member.mode = 0o700 if member.isdir() else 0o600
    return member


def _sha256(path: str) -> str:
    with open(path, "rb") as file:
        hash = sha256()
        while data := file.read(1 << 20):
            hash.update(data)
    return hash.hexdigest()

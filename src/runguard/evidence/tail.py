"""The file to which a job appends its case entries, read line by line while it grows."""

from __future__ import annotations

import errno
import os
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from runguard import private
from runguard.evidence.entries import MOST_LINE_BYTES

if TYPE_CHECKING:
    from hashlib import _Hash

MOST_LINES = 1000  # of one look
_LOOK_BYTES = 512 << 10
_SCAN_BYTES = 8 << 20  # of a line without an end, in one look
HEAD_BYTES = 256
_REMEMBERED_BYTES = 64  # that tell whether what was read still stands there


class Line(NamedTuple):
    """One line: `data` without its newline, or None for one so long that only its beginning is kept."""

    offset: int
    size_bytes: int  # newline included
    data: bytes | None
    sha256: str = ""  # of a long line, newline included
    head: bytes = b""  # of a long line


class Look(NamedTuple):
    """What was found at an offset: whole lines, in order. `more`: there is more to be read at once."""

    lines: list[Line]
    more: bool
    size_bytes: int  # of the file: less than the offset where it was truncated


class UnfitError(OSError):
    """What stands in the place of the file can never be taken in."""


class Tail:
    """The file at `path`, opened without following links.

    Raises UnfitError where it is a link, no regular file or not ours alone, and OSError where it cannot be opened.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENXIO):  # a link; a socket
                raise UnfitError(errno.EPERM, private.file_flaw(os.lstat(path)) or error.strerror) from error
            raise
        if flaw := private.file_flaw(os.fstat(self._fd)):
            self.close()
            raise UnfitError(errno.EPERM, flaw)
        self._long: _Long | None = None
        self._seen = (0, b"")  # how far lines were told, and the bytes before that

    def look(self, offset: int, *, last: bool = False) -> Look:
        """Return the lines from `offset` on, at most 1,000. A line without its newline is only told with `last`."""
        look = self._look(offset, os.fstat(self._fd).st_size, last=last)
        if look.lines:
            line = look.lines[-1]
            ended = b"" if line.data is None else line.data + b"\n" * (line.size_bytes - len(line.data))
            self._seen = (line.offset + line.size_bytes, ended[-_REMEMBERED_BYTES:])
        return look

    def changed(self, offset: int) -> bool:
        """Return whether what stood before the offset, up to which lines were told, stands there no more."""
        upto, before = self._seen
        return upto == offset and os.pread(self._fd, len(before), offset - len(before)) != before

    def replaced(self) -> bool:
        """Return whether the path is that of another file by now."""
        try:
            return not os.path.samestat(os.stat(self.path, follow_symlinks=False), os.fstat(self._fd))
        except OSError:
            return False

    def is_open_as(self, fd: int) -> bool:
        """Return whether a descriptor is open on the same file."""
        return os.path.samestat(os.fstat(fd), os.fstat(self._fd))

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._fd)

    def _look(self, offset: int, size: int, *, last: bool) -> Look:
        if size <= offset:
            return Look([], more=False, size_bytes=size)
        if self._long is not None and self._long.offset == offset:
            return self._scan(self._long, size, last=last)
        data = os.pread(self._fd, _LOOK_BYTES, offset)
        *whole, rest = data.split(b"\n", MOST_LINES)
        lines = []
        for line in whole:
            lines.append(Line(offset, len(line) + 1, line))
            offset += len(line) + 1
        if not lines and len(rest) > MOST_LINE_BYTES:
            self._long = _Long(offset)
            return self._scan(self._long, size, last=last)
        if offset < size:
            at_end = offset + len(rest) == size and b"\n" not in rest
            if at_end and last and len(lines) < MOST_LINES:
                lines.append(Line(offset, len(rest), rest))
                return Look(lines, more=False, size_bytes=size)
            return Look(lines, more=bool(lines) and (last or not at_end), size_bytes=size)
        return Look(lines, more=False, size_bytes=size)

    def _scan(self, long: _Long, size: int, *, last: bool) -> Look:
        """Go on with a line whose end was not in sight, in constant memory."""
        until = min(long.offset + long.size + _SCAN_BYTES, size)
        ended = False
        while not ended and long.offset + long.size < until:
            piece = os.pread(self._fd, _LOOK_BYTES, long.offset + long.size)
            if not piece:
                break
            at = piece.find(b"\n") + 1
            ended = at > 0
            long.add(piece[:at] if ended else piece)
        at_end = long.offset + long.size >= size
        if ended or (last and at_end):
            self._long = None
            line = Line(long.offset, long.size, None, long.hash.hexdigest(), long.head)
            return Look([line], more=not at_end, size_bytes=size)
        return Look([], more=not at_end, size_bytes=size)


class _Long:
    """A line so long that it is only hashed."""

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.size = 0
        self.head = b""
        self.hash: _Hash = sha256()

    def add(self, piece: bytes) -> None:
        if not self.head:
            self.head = piece[:HEAD_BYTES]
        self.hash.update(piece)
        self.size += len(piece)

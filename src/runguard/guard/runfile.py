"""The run's own file: its lock says that the run lives, its content what a killed guard leaves behind.

The lock is taken before the file is used and inherited by the command, so whoever finds it free knows that both are
gone. The content is a header at 0, then the output's head, then two segments of its tail that are filled in turn: what
is written is only ever appended, and the header, written last, says how much counts. Nothing is synced: the file is for
the death of a process, not of the host.
"""

from __future__ import annotations

import fcntl
import os
from _struct import Struct

from runguard.guard import host
from runguard.guard.capture import HEAD_BYTES, HEAD_FRAMES, TAIL_BYTES, TAIL_FRAMES
from runguard.guard.descriptors import high_fd
from runguard.guard.frames import HEADER as FRAME_HEADER
from runguard.guard.frames import decode, encode, last, size
from runguard.guard.lock import unlock
from runguard.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runguard.guard.capture import Capture
    from runguard.guard.frames import Frame

# magic; limits of head and tail; guard's and command's pid and start; bytes of stdout and stderr;
# encoded bytes of head and of both segments; which segment is the newer, and _MERGED where both streams are one pipe
_HEADER = Struct("<16sIIIQIQQQIIIB")
_MAGIC = b"runguard run 1\n\0"
_HEAD_AT = 4096
ORDER = ".kill"  # a file beside it: another start has ordered the end of the run (see ending_others.py)
_MERGED = 4


class Left(NamedTuple):
    """What a run file tells about its run. Head and tail are frames (see frames.py)."""

    guard_pid: int
    guard_start: int | None  # kernel ticks since boot
    command_pid: int | None  # None: not spawned yet
    command_start: int | None
    head: bytes
    tail: bytes
    stdout_bytes: int
    stderr_bytes: int
    omitted_bytes: int  # between head and tail
    merged: bool  # both streams are one pipe, counted as stdout


class RunFile:
    """An open, locked run file; `fd` is inherited by the command."""

    __slots__ = (
        "_command",
        "_counts",
        "_guard",
        "_head_full",
        "_lengths",
        "_limits",
        "_merged",
        "_mirrored",
        "_newer",
        "fd",
        "path",
        "remark",
    )

    def __init__(self, fd: int, path: str, limits: tuple[int, int], guard_start: int | None) -> None:
        self.fd = fd
        self.path = path
        self.remark: str | None = None  # why the output is not mirrored (any more)
        self._limits = limits
        self._guard = (os.getpid(), guard_start or 0)
        self._command = (0, 0)
        self._counts = (0, 0)
        self._lengths = [0, 0, 0]  # encoded bytes of head and segments
        self._newer = 1
        self._merged = 0
        self._head_full = False
        self._mirrored = 0  # of the interleaved output
        self._write_header()

    def spawned(self, pid: int, start_ticks: int | None = None, *, merged: bool = False) -> None:
        """Note the command's pid and start time (looked up where not given), and whether its streams are one pipe.

        Never raises: the command lives.
        """
        self._merged = _MERGED if merged else 0
        try:
            self._command = (pid, (host.start_ticks(pid) if start_ticks is None else start_ticks) or 0)
        except Exception as error:  # noqa: BLE001 - the lock tells as much, where the time is not known
            self._command = (pid, 0)
            self.remark = f"{self.path}: the command's start time is not known: {error!r}"
        self._write_header()

    def behind(self, capture: Capture) -> int:
        """Return how many bytes of the output are not mirrored yet."""
        return 0 if self.remark else capture.total - self._mirrored

    def mirror(self, capture: Capture) -> None:
        """Write what came since the last call, as far as it belongs to head or tail.

        A full disk, or no memory, ends the mirror with a remark; the job does not care.
        """
        if self.behind(capture) == 0:
            return
        try:
            fresh = capture.since(self._mirrored)
            overflow = self._fill_head(fresh.head)
            self._append_tail(fresh.tail if fresh.gap else [*overflow, *fresh.tail], alone=fresh.gap)
        except (OSError, MemoryError) as error:
            self._end_mirror(error)
            return
        self._mirrored = capture.total
        self._counts = (capture.count(1), capture.count(2))
        self._write_header()

    def end_was_ordered(self) -> bool:
        """Return whether another start of the job has ordered the end of the run."""
        return os.path.lexists(self.path + ORDER)

    def remove(self) -> None:
        """Unlink the file and unlock it for every process that inherited it."""
        _unlink(self.path)
        unlock(self.fd)

    def leave(self) -> None:
        """Unlock the file and leave it for whoever brings the run's record over from the journal."""
        unlock(self.fd)

    def _fill_head(self, frames: list[Frame]) -> list[Frame]:
        """Append `frames` to the head section; return those for which it has no room."""
        at = self._lengths[0]
        room = 0 if self._head_full else _head_capacity(self._limits) - at
        fitting = 0
        for frame in frames:
            room -= FRAME_HEADER.size + len(frame.data)
            if room < 0:
                break
            fitting += 1
        self._lengths[0] += self._write(encode(frames[:fitting]), _HEAD_AT + at)
        self._head_full = self._head_full or fitting < len(frames)
        return frames[fitting:]

    def _append_tail(self, frames: list[Frame], *, alone: bool) -> None:
        """Append `frames` to the newer segment, or begin the other; `alone`: nothing before them is of use."""
        encoded = encode(frames)
        capacity = _segment_capacity(self._limits)
        if len(encoded) > capacity:
            encoded = encode(last(frames, self._limits[1]))[:capacity]
            alone = True
        if alone or self._lengths[self._newer] + len(encoded) > capacity:
            older, self._newer = self._newer, 3 - self._newer
            self._lengths[self._newer] = 0
            if alone:
                self._lengths[older] = 0
        at = _segment_at(self._limits, self._newer) + self._lengths[self._newer]
        self._lengths[self._newer] += self._write(encoded, at)

    def _write(self, data: bytes, at: int) -> int:
        view = memoryview(data)
        while view:
            written = os.pwrite(self.fd, view, at)
            view = view[written:]
            at += written
        return len(data)

    def _write_header(self) -> None:
        try:
            header = _HEADER.pack(
                _MAGIC,
                *self._limits,
                *self._guard,
                *self._command,
                *self._counts,
                *self._lengths,
                self._newer | self._merged,
            )
            os.pwrite(self.fd, header, 0)
        except (OSError, MemoryError) as error:
            self._end_mirror(error)

    def _end_mirror(self, error: OSError | MemoryError) -> None:
        why = getattr(error, "strerror", None) or repr(error)
        self.remark = f"the output is not mirrored in {self.path}: {why}"


def create(
    directory: str,
    run_id: str,
    *,
    head_limit: int = HEAD_BYTES,
    tail_limit: int = TAIL_BYTES,
    guard_start: int | None = None,
) -> RunFile:
    """Create and lock `directory/run_id`, 0600; `guard_start` is our own start in kernel ticks.

    Raises OSError where it cannot be made.
    """
    path = os.path.join(directory, run_id)
    unlocked = os.path.join(directory, f".{run_id}")  # it gets its name with its lock: tidying finds none without
    fd = os.open(unlocked, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(fd, 0o600)  # whatever the umask
        fcntl.flock(fd, fcntl.LOCK_EX)
        os.rename(unlocked, path)
    except BaseException:
        os.unlink(unlocked)
        os.close(fd)
        raise
    return RunFile(high_fd(fd), path, (head_limit, tail_limit), guard_start)


def probe(path: str) -> bool:
    """Return whether the run lives: somebody holds its file's lock. False where the file has gone.

    Raises OSError where the file cannot be opened.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def read(path: str) -> Left | None:
    """Return what the file tells; None where it has no header (yet). Torn content is read as far as it goes.

    Raises OSError where the file cannot be read.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        header = os.pread(fd, _HEADER.size, 0)
        if len(header) < _HEADER.size:
            return None
        magic, head_limit, tail_limit, guard_pid, guard_start, pid, start, out, err, *lengths, state = _HEADER.unpack(
            header
        )
        newer = state & ~_MERGED
        if magic != _MAGIC or newer not in (1, 2):
            return None
        limits = (head_limit, tail_limit)
        head = decode(_section(fd, _HEAD_AT, min(lengths[0], _head_capacity(limits))), torn=True)
        tail: list[Frame] = []
        for segment in (3 - newer, newer):
            length = min(lengths[segment], _segment_capacity(limits))
            tail += decode(_section(fd, _segment_at(limits, segment), length), torn=True)
    finally:
        os.close(fd)
    tail = last(tail, tail_limit)
    omitted = max(0, out + err - size(head) - size(tail))
    return Left(
        guard_pid,
        guard_start or None,
        pid or None,
        start or None,
        encode(head),
        encode(tail),
        out,
        err,
        omitted,
        bool(state & _MERGED),
    )


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return


def _section(fd: int, at: int, length: int) -> bytes:
    parts = []
    while length > 0 and (part := os.pread(fd, length, at)):
        parts.append(part)
        at += len(part)
        length -= len(part)
    return b"".join(parts)


def _head_capacity(limits: tuple[int, int]) -> int:
    return limits[0] + HEAD_FRAMES * FRAME_HEADER.size


def _segment_capacity(limits: tuple[int, int]) -> int:
    """A whole tail, with the head's overflow and every header there can be."""
    return limits[0] + limits[1] + (HEAD_FRAMES + TAIL_FRAMES) * FRAME_HEADER.size


def _segment_at(limits: tuple[int, int], segment: int) -> int:
    return _HEAD_AT + _head_capacity(limits) + (segment - 1) * _segment_capacity(limits)

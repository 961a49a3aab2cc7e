"""Our own stdout and stderr, written without ever making the loop wait.

They are shared with others, so they cannot be made non-blocking. A regular file or /dev/null is written at once;
anything else (pipe, terminal, socket) by a thread of its own, which takes from a queue. Much output for a pipe is
passed on inside the kernel (see passing.py).
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import stat
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _queue import SimpleQueue
    from collections.abc import Callable
    from typing import Any

    from runguard.guard.passing import Passage

QUEUE_BYTES = 2 << 20  # with more than this waiting, no more is read from the command's pipe
_RESUME_BYTES = QUEUE_BYTES // 2
_LARGEST_WRITE = 256 << 10
_QUEUE_AFTER_S = 1.0  # where nothing could be passed on
_SMALLEST_WRITE = 4096  # to a slow reader, so that its progress shows
_SLOW_S = 0.02
_POOR_S = 0.05  # until memory is tried for again
_PIPE_BYTES = 64 << 10  # a pipe's size as it is made
_LARGE_PIPE_BYTES = 1 << 20
_STACK_BYTES = 256 << 10  # of a thread; the default is 8 MiB of address space, which `ulimit -v` counts
# Nobody is there any more. EIO is a terminal that hung up.
_GONE = (errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN, errno.ESHUTDOWN, errno.ENXIO)
_PLAIN_DEVICES = (os.makedev(1, 3),)  # /dev/null


class Outlet:
    """Where one stream goes. `fd` is 1 or 2; `poke_fd` wakes the loop when the queue has become short.

    `gone` is true when nobody reads any more; what is put then is dropped silently. `dropped` counts the bytes that
    could not be written for another reason, `error` says which. `full` is true when our pipe had no room for what is
    passed on; whoever owns the loop clears it when poll says that it has.
    """

    __slots__ = (
        "_accepted",
        "_direct",
        "_empties",
        "_may_pass",
        "_passage",
        "_poke_at",
        "_poke_fd",
        "_queue",
        "_waits_since_s",
        "_widened",
        "abandoned",
        "dropped",
        "error",
        "fd",
        "full",
        "gone",
        "settled",
    )

    def __init__(self, fd: int, poke_fd: int) -> None:
        self.fd = fd
        self.gone = False
        self.full = False
        self.abandoned = 0  # bytes put, or still waiting, after it was gone
        self.dropped = 0
        self.error: OSError | None = None
        self.settled = 0  # bytes written or dropped: only ever changed by whoever writes
        self._accepted = 0
        self._poke_fd = poke_fd
        self._poke_at = -1
        self._widened = False
        self._queue: SimpleQueue[bytes | None] | None = None
        self._passage: Passage | None = None
        found = os.fstat(fd)
        plain_device = stat.S_ISCHR(found.st_mode) and found.st_rdev in _PLAIN_DEVICES
        self._direct = stat.S_ISREG(found.st_mode) or plain_device
        self._may_pass = stat.S_ISFIFO(found.st_mode)
        self._empties = False  # the queue, because then output can be passed on
        self._waits_since_s = 0.0  # with it; 0: it does not wait

    @property
    def queued(self) -> int:
        """The bytes that are not yet written."""
        return self._accepted - self.settled

    def put(self, data: bytes) -> None:
        """Write `data`, or queue it for the thread; never wait."""
        if self.gone:
            self.abandoned += len(data)
            return
        self._accepted += len(data)
        if self._direct:
            self._write(data)
            return
        if self._queue is None:
            self._queue = start_thread(self.serve)
        if self._queue is None:  # no thread to be had (a limit): better to wait for the reader than to lose anything
            self._direct = True
            self._write(data)
            return
        if len(data) > _PIPE_BYTES and not self._widened:
            self._widened = True
            widen_pipe(self.fd)
        self._queue.put(data)

    def pass_on(self, from_fd: int, most: int, *, wanted: bool) -> int | None:
        """Pass on up to `most` of what the pipe `from_fd` has, and return how many bytes that was.

        With `wanted` they are still to be read. 0: it cannot be done, or `from_fd` is at its end. None: it is
        `congested` now.
        """
        if not self._may_pass or self.gone:
            return 0
        if self.queued:
            self._empties = True
            self._waits_since_s = time.monotonic()
            return None
        try:
            if self._passage is None:
                self._passage = self._open_passage(wanted=wanted)
            passed = self._passage(from_fd, most) if self._passage is not None else 0
        except BlockingIOError:
            self.full = True
            self._waits_since_s = self._waits_since_s or time.monotonic()
            return None
        except OSError as error:
            if error.errno in _GONE:
                self._fail(error, 0)
            self._may_pass = False
            return 0
        self._accepted += passed
        self.settled += passed
        self._waits_since_s = 0.0
        return passed

    def waits(self) -> bool:
        """Return whether output waits to be passed on; after a second it does not: then it is queued again.

        A command that would end soon shall not be held up by a reader who has stopped.
        """
        if not (self.full or self._empties):
            return False
        if time.monotonic() - self._waits_since_s >= _QUEUE_AFTER_S:
            self._may_pass = self.full = self._empties = False
        return self._may_pass

    def congested(self) -> bool:
        """Return whether it takes no more now; then the loop is poked when half of a full queue is written.

        Before anything is passed on, the queue becomes empty. Of a `full` pipe poll tells.
        """
        if self._empties:
            self._empties = self.busy()
        return self.full or self._empties or self._ask(QUEUE_BYTES, _RESUME_BYTES)

    def busy(self) -> bool:
        """Return whether anything is queued; then the loop is poked when nothing is."""
        return self._ask(0, 0)

    def abandon(self) -> None:
        """Drop what is queued, and count it as `abandoned`; one write may be stuck for ever."""
        self.abandoned += self.queued
        self.gone = True
        self.full = False

    def end(self) -> None:
        """Let the thread end when its queue is empty."""
        if self._queue is not None:
            self._queue.put(None)

    def serve(self, queue: SimpleQueue[bytes | None]) -> None:
        """Be the thread: write what is queued, until the end."""
        while True:
            try:
                data = queue.get()
            except MemoryError:
                time.sleep(_POOR_S)
                continue
            if data is None:
                return
            self._write(data)
            if self.queued <= self._poke_at or self.gone:
                self._poke_at = -1
                self._poke()

    def _open_passage(self, *, wanted: bool) -> Passage | None:
        try:
            from runguard.guard.passing import passage  # only for much output

            found = passage(self.fd, wanted=wanted)
        except (ImportError, MemoryError):
            found = None
        self._may_pass = found is not None
        if found is not None:
            widen_pipe(self.fd)
        return found

    def _ask(self, limit: int, poke_at: int) -> bool:
        if self.queued <= limit or self.gone:
            return False
        self._poke_at = poke_at
        # The thread may have come below the mark before it could see that we care.
        return not self.gone and self.queued > poke_at

    def _write(self, data: bytes) -> None:
        size, at = len(data), 0
        at_once = _LARGEST_WRITE if self._direct else _SMALLEST_WRITE
        while at < size:
            if self.gone:
                self.settled += size - at
                return
            began_s = 0.0 if self._direct else time.monotonic()
            try:
                written = os.write(self.fd, memoryview(data)[at : at + at_once])
            except MemoryError:  # it comes back, or the guard's end frees the reader: a thread that dies would not
                time.sleep(_POOR_S)
                continue
            except BlockingIOError:  # somebody else has made the file non-blocking
                poll = select.poll()
                poll.register(self.fd, select.POLLOUT)
                poll.poll(1000)
                continue
            except OSError as error:
                self._fail(error, size - at)
                return
            self.settled += written
            at += written
            if not self._direct:
                quick = time.monotonic() - began_s < _SLOW_S
                at_once = min(at_once * 4, _LARGEST_WRITE) if quick else _SMALLEST_WRITE

    def _fail(self, error: OSError, rest: int) -> None:
        self.error = self.error or error
        self.settled += rest
        if error.errno in _GONE or (error.errno == errno.EIO and not self._direct):
            self.gone = True
        else:
            self.dropped += rest

    def _poke(self) -> None:
        try:
            os.write(self._poke_fd, b"!")
        except OSError:  # full: the loop will wake all the same
            return


def say(text: str, patience_s: float = 2.0) -> bool:
    """Write a remark to stderr; give up, and return False, where nobody takes it within `patience_s`."""
    data = text.encode("utf-8", "surrogateescape")
    poll = select.poll()
    poll.register(2, select.POLLOUT)
    while data:
        if not poll.poll(patience_s * 1000):
            return False
        try:
            data = data[os.write(2, data[: select.PIPE_BUF]) :]
        except OSError:
            return False
    return True


def widen_pipe(fd: int) -> None:
    """Let a busy pipe hold a mebibyte; what is no pipe, or may not grow, stays as it is."""
    try:
        fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, _LARGE_PIPE_BYTES)
    except OSError:
        return


def start_thread(serve: Callable[[SimpleQueue[Any]], None]) -> SimpleQueue[Any] | None:
    """Run `serve` in a thread and return the queue that it was given, or None where there can be no thread."""
    try:
        from _queue import SimpleQueue  # neither is needed where nothing is written
        from _thread import stack_size, start_new_thread

        queue: SimpleQueue[Any] = SimpleQueue()
        default = stack_size(_STACK_BYTES)
        try:
            start_new_thread(serve, (queue,))
        finally:
            stack_size(default)
    except (RuntimeError, MemoryError, ImportError, OSError):  # no thread, no memory for it, no file to be opened
        return None
    return queue

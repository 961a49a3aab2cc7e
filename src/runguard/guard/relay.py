"""The command's output on its way from its pipes to the capture and to our own stdout and stderr."""

from __future__ import annotations

import fcntl
import os
import select
import time

from runguard.guard.outlet import Outlet, widen_pipe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runguard.guard.capture import Capture
    from runguard.guard.process import Child, Plan
    from runguard.guard.spool import Spool

_READ_BYTES = 64 << 10  # a pipe's size as it is made
_LARGE_READ_BYTES = 1 << 20
_LEAST_READ_BYTES = 2 << 10  # where there is hardly any memory
_BUSY_BYTES, _BUSY_S = 256 << 10, 0.1  # a pipe through which so much comes in so short a time is busy
_GATHER_S, _LEAST_GATHER_S = 0.001, 0.0001
_NAMES = ("", "stdout", "stderr")


class _Source:
    """The read end of one of the command's pipes."""

    __slots__ = (
        "_recent_bytes",
        "_recent_from_s",
        "at_once",
        "capacity",
        "fd",
        "gather_s",
        "had_little",
        "lean",
        "outlet",
        "passed",
        "paused",
        "read_since_end",
        "stream",
    )

    def __init__(self, stream: int, fd: int, outlet: Outlet | None) -> None:
        self.stream = stream
        self.fd = fd
        self.outlet = outlet
        self.at_once = _READ_BYTES
        self.had_little = False  # although it is busy
        self.gather_s = _GATHER_S  # how long it is left alone then, to fill
        self.lean = False  # there was no memory to read more
        self.capacity = 0
        self.paused = False
        self.passed = 0  # bytes that were passed on and are still to be read
        self.read_since_end = 0
        self._recent_bytes = 0
        self._recent_from_s = 0.0

    def judge(self, length: int, now_s: float) -> None:
        """Take more at once from a pipe that has become busy; note where a busy one had little this time."""
        self.read_since_end += length
        if self.lean:
            return
        if self.at_once == _LARGE_READ_BYTES:
            if self.had_little:
                self._adapt(length)
            self.had_little = length < _READ_BYTES
            return
        if now_s - self._recent_from_s > _BUSY_S:
            self._recent_bytes, self._recent_from_s = 0, now_s
        self._recent_bytes += length
        if self._recent_bytes > _BUSY_BYTES:
            self.at_once = _LARGE_READ_BYTES
            widen_pipe(self.fd)

    def _adapt(self, gathered: int) -> None:
        """Leave it alone for less time where it was nearly full meanwhile and its writer waited, else for more."""
        if gathered > _LARGE_READ_BYTES // 2:
            self.gather_s = max(self.gather_s / 2, _LEAST_GATHER_S)
        elif gathered < _READ_BYTES:
            self.gather_s = min(self.gather_s * 2, _GATHER_S)

    def ask_less(self) -> bool:
        """Read less at once from now on; return False where it is the least already."""
        if self.at_once <= _LEAST_READ_BYTES:
            return False
        self.at_once = max(self.at_once // 8, _LEAST_READ_BYTES)
        self.lean = True
        self.had_little = False
        return True


class Relay:
    """Moves output while its owner's loop tells it which pipes are readable; waits itself for a millisecond at most.

    `sources` are the pipes that are still open, by descriptor. `remarks` is what a person should know at the end.
    """

    def __init__(self, child: Child, plan: Plan, capture: Capture, poll: select.poll, poke_fd: int) -> None:
        self.remarks: list[str] = []
        self._capture = capture
        self._poll = poll
        self._started_s = child.started_s
        self._outlets = {} if plan.output == "never" else {stream: Outlet(stream, poke_fd) for stream, _ in child.pipes}
        self._spooling = plan.output == "on-failure"
        self._spool_dir = plan.spool_dir
        self._spool: Spool | None = None
        self._spool_failed = ""
        self._spooled = 0  # bytes that were kept for later where the rest could not be
        self._backlog: Spool | None = None  # it is being passed on
        self._settled = 0
        self._progress_s = 0.0
        self._gave_up = False
        self._undelivered = 0
        self.sources = {fd: _Source(stream, fd, self._outlets.get(stream)) for stream, fd in child.pipes}
        for fd in self.sources:
            poll.register(fd, select.POLLIN)

    def read(self, fd: int) -> None:
        """Take once what the readable pipe `fd` has, and pass it on."""
        source = self.sources[fd]
        if source.had_little:
            time.sleep(source.gather_s)  # or reader and writer of many small pieces would take turns, a piece at a time
        if source.at_once == _LARGE_READ_BYTES and not source.passed and not self._pass_on(source):
            return
        while True:
            try:
                data = os.read(fd, min(source.passed or source.at_once, source.at_once))
            except MemoryError:  # `ulimit -v`
                if not (source.ask_less() or self._capture.keep_less()):
                    raise
                return
            if not data:
                self._close(source)
                return
            self._take(source, data)
            if not source.passed:
                return

    def ready(self, fd: int) -> None:
        """There is room again in our own `fd`, 1 or 2, that had been full; or nobody reads it any more."""
        self._poll.unregister(fd)
        for outlet in self._outlets.values():
            if outlet.fd == fd:
                outlet.full = False

    def balance(self) -> None:
        """Pause pipes whose outlet is full, resume them, and close those whose outlet has lost its reader."""
        for source in list(self.sources.values()):
            outlet = source.outlet
            if outlet is None:
                continue
            if outlet.gone and not self._gave_up:
                self._close(source)  # the command's next write finds it closed, as it would without us
                continue
            outlet.waits()
            pause = self._backlog is not None or outlet.congested()
            if pause != source.paused:
                source.paused = pause
                if pause:
                    self._poll.unregister(source.fd)
                else:
                    self._poll.register(source.fd, select.POLLIN)

    def waits(self) -> bool:
        """Return whether output waits to be passed on, which is to be looked at again soon."""
        return any(outlet.waits() for outlet in self._outlets.values())

    def pump(self) -> bool:
        """Pass on a piece of the backlog; return whether there may be more that can be passed on at once."""
        if not self.has_backlog():
            return False
        assert self._backlog is not None
        piece = self._backlog.take()
        if piece is None:
            self._backlog.close()
            self._backlog = None
            self.balance()
            return False
        self._outlets[piece[0]].put(piece[1])
        return True

    def has_backlog(self) -> bool:
        """Return whether `pump` can pass on more at once."""
        return self._backlog is not None and not any(outlet.congested() for outlet in self._outlets.values())

    def mark_end(self) -> None:
        """The command has ended: what its pipes hold now is all that it wrote itself."""
        for source in self.sources.values():
            source.read_since_end = 0
            source.capacity = fcntl.fcntl(source.fd, fcntl.F_GETPIPE_SZ)
        self._progress_s = time.monotonic()

    def drained(self) -> bool:
        """Return whether everything was read that the command itself can have written.

        That is where a pipe is empty, or as much was read since the end as it can have held then.
        """
        waiting = select.poll()
        for source in self.sources.values():
            if source.paused or source.passed:
                return False
            if source.read_since_end < source.capacity:
                waiting.register(source.fd, select.POLLIN)
        return not waiting.poll(0)

    def conclude(self, *, succeeded: bool) -> None:
        """Read no more; with `on-failure`, let the output go, or begin to pass it on."""
        for source in list(self.sources.values()):
            self._close(source)
        self._spooling = False
        if self._spool is not None:
            if succeeded:
                self._spool.close()
            else:
                self._backlog = self._spool
            self._spool = None

    def delivered(self) -> bool:
        """Return whether our outlets have taken everything."""
        return self._backlog is None and not any(outlet.busy() for outlet in self._outlets.values())

    def stalled(self, now_s: float, patience_s: float) -> bool:
        """Return whether something waits for our reader, who has taken nothing for `patience_s`."""
        settled = sum(outlet.settled for outlet in self._outlets.values())
        if settled != self._settled or not any(outlet.queued or outlet.full for outlet in self._outlets.values()):
            self._settled = settled
            self._progress_s = now_s
        return now_s - self._progress_s >= patience_s

    def give_up(self) -> None:
        """Drop what our reader does not take. What is still in the pipes is captured all the same."""
        self._gave_up = True
        for outlet in self._outlets.values():
            outlet.abandon()
        if self._backlog is not None:
            self._undelivered += self._backlog.left
            self._backlog.close()
            self._backlog = None
        self.balance()

    def end(self) -> None:
        """Let go of the outlets and say what they could not write."""
        if self._spool_failed:
            self.remarks.append(self._what_was_spooled())
        undelivered = self._undelivered + sum(outlet.abandoned for outlet in self._outlets.values())
        if self._gave_up:
            self.remarks.append(f"nobody took our output: {undelivered} bytes were not delivered")
        for outlet in self._outlets.values():
            outlet.end()
            if outlet.gone and not self._gave_up:
                self.remarks.append(f"nobody read our {_NAMES[outlet.fd]} to its end; the command's was closed")
            if outlet.dropped and outlet.error is not None:
                why = outlet.error.strerror or outlet.error
                self.remarks.append(f"{outlet.dropped} bytes could not be written to our {_NAMES[outlet.fd]}: {why}")

    def _pass_on(self, source: _Source) -> bool:
        """Pass on inside the kernel what that can be done with; return whether there is anything to be read now."""
        outlet = source.outlet
        if outlet is None or self._spooling or self._backlog is not None:
            return True
        passed = outlet.pass_on(source.fd, source.at_once, wanted=self._capture.wanted)
        if passed is None:
            if outlet.full:
                self._poll.register(outlet.fd, select.POLLOUT)
            return False
        if self._capture.wanted or not passed:
            source.passed = passed
            return True
        source.judge(passed, time.monotonic())
        self._capture.pass_by(source.stream, passed)
        return False

    def _take(self, source: _Source, data: bytes) -> None:
        """Pass on what was read, where that has not been done, and capture it."""
        now_s = time.monotonic()
        source.judge(len(data), now_s)
        if source.passed:
            source.passed -= len(data)
        elif source.outlet is not None:
            if self._spooling:
                self._keep_for_later(source.stream, source.outlet, data)
            elif self._backlog is not None:
                self._backlog.follow(source.stream, data)
            else:
                source.outlet.put(data)
        self._capture.feed(source.stream, int((now_s - self._started_s) * 1000), data)

    def _keep_for_later(self, stream: int, outlet: Outlet, data: bytes) -> None:
        """Keep it on disk; where there is no room, begin to pass on what is there, and then what comes."""
        try:
            if self._spool is None:
                from runguard.guard.spool import Spool  # only for those who want no output of a success

                self._spool = Spool(self._spool_dir)
            self._spool.add(stream, data)
        except (ImportError, OSError, MemoryError) as error:
            self._spooling = False
            self._spool_failed = getattr(error, "strerror", None) or repr(error)
            if self._spool is None:
                outlet.put(data)
                return
            self._spooled = self._spool.left
            self._backlog, self._spool = self._spool, None
            self._backlog.follow(stream, data)

    def _what_was_spooled(self) -> str:
        if not self._spooled:
            return f"the output could not be kept for later and was passed on: {self._spool_failed}"
        more = self._capture.total - self._spooled
        return (
            f"only the first {self._spooled} bytes of the output could be kept for later; they were passed on, and the"
            f" {more} after them as they came: {self._spool_failed}"
        )

    def _close(self, source: _Source) -> None:
        if not source.paused:
            self._poll.unregister(source.fd)
        os.close(source.fd)
        del self.sources[source.fd]

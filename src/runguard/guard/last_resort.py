"""A command is never abandoned: what is done where supervising it has failed, by a fault of ours or for want of memory.

Its end is awaited, signals are passed on, its limits hold. Its output is read, so that it neither blocks nor dies of
a closed pipe, and dropped. Loaded before the spawn: where this is needed, nothing may be loadable any more.
"""

from __future__ import annotations

import os
import select
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runguard.guard.course import Course
    from runguard.guard.relay import Relay
    from runguard.guard.signals import Signals

_READ_BYTES = 4096
_LOOK_S = 0.1
# Address space to let go of, where there is none: what Python takes at once for small objects is a MiB. Never touched,
# so it is no memory.
_reserve = [bytes(2 << 20)]
_IN_WORDS = "runguard failed at supervising the command and from then on dropped its output"


def see_through(course: Course, signals: Signals, relay: Relay | None) -> None:
    """Wait for the command's end, and its group's where we stop it; `relay` is as far as it came. Never raises."""
    _reserve.clear()
    fds = [fd for _, fd in course.child.pipes] if relay is None else list(relay.sources)
    until_s: float | None = None
    while True:
        # Each step by itself: one that finds no memory must not keep the others from being taken.
        try:
            now_s = time.monotonic()
            for number in signals.take():
                course.heed(number, now_s)
            course.reap()
            course.enforce_limits(now_s)
            if until_s is None and course.over and course.tree_is_done(now_s):
                until_s = now_s + course.plan.drain_s
            if until_s is not None and (now_s >= until_s or not (fds or _undelivered(relay))):
                break
            wait_s = _pause_s(course, now_s)
        except Exception:  # noqa: BLE001 - most likely memory; there may be some again in the next round
            wait_s = _LOOK_S
        try:
            _discard(fds, signals.fd, wait_s)
        except Exception:  # noqa: BLE001
            time.sleep(_LOOK_S)
    for fd in fds:
        _close(fd)
    try:
        course.name_stragglers([], None)
    except Exception:  # noqa: BLE001
        return


def describe(error: Exception) -> str:
    """Return the remark that names what has failed, and where."""
    try:
        last = error.__traceback__
        while last is not None and last.tb_next is not None:
            last = last.tb_next
        code = last.tb_frame.f_code if last is not None else None
        where = f" in {code.co_name} ({os.path.basename(code.co_filename)}:{last.tb_lineno})" if code and last else ""
        return f"{_IN_WORDS}: {error!r}{where}"
    except Exception:  # noqa: BLE001 - no memory for it
        return _IN_WORDS


def _discard(fds: list[int], wake_fd: int, wait_s: float | None) -> None:
    """Wait for output or a signal, at most `wait_s`; drop the output, and pipes at their end from `fds`."""
    poll = select.poll()
    for fd in (wake_fd, *fds):
        poll.register(fd, select.POLLIN)
    for fd, _ in poll.poll(None if wait_s is None else max(0.0, wait_s) * 1000):
        if fd != wake_fd and not os.read(fd, _READ_BYTES):
            fds.remove(fd)
            _close(fd)


def _pause_s(course: Course, now_s: float) -> float | None:
    if course.over:
        return _LOOK_S
    limit_s = course.limit_s()
    return None if limit_s is None else limit_s - now_s


def _undelivered(relay: Relay | None) -> bool:
    """Return whether our writers still have what was relayed before."""
    return relay is not None and not relay.delivered()


def _close(fd: int) -> None:
    try:
        os.close(fd)
    except OSError:
        return

"""Much output passed on inside the kernel, from the command's pipe to a pipe of our own: we copy nothing to write it.

splice(2) moves it, where nothing else wants the bytes. tee(2) leaves them where they are, so that they can still be
read for the hash and the ends that are kept. Neither waits, although our pipe is a blocking one. Imported for a pipe
that has become busy; ctypes, which alone has tee, costs 10 ms.
"""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Passage = Callable[[int, int], int]  # (pipe to take from, most bytes) → bytes


def passage(out_fd: int, *, wanted: bool) -> Passage | None:
    """Return what passes output on to `out_fd`, or None where that is no pipe, or this system cannot do it.

    With `wanted` the bytes stay in the pipe that they come from. The passage returns 0 where that is at its end. It
    raises BlockingIOError where `out_fd` is full, and OSError as a write would.
    """
    if not stat.S_ISFIFO(os.fstat(out_fd).st_mode):
        return None
    return _teeing(out_fd) if wanted else _splicing(out_fd)


def _splicing(out_fd: int) -> Passage:
    def splice(from_fd: int, most: int) -> int:
        return os.splice(from_fd, out_fd, most, flags=os.SPLICE_F_NONBLOCK)

    return splice


def _teeing(out_fd: int) -> Passage | None:
    try:
        import ctypes

        call = ctypes.CDLL(None, use_errno=True).tee
    except (ImportError, OSError, AttributeError):
        return None
    call.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_size_t, ctypes.c_uint)
    call.restype = ctypes.c_ssize_t

    def tee(from_fd: int, most: int) -> int:
        passed = int(call(from_fd, out_fd, most, os.SPLICE_F_NONBLOCK))
        if passed < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return passed

    return tee

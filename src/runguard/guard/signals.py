"""Signals to the guard as values that its loop reads.

From `_signal`, the interpreter's own module: `signal` wraps it in enums, whose import costs as much as a tenth of an
interpreter's start.
"""

from __future__ import annotations

import os
from _signal import (  # type: ignore[import-not-found]
    SIG_BLOCK,
    SIG_DFL,
    SIG_IGN,
    SIG_SETMASK,
    SIG_UNBLOCK,
    SIGCHLD,
    SIGCONT,
    SIGHUP,
    SIGINT,
    SIGQUIT,
    SIGSTOP,
    SIGTERM,
    SIGTSTP,
    SIGUSR1,
    SIGUSR2,
    getsignal,
    pthread_sigmask,
    set_wakeup_fd,
    signal,
)

from runguard.guard.descriptors import high_fd

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

STOPS: tuple[int, ...] = (SIGTERM, SIGINT, SIGHUP, SIGQUIT)  # these ask us to end
FORWARDED: tuple[int, ...] = (*STOPS, SIGUSR1, SIGUSR2)


class Signals:
    """What came since `listen`, in order, in `received`; `fd` becomes readable when something comes.

    `ignored` are the signals that were ignored at our start: the command ignores them too, and so do we.
    `mask` is the signal mask at our start. A byte written to `poke_fd` makes `fd` readable too. `at_child` is called
    when a child has ended, between any two steps of ours; it must not raise. `away` is the group of a command that a
    terminal's Ctrl-Z does not reach, since it has a session of its own.
    """

    __slots__ = ("_taken", "at_child", "away", "fd", "ignored", "mask", "poke_fd", "received")

    def __init__(self, fd: int, write_fd: int, ignored: frozenset[int], mask: frozenset[int]) -> None:
        self.fd = fd
        self.ignored = ignored
        self.mask = mask
        self.received: list[int] = []
        self.at_child: Callable[[], object] | None = None
        self.away: int | None = None
        self.poke_fd = write_fd
        self._taken = 0

    @property
    def stop(self) -> int | None:
        """The first signal that asked us to end, or None."""
        return next((number for number in self.received if number in STOPS), None)

    def take(self) -> list[int]:
        """Empty the wakeup pipe and return what was received since the last call."""
        try:
            while len(os.read(self.fd, 512)) == 512:
                pass
        except BlockingIOError:
            pass
        new = self.received[self._taken :]
        self._taken += len(new)
        return new

    def pause(self, *_: object) -> None:
        """Stop as Ctrl-Z wants it, and the command with us; when we are continued, continue it."""
        away = self.away
        _send(away, SIGSTOP)
        signal(SIGTSTP, SIG_DFL)
        os.kill(os.getpid(), SIGTSTP)
        signal(SIGTSTP, self.pause)
        _send(away, SIGCONT)

    def close(self) -> None:
        """Put the default dispositions back and close the pipe."""
        set_wakeup_fd(-1)
        for number in (*FORWARDED, SIGTSTP, SIGCHLD):
            signal(number, SIG_IGN if number in self.ignored else SIG_DFL)
        pthread_sigmask(SIG_SETMASK, self.mask)
        os.close(self.fd)
        os.close(self.poke_fd)


def listen() -> Signals:
    """Receive TERM, INT, HUP, QUIT, USR1 and USR2 (those that were not ignored) and learn of children's ends."""
    read_fd, write_fd = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    read_fd, write_fd = high_fd(read_fd), high_fd(write_fd)
    ignored = frozenset(number for number in (*FORWARDED, SIGTSTP, SIGCHLD) if getsignal(number) == SIG_IGN)
    signals = Signals(read_fd, write_fd, ignored, frozenset(pthread_sigmask(SIG_BLOCK, ())))
    set_wakeup_fd(write_fd, warn_on_full_buffer=False)

    def note(number: int, _frame: object) -> None:
        signals.received.append(number)

    for number in FORWARDED:
        if number not in ignored:
            signal(number, note)

    if SIGTSTP not in ignored:
        signal(SIGTSTP, signals.pause)

    def wake(_number: int, _frame: object) -> None:
        if signals.at_child is not None:  # else the byte in the wakeup pipe is all that is needed
            signals.at_child()

    # Ignored, the kernel would throw our children's statuses away; blocked, we would sleep through their ends.
    signal(SIGCHLD, wake)
    pthread_sigmask(SIG_UNBLOCK, (SIGCHLD,))
    return signals


def _send(group: int | None, number: int) -> None:
    if group is None:
        return
    try:
        os.killpg(group, number)
    except OSError:
        return

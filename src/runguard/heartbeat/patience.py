"""Patience with regular expressions that a user wrote: some need ages for a short text, and a job must not wait.

What one text may take is measured in processor time of this process, and halved whenever it did not suffice: all that
is ever waited in vain is two seconds. Only where there are patterns; imported then.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable
else:
    import _signal  # signal itself imports enum

LIMIT_S = 1.0
_SHORTEST_S = 0.01  # two or three ticks of the kernel's clock


class _Expired(Exception):
    """The timer ran out."""


class Patience:
    """What is left of it in one process. `expired` tells how many texts were given up so far."""

    def __init__(self, limit_s: float = LIMIT_S) -> None:
        self.limit_s = limit_s
        self.expired = 0

    def within(self, work: Callable[[], str]) -> str | None:
        """Return what `work` returns, or None where it takes too long or all patience is spent.

        The handler, mask and timer of SIGVTALRM are put back. Outside the main thread, which alone receives signals,
        nothing is limited. If a wakeup descriptor is set, it may receive SIGVTALRM's number (26).
        """
        if self.limit_s < _SHORTEST_S:
            return None
        found = _within(self.limit_s, work)
        if found is None:
            self.expired += 1
            self.limit_s /= 2
        return found


def _within(limit_s: float, work: Callable[[], str]) -> str | None:
    working = [True]

    def ring(_signal_number: int, _frame: object) -> None:
        if working:
            raise _Expired

    try:
        handler = _signal.signal(_signal.SIGVTALRM, ring)
    except ValueError:  # not the main thread
        return work()
    mask = _signal.pthread_sigmask(_signal.SIG_UNBLOCK, [_signal.SIGVTALRM])
    # It rings again and again: an exception is lost where Python may raise none, in a destructor say.
    left_s, interval_s = _signal.setitimer(_signal.ITIMER_VIRTUAL, limit_s, _SHORTEST_S)
    try:
        found = work()
        working.clear()
        return found
    except _Expired:
        working.clear()
        return None
    finally:
        working.clear()
        _signal.setitimer(_signal.ITIMER_VIRTUAL, 0)
        _signal.signal(_signal.SIGVTALRM, _signal.SIG_DFL if handler is None else handler)
        _signal.setitimer(_signal.ITIMER_VIRTUAL, left_s, interval_s)
        _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)

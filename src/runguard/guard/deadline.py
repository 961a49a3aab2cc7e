"""How long the end of a run waits for its monitors: until a deadline, which a stop signal brings nearer."""

from __future__ import annotations

import select

from runguard import clock
from runguard.instant import SECOND_US

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runguard.guard.signals import Signals

LEFT_FOR_SENDING_S = 2.0  # of the deadline, where an instant has to be waited for before


class Deadline:
    """One deadline for all pings of an end: `span_s` from now, or `stopped_span_s` from when we are told to stop."""

    def __init__(self, signals: Signals, span_s: float, stopped_span_s: float) -> None:
        self._signals = signals
        self._until_s = clock.look().monotonic_s + span_s
        self._stopped_span_s = stopped_span_s
        self._stopped = False
        self.told_to_stop()

    def left_s(self) -> float:
        """Return the seconds that are left."""
        return max(0.0, self._until_s - clock.look().monotonic_s)

    def told_to_stop(self) -> bool:
        """Return whether we were told to stop, which shortens the deadline."""
        self._signals.take()
        if self._signals.stop is not None and not self._stopped:
            self._stopped = True
            self._until_s = min(self._until_s, clock.look().monotonic_s + self._stopped_span_s)
        return self._stopped

    def wait_until(self, at_us: int) -> bool:
        """Wait for an instant; return False, soon, where it is too late to send anything within the deadline."""
        waiting = select.poll()
        waiting.register(self._signals.fd, select.POLLIN)
        while (wait_s := (at_us - clock.look().wall_us) / SECOND_US) > 0:
            if wait_s > self.left_s() - LEFT_FOR_SENDING_S:
                return False
            if waiting.poll(wait_s * 1000 + 1):
                self.told_to_stop()
        return True

"""The clocks of this host, looked at once per start."""

from __future__ import annotations

import time

from runguard.record import NamedTuple


class Look(NamedTuple):
    """One look at the clocks: the wall clock in UTC, and a clock that never steps for durations."""

    wall_us: int
    monotonic_s: float


def look() -> Look:
    """Return what the clocks say now."""
    return Look(time.clock_gettime_ns(time.CLOCK_REALTIME) // 1000, time.monotonic())

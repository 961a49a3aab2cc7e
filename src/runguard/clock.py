"""The clocks of this host, looked at once per start."""

from __future__ import annotations

import time

from runguard.record import NamedTuple


class Look(NamedTuple):
    """One look at the clocks: the wall clock in UTC, and two that never step, for durations."""

    wall_us: int
    monotonic_s: float
    since_boot_s: float  # never steps either, and counts the time that the host was suspended


def look() -> Look:
    """Return what the clocks say now."""
    wall_us = time.clock_gettime_ns(time.CLOCK_REALTIME) // 1000
    return Look(wall_us, time.monotonic(), time.clock_gettime(time.CLOCK_BOOTTIME))

"""What a recovery has named as lost puts in doubt what lies in that time, and nothing after it."""

from __future__ import annotations

from runguard.instant import from_rfc3339
from runguard.store.recoveries import Recoveries, Recovery

TAIL = Recovery.of_gaps([(6, 9)])._replace(
    seq=10, at="2026-03-05T12:00:00Z", spans=((from_rfc3339("2026-03-02T02:00:00Z"), None),)
)


def test_a_window_of_the_time_that_is_lost_is_in_doubt() -> None:
    doubt = "entries 6 to 9 of that time are lost (recovery 10)"
    assert Recoveries([TAIL]).over(from_rfc3339("2026-03-05T02:00:00Z")) == doubt


def test_a_window_after_the_recovery_is_not() -> None:
    assert Recoveries([TAIL]).over(from_rfc3339("2026-03-06T02:00:00Z")) == ""

"""One check of Healthchecks as a state machine: what its pages say, and what a real 3.13 was seen to do.

Sources: https://healthchecks.io/docs/ (states, grace time), /docs/measuring_script_run_time/ (start, rid),
/docs/http_api/ (signals), /docs/configuring_checks/ (period and cron schedules).

- new until the first success or failure; a start or a log line changes no state.
- up after a success. Late once the next one is due: a period after the last one, or with a cron schedule at the first
  due time *after the last one*, so that a ping a minute early counts for the slot before. Down a grace time later.
- A start sets a timer: down, whatever else was heard, unless it is cleared within the grace time. Each start sets it
  anew. It is cleared by any failure, by a success without a rid, and by a success with the rid of that start; a success
  with another rid leaves it.
- A failure is down at once. Any later success is up, whichever run it tells of.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

from cronsim import CronSim

DAY_S = 86_400.0


class Heard(NamedTuple):
    """One ping as it was logged: `action` is "", "start", "fail", "log" or an exit status."""

    action: str
    rid: str | None
    body: bytes


class Check:
    """The state of one check; `now` tells the monitor's time in seconds since 1970."""

    def __init__(
        self,
        now: Callable[[], float],
        *,
        period_s: float = DAY_S,
        grace_s: float = 3600.0,
        schedule: str | None = None,
        zone: str = "UTC",
    ) -> None:
        self.log: list[Heard] = []
        self.flips: list[str] = []  # the states that people were told of: up and down
        self.schedule = schedule  # in place of the period
        self.zone = zone
        self.period_s = period_s
        self.grace_s = grace_s
        self._now = now
        self._told = "new"
        self._last_s: float | None = None  # of the last success or failure
        self._started_s: float | None = None
        self._started_rid: str | None = None

    @property
    def status(self) -> str:
        """The state now: new, up, late or down."""
        self._look()
        late_s = self._late_s()
        if self._told == "up" and late_s is not None and self._now() >= late_s:
            return "late"
        return self._told

    @property
    def started(self) -> bool:
        """Whether a start's timer runs, or has run out: the three dots under the state."""
        return self._started_s is not None

    def ping(self, action: str, rid: str | None, body: bytes) -> None:
        """Hear a ping."""
        self._look()
        self.log.append(Heard(action, rid, body))
        if action == "log":
            return
        if action == "start":
            self._started_s, self._started_rid = self._now(), rid
            return
        failed = action not in ("", "0")
        if failed or rid is None or rid == self._started_rid:
            self._started_s = self._started_rid = None
        self._last_s = self._now()
        self._flip("down" if failed else "up")
        self._look()

    def _look(self) -> None:
        """Notice what time alone has changed, as the monitor's own loop does."""
        ends = [start_s + self.grace_s for start_s in (self._late_s(), self._started_s) if start_s is not None]
        if ends and self._now() >= min(ends):
            self._flip("down")

    def _late_s(self) -> float | None:
        """Return when the next success is due, or None where none is waited for."""
        if self._told != "up" or self._last_s is None:
            return None
        if self.schedule is None:
            return self._last_s + self.period_s
        last = datetime.fromtimestamp(self._last_s, UTC).astimezone(ZoneInfo(self.zone))
        return next(CronSim(self.schedule, last)).timestamp()

    def _flip(self, state: str) -> None:
        if state != self._told:
            self._told = state
            self.flips.append(state)

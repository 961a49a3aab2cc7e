"""An instant as a person reads it: in the time zone of the job it belongs to, and in UTC."""

from __future__ import annotations

from runguard import zones
from runguard.errors import ZoneError
from runguard.instant import SECOND_US, from_rfc3339, rfc3339
from runguard.schedule.zone import Zone


class Clocks:
    """The clocks of time zones, each read once."""

    def __init__(self) -> None:
        self._zones: dict[str, Zone | None] = {}

    def both(self, at: str | None, zone: str | None) -> str:
        """Return `2026-03-29 03:00:04+01:00 (02:00:04Z)`; UTC alone where the zone is none or not known here.

        To the second: the JSON tells the rest. A text that is no instant comes back as it is: jobs write their own.
        """
        if at is None:
            return "at an unknown time"
        try:
            at_us = from_rfc3339(at) // SECOND_US * SECOND_US
        except ValueError:
            return at
        utc = rfc3339(at_us).replace("T", " ")
        known = self._zone(zone)
        if known is None:
            return utc
        offset_s = known.offset_at(at_us // SECOND_US)
        local = rfc3339(at_us + offset_s * SECOND_US).replace("T", " ").removesuffix("Z")
        sign, minutes = "-" if offset_s < 0 else "+", abs(offset_s) // 60
        other = utc if utc[:10] != local[:10] else utc[11:]
        return f"{local}{sign}{minutes // 60:02d}:{minutes % 60:02d} ({other})"

    def _zone(self, name: str | None) -> Zone | None:
        if not name:
            return None
        if name not in self._zones:
            try:
                self._zones[name] = zones.load(name).zone
            except ZoneError:
                self._zones[name] = None
        return self._zones[name]

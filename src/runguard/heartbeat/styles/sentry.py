"""Sentry's cron check-ins: one id for start and end, whatever attempts come between. It always answers 202."""

from __future__ import annotations

from runguard.heartbeat.address import Address, is_word, join, split
from runguard.heartbeat.event import Event, Request

_STATUSES = {"start": "in_progress", "success": "ok", "failure": "error"}


def recognises(address: Address) -> bool:
    """`…/api/<project>/cron/<slug>/<key>/`, hosted or not."""
    *_, api, project, cron, slug, key = ("", "", "", "", "", *address.segments)
    numbered = project.isascii() and project.isdigit()
    return (api, cron) == ("api", "cron") and numbered and is_word(slug) and is_word(key)


def request(url: str, event: Event) -> Request | None:
    """Return a GET; the query of `url` (`environment=`) stays."""
    status = _STATUSES.get(event.kind)
    if status is None:
        return None
    pairs = [("status", status), ("check_in_id", event.series or event.run_id)]
    return Request("GET", join(split(url), added=pairs, slash=True))

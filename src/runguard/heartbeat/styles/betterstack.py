"""Better Stack Uptime: a success at the address itself, a failure at its status. It knows no start."""

from __future__ import annotations

from runguard.heartbeat.address import Address, is_word, join, split
from runguard.heartbeat.event import Event, Request, failure_status


def recognises(address: Address) -> bool:
    """`…/api/v1/heartbeat/<token>`, on whatever host."""
    *_, api, version, heartbeat, token = ("", "", "", "", *address.segments)
    return (api, version, heartbeat) == ("api", "v1", "heartbeat") and is_word(token)


def request(url: str, event: Event) -> Request | None:
    """Return a POST with the body."""
    if event.kind not in ("success", "failure"):
        return None
    suffix = f"/{failure_status(event) or 'fail'}" if event.kind == "failure" else ""
    return Request("POST", join(split(url), suffix), body=event.body)

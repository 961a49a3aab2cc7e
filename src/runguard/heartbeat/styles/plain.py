"""Any other address: a GET on success alone, since every other guess can turn a failure into a heartbeat."""

from __future__ import annotations

from runguard.heartbeat.event import Event, Request


def request(url: str, event: Event) -> Request | None:
    """Return a GET of the very URL."""
    return Request("GET", url.partition("#")[0]) if event.kind == "success" else None

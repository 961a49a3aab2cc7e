"""Dead Man's Snitch: a success has a message, a failure its status too. It knows no start."""

from __future__ import annotations

from runguard.heartbeat.address import Address, is_word, join, split
from runguard.heartbeat.event import Event, Request, failure_status, summary_of

MOST_TEXT_BYTES = 250


def recognises(address: Address) -> bool:
    """`nosnch.in/<token>`."""
    return address.host == "nosnch.in" and len(address.segments) == 1 and is_word(address.segments[0])


def request(url: str, event: Event) -> Request | None:
    """Return a GET."""
    if event.kind not in ("success", "failure"):
        return None
    text = summary_of(event, MOST_TEXT_BYTES)
    pairs = [("s", str(failure_status(event) or 1))] if event.kind == "failure" else []
    pairs += [("m", text)] if text else []
    return Request("GET", join(split(url), added=pairs))

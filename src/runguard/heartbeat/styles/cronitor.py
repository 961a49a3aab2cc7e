"""Cronitor's telemetry: everything in the query, the text too, since bodies are discarded."""

from __future__ import annotations

from runguard.heartbeat.address import Address, is_word, join, split
from runguard.heartbeat.event import Event, Request, failure_status, text_of

MOST_TEXT_BYTES = 1000

_STATES = {"start": "run", "success": "complete", "failure": "fail"}


def recognises(address: Address) -> bool:
    """`cronitor.link/p/<key>/<monitor>`."""
    p, key, *monitor = (*address.segments, "", "")[:3]
    return address.host == "cronitor.link" and p == "p" and is_word(key) and bool(monitor[0])


def request(url: str, event: Event) -> Request | None:
    """Return a GET; `env` and `host` in the query of `url` stay as they are."""
    state = _STATES.get(event.kind)
    if state is None:
        return None
    address = split(url)
    pairs = [("state", state), ("series", event.series or event.run_id)]
    if event.host and not any(pair.startswith("host=") for pair in address.query.split("&")):
        pairs.append(("host", event.host))
    if event.kind != "start":
        status = 0 if event.kind == "success" else failure_status(event)
        pairs += [("status_code", str(status))] if status is not None else []
        pairs += [("metric", f"duration:{event.duration_s:.3f}")] if event.duration_s is not None else []
        text = text_of(event, MOST_TEXT_BYTES)
        pairs += [("message", text)] if text else []
    return Request("GET", join(address, added=pairs))

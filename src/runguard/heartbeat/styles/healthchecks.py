"""Healthchecks, hosted or not: https://healthchecks.io/docs/http_api/"""

from __future__ import annotations

from runguard.heartbeat.address import Address, is_uuid, is_word, join, split
from runguard.heartbeat.event import Event, Request, failure_status
from runguard.heartbeat.styles import answers

_PING_KEY_LENGTH = 16  # at least; Healthchecks makes keys of 22


def recognises(address: Address) -> bool:
    """hc-ping.com, `…/ping/<uuid>`, `…/ping/<key>/<slug>`."""
    return address.host == "hc-ping.com" or is_whole(address)


def is_whole(address: Address) -> bool:
    """Return whether the path names a check and nothing after it."""
    hosted = address.host == "hc-ping.com"
    _, ping, rest = ("", "/", address.path.strip("/")) if hosted else address.path.rstrip("/").rpartition("/ping/")
    key, slash, slug = rest.partition("/")
    if not ping:
        return False
    if not slash:
        return is_uuid(key)
    return len(key) >= _PING_KEY_LENGTH and not is_uuid(key) and is_word(key) and is_word(slug)


def request(url: str, event: Event) -> Request:
    """Return a POST; the query of `url` (`create=1`) stays."""
    match event.kind:
        case "start":
            suffix = "/start"
        case "failure":
            suffix = f"/{failure_status(event) or 'fail'}"
        case "log":
            suffix = "/log"
        case _:
            suffix = ""
    # A rid that matches no start leaves the monitor's timer running: an alarm after a run that went well.
    told = is_uuid(event.run_id) and (event.rid_ok or event.kind == "start")
    return Request("POST", join(split(url), suffix, [("rid", event.run_id)] if told else []), body=event.body)


def judge(status: int, body: bytes) -> str:
    """Judge as for everyone; "not found" in a 2xx means that there is no such check."""
    if 200 <= status <= 299 and b"not found" in body.lower():
        return "final"
    return answers.judge(status, body)

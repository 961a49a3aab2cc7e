"""Uptime Kuma's push monitor: any status but `up` is an alarm, so a start is never told."""

from __future__ import annotations

from runguard.heartbeat.address import Address, is_word, join, split
from runguard.heartbeat.event import Event, Request, summary_of
from runguard.heartbeat.styles import answers

MOST_TEXT_BYTES = 250


def recognises(address: Address) -> bool:
    """`…/api/push/<token>`."""
    *_, api, push, token = ("", "", "", *address.segments)
    return (api, push) == ("api", "push") and is_word(token)


def request(url: str, event: Event) -> Request | None:
    """Return a GET; the address as Kuma shows it ends in `?status=up&msg=OK&ping=`, which is replaced."""
    if event.kind not in ("success", "failure"):
        return None
    up = event.kind == "success"
    duration_ms = str(round(event.duration_s * 1000)) if up and event.duration_s is not None else ""
    pairs = [("status", "up" if up else "down"), ("msg", summary_of(event, MOST_TEXT_BYTES)), ("ping", duration_ms)]
    return Request("GET", join(split(url), added=pairs))


def judge(status: int, body: bytes) -> str:
    """Judge as for everyone, and by Kuma's own word in the answer."""
    if 200 <= status <= 299 and b'"ok":false' in body.replace(b" ", b""):
        return "final"
    return answers.judge(status, body)

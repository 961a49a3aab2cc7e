"""What each kind of monitor is sent for an event, and what its answer means.

A style is one row of `STYLES`: three pure functions, in a module of its name. An unknown URL is `plain`, because any
other guess can turn a failure into a heartbeat, or a start into an alarm.
"""

from __future__ import annotations

from runguard.heartbeat import address
from runguard.heartbeat.event import KINDS, Event, Request
from runguard.heartbeat.styles import (
    answers,
    betterstack,
    cronitor,
    healthchecks,
    kuma,
    plain,
    pushgateway,
    sentry,
    snitch,
    template,
)
from runguard.heartbeat.styles.answers import VERDICTS
from runguard.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from runguard.heartbeat.address import Address

__all__ = (
    "KINDS",
    "STYLES",
    "VERDICTS",
    "Event",
    "Request",
    "Style",
    "detect",
    "event_alone",
    "judge",
    "request",
    "usable",
)


class Style(NamedTuple):
    """How one kind of monitor is spoken to."""

    recognises: Callable[[Address], bool]
    request: Callable[[str, Event], Request | None]
    judge: Callable[[int, bytes], str]


STYLES: Mapping[str, Style] = {
    "healthchecks": Style(healthchecks.recognises, healthchecks.request, healthchecks.judge),
    "betterstack": Style(betterstack.recognises, betterstack.request, answers.judge),
    "kuma": Style(kuma.recognises, kuma.request, kuma.judge),
    "cronitor": Style(cronitor.recognises, cronitor.request, answers.judge),
    "sentry": Style(sentry.recognises, sentry.request, answers.judge),
    "snitch": Style(snitch.recognises, snitch.request, answers.judge),
    "pushgateway": Style(pushgateway.recognises, pushgateway.request, answers.judge),
    "template": Style(lambda _: False, template.request, answers.judge),
    "plain": Style(lambda _: True, plain.request, answers.judge),
}
_EVENTS = ("start", "fail", "log")  # at the end of an address; so is a status


def usable(url: str) -> str | None:
    """Return None if `url` can be pinged, else why not: one line that holds no part of it but its scheme."""
    if (why := address.unusable(url)) is not None:
        return why
    if last := event_alone(url):
        return f"the ping URL ends in /{last}: give the check's own URL, without it"
    return None


def event_alone(url: str) -> str:
    """Return the end of an address that tells a monitor of one event alone (`fail`, a status), or ""."""
    parts = address.split(url)
    last = parts.segments[-1] if parts.segments else ""
    if last in _EVENTS or last.isdigit():
        check = parts._replace(path=parts.path.rstrip("/").rpartition("/")[0])
        if healthchecks.is_whole(check) or betterstack.recognises(check):
            return last
    return ""


def detect(url: str) -> str:
    """Return the name of the style that `url` (usable) belongs to."""
    parts = address.split(url)
    return next(name for name, style in STYLES.items() if style.recognises(parts))


def request(style: str, url: str, event: Event) -> Request | None:
    """Return what the monitor at `url` (usable) is sent for `event`, or None if this style says nothing then."""
    return STYLES[style].request(url, event)


def judge(style: str, status: int, body: bytes) -> str:
    """Return which of VERDICTS an answer stands for; `body` is its beginning.

    `final` means that the same request will never be accepted.
    """
    return STYLES[style].judge(status, body)

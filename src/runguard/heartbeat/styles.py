"""What each kind of monitor is sent for an event, and what its answer means.

A style is one row of `STYLES`: three pure functions. An unknown URL is `plain`, because any other guess can turn a
failure into a heartbeat, or a start into an alarm.
"""

from __future__ import annotations

from runguard.heartbeat.body import EMPTY, Body
from runguard.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

KINDS = ("start", "success", "failure", "log")
VERDICTS = ("accepted", "retry", "final")

_RETRIED = (408, 429)  # and every 5xx
_UUID_LENGTH = 36
_PING_KEY_LENGTH = 16  # at least; Healthchecks makes keys of 22
_WORD = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")


class Event(NamedTuple):
    """One thing to tell a monitor."""

    kind: str  # of KINDS
    run_id: str
    exit_status: int | None = None  # what ended the run; -N stands for signal N
    signal: int | None = None  # the signal that ended it
    rid_ok: bool = True  # False on a finish whose start was not acknowledged
    body: Body = EMPTY


class Request(NamedTuple):
    """One HTTP request; `url` is a secret."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    body: Body = EMPTY


class Style(NamedTuple):
    """How one kind of monitor is spoken to."""

    recognises: Callable[[Address], bool]
    request: Callable[[str, Event], Request | None]
    judge: Callable[[int, bytes], str]


class Address(NamedTuple):
    """The parts of a URL; `path` begins with a slash or is empty, `query` has no question mark."""

    scheme: str
    authority: str
    path: str
    query: str

    @property
    def host(self) -> str:
        """Return the host, in lower case, without port, user and password."""
        host = self.authority.rpartition("@")[2]
        if host.startswith("["):
            return host.partition("]")[0].lower() + "]"
        return host.partition(":")[0].lower()


def usable(url: str) -> str | None:
    """Return None if `url` can be pinged, else why not: one line that holds no part of it but its scheme."""
    if not url.strip():
        return "the ping URL is empty"
    if any(character <= " " or character == "\x7f" for character in url):
        return "the ping URL has a space or a control character in it"
    if any("\ud800" <= character <= "\udfff" for character in url):
        return "the ping URL is not valid UTF-8"
    if "://" not in url:
        return "the ping URL has no scheme: it should begin with https:// or http://"
    address = split(url)
    if address.scheme not in ("http", "https"):
        return "the ping URL is neither https:// nor http://"
    if not address.host or address.host == "[]" or not _port_is_sane(address.authority):
        return "the ping URL has no valid host and port"
    *_, check, last = "", *address.path.rstrip("/").split("/")
    if (last in ("start", "fail", "log") or last.isdigit()) and _is_uuid(check):
        return f"the ping URL ends in /{last}: give the check's own URL, without it"
    return None


def detect(url: str) -> str:
    """Return the name of the style that `url` (usable) belongs to."""
    address = split(url)
    for name, style in STYLES.items():
        if style.recognises(address):
            return name
    return "plain"


def request(style: str, url: str, event: Event) -> Request | None:
    """Return what the monitor at `url` (usable) is sent for `event`, or None if this style says nothing then."""
    return STYLES[style].request(url, event)


def judge(style: str, status: int, body: bytes) -> str:
    """Return which of VERDICTS an answer stands for; `body` is its beginning.

    `final` means that the same request will never be accepted.
    """
    return STYLES[style].judge(status, body)


def split(url: str) -> Address:
    """Split an absolute URL; its fragment is dropped."""
    scheme, _, rest = url.partition("#")[0].partition("://")
    before_query, _, query = rest.partition("?")
    authority, slash, path = before_query.partition("/")
    return Address(scheme.lower(), authority, slash + path, query)


def _join(address: Address, suffix: str, added_query: str) -> str:
    """Return the URL with `suffix` after its path and `added_query` after its own query."""
    query = "&".join(part for part in (address.query, added_query) if part)
    return f"{address.scheme}://{address.authority}{address.path.rstrip('/')}{suffix}" + (f"?{query}" if query else "")


def _is_healthchecks(address: Address) -> bool:
    if address.host == "hc-ping.com":
        return True
    _, ping, rest = address.path.rstrip("/").rpartition("/ping/")
    key, slash, slug = rest.partition("/")
    if not ping:
        return False
    if not slash:
        return _is_uuid(key)
    return (
        len(key) >= _PING_KEY_LENGTH
        and not _is_uuid(key)
        and _WORD.issuperset(key)
        and bool(slug)
        and _WORD.issuperset(slug)
    )


def _healthchecks_request(url: str, event: Event) -> Request:
    match event.kind:
        case "start":
            suffix = "/start"
        case "failure":
            suffix = _failure_suffix(event)
        case "log":
            suffix = "/log"
        case _:
            suffix = ""
    # A rid that matches no start leaves the monitor's timer running: an alarm after a run that went well.
    rid = f"rid={event.run_id}" if _is_uuid(event.run_id) and (event.rid_ok or event.kind == "start") else ""
    return Request("POST", _join(split(url), suffix, rid), body=event.body)


def _failure_suffix(event: Event) -> str:
    """Return `/<1-255>`, or `/fail` where the status would read as a success or is none at all."""
    status = event.exit_status if event.signal is None else 128 + event.signal
    if status is not None and status < 0:
        status = 128 - status
    return f"/{status}" if status is not None and 1 <= status <= 255 else "/fail"


def _plain_request(url: str, event: Event) -> Request | None:
    return Request("GET", url.partition("#")[0]) if event.kind == "success" else None


def _judge_status(status: int, body: bytes) -> str:
    """Judge by the status, and by the two answers with which a 200 of the hosted Healthchecks means no."""
    if 200 <= status <= 299:
        answer = body.strip().lower()
        if answer == b"ok (not found)":
            return "final"
        return "retry" if answer == b"ok (rate limited)" else "accepted"
    return "retry" if status in _RETRIED or status >= 500 else "final"


def _judge_healthchecks(status: int, body: bytes) -> str:
    if 200 <= status <= 299 and b"not found" in body.lower():
        return "final"
    return _judge_status(status, body)


def _is_uuid(text: str) -> bool:
    if len(text) != _UUID_LENGTH or any(text[at] != "-" for at in (8, 13, 18, 23)):
        return False
    digits = text.replace("-", "")
    return len(digits) == 32 and all(character in "0123456789abcdefABCDEF" for character in digits)


def _port_is_sane(authority: str) -> bool:
    _, colon, port = authority.rpartition("@")[2].rpartition("]")[2].rpartition(":")
    return not colon or not port or (port.isascii() and port.isdigit() and 0 < int(port) < 65536)


STYLES: Mapping[str, Style] = {
    "healthchecks": Style(_is_healthchecks, _healthchecks_request, _judge_healthchecks),
    "plain": Style(lambda _: True, _plain_request, _judge_status),
}

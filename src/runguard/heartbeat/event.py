"""What there is to tell a monitor, and the request that tells it."""

from __future__ import annotations

from runguard.heartbeat.body import EMPTY, MOST_BYTES, Body, fit
from runguard.record import NamedTuple

KINDS = ("start", "success", "failure", "log")


class Event(NamedTuple):
    """One thing to tell a monitor."""

    kind: str  # of KINDS
    run_id: str
    exit_status: int | None = None  # what we return; -N stands for signal N
    signal: int | None = None  # the signal that ended it, where there is no exit status
    rid_ok: bool = True  # False on a finish whose start was not acknowledged
    body: Body = EMPTY
    job: str = ""
    host: str = ""
    due_us: int | None = None  # of the run's window
    duration_s: float | None = None  # None: it has not ended, or never began
    at_us: int = 0  # when it happened
    text_limit_bytes: int = MOST_BYTES  # the user's own, for monitors that take text in the URL
    series: str = ""  # the id of the attempt under which the monitor heard of a start first, if there was one


class Request(NamedTuple):
    """One HTTP request; `url` is a secret."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    body: Body = EMPTY  # text for people: cut to what the server takes, or left out
    payload: str = ""  # in its place: data that is sent whole, or not at all


def failure_status(event: Event) -> int | None:
    """Return the status of a failure, 1 to 255: None where it would read as a success, or is none at all."""
    status = event.exit_status
    if status is None and event.signal is not None:
        status = 128 + event.signal
    if status is not None and status < 0:
        status = 128 - status
    return status if status is not None and 1 <= status <= 255 else None


def summary_of(event: Event, most_bytes: int) -> str:
    """Return the line that sums up the run, cut between characters."""
    return text_of(event._replace(body=Body(event.body.summary)), most_bytes)


def text_of(event: Event, most_bytes: int) -> str:
    """Return the whole text of the event's body, cut as a body is."""
    return fit(event.body, min(most_bytes, event.text_limit_bytes)).decode()

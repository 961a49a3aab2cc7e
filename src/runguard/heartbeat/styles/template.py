"""An address of one's own for each event, with placeholders: `https://monitor.example/done?status={exit}`.

`{{` and `}}` stand for braces. Values are percent-encoded; those that are not known are empty.
"""

from __future__ import annotations

from runguard.heartbeat.address import encode
from runguard.heartbeat.event import Event, Request, failure_status
from runguard.instant import rfc3339

PLACEHOLDERS = ("exit", "run_id", "duration", "due", "host", "job")


def flaw(url: str) -> str | None:
    """Return what is wrong with the placeholders of `url`, or None."""
    for _, name in _pieces(url):
        if name is not None and name not in PLACEHOLDERS:
            shown = f"{{{name}}}" if name.isascii() and name.isidentifier() and len(name) <= 20 else "a brace"
            known = ", ".join(f"{{{each}}}" for each in PLACEHOLDERS)
            return f"{shown} is no placeholder; there are {known}, and {{{{ and }}}} for braces"
    return None


def request(url: str, event: Event) -> Request | None:
    """Return a GET of `url` (without a flaw), its placeholders filled in; which event has which URL is a setting."""
    if event.kind == "log":
        return None
    values = {
        "exit": _exit(event),
        "run_id": event.run_id,
        "duration": f"{event.duration_s:.3f}" if event.duration_s is not None else "",
        "due": rfc3339(event.due_us) if event.due_us is not None else "",
        "host": event.host,
        "job": event.job,
    }
    filled = "".join(literal + (encode(values[name]) if name is not None else "") for literal, name in _pieces(url))
    return Request("GET", filled.partition("#")[0])


def _exit(event: Event) -> str:
    """Return the status; a failure is never told as 0, which reads as a success."""
    match event.kind:
        case "success":
            return "0"
        case "failure":
            return str(failure_status(event) or 1)
    return ""


def _pieces(url: str) -> list[tuple[str, str | None]]:
    """Return (literal text, the placeholder after it or None); a brace that is none of a pair is a placeholder `?`."""
    pieces: list[tuple[str, str | None]] = []
    literal, at = "", 0
    while at < len(url):
        if url[at : at + 2] in ("{{", "}}"):
            literal, at = literal + url[at], at + 2
        elif url[at] in "{}":
            end = url.find("}", at) if url[at] == "{" else -1
            pieces.append((literal, url[at + 1 : end] if end > at else "?"))
            literal, at = "", (end if end > at else at) + 1
        else:
            literal, at = literal + url[at], at + 1
    return [*pieces, (literal, None)]

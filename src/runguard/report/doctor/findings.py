"""What a check finds."""

from __future__ import annotations

import re
from shlex import quote
from typing import NamedTuple

OK, UNKNOWN, WARNING, FAULT = "ok", "unknown", "warning", "fault"
LEVELS = (OK, UNKNOWN, WARNING, FAULT)  # the gravest last


class Finding(NamedTuple):
    """One thing that was looked at."""

    level: str  # of LEVELS; unknown: it cannot be told here
    text: str
    command: str | None = None  # what to type
    job: str | None = None


def against(flaw: str, path: str) -> str | None:
    """Return what to type against a flaw that `private` has found at `path`; None where it is more than a mode."""
    found = re.search(r"chmod (\S+) it", flaw)
    return f"chmod {found[1]} {quote(path)}" if found else None


def ok(text: str, *, job: str | None = None) -> Finding:
    """Return that all is well."""
    return Finding(OK, text, None, job)


def unknown(text: str, command: str | None = None, *, job: str | None = None) -> Finding:
    """Return that it cannot be told from here."""
    return Finding(UNKNOWN, text, command, job)


def warning(text: str, command: str | None = None, *, job: str | None = None) -> Finding:
    """Return what will matter one day."""
    return Finding(WARNING, text, command, job)


def fault(text: str, command: str | None = None, *, job: str | None = None) -> Finding:
    """Return what goes wrong now."""
    return Finding(FAULT, text, command, job)

"""A Healthchecks server with its management API (v3): what its pages say, and what its source does.

Sources: https://healthchecks.io/docs/api/, and hc/api/views.py of the open source project: what is validated, in which
words, which status an answer has, and that a key is known by its 32 characters.
"""

from __future__ import annotations

import json
import re
import uuid
import zoneinfo
from datetime import datetime
from typing import Any

from cronsim import CronSim, CronSimError

from receivers import Healthchecks, Received

KEY = "hcw_0123456789abcdef0123456789ab"
PING_KEY = "fqOOd6-F4MMNuCEnzTU01w"
_FIELDS = ("name", "slug", "schedule", "tz", "timeout", "grace", "channels")
_UNIQUE = ("name", "slug", "tags", "timeout", "grace")


class Managed(Healthchecks):
    """A server with one project: `known` holds what its checks are, by UUID. `room` is for so many checks."""

    def __init__(self, *, room: int = 20) -> None:
        super().__init__()
        self.known: dict[str, dict[str, Any]] = {}
        self.foreign: set[str] = set()  # checks of another project
        self.room = room

    def make(self, code: str = "", **fields: Any) -> str:
        """Add a check as a person does on the server's page, and return its address."""
        code = code or str(uuid.uuid4())
        defaults = {"name": "", "slug": "", "schedule": "* * * * *", "tz": "UTC", "grace": 3600, "channels": ""}
        self.known[code] = {**defaults, **fields}
        return self.add(code)

    @property
    def asked(self) -> list[tuple[str, dict[str, Any]]]:
        """Return (path, JSON) of every request to the API."""
        return [(each.path, json.loads(each.body)) for each in self.requests if each.path.startswith("/api/")]

    def reply(self, request: Received) -> tuple[int, bytes]:
        if not request.path.startswith("/api/v3/checks/"):
            return super().reply(request)
        status, said = self._manage(request)
        return status, json.dumps(said).encode() if said is not None else b""

    def _manage(self, request: Received) -> tuple[int, dict[str, Any] | None]:
        if request.method != "POST":
            return 405, None
        try:
            spec = json.loads(request.body) if request.body else {}
        except ValueError:
            return 400, {"error": "could not parse request body"}
        key = request.headers.get("x-api-key", "")
        if len(key) != 32:
            return 401, {"error": "missing api key"}
        if key != KEY:
            return 401, {"error": "wrong api key"}
        code = request.path.removeprefix("/api/v3/checks/")
        if code and code not in self.known:
            return (403, None) if code in self.foreign else (404, None)
        if why := _flaw(spec):
            return 400, {"error": f"json validation error: {why}"}
        status = 200
        if not code:
            code = self._found(spec)
            if not code:
                if len(self.known) >= self.room:
                    return 403, None
                status, code = 201, str(uuid.uuid4())
                self.make(code)
        check, told = self.checks[code], self.known[code]
        told |= {name: spec[name] for name in _FIELDS if name in spec}
        simple = "timeout" in spec and "schedule" not in spec  # it has the one or the other
        for name in ("schedule", "tz") if simple else ("timeout",):
            told.pop(name, None)
        check.schedule, check.zone = told.get("schedule"), told.get("tz", "UTC")
        check.period_s, check.grace_s = told.get("timeout", check.period_s), told["grace"]
        update = self.url(f"/api/v3/checks/{code}")
        urls = {"ping_url": self.url(f"/ping/{code}"), "update_url": update, "pause_url": f"{update}/pause"}
        return status, {**told, "uuid": code, "status": check.status, **urls, "resume_url": f"{update}/resume"}

    def _found(self, spec: dict[str, Any]) -> str:
        """Return the first check that all fields of `unique` fit, or ""."""
        unique = spec.get("unique", [])
        if not unique or any(name not in spec for name in unique):
            return ""
        fits = (code for code, told in self.known.items() if all(told.get(name) == spec[name] for name in unique))
        return next(fits, "")


def _flaw(spec: dict[str, Any]) -> str:
    for name in ("name", "slug", "schedule", "tz", "channels"):
        if name in spec and not isinstance(spec[name], str):
            return f"{name} is not a string"
    for name in ("name", "slug", "schedule"):
        if len(spec.get(name, "")) > 100:
            return f"{name} is too long"
    if not re.fullmatch(r"[a-z0-9-_]*", spec.get("slug", "")):
        return "slug does not match pattern"
    for name in ("grace", "timeout"):
        span_s = spec.get(name, 60)
        if type(span_s) is not int:
            return f"{name} is not a number"
        if not 60 <= span_s <= 31_536_000:
            return f"{name} is too {'small' if span_s < 60 else 'large'}"
    if any(each not in _UNIQUE for each in spec.get("unique", [])):
        return "an item in 'unique' has unexpected value"
    if spec.get("tz", "UTC") not in zoneinfo.available_timezones():
        return "tz is not a valid timezone"
    try:
        next(CronSim(spec.get("schedule", "* * * * *"), datetime(2000, 1, 1)))
    except (CronSimError, StopIteration):
        return "schedule is not a valid cron or OnCalendar expression"
    return ""

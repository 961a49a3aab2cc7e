"""Prometheus' Pushgateway: a POST of metrics in the text format.

A POST replaces only metrics of the same names in the group, so that a failure leaves the last success alone; a PUT
would wipe it. Samples carry no timestamps: the gateway refuses them.
"""

from __future__ import annotations

from runguard.heartbeat.address import Address, join, split
from runguard.heartbeat.event import Event, Request, failure_status

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# The series of one job, each with its HELP text: the same wherever runguard writes metrics.
LAST_SUCCESS = ("runguard_last_success_timestamp_seconds", "When a run of the job last succeeded, in Unix time.")
LAST_EXIT = ("runguard_last_exit_status", "Exit status of the job's last run; never 0 for a failure.")
LAST_DURATION = ("runguard_last_duration_seconds", "How long the job's last run took.")
LAST_FINISH = ("runguard_last_finish_timestamp_seconds", "When the job's last run ended, in Unix time.")


def recognises(address: Address) -> bool:
    """`…/metrics/job/<job>`, with whatever labels after it."""
    _, metrics, rest = address.path.partition("/metrics/job")
    return bool(metrics) and rest.startswith(("/", "@base64/")) and bool(rest.partition("/")[2].strip("/"))


def request(url: str, event: Event) -> Request | None:
    """Return a POST to the group that `url` names."""
    if event.kind not in ("success", "failure"):
        return None
    at = f"{event.at_us // 1_000_000}.{event.at_us % 1_000_000:06d}"
    succeeded = event.kind == "success"
    lines = [
        *_gauge(LAST_EXIT, "0" if succeeded else str(failure_status(event) or 1)),
        *_gauge(LAST_FINISH, at),
        *(_gauge(LAST_DURATION, f"{event.duration_s:.3f}") if event.duration_s is not None else ()),
        *(_gauge(LAST_SUCCESS, at) if succeeded else ()),
    ]
    payload = "".join(f"{line}\n" for line in lines)
    return Request("POST", join(split(url)), (("Content-Type", CONTENT_TYPE),), payload=payload)


def _gauge(series: tuple[str, str], value: str) -> tuple[str, str, str]:
    name, meaning = series
    return f"# HELP {name} {meaning}", f"# TYPE {name} gauge", f"{name} {value}"

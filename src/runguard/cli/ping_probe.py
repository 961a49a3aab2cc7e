"""`ping --test`: whether a monitor is there and knows the job, without changing anything it knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runguard import clock, config
from runguard.cli.asking import Place
from runguard.cli.output import Column, Row, emit, page
from runguard.errors import ConfigError, UsageError
from runguard.guard import host
from runguard.guard.start import new_run_id
from runguard.heartbeat import client
from runguard.heartbeat.body import Body
from runguard.heartbeat.client import Sent
from runguard.heartbeat.event import Event
from runguard.heartbeat.redact import mask_url
from runguard.heartbeat.targets import Target, targets_of
from runguard.printable import line as safe

FIELDS = ("job", "style", "target", "sent_as", "verdict", "http_status", "detail")


def probe(
    environ: dict[str, str], place: Place, jobs: Sequence[str], form: str | None, *, yes: bool, dry_run: bool
) -> int:
    """Try the monitors of the jobs, tell their answers in words, and return 1 where one has not accepted.

    Of several monitors of a job those with a log are tried. Raises UsageError where none can be.
    """
    plans = [plan for job in jobs for plan in _plans(job, _targets(environ, place, job), yes=yes)]
    facts = [
        _facts(job, target, kind, None if dry_run else _send(environ, job, target, kind)) for job, target, kind in plans
    ]
    if form in (None, "table"):
        page(safe(_sentence(each)) for each in facts)
    else:
        emit(form or "", [Row(each, ()) for each in facts], [Column(field) for field in FIELDS], FIELDS)
    return 0 if dry_run or all(each["verdict"] == "accepted" for each in facts) else 1


def _targets(environ: dict[str, str], place: Place, job: str) -> tuple[Target, ...]:
    """Return the monitors of a job. Raises ConfigError where an address cannot be used, UsageError without any."""
    settings, problems = config.effective({}, environ, place.loaded, job)
    found = targets_of(settings)
    for why in (*(each.text for each in problems if each.breaks in ("ping", "that ping")), *found.flaws):
        raise ConfigError(why)
    if not found.targets:
        raise UsageError(
            f"no address is configured for {job} (key ping, or RUNGUARD_PING); an option of run is not known here"
        )
    return found.targets


def _plans(job: str, targets: Sequence[Target], *, yes: bool) -> list[tuple[str, Target, str]]:
    """Return which monitors are sent what: a line for the log, or a success. Raises UsageError for none at all."""
    silent = [each for each in targets if each.request(_event(job, "log")) is None]
    plans = [(job, each, "log") for each in targets if each not in silent]
    if yes:
        plans += [(job, each, "success") for each in silent if each.request(_event(job, "success")) is not None]
    if not plans and yes:
        raise UsageError(f"{job}: its monitor is told of failures alone: nothing can be tried")
    if not plans:
        style = silent[0].style
        raise UsageError(
            f"{job}: a {style} monitor has no log, so that a test would count as a success; --yes sends one"
        )
    return plans


def _event(job: str, kind: str) -> Event:
    actor = host.author({})
    said = f"a test of {job}'s monitor, from {actor.host}: no run has ended"
    return Event(
        kind, new_run_id(), 0, rid_ok=False, body=Body(said), job=job, host=actor.host, at_us=clock.look().wall_us
    )


def _send(environ: dict[str, str], job: str, target: Target, kind: str) -> Sent:
    request = target.request(_event(job, kind))
    assert request is not None
    return client.collect(client.launch(client.message(target.style, request, delays_s=()), environ))


def _facts(job: str, target: Target, kind: str, sent: Sent | None) -> dict[str, Any]:
    return {
        "job": job,
        "style": target.style,
        "target": mask_url(target.url(kind)),
        "sent_as": kind,
        "verdict": sent.verdict if sent else "would",
        "http_status": sent.status if sent else None,
        "detail": sent.detail if sent else "",
    }


def _sentence(facts: dict[str, Any]) -> str:
    what = "a line for its log" if facts["sent_as"] == "log" else "a success"
    told = f"{facts['job']}: {facts['target']} ({facts['style']})"
    match facts["verdict"]:
        case "accepted":
            changed = ": nothing else has changed there" if facts["sent_as"] == "log" else ""
            return f"{told} took {what} ({facts['detail']}){changed}"
        case "would":
            return f"{told} would be sent {what}"
        case "final":
            return f"{told} will never take it: {facts['detail']}{_hint(facts['http_status'])}"
    return f"{told} did not take it: {facts['detail']}"


def _hint(status: int | None) -> str:
    return "; there is no such check" if status in (200, 404, 410) else ""

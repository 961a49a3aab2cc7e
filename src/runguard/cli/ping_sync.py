"""`ping --sync`: a check on a Healthchecks server is created, or updated to expect the windows of its job."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

from runguard import clock, config, zones
from runguard.cli.asking import Place, open_registered
from runguard.cli.output import Column, Row, emit, page
from runguard.config.files import secret
from runguard.errors import ConfigError, UsageError, ZoneError
from runguard.guard.registering import configured
from runguard.heartbeat import client, management
from runguard.heartbeat.client import Sent
from runguard.heartbeat.event import Request
from runguard.heartbeat.management import Check, Wish
from runguard.heartbeat.redact import mask_text, mask_url, secrets_of
from runguard.heartbeat.targets import targets_of
from runguard.instant import SECOND_US, span
from runguard.printable import line as safe
from runguard.settings import Settings
from runguard.store.database import ReadOnlyStore

FIELDS = ("job", "action", "server", "check", "schedule", "tz", "period_s", "grace_s", "http_status", "detail")
_OF_CHECK = {"schedule": "schedule", "tz": "tz", "period_s": "timeout", "grace_s": "grace"}
_ANSWER_BYTES = 16_384


class Server(NamedTuple):
    """Where a check is kept, under which address, and the key that opens it."""

    base: str
    check: Check
    address: str  # that the job pings, a secret, or ""
    key: str


class Plan(NamedTuple):
    """What is to be done for a job: what its check is to expect, or why it cannot."""

    job: str
    server: Server
    wish: Wish | str


def sync(environ: dict[str, str], place: Place, jobs: Sequence[str] | None, form: str | None, *, dry_run: bool) -> int:
    """Create or update the checks of `jobs`, or of every job with a Healthchecks address; return 1 where one is not.

    What the server cannot expect exactly is named, and nothing is sent for it. Nothing is sent at all where something
    is not configured.
    """
    now_us = clock.look().wall_us
    records = open_registered(environ, place, now_us)
    with records or nullcontext():
        names = jobs if jobs is not None else _every(place, records)
        plans = [plan for job in names if (plan := _plan(environ, place, records, job, now_us, asked=bool(jobs)))]
    facts = [_done(environ, plan, _sharing(plan, plans), dry_run=dry_run) for plan in plans]
    if form in (None, "table"):
        page(safe(text) for each in facts for text in _sentences(each))
    else:
        rows = [Row({field: each[field] for field in FIELDS}, ()) for each in facts]
        emit(form or "", rows, [Column(field) for field in FIELDS], FIELDS)
    return 0 if all(each["action"] in ("created", "updated", "would") for each in facts) else 1


def _every(place: Place, records: ReadOnlyStore | None) -> list[str]:
    described: set[str] = set()
    for file in place.loaded.files:
        jobs = file.data.get("jobs")
        described |= set(jobs) if isinstance(jobs, dict) else set()
    return sorted(described | set(records.jobs() if records is not None else ()))


def _plan(
    environ: dict[str, str], place: Place, records: ReadOnlyStore | None, job: str, now_us: int, *, asked: bool
) -> Plan | None:
    """Return what is to be done for a job; None where it has no Healthchecks address and was not asked for.

    Raises UsageError where something is not configured, ConfigError where it cannot be read.
    """
    settings, problems = config.effective({}, environ, place.loaded, job)
    found = targets_of(settings)
    for why in (*(each.text for each in problems if each.breaks == "ping"), *found.flaws):
        raise ConfigError(f"{job}: {why}")
    target = next((each for each in found.targets if each.style == "healthchecks"), None)
    if target is None and not asked:
        return None
    address = target.url("success") if target is not None else ""
    base = settings.ping_api_url or (management.server_of(address) if address else None)
    if base is None:
        why = "its address does not tell where the management API is" if address else "it has no Healthchecks address"
        raise UsageError(f"{job}: {why}: set ping_api_url (https://healthchecks.io, or your own server)")
    if settings.ping_api_key is None:
        raise UsageError(f"{job}: set ping_api_key: the API key of the project, from its settings page")
    check = management.check_of(address) if address else Check()
    server = Server(base, check, address, _key(settings.ping_api_key))
    return Plan(job, server, _wish(environ, place, records, job, settings, now_us))


def _wish(
    environ: dict[str, str], place: Place, records: ReadOnlyStore | None, job: str, settings: Settings, now_us: int
) -> Wish | str:
    """Return what the check of a job is to expect, or why it cannot."""
    known = records.revisions(job) if records is not None else []
    if known and known[-1].schedule is None:
        return "it is retired: nothing is expected of it"
    grace_s = settings.grace_s + (settings.timeout_s or 0)
    schedule = known[-1].schedule if known else configured(environ, place.loaded, job)
    if schedule is None:
        if settings.max_age_s is None:
            return "it has no schedule and no max_age, so that nothing is expected of it"
        return management.wish_without_schedule(settings.max_age_s, grace_s=grace_s)
    try:
        zone = zones.load(schedule.zone).zone
    except ZoneError as error:
        return str(error)
    return management.wish(schedule, zone, now_us, grace_s=grace_s)


def _sharing(plan: Plan, plans: Sequence[Plan]) -> list[str]:
    """Return the other jobs that ping the same check."""
    same = (each.job for each in plans if each.server.address and each.server.address == plan.server.address)
    return [job for job in same if job != plan.job]


def _done(environ: dict[str, str], plan: Plan, sharing: Sequence[str], *, dry_run: bool) -> dict[str, Any]:
    """Do it, and return what became of the check of one job."""
    job, server, wish = plan
    facts = {**dict.fromkeys(FIELDS), "job": job, "server": _shown(server.base), "detail": ""}
    facts["check"] = mask_url(server.address) if server.address else None
    if isinstance(wish, str):
        return {**facts, "action": "refused", "detail": wish}
    if sharing:
        why = f"{', '.join(sharing)} ping{'s' * (len(sharing) == 1)} the same check, which can expect one job's windows"
        return {**facts, "action": "refused", "detail": why}
    facts |= {name: wish.fields.get(field) for name, field in _OF_CHECK.items()} | {"detail": wish.remark}
    if dry_run:
        return {**facts, "action": "would", "request": management.body_of(job, server.check, wish.fields)}
    return facts | _synced(environ, job, server, wish)


def _shown(base: str) -> str:
    """Return the address of a server without user and password."""
    scheme, separator, rest = base.partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}{separator}{authority.rpartition('@')[2]}{slash}{path}"


def _key(text: str) -> str:
    """Return the API key, read from its file where it is in one. Raises ConfigError."""
    if text.startswith("file:"):
        try:
            text = secret(text.removeprefix("file:"))
        except ValueError as error:
            raise ConfigError(f"ping_api_key: {error}") from None
    if not text.strip() or not text.isascii() or not text.isprintable():
        raise ConfigError("ping_api_key: it is empty, or holds characters that no key has")
    return text.strip()


def _synced(environ: dict[str, str], job: str, server: Server, wish: Wish) -> dict[str, Any]:
    """Send it, and return what came of it."""
    check = server.check
    sent = _ask(environ, server, check, management.body_of(job, check, wish.fields))
    if check.uuid and sent.status == 404:  # no such check: one by the job's name, whose address is another one
        check = Check()
        sent = _ask(environ, server, check, management.body_of(job, check, wish.fields))
    said = _read(sent)
    if sent.verdict != "accepted":
        error = said.get("error") if said else None
        why = error if isinstance(error, str) else sent.detail.removeprefix(f"HTTP {sent.status}").removeprefix(": ")
        why = mask_text(why, _secrets(server))
        return {"action": "failed", "http_status": sent.status, "detail": management.words(sent.status, why, check)}
    if said is None:
        why = f"HTTP {sent.status}, and what came with it describes no check; see ping_api_url"
        return {"action": "failed", "http_status": sent.status, "detail": why}
    url = said.get("ping_url")
    made = url if isinstance(url, str) and "://" in url else ""
    otherwise = list(_kept_otherwise(wish, said))
    doubts = [wish.remark, *otherwise, *_address_doubts(server, made)]
    if sent.status == 201 and made and not _integrated(environ, job, server, made):
        doubts.append("it could not be given the project's integrations: it alarms nobody yet")
    action = "failed" if otherwise or _is_elsewhere(server, made) else "created" if sent.status == 201 else "updated"
    detail = mask_text("; ".join(filter(None, doubts)), _secrets(server))
    facts = {"action": action, "http_status": sent.status, "detail": detail}
    return {**facts, "check": mask_url(made)} if made else facts


def _kept_otherwise(wish: Wish, said: dict[str, Any]) -> Iterator[str]:
    other = [f"{key} {said[key]!r}" for key, value in wish.fields.items() if key in said and said[key] != value]
    if other:
        yield f"the server keeps {', '.join(other)} in place of what was sent"


def _address_doubts(server: Server, made: str) -> Iterator[str]:
    """Yield what is to be done where the job does not ping the check that was made."""
    if _is_elsewhere(server, made):
        yield f"the server knows no check {mask_url(server.address)}; set ping to the address of this one"
    if not server.address:
        yield "the job does not ping it yet: set ping to its address, which the server's page shows"


def _is_elsewhere(server: Server, made: str) -> bool:
    return bool(server.check.uuid and made) and server.check.uuid.lower() not in made.lower()


def _integrated(environ: dict[str, str], job: str, server: Server, made: str) -> bool:
    """Give a new check all integrations of its project: without any it alarms nobody. One made by slug gets a name."""
    uuid = management.check_of(made).uuid
    named = {"name": job} if server.check.slug else {}
    return bool(uuid) and _ask(environ, server, Check(uuid=uuid), {**named, "channels": "*"}).verdict == "accepted"


def _ask(environ: dict[str, str], server: Server, check: Check, body: dict[str, Any]) -> Sent:
    """Send one request through the helper process and return its answer; nothing is sent without its body."""
    headers = (("X-Api-Key", server.key), ("Content-Type", "application/json"))
    request = Request("POST", management.endpoint(server.base, check), headers, payload=json.dumps(body))
    message = client.message("plain", request, answer_bytes=_ANSWER_BYTES, secrets=_secrets(server))
    return client.collect(client.launch(message, environ))


def _secrets(server: Server) -> tuple[str, ...]:
    """Return what no text of a server may repeat: the key, and what is secret in the address of the check."""
    return (server.key, *secrets_of({}, server.address))


def _read(sent: Sent) -> dict[str, Any] | None:
    """Return the JSON of an answer; None where it has something else: a page, say, of whoever else is there."""
    try:
        said = json.loads(sent.answer)
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) else None


def _sentences(facts: dict[str, Any]) -> Iterator[str]:
    detail = f": {facts['detail']}" if facts["detail"] else ""
    where = f" {facts['check']}" if facts["check"] else ""
    expects = f"{facts['schedule']!r} in {facts['tz']}" if facts["schedule"] else ""
    expects = expects or (f"every {span(facts['period_s'] * SECOND_US)}" if facts["period_s"] else "")
    expects += f", grace {span(facts['grace_s'] * SECOND_US)}" if facts["grace_s"] else ""
    match facts["action"]:
        case "created" | "updated":
            yield f"{facts['job']}: {facts['action']} the check{where} on {facts['server']}: {expects}{detail}"
        case "would":
            yield f"{facts['job']}: would send to{where} on {facts['server']}: {json.dumps(facts['request'])}{detail}"
        case "refused":
            yield f"{facts['job']}: not sent to {facts['server']}{detail}"
        case _:
            yield f"{facts['job']}: the check{where} on {facts['server']} is not as it should be{detail}"

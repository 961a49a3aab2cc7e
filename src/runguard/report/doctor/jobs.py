"""The jobs: whether cron would find their commands, and whether their monitors hear of them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import NamedTuple

from runguard.crontab import host as cron
from runguard.errors import StoreError
from runguard.heartbeat.redact import mask_url
from runguard.instant import rfc3339
from runguard.report.doctor.findings import Finding, fault, ok, unknown, warning
from runguard.report.doctor.world import Job, World
from runguard.report.lately import look

_RUNS = 200  # among so many of a job its last delivered ping is looked for


def commands(world: World) -> Iterator[Finding]:
    """Cron finds runguard itself, and the command of each job as it ran last, or as it is configured."""
    path, home = world.daemon.path, cron.home_of(None)
    found = [(job, _last(world, job)) for job in world.jobs]
    why = cron.why_not_found("runguard", path, home)
    # A start with cron's own PATH is one of cron's: then the line names the whole path.
    if why and all(its.path != path and (not its.path or _missing("runguard", its, home)) for _, its in found):
        yield warning(f"{why}; the crontab must set PATH, or name the whole path", "runguard lint")
    if not found:
        yield ok("no job is known yet")
    for job, its in found:
        yield _command(job, its, path, home)


class _Start(NamedTuple):
    """The program of a job, and the directory and PATH of its last start; "" where that is not known."""

    program: str
    directory: str
    path: str


def _command(job: Job, its: _Start, path: str, home: str) -> Finding:
    if not its.program:
        return unknown(f"{job.name}: no command is known yet", job=job.name)
    why = cron.why_not_found(its.program, path, its.directory or home)
    if not why:
        return ok(f"{job.name}: {its.program} is found", job=job.name)
    if its.path and not _missing(its.program, its, home):
        text = f"{job.name}: {why}; its last start had PATH={its.path}"
        return warning(f"{text}, which the crontab must set too", job=job.name)
    return fault(f"{job.name}: {why}", job=job.name)


def _missing(program: str, its: _Start, home: str) -> str:
    return cron.why_not_found(program, its.path, its.directory or home)


def _last(world: World, job: Job) -> _Start:
    """Return what is known of the job's command: as it is configured, else as it ran last."""
    try:
        run = world.records.last_started(job.name) if world.records else None
        [start, *_] = world.records.entries(run.run_id) if world.records and run else [{}]
    except StoreError:
        start = {}
    directory, path = start.get("cwd") or "", start.get("path") or ""
    match job.settings.command or start.get("argv") or "":
        case str() as line:
            return _Start(_first_word(line) if line else "", directory, path)
        case [line, *_] if start.get("shell") and not job.settings.command:
            return _Start(_first_word(line), directory, path)
        case [program, *_]:
            return _Start(program, directory, path)
    return _Start("", directory, path)


def _first_word(line: str) -> str:
    """Return the program that a line for /bin/sh begins with; "/bin/sh" where that takes more to tell."""
    try:
        first = shlex.split(line)[0]
    except (ValueError, IndexError):
        return "/bin/sh"
    return first if first.startswith("/") and not set(first) & set("$`*?[]{}~|&;<>()=") else "/bin/sh"


def pings(world: World) -> Iterator[Finding]:
    """The monitors of jobs have an address and took the last report."""
    told = [job for job in world.jobs if job.settings.ping_urls]
    if not told:
        yield ok("no job has a ping: an absence is noticed by check alone")
    for job in told:
        yield _ping(world, job)


def _ping(world: World, job: Job) -> Finding:
    said = f"{job.name}: {', '.join(mask_url(url) for url in job.settings.ping_urls)}"
    trial = f"runguard ping --test {job.name}"
    if world.records is None:
        return unknown(f"{said}: nothing is on record of it", trial, job=job.name)
    try:
        undelivered = look(world.records, job.name, world.places.runs, world.now_us).undelivered
        ((delivered_us,),) = world.records.rows("last_delivered", job=job.name, runs=_RUNS)
    except StoreError as error:
        return unknown(f"{job.name}: {error}", job=job.name)
    last = f"last delivered {rfc3339(delivered_us)}" if delivered_us is not None else "never delivered yet"
    if undelivered is not None:
        why = undelivered.error or undelivered.verdict
        return warning(f"{said}: the last report was not delivered ({why}); {last}", "runguard ping", job=job.name)
    return (
        unknown(f"{said}: {last}", trial, job=job.name) if delivered_us is None else ok(f"{said}: {last}", job=job.name)
    )

"""Hazards of lines that runguard guards: options that do not fit the line they stand in."""

from __future__ import annotations

from collections.abc import Iterator

from runguard.crontab import fields, guarded
from runguard.crontab.guarded import Guarded
from runguard.crontab.hazards import Finding, Host, World
from runguard.crontab.parse import Line, shown
from runguard.errors import ScheduleError
from runguard.schedule import cron
from runguard.schedule.cron import Cron
from runguard.schedule.nominal import Nominal

_RECURRENCES = ("RRULE", "DTSTART")
ENOUGH_RUNS = 3  # that took too long: one may be an accident


def judge(line: Line, host: Host, world: World) -> Iterator[Finding]:
    """Yield the hazards of a guarded line; nothing for one that is not guarded, or cannot be taken apart."""
    try:
        found = guarded.read(line.command)
    except guarded.Unreadable:
        return
    if found is None:
        return
    fires = _cron(line.schedule.decode("utf-8", "surrogateescape"))
    yield from _schedule(line, found, fires, host)
    yield from _zone(line, found, host, world)
    if fires is not None and found.job is not None:
        yield from _overruns(line, found.job, fires, host)


def _schedule(line: Line, found: Guarded, fires: Cron | None, host: Host) -> Iterator[Finding]:
    fields_ = line.schedule.decode("utf-8", "surrogateescape")
    given = [("its --schedule", found.options["schedule"])] if "schedule" in found.options else []
    configured = None if found.job is None else host.configured(found.job)
    if configured is not None:
        given.append(("the schedule in runguard.toml", configured.expression))
    if not given and fires is not None:
        yield Finding(
            line.number,
            "no-window",
            "runguard is given no schedule, here or in runguard.toml",
            "each start is recorded without a window: nothing can be missing, and nothing is done twice",
            f"--schedule '{fields_}'",
        )
    for where, text in given:
        if text is None or text.lstrip()[:7].upper().startswith(_RECURRENCES):
            continue
        expected = _cron(text)
        if expected != fires and (expected is None or fires is None or _meaning(expected) != _meaning(fires)):
            yield Finding(
                line.number,
                "schedule-differs",
                f"cron fires at '{shown(line.schedule)}', and {where} is '{text}'",
                "windows are expected that no start answers, and starts answer windows that they were not meant for",
                f"make them equal: '{fields_}'",
            )


def _zone(line: Line, found: Guarded, host: Host, world: World) -> Iterator[Finding]:
    given = [("--timezone", found.options["timezone"])] if "timezone" in found.options else []
    configured = None if found.job is None else host.configured(found.job)
    if configured is not None:
        given.append(("the time zone in runguard.toml", configured.zone))
    if not given and "schedule" in found.options:
        given = [("the host's zone, which runguard takes,", host.zone.name)]
    for where, name in given:
        if name is None or world.zone is None:
            continue
        zone = host.zone if name == host.zone.name else host.zone_of(name)
        if zone is None:
            yield Finding(
                line.number,
                "zone-differs",
                f"{where} {name!r} is no zone known here",
                "the job runs without a window",
                "write a name such as Europe/London",
            )
        elif zone.name != world.zone.name and (zone.data != world.zone.data or not zone.data):
            yield Finding(
                line.number,
                "zone-differs",
                f"cron fires it by {world.zone.name}, and {where} is {name}",
                "each start seems early or late by the difference of the zones, and may answer the wrong window",
                f"--timezone {world.zone.name}",
            )


def _overruns(line: Line, job: str, fires: Cron, host: Host) -> Iterator[Finding]:
    """Tell of a job whose latest runs took longer than the time between two starts."""
    interval_s = Nominal(fires).shortest_s
    took_s = host.took_s(job, line.user.decode("utf-8", "surrogateescape"))
    longer = [each for each in took_s if each > interval_s]
    if len(longer) < ENOUGH_RUNS:
        return
    yield Finding(
        line.number,
        "overruns",
        f"{len(longer)} of its last {len(took_s)} runs took longer than the {_span(interval_s)} between starts",
        f"the next start finds it running and is refused (the longest took {_span(max(longer))})",
        "start it less often, or make it faster; --timeout ends what hangs",
    )


def _meaning(schedule: Cron) -> tuple[object, ...]:
    """Return what decides when a schedule is due, however it is written."""
    both = len(schedule.days) < 31 and len(schedule.weekdays) < 7
    return fields.values_of(schedule), schedule.wild, both and schedule.day_and


def _cron(text: str) -> Cron | None:
    try:
        return cron.parse(text)
    except ScheduleError:
        return None


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"

"""Hazards of schedules: what a daemon reads otherwise, never fires, fires twice, or not when it seems."""

from __future__ import annotations

from collections.abc import Iterator

from runguard.crontab import daemons, fields
from runguard.crontab.daemons import Daemon
from runguard.crontab.fields import Reading, Values
from runguard.crontab.hazards import Finding, Host
from runguard.crontab.parse import Line, shown
from runguard.errors import ScheduleError
from runguard.instant import DAY_S, SECOND_US
from runguard.schedule import cron, oddities
from runguard.schedule.cron import Cron
from runguard.schedule.policy import rule
from runguard.schedule.windows import Timetable, local_text, offset_text
from runguard.schedule.zone import Zone

AHEAD_DAYS = 731  # two years
_SHOWN = 4  # changes of offset that a finding tells
_CRONS_WORDS = (
    (": no window", ": it does not run"),
    (": due ", ": it runs at "),
    (": the first counts", ": it runs at the first"),
    (": both count, this is the first", ": it runs both times"),
)


def judge(line: Line, host: Host, zone: Zone | None, policy: str) -> Iterator[Finding]:
    """Yield the hazards of a job's schedule. `zone` is that of its daemon, None where it is not known."""
    daemon = host.daemon
    if line.unlogged and not daemon.takes_minus:
        why = f"'-{shown(line.schedule)}': {daemon.title} reads no - in front of a schedule"
        yield Finding(line.number, "unreadable", why, _lost(daemon), "take the - off")
        return
    if line.schedule == b"@reboot" and daemon.macros:
        return
    text = line.schedule.decode("utf-8", "surrogateescape")
    if text.startswith("@") and (not daemon.macros or text not in cron.MACROS):
        yield _unknown_name(line, text, daemon)
        return
    try:
        ours = cron.parse(text)
    except ScheduleError as error:
        yield _refused_by_us(line, text, error, daemon)
        return
    reading = fields.read(text, daemon)
    if reading.refused:
        yield Finding(
            line.number,
            "unreadable",
            f"{daemon.title} does not read the {reading.refused} of '{shown(line.schedule)}'",
            _lost(daemon),
            f"write what it reads: {_plain(fields.values_of(ours))}",
        )
        return
    if reading.values != fields.values_of(ours):
        yield _otherwise(line, text, reading, daemon, f"'{shown(line.schedule)}': not what it seems")
        return
    yield from _day_fields(line, ours, daemon)
    if zone is not None:
        yield from _changes(line, text, ours, host, zone, policy)


def _unknown_name(line: Line, text: str, daemon: Daemon) -> Finding:
    plain = cron.MACROS.get(text.lower())
    if daemon.macros:
        return Finding(
            line.number,
            "unreadable",
            f"{daemon.title} does not know '{shown(line.schedule)}'",
            _lost(daemon),
            f"write {text.lower()}" if plain else f"write five fields, or one of {' '.join(cron.MACROS)} @reboot",
        )
    return Finding(
        line.number,
        "never-fires",
        f"{daemon.title} knows no '{shown(line.schedule)}'",
        "the one of Debian 12 dies of such a line (segmentation fault), and others pass over it",
        f"write '{plain}'" if plain else "start it at boot by other means",
    )


def _refused_by_us(line: Line, text: str, error: ScheduleError, daemon: Daemon) -> Finding:
    """Tell of a schedule that runguard does not read, with what the daemon makes of it."""
    place = f"{error.field}, " if error.field else ""
    reason = f"'{shown(line.schedule)}': {place}{error.why.partition(';')[0]}"
    if daemon.name == "cronie" and "~" in text:
        happens = "cronie chooses a time of that range whenever it reads the table, and no window can be told from it"
        return Finding(line.number, "reads-otherwise", reason, happens, "write a time of your own choice")
    reading = fields.read(text, daemon)
    if not reading.refused and "no such date" in error.why:
        return Finding(line.number, "never-fires", reason, "it never fires", "write a date that comes")
    if not reading.refused:
        return _otherwise(line, text, reading, daemon, reason)
    return Finding(line.number, "unreadable", reason, _lost(daemon), "write five fields such as '30 2 * * *'")


def _otherwise(line: Line, text: str, reading: Reading, daemon: Daemon, reason: str) -> Finding:
    """Tell of a schedule that the daemon takes for another than it seems."""
    if not reading.empty:
        told = "; ".join(
            f"{field[0]} {_listed(found)}"
            for field, found in zip(fields.FIELDS, reading.values, strict=True)
            if len(found) not in (field[2] - field[1] + 1, 7)
        )
        return Finding(
            line.number,
            "reads-otherwise",
            reason,
            f"{daemon.title} fires it at {told}" if told else f"{daemon.title} fires it every minute",
            f"write {_plain(reading.values)} if that is meant",
        )
    happens = f"{daemon.title} accepts it, and the {reading.empty} matches nothing: it never fires"
    if reading.empty == "day of week" and len(reading.values[2]) < 31 and not text.split()[2].startswith("*"):
        happens = f"{daemon.title} accepts it, and no day of the week matches: it fires by the day of month alone"
    around = fields.read(text, daemons.BUSYBOX)  # that takes such a range around the end
    fix = "write the values one by one" if around.refused else f"write {_plain(around.values)}"
    return Finding(line.number, "never-fires", reason, happens, fix)


def _day_fields(line: Line, ours: Cron, daemon: Daemon) -> Iterator[Finding]:
    """Tell how two restricted day fields are joined."""
    days, weekdays = len(ours.days) < 31, len(ours.weekdays) < 7
    if not (days and weekdays):
        return
    if daemon.name == "busybox" or not ours.day_and:
        yield Finding(
            line.number,
            "day-fields",
            f"'{shown(line.schedule)}' restricts the day of month and the day of week",
            "it fires on days that match either, not both",
            'keep one of the two; test the other in the command: [ "$(date +\\%u)" = 1 ] && …',
        )
        return
    field = "day of month" if ours.day_star else "day of week"
    yield Finding(
        line.number,
        "day-fields",
        f"the {field} of '{shown(line.schedule)}' is restricted and begins with *",
        "it fires only on days that match both; with a number in front it would be either",
        'keep one of the two; test the other in the command: [ "$(date +\\%u)" = 1 ] && …',
    )


def _changes(line: Line, text: str, ours: Cron, host: Host, zone: Zone, policy: str) -> Iterator[Finding]:
    """Tell what the changes of offset of the next two years do to it."""
    if ours.all_hours and (ours.wild or policy == "walk"):
        return  # as often as hours pass
    table = Timetable(ours, zone, rule(policy, None, None, wild=ours.wild))
    now_s = host.now_us // SECOND_US
    told: dict[str, list[tuple[str, str]]] = {"gap": [], "fold": []}
    for at_s, before_s, after_s in zone.changes(now_s, now_s + AHEAD_DAYS * DAY_S):
        found = _at_change(table, at_s, before_s, after_s)
        if found:
            label = local_text(at_s + after_s) + offset_text(after_s)
            told["gap" if after_s > before_s else "fold"].append((label, found))
    if not (told["gap"] or told["fold"]):
        return
    if ours.all_hours and not ours.wild and policy == "vixie":
        both = sorted(told["gap"] + told["fold"])
        yield Finding(
            line.number,
            "not-every-hour",
            f"'{shown(line.schedule)}' names every hour, and not by *",
            f"{host.daemon.title} takes it for fixed times: {_told(both)}",
            f"write * for the hour: {' '.join(_with_star(text))}",
            tuple(at for at, _ in both),
        )
        return
    for hazard, changes in told.items():
        if changes:
            yield Finding(
                line.number,
                hazard,
                _why(hazard, line, ours, zone),
                _told(changes),
                _fix(ours, policy),
                tuple(at for at, _ in changes),
            )


def _at_change(table: Timetable, at_s: int, before_s: int, after_s: int) -> str:
    """Return what one change of offset does, in words, or ""."""
    width_s = abs(after_s - before_s)
    after_us, until_us = (at_s - width_s - 60) * SECOND_US, (at_s + width_s) * SECOND_US
    said = [skip.because for skip in oddities.skipped(table, (at_s - 1) * SECOND_US, at_s * SECOND_US)]
    said += [each for window in table.between(after_us, until_us) if (each := oddities.oddity(table, window))]
    told = [_as_cron(each) for each in said if "this is the second" not in each]
    return "; ".join(told if len(told) < 3 else [told[0], f"and {len(told) - 1} more like it"])


def _as_cron(said: str) -> str:
    """Return in words of a daemon what `oddities` says of windows."""
    for window, run in _CRONS_WORDS:
        said = said.replace(window, run)
    return said


def _why(hazard: str, line: Line, ours: Cron, zone: Zone) -> str:
    what = "do not exist" if hazard == "gap" else "come twice"
    happens = "nothing is made up for" if hazard == "gap" else "it fires each time"
    wild = f", and its minute or hour begins with *, so that {happens}" if ours.wild else ""
    return f"times of '{shown(line.schedule)}' {what} in {zone.name}{wild}"


def _fix(ours: Cron, policy: str) -> str:
    free = "choose an hour in which no clock changes"
    if ours.wild and policy == "vixie":
        return f"{free}, or write the values without * ({_plain(fields.values_of(ours))})"
    return f"{free}; under runguard a window is answered once, whatever the daemon fires"


def _told(changes: list[tuple[str, str]]) -> str:
    shown = [f"{at[:4]}: {what}" for at, what in changes[:_SHOWN]]
    return "; ".join(shown) + (f"; and {len(changes) - _SHOWN} more changes" if len(changes) > _SHOWN else "")


def _with_star(text: str) -> list[str]:
    pieces = text.split()
    return [pieces[0], "*", *pieces[2:]]


def _plain(values: Values) -> str:
    """Return five fields, in quotes, that every daemon reads alike; the hour of an hourly schedule is a *."""
    full = (60, 24, 31, 12, 7)
    pieces = ["*" if len(found) == size else _listed(found) for found, size in zip(values, full, strict=True)]
    return f"'{' '.join(pieces)}'"


def _listed(values: frozenset[int]) -> str:
    """Return "1-5,7" of a set of numbers."""
    runs: list[list[int]] = []
    for value in sorted(values):
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs)


def _lost(daemon: Daemon) -> str:
    if daemon.all_or_nothing:
        return f"{daemon.title} then runs no line of this table at all"
    return f"{daemon.title} passes over the line"

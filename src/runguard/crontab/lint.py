"""Judge a table: every hazard with its line, the reason, what really happens, and a fix. Pure."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from runguard.crontab import commands, fields, guarded, guards, places, timing, wrap
from runguard.crontab.hazards import HAZARDS, Finding, Host, Table, World
from runguard.crontab.parse import Line, shown, unescaped
from runguard.errors import ScheduleError
from runguard.schedule import cron
from runguard.schedule.nominal import Nominal

_YEAR_DAYS = 366
MOST_ALIKE = 8  # lines of one command that are compared


class Seen(NamedTuple):
    """The lines of tables that were judged before, each with the label of its table."""

    commands: dict[tuple[bytes, bytes], list[tuple[str, Line]]]  # by (user, command with its stdin)
    jobs: dict[tuple[bytes, str], tuple[str, Line]]  # by (user, name)


def judge(table: Table, host: Host, seen: Seen | None = None) -> list[Finding]:
    """Return the hazards of a table by line, the table's own first; `seen` grows by its lines. Raises wrap.BadMark.

    A comment `# runguard: ignore` silences the line below, `# runguard: allow=HAZARD,…` those hazards of it.
    """
    found = [*places.judge(table, host), *_lines(table, host), *_twice(table, seen or Seen({}, {}))]
    given = wrap.marks(table.lines)
    order = {hazard: at for at, hazard in enumerate(HAZARDS)}
    kept = [
        each
        for each in found
        if each.number is None
        or (not (mark := given.get(each.number, wrap.Mark())).ignore and each.hazard not in mark.allow)
    ]  # fmt: skip
    return sorted(kept, key=lambda each: (each.number or 0, order[each.hazard]))


def _lines(table: Table, host: Host) -> Iterator[Finding]:
    world = World(wrap.SH, host.daemon.path, host.zone)
    policy = host.daemon.policy
    timed: dict[tuple[bytes, bool, int, str], list[Finding]] = {}  # tables of thousands of lines have few schedules
    for line in table.lines:
        if line.kind == "variable":
            yield from places.variable(line, host)
            world, policy = _told(line, host, world, policy)
        elif line.kind == "broken":
            yield _broken(line, host)
        elif line.kind == "job":
            key = line.schedule, line.unlogged, id(world.zone), policy
            if key not in timed:
                timed[key] = list(timing.judge(line, host, world.zone, policy))
            yield from (each._replace(number=line.number) for each in timed[key])
            if line.user and not host.is_account(line.user.decode("utf-8", "surrogateescape")):
                yield _no_account(line, host)
            yield from commands.judge(line, _bared(line, world.shell), host, world)
            yield from guards.judge(line, host, world)


def _told(line: Line, host: Host, world: World, policy: str) -> tuple[World, str]:
    """Return what a variable changes for the lines below it."""
    daemon, value = host.daemon, line.value.decode("utf-8", "surrogateescape")
    if line.name == b"SHELL" and daemon.sets_shell:
        return world._replace(shell=line.value), policy
    if line.name == b"PATH" and daemon.sets_variables:
        return world._replace(path=value), policy
    if line.name == b"CRON_TZ" and daemon.obeys_cron_tz:
        return world._replace(zone=host.zone_of(value)), "walk"  # cronie makes nothing up for such lines
    return world, policy


def _broken(line: Line, host: Host) -> Finding:
    text = shown(line.text)
    if host.daemon.name == "busybox":
        happens = f"{host.daemon.title} passes over it"
    elif line.why.startswith("it has no command") and fields.takes(line.schedule, host.daemon):
        happens = "cron fires it, and an empty command runs"
    elif host.daemon.all_or_nothing:
        happens = f"{host.daemon.title} then runs no line of this table at all"
    else:
        happens = f"{host.daemon.title} passes over the line"
    fix = "put # in front of it, or complete it"
    if b"=" in line.text and line.text.rstrip().endswith(b"="):
        fix = f'write {text}""'
    return Finding(line.number, "unreadable", f"'{text}': {line.why}", happens, fix)


def _no_account(line: Line, host: Host) -> Finding:
    user = shown(line.user)
    lost = "runs no line of this table at all" if host.daemon.all_or_nothing else "passes over the line"
    return Finding(
        line.number,
        "user",
        f"the sixth field, '{user}', is no account of this host",
        f"{host.daemon.title} then {lost}",
        "tables of this place name the user between the schedule and the command",
    )


def _twice(table: Table, seen: Seen) -> Iterator[Finding]:
    """Tell of commands that two lines start at one minute, and of names that two lines use."""
    for line in table.lines:
        if line.kind != "job":
            continue
        name, user = _name(line), line.user or table.owner.encode()
        where, before = seen.jobs.setdefault((user, name), (table.label, line)) if name else ("", line)
        if before is not line:
            yield Finding(
                line.number,
                "name-twice",
                f"the job {name} is that of {_other(where, before, table)} too",
                "the two exclude each other, and answer each other's windows",
                "give one of them another --job",
            )
        same = seen.commands.setdefault((user, unescaped(_bared(line, wrap.SH)).strip() + line.stdin), [])
        meets = next((each for each in same if _meet(each[1], line)), None)
        if meets is not None:
            yield Finding(
                line.number,
                "duplicate",
                f"{_other(*meets, table)} has the same command, and fires at the same minutes",
                "it runs twice at once",
                "take one of them out",
            )
        if len(same) < MOST_ALIKE:
            same.append((table.label, line))


def _other(label: str, line: Line, table: Table) -> str:
    return f"line {line.number}" if label == table.label else f"{label}:{line.number}"


def _name(line: Line) -> str | None:
    try:
        found = guarded.read(line.command)
    except guarded.Unreadable:
        return None
    return None if found is None else found.job


def _bared(line: Line, shell: bytes) -> bytes:
    """Return a command without what guards it."""
    try:
        return wrap.bared(line.command, shell)
    except guarded.Unreadable:
        return line.command


def _meet(one: Line, other: Line) -> bool:
    """Tell whether two schedules name a common minute."""
    if one.schedule == other.schedule:
        return True
    left, right = _nominal(one.schedule), _nominal(other.schedule)
    if left is None or right is None or set(left.minutes).isdisjoint(right.minutes):
        return False
    days = 20_000, 20_000 + 4 * _YEAR_DAYS  # four years, a leap day among them
    return not set(left.days(*days)).isdisjoint(right.days(*days))


@functools.lru_cache(maxsize=1024)
def _nominal(schedule: bytes) -> Nominal | None:
    try:
        return Nominal(cron.parse(schedule.decode("utf-8", "surrogateescape")))
    except ScheduleError:
        return None


def names_of(tables: Iterable[Table]) -> set[str]:
    """Return the names of the jobs that lines of some tables guard."""
    return {name for table in tables for line in table.lines if line.kind == "job" and (name := _name(line))}

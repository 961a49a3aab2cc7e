"""Time: which cron fires the lines, by which zone, whose rules, and whether somebody keeps the clock right."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from typing import ClassVar

from runguard import zones
from runguard.crontab import host as cron
from runguard.errors import ZoneError
from runguard.instant import DAY_S, SECOND_US, rfc3339
from runguard.report.doctor.findings import Finding, ok, unknown, warning
from runguard.report.doctor.world import World
from runguard.schedule.zone import Zone

_DAEMONS = ("cron", "crond", "fcron", "dcron", "anacron")
_CLOCK_DAEMONS = ("chronyd", "ntpd", "systemd-timesyn", "openntpd", "ptp4l", "phc2sys")
_KEPT_BY_SYSTEMD = "/run/systemd/timesync/synchronized"
_UNSYNCHRONISED = 0x40  # STA_UNSYNC of adjtimex(2)
_AHEAD_S = 366 * DAY_S


class Timex(ctypes.Structure):
    """The beginning of struct timex; the kernel writes no more than 208 bytes of it."""

    _fields_: ClassVar = [
        ("modes", ctypes.c_uint), ("offset", ctypes.c_long), ("freq", ctypes.c_long), ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long), ("status", ctypes.c_int), ("rest", ctypes.c_char * 256),
    ]  # fmt: skip


def kernels_word() -> Timex | None:
    """Return what the kernel knows of its clock, or None where it does not say."""
    state = Timex()
    try:
        answer = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(state))
    except (OSError, AttributeError):
        return None
    return state if answer >= 0 else None


def cron_daemon(_world: World) -> Iterator[Finding]:
    """One is installed and runs; or systemd's timers fire the lines."""
    found = cron.daemon()
    running = _processes(_DAEMONS)
    if found is None and not running:
        yield unknown("no cron daemon is installed here; if systemd's timers start the jobs, none is needed")
    elif found is None:
        yield unknown(f"{running[0]} runs, which is none that runguard knows the habits of")
    elif not running and not _is_busybox_running():
        yield warning(f"{found.title} is installed and does not run", "systemctl start cron")
    else:
        yield ok(f"{found.title} runs")


def daemon_zone(world: World, said: tuple[str, str] | None = None) -> Iterator[Finding]:
    """Cron fires by the zone in which the jobs' windows are due; `said` is its zone, and who says so."""
    name, said_by = said or _zone_of_cron()
    yield from _disagreement()
    try:
        zone = zones.load(name).zone
    except ZoneError as error:
        yield warning(f"{said_by}: {error}; cron goes by UTC then")
        return
    from_s = world.now_us // SECOND_US
    different = False
    for job in world.jobs:
        if job.schedule is None or not _loads(job.schedule.zone):
            continue
        own = zones.load(job.schedule.zone).zone
        at_s = first_difference(zone, own, from_s)
        if at_s is not None:
            different = True
            since = "" if at_s == from_s else f" from {rfc3339(at_s * SECOND_US)} on"
            text = f"{job.name} is due by {job.schedule.zone}, and cron fires by {name} ({said_by}): they differ{since}"
            yield warning(text, "runguard lint", job=job.name)
    if not different:
        habit = "" if world.daemon.obeys_cron_tz else f"; {world.daemon.title} does not obey CRON_TZ"
        yield ok(f"cron fires by {name} ({said_by}), as the jobs' windows are due{habit}")


def tzdata(world: World) -> Iterator[Finding]:
    """The system's rules and those of the package agree on the jobs' zones for the year to come."""
    names = sorted({job.schedule.zone for job in world.jobs if job.schedule} | {zones.host_zone_name()})
    from_s = world.now_us // SECOND_US
    versions, differing = set(), False
    for name in names:
        try:
            used = zones.load(name)
        except ZoneError as error:
            differing = True
            yield warning(f"{error}; jobs of it run without a window", "apt-get install tzdata")
            continue
        try:
            package = zones.load(name, directories=()) if name != zones.LOCALTIME else used
        except ZoneError:
            continue
        versions.add((used.tzdata, package.tzdata))
        at_s = first_difference(used.zone, package.zone, from_s)
        if at_s is not None:
            differing = True
            text = f"{name}: from {rfc3339(at_s * SECOND_US)} on the system's rules ({used.tzdata}) and those of the"
            yield warning(f"{text} package ({package.tzdata}) differ", "apt-get install --only-upgrade tzdata")
    if not differing:
        said = "; ".join(f"system {system}, package {package}" for system, package in sorted(versions))
        yield ok(f"tzdata: {said or 'unknown'}; {', '.join(names)} alike for a year")


def clock(
    _world: World, kernel: Callable[[], Timex | None] = kernels_word, kept: str = _KEPT_BY_SYSTEMD
) -> Iterator[Finding]:
    """Somebody keeps the clock right."""
    state = kernel()
    if state is not None and not state.status & _UNSYNCHRONISED:
        yield ok(f"the kernel's clock is kept (error at most {state.maxerror / SECOND_US:.3f} s)")
    elif os.path.exists(kept):
        yield ok("systemd-timesyncd has set the clock")
    elif running := _processes(_CLOCK_DAEMONS):
        yield unknown(f"{running[0]} runs; whether it has set the clock is not to be seen here", "timedatectl status")
    else:
        yield unknown("nobody here says that the clock is kept right; in a container its host does it",
                      "timedatectl status")  # fmt: skip


def _zone_of_cron() -> tuple[str, str]:
    """Return the zone that cron goes by, and who says so."""
    own = cron.zone_of_daemon()
    return (own, "TZ of the daemon") if own else (zones.host_zone_name(), "/etc/localtime")


def _disagreement() -> Iterator[Finding]:
    """Yield that /etc/timezone names another zone than /etc/localtime: programs go by the one or the other."""
    try:
        with open("/etc/timezone", encoding="utf-8", errors="replace") as file:
            said = file.read(200).strip()
    except OSError:
        return
    name = zones.host_zone_name()
    if not said or said == name or not _loads(said) or not _loads(name):
        return
    if zones.load(said).zone.data != zones.load(name).zone.data:
        text = f"/etc/timezone says {said}, and /etc/localtime is {name}: cron and runguard go by the latter"
        yield warning(text, "dpkg-reconfigure tzdata")


def _loads(name: str) -> bool:
    try:
        zones.load(name)
    except ZoneError:
        return False
    return True


def first_difference(one: Zone, other: Zone, from_s: int) -> int | None:
    """Return the first instant within a year at which the offsets differ, or None."""
    until_s = from_s + _AHEAD_S
    if one.offset_at(from_s) != other.offset_at(from_s):
        return from_s
    changes = {instant_s for zone in (one, other) for instant_s, _, _ in zone.changes(from_s, until_s)}
    return next((at_s for at_s in sorted(changes) if one.offset_at(at_s) != other.offset_at(at_s)), None)


def _processes(names: tuple[str, ...]) -> list[str]:
    """Return those of some short names that living processes have."""
    found = set()
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/comm", encoding="utf-8", errors="replace") as file:
                    found.add(file.read().strip())
            except OSError:
                continue
    return [name for name in names if name in found]


def _is_busybox_running() -> bool:
    return bool(_processes(("busybox",)))

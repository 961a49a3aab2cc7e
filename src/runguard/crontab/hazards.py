"""The words of `lint`: what it is told of a table and its host, and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from runguard.crontab.daemons import Daemon
from runguard.crontab.parse import Line
from runguard.model import Schedule
from runguard.schedule.zone import Zone

# Every hazard, in the order of the manual.
HAZARDS = (
    "gap", "fold", "not-every-hour", "never-fires", "reads-otherwise", "unreadable", "day-fields", "cron-tz", "percent",
    "backslash", "hash", "path", "not-sh", "pipeline", "background", "output-lost", "duplicate", "name-twice",
    "variable", "no-newline", "carriage-return", "too-long", "file-name", "file-mode", "file-owner", "user",
    "schedule-differs", "zone-differs", "no-window", "overruns",
)  # fmt: skip


class Finding(NamedTuple):
    """One hazard."""

    number: int | None  # of the line; None: the table as a whole
    hazard: str  # of HAZARDS
    reason: str  # what is wrong with it
    happens: str  # what really happens
    fix: str  # what to do, or to type
    dates: tuple[str, ...] = ()  # local times with offset, of gaps and folds


class Place(NamedTuple):
    """Where a table of /etc/cron.d or /etc/crontab lies, and whose it is."""

    name: str  # of the file
    in_directory: bool  # in a cron.d, whose daemon chooses by name
    mode: int
    uid: int
    links: int


class Table(NamedTuple):
    """A table to judge."""

    label: str  # its path, or "crontab of ann"
    lines: Sequence[Line]
    system: bool
    place: Place | None = None
    owner: str = ""  # whose commands run where a line names no user; "": ours


class Host(NamedTuple):
    """What is known of the host. The functions are asked for facts and change nothing."""

    daemon: Daemon
    zone: Zone  # the daemon's
    now_us: int
    zone_of: Callable[[str], Zone | None]
    why_not_found: Callable[[str, str, str], str]  # (program, PATH, user or "") → "", or why a job would not find it
    is_account: Callable[[str], bool]
    configured: Callable[[str], Schedule | None]  # of a job, by runguard.toml
    took_s: Callable[[str, str], Sequence[float]]  # (job, user or "") → how long its latest runs took, newest first
    sh_is_plain: bool = True  # /bin/sh knows no more than POSIX and dash do


class World(NamedTuple):
    """What cron has been told above a line."""

    shell: bytes
    path: str
    zone: Zone | None  # of the schedules; None where it is not known here

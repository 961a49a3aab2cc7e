"""Hazards of a table as a whole: its file, its lines, its variables."""

from __future__ import annotations

import re
from collections.abc import Iterator

from runguard.crontab.hazards import Finding, Host, Table
from runguard.crontab.parse import Line, shown

_CLASSIC_NAME = re.compile(r"[A-Za-z0-9_-]+")
_EXPANSION = re.compile(rb"\$[A-Za-z_{(]|^~/|:~/")
_WRITABLE_BY_OTHERS = 0o022


def judge(table: Table, host: Host) -> Iterator[Finding]:
    """Yield what keeps the daemon from reading the table, or parts of it."""
    yield from _file(table, host)
    yield from _size(table, host)
    returns = [line.number for line in table.lines if line.returns]
    if returns:
        others = f", and {len(returns) - 1} more" if len(returns) > 1 else ""
        yield Finding(
            returns[0],
            "carriage-return",
            f"the line ends in a carriage return (CR LF){others}",
            "cron takes it for a part of the command, its last word, or the value",
            r"sed -i 's/\r$//' FILE",
        )


def variable(line: Line, host: Host) -> Iterator[Finding]:
    """Yield the hazards of a line that sets a variable."""
    name = shown(line.name)
    daemon = host.daemon
    if name == "CRON_TZ" and not daemon.obeys_cron_tz:
        yield Finding(
            line.number,
            "cron-tz",
            f"{daemon.title} does not obey CRON_TZ",
            f"the schedules below are in the daemon's own zone, {host.zone.name}",
            "write the times in that zone, or change the host's (timedatectl set-timezone) and restart cron",
        )
    elif name == "CRON_TZ" and host.zone_of(line.value.decode("utf-8", "replace")) is None:
        yield Finding(
            line.number,
            "cron-tz",
            f"CRON_TZ={shown(line.value)} is no zone known here",
            "the schedules below are taken for UTC, or for the daemon's zone",
            "write a name such as Europe/London",
        )
    elif name == "TZ":
        yield Finding(
            line.number,
            "cron-tz",
            "TZ is the zone of the commands, and not of the schedules",
            f"the schedules below are in the daemon's own zone, {host.zone.name}",
            "if only the commands are meant, say so above the line: # runguard: allow=cron-tz",
        )
    elif not daemon.sets_variables and name not in ("SHELL", "MAILTO"):
        yield Finding(
            line.number,
            "variable",
            f"{daemon.title} sets no {name}",
            "the commands below do not get it",
            "set it in the commands, or in a script",
        )
    elif _EXPANSION.search(line.value):
        yield Finding(
            line.number,
            "variable",
            f"the value of {name} has a $ or ~",
            "cron expands nothing: the value holds those very characters",
            "write it out",
        )
    elif b" #" in line.value:
        yield Finding(
            line.number,
            "variable",
            f"the value of {name} has a #",
            "cron knows no comment behind a value: it is a part of it",
            "put the comment on a line of its own",
        )


def _file(table: Table, host: Host) -> Iterator[Finding]:
    """Judge a file as Debian's cron and cronie do before they read it."""
    place = table.place
    if place is None or host.daemon.name == "busybox":
        return
    daemon, path = host.daemon, table.label
    ignored = f"{daemon.title} ignores the whole table"
    better = re.sub("[^A-Za-z0-9_-]+", "-", place.name).strip("-") or "NAME"
    if place.in_directory and daemon.name == "debian" and not _CLASSIC_NAME.fullmatch(place.name):
        yield Finding(
            None,
            "file-name",
            f"the name {place.name!r} has characters other than letters, digits, _ and -",
            f"{ignored}, in silence",
            f"mv {path} {path.removesuffix(place.name)}{better}",
        )
    if place.mode & _WRITABLE_BY_OTHERS:
        yield Finding(
            None,
            "file-mode",
            f"mode {place.mode & 0o7777:04o}: others than the owner may write it",
            ignored,
            f"chmod go-w {path}",
        )
    if place.uid != 0:
        yield Finding(
            None,
            "file-owner",
            f"it belongs to uid {place.uid}, not to root",
            ignored,
            f"chown root: {path}; of a link chown -h",
        )
    if place.links != 1:
        yield Finding(
            None,
            "file-owner",
            f"the file has {place.links} names (hard links)",
            ignored,
            f"cp {path} {path}.new~ && mv {path}.new~ {path}",
        )


def _size(table: Table, host: Host) -> Iterator[Finding]:
    daemon = host.daemon
    if table.lines and not table.lines[-1].end and daemon.name != "busybox":
        whole = "it ignores the whole table, and crontab refuses to install it"
        yield Finding(
            table.lines[-1].number,
            "no-newline",
            "the last line does not end in a newline",
            whole if daemon.all_or_nothing else "it may pass over that line, in silence",
            "echo >> FILE",
        )
    if daemon.longest_table is not None and len(table.lines) > daemon.longest_table:
        yield Finding(
            daemon.longest_table + 1,
            "too-long",
            f"the table has {len(table.lines)} lines",
            f"{daemon.title} ignores a table of more than {daemon.longest_table} lines",
            "split it: /etc/cron.d takes any number of files",
        )
    for line in table.lines:
        if daemon.longest_command is not None and line.counted > daemon.longest_command:
            lost = "and then ignores the whole table" if daemon.all_or_nothing else "and cuts it there"
            yield Finding(
                line.number,
                "too-long",
                f"the command has {line.counted} bytes",
                f"{daemon.title} reads {daemon.longest_command}, {lost}",
                "put the command into a script",
            )

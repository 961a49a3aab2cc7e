"""What each cron daemon makes of a table, where they differ.

Observed with Debian's cron 3.0pl1-162 and BusyBox 1.35 (tests/system/test_crontab.py asks them), and read from
cronie's documentation; tests/data/fired-by-real-crons.json holds what all three fired.
"""

from __future__ import annotations

from typing import NamedTuple

from runguard.crontab.parse import shown
from runguard.schedule import cron

_KNOWN = frozenset(name.encode() for name in cron.MACROS) | {b"@reboot"}


class Daemon(NamedTuple):
    """The habits of one daemon."""

    name: str
    title: str
    policy: str  # what it does over a change of offset, by the policies of schedule/policy.py
    percent: bool  # an unescaped % ends the command
    obeys_cron_tz: bool
    sets_shell: bool  # SHELL= in the table
    sets_variables: bool  # other variables in the table
    macros: bool  # @daily and its like
    cuts_at_hash: bool  # a # anywhere in a line begins a comment
    joins_lines: bool  # a backslash at the end of a line continues it
    takes_minus: bool  # in front of a schedule
    halves_backslashes: bool  # \\\\ becomes \\
    all_or_nothing: bool  # one line that it cannot read, and it runs none of the table
    longest_command: int | None  # bytes
    longest_table: int | None  # lines
    path: str  # of a job, where the table sets none


DEBIAN = Daemon(
    name="debian", title="Debian's cron", policy="vixie", percent=True, obeys_cron_tz=False, sets_shell=True,
    sets_variables=True, macros=True, cuts_at_hash=False, joins_lines=False, takes_minus=False, halves_backslashes=True,
    all_or_nothing=True, longest_command=998, longest_table=10_000, path="/usr/bin:/bin",
)  # fmt: skip
CRONIE = DEBIAN._replace(
    name="cronie", title="cronie", obeys_cron_tz=True, takes_minus=True, halves_backslashes=False, all_or_nothing=False,
    longest_command=131_071, longest_table=None,
)  # fmt: skip
BUSYBOX = Daemon(
    name="busybox", title="BusyBox crond", policy="walk", percent=False, obeys_cron_tz=False, sets_shell=True,
    sets_variables=False, macros=False, cuts_at_hash=True, joins_lines=True, takes_minus=False,
    halves_backslashes=False, all_or_nothing=False, longest_command=None, longest_table=None,
    path="/sbin:/usr/sbin:/bin:/usr/bin",
)  # fmt: skip
DAEMONS = {daemon.name: daemon for daemon in (DEBIAN, CRONIE, BUSYBOX)}


def unread(schedule: bytes, daemon: Daemon) -> str:
    """Return why a daemon does not read an @name, or ""."""
    if not schedule.startswith(b"@"):
        return ""
    known = daemon.macros and schedule in _KNOWN
    return "" if known else f"{daemon.title} does not know {shown(schedule)}"

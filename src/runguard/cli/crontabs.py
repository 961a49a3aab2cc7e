"""What `lint`, `wrap` and `unwrap` do first: find the table, its form, its daemon and its zone."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

import click
from filelock import FileLock, Timeout

from runguard import clock, paths, printable, zones
from runguard.cli.fast import say
from runguard.cli.options import Word
from runguard.cli.output import page, raw
from runguard.crontab import diff, files, host, lint, parse
from runguard.crontab.daemons import DAEMONS, DEBIAN, Daemon
from runguard.crontab.hazards import Place, Table
from runguard.crontab.wrap import BadMark, Edited, Form
from runguard.errors import CrontabError, UsageError
from runguard.instant import rfc3339

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

LOCK = "crontab.lock"
KEPT = "crontabs"  # in the state directory: users' tables as they were
_BUSY = 75
_WAIT_S = 2
_LEFT_OVER = re.compile(r"^\.|~$|\.(?:dpkg-\w+|ucf-\w+|rpm(?:new|orig|save)|bak|old|orig|save|sw[a-p]|disabled)$")
_SAFE_PATH = re.compile(r"/[A-Za-z0-9_./+@:-]+")


class Chosen(NamedTuple):
    """The table that was asked for."""

    label: str  # its path, or "crontab of ann"
    data: bytes
    system: bool
    path: str | None
    user: str | None
    place: Place | None

    @property
    def target(self) -> str:
        """How a command line names it: "FILE ", "--user ann ", or nothing for our own."""
        if self.path is not None:
            return shlex.quote(self.path if self.path[0] != "-" else f"./{self.path}") + " "
        return f"--user {shlex.quote(self.user)} " if self.user is not None else ""

    @property
    def is_live(self) -> bool:
        """Whether a daemon reads it where it is."""
        return self.path is None or self.place is not None


def table_options(command: Decorated) -> Decorated:
    """Add FILE, `--user`, `--system` and `--daemon`."""
    command = click.option(
        "--daemon", type=Word(tuple(DAEMONS)), metavar="|".join(DAEMONS),
        help="Whose habits count (default: those of the daemon that is installed).",
    )(command)  # fmt: skip
    command = click.option(
        "--system/--no-system", default=None,
        help="FILE names a user in each line, as /etc/crontab does, or does not (default: by its place).",
    )(command)  # fmt: skip
    command = click.option("--user", metavar="USER", help="The table of USER, through the program crontab.")(command)
    return click.argument("file", required=False)(command)


def choose(command: str, environ: Mapping[str, str], file: str | None, user: str | None, system: bool | None) -> Chosen:
    """Return the table that a command line names: FILE, that of --user, or our own. Raises UsageError, CrontabError."""
    if file is not None and user is not None:
        raise UsageError(f"{command}: FILE or --user, not both")
    if file is None:
        if system:
            raise UsageError(f"{command}: --system goes with FILE")
        label = files.label_of(user)
        return _sound(Chosen(label, files.read_user(user, environ), False, None, user, None))
    if not file:
        raise UsageError(f"{command}: FILE is empty")
    owner = host.owner_of(file)
    if owner is not None and command != "lint":
        through = f"runguard {command} --user {owner}"
        raise UsageError(f"{command}: {file} is the table of {owner}, which the program crontab writes: {through}")
    data, place = files.read(file), files.place_of(file)
    if system is None:
        system = place is not None or parse.names_users(data, host.is_account)
        if system and place is None:
            say(f"{file}: read as a system table, because its lines name users (--no-system: it is none)")
    return _sound(Chosen(file, data, system, file, None, place))


def daemon_named(name: str | None) -> Daemon:
    """Return the daemon that was named, or that is installed."""
    if name is not None:
        return DAEMONS[name]
    found = host.daemon()
    if found is None:
        say("no cron daemon is installed here: judged as Debian's (--daemon names another)")
    return found or DEBIAN


def form_of(chosen: Chosen, name: str | None, zone: str | None, program: str | None) -> Form:
    """Return how a table is to be written. Raises UsageError, ZoneError."""
    if zone is not None:
        zones.load(zone)
    else:
        own = host.zone_of_daemon()
        zone = own if own is not None and own != zones.host_zone_name() else None
    path = _program(program)
    if chosen.is_live:
        _can_be_started(path, chosen)
    return Form(chosen.system, daemon_named(name), path.encode(), zone)


def names_elsewhere(chosen: Chosen, environ: Mapping[str, str], daemon: Daemon) -> set[str]:
    """Return the names of jobs that other tables of this host guard, as far as we can read them.

    None for a file that no daemon reads: it may be the draft of one of those.
    """
    if not chosen.is_live:
        return set()
    here = None if chosen.path is None else os.path.realpath(chosen.path)
    own = host.account() if chosen.user is None and here is None else chosen.user
    tables = [table for table in system_tables(_ignore, daemon) if os.path.realpath(table.label) != here]
    return lint.names_of([*tables, *(table for table in user_tables(environ, _ignore, daemon) if table.owner != own)])


def system_tables(unread: Callable[[CrontabError], object], daemon: Daemon) -> Iterator[Table]:
    """Yield /etc/crontab and the files of /etc/cron.d but what editors, packages and `wrap` leave there.

    `unread` is told of those that cannot be read.
    """
    directory = os.path.join("/etc", files.SYSTEM_DIRECTORY)
    names = sorted(os.listdir(directory)) if os.path.isdir(directory) else []
    kept = (os.path.join(directory, name) for name in names if not _LEFT_OVER.search(name))
    for path in (files.SYSTEM_TABLE, *kept):
        if not os.path.lexists(path) or os.path.isdir(path):
            continue
        try:
            data, place = files.read(path), files.place_of(path)
        except CrontabError as error:
            unread(error)
            continue
        lines = parse.parse(data, system=True, percent=daemon.percent)
        yield Table(path, lines, system=True, place=place, owner="root")


def user_tables(
    environ: Mapping[str, str], unread: Callable[[CrontabError], object], daemon: Daemon
) -> Iterator[Table]:
    """Yield the tables of all users for root, else our own, where there is one. `unread` as above."""
    for user in host.users_with_tables() if os.geteuid() == 0 else [None]:
        try:
            chosen = choose("lint", environ, None, user, None)
        except CrontabError as error:
            if user is not None or "no crontab for" not in str(error):
                unread(error)
            continue
        lines = parse.parse(chosen.data, percent=daemon.percent)
        yield Table(chosen.label, lines, system=False, owner=user or host.account())


def _ignore(error: CrontabError) -> None:
    """Pass over a table that cannot be read: others say so."""


def bad_mark(label: str, error: BadMark) -> CrontabError:
    """Return the error of a comment `# runguard: …` with its place."""
    return CrontabError(f"{label}:{error.number}: # runguard: {error}")


def settle(command: str, environ: Mapping[str, str], chosen: Chosen, edited: Edited, done: str, *, apply: bool) -> int:
    """Show what would be changed, or with `apply` write it; say what is left as it is. Raises CrontabError."""
    for left in edited.left:
        say(f"{chosen.label}:{left.number}: left as it is: {left.why}")
    count = len(edited.changed)
    lines = f"{count} line{'' if count == 1 else 's'}"
    if not count:
        already = f"; {edited.already} guarded already" if edited.already else ""
        say(f"{command}: {chosen.label}: nothing to do{already}")
        return 0
    if not apply:
        before = [line.raw for line in parse.parse(chosen.data)]
        raw(diff.unified(before, edited.lines, chosen.label))
        say(f"{command}: {lines} would be {done}; runguard {command} {chosen.target}--apply writes it")
        return 0
    with _alone(environ) as state:
        copy = _write(environ, chosen, edited.data, os.path.join(state, KEPT))
    page([printable.line(f"{chosen.label}: {lines} {done}; as it was: {copy}")])
    return 0


def _write(environ: Mapping[str, str], chosen: Chosen, new: bytes, kept: str) -> str:
    stamp = re.sub(r"[:-]|\.[0-9]+", "", rfc3339(clock.look().wall_us))
    if chosen.path is not None:
        return files.replace(chosen.path, chosen.data, new, stamp)
    return files.replace_user(chosen.user, chosen.data, new, kept, stamp, environ)


@contextmanager
def _alone(environ: Mapping[str, str]) -> Iterator[str]:
    """Hold the lock of this account's edits; give the state directory. Raises CrontabError, UnsafeError."""
    state = paths.prepare(paths.state_directory(environ))
    try:
        with FileLock(os.path.join(state, LOCK), timeout=_WAIT_S, mode=0o600):
            yield state
    except Timeout:
        raise CrontabError("another edit of a crontab is under way; nothing was written", _BUSY) from None


def _sound(chosen: Chosen) -> Chosen:
    at = chosen.data.find(b"\0")
    if at >= 0:
        number = chosen.data.count(b"\n", 0, at) + 1
        raise CrontabError(f"{chosen.label}:{number}: a NUL byte: it is no crontab")
    return chosen


def refuse_returns(chosen: Chosen) -> None:
    """Raise CrontabError for a table with the line ends of another system."""
    at = chosen.data.find(b"\r\n")
    if at >= 0 or chosen.data.endswith(b"\r"):
        number = chosen.data.count(b"\n", 0, max(at, 0)) + 1
        fix = f"sed -i 's/\\r$//' {chosen.target}".rstrip() if chosen.path else "crontab -l | tr -d '\\r' | crontab -"
        raise CrontabError(f"{chosen.label}:{number}: the line ends in CR LF, and cron takes the CR for text: {fix}")


def _can_be_started(program: str, chosen: Chosen) -> None:
    """Raise UsageError where nobody can start `program`; say which users of a table cannot."""
    if not host.may_start(program, None):
        raise UsageError(f"--runguard: {program} cannot be executed here: no line of {chosen.label} would run")
    lines = parse.parse(chosen.data, system=chosen.system)
    users = {line.user.decode("utf-8", "replace") for line in lines if line.user} | ({chosen.user} - {None})
    for user in sorted(filter(None, users)):
        if host.is_account(user) and not host.may_start(program, user):
            say(f"{program}: by the modes of its path {user} may not start it: --runguard names another")


def _program(given: str | None) -> str:
    """Return the absolute path by which lines are to call runguard."""
    found = given
    if found is None:
        called = sys.argv[0]
        if os.path.basename(called) == "runguard" and "/" in called:
            found = os.path.abspath(called)
        beside = os.path.join(os.path.dirname(sys.executable), "runguard")
        found = found or shutil.which("runguard") or (beside if os.access(beside, os.X_OK) else None)
    if found is None:
        raise UsageError("where is runguard? --runguard PATH says by which path lines are to call it")
    if not _SAFE_PATH.fullmatch(found) or os.path.basename(found) != "runguard":
        raise UsageError(f"--runguard: {found[:80]!r} is no absolute path of plain characters that ends in /runguard")
    return found

"""What this host says of its cron: which daemon, in which zone, and what a job would find."""

from __future__ import annotations

import os
import pwd

from runguard.crontab.daemons import BUSYBOX, CRONIE, DEBIAN, Daemon

_CRON, _CROND, _BUSYBOX = "/usr/sbin/cron", "/usr/sbin/crond", "busybox"
_OBEYS = b"CRON_TZ"  # is in the program of a daemon that looks for it
_DEFAULTS = ("/etc/default/cron", "/etc/sysconfig/crond", "/etc/conf.d/crond")
_OTHER_PLACES = ("/usr/local/bin", "/usr/local/sbin", "/usr/sbin", "/sbin", "/opt/bin", "/snap/bin")
SPOOLS = ("/var/spool/cron/crontabs", "/var/spool/cron")
_LARGEST_PROGRAM = 4 << 20


def daemon(programs: tuple[str, ...] = (_CRON, _CROND)) -> Daemon | None:
    """Return the cron daemon that is installed, or None where none of the known ones is."""
    for program in programs:
        if not os.path.exists(program):
            continue
        if os.path.basename(os.path.realpath(program)).startswith(_BUSYBOX):
            return BUSYBOX
        try:
            with open(program, "rb") as file:
                return CRONIE if _OBEYS in file.read(_LARGEST_PROGRAM) else DEBIAN
        except OSError:
            return DEBIAN if program == _CRON else CRONIE
    return None


def zone_of_daemon(files: tuple[str, ...] = _DEFAULTS) -> str | None:
    """Return the zone that the daemon is started with (`TZ=` in /etc/default/cron), or None: then it is the host's."""
    found = None
    for path in files:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                lines = file.read(1 << 16).splitlines()
        except OSError:
            continue
        for line in lines:
            name, equals, value = line.strip().removeprefix("export ").partition("=")
            if equals and name == "TZ" and value.strip("'\": "):
                found = value.strip("'\": ")
    return found


def is_account(name: str) -> bool:
    """Tell whether there is an account of this name."""
    try:
        pwd.getpwnam(name)
    except (KeyError, ValueError, OSError):
        return False
    return True


def sh_is_plain(program: str = "/bin/sh") -> bool:
    """Tell whether sh is dash or the like, and not bash or another one that knows more under that name."""
    return not os.path.basename(os.path.realpath(program)).startswith(("bash", "zsh", "ksh", "mksh", "yash"))


def account() -> str:
    """Return the name of our own account, or its number where it has none."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def owner_of(path: str, spools: tuple[str, ...] = SPOOLS) -> str | None:
    """Return whose table a file is that lies where `crontab` keeps them, or None where it does not."""
    directory, name = os.path.split(os.path.realpath(path))
    return name if directory in map(os.path.realpath, spools) and is_account(name) else None


def home_of(user: str | None) -> str:
    """Return the home directory of an account, None for our own; "/" where there is none."""
    try:
        return (pwd.getpwuid(os.geteuid()) if user is None else pwd.getpwnam(user)).pw_dir
    except (KeyError, ValueError, OSError):
        return "/"


def why_not_found(program: str, path: str, home: str) -> str:
    """Return why a job would not find `program` with this PATH, as a clause, or "". Its directory is its `home`."""
    if "/" in program:
        whole = os.path.join(home, program)
        if _runs(whole):
            return ""
        where = "" if program.startswith("/") else f" in {home}, where cron starts its commands"
        return f"{program} {'cannot be executed' if os.path.exists(whole) else 'does not exist'}{where}"
    if any(_runs(os.path.join(home, directory or ".", program)) for directory in path.split(":")):
        return ""
    elsewhere = next((place for place in _OTHER_PLACES if _runs(os.path.join(place, program))), None)
    return f"{program} is not in cron's PATH ({path})" + (f", but in {elsewhere}" if elsewhere else "")


def may_start(program: str, user: str | None) -> bool:
    """Tell whether an account, or for None somebody, may execute a file, by the modes of it and what is above it."""
    if not _runs(program):
        return False
    account = None if user is None else pwd.getpwnam(user)
    if account is None or account.pw_uid == 0:
        return True
    groups = os.getgrouplist(account.pw_name, account.pw_gid)
    path = os.path.realpath(program)
    while True:
        found = os.stat(path)
        mine = 0o100 if found.st_uid == account.pw_uid else 0o010 if found.st_gid in groups else 0o001
        if not found.st_mode & mine:
            return False
        if path == "/":
            return True
        path = os.path.dirname(path)


def users_with_tables(spools: tuple[str, ...] = SPOOLS) -> list[str]:
    """Return the accounts that have a table, as far as we may list them."""
    found: set[str] = set()
    for spool in spools:
        try:
            names = os.listdir(spool)
        except OSError:
            continue
        found.update(name for name in names if os.path.isfile(os.path.join(spool, name)) and is_account(name))
    return sorted(found)


def _runs(path: str) -> bool:
    """Tell whether somebody may execute a file."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return False
    return bool(found.st_mode & 0o111) and not os.path.isdir(path)

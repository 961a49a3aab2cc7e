"""The world that cron gives a job, for a person who tries a line by hand (`--like-cron`)."""

from __future__ import annotations

import os
import pwd

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

PATH = "/usr/bin:/bin"
SHELL = "/bin/sh"
_PAM = "/etc/pam.d/cron"
_ENVIRONMENT = "/etc/environment"  # what pam_env reads where it is told of no other file
_UMASK = 0o022  # of a daemon


def enter(say: Callable[[str], None]) -> dict[str, str]:
    """Go to the home directory, away from a terminal on stdin, and return the environment that cron would give.

    A stdin that is no terminal stays: it is what would stand behind the % of the line. That of a terminal becomes an
    empty pipe, so that the command gets a session of its own, without a terminal.
    """
    environ = {**_of_pam(), "HOME": "/", "LOGNAME": str(os.geteuid()), "SHELL": SHELL, "PATH": PATH}
    os.umask(_UMASK)
    try:
        account = pwd.getpwuid(os.geteuid())
        environ["HOME"], environ["LOGNAME"] = account.pw_dir, account.pw_name
    except KeyError:
        say(f"uid {os.geteuid()} has no account: cron would not run its commands")
    try:
        os.chdir(environ["HOME"])
    except OSError as error:
        say(f"{environ['HOME']}: {error.strerror}; the command starts where you are")
    if os.isatty(0):
        read_fd, write_fd = os.pipe()
        os.close(write_fd)
        os.dup2(read_fd, 0)
        os.close(read_fd)
    return environ


def _of_pam() -> dict[str, str]:
    """Return the variables that Debian's cron has from pam_env: /etc/environment, and the locale of the host."""
    found: dict[str, str] = {}
    for line in _lines(_PAM):
        words = line.split()
        if words[:1] == ["session"] and "pam_env.so" in words and "readenv=0" not in words:
            given = [word.removeprefix("envfile=") for word in words if word.startswith("envfile=")]
            for path in given or [_ENVIRONMENT]:
                found.update(filter(None, map(_variable, _lines(path))))
    return found


def _variable(line: str) -> tuple[str, str] | None:
    """Read a line as pam_env does: a # ends it anywhere, and quotes are taken off at the very ends alone."""
    name, equals, value = line.partition("#")[0].lstrip().removeprefix("export ").partition("=")
    if not equals or not name.isascii() or not name.replace("_", "a").isalnum() or name[0].isdigit():
        return None
    if value[:1] in ("'", '"'):
        value = value[1:-1] if value[-1] in "'\"" else value[1:]
    return name, value


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read(1 << 16).replace("\\\n", "").split("\n")
    except OSError:
        return []

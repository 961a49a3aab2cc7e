"""The world that cron gives a job, for a person who tries a line by hand (`--like-cron`)."""

from __future__ import annotations

import os
import pwd

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

PATH = "/usr/bin:/bin"
SHELL = "/bin/sh"


def enter(say: Callable[[str], None]) -> dict[str, str]:
    """Go to the home directory, away from a terminal on stdin, and return the environment that cron would give.

    A stdin that is no terminal stays: it is what would stand behind the % of the line. That of a terminal becomes an
    empty pipe, so that the command gets a session of its own, without a terminal.
    """
    environ = {"HOME": "/", "LOGNAME": str(os.geteuid()), "SHELL": SHELL, "PATH": PATH}
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

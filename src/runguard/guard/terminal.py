"""The controlling terminal: lent to the command while it runs, so that prompts, Ctrl-C and Ctrl-Z reach it."""

from __future__ import annotations

import os
import stat
from _signal import (  # type: ignore[import-not-found]
    SIG_IGN,
    SIGCONT,
    SIGHUP,
    SIGSTOP,
    SIGTTIN,
    SIGTTOU,
    getsignal,
    signal,
)


def in_foreground() -> bool:
    """Return whether stdin and stdout are our controlling terminal and our group is in its foreground."""
    try:
        return (
            os.isatty(0)
            and os.isatty(1)
            and os.fstat(0).st_rdev == os.fstat(1).st_rdev
            and os.tcgetpgrp(0) == os.getpgrp()
        )
    except OSError:  # ENOTTY: a terminal, but not the one that controls us
        return False


def in_background() -> bool:
    """Return whether stdin is our controlling terminal and another group has it: reading is to stop the command."""
    try:
        return os.tcgetpgrp(0) != os.getpgrp()
    except OSError:  # stdin is something else, or not the terminal that controls us
        return False


def is_stderr() -> bool:
    """Return whether a person may be reading our stderr."""
    try:
        return stat.S_ISCHR(os.fstat(2).st_mode) and os.isatty(2)
    except OSError:
        return False


class Loan:
    """The terminal on fd 0, lent to the process group `pgid`; not `lent`: to be lent when it asks and we have it."""

    __slots__ = ("_lent", "_ours", "_ttou", "pgid")

    def __init__(self, pgid: int, *, lent: bool = True) -> None:
        self.pgid = pgid
        self._ours = os.getpgrp()
        self._lent = lent
        # In the background, writing (with `stty tostop`) and taking the terminal back would stop us.
        self._ttou = getsignal(SIGTTOU)
        if lent:
            signal(SIGTTOU, SIG_IGN)

    def take_back(self) -> None:
        """Make our group the foreground again; a terminal that has gone away is no error.

        Where the command runs in the background, the terminal is not with it, and not ours to take.
        """
        if not self._lent:
            return
        self._lent = False
        try:
            os.tcsetpgrp(0, self._ours)
        except OSError:
            return

    def stop_along(self, number: int) -> None:
        """The command was stopped by signal `number`: stop as well, and when we are continued, continue it.

        It gets the terminal back only where the shell gave it to us (`fg`, not `bg`). Where no shell is left to give
        it, the command is hung up, as the kernel does with stopped groups that are left alone.
        """
        wants_terminal = number in (SIGTTIN, SIGTTOU)
        if wants_terminal and not self._is_foreground() and _left_alone():
            self._send(SIGHUP)
            self._send(SIGCONT)
            return
        if not (wants_terminal and self._is_foreground()):
            self.take_back()
            signal(SIGTTOU, self._ttou)
            # The keyboard would have stopped our whole group; a SIGSTOP was sent to one process.
            os.kill(os.getpid() if number == SIGSTOP else 0, number)
            signal(SIGTTOU, SIG_IGN)
        if self._is_foreground():
            self._give()
        self._send(SIGCONT)

    def end(self) -> None:
        """Take the terminal back for good."""
        self.take_back()
        signal(SIGTTOU, self._ttou)

    def _give(self) -> None:
        self._lent = True
        signal(SIGTTOU, SIG_IGN)
        try:
            os.tcsetpgrp(0, self.pgid)
        except OSError:  # it has hung up
            return

    def _send(self, number: int) -> None:
        try:
            os.killpg(self.pgid, number)
        except OSError:
            return

    def _is_foreground(self) -> bool:
        try:
            return os.tcgetpgrp(0) == self._ours
        except OSError:
            return False


def _left_alone() -> bool:
    """Return whether our parent is no process of our session, so that the kernel does not stop us either."""
    try:
        return os.getsid(os.getppid()) != os.getsid(0)
    except OSError:
        return True

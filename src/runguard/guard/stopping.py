"""Bringing a process group down: TERM or whatever we were sent, then KILL."""

from __future__ import annotations

import os
from _signal import SIGCONT, SIGKILL  # type: ignore[import-not-found]

from runguard.guard import stragglers

HURRIED_S = 1.0  # what a second stop signal leaves of the grace
_CLEANUP_S = 5.0  # for the kernel to end what was killed
_LOOK_S = 0.2  # between looks at /proc


class Stopping:
    """What is under way against the group `pgid`. Nothing is until `begin`."""

    __slots__ = ("_kill_after_s", "_looked_s", "_pgid", "_sent", "_until_s", "begun", "killed", "refused")

    def __init__(self, pgid: int, kill_after_s: float) -> None:
        self.begun = False
        self.killed = False  # KILL was sent
        self.refused = False  # the kernel did not let us signal the group: it belongs to another user
        self._pgid = pgid
        self._kill_after_s = kill_after_s
        self._until_s = 0.0  # of the grace; then, of waiting for what was killed
        self._looked_s = 0.0
        self._sent: set[int] = set()

    def begin(self, number: int, now_s: float) -> None:
        """Send a stop signal, with CONT for a stopped group; a second call shortens the grace to a second."""
        if not self.begun:
            self.begun = True
            self._until_s = now_s + self._kill_after_s
        elif not self.killed:
            self._until_s = min(self._until_s, now_s + HURRIED_S)
        if number not in self._sent:  # each once, however often it is repeated
            self._sent.add(number)
            self.send(number)
            self.send(SIGCONT)

    def send(self, number: int) -> None:
        """Send a signal to the group."""
        try:
            os.killpg(self._pgid, number)
        except ProcessLookupError:
            return
        except PermissionError:
            self.refused = True

    def tick(self, now_s: float) -> None:
        """Send KILL when the grace is over."""
        if self.begun and not self.killed and now_s >= self._until_s:
            self.killed = True
            self._until_s = now_s + _CLEANUP_S
            self.send(SIGKILL)

    def deadline_s(self) -> float | None:
        """Return when `tick` has something to do, or None."""
        return self._until_s if self.begun and not self.killed else None

    def over(self, now_s: float) -> bool:
        """Return whether nothing of the group is left to wait for; its leader must have been reaped.

        Where nobody reaps orphans (a container without an init), dead members stay visible: /proc tells.
        """
        if not stragglers.group_exists(self._pgid):
            return True
        if self.killed and now_s >= self._until_s:
            return True
        if now_s - self._looked_s < _LOOK_S:
            return False
        self._looked_s = now_s
        return not stragglers.members(self._pgid) and stragglers.visible()

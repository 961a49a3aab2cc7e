"""Bringing a command's processes down: TERM or whatever we were sent, then KILL; the group first, then what left it."""

from __future__ import annotations

import os
from _signal import SIGCONT, SIGKILL, SIGTERM  # type: ignore[import-not-found]

from runguard.guard.stragglers import MOST_NAMED, STOPPED, describe, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runguard.guard.stragglers import Straggler, Tree

HURRIED_S = 1.0  # what a second stop signal leaves of the grace
_CLEANUP_S = 5.0  # for the kernel to end what was killed
_LOOK_S = 0.2  # between looks at /proc


class Stopping:
    """What is under way against the group `pgid`, and then against what has left it. Nothing is until `begin`.

    `stopped` are those outside of the group that were told to end, up to MOST_NAMED; `told` are all of them.
    """

    __slots__ = (
        "_denied",
        "_grace_s",
        "_killing",
        "_looked_s",
        "_pgid",
        "_sent",
        "_sweeping",
        "_tree",
        "_until_s",
        "begun",
        "killed",
        "refused",
        "stopped",
        "told",
    )

    def __init__(self, pgid: int, tree: Tree, kill_after_s: float) -> None:
        self.begun = False
        self.killed = False  # KILL was sent
        self.refused = False  # the kernel did not let us signal the group: it belongs to another user
        self.stopped: dict[int, Straggler] = {}
        self.told: set[int] = set()
        self._pgid = pgid
        self._tree = tree
        self._grace_s = kill_after_s
        self._killing = False
        self._sweeping = False
        self._until_s = 0.0  # of the grace; then, of waiting for what was killed
        self._looked_s = 0.0
        self._sent: set[int] = set()
        self._denied: set[int] = set()  # pids that we may not signal

    def begin(self, number: int, now_s: float) -> None:
        """Send a stop signal, with CONT for a stopped group; a second call shortens the grace to a second."""
        if not self.begun:
            self.begun = True
            self._until_s = now_s + self._grace_s
        else:
            self._grace_s = min(self._grace_s, HURRIED_S)
            if not self._killing:
                self._until_s = min(self._until_s, now_s + HURRIED_S)
        if number not in self._sent:  # each once, however often it is repeated
            self._sent.add(number)
            self.send(number)
            self.send(SIGCONT)

    def sweep(self, now_s: float) -> None:
        """Begin with everything that is left, in the group or not: TERM, and again the whole grace."""
        self.begun = True
        self._sweeping = True
        self._killing = False
        self._until_s = now_s + self._grace_s
        self._sent = {SIGTERM}
        self.send(SIGTERM)
        self.send(SIGCONT)

    def send(self, number: int) -> None:
        """Send a signal to the group; in a sweep to everything that is left."""
        if self._tree.headless and visible():  # the group's number may be another's by now
            self._send_each(number)
        elif not self._tree.headless or self._tree.group_exists():
            try:
                os.killpg(self._pgid, number)
            except ProcessLookupError:
                return
            except PermissionError:
                self.refused = True

    def tick(self, now_s: float) -> None:
        """Send KILL when the grace is over."""
        if self.begun and not self._killing and now_s >= self._until_s:
            self._killing = self.killed = True
            self._until_s = now_s + _CLEANUP_S
            self.send(SIGKILL)

    def deadline_s(self) -> float | None:
        """Return when `tick` has something to do, or None."""
        return self._until_s if self.begun and not self._killing else None

    def over(self, now_s: float) -> bool:
        """Return whether nothing is left to wait for, or that cannot be ended; the command must have been reaped.

        What has left the group is told to end once the group has ended: it may be about to see to that itself.
        """
        if self._tree.adopted and self._tree.reap():
            return True
        if now_s - self._looked_s < _LOOK_S:
            return False
        self._looked_s = now_s
        given_up = self._killing and now_s >= self._until_s
        if not self._sweeping:
            if self._group_lives() and not given_up:
                return False
            if self._tree.alive():
                self.sweep(now_s)
                return False
            return True
        left = self._tree.alive()
        if given_up or not (left or self._group_lives()):
            return True
        if self._killing:
            self.send(SIGKILL)  # also to what has been started since
        return self._beyond_us(left)

    def _beyond_us(self, pids: list[int]) -> bool:
        """Return whether we may not signal any of the processes, so that waiting for them is of no use."""
        return bool(pids) and self._denied.issuperset(pids)

    def _group_lives(self) -> bool:
        """Return whether any of the group can still end; dead members that nobody reaps (no init) do not count."""
        if not visible():
            return self._tree.group_exists()
        group = self._tree.alive(in_group=True)
        return bool(group) and not self._beyond_us(group)

    def _send_each(self, number: int) -> None:
        pids = self._tree.alive(in_group=not self._sweeping)
        if self._sweeping and number != SIGCONT:
            unknown = [pid for pid in pids if pid not in self.told][: MOST_NAMED - len(self.stopped)]
            self.told.update(pids)
            self.stopped |= {each.pid: each for each in describe(unknown, STOPPED)}
        for pid in pids:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue
            except PermissionError:
                self._denied.add(pid)

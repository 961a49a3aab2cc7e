"""The command's process from its start to its end: reaped, signalled, and stopped in time."""

from __future__ import annotations

import os
import time
from _signal import SIGTERM  # type: ignore[import-not-found]

from runguard.guard.signals import STOPS
from runguard.guard.stopping import Stopping
from runguard.guard.stragglers import ENDED, LEFT, MOST_NAMED, describe, holding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from resource import struct_rusage

    from runguard.guard.process import Child, Plan
    from runguard.guard.stragglers import Straggler

_LOOK_S = 0.02
_ENDING_LOOKS = 5
_WALK_S = 0.5  # between walks through /proc while we wait


class Course:
    """What has become of the command so far, and what we have done about it.

    `over` is true once it was reaped; `status` and `usage` are then as wait4 has them, or None where somebody else
    reaped it. It knows nothing of the output.
    """

    __slots__ = (
        "child",
        "ended_s",
        "late",
        "looked_s",
        "over",
        "plan",
        "remarks",
        "status",
        "stop_signal",
        "stopping",
        "stragglers",
        "survivors",
        "timed_out",
        "tree",
        "usage",
    )

    def __init__(self, child: Child, plan: Plan) -> None:
        self.child = child
        self.plan = plan
        self.tree = child.tree
        self.stopping = Stopping(child.pid, child.tree, plan.kill_after_s)
        self.over = False
        self.status: int | None = None
        self.usage: struct_rusage | None = None
        self.ended_s = 0.0  # monotonic
        self.looked_s = 0.0
        self.timed_out = False
        self.late = False  # what it had left behind timed out
        self.stop_signal: int | None = None
        self.remarks: list[str] = []
        self.stragglers: list[Straggler] = []  # what the command left behind
        self.survivors: list[Straggler] = []  # of our stopping

    def reap(self) -> None:
        """Look after the command and what descends from it; other children of ours are other people's."""
        while not self.over:
            flags = os.WNOHANG | (os.WUNTRACED if self.child.loan is not None else 0)
            try:
                pid, status, usage = os.wait4(self.child.pid, flags)
            except ChildProcessError:
                self.remarks.append("the command's exit status is unknown: it was reaped by somebody else")
                pid, status, usage = self.child.pid, None, None
            if pid == 0:
                break
            if status is not None and os.WIFSTOPPED(status):
                assert self.child.loan is not None
                self.child.loan.stop_along(os.WSTOPSIG(status))
                continue
            self.status, self.usage = status, usage
            self.over = self.tree.headless = True
            self.ended_s = time.monotonic()
            if self.child.loan is not None:
                self.child.loan.take_back()
        self.tree.reap()

    def heed(self, number: int, now_s: float) -> None:
        """Pass on a signal that we were sent; one that asks us to end begins to end the whole group."""
        if number in STOPS:
            self.stop_signal = self.stop_signal or number
            self.stopping.begin(number, now_s)
        elif not self.over:
            self.stopping.send(number)

    def enforce_limits(self, now_s: float) -> None:
        """Stop the command at its time limit, and kill what does not heed."""
        limit_s = self.plan.timeout_s
        if limit_s is not None and not self.stopping.begun and now_s >= self.child.started_s + limit_s:
            self.timed_out, self.late = True, self.over
            self.stopping.begin(SIGTERM, now_s)
        self.stopping.tick(now_s)

    def limit_s(self) -> float | None:
        """Return when `enforce_limits` has something to do, or None."""
        if self.plan.timeout_s is not None and not self.stopping.begun:
            return self.child.started_s + self.plan.timeout_s
        return self.stopping.deadline_s()

    def ended_by_itself(self) -> bool:
        """Return whether nobody stopped the command."""
        return not self.timed_out and self.stop_signal is None

    def tree_is_done(self, now_s: float) -> bool:
        """Return whether, after the command's own end, nothing that descends from it is to be waited for."""
        waits = self.plan.stragglers == "wait"
        if self.stopping.begun:
            done = self.stopping.over(now_s)
        else:
            done = self.plan.stragglers == "leave" or not self._is_to_be_waited_for(now_s)
        if done and waits:
            self.ended_s = now_s
        return done

    def _is_to_be_waited_for(self, now_s: float) -> bool:
        if self.tree.adopted and self.tree.reap():
            return False
        if now_s < self.looked_s + _WALK_S:
            return True
        first, self.looked_s = not self.looked_s, now_s
        if self.tree.is_empty():
            return False
        if not first:  # else it may be about to end, as a `tee` whose pipe has just been closed
            if self.plan.stragglers == "kill":
                self.stopping.sweep(now_s)
            elif not self.stragglers:
                self.stragglers = describe(self.tree.alive()[:MOST_NAMED], ENDED)
        return True

    def look_after_s(self) -> float:
        """Return the seconds after which `tree_is_done` is to be asked again, unless a child's end wakes us before."""
        return _LOOK_S if self.stopping.begun else _WALK_S

    def name_stragglers(self, pipes: list[int], runfile_fd: int | None) -> None:
        """Find what is left, for the record, where there is a sign of it: looking costs a walk through /proc.

        `pipes` are those of the command that somebody still holds open.
        """
        for _ in range(_ENDING_LOOKS):  # a `tee` whose pipe has just been closed is about to end
            if pipes or not self._seems_left():
                break
            time.sleep(_LOOK_S)
            self.reap()
        left: list[Straggler] = []
        count = 0
        if pipes or self._seems_left():
            # Elsewhere the run's own file, which it inherited, tells of those with other outputs and of other sessions.
            fds = pipes if self.tree.adopted or runfile_fd is None else [*pipes, runfile_fd]
            pids = {*self.tree.alive(), *(holding(fds) if fds else ())}
            left, count = describe(sorted(pids)[:MOST_NAMED], LEFT), len(pids)
            if not pids and self.tree.adopted and not self.tree.is_empty():
                self.remarks.append("the command left behind processes that /proc does not show")
        if not self.stopping.begun:
            self.stragglers += left
            self._say("the command left behind", left, count)
            return
        named = {each.pid for each in left}
        stopped = list(self.stopping.stopped.values())
        gone = {each.pid: each for each in (*self.stragglers, *stopped) if each.pid not in named}
        self.stragglers, self.survivors = [gone[pid] for pid in sorted(gone)], left
        sweeping = self.stop_signal is None and not self.timed_out
        what = "stopped what the command left behind:" if sweeping else "stopped what had left the process group:"
        ended = [each for each in self.stragglers if each.fate != ENDED]
        self._say(what, ended, len(self.stopping.told) - len(stopped) + len(ended))
        self._say("could not be stopped:", left, count)

    def _seems_left(self) -> bool:
        if self.tree.adopted:
            return not self.tree.is_empty()
        return self.tree.group_exists() or self.stopping.begun

    def _say(self, what: str, which: list[Straggler], count: int) -> None:
        if which:
            named = ", ".join(f"{each.pid} ({each.command})" for each in which[:3])
            more = f" and {count - 3} more" if count > 3 else ""
            self.remarks.append(f"{what} {named}{more}")

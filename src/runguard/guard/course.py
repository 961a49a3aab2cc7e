"""The command's process from its start to its end: reaped, signalled, and stopped in time."""

from __future__ import annotations

import os
import time
from _signal import SIGTERM  # type: ignore[import-not-found]

from runguard.guard import stragglers
from runguard.guard.signals import STOPS
from runguard.guard.stopping import Stopping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from resource import struct_rusage

    from runguard.guard.process import Child, Plan


class Course:
    """What has become of the command so far, and what we have done about it.

    `over` is true once it was reaped; `status` and `usage` are then as wait4 has them, or None where somebody else
    reaped it. It knows nothing of the output.
    """

    __slots__ = (
        "child",
        "ended_s",
        "over",
        "plan",
        "remarks",
        "status",
        "stop_signal",
        "stopping",
        "timed_out",
        "usage",
    )

    def __init__(self, child: Child, plan: Plan) -> None:
        self.child = child
        self.plan = plan
        self.stopping = Stopping(child.pid, plan.kill_after_s)
        self.over = False
        self.status: int | None = None
        self.usage: struct_rusage | None = None
        self.ended_s = 0.0  # monotonic
        self.timed_out = False
        self.stop_signal: int | None = None
        self.remarks: list[str] = []

    def reap(self) -> None:
        """Look after the command, and only it: other children are other people's."""
        while not self.over:
            flags = os.WNOHANG | (os.WUNTRACED if self.child.loan is not None else 0)
            try:
                pid, status, usage = os.wait4(self.child.pid, flags)
            except ChildProcessError:
                self.remarks.append("the command's exit status is unknown: it was reaped by somebody else")
                pid, status, usage = self.child.pid, None, None
            if pid == 0:
                return
            if status is not None and os.WIFSTOPPED(status):
                assert self.child.loan is not None
                self.child.loan.stop_along(os.WSTOPSIG(status))
                continue
            self.status, self.usage = status, usage
            self.over = True
            self.ended_s = time.monotonic()
            if self.child.loan is not None:
                self.child.loan.take_back()

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
            self.timed_out = True
            self.stopping.begin(SIGTERM, now_s)
        self.stopping.tick(now_s)

    def limit_s(self) -> float | None:
        """Return when `enforce_limits` has something to do, or None."""
        if self.plan.timeout_s is not None and not self.stopping.begun:
            return self.child.started_s + self.plan.timeout_s
        return self.stopping.deadline_s()

    def group_is_done(self, now_s: float) -> bool:
        """Return whether, after the command's own end, nothing of its group is to be waited for."""
        if self.plan.stragglers == "kill" and not self.stopping.begun and stragglers.group_exists(self.child.pid):
            self.stopping.begin(SIGTERM, now_s)
        if self.stopping.begun or self.plan.stragglers == "wait":
            return self.stopping.over(now_s)
        return True

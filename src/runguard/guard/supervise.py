"""Waiting for a command: one loop over its end, its output, signals, time limits and slow work beside it.

The steps of a run's end: the command exits; where we stop it (time limit, signal), or are to wait, nothing is left of
what descends from it; its pipes are read to their end, or as far as it wrote them; our own outlets take the rest.
"""

from __future__ import annotations

import os
import select
import time

from runguard.guard import last_resort
from runguard.guard.course import Course
from runguard.guard.process import STDERR
from runguard.guard.relay import Relay
from runguard.guard.signals import STOPS
from runguard.guard.stopping import HURRIED_S
from runguard.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from runguard.guard.capture import Capture
    from runguard.guard.process import Child, Plan
    from runguard.guard.runfile import RunFile
    from runguard.guard.signals import Signals
    from runguard.guard.stragglers import Straggler

_RUNNING, _EMPTYING, _DRAINING, _DELIVERING, _OVER = range(5)
_STALL_LOOK_S = 0.25
# The mirror lags behind by this much: a little where little is written, so that each line is there almost at once.
_MIRROR_SOON_S, _MIRROR_LATE_S, _MIRROR_LITTLE_BYTES = 0.01, 0.1, 64 << 10


class Beside(NamedTuple):
    """Slow work to be done beside the command, from `after_s` after its start, while the loop has nothing else to do.

    A step may yield the seconds until the next one is wanted, or None for at once. Steps not taken when the command has
    ended and its output is delivered are left to the caller.
    """

    after_s: float
    steps: Iterator[float | None]


class Ended(NamedTuple):
    """How a command ended."""

    exit_status: int | None  # None: by a signal
    signal: int | None
    timed_out: bool
    late: bool  # it had ended in time, and what it left behind timed out
    kill_sent: bool
    stop_signal: int | None  # we were told to stop before the command had ended
    duration_s: float
    user_s: float
    system_s: float
    peak_memory_bytes: int | None  # None: not above our own, which the kernel counts in, or ours is not known
    stragglers: tuple[Straggler, ...]  # what the command left behind
    survivors: tuple[Straggler, ...]  # what we could not stop of it
    remarks: tuple[str, ...]


def supervise(
    child: Child,
    plan: Plan,
    signals: Signals,
    capture: Capture,
    beside: Sequence[Beside] = (),
    runfile: RunFile | None = None,
) -> Ended:
    """Wait for the command and return how it ended, its output relayed and captured. Never raises an Exception.

    Signals are forwarded to its group; a time limit or a stop signal ends everything that descends from it, with KILL
    where it does not heed. Other children of ours are left alone. Whatever fails meanwhile, the command has been reaped
    when this returns; a remark tells of it. What it left behind is reaped until we end ourselves.
    """
    course = Course(child, plan)
    signals.away = child.pid if child.loan is None else None
    supervision: _Supervision | None = None
    try:
        try:
            supervision = _Supervision(course, signals, capture, tuple(beside), runfile)
            supervision.run()
            return supervision.ended()
        except Exception as error:  # noqa: BLE001 - whatever it is, the command lives
            course.remarks.append(last_resort.describe(error))
        # Outside of `except`: the traceback would keep alive what filled the memory.
        last_resort.see_through(course, signals, supervision.relay if supervision is not None else None)
        return _ended(course, None, ())
    finally:
        signals.away = None
        if not child.tree.reap_quietly():
            signals.at_child = child.tree.reap_quietly
        if child.loan is not None:
            child.loan.end()


class _Supervision:
    """The state of one loop."""

    def __init__(
        self,
        course: Course,
        signals: Signals,
        capture: Capture,
        beside: tuple[Beside, ...],
        runfile: RunFile | None,
    ) -> None:
        self.course = course
        self.child = course.child
        self.plan = course.plan
        self.signals = signals
        self.capture = capture
        self.runfile = runfile
        self.beside = [(self.child.started_s + each.after_s, each.steps) for each in beside]
        self.poll = select.poll()
        self.poll.register(signals.fd, select.POLLIN)
        self.relay = Relay(self.child, self.plan, capture, self.poll, signals.poke_fd)
        self.phase = _RUNNING
        self.drain_until_s = 0.0
        self.patience_s = self.plan.stall_s
        self.mirrored_s = 0.0
        self.own_peak_kib = _own_peak_kib()

    def run(self) -> None:
        """Go round until everything is over."""
        self._reap()
        while True:
            now_s = time.monotonic()
            self._advance(now_s)
            if self.phase == _OVER:
                return
            self._mirror(now_s)
            events = self.poll.poll(self._wait_ms(now_s))
            self._serve(events)
            if not events and not self.relay.pump():
                self._step_beside()

    def ended(self) -> Ended:
        """Return what became of the command."""
        unkept = (self.capture.remark, self.runfile.remark if self.runfile is not None else None)
        remarks = (*(remark for remark in unkept if remark), *self.relay.remarks)
        return _ended(self.course, self.own_peak_kib, remarks)

    def _serve(self, events: list[tuple[int, int]]) -> None:
        """Handle what poll reported."""
        for fd, _ in sorted(events):
            if fd == self.signals.fd:
                self._heed_signals()
                self._reap()
            elif fd in self.relay.sources:
                self.relay.read(fd)
            elif fd <= STDERR:
                self.relay.ready(fd)
        self.relay.balance()

    def _heed_signals(self) -> None:
        now_s = time.monotonic()
        for number in self.signals.take():
            if self.phase <= _EMPTYING:
                self.course.heed(number, now_s)
            elif number in STOPS:  # nothing of ours is left to stop: only be quick
                self.drain_until_s = min(self.drain_until_s, now_s)
            if number in STOPS:
                self.patience_s = min(self.patience_s, HURRIED_S)

    def _reap(self) -> None:
        self.course.reap()
        if self.phase == _RUNNING and self.course.over:
            self.signals.away = None
            self.phase = _EMPTYING

    def _advance(self, now_s: float) -> None:
        """Go on to the next phase, or the one after it, where this one is over."""
        if self.phase <= _EMPTYING:
            self.course.enforce_limits(now_s)
        if self.phase == _EMPTYING and self.course.tree_is_done(now_s):
            self.phase = _DRAINING
            self.drain_until_s = now_s + self.plan.drain_s
            self.relay.mark_end()
        if self.phase >= _DRAINING and self.relay.stalled(now_s, self.patience_s):
            self.relay.give_up()
        if self.phase == _DRAINING and self._is_drained(now_s):
            self.course.name_stragglers(list(self.relay.sources), self.runfile.fd if self.runfile else None)
            self.phase = _DELIVERING
            tolerated = self.course.status == 0 or self.plan.tries_left
            self.relay.conclude(succeeded=tolerated and self.course.ended_by_itself())
        if self.phase == _DELIVERING and self.relay.delivered():
            self.phase = _OVER
            self.relay.end()
            self._mirror(now_s, everything=True)

    def _is_drained(self, now_s: float) -> bool:
        return not self.relay.sources or (now_s >= self.drain_until_s and self.relay.drained())

    def _mirror(self, now_s: float, *, everything: bool = False) -> None:
        if self.runfile is not None and (everything or now_s >= self._mirror_at_s()):
            self.runfile.mirror(self.capture)
            self.mirrored_s = now_s

    def _mirror_at_s(self) -> float:
        """Return when the run file is to be brought up to date; infinity where it is."""
        behind = self.runfile.behind(self.capture) if self.runfile is not None else 0
        if not behind:
            return float("inf")
        return self.mirrored_s + (_MIRROR_SOON_S if behind <= _MIRROR_LITTLE_BYTES else _MIRROR_LATE_S)

    def _wait_ms(self, now_s: float) -> float | None:
        """Return how long nothing needs to be done but for events; None: for ever."""
        at_s = [self._mirror_at_s(), *(step_at_s for step_at_s, _ in self.beside)]
        if self.phase <= _EMPTYING:
            limit_s = self.course.limit_s()
            if limit_s is not None:
                at_s.append(limit_s)
        if self.phase == _EMPTYING:
            at_s.append(now_s + self.course.look_after_s())
        elif self.phase == _DRAINING:
            waits_for_reader = any(source.paused for source in self.relay.sources.values())
            at_s.append(now_s + _STALL_LOOK_S if waits_for_reader else self.drain_until_s)
        elif self.phase == _DELIVERING:
            at_s.append(now_s + _STALL_LOOK_S)
        if self.relay.waits():
            at_s.append(now_s + _STALL_LOOK_S)
        if self.relay.has_backlog():
            at_s.append(now_s)
        first_s = min(at_s)
        return None if first_s == float("inf") else max(0.0, first_s - now_s) * 1000

    def _step_beside(self) -> None:
        """Do one step of what is due beside the command; a fault in it must not harm the job."""
        now_s = time.monotonic()
        for index, (at_s, steps) in enumerate(self.beside):
            if at_s > now_s:
                continue
            try:
                wait_s = next(steps)
            except StopIteration:
                del self.beside[index]
            except Exception as error:  # noqa: BLE001 - whatever it is, it is reported, and the command goes on
                del self.beside[index]
                self.course.remarks.append(f"work beside the command failed: {error!r}")
            else:
                self.beside[index] = (now_s + (wait_s or 0.0), steps)
            return


def _ended(course: Course, own_peak_kib: int | None, remarks: tuple[str, ...]) -> Ended:
    """Return the end of a course that is over; a peak is only told where our own is known."""
    exit_status, signal = None, None
    if course.status is not None:
        if os.WIFSIGNALED(course.status):
            signal = os.WTERMSIG(course.status)
        else:
            exit_status = os.WEXITSTATUS(course.status)
    refused = ("the command runs as another user, who may not be signalled by us",) if course.stopping.refused else ()
    usage, orphans = course.usage, course.tree.usages
    peak_kib = max(usage.ru_maxrss if usage is not None else 0, orphans.peak_kib)
    return Ended(
        exit_status,
        signal,
        course.timed_out,
        course.late,
        course.stopping.killed,
        course.stop_signal,
        course.ended_s - course.child.started_s,
        (usage.ru_utime if usage is not None else 0.0) + orphans.user_s,
        (usage.ru_stime if usage is not None else 0.0) + orphans.system_s,
        peak_kib * 1024 if own_peak_kib is not None and peak_kib > own_peak_kib else None,
        tuple(course.stragglers),
        tuple(course.survivors),
        (*course.remarks, *refused, *remarks),
    )


def _own_peak_kib() -> int | None:
    """Return our own peak memory, below which the kernel's figure for the command says nothing about it.

    None where it cannot be known: there is no /proc, or no descriptor to open it with.
    """
    try:
        with open("/proc/self/status", "rb", buffering=0) as file:
            content = file.read(65_536) or b""
    except OSError:
        return None
    peak = content.partition(b"VmHWM:")[2].split(None, 1)
    return int(peak[0]) if peak else None

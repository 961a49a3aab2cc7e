"""The command between its durable start and its end: spawned, supervised, with everything slow beside it."""

from __future__ import annotations

import gc
from _signal import SIGKILL  # type: ignore[import-not-found]

from runguard.errors import SpawnError
from runguard.guard.capture import Capture
from runguard.guard.ending import SIGNALLED, Verdict, judge, not_started, oom_kills, stopped_before
from runguard.guard.process import Plan, spawn
from runguard.guard.provenance import Code, Provenance, hash_slowly
from runguard.guard.supervise import Beside, Ended, supervise
from runguard.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from runguard.guard.runfile import RunFile
    from runguard.guard.signals import Signals


SETTLE_AFTER_S = 0.1
# What a start does without and an end may need.
_FOR_THE_END = (
    "runguard.children",
    "runguard.guard.aftermath",
    "runguard.printable",
    "runguard.guard.excerpts",
    "runguard.guard.leftovers",
    "runguard.guard.passing",
    "runguard.guard.spool",
    "runguard.store.faults",
    "runguard.store.reconciling",
)


class Execution(NamedTuple):
    """What came of the command."""

    verdict: Verdict
    ended: Ended | None  # None: it was never started
    capture: Capture
    merged: bool  # stdout and stderr were one pipe
    command_pid: int | None
    hashed: list[Code]  # files that were hashed beside the command


def execute(
    plan: Plan,
    signals: Signals,
    capture: Capture,
    code: Provenance,
    work: RunFile | None,
    beside: tuple[Beside, ...],
    min_time_s: float = 0.0,
) -> Execution:
    """Run the command of `plan` and return how it ended. A command that cannot be started has ended too.

    Raises an Exception only where the command was not spawned: when this returns, no command of ours lives. A success
    sooner than `min_time_s` is suspect.
    """
    hashed: list[Code] = []
    if signals.stop is not None:
        return Execution(stopped_before(signals.stop), None, capture, False, None, hashed)
    killed_before: list[int] = []
    slow = (
        Beside(0.0, _count_oom_kills(killed_before)),
        *((Beside(0.0, hash_slowly(code.unhashed(), hashed)),) if code.unhashed() else ()),
        Beside(SETTLE_AFTER_S, _settle()),
        *beside,
    )
    try:
        child = spawn(plan, signals)
    except SpawnError as error:
        return Execution(not_started(error), None, capture, False, None, hashed)
    if work is not None:
        work.spawned(child.pid, merged=child.merged)
    ended = supervise(child, plan, signals, capture, slow, work)
    verdict = judge(ended, out_of_memory=_was_out_of_memory(ended, killed_before), min_time_s=min_time_s)
    return Execution(verdict, ended, capture, child.merged, child.pid, hashed)


def _was_out_of_memory(ended: Ended, killed_before: list[int]) -> bool:
    try:
        killed = SIGKILL in (ended.signal, (ended.exit_status or 0) - SIGNALLED)
        return killed and bool(killed_before) and oom_kills() > killed_before[0]
    except MemoryError:  # of our own
        return False


def _count_oom_kills(found: list[int]) -> Iterator[None]:
    found.append(oom_kills())
    yield


def _settle() -> Iterator[None]:
    """Make ready for a long wait, beside the command.

    The package may be upgraded before the end, and modules of two versions would not fit together.
    """
    gc.enable()
    for module in _FOR_THE_END:
        __import__(module)
        yield

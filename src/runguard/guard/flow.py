"""`runguard run`: the order of steps is the product.

Options and configuration, one look at the clock, the window; the lock; one write transaction that ends in a durable
start; the command, and only now, beside it, anything slow; its end on record; the lock; the monitor; its own status.
"""

from __future__ import annotations

import gc
import os
import stat

from runguard import clock, paths
from runguard.errors import NoTraceError, StoreError, UnsafeError
from runguard.guard import holding, lock, runfile
from runguard.guard.books import Books
from runguard.guard.capture import Capture
from runguard.guard.command import code_of, fields_of, plan_of
from runguard.guard.decide import Refuse
from runguard.guard.ending import Verdict, finish_fields, output_fields, refused
from runguard.guard.execution import Execution, execute
from runguard.guard.prepare import Prepared, prepare
from runguard.guard.signals import Signals, listen
from runguard.guard.supervise import Beside
from runguard.guard.voice import Voice
from runguard.instant import rfc3339
from runguard.paths import Places
from runguard.record import NamedTuple
from runguard.settings import Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from runguard.guard.runfile import RunFile
    from runguard.guard.telling import Monitor
    from runguard.store.database import Appended


INTERRUPTED = 130  # as a shell says of Ctrl-C
SETTLE_AFTER_S = 0.1
# What a start does without and an end may need.
_FOR_THE_END = (
    "runguard.printable",
    "runguard.guard.excerpts",
    "runguard.guard.leftovers",
    "runguard.guard.spool",
    "runguard.store.faults",
    "runguard.store.reconciling",
)


class Result(NamedTuple):
    """What came of one start."""

    verdict: Verdict  # outcome "refused": the command was not started
    stopped: bool  # we were told to stop, or a terminal's Ctrl-C has ended the command


def run(request: Request, environ: dict[str, str]) -> int:
    """Run the command of `request` under guard and return the exit status."""
    return guard(request, environ).verdict.returned


def guard(request: Request, environ: dict[str, str], signals: Signals | None = None) -> Result:
    """Do the same, and return what came of it too; `signals` are those of a caller that starts several commands."""
    if signals is None:
        signals = listen()
    voice = Voice(request.job)
    prepared = prepare(request, environ, voice)  # options, configuration, one look at the clock, the window
    voice.keep_secret(prepared.secrets, prepared.settings.mask)
    if prepared.settings.dry_run:
        from runguard.guard.foretell import foretell

        return Result(refused(foretell(prepared)), stopped=False)
    if prepared.settings.catch_up != "none" and request.asked is None:
        from runguard.guard.catching_up import catch_up_first

        prepared, stopped = catch_up_first(
            prepared, voice, lambda asked: guard(request._replace(asked=asked), environ, signals)
        )
        if stopped:
            return Result(refused(INTERRUPTED), stopped=True)
    monitor = _monitor(prepared, voice)
    try:
        verdict = _run(prepared, signals, monitor, voice)
    except (UnsafeError, NoTraceError, StoreError) as error:
        voice(str(error))
        if monitor is not None:
            monitor.tell_refusal(error, signals)
        verdict = refused(error.status, "unsafe")
    return Result(verdict, stopped=signals.stop is not None or verdict.interrupted)


def _run(prepared: Prepared, signals: Signals, monitor: Monitor | None, voice: Voice) -> Verdict:
    """Take the lock, record, run, record, let go, tell. Raises the errors that refuse a start."""
    places = _private_places(prepared)
    books = Books(prepared, places, voice, stop=lambda: signals.stop is not None)
    code = code_of(prepared.start)
    fields = fields_of(prepared, code)
    held = _lock(prepared, places, books, fields)
    if held is None:
        return refused(_refuse_for_overlap(prepared, places, books, fields, voice), "overlap")
    work: RunFile | None = None
    recorded: Appended | None = None
    try:
        held.note(holding.note(prepared.start, fields["argv"]))
        work = _run_file(prepared, places, voice)
        opening = books.open(fields)
        if isinstance(opening.decision, Refuse):
            _say_refusal(opening.decision, voice)
            return refused(opening.decision.status, opening.decision.why)
        inherit = (held.fd, work.fd) if work else (held.fd,)
        plan = plan_of(prepared, places, inherit, opening.window, opening.decision.attempt)
        capture = Capture(prepared.settings.output_head_bytes, prepared.settings.output_tail_bytes)
        beside = (Beside(SETTLE_AFTER_S, _settle()), *books.beside(), *(monitor.beside() if monitor else ()))
        done = execute(plan, signals, capture, code, work, beside, prepared.settings.min_time_s)
        _say_what_was_wrong(prepared, done, voice)
        recorded = _record_end(prepared, books, done, voice)
        if recorded is None and work is not None:
            work.leave()  # with its output, for whoever brings the journal over
            work = None
    finally:
        if work is not None:
            work.remove()
        held.release()
    if monitor is not None:
        books.record_pings(monitor.tell_end(done, opening.window, recorded, signals), monitor.late_rows())
    return done.verdict


def _monitor(prepared: Prepared, voice: Voice) -> Monitor | None:
    """Return the run's heartbeat, or None for a job without one."""
    if not prepared.settings.ping:
        return None
    from runguard.guard.telling import Monitor  # a job without a ping does not pay for it

    return Monitor(prepared, voice)


def _private_places(prepared: Prepared) -> Places:
    """Return where things are kept. Raises UnsafeError where others could write there, and for unsafe settings."""
    if prepared.unsafe is not None:
        raise prepared.unsafe
    assert prepared.places is not None
    beside_store = os.path.dirname(prepared.places.locks)
    if prepared.settings.store is None:
        paths.prepare(os.path.dirname(prepared.places.store))
    else:
        paths.prepare_shared(beside_store)
    return prepared.places


def _lock(prepared: Prepared, places: Places, books: Books, fields: dict[str, Any]) -> lock.Lock | None:
    """Take the job's lock, or return None where it is held. A lock that cannot be trusted is on record, and raised."""
    try:
        return lock.take(places.locks, prepared.start.job)
    except UnsafeError as error:
        books.refuse(Refuse("unsafe", error.status, str(error)), fields)
        raise


def _refuse_for_overlap(prepared: Prepared, places: Places, books: Books, fields: dict[str, Any], voice: Voice) -> int:
    holder = holding.holder_by_note(places.locks, places.runs, prepared.start.job)
    if holder is not None:
        holder = holder._replace(number=books.number_of(holder.run_id))
    because = f"{holding.describe(holder, prepared.start.at_us)} holds the lock"
    refusal = Refuse("overlap", prepared.settings.conflict_exit, because)
    _say_refusal(refusal, voice)
    books.refuse(refusal, fields, holder)
    return refusal.status


def _run_file(prepared: Prepared, places: Places, voice: Voice) -> RunFile | None:
    """Create and lock the run's own file; without it (a full disk) the job's lock alone tells that the run lives."""
    lock.ensure_private_directory(places.runs)
    try:
        return runfile.create(
            places.runs,
            prepared.start.run_id,
            head_limit=prepared.settings.output_head_bytes,
            tail_limit=prepared.settings.output_tail_bytes,
            guard_start=prepared.start.guard_ticks,
        )
    except OSError as error:
        voice(f"{places.runs}: {error.strerror}; the run has no file of its own")
        return None


def _settle() -> Iterator[None]:
    """Make ready for a long wait, beside the command.

    The package may be upgraded before the end, and modules of two versions would not fit together.
    """
    gc.enable()
    for module in _FOR_THE_END:
        __import__(module)
        yield


def _record_end(prepared: Prepared, books: Books, done: Execution, voice: Voice) -> Appended | None:
    """Record how the run ended; returns None where the journal had to take it."""
    kept = done.capture.kept()
    head, tail = kept.head, kept.tail
    if kept.kept_bytes:
        try:
            from runguard.guard.excerpts import masked  # most jobs say nothing

            mask = (prepared.secrets, prepared.settings.mask)
            head, tail = masked(head, *mask), masked(tail, *mask)
        except MemoryError:
            voice("no memory was left to mask the output: it is not kept")
            head = tail = b""
    fields = {
        **finish_fields(prepared.start.run_id, done.verdict, done.ended, done.hashed, voice.masked),
        "finished": rfc3339(clock.look().wall_us),
        "command_pid": done.command_pid,
        "output": output_fields(done.capture, kept, head, tail, merged=done.merged),
        "remarks": voice.take(),
    }
    return books.finish(fields, head, tail)


def _say_what_was_wrong(prepared: Prepared, done: Execution, voice: Voice) -> None:
    """Say what a person at three in the morning could not see from the command's own output and status."""
    if done.ended is None:
        voice(done.verdict.why or "the command was not started")
        return
    if done.verdict.outcome == "timed_out":
        killed = ", then killed" if done.ended.kill_sent else ""
        voice(f"timed out after {prepared.settings.timeout_s:g} s: the command was stopped{killed}")
    if done.verdict.why == "oom":
        voice("the kernel killed the command for want of memory")
    if done.verdict.suspect:
        voice(f"succeeded, but {done.verdict.suspect}")
    for remark in done.ended.remarks:
        voice(remark)


def _say_refusal(refusal: Refuse, voice: Voice) -> None:
    """Say that the command is not run; that a window is done already is news only to a person at a terminal."""
    if refusal.why != "duplicate" or _stderr_is_terminal():
        voice(f"not run ({refusal.why}): {refusal.because}")


def _stderr_is_terminal() -> bool:
    try:
        return stat.S_ISCHR(os.fstat(2).st_mode) and os.isatty(2)
    except OSError:
        return False

"""`runguard run`: the order of steps is the product.

Options and configuration, one look at the clock, the window; the lock; one write transaction that ends in a durable
start; the command, and only now, beside it, anything slow; its end on record; the lock; the monitor; its own status.
"""

from __future__ import annotations

import os
from _signal import SIGINT  # type: ignore[import-not-found]

from runguard import clock, paths
from runguard.errors import NoTraceError, StoreError, UnsafeError
from runguard.guard import holding, lock, runfile, terminal
from runguard.guard.books import Books
from runguard.guard.capture import Capture
from runguard.guard.casefile import LOOK_S, CaseFile
from runguard.guard.command import describe, plan_of
from runguard.guard.decide import Refuse
from runguard.guard.ending import finish_fields, output_fields, refused, remarks
from runguard.guard.execution import execute
from runguard.guard.prepare import Turn, prepare
from runguard.guard.signals import listen
from runguard.guard.supervise import Beside
from runguard.guard.voice import Voice
from runguard.instant import rfc3339
from runguard.paths import Places
from runguard.record import NamedTuple
from runguard.settings import Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runguard.evidence.tally import Tally
    from runguard.guard.command import Command
    from runguard.guard.ending import Verdict
    from runguard.guard.execution import Execution
    from runguard.guard.prepare import Prepared
    from runguard.guard.runfile import RunFile
    from runguard.guard.signals import Signals
    from runguard.guard.telling import Monitor
    from runguard.model import Window
    from runguard.store.database import Appended


class Edges(NamedTuple):
    """What a start acts through: its directories, the signals to it, and what it says."""

    places: Places
    signals: Signals
    voice: Voice


class Attempt(NamedTuple):
    """One attempt, on record. `done` is None where it was refused."""

    number: int
    verdict: Verdict
    done: Execution | None
    window: Window | None
    recorded: Appended | None  # None where the journal had to take its end
    books: Books
    monitor: Monitor | None


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

        prepared = catch_up_first(prepared, voice, lambda asked: guard(request._replace(asked=asked), environ, signals))
    monitor = _monitor(prepared, voice)
    try:
        verdict = _run(prepared, signals, monitor, voice)
        if verdict.outcome == "refused" and monitor is not None:
            _tell_skip(prepared, monitor, verdict, signals, voice)
    except (UnsafeError, NoTraceError, StoreError) as error:
        voice(str(error))
        if monitor is not None:
            monitor.tell_refusal(error, signals)
        verdict = refused(error.status, "unsafe")
    return Result(verdict, stopped=signals.stop is not None)


def _run(prepared: Prepared, signals: Signals, monitor: Monitor | None, voice: Voice) -> Verdict:
    """Take our turn; run, and run again what failed; let go; tell. Raises the errors that refuse a start."""
    edges = Edges(_private_places(prepared), signals, voice)
    command = describe(prepared)
    turn = _take_turn(prepared, edges, command)
    if isinstance(turn, Refuse):
        return refused(turn.status, turn.why)
    prepared, held = turn
    try:
        attempt = _attempts(prepared, held, command, monitor, edges)
    finally:
        if held is not None:
            held.release()
    attempt.books.take_in_orphans()
    if attempt.monitor is not None and attempt.done is not None:
        from runguard.guard.aftermath import record_pings

        pings = attempt.monitor.tell_end(attempt.done, attempt.window, attempt.recorded, signals)
        record_pings(attempt.books, pings, attempt.monitor.late_rows())
    if attempt.books.checkpoint_is_due and signals.stop is None:
        from runguard.guard.aftermath import checkpoint

        checkpoint(attempt.books)
    return attempt.verdict


def _attempts(
    prepared: Prepared, held: lock.Lock | None, command: Command, monitor: Monitor | None, edges: Edges
) -> Attempt:
    """Make an attempt and, as far as the settings want it, further ones; return the last that ran."""
    if not prepared.settings.retries:
        return _attempt(prepared, held, command, monitor, edges)
    from runguard.guard.retrying import until_it_works  # only where retries are set

    def attempt_once(prepared: Prepared, monitor: Monitor | None, tried: int) -> Attempt:
        described = command if tried == 1 else describe(prepared)  # its code may be another by now
        return _attempt(prepared, held, described, monitor, edges, tried)

    return until_it_works(prepared, monitor, edges, attempt_once)


def _attempt(
    prepared: Prepared,
    held: lock.Lock | None,
    command: Command,
    monitor: Monitor | None,
    edges: Edges,
    tried: int = 1,
) -> Attempt:
    """Record, run, record: the `tried`-th attempt, with an identity of its own. Raises the errors that refuse it."""
    places, signals, voice = edges
    settings = prepared.settings
    books = _books(prepared, edges)
    work: RunFile | None = None
    cases: CaseFile | None = None
    recorded: Appended | None = None
    try:
        if held is not None:
            held.note(holding.note(prepared.start, command.fields["argv"]))
        work = _run_file(prepared, places, voice)
        opening = books.open(command.fields)  # one transaction: once it returns, the start is durably on record
        if isinstance(opening.decision, Refuse):
            from runguard.guard.refusing import say

            say(opening.decision, voice)
            return Attempt(0, refused(opening.decision.status, opening.decision.why), None, None, None, books, None)
        number = opening.decision.attempt
        cases = CaseFile(prepared, places, voice, books)
        more = cases.variables(further=number > 1 or opening.decision.supersedes is not None)
        inherit = tuple(each.fd for each in (held, work) if each is not None)
        tries_left = tried <= settings.retries
        plan = plan_of(prepared, places, inherit, opening.window, number, more, tries_left=tries_left)
        capture = Capture(settings.output_head_bytes, settings.output_tail_bytes)
        beside = (*books.beside(), *(monitor.beside() if monitor else ()), Beside(LOOK_S, cases.beside()))
        done = execute(plan, signals, capture, command.code, work, beside, settings.min_time_s)
        done, tally = _judge(done, prepared, work, cases, edges)
        recorded = _record_end(prepared, books, done, cases, tally, voice)
        if recorded is None and work is not None:
            work.leave()  # with its output, for whoever brings the journal over
            work = None
    finally:
        if cases is not None:
            cases.remove(recorded=recorded is not None)
        if work is not None:
            work.remove()
    return Attempt(number, done.verdict, done, opening.window, recorded, books, monitor)


def _books(prepared: Prepared, edges: Edges) -> Books:
    return Books(prepared, edges.places, edges.voice, stop=lambda: edges.signals.stop is not None)


def _monitor(prepared: Prepared, voice: Voice) -> Monitor | None:
    """Return the run's heartbeat, or None for a job without one."""
    if not prepared.settings.ping_urls:
        return None
    from runguard.guard.telling import Monitor  # a job without a ping does not pay for it

    return Monitor(prepared, voice)


def _tell_skip(prepared: Prepared, monitor: Monitor, verdict: Verdict, signals: Signals, voice: Voice) -> None:
    """Tell monitors of a refused start, where the job wants that; what became of it goes to its row."""
    pings = monitor.tell_skip(verdict, signals)
    if pings and prepared.places is not None:
        from runguard.guard.aftermath import record_pings

        record_pings(Books(prepared, prepared.places, voice), pings)


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


def _take_turn(prepared: Prepared, edges: Edges, command: Command) -> Turn | Refuse:
    """Take the job's lock, or do as `--overlap` says where it is held. A refusal is on record, and said."""
    places, signals, _ = edges
    policy, job = prepared.settings.overlap, prepared.start.job
    turn: Turn | Refuse | None = None
    try:
        held = lock.take(places.locks, job, lock.shared if policy == "allow" else lock.at_once)
        if policy == "allow" or (held is not None and (policy == "skip" or _nothing_runs(places))):
            turn = Turn(prepared, held)
        elif policy != "skip":
            from runguard.guard.overlap import contend  # only where another run may be in the way

            turn = contend(prepared, places, signals, held)
    except UnsafeError as error:  # a lock that cannot be trusted
        from runguard.guard.refusing import refuse

        refuse(_books(prepared, edges), Refuse("unsafe", error.status, str(error)), command.fields)
        raise
    if isinstance(turn, Turn):
        return turn
    from runguard.guard.refusing import turn_away

    return turn_away(_books(prepared, edges), turn, command.fields)


def _nothing_runs(places: Places) -> bool:
    """Return whether nothing can be in the way of a start that has the lock: whatever lives has a run file."""
    try:
        return not os.listdir(places.runs)
    except OSError:
        return False


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


def _judge(
    done: Execution, prepared: Prepared, work: RunFile | None, cases: CaseFile, edges: Edges
) -> tuple[Execution, Tally | None]:
    """Return the end as it was meant, by a terminal, another start or the job's own cases, and what those come to.

    What a person could not see from the command's own output and status is said.
    """
    places, signals, voice = edges
    if done.verdict.interrupted and terminal.in_foreground():
        signals.received.append(SIGINT)  # the terminal's Ctrl-C, which the command alone has got, is for us too
    if done.verdict.outcome not in ("succeeded", "timed_out") and work is not None and work.end_was_ordered():
        from runguard.guard.ending_others import as_ordered

        done = as_ordered(done, places.runs, prepared.start.run_id)
    tally = cases.conclude()
    if tally is not None:
        from runguard.guard.casework import judged

        done = judged(done, tally, voice)
    for remark in remarks(done.verdict, done.ended, prepared.settings.timeout_s):
        voice(remark)
    return done, tally


def _record_end(
    prepared: Prepared, books: Books, done: Execution, cases: CaseFile, tally: Tally | None, voice: Voice
) -> Appended | None:
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
        "items": tally.fields() if tally is not None else None,
        "remarks": voice.take(),
    }
    return books.finish(fields, head, tail, cases.complete)

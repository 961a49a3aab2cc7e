"""`run --dry-run`: which window a start would answer now, what would happen and why. Nothing is taken or written."""

from __future__ import annotations

import sys

from runguard import printable
from runguard.errors import OutputError, RunguardError
from runguard.guard import holding, liveness
from runguard.guard.answering import question
from runguard.guard.decide import Proceed, Refuse, decide
from runguard.guard.hindsight import look_back
from runguard.instant import rfc3339, seconds
from runguard.store.journal import Journal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runguard.guard.answering import Answer
    from runguard.guard.prepare import Prepared
    from runguard.model import Earlier
    from runguard.paths import Places


def foretell(prepared: Prepared) -> int:
    """Print what a start would do, on stdout; return 0, or the status of an unsafe start."""
    if prepared.unsafe is not None or prepared.places is None:
        _print([("would", f"refuse: {prepared.unsafe}")])
        return prepared.unsafe.status if prepared.unsafe else 0
    places = prepared.places
    known = look_back(prepared, places, Journal(places.state, prepared.author))
    alive = known.alive[0] if known.alive else _living_by_note(prepared, places)
    lines = _lines(prepared, known.found, known.earlier, alive)
    lines += _catching_up(prepared)
    if known.fault is not None:
        lines.append(("store", f"{known.fault}; a start would record in the journal"))
    _print(lines)
    return 0


def _catching_up(prepared: Prepared) -> list[tuple[str, str]]:
    """Return what would be caught up on, as a line, or nothing."""
    mode = prepared.settings.catch_up
    if mode == "none":
        return []
    from runguard.guard.catching_up import missed

    try:
        found = missed(prepared)
    except RunguardError:
        return []  # said in the line on the store
    if found is None:
        return [("before", "no window was missed")]
    first, windows = found.gap.first, f"{found.gap.windows} missed windows, from {found.gap.first.key} on"
    told = {
        "all": f"{windows}: the oldest {len(found.oldest)} would be run before this one",
        "latest": f"{windows}: this run would answer them",
        "merge": f"{windows}: this run would answer them, from {rfc3339(first.start_us)} on",
    }
    return [("before", told[mode])]


def _print(lines: list[tuple[str, str]]) -> None:
    """Write to stdout. Raises OutputError; a reader that has had enough is none."""
    text = "".join(f"{name:<9}{printable.line(line)}\n" for name, line in lines)
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        return
    except OSError as error:
        raise OutputError(f"stdout cannot be written: {error.strerror}") from None


def _living_by_note(prepared: Prepared, places: Places) -> str | None:
    """Return a clause on the run that the lock file names, if that run lives: the lock itself is never tried here."""
    holder = holding.holder_by_note(places.locks, places.runs, prepared.start.job)
    if holder is None:
        return None
    life = liveness.judge(holder.run_id, holder.guard_pid, prepared.start.boot_id, places.runs)
    if life.state == liveness.LOST:
        return None
    return f"{holding.describe(holder, prepared.start.at_us)} still runs"


def _lines(prepared: Prepared, found: Answer, earlier: Earlier | None, alive: str | None) -> list[tuple[str, str]]:
    lines = [("job", prepared.start.job), ("window", "none")]
    if found.expected is not None:
        resolution = found.expected.resolution
        window = resolution.window
        lines[1] = ("window", f"{window.label} ({window.key})")
        lines.append(("covers", f"from {rfc3339(window.start_us)} up to {rfc3339(window.due_us)}"))
        lines.append(("next due", "none" if resolution.next_due_us is None else rfc3339(resolution.next_due_us)))
        if window.how != "real":
            lines.append(("because", f"local time {window.nominal} does not exist: due {window.label}"))
    would, because = _would(prepared, decide(question(prepared, found, earlier)), alive)
    return [*lines, ("would", would), ("because", because)]


def _would(prepared: Prepared, decision: Proceed | Refuse, alive: str | None) -> tuple[str, str]:
    """Return what a start would do, and why."""
    settings = prepared.settings
    if alive is not None and settings.overlap in ("skip", "wait"):
        refuse = f"refuse (overlap), exit status {settings.conflict_exit}"
        limit = "" if settings.wait_s is None else f" up to {seconds(settings.wait_s)}"
        waits = f"wait{limit} for its end, then run the command, or {refuse}"
        return waits if settings.overlap == "wait" else refuse, alive
    if isinstance(decision, Refuse):
        return f"not run ({decision.why}), exit status {decision.status}", decision.because
    if alive is not None and settings.overlap == "kill":
        return "stop it, then run the command", alive
    return f"run the command as attempt {decision.attempt}", decision.because

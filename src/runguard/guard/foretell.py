"""`run --dry-run`: which window a start would answer now, what would happen and why. Nothing is taken or written."""

from __future__ import annotations

import os
import sys

from runguard import printable
from runguard.guard import holding, liveness
from runguard.guard.decide import Question, Refuse, decide
from runguard.guard.hindsight import look_back
from runguard.instant import rfc3339
from runguard.store.journal import Journal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runguard.guard.answering import Answer
    from runguard.guard.prepare import Places, Prepared
    from runguard.model import Earlier


def foretell(prepared: Prepared) -> int:
    """Print what a start would do, on stdout; return 0, or the status of an unsafe start."""
    if prepared.unsafe is not None or prepared.places is None:
        print(f"would    refuse: {printable.line(str(prepared.unsafe))}")
        return prepared.unsafe.status if prepared.unsafe else 0
    places = prepared.places
    known = look_back(prepared, places, Journal(places.state, prepared.author))
    alive = known.alive[0] if known.alive else _living_by_note(prepared, places)
    for name, text in _lines(prepared, known.found, known.earlier, alive):
        print(f"{name:<9}{printable.line(text)}")
    if known.fault is not None and os.path.exists(places.store):
        print(f"{'store':<9}{printable.line(str(known.fault))}; a start would record in the journal")
    sys.stdout.flush()
    return 0


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
    start, settings = prepared.start, prepared.settings
    lines = [("job", start.job), ("window", "none")]
    question = Question(None, None)
    if found.expected is not None:
        resolution = found.expected.resolution
        window = resolution.window
        lines[1] = ("window", f"{window.label} ({window.key})")
        lines.append(("subject", f"from {rfc3339(window.start_us)} up to {rfc3339(window.due_us)}"))
        lines.append(("next due", rfc3339(resolution.next_due_us)))
        if window.how != "real":
            lines.append(("because", f"local time {window.nominal} does not exist: due {window.label}"))
        question = Question(
            window,
            earlier,
            off_schedule=resolution.off_schedule,
            next_in_us=resolution.next_due_us - start.intended_us,
            manual=start.trigger == "manual",
            on_lost=settings.on_lost,
        )
    decision = decide(question)
    if alive is not None:
        lines.append(("would", f"refuse (overlap), exit status {settings.conflict_exit}"))
        lines.append(("because", alive))
    elif isinstance(decision, Refuse):
        lines.append(("would", f"not run ({decision.why}), exit status {decision.status}"))
        lines.append(("because", decision.because))
    else:
        lines.append(("would", f"run the command as attempt {decision.attempt}"))
        lines.append(("because", decision.because))
    return lines

"""Starts and waivers as they were on record at an instant: what a verdict of that day could know."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from runguard.evidence.quoting import Quotes
from runguard.evidence.ran import Moment
from runguard.guard import liveness
from runguard.store.answered import Start, Waiver
from runguard.store.reads import Run


def starts(found: Iterable[Start], quotes: Quotes, moment: Moment) -> Iterator[Start]:
    """Yield those of the starts that were on record, each with its end as far as that was; now: as it lives."""
    for start in found:
        if not moment.past:
            yield _living(start, moment.runs) if start.outcome == "running" else start
            continue
        run = next(Run(*row) for row in quotes.reader.rows("run_at", seq=start.seq))
        if run.started_us > moment.at_us:
            continue
        ended = run.finish_seq is not None and any(map(moment.knows, quotes.entries([run.finish_seq]).values()))
        if ended or start.outcome == "refused":
            yield start
        else:
            yield start._replace(outcome="running", why=None, exit_status=None, suspect=None)


def waivers(found: Iterable[Waiver], moment: Moment) -> list[Waiver]:
    """Return those of the waivers and withdrawals that were on record."""
    return [each for each in found if not moment.past or each.at_us <= moment.at_us]


def _living(start: Start, runs: str) -> Start:
    life = liveness.judge(start.run_id, start.guard_pid, start.boot_id, runs)
    return start._replace(outcome="lost", why=life.because) if life.state == liveness.LOST else start

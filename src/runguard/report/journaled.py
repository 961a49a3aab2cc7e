"""What waits in the journal: windows that look missing because the store could not be written."""

from __future__ import annotations

from runguard.instant import from_rfc3339
from runguard.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from runguard.coverage.verdicts import Judged
    from runguard.store.journal import Journal


class Journaled(NamedTuple):
    """The entries of one job, and the outcome of each window that they start."""

    entries: int
    outcomes: Mapping[str, str]  # by key
    covers: tuple[tuple[int, int, str], ...]  # first due, last due, outcome
    last: str  # outcome of the last run, "" where none was started

    def judge(self, window: Judged) -> Judged:
        """Return the verdict on a window that the store knows no run of."""
        outcome = self.outcomes.get(window.window.key)
        for first_us, last_us, covering in self.covers:
            outcome = outcome or (covering if first_us <= window.window.due_us <= last_us else None)
        if outcome is None:
            return window
        verdict = outcome if outcome in ("succeeded", "running", "lost") else "failed"
        return window._replace(verdict=verdict, because=f"a run that waits in the journal: {outcome}")


NOTHING = Journaled(0, {}, (), "")


def waiting(journal: Journal) -> dict[str, Journaled]:
    """Return what waits in the journal, by job; entries that cannot be read are left out."""
    ends: dict[str, str] = {}
    starts: list[dict[str, Any]] = []
    counts: dict[str, int] = {}
    jobs: dict[str, str] = {}  # by run
    for entry in journal.entries():
        if entry["kind"] in ("run.start", "run.refused"):
            jobs[entry["run_id"]] = entry["job"]
        if entry["kind"] == "run.start":
            starts.append(entry)
        elif entry["kind"] == "run.finish":
            ends[entry["run_id"]] = entry["outcome"]
        job = jobs.get(entry["run_id"], "")
        counts[job] = counts.get(job, 0) + 1
    return {
        job: _of_job(count, [start for start in starts if start["job"] == job], ends) for job, count in counts.items()
    }


def _of_job(count: int, starts: list[dict[str, Any]], ends: dict[str, str]) -> Journaled:
    outcomes, covers, outcome = {}, [], ""
    for start in starts:
        outcome = ends.get(start["run_id"], "running")
        if start["window"]:
            outcomes[start["window"]["key"]] = outcome
        if span := start.get("covers"):
            covers.append((from_rfc3339(span["first"]), from_rfc3339(span["last"]), outcome))
    return Journaled(count, outcomes, tuple(covers), outcome)

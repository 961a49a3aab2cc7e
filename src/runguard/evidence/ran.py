"""The runs that had a case in hand, as their own entries tell them: nothing is derived by the rules of today."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from runguard.evidence.quoting import Entry, Quotes
from runguard.evidence.tally import Tally
from runguard.guard import host, liveness
from runguard.instant import from_rfc3339, rfc3339
from runguard.store import bearings, items
from runguard.store.reads import Run

Facts = dict[str, Any]

_OF_START = (
    "run_id", "number", "job", "window", "attempt", "trigger", "reason", "host", "actor", "supersedes", "covers",
    "parent", "because", "argv", "shell", "cwd", "program", "inputs", "commit", "python", "version",
)  # fmt: skip
_OF_FINISH = ("outcome", "exit_status", "signal", "why", "suspect", "killed_by", "duration_s", "items")


class Moment(NamedTuple):
    """The instant as of which it is told: later entries are left out. `past`: it was asked for, and is not now."""

    at_us: int
    runs: str  # the directory of the files of living runs
    past: bool = False

    def knows(self, entry: Entry) -> bool:
        """Return whether the entry was written by then, by its own clock."""
        return not self.past or from_rfc3339(entry["at"]) <= self.at_us


def told(quotes: Quotes, start_seq: int, moment: Moment) -> Facts | None:
    """Return a run by the JSON contract, with its code and its entries; None where it was not on record by then."""
    rows = quotes.reader.rows("run_at", seq=start_seq)
    run = Run(*rows[0]) if rows else None
    seqs = [start_seq, *(seq for seq in (run.finish_seq, run.late_seq) if seq is not None)] if run else [start_seq]
    found = quotes.entries(seqs)
    start = found.get(start_seq)
    if start is not None and not moment.knows(start):
        return None
    ends = [entry for seq, entry in found.items() if seq != start_seq and moment.knows(entry)]
    facts = of_entries(start or _of_row(run), ends[0] if ends else None)
    if run is not None and not ends and facts["outcome"] != "refused":
        if run.finish_seq is not None and run.finish_seq not in found:  # damaged, and told so
            facts["outcome"] = run.outcome
        elif not moment.past:
            _judge_life(facts, run, start or {}, moment.runs)
    if len(ends) > 1:
        facts["late"] = {key: ends[1].get(key) for key in ("outcome", "exit_status", "finished")}
    facts["superseded_by"] = _superseded_by(run, moment, quotes)
    facts["list_entry"] = _list_entry(quotes, facts, ends, moment) if facts["outcome"] != "refused" else None
    if facts["items"] is None and not moment.past:
        facts["items"] = _so_far(quotes, start_seq)
    told_by = [entry for entry in (start, *ends) if entry is not None]
    facts["entries"] = [{"entry": each["seq"], "kind": each["kind"], "at": each["at"]} for each in told_by]
    return facts


def of_entries(start: Entry, finish: Entry | None) -> Facts:
    """Return what a start and its end, if there is one, say of a run."""
    facts = {key: start.get(key) for key in _OF_START}
    refused = start.get("kind") == "run.refused"
    end = finish or ({"outcome": "refused", "why": start["why"]} if refused else {"outcome": "running"})
    facts |= {key: end.get(key) for key in _OF_FINISH}
    known = {code["path"]: code["sha256"] for code in end.get("hashed") or ()}
    for code in (facts["program"], *(facts["inputs"] or ())):
        if code and code.get("sha256") is None:
            code["sha256"] = known.get(code["path"])
    facts |= {
        "started_at": start.get("at"),
        "finished_at": end.get("finished"),
        "superseded_by": None,
        "late": None,
        "list_entry": None,
        "entries": [],
    }
    return facts


def code_hashes(run: Facts) -> list[str]:
    """Return the SHA-256 of the program and of each input, as far as they are known."""
    codes = (run["program"], *(run["inputs"] or ()))
    return [code["sha256"] for code in codes if code and code.get("sha256")]


def _of_row(run: Run | None) -> Entry:
    """Return what the tables say of a run whose start cannot be read."""
    if run is None:
        return {}
    window = {"key": run.window_key, "start": None, "due": None, "label": run.label, "nominal": run.nominal,
              "zone": run.zone} if run.window_key else None  # fmt: skip
    return {**run._asdict(), "window": window, "at": rfc3339(run.started_us), "actor": None, "covers": None}


def _judge_life(facts: Facts, run: Run, start: Entry, runs: str) -> None:
    """Tell a run without an end as lost where its guard and command have gone, although nobody recorded that yet."""
    life = liveness.judge(run.run_id, run.guard_pid, run.boot_id, runs)
    facts["why"] = life.because
    if life.state == liveness.LOST:
        facts["outcome"] = "lost"
    elif not os.access(runs, os.X_OK) and not host.lives(run.guard_pid, start.get("guard_start"), run.boot_id or ""):
        facts["why"] = "its guard is gone; whether its command lives is not to be seen"  # an auditor's account


def _superseded_by(run: Run | None, moment: Moment, quotes: Quotes) -> str | None:
    if run is None or run.superseded_by is None:
        return None
    later = quotes.reader.run(run.superseded_by)
    known = later is not None and (not moment.past or later.started_us <= moment.at_us)
    return run.superseded_by if known else None


def _list_entry(quotes: Quotes, facts: Facts, ends: list[Entry], moment: Moment) -> int | None:
    """Return the entry that names the list of the run's case entries, or None where none does yet."""
    told = facts["items"]
    if told is not None and not told.get("pending_bytes"):
        return int(ends[0]["seq"])
    found = [each.seq for each in bearings.on(quotes.reader, "run", [facts["run_id"]]) if each.kind == "items"]
    for entry in quotes.entries(found[-1:]).values():
        if moment.knows(entry):
            facts["items"] = entry["items"]
            return int(entry["seq"])
    return None


def _so_far(quotes: Quotes, start_seq: int) -> dict[str, Any] | None:
    """Return what the case entries of a run come to that nothing in the ledger tells yet."""
    progress = items.progress(quotes.reader, start_seq)
    if progress is None:
        return None
    return {key: value for key, value in progress._asdict().items() if key in Tally._fields}

"""What people say about the record later: holds, which nobody may prune or redact, and their releases.

A hold is an entry of the ledger with one target (store/bearings.py), and so is its release. What a hold matches stays:
case entries, runs and their entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from runguard.errors import StoreError
from runguard.instant import from_rfc3339
from runguard.store import bearings, lines
from runguard.store.reads import Reader, Run


class Hold(NamedTuple):
    """A hold in force: the entry that placed it, what it is about, and why."""

    seq: int
    target: Mapping[str, Any]
    reason: str

    def named(self) -> str:
        """Return it as a clause: `case HB-1042, held by entry 12`."""
        return f"{in_words(self.target)}, held by entry {self.seq}"


class Held:
    """All holds in force, asked whether they match something."""

    def __init__(self, holds: Iterable[Hold]) -> None:
        self.holds = tuple(holds)
        self._cases: dict[str, list[Hold]] = {}
        self._runs: list[Hold] = []
        self.entries: dict[int, Hold] = {}
        for hold in self.holds:
            if "case" in hold.target:
                self._cases.setdefault(hold.target["case"], []).append(hold)
            elif "entry" in hold.target:
                self.entries[hold.target["entry"]] = hold
            else:
                self._runs.append(hold)

    @property
    def cases(self) -> tuple[str, ...]:
        """The cases that a hold names."""
        return tuple(self._cases)

    def run(self, run: Run) -> Hold | None:
        """Return a hold on the run and all its cases, or None."""
        return next((hold for hold in self._runs if matches(hold.target, run)), None)

    def case(self, case: str, run: Run) -> Hold | None:
        """Return a hold on what the run said of the case, or None."""
        for hold in self._cases.get(case, ()):
            if hold.target.get("run") in (None, run.run_id):
                return hold
        return self.run(run)


def held(reader: Reader) -> Held:
    """Return the holds in force. Raises StoreError."""
    released = {said(reader, seq)["hold"] for seq in bearings.of_kind(reader, "release")}
    found = []
    for seq in bearings.of_kind(reader, "hold"):
        if seq not in released:
            entry = said(reader, seq)
            found += [Hold(seq, target, entry["reason"]) for target in entry["about"]]
    return Held(found)


def matches(target: Mapping[str, Any], run: Run) -> bool:
    """Tell whether a target that names no case and no entry matches a run: by id, job, window or span of starts."""
    for key, value in target.items():
        match key:
            case "run" if value != run.run_id:
                return False
            case "job" if value != run.job:
                return False
            case "window" if value != run.window_key:
                return False
            case "since" if value is not None and run.started_us < from_rfc3339(value):
                return False
            case "until" if value is not None and run.started_us >= from_rfc3339(value):
                return False
    return True


def in_words(target: Mapping[str, Any]) -> str:
    """Return a target as a person would say it: `case HB-1042`, `job letters from … to …`."""
    words = [f"{key} {target[key]}" for key in ("case", "run", "record", "entry", "job", "window") if key in target]
    words += [f"code {target['code'][:12]}…"] if "code" in target else []
    words += [f"commit {target['commit'][:12]}"] if "commit" in target else []
    words += ["a redacted case"] if "erased" in target else []
    if "since" in target and (target["since"] or target["until"]):
        words.append(f"runs from {target['since'] or 'the beginning'} to {target['until'] or 'the end'}")
    return ", ".join(words)


def said(reader: Reader, seq: int) -> dict[str, Any]:
    """Return what an entry says. Raises StoreError where it is not there or cannot be read."""
    for (line,) in reader.rows("line_at", seq=seq):
        try:
            return lines.parse(line)
        except (ValueError, RecursionError) as error:
            raise StoreError(reader.path, f"entry {seq} of the ledger is damaged: {error}") from error
    raise StoreError(reader.path, f"entry {seq} of the ledger is not there, and the tables name it")

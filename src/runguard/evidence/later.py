"""Entries that bear on a case: corrections, holds, erasures, accesses and defects, however they name it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from runguard.evidence import erasure
from runguard.evidence.quoting import Entry, Quotes
from runguard.evidence.ran import Facts, Moment, code_hashes
from runguard.instant import from_rfc3339
from runguard.store import bearings
from runguard.store.lines import HEADER

_ITEMS = "items"  # indexed by run like the others, and told with the run


def on_case(quotes: Quotes, case: str, moment: Moment) -> list[Entry]:
    """Return the entries that name the case itself, also as a redacted one, in order."""
    erased = bearings.on(quotes.reader, "erased", erasure.names_of(quotes.reader, case).values())
    return _entries(quotes, [*bearings.on(quotes.reader, "case", [case]), *erased], moment)


def on_runs(quotes: Quotes, runs: Sequence[Facts], moment: Moment) -> list[Entry]:
    """Return the entries that bear on these runs: by run, entry, job, window, span or code, in order."""
    names: dict[str, Iterable[str]] = {
        "run": [run["run_id"] for run in runs],
        "entry": [str(entry["entry"]) for run in runs for entry in run["entries"]],
        "job": dict.fromkeys(run["job"] for run in runs),
        "span": [""],
        "code": dict.fromkeys(digest for run in runs for digest in code_hashes(run)),
        "commit": dict.fromkeys(run["commit"] for run in runs if run["commit"]),
    }
    in_use = {about for about, used in zip(names, quotes.reader.rows("bearings_in_use")[0], strict=True) if used}
    found = [
        each
        for about, these in names.items()
        if about in in_use
        for each in bearings.on(quotes.reader, about, these)
        if each.kind != _ITEMS
    ]
    return [each for each in _entries(quotes, found, moment) if _bears(each, runs)]


def facts(entry: Entry) -> dict[str, Any]:
    """Return such an entry by the JSON contract: the fields of every entry, then those of its kind."""
    own = {key: value for key, value in entry.items() if key not in HEADER}
    return {"entry": entry["seq"], "kind": entry["kind"], "at": entry["at"], "host": entry["host"],
            "actor": entry["actor"], **own}  # fmt: skip


def _entries(quotes: Quotes, found: Iterable[bearings.Bearing], moment: Moment) -> list[Entry]:
    entries = quotes.entries({each.seq for each in found})
    return [entries[seq] for seq in sorted(entries) if moment.knows(entries[seq])]


def _bears(entry: Entry, runs: Sequence[Facts]) -> bool:
    """Return whether one of its targets is one of these runs."""
    return any("case" not in target and any(_hits(target, run) for run in runs) for target in entry["about"])


def _hits(target: dict[str, Any], run: Facts) -> bool:
    if "run" in target:
        return bool(target["run"] == run["run_id"])
    if "entry" in target:
        return any(target["entry"] == each["entry"] for each in run["entries"])
    if "code" in target and target["code"] not in code_hashes(run):
        return False
    if "commit" in target and target["commit"] != run["commit"]:
        return False
    if "job" in target and target["job"] != run["job"]:
        return False
    if "window" in target:
        return bool(run["window"]) and target["window"] == run["window"]["key"]
    return _within(run["started_at"], target.get("since"), target.get("until"))


def _within(at: str, since: str | None, until: str | None) -> bool:
    at_us = from_rfc3339(at)
    return (since is None or from_rfc3339(since) <= at_us) and (until is None or at_us < from_rfc3339(until))

"""`explain`: everything on record that touched a case, what bears on it, and what is not known. As facts; see `words`.

Reasons, rules and code are those that were recorded at the time. Nothing is judged by the rules of today.
"""

from __future__ import annotations

from typing import NamedTuple

from runguard.evidence import beside, later, unknown
from runguard.evidence.found import Asked, Found
from runguard.evidence.quoting import Quotes
from runguard.evidence.ran import Facts
from runguard.instant import rfc3339
from runguard.store import recoveries
from runguard.store.reads import Reader


class Searched(NamedTuple):
    """How much was searched: `partly` of the runs have written what is not on record, or not yet."""

    entries: int
    runs: int
    partly: int


def explain(reader: Reader, asked: Asked) -> Facts | None:
    """Return what is on record about a case by the JSON contract, or None where it never comes up.

    Raises StoreError where the store cannot be read. What is damaged is told, and the rest all the same.
    """
    quotes, moment = Quotes(reader), asked.moment
    found = Found(quotes, asked)
    if not found.any:
        return None
    runs, touches = found.in_order(), found.touches()
    bearing = {entry["seq"]: entry for entry in (*found.on_case, *later.on_runs(quotes, runs, moment))}
    return {
        "case": asked.case,
        "at": rfc3339(moment.at_us) if moment.past else None,
        "touches": touches,
        "runs": runs,
        "later": [later.facts(bearing[seq]) for seq in sorted(bearing)],
        "windows": list(beside.broken(quotes, runs, moment, asked.grace_us)),
        "unknown": [
            *unknown.about(touches, runs, found.pieces, found.files, found.unread, asked.journaled),
            *unknown.of_pruned([(*row,) for row in reader.rows("pruned", what="cases")]),
            *unknown.of_recovered(recoveries.read(reader).losses()),
        ],
        "damage": quotes.damage,
    }


def searched(reader: Reader) -> Searched:
    """Return how much there was to search for a case."""
    return Searched(*reader.rows("items_so_far")[0])

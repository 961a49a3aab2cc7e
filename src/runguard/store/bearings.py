"""Entries that bear on others: corrections, holds and their releases, erasures, accesses, defects, recoveries.

Each has `about`, a list of targets. A target is an object with one of these sets of keys, instants in RFC 3339 or null:

    {"case"}  {"case","run"}  {"case","run","record"}   a case, what a run said of it, one case entry
    {"run"}  {"entry"}                                  a run by its id, an entry of the ledger by its number
    {"job"}  {"job","window"}  {"job","since","until"}  a job, a window by its key, runs of since <= started < until
    {"since","until"}                                   everything of that span
    {"code"}  {"commit"}                                runs of a program or input with that SHA-256, of a git commit;
                                                        with {"since","until"} those of the span
    {"erased"}                                          a case that was redacted (evidence/erasure.py)
"""

from __future__ import annotations

from runguard import instant
from runguard.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from runguard.store.reads import Reader

KINDS = ("correction", "hold", "release", "redact", "prune", "access", "defect", "recovery")

_SHAPES = {
    ("case",): "case",
    ("case", "run"): "case",
    ("case", "record", "run"): "case",
    ("run",): "run",
    ("entry",): "entry",
    ("job",): "job",
    ("job", "window"): "job",
    ("job", "since", "until"): "job",
    ("since", "until"): "span",
    ("code",): "code",
    ("code", "since", "until"): "code",
    ("commit",): "commit",
    ("commit", "since", "until"): "commit",
    ("erased",): "erased",
}


class Bearing(NamedTuple):
    """One thing that an entry is about, as it is indexed: `which` of its kind, "" of a span."""

    about: str
    which: str
    seq: int
    kind: str


def of_entry(entry: Mapping[str, Any]) -> list[Bearing]:
    """Return what an entry is about, each thing once. Raises KeyError, TypeError or ValueError where it has none."""
    found = dict.fromkeys(_named(target) for target in entry["about"])
    if not found:
        raise ValueError(f"{entry['kind']}: it is about nothing")
    return [Bearing(about, which, entry["seq"], entry["kind"]) for about, which in found]


def on(reader: Reader, about: str, these: Iterable[str]) -> list[Bearing]:
    """Return what bears on these things of a kind, by thing and entry."""
    return [Bearing(*row) for which in these for row in reader.rows("bearings", about=about, which=which)]


def of_kind(reader: Reader, kind: str) -> list[int]:
    """Return the entries of a kind, ascending."""
    return [seq for (seq,) in reader.rows("bearings_of_kind", kind=kind)]


def _named(target: Mapping[str, Any]) -> tuple[str, str]:
    about = _SHAPES.get(tuple(sorted(target)))
    if about is None:
        raise ValueError(f"{', '.join(sorted(target)) or 'nothing'}: no entry can be about that")
    for key, value in target.items():
        if key in ("since", "until"):
            if value is not None:
                instant.from_rfc3339(value)
        elif type(value) is not (int if key in ("entry", "record") else str):
            raise TypeError(f"{key} is {value!r:.40}")
    return about, "" if about == "span" else str(target[about])

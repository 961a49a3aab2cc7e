"""What of the record goes into a bundle: entries of the ledger, runs, and case entries of each.

Who looked at the record (`access`) stays out, so that the same export is the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from runguard.evidence.explain import explain
from runguard.evidence.found import Asked
from runguard.evidence.ran import code_hashes, of_entries
from runguard.evidence.retention import matches, said
from runguard.instant import rfc3339
from runguard.store import bearings, items, lines
from runguard.store.reads import Reader, Run

Facts = dict[str, Any]


class Part(NamedTuple):
    """A run, and which of its case entries go: `records` by their numbers in the run, None for all.

    `listed` of them are named by the list whose hash the entry `list_seq` tells; later ones are not proved yet.
    """

    run: Run
    records: tuple[int, ...] | None
    listed: int
    list_seq: int
    rejected: bool  # that entry names the rejected lines, too
    unlisted: int


class Selected(NamedTuple):
    """What goes into a bundle. `explained` is what explain tells of a case, None for a job."""

    title: str
    target: dict[str, Any]  # what it is about, as entries of the ledger spell it
    entries: tuple[int, ...]
    parts: tuple[Part, ...]
    runs: tuple[Run, ...]  # with and without case entries, in order
    explained: Facts | None


def of_case(reader: Reader, asked: Asked) -> Selected | None:
    """Return what bears on a case, or None where it never comes up. Raises StoreError."""
    told = explain(reader, asked)
    if told is None:
        return None
    told = {**told, "later": [each for each in told["later"] if each["kind"] != "access"]}
    hints = [each for each in told["unknown"] if each["what"] != "pruned"]
    if not (told["touches"] or told["later"] or told["runs"] or hints):
        return None
    runs = [run for facts in told["runs"] if (run := reader.run(facts["run_id"])) is not None]
    records: dict[str, list[int]] = {}
    for touch in told["touches"]:
        records.setdefault(touch["run_id"], []).extend(
            each["record"] for each in touch["records"] if each["record"] is not None
        )
    seqs = {each["entry"] for facts in told["runs"] for each in facts["entries"]}
    seqs |= {each["entry"] for each in told["later"]}
    for window in told["windows"]:
        seqs |= {seq for number in window["runs"] for seq in _ends_of(reader, number)}
    parts = [part for run in runs if (part := _part(reader, run, sorted(set(records.get(run.run_id, ()))))) is not None]
    seqs |= {part.list_seq for part in parts} | set(_definitions(reader, {run.job for run in runs}))
    seqs |= set(bearings.of_kind(reader, "recovery"))
    return Selected(f"case {asked.case}", {"case": asked.case}, tuple(sorted(seqs)), tuple(parts), tuple(runs), told)


def of_job(reader: Reader, job: str, since_us: int | None, until_us: int | None) -> Selected:
    """Return what is on record of a job's runs started in the span, and what bears on them. Raises StoreError."""
    runs = sorted(reader.history(job, since_us=since_us, until_us=until_us))
    parts = [part for run in runs if (part := _part(reader, run, None)) is not None]
    seqs = {seq for run in runs for seq in (run.start_seq, run.finish_seq, run.late_seq) if seq is not None}
    seqs |= {part.list_seq for part in parts} | set(_definitions(reader, {job}))
    seqs |= {waiver.seq for waiver in reader.waivers(job)} | set(bearings.of_kind(reader, "recovery"))
    seqs |= set(_bearing(reader, job, runs))
    target: dict[str, Any] = {"job": job}
    title = f"job {job}"
    if since_us is not None or until_us is not None:
        target |= {"since": _instant(since_us), "until": _instant(until_us)}
        title += f" from {target['since'] or 'the beginning'} to {target['until'] or 'now'}"
    return Selected(title, target, tuple(sorted(seqs)), tuple(parts), tuple(runs), None)


def list_entry(reader: Reader, run: Run) -> tuple[int, Facts] | None:
    """Return the entry that last named the list of a run's case entries, and what it says of them, or None."""
    found = [each.seq for each in bearings.on(reader, "run", [run.run_id]) if each.kind == "items"]
    for seq in (*reversed(found), run.finish_seq):
        told = said(reader, seq).get("items") if seq is not None else None
        if seq is not None and told and told.get("list_sha256"):
            return seq, told
    if run.finish_seq is not None:
        return None
    last = None
    for seq, entry in _since(reader, run.start_seq):
        if entry["kind"] == "items" and entry["run_id"] == run.run_id:
            last = seq, entry["items"]
    return last


def _part(reader: Reader, run: Run, records: list[int] | None) -> Part | None:
    progress = items.progress(reader, run.start_seq)
    named = list_entry(reader, run) if progress is not None else None
    if progress is None or named is None:
        return None
    seq, told = named
    listed = int(told["entries"])
    chosen = None if records is None else tuple(each for each in records if each <= listed)
    unlisted = progress.entries - listed if records is None else sum(each > listed for each in records)
    return Part(run, chosen, listed, seq, bool(told.get("rejected_sha256")), unlisted)


def _instant(at_us: int | None) -> str | None:
    return None if at_us is None else rfc3339(at_us)


def _since(reader: Reader, after: int) -> Iterator[tuple[int, Facts]]:
    """Yield the entries of kind `items` after an entry, in order."""
    while page := reader.rows("lines_after", seq=after, page=1_000):
        for seq, line in page:
            if b'"kind":"items"' in line[:200]:
                yield seq, lines.parse(line)
        after = page[-1][0]


def _ends_of(reader: Reader, number: int) -> Iterator[int]:
    for row in reader.rows("run_by_number", number=number):
        run = Run(*row)
        yield from (seq for seq in (run.start_seq, run.finish_seq) if seq is not None)


def _definitions(reader: Reader, jobs: Iterable[str]) -> Iterator[int]:
    for job in jobs:
        yield from (seq for (seq,) in reader.rows("definitions", job=job))


def _bearing(reader: Reader, job: str, runs: list[Run]) -> Iterator[int]:
    """Yield the entries that bear on a job or on these of its runs."""
    for run in runs:
        entries = [str(seq) for seq in (run.start_seq, run.finish_seq, run.late_seq) if seq is not None]
        for each in (*bearings.on(reader, "run", [run.run_id]), *bearings.on(reader, "entry", entries)):
            if each.kind != "access":
                yield each.seq
    for each in (*bearings.on(reader, "job", [job]), *bearings.on(reader, "span", [""])):
        targets = said(reader, each.seq)["about"] if each.kind != "access" else ()
        if any(matches(target, run) for target in targets for run in runs):
            yield each.seq
    ids = {run.run_id for run in runs}
    for seq in bearings.of_kind(reader, "redact"):
        if any(record["run"] in ids for record in said(reader, seq)["records"]):
            yield seq
    yield from _defects(reader, runs)


def _defects(reader: Reader, runs: list[Run]) -> Iterator[int]:
    """Yield the known faults of code that these runs used."""
    known = {seq: said(reader, seq)["about"] for seq in bearings.of_kind(reader, "defect")}
    for run in runs if known else ():
        finish = said(reader, run.finish_seq) if run.finish_seq is not None else None
        facts = of_entries(said(reader, run.start_seq), finish)
        codes = {*code_hashes(facts), facts["commit"]}
        for seq, targets in known.items():
            if any((target.get("code") or target["commit"]) in codes and matches(target, run) for target in targets):
                yield seq

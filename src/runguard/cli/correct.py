"""`correct`: what is on record stays as it is, and from now on it is told that it is wrong, by whom and why."""

from __future__ import annotations

from typing import Any

import click

from runguard import clock
from runguard.cli.asking import find, known_run, open_records
from runguard.cli.options import Command, Number, store_option
from runguard.cli.output import page
from runguard.cli.targets import Target, case_id, reason_of
from runguard.errors import UsageError
from runguard.evidence import lists
from runguard.evidence.retention import in_words
from runguard.guard.writing import writing
from runguard.printable import line
from runguard.store import items
from runguard.store.reads import Reader

TEXT = """Say that something on record is wrong: the original stays, and the correction is told with it.

TARGET is the number of an entry of the ledger, or the beginning of a run's id. Or name a run by its number (--run), a
case (--case), what one run said of it (--case with --run), or one case entry (--run with --seq).
"""

STATUSES = (
    ("0", "done"),
    ("2", "usage, or what is to be corrected is not on record"),
    ("74", "the store cannot be read or written"),
    ("78", "a mistake in the configuration, with its file and line"),
)


@click.command("correct", cls=Command, help=TEXT, short_help="Say that a record is wrong.", statuses=STATUSES)
@click.argument("target", metavar="[TARGET]", required=False)
@click.option("--run", metavar="RUN", help="A run, by its number or id.")
@click.option("--case", metavar="ID", help="A case.")
@click.option("--seq", metavar="N", type=Number(1), help="The case entry of that number in the run.")
@click.option("--wrong", metavar="TEXT", help="What is wrong (needed).")
@click.option("--right", metavar="TEXT", help="What should stand there, as far as that is known.")
@click.option("--reason", metavar="TEXT", help="Why, how it is known (needed); it is recorded with your login.")
@store_option
@click.pass_obj
def correct(
    environ: dict[str, str],
    target: str | None,
    run: str | None,
    case: str | None,
    seq: int | None,
    wrong: str | None,
    right: str | None,
    reason: str | None,
    store: str | None,
) -> int:
    """Record the correction, and say which entry of the ledger tells it."""
    reason = reason_of("correct", reason, "who corrects says why")
    if wrong is None or not wrong.strip():
        raise UsageError(f"correct: --wrong TEXT is {'needed' if wrong is None else 'empty'}: what is wrong?")
    if (target is not None) == (run is not None or case is not None) or (seq is not None and (run is None or case)):
        raise UsageError("correct: name one: an entry, --run RUN (perhaps with --seq N), or --case ID (or with --run)")
    now_us = clock.look().wall_us
    place = find(environ, store)
    if run is not None or (target is not None and not target.isdigit()):
        run = known_run(open_records(place), run if run is not None else target or "", place).run_id
    with writing(environ, place.kept, create=False) as tx:
        about = _about(tx.store, None if run is not None else target, run, case, seq)
        fields: dict[str, Any] = {"about": [about], "wrong": wrong, "right": right, "reason": reason}
        entry = tx.append("correction", now_us, fields)
    page([line(f"corrected {in_words(about)}: {wrong} (entry {entry.seq})")])
    return 0


def _about(reader: Reader, entry: str | None, run_id: str | None, case: str | None, seq: int | None) -> Target:
    """Return the target, which is on record. Raises UsageError."""
    if entry is not None:
        if len(entry) > 18 or not reader.rows("line_at", seq=int(entry)):
            last = reader.head()
            ends = f"the last is {last.seq}" if last else "nothing is recorded"
            raise UsageError(f"correct: the ledger has no entry {entry[:20]} ({ends})")
        return {"entry": int(entry)}
    run = reader.run(run_id) if run_id is not None else None
    if seq is not None:
        assert run is not None
        number = lists.number(run.start_seq, seq)
        these = list(items.records(reader, number - 1, number + 1))
        if not these:
            raise UsageError(f"correct: run {run.number} has no case entry {seq} on record")
        return {"case": these[0].case, "run": run.run_id, "record": seq}
    if case is None:
        assert run is not None
        return {"run": run.run_id}
    told = [lists.place(each.id)[0] for each in items.of_case(reader, case_id("correct", case))]
    if not told or (run is not None and run.start_seq not in told):
        of_run = f" of run {run.number}" if run is not None else ""
        raise UsageError(f"correct: nothing is on record{of_run} of case {case}")
    return {"case": case} if run is None else {"case": case, "run": run.run_id}

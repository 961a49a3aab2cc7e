"""`release`: a hold ends."""

from __future__ import annotations

import click

from runguard import clock
from runguard.cli.asking import find, open_records
from runguard.cli.options import Command, Number, store_option
from runguard.cli.output import page
from runguard.cli.targets import Target, reason_of, target_options, targets
from runguard.errors import UsageError
from runguard.evidence.retention import Hold, held, in_words
from runguard.guard.writing import writing
from runguard.printable import line

TEXT = """End a hold: by the entry that placed it, or every hold with just this target.

Nothing is removed by that; `prune` and `redact` may do so from then on. The hold and its end stay on record.
"""

STATUSES = (
    ("0", "done"),
    ("2", "usage, or no such hold is in force"),
    ("74", "the store cannot be read or written"),
    ("78", "a mistake in the configuration, with its file and line"),
)
_NAMED = 5


@click.command("release", cls=Command, help=TEXT, short_help="End a hold.", statuses=STATUSES)
@click.argument("entry", metavar="[ENTRY]", type=Number(1), required=False)
@target_options
@click.option("--reason", metavar="TEXT", help="Why (needed); it is recorded with your login.")
@store_option
@click.pass_obj
def release(
    environ: dict[str, str],
    entry: int | None,
    cases: tuple[str, ...],
    run: str | None,
    job: str | None,
    span: str | None,
    reason: str | None,
    store: str | None,
) -> int:
    """Record the release, one entry for each hold, and say which entries tell it."""
    reason = reason_of("release", reason, "who releases says why")
    now_us = clock.look().wall_us
    place = find(environ, store)
    wanted = targets("release", open_records(place), place, now_us, cases, run, job, span)
    if (entry is None) == (not wanted):
        raise UsageError("release: name one: the entry of a hold, or what it is about (--case, --run, --job, --span)")
    done = []
    with writing(environ, place.kept, create=False) as tx:
        holds = held(tx.store).holds
        for hold in _named(holds, entry, wanted):
            fields = {"about": [hold.target], "hold": hold.seq, "reason": reason}
            seq = tx.append("release", now_us, fields).seq
            done.append(line(f"released {in_words(hold.target)}, held by entry {hold.seq}: {reason} (entry {seq})"))
    page(done)
    return 0


def _named(holds: tuple[Hold, ...], entry: int | None, wanted: list[Target]) -> list[Hold]:
    """Return the holds that are meant. Raises UsageError where one is none, or not in force."""
    if entry is not None:
        found = [hold for hold in holds if hold.seq == entry]
        if not found:
            raise UsageError(f"release: entry {entry} is no hold in force{_known(holds)}")
        return found
    found = []
    for target in wanted:
        these = [hold for hold in holds if hold.target == target]
        if not these:
            raise UsageError(f"release: {in_words(target)} is not held{_known(holds)}")
        found += these
    return found


def _known(holds: tuple[Hold, ...]) -> str:
    if not holds:
        return "; nothing is held"
    named = ", ".join(f"{hold.seq} ({in_words(hold.target)})" for hold in holds[:_NAMED])
    return f"; in force: {named}{', …' if len(holds) > _NAMED else ''}"

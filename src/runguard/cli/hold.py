"""`hold`: what nobody may prune or redact, until it is released."""

from __future__ import annotations

import click

from runguard import clock
from runguard.cli.asking import find, open_records
from runguard.cli.fast import say
from runguard.cli.options import Command, store_option
from runguard.cli.output import page
from runguard.cli.targets import reason_of, target_options, targets
from runguard.errors import UsageError
from runguard.evidence.retention import in_words
from runguard.guard.writing import writing
from runguard.printable import line
from runguard.store import items

TEXT = """Hold a case, a run, a job or a span: nobody may prune or redact what it matches.

Also what comes later is held. `release` ends it. Both are entries of the ledger, with your name and reason.
"""

STATUSES = (
    ("0", "done"),
    ("2", "usage, or a job or run that is not on record"),
    ("74", "the store cannot be read or written"),
    ("78", "a mistake in the configuration, with its file and line"),
)


@click.command("hold", cls=Command, help=TEXT, short_help="Keep something from prune and redact.", statuses=STATUSES)
@target_options
@click.option("--reason", metavar="TEXT", help="Why (needed); it is recorded with your login.")
@store_option
@click.pass_obj
def hold(
    environ: dict[str, str],
    cases: tuple[str, ...],
    run: str | None,
    job: str | None,
    span: str | None,
    reason: str | None,
    store: str | None,
) -> int:
    """Record the hold, one entry for each case, and say which entries tell it."""
    reason = reason_of("hold", reason, "who holds says why")
    now_us = clock.look().wall_us
    place = find(environ, store)
    wanted = targets("hold", open_records(place), place, now_us, cases, run, job, span)
    if not wanted:
        raise UsageError("hold: name what: --case ID, --run RUN, --job JOB, or --span SINCE..UNTIL")
    done = []
    with writing(environ, place.kept, create=False) as tx:
        for target in wanted:
            seq = tx.append("hold", now_us, {"about": [target], "reason": reason}).seq
            done.append(line(f"held {in_words(target)}: {reason} (entry {seq})"))
            if "case" in target and not items.of_case(tx.store, target["case"]):
                say(f"hold: nothing is on record of {line(in_words(target))}; what comes is held all the same")
    page(done)
    return 0

"""`redact`: lawful erasure of a case's text. What the lists prove stays proved."""

from __future__ import annotations

import click

from runguard import clock
from runguard.cli.asking import find, nothing_recorded, open_records
from runguard.cli.fast import say
from runguard.cli.options import Command, Number, store_option
from runguard.cli.output import page
from runguard.cli.targets import case_id, reason_of
from runguard.errors import UsageError
from runguard.evidence import redaction, waiting
from runguard.evidence.redaction import Found
from runguard.guard.writing import writing
from runguard.printable import line
from runguard.store.reads import Reader

TEXT = """Remove what is on record of CASE: each record line with its salt. Its hash stays in the lists.

Or one case entry alone: --run and --seq, as `show --items` numbers them. An entry of the ledger says what was removed,
by whose authority and why; it does not spell the id. What cannot be removed is named. A held case is refused.
"""

STATUSES = (
    ("0", "done"),
    ("2", "usage, nothing is on record of the case, it is held, or a run that handled it is not over"),
    ("74", "the store cannot be read or written"),
    ("78", "a mistake in the configuration, with its file and line"),
)


@click.command("redact", cls=Command, help=TEXT, short_help="Remove the text of a case.", statuses=STATUSES)
@click.argument("case", metavar="[CASE]", required=False)
@click.option("--run", metavar="RUN", help="The run of the one case entry that is meant.")
@click.option("--seq", metavar="N", type=Number(1), help="Its number in the run.")
@click.option("--reason", metavar="TEXT", help="Why (needed, except with --dry-run); it is recorded with your login.")
@click.option("--authority", metavar="TEXT", help="By whose authority: a decision, a ticket.")
@click.option("--dry-run", is_flag=True, help="Say what would be removed; do nothing.")
@store_option
@click.pass_obj
def redact(
    environ: dict[str, str],
    case: str | None,
    run: str | None,
    seq: int | None,
    reason: str | None,
    authority: str | None,
    dry_run: bool,
    store: str | None,
) -> int:
    """Remove it and say what was removed, by which entry, and what was not."""
    if reason is not None or not dry_run:
        reason = reason_of("redact", reason, "who redacts says why")
    if (case is None) == (run is None) or (run is None) != (seq is None):
        raise UsageError("redact: either CASE, or --run RUN and --seq N")
    if case is not None:
        case_id("redact", case)
        _refuse_to_spell(case, reason, authority)
    now_us = clock.look().wall_us
    place = find(environ, store)
    if dry_run:
        records = open_records(place)
        if records is None:
            raise UsageError(f"redact: {nothing_recorded(place)}")
        with records:
            files = _files(records, case, place.kept.runs)
            found = _find(records, case, run, seq)
        page([line(f"would remove {_told(found)}; nothing was done")])
    else:
        with writing(environ, place.kept, create=False) as tx:
            files = _files(tx.store, case, place.kept.runs)
            found = _find(tx.store, case, run, seq)
            _refuse_to_spell(found.case, reason, authority)
            entry = redaction.redact(tx, found, authority, reason or "", now_us)
        page([line(f"removed {_told(found)}; the lists stay as they are (entry {entry})")])
    _say_what_stays(found, files)
    return 0


def _files(reader: Reader, case: str | None, runs: str) -> list[str]:
    """Return what is known of files that name the case too. Raises UsageError where one of them waits to be taken in.

    What a job said would come on record after the case was redacted.
    """
    found, unread = waiting.in_files(reader, case, runs) if case is not None else ([], [])
    for each in found:
        if each.said:
            raise UsageError(f"{each.path} names the case and is not on record yet: the job's next start takes it in")
    return [*unread, *(f"{each.path} may name the case: remove it by hand" for each in found)]


def _find(reader: Reader, case: str | None, run: str | None, seq: int | None) -> Found:
    if case is not None:
        return redaction.of_case(reader, case)
    assert run is not None
    assert seq is not None
    return redaction.of_record(reader, reader.find_run(run), seq)


def _refuse_to_spell(case: str, *texts: str | None) -> None:
    """Raise UsageError where a text would put the id into the ledger once more, for good."""
    if any(case in text for text in texts if text is not None):
        raise UsageError(
            "redact: --reason or --authority spells the case id, and stays in the ledger: say it otherwise"
        )


def _told(found: Found) -> str:
    runs = found.runs
    of_runs = f" of run {runs[0]}" if len(runs) == 1 else f" of {len(runs)} runs"
    told = [f"{len(found.records)} case entr{'y' if len(found.records) == 1 else 'ies'}{of_runs if runs else ''}"]
    if found.rejected:
        told.append(f"the text of {len(found.rejected)} rejected line{'s' * (len(found.rejected) != 1)}")
    return f"{' and '.join(told)}, case {found.case}"


def _say_what_stays(found: Found, files: list[str]) -> None:
    """Say where the case is still to be read: nobody shall think that more is gone than is."""
    if found.entries:
        named = ", ".join(f"{seq} ({kind})" for seq, kind in found.entries)
        say(f"redact: entries that name the case stay, for the ledger is never edited: {named}")
    if found.outputs:
        named = ", ".join(map(str, found.outputs))
        say(f"redact: the kept output of run {named} holds the id and stays until it is pruned")
    for text in files:
        say(f"redact: {line(text)}")
    say("redact: exports, backups and copies of the file that were made before are out of reach")

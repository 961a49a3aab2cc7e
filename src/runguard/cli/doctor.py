"""`doctor`: everything that could go wrong here, checked now; and what is left of a damaged store, recovered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import click

from runguard import clock, config, paths
from runguard.cli.asking import Place, find
from runguard.cli.options import Command, query_options
from runguard.cli.output import Column, Row, emit, stdout, working
from runguard.errors import ConfigError, NothingRecordedError, UsageError
from runguard.guard import recovering, tidying
from runguard.guard.tidying import Step
from runguard.printable import line
from runguard.report.doctor import checks, findings, world
from runguard.report.doctor.findings import Finding

TEXT = """Check everything that could go wrong here: records, places, configuration, jobs, cron, zones, clock, software.

Each check is ok, warning, fault, or unknown where it cannot be told from here, with the command to type. Nothing is
changed. It works without a store, with a broken one, and for an account that may only read.

--recover replaces a store that was known before and is corrupt, emptied, missing or set back by what is left of it.
What is there is kept aside first. The ledger goes on with the numbers of the old one: its first new entry names what is
lost, and verify names it from then on. Windows that were answered stay answered as far as they were salvaged. The
journal, runs without an end and case entries that were left are put on record, also where the store is sound.
"""

STATUSES = (
    ("0", "nothing was found (unknown is no finding); with --recover: done, or there was nothing to do"),
    ("1", "a warning or a fault was found"),
    ("2", "usage"),
    ("74", "--recover: the store cannot be judged or written; the old files are as they were"),
    ("75", "--recover: refused, because a run lives"),
    ("78", "there is no safe place to look at; --recover: also a mistake in the configuration"),
)
COLUMNS = (Column("LEVEL"), Column("CHECK"), Column("FOUND", wrap=True))
FIELDS = ("level", "check", "text", "command", "job")
STEP_FIELDS = ("step", "text")


@click.command("doctor", cls=Command, help=TEXT, short_help="Check everything that could go wrong.", statuses=STATUSES)
@click.option("--recover", is_flag=True, help="Replace a damaged store by what is left of it.")
@click.option("--reason", metavar="TEXT", help="Why it is recovered (needed); it is recorded with your login.")
@query_options
@click.pass_obj
def doctor(environ: dict[str, str], recover: bool, reason: str | None, form: str | None, store: str | None) -> int:
    """Print what the checks find, or each step of a recovery."""
    now_us = clock.look().wall_us
    if recover:
        if reason is None or not reason.strip():
            needed = "needed" if reason is None else "empty"
            raise UsageError(f"doctor: --reason TEXT is {needed}: who recovers a store says why")
        return _recover(environ, find(environ, store), reason, now_us, form)
    if reason is not None:
        raise UsageError("doctor: --reason goes with --recover")
    place = _place(environ, store)
    found = list(checks.examine(world.gather(environ, place.loaded, place.kept, place.named, now_us)))
    emit(form or "table", (_row(name, each) for name, each in found), COLUMNS, FIELDS)
    return int(any(each.level in (findings.WARNING, findings.FAULT) for _, each in found))


def _place(environ: dict[str, str], store: str | None) -> Place:
    """Return where the records are, also where the configuration has mistakes: they are found in their turn."""
    try:
        return find(environ, store)
    except ConfigError:
        loaded = config.load(environ, None)
        settings, _ = config.effective({} if store is None else {"store": store}, environ, loaded, "")
        kept = paths.places(paths.state_directory(environ), settings.store)
        return Place(kept, settings.store is not None, loaded)


def _row(name: str, found: Finding) -> Row:
    facts = {"level": found.level, "check": name, "text": found.text, "command": found.command, "job": found.job}
    return Row(facts, (found.level, name, f"{found.text}; type: {found.command}" if found.command else found.text))


def _recover(environ: dict[str, str], place: Place, reason: str, now_us: int, form: str | None) -> int:
    with working("recovering") as advance:
        steps = _steps(environ, place, reason, now_us, advance)
        if form in (None, "table"):
            _print_as_they_come(steps)
        else:
            emit(form or "json", (Row({"step": each.name, "text": each.text}, ()) for each in steps), (), STEP_FIELDS)
    return 0


def _steps(
    environ: dict[str, str], place: Place, reason: str, now_us: int, advance: Callable[[int], None]
) -> Iterator[Step]:
    yield from recovering.mend(environ, place.kept, reason, now_us, advance)
    try:
        yield from tidying.tidy(environ, place.loaded, place.kept, now_us)
    except NothingRecordedError:
        yield Step("store", "nothing has been recorded yet")


def _print_as_they_come(steps: Iterable[Step]) -> None:
    for each in steps:
        with stdout() as out:
            out.write(f"{each.name:<8} {line(each.text)}\n")

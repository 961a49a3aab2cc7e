"""`wrap`: runguard in front of the lines of a crontab."""

from __future__ import annotations

import click

from runguard.cli.crontabs import bad_mark, choose, form_of, names_elsewhere, refuse_returns, settle, table_options
from runguard.cli.options import Command
from runguard.crontab import wrap as wrapping
from runguard.crontab.wrap import BadMark

TEXT = """Put runguard run in front of the commands of a crontab: of FILE, of --user, or of your own.

Shows a unified diff. With --apply it writes the table, after keeping a copy of it, and only if it is still the one that
was read. Lines that are guarded already, comments and variables stay as they are; a line that cannot be wrapped is
named and left. runguard unwrap takes it all off again, to the byte.

\b
A comment right above a line says more of it:
  # runguard: name=letters       call its job so
  # runguard: ignore             leave the line as it is
"""

STATUSES = (
    ("0", "done, also where there is nothing to do"),
    ("2", "usage, or a table that cannot be read"),
    ("74", "the table cannot be written"),
    ("75", "the table was changed meanwhile, or another edit is under way"),
    ("78", "the state directory could be another account's"),
)


@click.command("wrap", cls=Command, help=TEXT, short_help="Guard the lines of a crontab.", statuses=STATUSES)
@table_options
@click.option("-z", "--timezone", metavar="ZONE", help="The daemon's zone, where it is not the host's.")
@click.option("--runguard", "program", metavar="PATH", help="By which path lines call it (default: this one).")
@click.option("--apply", is_flag=True, help="Write it.")
@click.pass_obj
def wrap(
    environ: dict[str, str],
    file: str | None,
    user: str | None,
    system: bool | None,
    daemon: str | None,
    timezone: str | None,
    program: str | None,
    apply: bool,
) -> int:
    """Show or write the wrapped table."""
    chosen = choose("wrap", environ, file, user, system)
    refuse_returns(chosen)
    form = form_of(chosen, daemon, timezone, program)
    try:
        edited = wrapping.wrap(chosen.data, form, names_elsewhere(chosen, environ, form.daemon))
    except BadMark as error:
        raise bad_mark(chosen.label, error) from None
    return settle("wrap", environ, chosen, edited, "guarded", apply=apply)

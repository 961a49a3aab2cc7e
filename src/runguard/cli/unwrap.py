"""`unwrap`: runguard taken off the lines of a crontab."""

from __future__ import annotations

import click

from runguard.cli.crontabs import choose, daemon_named, settle, table_options
from runguard.cli.options import Command
from runguard.crontab import wrap as wrapping
from runguard.crontab.wrap import Form

TEXT = """Take runguard run off the commands of a crontab: of FILE, of --user, or of your own.

Shows a unified diff; --apply writes the table, as wrap does. What wrap wrote becomes what it was, to the byte. Options
that were added since are taken off too; a line that cannot be taken apart is named and left.
"""

STATUSES = (
    ("0", "done, also where there is nothing to do"),
    ("2", "usage, or a table that cannot be read"),
    ("74", "the table cannot be written"),
    ("75", "the table was changed meanwhile, or another edit is under way"),
    ("78", "the state directory could be another account's"),
)


@click.command("unwrap", cls=Command, help=TEXT, short_help="Undo wrap.", statuses=STATUSES)
@table_options
@click.option("--apply", is_flag=True, help="Write it.")
@click.pass_obj
def unwrap(
    environ: dict[str, str], file: str | None, user: str | None, system: bool | None, daemon: str | None, apply: bool
) -> int:
    """Show or write the unwrapped table."""
    chosen = choose("unwrap", environ, file, user, system)
    form = Form(chosen.system, daemon_named(daemon), b"")
    return settle("unwrap", environ, chosen, wrapping.unwrap(chosen.data, form), "bared", apply=apply)

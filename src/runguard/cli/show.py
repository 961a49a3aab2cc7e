"""`show RUN`: one run, whole."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click

from runguard.cli import details
from runguard.cli.asking import find, known_run, open_records
from runguard.cli.fast import say
from runguard.cli.options import Command, query_options
from runguard.cli.output import Column, Row, emit, page, raw
from runguard.cli.runs import FIELDS, Seen
from runguard.errors import UsageError
from runguard.guard import frames, liveness
from runguard.store.database import ReadOnlyStore
from runguard.store.reads import Run

TEXT = """Show one run, whole. RUN is its number, its id, or the first four or more characters of its id.

With --output, only what was kept of the command's output: escaped on a terminal, exact into a pipe or file.
"""

STATUSES = (
    ("0", "done"),
    ("2", "usage, or a run that is not on record"),
    ("74", "the store cannot be read"),
    ("78", "a mistake in the configuration, with its file and line"),
)


@click.command("show", cls=Command, help=TEXT, short_help="Show one run, whole.", statuses=STATUSES)
@click.argument("run", metavar="RUN")
@click.option("--output", is_flag=True, help="Write what was kept of the command's output, and nothing else.")
@query_options
@click.pass_obj
def show(environ: dict[str, str], run: str, output: bool, form: str | None, store: str | None) -> int:
    """Print the run."""
    if output and form is not None:
        raise UsageError("show: --output writes the command's own bytes; it goes with no format")
    place = find(environ, store)
    records = open_records(place)
    for remark in records.remarks if records else ():
        say(remark)
    found, life = Seen(place.kept.runs).now(known_run(records, run, place))
    assert records is not None
    if output:
        _output(records, found, life)
        return 0
    told = details.gather(records, found, life)
    if form in (None, "table"):
        page(details.lines(records, told, found, life), hang=details.HANG)
    else:
        emit(form or "json", [Row(told, ())], (Column(""),), FIELDS)
    return 0


def _output(records: ReadOnlyStore, run: Run, life: liveness.Life | None) -> None:
    """Write head and tail of the output. What was left out between them is told on stderr, or on the terminal."""
    kept = records.output(run.run_id)
    omitted = details.omitted_bytes(records.entries(run.run_id))
    if kept is None and life is not None and life.left is not None:
        kept, omitted = (life.left.head, life.left.tail), life.left.omitted_bytes
    if kept is None:
        say(f"run {run.number} has no output on record")
        return
    head, tail = (list(_data(part)) for part in kept)
    marker = f"{omitted} bytes between the beginning and the end were not kept"
    raw([*head, f"\n[{marker}]\n".encode(), *tail] if omitted and sys.stdout.isatty() else [*head, *tail])
    if omitted and not sys.stdout.isatty():
        say(marker)


def _data(encoded: bytes) -> Iterator[bytes]:
    for frame in frames.decode(encoded, torn=True):
        yield bytes(frame.data)

"""`show RUN`: one run, whole."""

from __future__ import annotations

import itertools
import sys

import click

from runguard.cli import case_entries, details, transcript
from runguard.cli.asking import find, known_run, open_records
from runguard.cli.fast import say
from runguard.cli.options import Command, query_options
from runguard.cli.output import Column, Row, emit, page, raw
from runguard.cli.runs import FIELDS, Seen
from runguard.errors import UsageError
from runguard.store.database import ReadOnlyStore
from runguard.store.reads import Run

TEXT = """Show one run, whole. RUN is its number, its id, or the first four or more characters of its id.

With --output, only what was kept of the command's output: escaped on a terminal, exact into a pipe or file. As JSON,
JSON lines or CSV it is what each stream wrote when. With --items, what the job said of its cases, line by line.
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
@click.option("--stdout", is_flag=True, help="The same, of its stdout alone.")
@click.option("--stderr", is_flag=True, help="The same, of its stderr alone.")
@click.option("--times", is_flag=True, help="The same as lines of text, each with its time and stream.")
@click.option("--items", is_flag=True, help="List the run's case entries, and what is none of them.")
@query_options
@click.pass_obj
def show(
    environ: dict[str, str],
    run: str,
    output: bool,
    stdout: bool,
    stderr: bool,
    times: bool,
    items: bool,
    form: str | None,
    store: str | None,
) -> int:
    """Print the run, its output or its case entries."""
    if items and (output or stdout or stderr or times):
        raise UsageError("show: --items and the output are two questions: ask one at a time")
    place = find(environ, store)
    records = open_records(place)
    for remark in records.remarks if records else ():
        say(remark)
    found, life = Seen(place.kept.runs).now(known_run(records, run, place))
    assert records is not None
    if output or stdout or stderr or times:
        alone = stdout != stderr
        streams = [stream for stream, wanted in ((1, stdout), (2, stderr)) if wanted or not alone]
        _output(found, transcript.read(records, found, life, streams), form, alone=alone, times=times)
        return 0
    if items:
        _items(records, found, form)
        return 0
    told = details.gather(records, found, life)
    if form in (None, "table"):
        page(details.lines(records, told, found, life), hang=details.HANG)
    else:
        emit(form or "json", [Row(told, ())], (Column(""),), FIELDS)
    return 0


def _items(records: ReadOnlyStore, run: Run, form: str | None) -> None:
    """List the case entries of the run."""
    found = case_entries.rows(records, run)
    first = next(found, None)
    if first is None:
        say(f"run {run.number} has no case entries on record")
    found = itertools.chain(() if first is None else (first,), found)
    emit(form or "table", found, case_entries.COLUMNS, case_entries.FIELDS)


def _output(run: Run, kept: transcript.Transcript | None, form: str | None, *, alone: bool, times: bool) -> None:
    """Write what is kept. What was left out in the middle is told on stderr, or in its place where people read."""
    if kept is None:
        say(f"run {run.number} has no output on record")
    elif kept.merged and alone:
        say(f"stdout and stderr of run {run.number} were one pipe: this is both")
    if form not in (None, "table"):
        rows = transcript.rows(kept) if kept is not None else ()
        emit(form or "json", rows, (Column(""),), transcript.FIELDS)
    elif kept is not None and times:
        page(transcript.lines(kept))
    elif kept is not None:
        _raw(kept)


def _raw(kept: transcript.Transcript) -> None:
    head, tail = (b"".join(bytes(frame.data) for frame in part) for part in (kept.head, kept.tail))
    missing = transcript.marker(kept)
    if missing and sys.stdout.isatty():
        head += (b"\n" if head and not head.endswith(b"\n") else b"") + f"[{missing}]\n".encode()
    raw([head, tail])
    if missing and not sys.stdout.isatty():
        say(missing)

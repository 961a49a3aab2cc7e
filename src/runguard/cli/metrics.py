"""`metrics`: how jobs stand, for Prometheus' node exporter."""

from __future__ import annotations

import os
import stat

import click

from runguard import clock
from runguard.cli.asking import Place, find, nothing_recorded, open_registered
from runguard.cli.fast import say
from runguard.cli.options import Command, store_option
from runguard.cli.output import page
from runguard.errors import OutputError, StoreError, UsageError
from runguard.report import metrics as text
from runguard.report import whole
from runguard.report.assessment import assessments

TEXT = """Write how each job stands as metrics for Prometheus.

With --output into a file for the textfile collector of the node exporter, which reads names that end in .prom. The file
is replaced as a whole; where that fails, the old one stays.
"""

STATUSES = (
    ("0", "written"),
    ("2", "usage"),
    ("74", "the store cannot be read (the file says so), or the file cannot be written"),
    ("78", "a mistake in the configuration, with its file and line"),
)

_LARGEST_BYTES = 16 << 20


@click.command("metrics", cls=Command, help=TEXT, short_help="Write metrics for Prometheus.", statuses=STATUSES)
@click.option("-o", "--output", metavar="PATH", help="File to replace (default: stdout).")
@store_option
@click.pass_obj
def metrics(environ: dict[str, str], output: str | None, store: str | None) -> int:
    """Write the metrics."""
    if output is not None:
        _check(output)
    now_us = clock.look().wall_us
    place = find(environ, store)
    try:
        _write(output, _read(environ, place, now_us))
    except StoreError:
        _write(output, text.unreadable(_before(output), place.kept.store))
        raise
    return 0


def _read(environ: dict[str, str], place: Place, now_us: int) -> str:
    records = open_registered(environ, place, now_us)
    if records is None:
        say(nothing_recorded(place))
    found = assessments(environ, place.loaded, records, place.kept, now_us)
    return text.exposition(found, place.kept.store, now_us, readable=records is not None)


def _check(output: str) -> None:
    """Refuse what must not be replaced by a file. Raises UsageError."""
    if not output:
        raise UsageError("metrics: --output: is empty")
    try:
        found = os.lstat(output)
    except OSError:
        found = None
    if found is not None and not stat.S_ISREG(found.st_mode):
        what = "a directory" if stat.S_ISDIR(found.st_mode) else "no regular file"
        raise UsageError(f"metrics: --output: {output} is {what}; name the file to replace")
    if not output.endswith(".prom"):
        say(f"metrics: --output: {output} does not end in .prom, so the node exporter will not read it")


def _before(output: str | None) -> str:
    """Return what was written last, or ""."""
    if output is None:
        return ""
    try:
        with open(output, encoding="utf-8", errors="replace") as file:
            return file.read(_LARGEST_BYTES)
    except OSError:
        return ""


def _write(output: str | None, content: str) -> None:
    if output is None:
        page(content.splitlines())
        return
    try:
        whole.write(output, content.encode(), 0o644)
    except OSError as error:
        raise OutputError(f"{output} cannot be written: {error.strerror}") from None

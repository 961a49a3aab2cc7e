"""`item CASE`: adds case entries from shell jobs. `cli/jotting.py` reads its plain form without click."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

import click

from runguard.cli import jotting
from runguard.cli.fast import say
from runguard.cli.options import Command, Word
from runguard.errors import UsageError
from runguard.evidence import entries

TEXT = """Add a case entry to the run that this command belongs to.

Say what is about to be done, do it, and say what came of it:

\b
  runguard item HB-1042 --phase intent --action reminder
  runguard item HB-1042 --phase result --action reminder --result done

With --batch, every line of standard input is an entry in JSON: thousands cost what one does. Those that are none are
named on stderr, and the others added. man runguard-evidence tells the fields.
"""

STATUSES = (
    ("0", "done"),
    ("1", "--batch: lines that are no entries were left out"),
    ("2", "usage, or this is not within a run"),
    ("74", "the entry could not be written: do not touch the case"),
)

_MOST_NAMED = 20  # bad lines


@click.command("item", cls=Command, help=TEXT, short_help="Add case entries from a shell job.", statuses=STATUSES)
@click.argument("case", metavar="CASE", required=False)
@click.option("--phase", type=Word(jotting.PHASES), metavar="|".join(jotting.PHASES), help="What this entry is.")
@click.option("--action", metavar="TEXT", help="What is done to the case, in a word.")
@click.option("--result", type=Word(jotting.RESULTS), metavar="|".join(jotting.RESULTS), help="What came of it.")
@click.option("--key", metavar="TEXT", help="Ties a result to its intent.")
@click.option("--rule", metavar="ID", help="The rule by which it is done.")
@click.option("--reason", metavar="TEXT", help="One sentence that a caseworker can read out.")
@click.option("--field", metavar="NAME=TEXT", multiple=True, help="Any other field; also several.")
@click.option("--batch", is_flag=True, help="Entries from standard input, one JSON object a line.")
@click.pass_obj
def item(environ: dict[str, str], /, batch: bool, **given: Any) -> int:
    """Add the entry, or those of standard input."""
    if not batch:
        if given["case"] is None:
            raise UsageError("item: CASE is missing, or --batch")
        return jotting.append(given, environ)
    if any(given.values()):
        raise UsageError("item: --batch takes its entries from standard input, and nothing else")
    jotting.refuse_outside(environ)
    return _batch(sys.stdin.buffer)


def _batch(stream: BinaryIO) -> int:
    """Add every line that is an entry; return 1 where some were none."""
    bad = 0
    for number, line in _lines(stream):
        try:
            expected = entries.expected(line) if number == 1 else None
            if expected is None:
                entries.judge(line)
        except entries.Rejected as error:
            bad += 1
            if bad <= _MOST_NAMED:
                say(f"item: line {number}: {error}")
            continue
        jotting.write(line, first=expected is not None)
    if bad > _MOST_NAMED:
        say(f"item: {bad - _MOST_NAMED} more lines are no entries")
    return 1 if bad else 0


def _lines(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not empty, each with its number, without its newline; of a long one only a beginning."""
    number = 0
    most = entries.MOST_LINE_BYTES + 2
    while line := stream.readline(most):
        number += 1
        ended = line.endswith(b"\n")
        while not ended and (more := stream.readline(most)):
            ended = more.endswith(b"\n")
        line = line.removesuffix(b"\n")
        if line:
            yield number, line

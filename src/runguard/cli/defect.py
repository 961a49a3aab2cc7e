"""`defect`: a known fault of some code, told from now on with every run of that code."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import click

from runguard import clock, values
from runguard.cli.asking import find
from runguard.cli.options import Command, store_option
from runguard.cli.output import page
from runguard.cli.spans import when
from runguard.cli.targets import Target, reason_of
from runguard.errors import UsageError
from runguard.evidence.retention import in_words
from runguard.guard.writing import writing
from runguard.instant import rfc3339
from runguard.printable import line

TEXT = """Record a known fault of some code: explain tells it with every case that this code has touched.

CODE is the SHA-256 of a program or of a file that it was given (`show` tells them), the id of a git commit, or the path
of a file, whose SHA-256 is taken now. With --since and --until only runs started then had the fault.
"""

STATUSES = (
    ("0", "done"),
    ("2", "usage, or a file that cannot be read"),
    ("74", "the store cannot be read or written"),
    ("78", "a mistake in the configuration, with its file and line"),
)


@click.command("defect", cls=Command, help=TEXT, short_help="Record a known fault of some code.", statuses=STATUSES)
@click.argument("code")
@click.option("--reason", metavar="TEXT", help="What is wrong with it (needed); it is recorded with your login.")
@click.option("--reference", metavar="TEXT", help="Where more is said: a ticket, a report.")
@click.option("--since", metavar="WHEN", help="Only runs started then or later.")
@click.option("--until", metavar="WHEN", help="Only runs started before.")
@store_option
@click.pass_obj
def defect(
    environ: dict[str, str],
    code: str,
    reason: str | None,
    reference: str | None,
    since: str | None,
    until: str | None,
    store: str | None,
) -> int:
    """Record the fault, and say which entry of the ledger tells it."""
    reason = reason_of("defect", reason, "what is wrong with it?")
    now_us = clock.look().wall_us
    place = find(environ, store)
    target = _code(code)
    if since is not None or until is not None:
        since_us = None if since is None else when("defect: --since", since).at_us(now_us)
        until_us = None if until is None else when("defect: --until", until).at_us(now_us)
        if since_us is not None and until_us is not None and since_us >= until_us:
            raise UsageError(f"defect: --since ({rfc3339(since_us)}) is not before --until ({rfc3339(until_us)})")
        ends = {"since": since_us, "until": until_us}
        target |= {name: None if at_us is None else rfc3339(at_us) for name, at_us in ends.items()}
    with writing(environ, place.kept, create=False) as tx:
        fields: dict[str, Any] = {"about": [target], "reference": reference, "reason": reason}
        entry = tx.append("defect", now_us, fields)
    page([line(f"recorded a defect of {in_words(target)}: {reason} (entry {entry.seq})")])
    return 0


def _code(text: str) -> Target:
    """Return what code is meant: by its hash, by its commit, or by a file that holds it now. Raises UsageError."""
    wanted = text.strip().lower()
    if re.fullmatch(r"[0-9a-f]{64}", wanted):
        return {"code": wanted}
    if re.fullmatch(r"[0-9a-f]{40}", wanted):
        return {"commit": wanted}
    try:
        with open(text, "rb") as file:
            return {"code": hashlib.file_digest(file, "sha256").hexdigest()}
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        known = "a SHA-256, the id of a commit, or a file"
        raise UsageError(f"defect: {values.short(text)} is no code: {why} ({known})") from None

"""`run` as click reads it: help, completion and the words for every mistake. `cli/fast.py` reads the rest."""

from __future__ import annotations

from typing import Any

import click

from runguard.cli.options import HELP, Command, run_options
from runguard.settings import Request, request

TEXT = """Run COMMAND for the window that is due, record the run, and end with the command's own status.

Put it in front of a crontab command:

\b
  30 2 * * *  runguard run --job letters --schedule '30 2 * * *' \\
              --timezone Europe/London -- /opt/letters/send --all

While an earlier run of the job lives, nothing starts. Options end at COMMAND or at --. Durations: 90s, 15m, 2h, 1h30m,
7d; a bare number is seconds. Most options can stand in runguard.toml, under [jobs.NAME], with _ for -.
"""

STATUSES = (
    ("N", "the command's own status, whenever it ran; 128+N if signal N ended it"),
    ("0", "also: the window was already answered"),
    ("2", "usage"),
    ("70", "a bug in runguard"),
    ("74", "no trace could be written, or the store failed and the job says on_store_failure = \"refuse\""),
    ("75", "refused: an earlier run lives (--conflict-exit), the window is held, or it is past its deadline"),
    ("78", "a start would be unsafe: lock, store or state directory; nothing was started"),
    ("124", "timed out (137 if it took KILL)"),
    ("125", "the command could not be spawned"),
    ("126", "the command is not executable"),
    ("127", "the command was not found"),
    ("128+N", "also: told to stop by signal N before the command was started"),
)  # fmt: skip


def build() -> click.Command:
    """Return the command `run`."""
    return Command(
        "run",
        params=run_options(),
        callback=_run,
        help=TEXT,
        short_help="Run a command for the window that is due.",
        options_metavar="[OPTIONS] [--]",
        context_settings={**HELP, "allow_interspersed_args": False},
        statuses=STATUSES,
    )


def read(context: click.Context) -> Request:
    """Return the request that click's parser read; equal to that of `cli.fast.read`. Raises UsageError."""
    given = {name: value for name, value in context.params.items() if value is not None and name != "command"}
    return request(given, context.params["command"])


@click.pass_context
def _run(context: click.Context, /, **_: Any) -> int:
    asked = read(context)
    from runguard.guard import flow  # pays for the spawn only where the command line is sound

    return flow.run(asked, context.obj)


run = build()

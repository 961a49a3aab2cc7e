"""`completion`: the script with which a shell completes the words of runguard."""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

from runguard.cli.options import COMPLETION, Command, Word
from runguard.cli.output import page
from runguard.errors import UsageError

TEXT = """Print the script that completes commands, options, their choices, jobs and runs in SHELL: bash, zsh or fish.

For bash, this line in ~/.bashrc: eval "$(runguard completion bash)"
"""

STATUSES = (("0", "done"), ("2", "usage, or a shell that is too old"))


class _Bash(BashComplete):
    """Without a look at which bash is installed: the script is for the one that reads it."""

    @staticmethod
    def _check_version() -> None:
        return


SHELLS: dict[str, type[ShellComplete]] = {"bash": _Bash, "zsh": ZshComplete, "fish": FishComplete}


@click.command("completion", cls=Command, help=TEXT, short_help="Print a shell's completion.", statuses=STATUSES)
@click.argument("shell", type=Word(tuple(SHELLS)), metavar="bash|zsh|fish")
@click.pass_context
def completion(ctx: click.Context, shell: str) -> int:
    """Print it."""
    try:
        source = SHELLS[shell](ctx.find_root().command, {}, "runguard", COMPLETION).source()
    except RuntimeError as error:
        raise UsageError(f"completion: {error}") from None
    page(source.splitlines())
    return 0

"""Click's side of the option table, and the options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from runguard import values
from runguard.settings import QUIET, TABLE, Setting, option_value

if TYPE_CHECKING:
    ParamType = click.ParamType[Any]
else:
    ParamType = click.ParamType  # generic since click 8.4 only

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

FORMATS = ("table", "json", "jsonl", "csv")
COMPLETION = "_RUNGUARD_COMPLETE"  # set by the script that `runguard completion` prints
HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class Command(click.Command):
    """A command whose help ends with its exit statuses."""

    def __init__(self, *args: Any, statuses: Sequence[tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **{"context_settings": HELP, **kwargs})
        self.statuses = statuses

    def format_epilog(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the block EXIT STATUSES."""
        write_statuses(formatter, self.statuses)


class Spelled(ParamType):
    """The values of one setting, judged by the table."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.name = setting.kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> object:
        """Return what the text means, or fail as a usage error."""
        try:
            return option_value(self.setting, value)
        except ValueError as error:
            self.fail(str(error), param, ctx)

    def shell_complete(self, _ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Offer the choices."""
        return [CompletionItem(choice) for choice in self.setting.choices if choice.startswith(incomplete)]


class Number(ParamType):
    """A whole number from `low`."""

    name = "integer"

    def __init__(self, low: int) -> None:
        self.low = low

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number, or fail as a usage error."""
        try:
            return value if isinstance(value, int) else values.integer(value, self.low, 1_000_000_000)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Word(ParamType):
    """One of a few words, with the nearest one in the message."""

    name = "choice"

    def __init__(self, words: Sequence[str]) -> None:
        self.words = words

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the word, or fail as a usage error."""
        try:
            return values.one_of(value, self.words)
        except ValueError as error:
            self.fail(str(error), param, ctx)

    def shell_complete(self, _ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Offer the words."""
        return [CompletionItem(word) for word in self.words if word.startswith(incomplete)]


def run_options() -> list[click.Parameter]:
    """Return the options of `run`, in the order of the table, and its command."""
    parameters: list[click.Parameter] = []
    for setting in TABLE:
        if not setting.is_option:
            continue
        names = [setting.option, setting.name] + ([f"-{setting.short}"] if setting.short else [])
        if setting.kind == "flag":
            parameters.append(click.Option(names, is_flag=True, default=None, help=setting.help))
        else:
            kind = Spelled(setting)
            metavar = setting.metavar or "|".join(setting.choices)
            parameters.append(click.Option(names, type=kind, metavar=metavar, help=setting.help + _default(setting)))
        if setting.name == QUIET[0]:
            names = ["-q", "--quiet", QUIET[0]]
            parameters.append(click.Option(names, flag_value=QUIET[1], help=f"The same as --{QUIET[0]} {QUIET[1]}."))
    parameters.append(click.Argument(["command"], nargs=-1, type=click.UNPROCESSED, metavar="COMMAND [ARGUMENT]..."))
    return parameters


def store_option(command: Decorated) -> Decorated:
    """Add `--store`, which every command takes."""
    return click.option("--store", metavar="URL", help="SQLite file of the records.")(command)


def query_options(command: Decorated) -> Decorated:
    """Add `--format`, `--json` and `--store`, which every query takes."""
    command = click.option("--json", "form", flag_value="json", help="The same as --format json.")(
        store_option(command)
    )
    return click.option(
        "--format", "form", type=Word(FORMATS), metavar="|".join(FORMATS), help="How to print it (default: table)."
    )(command)


def write_statuses(formatter: click.HelpFormatter, statuses: Sequence[tuple[str, str]]) -> None:
    """Write the block EXIT STATUSES."""
    with formatter.section("EXIT STATUSES"):
        formatter.write_dl(list(statuses))


def _default(setting: Setting) -> str:
    """Return the default as a person would type it, where the help does not say it already."""
    if setting.default is None or "default" in setting.help:
        return ""
    shown = f"{setting.default:g}s" if isinstance(setting.default, float) else str(setting.default)
    return f" (default: {shown})"

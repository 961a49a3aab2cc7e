"""The group `runguard`: its commands, and one line for every mistake on the command line."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from importlib import import_module

import click
from click.shell_completion import shell_complete

from runguard import __version__, values
from runguard.cli.options import COMPLETION, HELP, write_statuses
from runguard.errors import RunguardError, UsageError

TEXT = """Put runguard run in front of a crontab command, and every window gets exactly one answer."""

STATUSES = (
    ("N", "run and rerun: the command's own (run -h tells them all)"),
    ("0", "done"),
    (
        "1",
        "missing: there are such windows; catchup: a run failed, or windows are left; check: warning;"
        " verify: something was found; explain, export: the record is damaged; prune: told not to;"
        " item: lines that are no entries;"
        " ping: something is undelivered; lint: there are hazards; doctor: something is wrong",
    ),
    ("2", "usage, or a name that does not exist; check: critical"),
    ("3", "check: unknown"),
    ("70", "a bug in runguard"),
    ("74", "the store cannot be read or written, or a crontab not written"),
    (
        "75",
        "refused: another run, or another catchup, is under way; wrap, unwrap: the crontab was changed meanwhile;"
        " doctor: a run lives",
    ),
    ("78", "a mistake in the configuration, with its file and line"),
)

# In the order of the help. Each is a file of this folder, with a command of that name in it.
NAMES = (
    "run",
    "history",
    "show",
    "windows",
    "missing",
    "status",
    "check",
    "next",
    "explain",
    "verify",
    "export",
    "hold",
    "release",
    "redact",
    "prune",
    "correct",
    "defect",
    "waive",
    "retire",
    "catchup",
    "rerun",
    "item",
    "ping",
    "metrics",
    "lint",
    "wrap",
    "unwrap",
    "doctor",
    "completion",
)


class Group(click.Group):
    """The group, with the nearest command in its message and its exit statuses at the end of its help."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that `args` names. Raises UsageError with the nearest one."""
        if args and args[0] not in self.commands:
            near = values.meant(args[0], self.commands)
            raise UsageError(f"no such command: {values.short(args[0])}{near or ' (runguard -h lists them)'}")
        return super().resolve_command(ctx, args)

    def format_epilog(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the block EXIT STATUSES."""
        write_statuses(formatter, STATUSES)


def call(arguments: Sequence[str], environ: dict[str, str]) -> int:
    """Do what the command line says and return the exit status. Raises RunguardError."""
    if arguments[:1] == ["check"]:
        from runguard.cli.check import in_a_monitors_words

        return in_a_monitors_words(lambda: _call(arguments, environ))
    return _call(arguments, environ)


def _call(arguments: Sequence[str], environ: dict[str, str]) -> int:
    if COMPLETION in environ:
        return _complete(environ)
    known = arguments[:1] and arguments[0] in NAMES
    group = build((arguments[0],) if known else NAMES)  # to load all the others would double its time
    if not arguments:
        raise UsageError("no command is given (runguard -h lists them)")
    try:
        with group.make_context("runguard", list(arguments), obj=environ) as context:
            answer = group.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except BrokenPipeError:
        return 0  # whoever read our stdout has had enough
    except UsageError as error:
        raise _named(error, arguments[0], NAMES) from None
    except click.ClickException as error:
        raise UsageError(_sentence(error, arguments)) from None
    return answer if isinstance(answer, int) else 0


def _complete(environ: dict[str, str]) -> int:
    """Answer a shell that asks for words, or for the script that asks."""
    from runguard.cli import completing

    words = environ.get("COMP_WORDS", "").split()
    group = build((words[1],) if len(words) > 2 and words[1] in NAMES else NAMES)
    completing.attach(group)
    try:
        return shell_complete(group, {"obj": environ}, "runguard", COMPLETION, environ[COMPLETION])
    except (RunguardError, click.ClickException, ValueError):
        return 0  # a line that means nothing yet: nobody at a prompt wants to hear why


def build(names: Sequence[str] = NAMES) -> click.Group:
    """Return the group with these of its commands."""
    group = Group("runguard", help=TEXT, context_settings=HELP, no_args_is_help=False)
    click.version_option(__version__, prog_name="runguard", message="%(prog)s %(version)s")(group)
    for name in names:
        module = import_module(f"runguard.cli.{name}")
        group.add_command(getattr(module, name, None) or getattr(module, f"{name}_"))  # `next` is Python's own
    return group


def _named(error: UsageError, command: str, known: Collection[str]) -> UsageError:
    """Return the error with the command in front, unless it is there; `run` speaks as its job."""
    speaks = type(error) is UsageError and command in known and command != "run"
    return UsageError(f"{command}: {error}") if speaks and str(error).partition(":")[0] not in known else error


def _sentence(error: click.ClickException, arguments: Sequence[str]) -> str:
    """Return click's complaint as one line that begins with the command and the option."""
    context = getattr(error, "ctx", None)
    first = arguments[0]
    name = "" if first.startswith("-") else f"{first}: "
    match error:
        case click.NoSuchOption():
            known = [option for each in context.command.get_params(context) for option in each.opts] if context else []
            near = values.meant(error.option_name, [option for option in known if option.startswith("--")])
            if (
                context
                and error.option_name in ("--job", "-j")
                and any(each.name in ("job", "jobs") for each in context.command.params)
            ):
                near = f" (JOB stands by itself: runguard {first} JOB)"
            return f"{name}no such option: {error.option_name}{near}"
        case click.BadOptionUsage():
            why = "takes no value" if "does not take" in error.message else "a value is missing"
            return f"{name}{error.option_name}: {why}"
        case click.MissingParameter() if error.param is not None and context is not None:
            return f"{name}{error.param.make_metavar(context)} is missing"
        case click.BadParameter() if error.param is not None:
            option = error.param.param_type_name == "option"
            return f"{name}{_typed(error.param, arguments) if option else error.param.name}: {error.message}"
    return name + _lower(error.format_message())


def _typed(option: click.Parameter, arguments: Sequence[str]) -> str:
    """Return the name of an option that was typed; of several its long one."""
    typed = [name for name in option.opts if _begins(name, arguments)]
    return max(typed or option.opts, key=len)


def _begins(name: str, arguments: Sequence[str]) -> bool:
    if name.startswith("--"):
        return any(each.partition("=")[0] == name for each in arguments)
    return any(each.startswith(name) for each in arguments)


def _lower(message: str) -> str:
    """Return click's sentence as the rest of one of ours."""
    text = " ".join(message.split()).removesuffix(".")
    return text[:1].lower() + text[1:]

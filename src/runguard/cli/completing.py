"""What a shell is offered where the record knows the words: jobs, runs. Quickly and silently: no error, and no write.

Loaded only where a shell asks. Options, commands and choices are click's own matter.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping

import click
from click.shell_completion import CompletionItem

from runguard import config, paths, values, zones
from runguard.paths import Places
from runguard.report.standing import known
from runguard.store import examining
from runguard.store.database import ReadOnlyStore
from runguard.store.sqlite import open_reader

Offer = Callable[[click.Context], Iterator[tuple[str, str]]]  # words, each with what it means

_RUNS = 100  # the newest
_WAIT_S = 0.2  # for a store that is being written: nobody waits longer for a word
_FILES = ("FILE", "PATH", "URL", "DIRECTORY")


def attach(group: click.Group) -> None:
    """Let the parameters of every command offer what the record knows."""
    for command in group.commands.values():
        for each in command.params:
            offer = _offer_of(each)
            if offer is not None:
                setattr(each, "shell_complete", _completer(offer))  # noqa: B010 - click's own method gives way
            elif each.name == "command" or each.metavar in _FILES or each.name in ("file", "store"):
                setattr(each, "shell_complete", _files)  # noqa: B010


def _offer_of(parameter: click.Parameter) -> Offer | None:
    match parameter.name:
        case "job" | "jobs":
            return _jobs
        case "window":
            return _jobs if isinstance(parameter, click.Argument) else None
        case "run":
            return _runs
        case "what":
            return lambda ctx: iter([*_runs(ctx), *_jobs(ctx)])
        case "timezone":
            return _zones
    return None


def _completer(offer: Offer) -> Callable[[click.Context, str], list[CompletionItem]]:
    def complete(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        try:
            return [CompletionItem(word, help=help) for word, help in offer(ctx) if word.startswith(incomplete)]
        except Exception:  # noqa: BLE001 - nobody at a prompt wants to hear why
            return []

    return complete


def _files(_ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="file")]


def _jobs(ctx: click.Context) -> Iterator[tuple[str, str]]:
    environ: Mapping[str, str] = ctx.obj
    loaded = config.load(environ, None)
    for name in known(loaded, _records(ctx)):
        if _is_job(name):
            yield name, "job"


def _is_job(name: str) -> bool:
    """Tell whether a name may be one: any text can stand in the configuration, and a shell would take it as it is."""
    try:
        return bool(values.job_name(name))
    except ValueError:
        return False


def _runs(ctx: click.Context) -> Iterator[tuple[str, str]]:
    records = _records(ctx)
    for run in records.history(limit=_RUNS) if records else ():
        yield str(run.number), f"{run.job} {run.label or ''} {run.outcome}"


def _zones(_ctx: click.Context) -> Iterator[tuple[str, str]]:
    return ((name, "") for name in zones.known())


def _records(ctx: click.Context) -> ReadOnlyStore | None:
    """Return the records for reading, unless a write in them waits to be undone: that would be one, too."""
    store = _places(ctx).store
    if not os.path.exists(store) or examining.interrupted(store):
        return None
    return open_reader(store, wait_s=_WAIT_S)


def _places(ctx: click.Context) -> Places:
    environ: Mapping[str, str] = ctx.obj
    named = ctx.params.get("store")
    given = {"store": named} if isinstance(named, str) else {}
    settings, _ = config.effective(given, environ, config.load(environ, None), "")
    return paths.places(paths.state_directory(environ), settings.store)

"""Which command `rerun` and `catchup` run: the one that is given, the job's own, or the recorded one."""

from __future__ import annotations

import os
import shlex
from typing import Any, NamedTuple

from runguard.errors import UsageError
from runguard.settings import Settings
from runguard.store.database import ReadOnlyStore
from runguard.store.reads import Run


class Chosen(NamedTuple):
    """A command, where it runs, and the options that go with it."""

    argv: tuple[str, ...]
    given: dict[str, Any]  # values of settings: shell
    directory: str | None  # None: where we are
    origin: str  # where it comes from, for a person

    def __str__(self) -> str:
        """Return the command as a person would type it, with its origin and directory."""
        words = self.argv[0] if self.given.get("shell") else shlex.join(self.argv)
        return f"{words} ({self.origin}{f', in {self.directory}' if self.directory else ''})"

    def enter(self) -> None:
        """Go to the command's directory. Raises UsageError."""
        if self.directory is not None:
            try:
                os.chdir(self.directory)
            except OSError as error:
                raise UsageError(
                    f"the recorded directory {self.directory!r}: {error.strerror}; use -- COMMAND"
                ) from None


def command_for(
    records: ReadOnlyStore, settings: Settings, job: str, given: tuple[str, ...], run: Run | None = None
) -> Chosen:
    """Return the command of `job`: `given`, else the key `command` of its configuration, else what was recorded.

    That is what `run` ran, or, where none is meant, the last run that its schedule started: a stand-in that a person
    gave once is not the job. Raises UsageError where there is none, or where what was recorded had secrets masked.
    """
    if given:
        return Chosen(given, {}, None, "as given")
    own = settings.command
    if own is not None:
        shell = {"shell": True} if isinstance(own, str) else {}
        return Chosen((own,) if isinstance(own, str) else own, shell, None, f"key jobs.{job}.command")
    run = run or _last_scheduled(records, job)
    if run is None:
        raise UsageError(f"{job} has no command on record: give it after --, or as the key jobs.{job}.command")
    told = records.entries(run.run_id)[0]
    if told["masked"]:
        message = f"the command of run {run.number} had secrets that are not on record: give it after --"
        raise UsageError(message)
    return Chosen(
        tuple(told["argv"]), {"shell": True} if told["shell"] else {}, told["cwd"] or None, f"of run {run.number}"
    )


def _last_scheduled(records: ReadOnlyStore, job: str) -> Run | None:
    """Return the job's last run by its schedule, else its last run."""
    last = None
    for run in records.history(job):
        if run.outcome == "refused":
            continue
        if run.trigger == "schedule":
            return run
        last = last or run
    return last

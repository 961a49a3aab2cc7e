"""Which command `rerun` and `catchup` run: the one that is given, the job's own, or the recorded one."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from runguard.errors import UsageError
from runguard.settings import Settings
from runguard.store.database import ReadOnlyStore


class Chosen(NamedTuple):
    """A command, where it runs, and the options that go with it."""

    argv: tuple[str, ...]
    given: dict[str, Any]  # values of settings: shell
    directory: str | None  # None: where we are

    def enter(self) -> None:
        """Go to the command's directory. Raises UsageError."""
        if self.directory is not None:
            try:
                os.chdir(self.directory)
            except OSError as error:
                raise UsageError(
                    f"the recorded directory {self.directory!r}: {error.strerror}; use -- COMMAND"
                ) from None


def command_for(records: ReadOnlyStore, settings: Settings, job: str, given: tuple[str, ...]) -> Chosen:
    """Return the command of `job`: `given`, else the key `command` of its configuration, else as last recorded.

    Raises UsageError where there is none, or where what was recorded had secrets masked.
    """
    if given:
        return Chosen(given, {}, None)
    own = settings.command
    if own is not None:
        return Chosen((own,), {"shell": True}, None) if isinstance(own, str) else Chosen(own, {}, None)
    run = next((run for run in records.history(job) if run.outcome != "refused"), None)
    if run is None:
        raise UsageError(f"{job} has no command on record: give it after --, or as the key jobs.{job}.command")
    told = records.entries(run.run_id)[0]
    if told["masked"]:
        message = f"the command of run {run.number} had secrets that are not on record: give it after --"
        raise UsageError(message)
    return Chosen(tuple(told["argv"]), {"shell": True} if told["shell"] else {}, told["cwd"] or None)

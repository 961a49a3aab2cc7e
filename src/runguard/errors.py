"""Every error that runguard raises on purpose.

    RunguardError               the message is one line; `status` is what the process exits with
    ├── UsageError          2   the command line, or a name that does not exist
    ├── ConfigError        78   a configuration file, with its line
    ├── UnsafeError        78   starting would be unsafe: lock, store or overlap settings (R of the manual)
    ├── NoTraceError       74   neither the store nor the journal can be written
    ├── StoreError         74   the store cannot be read or written; `run` falls back to the journal
    │   └── NothingRecordedError   there is no store yet
    ├── OutputError        74   our own stdout cannot be written
    ├── RefusedError       75   what was asked must not be done while something else is under way
    ├── CrontabError        2   a crontab cannot be read or taken apart; 74 not written; 75 changed meanwhile
    ├── SpawnError    125-127   the command could not be started
    ├── ScheduleError       2   text that is no schedule, with field and position; `run` goes on without a window
    └── ZoneError           2   a time zone that is not known here; `run` goes on without a window

Anything else that escapes is a bug: its traceback is kept and the process exits with 70.
"""

from __future__ import annotations

import errno
import os


class RunguardError(Exception):
    """Base of the tree: `str(error)` is one line for the person at the terminal."""

    status = 70


class UsageError(RunguardError):
    """The command line is wrong, or names something that does not exist."""

    status = 2


class ConfigError(RunguardError):
    """A configuration file is wrong at `path`, `line` (None where the file as a whole is)."""

    status = 78

    def __init__(self, message: str, *, path: str = "", line: int | None = None) -> None:
        super().__init__(message)
        self.path = path
        self.line = line


class UnsafeError(RunguardError):
    """Starting the command would be unsafe, so nothing was started."""

    status = 78


class NoTraceError(RunguardError):
    """No record of a run could be written anywhere, so nothing was started."""

    status = 74


class StoreError(RunguardError):
    """The store at `path` cannot be used: `why` says how."""

    status = 74

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"store {path}: {why}")
        self.path = path
        self.why = why


class NothingRecordedError(StoreError):
    """There is no store at `path` yet, and none is known to have been there."""


class OutputError(RunguardError):
    """Our stdout cannot be written, and not because its reader has gone."""

    status = 74


class CrontabError(RunguardError):
    """A crontab cannot be read or taken apart (2), cannot be written (74), or was changed meanwhile (75)."""

    def __init__(self, message: str, status: int = 2) -> None:
        super().__init__(message)
        self.status = status


class RefusedError(RunguardError):
    """What was asked must not be done while something else is under way."""

    status = 75


class SpawnError(RunguardError):
    """The command could not be started; `status` is 125 (spawn), 126 (not executable) or 127 (not found)."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class ScheduleError(RunguardError):
    """`text` is no schedule: `field` is its name or "", `position` the 1-based column in `text`, or 0."""

    status = 2

    def __init__(self, text: str, why: str, *, field: str = "", position: int = 0) -> None:
        place = f", {field}" if field else ""
        column = f", column {position}" if position else ""
        super().__init__(f"schedule {text!r}{place}{column}: {why}")
        self.text = text
        self.why = why
        self.field = field
        self.position = position


class ZoneError(RunguardError):
    """`zone` is not a time zone that this host knows."""

    status = 2

    def __init__(self, zone: str, why: str) -> None:
        super().__init__(f"time zone {zone!r}: {why}")
        self.zone = zone
        self.why = why


def reason(error: Exception) -> str:
    """Return what an error of the system or of Python says, naming the limit that was met."""
    if isinstance(error, MemoryError):
        return "out of memory (see ulimit -v)"
    said = getattr(error, "strerror", None) or str(error)
    if isinstance(error, OSError) and error.errno == errno.EMFILE:
        return f"{said} (ulimit -n allows {os.sysconf('SC_OPEN_MAX')})"
    return said

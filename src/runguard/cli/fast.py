"""The process: reads `run` with the standard library, hands everything else to click, ends with a status.

The only place that reads the environment, maps an error to its status, and ends the process.
"""

from __future__ import annotations

import gc
import os
import sys

from runguard.errors import RunguardError
from runguard.guard import outlet
from runguard.guard.descriptors import open_missing_stdio
from runguard.settings import BY_NAME, QUIET, TABLE, Request, Setting, option_value, request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

BUG = 70
INTERRUPTED = 130
CANNOT_WRITE = 74

UNKNOWN = Setting("", "", "")
_LONG = {setting.option: setting for setting in TABLE if setting.is_option}
_SHORT = {setting.short: setting for setting in TABLE if setting.short}


def main() -> NoReturn:
    """Do what the command line says and end the process."""
    open_missing_stdio()
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w")  # it was closed: /dev/null now
    status = answer(sys.argv[1:], dict(os.environ))
    os._exit(flushed(status))  # nothing is left to close; an orderly end would cost 3.5 ms


def answer(arguments: Sequence[str], environ: dict[str, str]) -> int:
    """Return the exit status. An error becomes one line on stderr; a bug keeps its traceback."""
    try:
        asked = read(arguments[1:]) if arguments[:1] == ["run"] else None
        if asked is not None:
            gc.disable()  # what a start makes is no garbage; guard.execution enables it
            from runguard.guard import flow

            return flow.run(asked, environ)
        if arguments[:1] == ["item"]:
            from runguard.cli import jotting

            given = jotting.read(arguments[1:])
            if given is not None:
                return jotting.append(given, environ)
        from runguard.cli import commands

        return commands.call(arguments, environ)
    except RunguardError as error:
        say(str(error))
        return error.status
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception:  # noqa: BLE001 - whatever escapes is a bug, and is told as one
        sys.excepthook(*sys.exc_info())
        return BUG


def read(arguments: Sequence[str]) -> Request | None:
    """Return what the arguments after `run` ask for, or None where click has to look: help, or any mistake."""
    texts: dict[str, str] = {}  # setting name → its last text
    at = 0
    while at < len(arguments) and len(arguments[at]) > 1 and arguments[at][0] == "-":
        word = arguments[at]
        at += 1
        if word == "--":
            break
        setting = _long(word, texts) if word.startswith("--") else _bundle(word, texts)
        if setting is UNKNOWN:
            return None
        if setting is not None:  # its text is the next word
            if at == len(arguments):
                return None
            texts[setting.name] = arguments[at]
            at += 1
    try:
        given = {name: _value(BY_NAME[name], text) for name, text in texts.items()}
        return request(given, arguments[at:])
    except (ValueError, RunguardError):
        return None


def say(text: str) -> None:
    """Write one line to stderr, whatever `text` holds."""
    from runguard import printable  # only where something is wrong

    outlet.say(f"runguard: {printable.line(text)}\n")


def flushed(status: int) -> int:
    """Flush stdout and return the status; a reader that has gone is no fault, a full disk is one."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return status
    except OSError as error:
        if status == 0:
            say(f"stdout cannot be written: {error.strerror}")
        return status or CANNOT_WRITE
    return status


def _long(word: str, texts: dict[str, str]) -> Setting | None:
    """Read `--name=text` or a flag into `texts`; return the setting whose text is the next word, or UNKNOWN."""
    name, equals, text = word.partition("=")
    setting = _LONG.get(name, UNKNOWN)
    if name == "--quiet" and not equals:
        texts[QUIET[0]] = QUIET[1]
        return None
    if setting is UNKNOWN or (setting.kind == "flag" and equals):
        return UNKNOWN
    if setting.kind != "flag" and not equals:
        return setting
    texts[setting.name] = text
    return None


def _bundle(word: str, texts: dict[str, str]) -> Setting | None:
    """Read `-qcjNAME`: flags, then perhaps one option with the rest of the word, or the next word, as its text."""
    for at, letter in enumerate(word[1:], 2):
        if letter == "q":
            texts[QUIET[0]] = QUIET[1]
            continue
        setting = _SHORT.get(letter, UNKNOWN)
        if setting is UNKNOWN or (setting.kind != "flag" and at == len(word)):
            return setting
        texts[setting.name] = word[at:]
        if setting.kind != "flag":
            return None
    return None


def _value(setting: Setting, text: str) -> object:
    return True if setting.kind == "flag" else option_value(setting, text)

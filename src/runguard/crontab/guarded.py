"""Read a line that runguard guards already: its options, and where what it guards begins."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import NamedTuple

from runguard import values
from runguard.crontab import words
from runguard.crontab.parse import shown
from runguard.crontab.words import Word
from runguard.settings import QUIET, TABLE, Setting

_MENTIONED = re.compile(rb"(?:^|[\s/;&|(])runguard['\"]?\s+['\"]?run(?:\s|$)")
_OURS = re.compile(rb"[A-Za-z0-9_./+-]*/runguard\s|runguard\s")
_LONG = {setting.option.encode(): setting for setting in TABLE if setting.is_option}
_SHORT = {setting.short.encode(): setting for setting in TABLE if setting.short}


class Guarded(NamedTuple):
    """What stands between `runguard run` and the command. Offsets are those of the line's command."""

    options: Mapping[str, str | None]  # setting name → text; None where the shell has to expand it
    at: int  # where what is guarded begins; with `shell`, its one word
    shell: bool  # -c
    job: str | None  # its name, given or from the command; None where neither can be read


class Unreadable(ValueError):
    """A line names `runguard run`, but not in a way that can be taken apart."""


def mentioned(command: bytes) -> bool:
    """Tell whether `runguard run` stands anywhere in a command."""
    return bool(_MENTIONED.search(command))


def ours(command: bytes) -> bool:
    """Tell whether a command needs no guard: it has one, or is one of runguard's own commands."""
    return mentioned(command) or bool(_OURS.match(command))


@functools.lru_cache(maxsize=1024)
def read(command: bytes) -> Guarded | None:
    """Return how a command is guarded, None where nothing in it is. Raises Unreadable."""
    if not mentioned(command):
        return None
    try:
        found = words.split(command)
    except words.Unclosed as error:
        raise Unreadable(str(error)) from None
    at = _after_run(found)
    options: dict[str, str | None] = {}
    while at < len(found) and not found[at].operator and found[at].raw.startswith(b"-") and found[at].raw != b"-":
        word = found[at]
        at += 1
        if word.raw == b"--":
            break
        setting = _option(word, options)
        if setting is not None:  # its text is the next word
            if at == len(found) or found[at].operator:
                raise Unreadable(f"the value of {_shown(word)} is missing")
            options[setting.name] = _text(found[at])
            at += 1
    if at == len(found) or found[at].operator:
        raise Unreadable("it names no command")
    shell = "shell" in options
    return Guarded(options, found[at].start, shell, _job(options, found[at:], shell))


def _after_run(found: list[Word]) -> int:
    """Return the index of the first word after `runguard run`, where the line begins with it."""
    texts = [word.text for word in found[:2]]
    if len(texts) == 2 and texts[1] == b"run" and texts[0] and texts[0].rpartition(b"/")[2] == b"runguard":
        return 2
    raise Unreadable("it does not begin with runguard run")


def _option(word: Word, options: dict[str, str | None]) -> Setting | None:
    """Take an option into `options`; return the setting whose text is the next word, or None. Raises Unreadable."""
    if not word.raw.startswith(b"--"):
        return _bundle(word, options)
    name, equals, _ = word.raw.partition(b"=")
    if name == b"--quiet" and not equals:
        options[QUIET[0]] = QUIET[1]
        return None
    setting = _LONG.get(name)
    if setting is None or (setting.kind == "flag" and equals):
        raise Unreadable(f"{_shown(word)} is no option of run")
    if setting.kind != "flag" and not equals:
        return setting
    whole = _text(word)
    options[setting.name] = whole if whole is None else whole.partition("=")[2]
    return None


def _bundle(word: Word, options: dict[str, str | None]) -> Setting | None:
    text = word.text or b"-"
    for at in range(1, len(text)):
        letter = text[at : at + 1]
        if letter == b"q":
            options[QUIET[0]] = QUIET[1]
            continue
        setting = _SHORT.get(letter)
        if setting is None:
            break
        if setting.kind == "flag":
            options[setting.name] = ""
            continue
        if at == len(text) - 1:
            return setting
        options[setting.name] = text[at + 1 :].decode("utf-8", "surrogateescape")
        return None
    else:
        if len(text) > 1:
            return None
    raise Unreadable(f"{_shown(word)} is no option of run")


def _job(options: Mapping[str, str | None], rest: list[Word], shell: bool) -> str | None:
    if "job" in options:
        return options["job"]
    text = _text(rest[0])
    try:
        return None if text is None else values.job_name_of([text], shell=shell)
    except ValueError:
        return None


def _text(word: Word) -> str | None:
    """Return what a word means; a backslash that cron takes from a % is gone."""
    return None if word.text is None else word.text.replace(b"\\%", b"%").decode("utf-8", "surrogateescape")


def _shown(word: Word) -> str:
    return shown(word.raw)

"""Read a line that runguard guards already: its options, and where what it guards begins."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from runguard import values
from runguard.crontab import words
from runguard.crontab.parse import shown
from runguard.crontab.words import Word
from runguard.settings import QUIET, TABLE, Setting

_MENTIONED = re.compile(rb"(?:^|[\s/;&|('\"`])runguard['\"]?\s+['\"]?run(?:['\"\s]|$)")
_COMMAND_OPTION = re.compile(rb"-[a-z]*c")
_OURS = re.compile(rb"[A-Za-z0-9_./+-]*/runguard\s|runguard\s")
_LONG = {setting.option.encode(): setting for setting in TABLE if setting.is_option}
_SHORT = {setting.short.encode(): setting for setting in TABLE if setting.short}


# Programs that are told of `runguard run`, and start nothing.
_HEARSAY = (b"echo", b"printf", b"logger", b"grep", b"egrep", b"pgrep", b"pkill", b"[", b"test")


class Guarded(NamedTuple):
    """What stands between `runguard run` and the command. Offsets are those of the line's command."""

    start: int  # where `runguard` stands: 0, but behind `nice`, `cd /x &&`, `A=b`
    options: Mapping[str, str | None]  # setting name → text; None where the shell has to expand it
    at: int  # where what is guarded begins; with `shell`, its one word
    shell: bool  # -c
    job: str | None  # its name, given or from the command; None where neither can be read


NOT_FIRST = "it does not begin with runguard run"


class Unreadable(ValueError):
    """A line names `runguard run`, but not in a way that can be taken apart."""


def mentioned(command: bytes) -> bool:
    """Tell whether a command calls `runguard run`, itself or in a string for another shell."""
    if b"runguard" not in command:
        return False
    try:
        found = words.split(command)
    except words.Unclosed:
        return bool(_MENTIONED.search(command))
    return _called(found) is not None or any(map(_is_told_to, [None, *found], found))


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
    called = _called(found)
    if called is None:
        raise Unreadable(NOT_FIRST)
    at = called + 2
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
    return Guarded(found[called].start, options, found[at].start, shell, _job(options, found[at:], shell))


def _called(found: list[Word]) -> int | None:
    """Return the index of `runguard` in the words of a command that calls `runguard run`."""
    place = {word.start: index for index, word in enumerate(found)}
    for simple in words.simple_commands(found):
        if simple[0].text in _HEARSAY:
            continue
        for word, following in pairwise(simple):
            if following.text == b"run" and (word.text or b"").rpartition(b"/")[2] == b"runguard":
                return place[word.start]
    return None


def _is_told_to(option: Word | None, word: Word) -> bool:
    """Tell whether a word is a command for another shell (`sh -c '…'`, `$(…)`) that calls `runguard run`."""
    if word.text is None:
        return bool(_MENTIONED.search(word.raw))
    return option is not None and bool(_COMMAND_OPTION.fullmatch(option.raw)) and mentioned(word.text)


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

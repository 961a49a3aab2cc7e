"""Read a crontab as Vixie's cron reads it: bytes in, records out.

Nothing is judged and nothing is lost: joined, the lines are the file, whatever bytes it holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

# As C's isspace has it, which `\s` of bytes is too.
_VARIABLE = re.compile(
    rb"""(?:'(?P<single>[^'=]*)'|"(?P<double>[^"=]*)"|(?P<bare>(?!['"])[^\s=]*))\s*=\s*"""
    rb"""(?:'(?P<quoted>[^']*)'\s*|"(?P<doubled>[^"]*)"\s*|(?P<plain>[^'"\s].*))\Z""",
    re.DOTALL,
)
_SCHEDULE = re.compile(rb"[ \t]*-?(?P<schedule>@[^ \t]*|[^ \t@][^ \t]*(?:[ \t]+[^ \t]+){4})[ \t]*")
_USER = re.compile(rb"(?P<user>[^ \t]+)[ \t](?P<gap>[ \t]*)")
_COMMAND = re.compile(rb"(?:[^\\%]+|\\.|\\\Z)*", re.DOTALL)  # up to the first % without a backslash before it

_SHOWN = 60  # characters
_FEW = "a line is five fields or an @name, and a command"
_FEW_OF_SYSTEM = "a line of this table is five fields or an @name, a user, and a command"


class Line(NamedTuple):
    """One line of a table. Of a job, `head + command + stdin + end` is `raw`."""

    number: int  # from 1
    raw: bytes  # as it stands, with its newline where it has one
    kind: str  # blank | comment | variable | job | broken
    name: bytes = b""  # of a variable
    value: bytes = b""  # of a variable, as cron takes it: quotes and outer blanks removed
    schedule: bytes = b""  # as it stands: the first field to the last, or an @name
    user: bytes = b""  # of a table that has users
    command: bytes = b""  # as it stands, up to the first unescaped %
    stdin: bytes = b""  # from that % on
    counted: int = 0  # bytes that cron counts as the command: blanks after the user, and stdin, among them
    why: str = ""  # of a broken line: what is wrong with it

    @property
    def end(self) -> bytes:
        """The newline, or nothing at the end of a file without one."""
        return b"\n" if self.raw.endswith(b"\n") else b""

    @property
    def head(self) -> bytes:
        """What stands before the command."""
        return self.raw[: len(self.raw) - len(self.end) - len(self.stdin) - len(self.command)]

    @property
    def unlogged(self) -> bool:
        """Whether a - stands in front of a job's schedule: cronie then does not log its starts; others read no such."""
        return self.kind == "job" and self.raw.lstrip(b" \t").startswith(b"-")

    @property
    def text(self) -> bytes:
        """The line without its newline."""
        return self.raw.removesuffix(b"\n")

    @property
    def returns(self) -> bool:
        """Whether it ends in a carriage return, which cron takes for a part of the command or value."""
        return self.text.endswith(b"\r")


def parse(data: bytes, *, system: bool = False, percent: bool = True) -> list[Line]:
    """Return the lines of a table in order. `system`: each job names its user, as in /etc/crontab and /etc/cron.d.

    Without `percent` a % is a character like any other, as BusyBox has it.
    """
    return [_line(number, raw, system, percent) for number, raw in enumerate(_split(data), 1)]


def join(lines: list[Line]) -> bytes:
    """Return the file that the lines were read from."""
    return b"".join(line.raw for line in lines)


def unescaped(command: bytes) -> bytes:
    """Return what the shell is given for a command as it stands in a table, where `\\%` is a plain %.

    Debian's cron makes one of two backslashes as well, which no other does; that is a hazard and not done here.
    """
    return re.sub(rb"\\(.)", lambda pair: b"%" if pair[1] == b"%" else pair[0], command, flags=re.DOTALL)


def shown(text: bytes) -> str:
    """Return bytes of a table as a message repeats them: cut, not yet safe for a terminal."""
    whole = text.strip(b" \t").decode("utf-8", "surrogateescape")
    return whole if len(whole) <= _SHOWN else whole[: _SHOWN - 1] + "…"


def _split(data: bytes) -> list[bytes]:
    pieces = data.split(b"\n")
    last = pieces.pop()
    return [piece + b"\n" for piece in pieces] + ([last] if last else [])


def _line(number: int, raw: bytes, system: bool, percent: bool) -> Line:
    text = raw.removesuffix(b"\n")
    shown = text.lstrip(b" \t")
    if not shown:
        return Line(number, raw, "blank")
    if shown.startswith(b"#"):
        return Line(number, raw, "comment")
    if b"\0" in text:
        return Line(number, raw, "broken", why="it holds a NUL byte")
    if not shown.strip(b"\r"):
        return Line(number, raw, "broken", why="it holds a carriage return, and nothing else")
    variable = _VARIABLE.match(shown)
    if variable:
        return _variable(number, raw, variable)
    return _job(number, raw, text, system, percent)


def _variable(number: int, raw: bytes, found: re.Match[bytes]) -> Line:
    name = next(each for each in (found["single"], found["double"], found["bare"]) if each is not None)
    plain = found["plain"]
    value = plain.rstrip() if plain is not None else found["quoted"] or found["doubled"] or b""
    if len(value) >= 2 and value[:1] in (b"'", b'"') and value[-1:] == value[:1]:
        value = value[1:-1]  # a second pair, inside the first
    return Line(number, raw, "variable", name=name, value=value)


def _job(number: int, raw: bytes, text: bytes, system: bool, percent: bool) -> Line:
    few = _FEW_OF_SYSTEM if system else _FEW
    found = _SCHEDULE.match(text)
    if not found:
        return Line(number, raw, "broken", why=few)
    schedule, start, counted_from, user = found["schedule"], found.end(), found.end(), b""
    if system:
        named = _USER.match(text, start)
        if not named:
            return Line(number, raw, "broken", schedule=schedule, why=few)
        user, start, counted_from = named["user"], named.end(), named.start("gap")
    command = text[start:]
    part = _COMMAND.match(command)
    assert part
    cut = part.end() if percent else len(command)
    if percent and not system and command.startswith(b"*"):
        return Line(number, raw, "broken", schedule=schedule, why="a sixth field, or a command that begins with *")
    if not command[:cut].strip(b" \t\r"):
        return Line(number, raw, "broken", schedule=schedule, user=user, why=f"it has no command: {few}")
    return Line(
        number, raw, "job", schedule=schedule, user=user, command=command[:cut], stdin=command[cut:],
        counted=len(text) - counted_from,
    )  # fmt: skip


def names_users(data: bytes, is_account: Callable[[str], bool]) -> bool:
    """Tell whether every job of a table names an account before its command, and one of them root: a system table.

    Other accounts are not enough: `mail`, `sync` and `man` are commands as well.
    """
    first = [line.command.split(None, 1) for line in parse(data) if line.kind == "job"]
    users = {words[0] for words in first}
    return (
        b"root" in users
        and all(len(words) == 2 for words in first)
        and all(is_account(user.decode("utf-8", "replace")) for user in users)
    )

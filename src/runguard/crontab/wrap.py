"""Put runguard in front of the lines of a table, and take it off again: pure, line by line, to the byte.

A simple command is prefixed as it stands. One that needs a shell goes into single quotes, up to the first unescaped %,
so that the shell that cron starts hands it on as it was. What cron does to backslashes before either is the same.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from runguard import values
from runguard.crontab import daemons, guarded, names, parse
from runguard.crontab.daemons import Daemon
from runguard.crontab.hazards import HAZARDS
from runguard.crontab.parse import Line, shown, unescaped
from runguard.crontab.words import BOURNE, BUILTINS, Unclosed, split
from runguard.errors import ScheduleError
from runguard.schedule import cron

SH = b"/bin/sh"

# Nothing possessive here: re of Python before 3.11.5 mismatches such groups (its issue 106052).
_PIECE = rb"[A-Za-z0-9_./:,@+=%^\x80-\xff-]|\\%"
_SIMPLE = re.compile(
    rb"(?P<program>[A-Za-z0-9_./:,@+^\x80-\xff-]+)"  # bash takes %x for a job of its own
    rb"(?:[ \t]+(?!=)(?:" + _PIECE + rb"|'[^'\x00-\x08\x0a-\x1f\x7f]*'|\"(?:[^\"$`\\\x00-\x08\x0a-\x1f\x7f]|\\%)*\")+)*"
    rb"[ \t]*"
)
_QUOTED = re.compile(rb"(?:'[^']*'|\\')+")
_MARK = re.compile(rb"[ \t]*#[ \t]*runguard:[ \t]*(?P<words>.*)", re.DOTALL)
_SHELL = re.compile(rb"/[A-Za-z0-9_./+-]+")
_BUILTINS_KNOWN = (b"sh", b"dash", b"ash", b"bash")  # shells all of whose words BUILTINS has
_ZONE = re.compile(r"[A-Za-z0-9_+-]+(?:/[A-Za-z0-9_+-]+)*")


class Form(NamedTuple):
    """How a table is to be read and written."""

    system: bool  # each job names its user
    daemon: Daemon
    program: bytes  # absolute path of runguard
    timezone: str | None = None  # the daemon's, where it is not the host's


class Left(NamedTuple):
    """A line that stays as it is, and why."""

    number: int
    why: str


class Edited(NamedTuple):
    """A table after `wrap` or `unwrap`."""

    lines: list[bytes]  # one for each line of before
    changed: list[tuple[int, str]]  # number, job
    left: list[Left]
    already: int = 0  # lines that runguard guards already

    @property
    def data(self) -> bytes:
        """The table."""
        return b"".join(self.lines)


class Mark(NamedTuple):
    """What a comment `# runguard: …` right above a line says of it."""

    name: str | None = None
    ignore: bool = False
    allow: tuple[str, ...] = ()  # hazards that `lint` is not to report


class BadMark(ValueError):
    """A comment `# runguard: …` says what none can say; `number` is its line."""

    def __init__(self, number: int, why: str) -> None:
        super().__init__(why)
        self.number = number


def wrap(data: bytes, form: Form, taken: Collection[str] = ()) -> Edited:
    """Return the table with every job guarded that can be. `taken` are names that other tables use.

    Raises BadMark.
    """
    lines = parse.parse(data, system=form.system, percent=form.daemon.percent)
    given = marks(lines)
    own = set(_names(lines))
    used = {*taken, *own, *(mark.name for mark in given.values() if mark.name)}
    edited = Edited([], [], [])
    already = 0
    numbers: dict[str, int] = {}
    for line, shell, zone in _in_their_world(lines, form):
        mark = given.get(line.number, Mark())
        new, job, why = line.raw, "", ""
        if line.kind == "job" and guarded.ours(line.command):
            already += 1
        elif line.kind in ("job", "broken") and not mark.ignore:
            why = line.why or _why_left(line, form, shell, zone)
        if line.kind == "job" and not (mark.ignore or why or guarded.ours(line.command)):
            job = mark.name or names.unused(names.derive(unescaped(line.command)), used, numbers)
            new = line.head + _prefix(line, form, job, zone) + _body(line.command, shell) + line.stdin + line.end
            why = _too_long(line, new, form)
        if why:
            edited.left.append(Left(line.number, why))
            new = line.raw
        elif job:
            if job in own:
                raise BadMark(line.number - 1, f"name={job} is the name of another line too")
            used.add(job)
            own.add(job)
            edited.changed.append((line.number, job))
        edited.lines.append(new)
    return edited._replace(already=already)


def bared(command: bytes, shell: bytes) -> bytes:
    """Return what a command guards, as it would stand without runguard; itself, where it does not begin with a guard.

    `shell` is what cron gives the line. Raises guarded.Unreadable.
    """
    found = guarded.read(command)
    return command if found is None or found.start else _bared(command, found, shell)


def unwrap(data: bytes, form: Form) -> Edited:
    """Return the table with runguard taken off every line that can be taken apart."""
    lines = parse.parse(data, system=form.system, percent=form.daemon.percent)
    edited = Edited([], [], [])
    for line, shell, _ in _in_their_world(lines, form):
        new = line.raw
        if line.kind == "job":
            try:
                found = guarded.read(line.command)
                if found is not None:
                    new = line.head + _bared(line.command, found, shell) + line.stdin + line.end
                    edited.changed.append((line.number, found.job or ""))
            except guarded.Unreadable as error:
                edited.left.append(Left(line.number, str(error)))
        edited.lines.append(new)
    return edited


def marks(lines: Sequence[Line]) -> dict[int, Mark]:
    """Return what comments say, by the number of the line right below them. Raises BadMark."""
    found: dict[int, Mark] = {}
    for line in lines:
        mark = _MARK.match(line.raw) if line.kind == "comment" else None
        if not mark:
            continue
        said = Mark()
        for word in mark["words"].decode("utf-8", "surrogateescape").split():
            said = _said(line.number, word, said)
        found[line.number + 1] = said
    return found


def _said(number: int, word: str, said: Mark) -> Mark:
    key, equals, value = word.partition("=")
    try:
        if word == "ignore":
            return said._replace(ignore=True)
        if key == "name" and equals:
            return said._replace(name=values.job_name(value))
        if key == "allow" and value:
            return said._replace(allow=(*said.allow, *map(_hazard, value.split(","))))
    except ValueError as error:
        raise BadMark(number, f"{word[:60]}: {error}") from None
    raise BadMark(number, f"{values.short(word)} is neither ignore, name=NAME nor allow=HAZARD")


def _hazard(name: str) -> str:
    if name not in HAZARDS:
        raise ValueError(f"no such hazard{values.meant(name, HAZARDS)}")
    return name


def _names(lines: Sequence[Line]) -> Iterator[str]:
    for line in lines:
        if line.kind == "job":
            try:
                found = guarded.read(line.command)
            except guarded.Unreadable:
                continue
            if found is not None and found.job is not None:
                yield found.job


def _in_their_world(lines: Sequence[Line], form: Form) -> Iterator[tuple[Line, bytes, str | None]]:
    """Yield each line with the shell that cron gives it and the zone to name, where one must be named."""
    shell, zone = SH, form.timezone
    for line in lines:
        if line.kind == "variable" and line.name == b"SHELL" and form.daemon.sets_shell:
            shell = line.value
        if line.kind == "variable" and line.name == b"CRON_TZ" and form.daemon.obeys_cron_tz:
            zone = line.value.decode("utf-8", "surrogateescape")
        yield line, shell, zone


def _why_left(line: Line, form: Form, shell: bytes, zone: str | None) -> str:
    """Return why a job cannot be wrapped, or ""."""
    if line.returns:
        return "it ends in a carriage return, which cron takes for a part of the command"
    if not _SHELL.fullmatch(shell) or shell.rpartition(b"/")[2].decode() not in BOURNE:
        return f"SHELL={shown(shell)}: how that shell quotes is not known"
    if zone is not None and not _ZONE.fullmatch(zone):
        return f"CRON_TZ={values.short(zone)} is no name of a time zone"
    if line.unlogged and not form.daemon.takes_minus:
        return f"{form.daemon.title} reads no - in front of a schedule"
    unknown = daemons.unread(line.schedule, form.daemon)
    if unknown:
        return unknown
    if form.daemon.cuts_at_hash and b"#" in line.command:
        return f"{form.daemon.title} cuts the command at its #"
    if form.daemon.joins_lines and line.text.endswith(b"\\"):
        return f"{form.daemon.title} joins it with the next line"
    if line.schedule != b"@reboot":
        try:
            cron.parse(line.schedule.decode("utf-8", "surrogateescape"))
        except ScheduleError as error:
            return f"{error}; runguard lint says what cron makes of it"
    return ""


def _too_long(line: Line, new: bytes, form: Form) -> str:
    longest = form.daemon.longest_command
    counted = line.counted + len(new) - len(line.raw)
    if longest is None or counted <= longest:
        return ""
    found = f"guarded, its command would have {counted} bytes, and {form.daemon.title} takes {longest}"
    return f"{found}: put it into a script"


def _prefix(line: Line, form: Form, job: str, zone: str | None) -> bytes:
    words = [form.program, b"run", b"--job", job.encode()]
    if line.schedule != b"@reboot":
        words += [b"--schedule", b"'" + line.schedule + b"'"]
        if zone is not None:
            words += [b"--timezone", zone.encode("utf-8", "surrogateescape")]
    return b" ".join(words) + b" "


def _body(command: bytes, shell: bytes) -> bytes:
    """Return what follows the options for a command that `shell` would have been given."""
    again = shell != SH and command.startswith(shell + b" -c ")  # or unwrap would take the command's own shell off
    if _is_simple(command, shell) and not again:
        return b"-- " + command
    quoted = b"'" + command.replace(b"'", b"'\\''") + b"'"
    if shell != SH:
        return b"-- " + shell + b" -c " + quoted
    return (b"-c -- " if command.startswith(b"-") else b"-c ") + quoted


def _is_simple(command: bytes, shell: bytes) -> bool:
    """Tell whether words and quotes are all that `shell` would see in a command, and its first word is a program."""
    found = _SIMPLE.fullmatch(command)
    if not found:
        return False
    known = shell.rpartition(b"/")[2] in _BUILTINS_KNOWN or b"/" in found["program"]
    return known and found["program"] not in BUILTINS


def _bared(command: bytes, found: guarded.Guarded, shell: bytes) -> bytes:
    """Return what is guarded, as it stood before. Raises Unreadable."""
    if found.start:
        raise guarded.Unreadable(guarded.NOT_FIRST)
    rest = command[found.at :]
    if found.shell:
        return _unquoted(rest)
    if shell != SH and rest.startswith(shell + b" -c "):
        inner = rest[len(shell) + 4 :]
        if _QUOTED.fullmatch(inner.rstrip(b" \t")):
            return _unquoted(inner)
    return rest


def _unquoted(word: bytes) -> bytes:
    """Return the text of the one word that is left; `\\%` stays as it is. Raises Unreadable."""
    text = word.rstrip(b" \t")
    if _QUOTED.fullmatch(text):
        return b"".join(piece[1:-1] if piece[:1] == b"'" else b"'" for piece in re.findall(rb"'[^']*'|\\'", text))
    try:
        found = split(text)
    except Unclosed as error:
        raise guarded.Unreadable(str(error)) from None
    if len(found) != 1:
        raise guarded.Unreadable("something stands behind the command of -c")
    if found[0].text is None:
        raise guarded.Unreadable("the command of -c is put together by the shell")
    return found[0].text

"""Hazards of commands: what the shell that cron starts makes of them, and what nobody will hear of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from runguard.crontab import names, pipes, words
from runguard.crontab.hazards import Finding, Host, World
from runguard.crontab.parse import Line, shown, unescaped
from runguard.crontab.words import BOURNE, BUILTINS, Word

_LOST = re.compile(
    rb"(?:^|[\s;)])(?:&>>?\s*/dev/null|(?:1?>>?)\s*/dev/null\s+2>(?:&1|>?\s*/dev/null)|2>\s*/dev/null\s+1?>>?\s*(?:&2|/dev/null))"
)
_STRFTIME = re.compile(rb"%[-_0^#]?[A-Za-z]")
# What bash and zsh know, and sh (dash on Debian, ash in BusyBox) does not.
_BASH = "set SHELL=/bin/bash in the table"
_NOT_SH = (
    (re.compile(rb"(?:^|[;&|({]\s*|\b(?:then|do|else)\s+)source\s"), "source", "write . in its place"),
    (re.compile(rb"(?:^|[\s;&|(])\[\[\s"), "[[ … ]]", "write [ … ]"),
    (re.compile(rb"&>"), "&>", "write >FILE 2>&1"),
    (re.compile(rb"(?:^|[\s=])[<>]\("), "<(…)", _BASH),
    (re.compile(rb"<<<"), "<<<", "write echo … | in front"),
    (re.compile(rb"(?:^|[\s=])\$'"), "$'…'", _BASH),
    (
        re.compile(rb"(?:^|[;&|(]\s*)(?:pushd|popd|shopt|declare|function|let)\s"),
        "a word of bash",
        _BASH,
    ),
    (re.compile(rb"(?:^|[;&|({]\s*)set\s+-[a-z]*o\s+pipefail"), "set -o pipefail", _BASH),
)
_ASKING = (b"-x", b"-e", b"-f", b"-v", b"which", b"type", b"hash")
_SETS_PATH = re.compile(rb"PATH\+?=")
# Programs that start the one behind their options, and leave it the PATH that they have.
_STARTERS = frozenset(b"chronic chrt command cronic env exec flock ionice nice nohup setsid stdbuf timeout".split())
_LISTED = 3  # programs of one line


def judge(line: Line, inner: bytes, host: Host, world: World) -> Iterator[Finding]:
    """Yield the hazards of a job's command; `inner` is it without what guards it."""
    number, daemon = line.number, host.daemon
    if daemon.cuts_at_hash and b"#" in line.command:
        yield Finding(
            number,
            "hash",
            "the command has a #",
            f"{daemon.title} takes the rest for a comment: it runs {_shown(line.command.partition(b'#')[0])}",
            "put the command into a script",
        )
    yield from _percent(line, host)
    if daemon.halves_backslashes and b"\\\\" in line.command:
        yield Finding(
            number,
            "backslash",
            r"the command has \\",
            rf"{daemon.title} makes one backslash of two, before the shell sees it",
            r"write \\\ for two, or put the command into a script",
        )
    if world.shell.rpartition(b"/")[2].decode("latin-1") not in BOURNE:
        return  # that shell has words of its own
    command = (unescaped(inner) if daemon.percent else inner).rstrip(b"\r")
    try:
        found = words.without_patterns(words.split(command))
        if inner != line.command:
            yield from _programs(line, words.split(line.command)[:1], host, world)
    except words.Unclosed as error:
        if not line.stdin:  # else the % has been told of
            yield Finding(number, "not-sh", str(error), "the shell refuses the line: nothing runs", "close it")
        return
    name = world.shell.rpartition(b"/")[2]
    if name in (b"dash", b"ash") or (name == b"sh" and host.sh_is_plain):
        yield from _not_sh(number, command, host, world)
    yield from _programs(line, found, host, world)
    yield from pipes.judge(number, command, found)
    if _loses_output(command, found):
        yield Finding(
            number,
            "output-lost",
            "stdout and stderr go to /dev/null",
            "when it fails, nobody learns what it said",
            "take the redirection off: runguard run -q passes the output on, so into cron's mail, only when it fails",
        )


def _percent(line: Line, host: Host) -> Iterator[Finding]:
    if not line.stdin:
        return
    cut = f"{host.daemon.title} ends the command there: it runs {_shown(line.command)}, with the rest as standard input"
    if _STRFTIME.match(line.stdin) and line.command.endswith((b"+", b"-", b"_", b".", b"/", b"=", b"'", b'"')):
        reason = f"a % without a backslash, in what looks like a date: {_shown(line.stdin[:12])}"
    else:
        reason = f"a % without a backslash: {_shown(line.stdin[:12])}"
    yield Finding(
        line.number,
        "percent",
        reason,
        cut,
        r"write \% for a percent sign; if standard input is meant, say so above the line: # runguard: allow=percent",
    )


def _loses_output(command: bytes, found: list[Word]) -> bool:
    """Tell whether a program's whole output is thrown away; not that of one that is asked for its status alone."""
    for match in _LOST.finditer(command):
        before = [word for word in found if word.end <= match.start() + 1]
        after = next((word for word in found if word.start >= match.end() and word.operator), None)
        program = [simple[0].text for simple in words.simple_commands(before)][-1:]
        asked = program and (program[0] or b"").rpartition(b"/")[2] in pipes.ASKED
        if not (asked and after is not None and (after.text in (b"&&", b"||") or pipes.is_condition(before))):
            return True
    return False


def _not_sh(number: int, command: bytes, host: Host, world: World) -> Iterator[Finding]:
    for pattern, what, fix in _NOT_SH if host.daemon.name != "busybox" else _NOT_SH[:-1]:  # its sh has pipefail
        if pattern.search(_outside_quotes(command)):
            happens = f"{world.shell.decode('utf-8', 'replace')} does not know {what}"
            if what == "set -o pipefail":
                happens += ", and ends there: nothing behind it runs"
            if what == "&>":
                happens = "sh runs what stands before it in the background, without redirection, and is done at once"
            yield Finding(number, "not-sh", f"{what} is of bash, and cron starts sh", happens, fix)


def _programs(line: Line, found: list[Word], host: Host, world: World) -> Iterator[Finding]:
    """Tell of programs that are not found from a crontab."""
    told: list[str] = []
    moved = False  # into a directory that is not known here
    own = {word.text for word, sign in pairwise(found) if sign.text == b"(" and sign.operator}  # functions
    strange = any(_SETS_PATH.match(word.raw) for word in found)  # nor is its PATH
    for simple in words.simple_commands(found):
        if simple[0].text == b"cd":
            moved = True
        if simple[0].text in (b".", b"source", b"eval"):
            strange = True
        for program in _started(simple):
            name = program.decode("utf-8", "surrogateescape")
            unknown = strange if "/" not in name else moved and not name.startswith("/")
            if unknown or program in BUILTINS or program in own or name in told or len(told) == _LISTED:
                continue
            why = host.why_not_found(name, world.path, line.user.decode("utf-8", "surrogateescape"))
            if not why or _asked_for(found, program):
                continue
            told.append(name)
            yield Finding(
                line.number,
                "path",
                why,
                "the shell ends with 127 or 126: it does not run",
                _way_to_find(name, line, host),
            )


def _way_to_find(name: str, line: Line, host: Host) -> str:
    if "/" in name:
        return "write the path of a program that is there"
    first = line.command.partition(b" ")[0].decode("utf-8", "surrogateescape")
    if name == first and not line.user and host.is_account(name):
        return f"a user's table names no user: take {name!r} off; lint --system reads a table that does"
    return "write its path whole, or set PATH in the table"


def _started(simple: list[Word]) -> Iterator[bytes]:
    """Yield the programs that a simple command starts: its first word, and what that one starts (`nice -n5 x`)."""
    while simple and simple[0].text is not None:
        program = simple[0].text
        yield program
        name = program.rpartition(b"/")[2]
        if name not in _STARTERS or (name == b"command" and len(simple) > 1 and simple[1].raw.startswith(b"-")):
            return
        at = names.past_options(name.decode("latin-1", "replace"), simple, 1)
        if simple[at - 1].raw.endswith(b"-c"):  # a whole command
            return
        simple = simple[at:]


def _asked_for(found: list[Word], program: bytes) -> bool:
    """Tell whether the command looks first whether a program is there: `[ -x … ] &&`, `command -v …`."""
    name = program.rpartition(b"/")[2]
    asked = (word.text for before, word in pairwise(found) if before.text in _ASKING)
    return any(text is not None and text.rpartition(b"/")[2] == name for text in asked)


def _outside_quotes(command: bytes) -> bytes:
    return re.sub(
        rb"'[^']*'|\"(?:[^\"\\]|\\.)*\"",
        lambda quoted: b"''" if not quoted[0].startswith(b"$") else quoted[0],
        command,
        flags=re.DOTALL,
    )


def _shown(text: bytes) -> str:
    return f"'{shown(text)}'"

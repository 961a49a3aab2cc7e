"""Hazards of commands: what the shell that cron starts makes of them, and what nobody will hear of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress

from runguard.crontab import words
from runguard.crontab.hazards import Finding, Host, World
from runguard.crontab.parse import Line, shown, unescaped
from runguard.crontab.words import BOURNE, BUILTINS, Word

_LOST = re.compile(
    rb"(?:^|[\s;)])(?:&>>?\s*/dev/null|(?:1?>>?)\s*/dev/null\s+2>(?:&1|>?\s*/dev/null)|2>\s*/dev/null\s+1?>>?\s*(?:&2|/dev/null))"
)
_STRFTIME = re.compile(rb"%[-_0^#]?[A-Za-z]")
_PIPEFAIL = re.compile(rb"\bpipefail\b")
_SHELLS = (b"sh", b"bash", b"dash", b"ksh", b"zsh")
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
)
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
        found = words.split(command)
        if inner != line.command:
            yield from _programs(line, words.split(line.command)[:1], host, world)
    except words.Unclosed as error:
        if not line.stdin:  # else the % has been told of
            yield Finding(number, "not-sh", str(error), "the shell refuses the line: nothing runs", "close it")
        return
    if world.shell.rpartition(b"/")[2] in (b"sh", b"dash", b"ash"):
        yield from _not_sh(number, command, world)
    yield from _programs(line, found, host, world)
    yield from _pipes(number, command, found)
    if _LOST.search(command):
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


def _not_sh(number: int, command: bytes, world: World) -> Iterator[Finding]:
    for pattern, what, fix in _NOT_SH:
        if pattern.search(_outside_quotes(command)):
            happens = f"{world.shell.decode('utf-8', 'replace')} does not know {what}"
            if what == "&>":
                happens = "sh runs what stands before it in the background, without redirection, and is done at once"
            yield Finding(number, "not-sh", f"{what} is of bash, and cron starts sh", happens, fix)


def _programs(line: Line, found: list[Word], host: Host, world: World) -> Iterator[Finding]:
    """Tell of programs that are not found from a crontab."""
    told: list[str] = []
    moved = False  # into a directory that is not known here
    for simple in words.simple_commands(found):
        program = simple[0].text
        if program == b"cd":
            moved = True
        if program is None or program in BUILTINS or len(told) == _LISTED:
            continue
        name = program.decode("utf-8", "surrogateescape")
        if name in told or (moved and "/" in name and not name.startswith("/")):
            continue
        why = host.why_not_found(name, world.path, line.user.decode("utf-8", "surrogateescape"))
        if why and not _asked_for(found, program):
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
    first = line.command.split(maxsplit=1)[0].decode("utf-8", "surrogateescape")
    if name == first and not line.user and host.is_account(name):
        return f"a user's table names no user: take {name!r} off; lint --system reads a table that does"
    return "write its path whole, or set PATH in the table"


def _asked_for(found: list[Word], program: bytes) -> bool:
    """Tell whether the command looks first whether a program is there: `[ -x … ] &&`, `command -v …`."""
    texts = [word.text for word in found]
    return any(
        text in (b"-x", b"-e", b"-f", b"-v") and texts[at + 1 : at + 2] == [program] for at, text in enumerate(texts)
    )


def _pipes(number: int, command: bytes, found: list[Word]) -> Iterator[Finding]:
    for simple in words.simple_commands(found):  # sh -c '… | …'
        texts = [word.text for word in simple]
        if texts[0] and texts[0].rpartition(b"/")[2] in _SHELLS and b"-c" in texts[:-1] and b"pipefail" not in texts:
            inner = texts[texts.index(b"-c") + 1]
            with suppress(words.Unclosed):
                yield from _pipes(number, inner or b"", words.split(inner or b""))
    signs = [word.text for word in found if word.operator]
    if (b"|" in signs or b"|&" in signs) and not _PIPEFAIL.search(command):
        at = max(index for index, word in enumerate(found) if word.operator and word.text in (b"|", b"|&"))
        last = found[at + 1].raw if at + 1 < len(found) else b""
        yield Finding(
            number,
            "pipeline",
            f"a pipeline: its status is that of its last command, {_shown(last)}",
            "when one in front of it fails, cron and every guard see a success",
            "runguard run … -- bash -o pipefail -c 'COMMAND', or with SHELL=/bin/bash: 'set -o pipefail; COMMAND'",
        )
    if found and found[-1].operator and found[-1].text == b"&":
        yield Finding(
            number,
            "background",
            "the command ends in &",
            "the shell ends at once: its status and its end are not known",
            "take the & off: cron does not wait for a line anyway",
        )


def _outside_quotes(command: bytes) -> bytes:
    return re.sub(
        rb"'[^']*'|\"(?:[^\"\\]|\\.)*\"",
        lambda quoted: b"''" if not quoted[0].startswith(b"$") else quoted[0],
        command,
        flags=re.DOTALL,
    )


def _shown(text: bytes) -> str:
    return f"'{shown(text)}'"

"""What holds for any table: nothing is lost, the shell gets what it got, and unwrap undoes wrap."""

from __future__ import annotations

import re
import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runguard.crontab import parse
from runguard.crontab.daemons import BUSYBOX, CRONIE, DEBIAN, Daemon
from runguard.crontab.wrap import BadMark, Form, unwrap, wrap
from tables import tables

FORMS = [
    Form(system, daemon, b"/usr/local/bin/runguard", zone)
    for system in (False, True)
    for daemon, zone in ((DEBIAN, None), (CRONIE, "Europe/London"), (BUSYBOX, None))
]


def name_of(form: Form) -> str:
    return f"{form.daemon.name}-{'system' if form.system else 'user'}"


@given(st.binary(max_size=300), st.booleans(), st.booleans())
def test_the_lines_of_any_bytes_are_those_bytes(data: bytes, system: bool, percent: bool) -> None:
    lines = parse.parse(data, system=system, percent=percent)
    assert parse.join(lines) == data
    for line in lines:
        if line.kind == "job":
            assert line.head + line.command + line.stdin + line.end == line.raw


@pytest.mark.parametrize("form", FORMS, ids=name_of)
@settings(max_examples=150, deadline=None)
@given(st.data())
def test_unwrap_restores_what_wrap_was_given(form: Form, data: st.DataObject) -> None:
    table = data.draw(tables(system=form.system))
    try:
        wrapped = wrap(table, form).data
    except BadMark:
        return  # two lines were given one name
    assert unwrap(wrapped, form).data == table
    assert wrap(wrapped, form).data == wrapped


def as_cron_gives_it(line: parse.Line, daemon: Daemon) -> tuple[bytes, bytes]:
    """Return (command, stdin) as the daemon hands them on (do_command.c of each)."""
    if not daemon.percent:
        return line.command, b""
    taken = rb"\\([\\%])" if daemon.halves_backslashes else rb"\\(%)"
    command = re.sub(taken + rb"|\\(.)", lambda pair: pair[1] or pair[0], line.command, flags=re.DOTALL)
    return command, line.stdin


@pytest.mark.parametrize("form", FORMS, ids=name_of)
@settings(max_examples=150, deadline=None)
@given(st.data())
def test_the_shell_is_given_the_same_command(form: Form, data: st.DataObject) -> None:
    table = data.draw(tables(system=form.system))
    try:
        wrapped = wrap(table, form)
    except BadMark:
        return
    before = parse.parse(table, system=form.system, percent=form.daemon.percent)
    after = parse.parse(wrapped.data, system=form.system, percent=form.daemon.percent)
    assert len(before) == len(after)
    for number, _ in wrapped.changed:
        old, new = before[number - 1], after[number - 1]
        assert (new.schedule, new.user, new.stdin, new.end) == (old.schedule, old.user, old.stdin, old.end)
        assert guarded_command(as_cron_gives_it(new, form.daemon)[0]) == as_cron_gives_it(old, form.daemon)[0]


def guarded_command(command: bytes) -> bytes:
    """Return the command that a wrapped one hands on: read here by shlex, which is another reader than ours."""
    text = command.decode("latin-1")
    prefix = re.match(r"/usr/local/bin/runguard run --job \S+ (?:--schedule '[^']*' )?(?:--timezone \S+ )?", text)
    assert prefix
    rest = text[prefix.end() :]
    shell = re.fullmatch(r"(?:-c (?:-- )?|-- (?:/bin/bash|/bin/zsh) -c )('.*')", rest, re.DOTALL)
    if rest.startswith("-- ") and not shell:
        return rest[3:].encode("latin-1")
    assert shell
    if len(words := shlex.split(shell[1])) == 1:
        return words[0].encode("latin-1")
    return rest[3:].encode("latin-1")

"""What wrap writes, and what unwrap takes off; what holds for every table is in test_wrap_properties.py."""

from __future__ import annotations

import pytest

from runguard.crontab.daemons import BUSYBOX, CRONIE, DEBIAN
from runguard.crontab.wrap import BadMark, Form, Left, unwrap, wrap

USER = Form(False, DEBIAN, b"/usr/local/bin/runguard")
RG = b"/usr/local/bin/runguard run --job "


def wrapped(table: bytes, form: Form = USER) -> bytes:
    edited = wrap(table, form)
    assert edited.left == []
    return edited.data


def left(table: bytes, form: Form = USER) -> list[Left]:
    edited = wrap(table, form)
    assert edited.data == table
    return edited.left


@pytest.mark.parametrize(
    ("command", "body"),
    [
        # as it stands
        (b"/opt/letters/send --all", b"send --schedule '30 2 * * *' -- /opt/letters/send --all"),
        (b"send  'a b'   \"c\"", b"send --schedule '30 2 * * *' -- send  'a b'   \"c\""),
        (b"report --day=\\%F", b"report --schedule '30 2 * * *' -- report --day=\\%F"),
        # what needs a shell
        (b"cd /srv && ./poll", b"poll --schedule '30 2 * * *' -c 'cd /srv && ./poll'"),
        (b"send | tee x", b"send --schedule '30 2 * * *' -c 'send | tee x'"),
        (b"A=1 send", b"send --schedule '30 2 * * *' -c 'A=1 send'"),
        (b"echo \"a\\nb\"", b"echo --schedule '30 2 * * *' -c 'echo \"a\\nb\"'"),
        (b"echo x", b"echo --schedule '30 2 * * *' -c 'echo x'"),  # the shell's own echo is not /bin/echo
        (b"$HOME/bin/send", b"send --schedule '30 2 * * *' -c '$HOME/bin/send'"),
        (b"~/bin/send *.txt", b"send --schedule '30 2 * * *' -c '~/bin/send *.txt'"),
        (b"send it's", b"send --schedule '30 2 * * *' -c 'send it'\\''s'"),
        (b"send > x; true # y", b"send --schedule '30 2 * * *' -c 'send > x; true # y'"),
        # up to the first unescaped %
        (b"mail ops%Dear,%bye", b"mail --schedule '30 2 * * *' -- mail ops%Dear,%bye"),
        (b"cat | mail ops%Dear\\%,", b"mail --schedule '30 2 * * *' -c 'cat | mail ops'%Dear\\%,"),
        (b"tar -f $(date +\\%F)", b"tar --schedule '30 2 * * *' -c 'tar -f $(date +\\%F)'"),
        (b"send x'%in", b"send --schedule '30 2 * * *' -c 'send x'\\'''%in"),
        (b'send x"a', b"send --schedule '30 2 * * *' -c 'send x\"a'"),
        (b"\\%1", b"1 --schedule '30 2 * * *' -c '\\%1'"),  # bash takes it for a job of its own
        (b"-x; y", b"x --schedule '30 2 * * *' -c -- '-x; y'"),
    ],
)  # fmt: skip
def test_a_line_and_what_becomes_of_it(command: bytes, body: bytes) -> None:
    assert wrapped(b"30 2 * * *\t" + command + b"\n") == b"30 2 * * *\t" + RG + body + b"\n"


def test_the_schedule_is_as_the_line_has_it() -> None:
    assert wrapped(b"30  2\t* * mon x\n") == b"30  2\t* * mon " + RG + b"x --schedule '30  2\t* * mon' -- x\n"
    assert wrapped(b"@daily x\n") == b"@daily " + RG + b"x --schedule '@daily' -- x\n"


def test_a_minus_in_front_of_a_schedule_is_cronies_and_stays() -> None:
    line = b"-30 2 * * * x\n"
    assert left(line) == [Left(1, "Debian's cron reads no - in front of a schedule")]
    cronie = USER._replace(daemon=CRONIE)
    assert wrapped(line, cronie) == b"-30 2 * * * " + RG + b"x --schedule '30 2 * * *' -- x\n"


def test_a_line_for_the_start_of_the_host_has_no_schedule() -> None:
    form = USER._replace(timezone="Europe/London")
    assert wrapped(b"@reboot /opt/agent\n", form) == b"@reboot " + RG + b"agent -- /opt/agent\n"


def test_a_table_with_users() -> None:
    form = USER._replace(system=True)
    assert wrapped(b"1 2 * * *  root  x\n", form) == b"1 2 * * *  root  " + RG + b"x --schedule '1 2 * * *' -- x\n"


def test_comments_variables_and_blanks_stay() -> None:
    table = b"MAILTO=ops\n\n# 30 2 * * * /opt/example\n  PATH = /a:/b\n"
    assert wrapped(table) == table


def test_where_the_table_sets_a_shell_that_shell_runs_what_needs_one() -> None:
    table = b"SHELL=/bin/bash\n1 2 * * * a | b\n1 3 * * * /opt/c\nSHELL=/bin/sh\n1 4 * * * d | e\n"
    assert wrapped(table).splitlines()[1::2] == [
        b"1 2 * * * " + RG + b"a --schedule '1 2 * * *' -- /bin/bash -c 'a | b'",
        b"SHELL=/bin/sh",
    ]
    assert wrapped(table).splitlines()[2::2] == [
        b"1 3 * * * " + RG + b"c --schedule '1 3 * * *' -- /opt/c",
        b"1 4 * * * " + RG + b"d --schedule '1 4 * * *' -c 'd | e'",
    ]


def test_a_command_with_the_tables_own_shell_is_not_taken_for_ours_later() -> None:
    table = b"SHELL=/bin/bash\n1 2 * * * /bin/bash -c 'x'\n"
    assert b" -- /bin/bash -c '/bin/bash -c '\\''x'\\'''\n" in wrapped(table)
    assert unwrap(wrapped(table), USER).data == table


def test_cronies_zone_is_named_and_debians_is_the_hosts() -> None:
    table = b"CRON_TZ=Europe/London\n30 2 * * * x\n"
    cronie = USER._replace(daemon=CRONIE)
    assert b"--schedule '30 2 * * *' --timezone Europe/London -- x" in wrapped(table, cronie)
    assert b"--timezone" not in wrapped(table)


def test_a_zone_that_the_daemon_is_started_with_is_named() -> None:
    assert b" --timezone Asia/Tokyo -- x" in wrapped(b"30 2 * * * x\n", USER._replace(timezone="Asia/Tokyo"))


def test_names_are_used_once() -> None:
    table = b"1 1 * * * /opt/send\n1 2 * * * send x\n1 3 * * * runguard run -j send-2 -- y\n"
    assert [job for _, job in wrap(table, USER).changed] == ["send", "send-3"]
    assert [job for _, job in wrap(table, USER, {"send"}).changed] == ["send-3", "send-4"]


def test_wrapping_twice_changes_nothing() -> None:
    once = wrapped(b"1 1 * * * /opt/send\n1 2 * * * send | x%y\n")
    again = wrap(once, USER)
    assert (again.data, again.changed, again.already) == (once, [], 2)


def test_runguards_own_commands_need_no_guard() -> None:
    table = b"* * * * * /opt/rg/bin/runguard metrics -o /x\n@daily runguard verify\n"
    assert (wrapped(table), unwrap(table, USER).data) == (table, table)


@pytest.mark.parametrize(
    "command",
    [
        b"'runguard' run -j a x",
        b"nice -n5 runguard run -j a x",
        b"sh -c 'runguard run -j a x'",
        b"a=$(runguard run -j a x)",
    ],
)
def test_a_guard_in_other_words_is_one(command: bytes) -> None:
    edited = wrap(b"1 2 * * * " + command + b"\n", USER)
    assert (edited.changed, edited.already) == ([], 1)


@pytest.mark.parametrize("command", [b"grep 'runguard run' log", b"echo runguard run", b"x # runguard run"])
def test_what_only_speaks_of_a_guard_has_none(command: bytes) -> None:
    edited = wrap(b"1 2 * * * " + command + b"\n", USER)
    assert (len(edited.changed), edited.already) == (1, 0)


def test_a_line_added_later_gets_a_name_of_its_own() -> None:
    once = wrapped(b"1 1 * * * /opt/send\n")
    assert wrapped(once + b"1 2 * * * send\n").splitlines()[1] == (
        b"1 2 * * * " + RG + b"send-2 --schedule '1 2 * * *' -- send"
    )


def test_a_comment_above_a_line_names_it_or_keeps_it() -> None:
    table = (
        b"# runguard: name=letters\n1 1 * * * /opt/send\n#runguard:ignore\n1 2 * * * send\n"
        b"# runguard: ignore\n\n1 3 * * * x\n"
    )
    assert wrap(table, USER).changed == [(2, "letters"), (7, "x")]


@pytest.mark.parametrize(
    ("comment", "why"),
    [
        (b"ingore", "'ingore' is neither ignore, name=NAME nor allow=HAZARD"),
        (b"name=a/b", "name=a/b: 'a/b' is no job name (letters, digits, '.', '_', '-'; a letter or digit first)"),
    ],
)
def test_a_comment_that_says_what_none_can_say_is_an_error(comment: bytes, why: str) -> None:
    with pytest.raises(BadMark) as raised:
        wrap(b"\n# runguard: " + comment + b"\n1 1 * * * x\n", USER)
    assert (raised.value.number, str(raised.value)) == (2, why)


def test_a_name_given_to_two_lines_is_an_error() -> None:
    with pytest.raises(BadMark, match="name=a is the name of another line too"):
        wrap(b"# runguard: name=a\n1 1 * * * x\n# runguard: name=a\n1 2 * * * y\n", USER)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"1 1 * * * x\r\n", "it ends in a carriage return, which cron takes for a part of the command"),
        (b"nonsense\n", "a line is five fields or an @name, and a command"),
        (b"@Daily x\n", "Debian's cron does not know @Daily"),
        (b"0 22-2 * * * x\n", "schedule '0 22-2 * * *', hour, column 3: reversed range '22-2'; runguard lint says what"
         " cron makes of it"),
        (b"* * * * * %x\n", "it has no command: a line is five fields or an @name, and a command"),
    ],
)  # fmt: skip
def test_a_line_that_cannot_be_wrapped_is_named_and_left(line: bytes, why: str) -> None:
    assert left(line) == [Left(1, why)]


@pytest.mark.parametrize("shell", [b"/usr/bin/fish", b"/bin/tcsh", b"bash", b"/usr/bin/python3", b"/my shells/bash"])
def test_a_shell_whose_quotes_are_not_known_leaves_its_lines(shell: bytes) -> None:
    [found] = left(b"SHELL=" + shell + b"\n1 1 * * * x\n")
    assert found == Left(2, f"SHELL={shell.decode()}: how that shell quotes is not known")


@pytest.mark.parametrize(("shell", "head"), [(b"bash", b""), (b"zsh", b"/bin/zsh -c "), (b"ksh", b"/bin/ksh -c ")])
def test_a_bare_word_may_be_the_shells_own_where_not_all_of_those_are_known(shell: bytes, head: bytes) -> None:
    table = b"SHELL=/bin/" + shell + b"\n1 1 * * * print x\n1 1 * * * /opt/print x\n"
    bare = b"'print x'" if head else b"print x"
    _, first, second = wrapped(table).splitlines()
    assert first.endswith(b" -- " + head + bare)
    assert second.endswith(b" -- /opt/print x")


def test_quotes_nested_too_deeply_are_no_fault_of_ours() -> None:
    table = b"* * * * * " + b'x "$(' * 3000 + b')"' * 3000 + b"\n"
    form = USER._replace(daemon=CRONIE)
    assert unwrap(wrapped(table, form), form).data == table


def test_debians_limit_of_998_bytes_counts_what_runguard_adds() -> None:
    added = len(RG + b"x --schedule '1 1 * * *' -- ")
    longest = b"x " + b"y" * (998 - added - 2)
    assert len(wrapped(b"1 1 * * * " + longest + b"\n")) == len("1 1 * * * ") + 998 + 1
    assert left(b"1 1 * * * " + longest + b"y\n") == [
        Left(1, "guarded, its command would have 999 bytes, and Debian's cron takes 998: put it into a script")
    ]
    assert wrap(b"1 1 * * * " + longest + b"y\n", USER._replace(daemon=CRONIE)).left == []


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"1 1 * * * echo a#b\n", "BusyBox crond cuts the command at its #"),
        (b"1 1 * * * x \\\n", "BusyBox crond joins it with the next line"),
        (b"@daily x\n", "BusyBox crond does not know @daily"),
    ],
)
def test_what_busybox_does_not_take(line: bytes, why: str) -> None:
    assert left(line, USER._replace(daemon=BUSYBOX)) == [Left(1, why)]


def test_a_percent_is_nothing_special_to_busybox() -> None:
    assert wrapped(b"1 1 * * * date +%F\n", USER._replace(daemon=BUSYBOX)).endswith(b"-- date +%F\n")


@pytest.mark.parametrize(
    ("line", "bare"),
    [
        (b"runguard run -j a -s '1 2 * * *' -t 2h -q --ping https://e.example/x -- /opt/a --all", b"/opt/a --all"),
        (b"/opt/rg/bin/runguard run --job=a --quiet /opt/a", b"/opt/a"),
        (b"runguard run -qcj a 'x | y' ", b"x | y"),
        (b'runguard run -j a -c "x y"', b"x y"),
        (b"runguard run -j a -- /opt/a >> log 2>&1", b"/opt/a >> log 2>&1"),
        (b'runguard run -j a --ping "$URL" -- a%stdin', b"a%stdin"),
    ],
)
def test_what_a_person_wrote_or_added_is_taken_off_too(line: bytes, bare: bytes) -> None:
    assert unwrap(b"1 2 * * * " + line + b"\n", USER).data == b"1 2 * * * " + bare + b"\n"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"cd /x && runguard run -j a -- y", "it does not begin with runguard run"),
        (b"runguard run --frob a", "--frob is no option of run"),
        (b'runguard run -j a -c "x $Y"', "the command of -c is put together by the shell"),
        (b"runguard run -j a -c 'x' >> log", "something stands behind the command of -c"),
        (b"runguard run -j a", "it names no command"),
        (b"runguard run -j a -c 'x", "a quote is not closed"),
    ],
)
def test_what_cannot_be_taken_apart_is_named_and_left(line: bytes, why: str) -> None:
    table = b"1 2 * * * " + line + b"\n"
    edited = unwrap(table, USER)
    assert (edited.data, edited.left) == (table, [Left(1, why)])


def test_thousands_of_lines_with_one_program_get_names_of_their_own() -> None:
    table = b"* * * * * /opt/send\n" * 20_000
    jobs = [job for _, job in wrap(table, USER).changed]
    assert (jobs[0], jobs[1], jobs[-1], len(set(jobs))) == ("send", "send-2", "send-20000", 20_000)

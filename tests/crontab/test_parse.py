"""What is read in a line. The rules of variables are those of load_env in Debian's cron (env.c)."""

from __future__ import annotations

import pytest

from runguard.crontab import parse
from runguard.crontab.parse import Line


def one(raw: bytes, *, system: bool = False, percent: bool = True) -> Line:
    [line] = parse.parse(raw, system=system, percent=percent)
    return line


@pytest.mark.parametrize(
    ("raw", "name", "value"),
    [
        (b"MAILTO=ops\n", b"MAILTO", b"ops"),
        (b"CRON_TZ = Europe/London\n", b"CRON_TZ", b"Europe/London"),
        (b" \tPATH=/a:/b  \n", b"PATH", b"/a:/b"),
        (b'MAILTO=""\n', b"MAILTO", b""),
        (b"A=' b '\n", b"A", b" b "),
        (b"'A B' = c\n", b"A B", b"c"),
        (b"A = b c = d\n", b"A", b"b c = d"),
        (b"A=\"'x'\"\n", b"A", b"x"),
        (b"@reboot=x\n", b"@reboot", b"x"),
    ],
)
def test_a_line_that_sets_a_variable(raw: bytes, name: bytes, value: bytes) -> None:
    line = one(raw)
    assert (line.kind, line.name, line.value) == ("variable", name, value)


@pytest.mark.parametrize(
    "raw",
    [
        b"MAILTO=\n",
        b"A='b' c\n",
        b"'A=b\n",
        b"A\n",
        b"\r\n",
        b"* * * *\n",
        b"* * * * * * x\n",
        b"* * * * *\n",
        b"x\0\n",
    ],
)
def test_a_line_that_no_cron_can_run(raw: bytes) -> None:
    assert one(raw).kind == "broken"


@pytest.mark.parametrize(
    ("raw", "kind"), [(b"\n", "blank"), (b" \t\n", "blank"), (b"  # x\n", "comment"), (b"#", "comment")]
)
def test_a_line_that_says_nothing_to_cron(raw: bytes, kind: str) -> None:
    assert one(raw).kind == kind


def test_a_job_of_a_user() -> None:
    line = one(b"  30\t2 * *  *  /opt/send  --all \n")
    assert (line.head, line.schedule, line.command) == (b"  30\t2 * *  *  ", b"30\t2 * *  *", b"/opt/send  --all ")


def test_a_job_of_the_system_names_its_user() -> None:
    line = one(b"30 2 * * *\troot\t cd / && x\n", system=True)
    assert (line.schedule, line.user, line.command) == (b"30 2 * * *", b"root", b"cd / && x")


def test_a_job_of_the_system_without_a_command_is_broken() -> None:
    assert one(b"30 2 * * * root\n", system=True).kind == "broken"


@pytest.mark.parametrize("name", [b"@daily", b"@reboot", b"@Unknown"])
def test_a_schedule_by_name(name: bytes) -> None:
    line = one(name + b"  x y\n")
    assert (line.schedule, line.command) == (name, b"x y")


@pytest.mark.parametrize(
    ("command", "run", "stdin"),
    [
        (b"mail ops%Dear,%bye", b"mail ops", b"%Dear,%bye"),
        (b"date +\\%F", b"date +\\%F", b""),
        (b"x \\\\%in", b"x \\\\", b"%in"),
        (b"x \\", b"x \\", b""),
        (b"x '%'", b"x '", b"%'"),
    ],
)
def test_a_command_ends_at_its_first_unescaped_percent(command: bytes, run: bytes, stdin: bytes) -> None:
    line = one(b"* * * * * " + command + b"\n")
    assert (line.command, line.stdin) == (run, stdin)


def test_busybox_ends_no_command_at_a_percent() -> None:
    assert one(b"* * * * * date +%F\n", percent=False).command == b"date +%F"


def test_a_carriage_return_is_a_part_of_the_command() -> None:
    line = one(b"* * * * * x\r\n")
    assert (line.command, line.returns) == (b"x\r", True)


def test_a_last_line_without_a_newline_is_a_line() -> None:
    assert [line.end for line in parse.parse(b"a=b\n* * * * * x")] == [b"\n", b""]


def test_two_megabytes_are_lines_too() -> None:
    data = b'17 4 * * 1-5\t/opt/jobs/one --day "$(date +\\%F)" >> /var/log/one 2>&1\n' * 30_000
    lines = parse.parse(data)
    assert len(data) > 2_000_000
    assert {line.kind for line in lines} == {"job"}
    assert parse.join(lines) == data


@pytest.mark.parametrize(
    ("data", "names"),
    [
        (b"1 2 * * * root x\n3 4 * * * mail y\n", True),
        (b"1 2 * * * mail -s x\n", False),
        (b"1 2 * * * root x\n3 4 * * * /opt/y\n", False),
        (b"", False),
    ],
)
def test_a_table_whose_lines_all_name_accounts_is_the_systems(data: bytes, names: bool) -> None:
    assert parse.names_users(data, lambda name: name in ("root", "mail")) == names

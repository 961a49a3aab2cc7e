"""Debian's cron and BusyBox crond are asked: how they read tables, and whether they take what wrap writes."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from crons import busybox_crond, busybox_reads, debian_takes, needs_busybox, needs_debian, with_spool
from runguard import zones
from runguard.crontab import daemons, fields, files, host, lint, parse
from runguard.crontab.hazards import Host, Table
from runguard.crontab.wrap import Form, unwrap, wrap
from shell import Shell, private_cron, wait_until

SCHEDULES = [
    "30 2 * * *", "*/15 0-23/2 1,15 jan-mar mon-fri", "0 9 * * fri-sun", "0 22-2 * * *", "*5 * * * *", "5.5 * * * *",
    "5/10 * * * *", "*/0 * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *", "* * * 13 *", "* * * 0 *",
    "* * * * 7", "* * * * 8", "* * * * 5-7", "* * * * Sunday", "* * * JAN SUN", "1,,2 * * * *", "1, * * * *",
    "1-5x * * * *", "1-5/2 * * * *", "*/7 * * * *", "0-59/15 2 * * *", "x * * * *", "*/x * * * *", "0~9 * * * *",
    "50-10 * * * *", "1-3,50-10 * * * *", "* * * * 6-1", "9999999999 * * * *", "*-5 * * * *", "*,7 * * * *",
    "* * */2 * *", "* * 1-31/2 * *", "* * 30-2 * *", "* */7 * */5 */3", "* * * nov-feb *",
]  # fmt: skip
NAMES = ["@daily", "@Daily", "@reboot", "@every", "@midnight"]


@needs_debian
def test_debians_cron_takes_the_schedules_that_we_say_it_takes(tmp_path: Path) -> None:
    said = debian_takes(tmp_path, [f"{each} x\n".encode() for each in SCHEDULES])
    taken = {each for each, complaint in zip(SCHEDULES, said, strict=True) if not complaint}
    assert taken == {each for each in SCHEDULES if not fields.read(each, daemons.DEBIAN).refused}


@needs_debian
def test_debians_cron_takes_the_names_that_we_say_it_takes(tmp_path: Path) -> None:
    said = debian_takes(tmp_path, [f"{each} x\n".encode() for each in NAMES])
    taken = {each for each, complaint in zip(NAMES, said, strict=True) if not complaint}
    assert taken == {each for each in NAMES if not daemons.unread(each.encode(), daemons.DEBIAN)}


@needs_debian
def test_debians_cron_refuses_the_tables_that_we_say_it_refuses(tmp_path: Path) -> None:
    tables = [
        b"* * * * * x\n* * * * *",
        b"MAILTO=\n* * * * * x\n",
        b"* * * * * " + b"x" * 998 + b"\n",
        b"* * * * * " + b"x" * 999 + b"\n",
        b"# x\n" * 10_000,
        b"# x\n" * 10_001,
        b"* * * * * x\r\n",
        b"\r\n",
        b"A='b' c\n",
        b'A="b" \n',
        b"* * * * *\n",
        b"* * * * * * x\n",
    ]
    assert debian_takes(tmp_path, tables) == [
        "new crontab file is missing newline before EOF, can't install.",
        f'"{tmp_path}/0001":0: bad minute',
        "",
        f'"{tmp_path}/0003":1: command too long',
        "",
        "crontab is too long; maximum number of lines is 10000.",
        "",
        f'"{tmp_path}/0007":0: bad minute',
        f'"{tmp_path}/0008":0: bad minute',
        "",
        "",
        f'"{tmp_path}/0011":0: bad command',
    ]


@needs_busybox
def test_busybox_reads_the_fields_as_we_say(tmp_path: Path) -> None:
    read = busybox_reads(tmp_path, SCHEDULES)
    for schedule, found in zip(SCHEDULES, read, strict=True):
        ours = fields.read(schedule, daemons.BUSYBOX)
        if found is None:
            assert (schedule, ours.refused != "") == (schedule, True)
            continue
        minutes, hours, days, months, weekdays = found
        theirs = (minutes, hours, days - {0}, {month + 1 for month in months}, weekdays)
        assert (schedule, tuple(map(set, ours.values))) == (schedule, theirs)


@needs_debian
def test_the_files_that_debians_cron_ignores_are_those_that_we_tell(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    ran.mkdir()
    tables = {
        "good": b"",
        "good_2-B": b'CRON_TZ=x\nA = "b"\n* * * * fri-sun root x\n',
        "dot.ted": b"",
        "tilde~": b"",
        "writable": b"",
        "owned": b"",
        "linked": b"",
        "link": b"",
        "link-of-nobody": b"",
        "broken": b"MAILTO=\n",
        "misspelt": b"@Daily root x\n",
        "nobody-there": b"@daily nobdy x\n",
        "long": b"@daily root " + b"x" * 999 + b"\n",
        "unended": b"@daily root x",
    }
    place = tmp_path / "cron" / "empty"
    place.mkdir(parents=True)
    place.with_name("cron.d").symlink_to("empty")
    for name, rest in tables.items():
        (place / name).write_bytes(b"@reboot root touch %s/%s\n%s" % (bytes(ran), name.encode(), rest))
        (place / name).chmod(0o664 if name == "writable" else 0o644)
    os.link(place / "linked", tmp_path / "other")
    os.chown(place / "owned", 65534, -1)
    for name, uid in (("link", 0), ("link-of-nobody", 65534)):
        shutil.move(place / name, tmp_path / name)
        (place / name).symlink_to(tmp_path / name)
        os.lchown(place / name, uid, -1)
    told = {name for name in tables if ignored(place / name)}
    daemon = private_cron(tmp_path / "cron", f"@reboot root sleep 1; touch {ran}/last\n")
    try:
        wait_until((ran / "last").exists)
    finally:
        daemon.send_signal(signal.SIGKILL)
        daemon.wait()
    assert {path.name for path in ran.iterdir()} - {"last"} == tables.keys() - told == {"good", "good_2-B", "link"}


def ignored(path: Path) -> bool:
    """Tell whether lint says of a file that Debian's cron ignores it, whole."""
    lost = ("ignores the whole table", "no line of this table")
    here = os.path.abspath(path).replace("/empty/", "/cron.d/")
    place = files.place_of(here)
    table = Table(here, parse.parse(path.read_bytes(), system=True), system=True, place=place)
    zone = zones.load("UTC").zone
    facts = Host(
        daemons.DEBIAN, zone, 0, lambda name: zone, lambda program, path, user: "", host.is_account, lambda job: None,
        lambda job, user: (),
    )  # fmt: skip
    return any(each in finding.happens for finding in lint.judge(table, facts) for each in lost)


# What wrap writes

COMMANDS = [
    b"/bin/x --all 'a b' \"c\"",
    b"cd / && x | y > z",
    b"echo 'it'\\''s' \"$HOME\" `x`",
    b"date +\\%F '\\%' \"\\%s\"",
    b"x%line one%line \\% two",
    b"a \\\\ b \\' c \\\\\\\\ 'd\\\\'",
    b"a 'b\\' c",
    b"x  # not a comment to cron",
    b"A=1 B='2' x; exit 3",
    b"-x 'y'",
    b"'",
    b'x "unclosed %rest"',
    b"\xc3\xa4\xff x",
    b"x {a,b} *? [c] ~ !",
    b"x \\",
]
RECORDER = '#!/bin/sh\nprintf %s "$2" > "$OUT/$ID"; cat > "$OUT/$ID.in"\n'
# Called as runguard: what it was asked to run, as sh would be given it, or its words.
STUB = """#!/bin/sh
shift
while [ "$1" != -- ] && [ "$1" != -c ]; do shift; done
[ "$1 $2" != "-c --" ] || shift
if [ "$1" = -c ] || [ "$2" = "-c" ] || [ "$#" = 2 ] && [ "$1" = -c ]; then
    printf %s "$2" > "$OUT/$ID.shell"
else
    shift
    : > "$OUT/$ID.words"
    for each; do printf '%s\\0' "$each" >> "$OUT/$ID.words"; done
fi
cat > "$OUT/$ID.in"
"""


@needs_debian
def test_the_shell_gets_from_debians_cron_what_it_got_before(tmp_path: Path) -> None:
    for name, text in (("sh", RECORDER), ("runguard", STUB)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    out = tmp_path / "out"
    out.mkdir()
    form = Form(True, daemons.DEBIAN, str(tmp_path / "runguard").encode())
    jobs = b"".join(b"ID=%s%d\n@reboot root %s\n" % (b"new", at, each) for at, each in enumerate(COMMANDS))
    edited = wrap(jobs, form)
    assert (len(edited.changed), edited.left) == (len(COMMANDS), [])
    before = jobs.replace(b"ID=new", b"ID=old")
    table = b"OUT=%s\n%sSHELL=%s\n%s" % (bytes(out), edited.data, bytes(tmp_path / "sh"), before)
    daemon = private_cron(tmp_path / "cron", table)
    try:
        wait_until(lambda: len(list(out.glob("*.in"))) == 2 * len(COMMANDS))
        wait_until(lambda: all(_written(out, at) for at in range(len(COMMANDS))))
    finally:
        daemon.send_signal(signal.SIGKILL)
        daemon.wait()
    for at in range(len(COMMANDS)):
        old = (out / f"old{at}").read_bytes()
        shell, words = out / f"new{at}.shell", out / f"new{at}.words"
        if words.exists():
            assert words.read_bytes().split(b"\0")[:-1] == [
                each.encode("latin-1") for each in shlex.split(old.decode("latin-1"))
            ]
        else:
            assert shell.read_bytes() == old
        assert (out / f"new{at}.in").read_bytes() == (out / f"old{at}.in").read_bytes()
    assert (out / "new4.in").read_bytes() == b"line one\nline % two\n"


def _written(out: Path, at: int) -> bool:
    return any((out / f"new{at}.{end}").exists() for end in ("shell", "words")) and (out / f"old{at}").exists()


@needs_debian
def test_debians_cron_takes_a_wrapped_table(tmp_path: Path) -> None:
    form = Form(False, daemons.DEBIAN, b"/usr/local/bin/runguard", "Europe/London")
    table = b"MAILTO=x\n" + b"".join(b"*/5  *\t* * mon-fri " + each + b"\n@daily " + each + b"\n" for each in COMMANDS)
    assert len(wrap(table, form).changed) == 2 * len(COMMANDS)
    assert debian_takes(tmp_path, [wrap(table, form).data]) == [""]


@needs_busybox
def test_busybox_takes_a_wrapped_table(tmp_path: Path) -> None:
    form = Form(False, daemons.BUSYBOX, b"/usr/local/bin/runguard")
    table = b"".join(b"*/5  *\t* * mon-fri " + each + b"\n" for each in COMMANDS)
    lines = parse.parse(wrap(table, form).data, percent=False)
    wrapped = [line for line in lines if b"runguard" in line.command]
    assert len(wrapped) == len(COMMANDS) - 2  # but those with # and a last backslash
    read = busybox_reads(tmp_path, [line.text.decode("latin-1") for line in wrapped])
    assert all(found is not None and len(found) == 5 for found in read)


@pytest.mark.long
@needs_busybox
def test_busybox_fires_a_wrapped_line_and_its_window_is_answered(shell: Shell) -> None:
    program = shell.directory / "runguard"
    exports = "".join(f"export {name}='{value}'\n" for name, value in shell.environ.items())
    program.write_text(f'#!/bin/sh\n{exports}exec "{sys.executable}" -m runguard "$@"\n')
    program.chmod(0o755)
    form = Form(False, daemons.BUSYBOX, str(program).encode(), "UTC")
    table = f"* * * * * cd {shell.directory} && date +%F > day && echo 'it'\\''s' > said\n".encode()
    (shell.directory / "tables").mkdir()
    (shell.directory / "tables" / "root").write_bytes(wrap(table, form).data)
    daemon = busybox_crond(shell.directory / "tables")
    try:
        wait_until(lambda: [run["outcome"] for run in shell.runs_so_far()] == ["succeeded"], limit_s=75)
        [run] = shell.runs_so_far()
    finally:
        daemon.send_signal(signal.SIGKILL)
        daemon.wait()
    assert (run["job"], run["window"]["due"][-4:]) == ("date", ":00Z")
    assert (shell.directory / "said").read_text() == "it's\n"
    assert (shell.directory / "day").read_text().count("-") == 2


# The command line, on a user's table


@pytest.fixture
def program() -> Iterator[str]:
    """A program called runguard that any account may start."""
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        (Path(place) / "runguard").touch()
        (Path(place) / "runguard").chmod(0o755)
        yield f"{place}/runguard"


@needs_debian
def test_a_users_table_is_wrapped_and_unwrapped_through_crontab(shell: Shell, program: str) -> None:
    spool = shell.directory / "spool"
    table = "MAILTO=ops\n30 2 * * *  /opt/letters/send --all\n*/5 * * * *\tcd /srv && ./poll%in\n"
    spool.mkdir()
    spool.chmod(0o1730)
    (spool / "nobody").write_text("# DO NOT EDIT\n# (x)\n# (y)\n" + table)
    shell.prefix = tuple(with_spool(spool))
    wrapping = shell("wrap", "--user", "nobody", "--runguard", program, "--apply")
    stdout = wrapping.stdout
    assert (wrapping.returncode, wrapping.stderr) == (0, "")
    [kept] = (shell.state / "crontabs").iterdir()
    assert stdout == f"crontab of nobody: 2 lines guarded; as it was: {kept}\n"
    assert kept.read_text() == table
    written = (spool / "nobody").read_text()
    assert written.partition("MAILTO")[2].splitlines()[1:] == [
        f"30 2 * * *  {program} run --job send --schedule '30 2 * * *' -- /opt/letters/send --all",
        f"*/5 * * * *\t{program} run --job poll --schedule '*/5 * * * *' -c 'cd /srv && ./poll'%in",
    ]
    found = (spool / "nobody").stat()
    assert (found.st_mode & 0o7777, found.st_uid) == (0o600, 65534)
    assert shell("unwrap", "--user", "nobody", "--apply").returncode == 0
    assert (spool / "nobody").read_text().endswith("\n" + table)


@needs_debian
def test_a_table_that_crontab_does_not_take_stays_as_it_was(shell: Shell, program: str) -> None:
    spool = shell.directory / "spool"
    spool.mkdir()
    (spool / "nobody").write_text("30 2 * * * x\nMAILTO=\n")  # nobody installed that through crontab
    shell.prefix = tuple(with_spool(spool))
    done = shell("wrap", "--user", "nobody", "--runguard", program, "--apply")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        'runguard: crontab of nobody: "-":1: bad minute errors in crontab file, can\'t install.'
    )
    assert (spool / "nobody").read_text() == "30 2 * * * x\nMAILTO=\n"
    assert list((shell.state / "crontabs").iterdir()) == []


def test_unwrap_of_wrap_of_the_corpus_is_the_corpus() -> None:
    for path in sorted((Path(__file__).parents[1] / "data" / "crontabs").iterdir()):
        form = Form(path.name.startswith("system"), daemons.DEBIAN, b"/usr/local/bin/runguard")
        table = path.read_bytes()
        assert (path.name, unwrap(wrap(table, form).data, form).data) == (path.name, table)

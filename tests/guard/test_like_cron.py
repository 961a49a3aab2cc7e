"""`--like-cron`: what a command finds is what Debian's cron gives a job (entry.c and do_command.c)."""

from __future__ import annotations

import os
import pwd
import signal

import pytest

from crons import needs_debian
from shell import Shell, private_cron, wait_until

ACCOUNT = pwd.getpwuid(os.geteuid())
LIKE = ("run", "--like-cron", "-j", "try", "-c")


def test_the_command_finds_crons_environment_and_its_runs_variables(shell: Shell) -> None:
    done = shell(*LIKE, "env", environ={"FOO": "bar", "LANG": "C.UTF-8", "HOME": "/nowhere"})
    found = dict(line.split("=", 1) for line in done.stdout.splitlines())
    ours = {name for name in found if name.startswith("RUNGUARD_")}
    assert {name: found.get(name) for name in ("HOME", "LOGNAME", "SHELL", "PATH", "FOO")} == {
        "HOME": ACCOUNT.pw_dir, "LOGNAME": ACCOUNT.pw_name, "SHELL": "/bin/sh", "PATH": "/usr/bin:/bin", "FOO": None,
    }  # fmt: skip
    assert ours == {"RUNGUARD_RUN_ID", "RUNGUARD_JOB", "RUNGUARD_ATTEMPT", "RUNGUARD_TRIGGER", "RUNGUARD_ITEMS"}


@needs_debian
@pytest.mark.skipif(
    not all(map(os.path.exists, ("/etc/environment", "/etc/default/locale"))), reason="needs files to put others over"
)
def test_the_world_is_the_one_of_debians_cron(shell: Shell) -> None:
    place = shell.directory / "cron"
    place.mkdir()
    (place / "environment").write_text(
        "PATH=/opt\nA='b c'\nexport B=\"d\" # e\n#C=d\nD=\nE-F=g\n  G = h\nH='i'j\nI=k=\"l\"\nJ=m'\nK=n  \nL='\n"
        'M=o\\\np\nSHELL=/bin/bash\nHOME=/x\n\tN=""\n=q\nO\n'
    )
    (place / "locale").write_text('LANG=de_DE.UTF-8\nLC_TIME="C"\n')
    asked = "env | grep -v -e ^RUNGUARD -e ^_= | sort; umask; pwd -P; tty"
    daemon = private_cron(place, f"@reboot root ({asked}) >{place}/told~ 2>&1; mv {place}/told~ {place}/told\n")
    try:
        wait_until((place / "told").exists)
    finally:
        daemon.send_signal(signal.SIGKILL)
        daemon.wait()
    files = 'mount --bind "$0/environment" /etc/environment && mount --bind "$0/locale" /etc/default/locale'
    shell.prefix = ("unshare", "--mount", "sh", "-c", f'umask 077 && {files} && exec "$@"', str(place))
    told = (place / "told").read_text()
    assert "LANG=de_DE.UTF-8\n" in told
    assert shell(*LIKE, asked).stdout == told


def test_it_starts_in_the_home_directory(shell: Shell) -> None:
    assert shell(*LIKE, "pwd -P").stdout == os.path.realpath(ACCOUNT.pw_dir) + "\n"
    [run] = shell.json("show", "1")
    assert (run["cwd"], run["path"]) == (os.path.realpath(ACCOUNT.pw_dir), "/usr/bin:/bin")


def test_a_program_that_only_your_path_finds_is_not_found(shell: Shell) -> None:
    program = shell.directory / "bin" / "mine"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho found\n")
    program.chmod(0o755)
    environ = {"PATH": f"{program.parent}:/usr/bin:/bin"}
    assert shell("run", "mine", environ=environ).stdout == "found\n"
    done = shell("run", "--like-cron", "mine", environ=environ)
    assert done.stderr == "runguard: mine: cannot run 'mine': not found; PATH is '/usr/bin:/bin'\n"
    assert done.returncode == 127


def test_on_a_terminal_the_command_has_none_and_reads_nothing(shell: Shell) -> None:
    seen = shell.on_terminal(*LIKE, "cat; tty; (: < /dev/tty) 2>/dev/null && echo terminal; ps -o tt= -p $$; echo end")
    assert [line.strip() for line in seen.splitlines()] == ["not a tty", "?", "end"]


def test_what_is_piped_in_stands_for_what_is_behind_the_percent(shell: Shell) -> None:
    read_fd, write_fd = os.pipe()
    os.write(write_fd, b"Dear Joe,\n")
    os.close(write_fd)
    assert shell(*LIKE, "cat", stdin=read_fd).stdout == "Dear Joe,\n"
    os.close(read_fd)


def test_without_a_schedule_a_trial_answers_no_window(shell: Shell) -> None:
    shell(*LIKE, "true")
    [run] = shell.json("history")
    assert (run["job"], run["window"], run["outcome"]) == ("try", None, "succeeded")

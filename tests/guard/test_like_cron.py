"""`--like-cron`: what a command finds is what Debian's cron gives a job (entry.c and do_command.c)."""

from __future__ import annotations

import os
import pwd

from shell import Shell

ACCOUNT = pwd.getpwuid(os.geteuid())
LIKE = ("run", "--like-cron", "-j", "try", "-c")


def test_the_command_finds_crons_environment_and_its_runs_variables(shell: Shell) -> None:
    done = shell(*LIKE, "env", environ={"FOO": "bar", "LANG": "C.UTF-8", "HOME": "/nowhere"})
    found = dict(line.split("=", 1) for line in done.stdout.splitlines())
    ours = {name for name in found if name.startswith("RUNGUARD_")}
    assert {name: value for name, value in found.items() if name not in ours | {"PWD"}} == {
        "HOME": ACCOUNT.pw_dir, "LOGNAME": ACCOUNT.pw_name, "SHELL": "/bin/sh", "PATH": "/usr/bin:/bin",
    }  # fmt: skip
    assert ours == {"RUNGUARD_RUN_ID", "RUNGUARD_JOB", "RUNGUARD_ATTEMPT", "RUNGUARD_TRIGGER", "RUNGUARD_ITEMS"}


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

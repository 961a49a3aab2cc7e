"""How the process ends: help, version, bugs, interruptions."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from typing import Any

import pytest

from runguard.cli import fast

Entry = Callable[..., tuple[str, str, dict[str, Any]]]


@pytest.mark.parametrize("arguments", [["-h"], ["--help"], ["run", "-h"], ["history", "--help"], ["show", "-h"]])
def test_help_ends_with_the_exit_statuses(shell: Any, arguments: list[str]) -> None:
    done = shell(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    last = done.stdout.rpartition("\n\n")[2].splitlines()
    assert last[0] == "EXIT STATUSES:"
    assert any(line.split()[0] == "2" for line in last[1:])


def test_help_starts_nothing(shell: Any) -> None:
    assert shell("run", "-qh", "true").stdout.startswith("Usage: runguard run ")


def test_the_options_of_the_command_are_its_own(shell: Any) -> None:
    assert shell("run", "-j", "x", "echo", "-h", "--version").stdout == "-h --version\n"


def test_the_version(shell: Any) -> None:
    assert shell("--version").stdout == "runguard 0.1.0\n"


def test_the_shell_can_complete_words(shell: Any) -> None:
    words = {"COMP_WORDS": "runguard run --output o", "COMP_CWORD": "3", "_RUNGUARD_COMPLETE": "bash_complete"}
    assert shell(environ=words).stdout == "plain,on-failure\n"


def test_the_commands_own_status_is_ours(shell: Any) -> None:
    assert shell("run", "-cj", "x", "exit 7").returncode == 7


def test_a_bug_keeps_its_traceback_and_is_70(capfd: pytest.CaptureFixture[str]) -> None:
    assert fast.answer(["history"], None) == 70  # type: ignore[arg-type]
    said = capfd.readouterr().err
    assert said.startswith("Traceback (most recent call last):\n")
    assert said.rstrip().splitlines()[-1].startswith("TypeError: ")


def test_an_interrupted_query_is_130(shell: Any, started: Entry, finished: Entry) -> None:
    shell.write(*(entry for n in range(1, 500) for entry in (started(n), finished(n))))
    reading, writing = os.pipe()
    command = [sys.executable, "-m", "runguard", "history", "--json", "--since", "2026-01-01"]
    process = subprocess.Popen(command, env=shell.environ, stdout=writing, stderr=subprocess.PIPE)
    poll = select.poll()
    poll.register(writing, select.POLLOUT)
    while poll.poll(0):  # until the pipe is full, so that the query waits for its reader
        select.select([], [], [], 0.01)
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    held = struct.unpack("i", fcntl.ioctl(reading, termios.FIONREAD, b"\0\0\0\0"))[0]
    assert held >= 4096
    os.close(writing)
    os.read(reading, 1 << 20)
    os.close(reading)
    assert process.communicate(timeout=60)[1] == b""
    assert process.returncode == 130


def test_nothing_is_said_where_nothing_is_wrong(shell: Any) -> None:
    done = shell("run", "-j", "x", "-s", "* * * * *", "-z", "Europe/London", "true")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_every_command_reads_the_same_configuration(shell: Any) -> None:
    shell.config.write_text(f'store = "{shell.directory}/own.sqlite"\n[jobs.x]\nconflict_exit = 9\n')
    assert shell("run", "-j", "x", "true").returncode == 0
    assert [run["job"] for run in shell.json("history")] == ["x"]
    assert not (shell.state / "db").exists()


def test_the_output_of_a_run_is_kept_and_shown(shell: Any) -> None:
    shell("run", "-cj", "x", "printf 'a\\001b'; printf err >&2")
    assert shell("show", "--output", "1").stdout in ("a\x01berr", "erra\x01b")

"""A real shell completes commands, options, choices, jobs and runs: quickly and silently."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from runguard.cli import commands
from shell import Shell


@pytest.fixture
def desk(shell: Shell) -> Shell:
    """A job on record with two runs, another in the configuration, and the command on the PATH."""
    program = shell.directory / "bin" / "runguard"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m runguard "$@"\n')
    program.chmod(0o755)
    shell.environ["PATH"] = f"{program.parent}:/usr/bin:/bin"
    shell.config.write_text('[jobs.backup]\nschedule = "@daily"\n')
    for _ in range(2):
        shell("run", "-j", "letters", "--", "true")
    return shell


def offered(shell: Shell, *words: str) -> list[str]:
    """Return what bash offers for the last of the words that follow `runguard`."""
    if not shutil.which("bash"):
        pytest.skip("bash is not installed")
    script = """
    eval "$(runguard completion bash)" || exit
    COMP_WORDS=(runguard "$@") COMP_CWORD=$#
    _runguard_completion runguard
    printf '%s\\n' "${COMPREPLY[@]}"
    """
    done = subprocess.run(
        ["bash", "-c", script, "bash", *words], env=shell.environ, cwd=shell.directory, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("d",), ["defect", "doctor"]),
        (("run", "--kil"), ["--kill-after"]),
        (("run", "--overlap", ""), ["skip", "wait", "kill", "allow"]),
        (("history", "--format", "j"), ["json", "jsonl"]),
        (("history", ""), ["backup", "letters"]),
        (("run", "-j", "l"), ["letters"]),
        (("check", "--job", "b"), ["backup"]),
        (("show", ""), ["2", "1"]),
        (("rerun", "--reason", "x", ""), ["2", "1", "backup", "letters"]),
        (("run", "-z", "Europe/Lond"), ["Europe/London"]),
        (("completion", ""), ["bash", "zsh", "fish"]),
    ],
)
def test_bash_completes_a_word(desk: Shell, words: tuple[str, ...], expected: list[str]) -> None:
    assert offered(desk, *words) == expected


@pytest.mark.parametrize("spoil", ["a broken store", "a broken configuration", "a state directory of nobody"])
def test_whatever_is_wrong_nothing_is_said(desk: Shell, spoil: str) -> None:
    if spoil == "a broken store":
        (desk.state / "db" / "runguard.sqlite").write_bytes(b"text" * 999)
    elif spoil == "a broken configuration":
        desk.config.write_text("[jobs")
    else:
        desk.environ["RUNGUARD_STATE_DIR"] = "nowhere"
    assert offered(desk, "show", "x") == []


def test_a_line_that_means_nothing_yet_is_answered_with_silence(desk: Shell) -> None:
    assert offered(desk, "nosuch", "") == []


def test_what_can_be_no_job_is_not_offered(desk: Shell) -> None:
    desk.config.write_text('[jobs."$(touch x)"]\n[jobs."a b"]\n[jobs.backup]\n')
    assert offered(desk, "history", "") == ["backup", "letters"]


def test_nothing_is_written(shell: Shell) -> None:
    shell.config.write_text('[jobs.backup]\nschedule = "@daily"\n')
    asked = {"_RUNGUARD_COMPLETE": "bash_complete", "COMP_WORDS": "runguard history ", "COMP_CWORD": "2"}
    assert shell(environ=asked).stdout == "plain,backup\n"
    assert not shell.state.exists()


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_a_shell_reads_the_script_without_a_complaint(shell: Shell, name: str) -> None:
    done = shell("completion", name)
    assert (done.returncode, done.stderr) == (0, "")
    if not shutil.which(name):
        pytest.skip(f"{name} is not installed")
    read = subprocess.run([name, "-n"], input=done.stdout, capture_output=True, text=True, check=False)
    assert (read.returncode, read.stderr) == (0, "")


def test_a_shell_that_is_not_known_is_named_with_the_others(shell: Shell) -> None:
    done = shell("completion", "tcsh")
    assert (done.returncode, done.stdout) == (2, "")
    assert "bash, zsh, fish" in done.stderr.replace("or ", "")


def test_only_the_command_that_is_asked_for_is_loaded() -> None:
    script = "import sys; from runguard.cli.fast import main; sys.argv = ['runguard']\nimport os\n"
    script += "sys.stdout = sys.stderr\nfrom runguard.cli import commands\n"
    script += "commands._complete(dict(os.environ)); print('runguard.cli.export' in sys.modules)"
    asked = {"_RUNGUARD_COMPLETE": "bash_complete", "COMP_WORDS": "runguard show --f", "COMP_CWORD": "2"}
    done = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, **asked, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr.endswith("False\n")
    assert "export" in commands.NAMES

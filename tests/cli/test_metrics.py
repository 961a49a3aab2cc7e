"""`metrics` as a process: the file for the textfile collector."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from shell import Shell


def value(text: str, name: str) -> str:
    [found] = re.findall(rf"^runguard_{name}\{{.*\}} (.*)$", text, re.MULTILINE)
    return str(found)


def test_the_metrics_go_to_stdout(shell: Shell) -> None:
    shell("run", "-j", "a", "--", "sh", "-c", "exit 3")
    done = shell("metrics")
    assert (done.returncode, done.stderr) == (0, "")
    assert value(done.stdout, "last_exit_status") == "3"
    assert value(done.stdout, "store_readable") == "1"
    assert f'store="{shell.state}/db/runguard.sqlite"' in done.stdout


def test_the_file_is_replaced_whole_and_for_everybody_to_read(shell: Shell) -> None:
    shell("run", "-j", "a", "--", "true")
    folder = shell.directory / "collector"
    folder.mkdir()
    (folder / "cron.prom").write_text("old\n")
    before = (folder / "cron.prom").stat().st_ino
    done = shell("metrics", "-o", str(folder / "cron.prom"), preexec_fn=lambda: os.umask(0o077))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert [path.name for path in folder.iterdir()] == ["cron.prom"]
    found = (folder / "cron.prom").stat()
    assert (found.st_mode & 0o777, found.st_ino != before) == (0o644, True)
    assert value((folder / "cron.prom").read_text(), "last_exit_status") == "0"


def test_a_run_that_goes_on_is_told_while_it_does(shell: Shell) -> None:
    command = [sys.executable, "-m", "runguard", "run", "-j", "a", "--", "sh", "-c", "echo; read line"]
    with subprocess.Popen(command, env=shell.environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as guard:
        assert guard.stdout is not None
        guard.stdout.readline()
        assert float(value(shell("metrics").stdout, "running_since_timestamp_seconds")) > 1_700_000_000
        guard.communicate(b"\n")
    assert value(shell("metrics").stdout, "running_since_timestamp_seconds") == "NaN"


def test_jobs_of_the_file_are_told_before_they_ever_ran(shell: Shell) -> None:
    shell.config.write_text('[jobs.letters]\nschedule = "30 2 * * *"\ntimezone = "Europe/London"\n')
    done = shell("metrics")
    assert (done.returncode, done.stderr) == (0, "")
    assert value(done.stdout, "last_success_timestamp_seconds") == "0"


def test_where_nothing_is_recorded_there_are_no_jobs_and_it_is_said(shell: Shell) -> None:
    done = shell("metrics")
    assert (done.returncode, done.stderr) == (0, shell.nothing_recorded)
    assert value(done.stdout, "store_readable") == "0"
    assert "job_name" not in done.stdout


def test_the_file_says_that_the_records_cannot_be_read_and_keeps_what_it_said_of_jobs(shell: Shell) -> None:
    shell("run", "-j", "a", "--", "true")
    target = shell.directory / "cron.prom"
    shell("metrics", "-o", str(target))
    before = target.read_text()
    (shell.state / "db" / "runguard.sqlite").write_bytes(b"no database")
    done = shell("metrics", "-o", str(target))
    assert done.returncode == 74
    assert "the file is corrupt or no SQLite database" in done.stderr
    assert target.read_text() == before.removesuffix("1\n") + "0\n"


def test_a_mistake_in_the_configuration_leaves_the_file_alone(shell: Shell) -> None:
    target = shell.directory / "cron.prom"
    target.write_text("old\n")
    shell.config.write_text("[jobs.a]\nschedul = 1\n")
    assert shell("metrics", "-o", str(target)).returncode == 78
    assert target.read_text() == "old\n"


def test_a_file_that_cannot_be_written_stays_as_it_was(shell: Shell) -> None:
    shell("run", "-j", "a", "--", "true")
    target = shell.directory / "cron.prom"
    target.write_text("old\n")
    done = shell("metrics", "-o", str(target), preexec_fn=_small_files)
    assert (done.returncode, done.stderr) == (74, f"runguard: {target} cannot be written: File too large\n")
    assert target.read_text() == "old\n"
    assert not list(shell.directory.glob(".runguard-*"))


def _small_files() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))


def test_a_directory_that_is_missing_is_named(shell: Shell) -> None:
    shell("run", "-j", "a", "--", "true")
    done = shell("metrics", "-o", "/nowhere/cron.prom")
    assert (done.returncode, done.stderr) == (
        74,
        "runguard: /nowhere/cron.prom cannot be written: No such file or directory\n",
    )


@pytest.mark.parametrize("kind", ["directory", "fifo", "link"])
def test_what_is_no_regular_file_is_never_replaced(shell: Shell, kind: str) -> None:
    target = shell.directory / "cron.prom"
    {
        "directory": Path.mkdir,
        "fifo": os.mkfifo,
        "link": lambda path: path.symlink_to("/dev/stdout"),
    }[kind](target)
    done = shell("metrics", "-o", str(target))
    assert done.returncode == 2
    assert done.stderr.startswith(f"runguard: metrics: --output: {target} is ")
    assert not target.is_file() or target.is_symlink()


def test_a_name_that_the_node_exporter_would_not_read_is_remarked(shell: Shell) -> None:
    shell("run", "-j", "a", "--", "true")
    done = shell("metrics", "-o", str(shell.directory / "cron.txt"))
    assert done.returncode == 0
    assert done.stderr.endswith("cron.txt does not end in .prom, so the node exporter will not read it\n")

"""The store fails: the job runs, its status is kept, the record is brought over later, and nothing is silent."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from disks import fill
from shell import Shell

EXIT_5 = ("sh", "-c", "echo out; exit 5")

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a file system")


@root_only
def test_on_a_full_disk_the_job_runs_and_is_recorded_in_the_reserve(shell: Shell, small_state: Path) -> None:
    assert shell("run", "-j", "x", "--", "true").returncode == 0
    ballast = fill(small_state)
    done = shell("run", "-j", "x", "--", *EXIT_5)
    assert (done.returncode, done.stdout) == (5, "out\n")
    assert "recording in the journal instead" in done.stderr
    ballast.unlink()
    assert shell("run", "-j", "x", "--", "true").returncode == 0
    assert [(run["outcome"], run["exit_status"]) for run in shell.json("history")] == [
        ("succeeded", 0),
        ("failed", 5),
        ("succeeded", 0),
    ]


@root_only
def test_a_disk_full_from_the_beginning_leaves_no_place_for_a_trace_and_nothing_runs(
    shell: Shell, small_state: Path
) -> None:
    fill(small_state)
    done = shell("run", "-j", "x", "--", "touch", "ran")
    assert done.returncode in (74, 78)  # no trace, or not even a lock file
    assert not (shell.directory / "ran").exists()
    assert done.stderr.startswith("runguard: x: ")


@root_only
def test_a_window_answered_on_a_full_disk_is_not_run_again(shell: Shell, small_state: Path) -> None:
    daily = ("run", "-j", "d", "-s", "0 0 * * *", "-z", "UTC")
    shell(*daily, "--scheduled-at", "2026-03-01T00:00Z", "--", "true")
    fill(small_state)
    second = (*daily, "--scheduled-at", "2026-03-02T00:00Z")
    assert shell(*second, "--", "true").returncode == 0
    again = shell(*second, "--", "touch", "again")
    assert again.returncode == 0
    assert not (shell.directory / "again").exists()


def test_a_corrupt_store_is_neither_repaired_nor_begun_anew(shell: Shell) -> None:
    shell("run", "-j", "x", "--", "true")
    database = shell.state / "db" / "runguard.sqlite"
    broken = b"not a database" + database.read_bytes()[14:]
    database.write_bytes(broken)
    done = shell("run", "-j", "x", "--", *EXIT_5)
    assert (done.returncode, done.stdout) == (5, "out\n")
    assert "recording in the journal instead" in done.stderr
    assert database.read_bytes() == broken
    assert len(list((shell.state / "journal").iterdir())) == 1


@pytest.mark.parametrize("how", ["deleted", "emptied", "replaced by an older copy"])
def test_a_store_that_lost_its_history_is_not_begun_anew(shell: Shell, how: str) -> None:
    shell("run", "-j", "x", "--", "true")
    database = shell.state / "db" / "runguard.sqlite"
    older = database.read_bytes()
    shell("run", "-j", "x", "--", "true")
    if how == "deleted":
        database.unlink()
    else:
        database.write_bytes(older if how == "replaced by an older copy" else b"")
    done = shell("run", "-j", "x", "--", *EXIT_5)
    assert done.returncode == 5
    assert "history lost" in done.stderr
    assert len(list((shell.state / "journal").iterdir())) == 1


def test_a_newer_schema_is_not_written(shell: Shell) -> None:
    shell("run", "-j", "x", "--", "true")
    database = sqlite3.connect(shell.state / "db" / "runguard.sqlite")
    database.execute("PRAGMA user_version = 99")
    database.close()
    done = shell("run", "-j", "x", "--", *EXIT_5)
    assert done.returncode == 5
    assert "newer" in done.stderr
    assert shell("history").returncode == 0


def test_the_journal_comes_into_the_ledger_with_the_output(shell: Shell) -> None:
    shell("run", "-j", "x", "--", "true")
    database = shell.state / "db" / "runguard.sqlite"
    aside = shell.directory / "aside"
    database.rename(aside)
    assert shell("run", "-j", "x", "--", *EXIT_5).returncode == 5
    aside.rename(database)
    assert shell("run", "-j", "x", "--", "true").returncode == 0
    assert [run["outcome"] for run in shell.json("history")] == ["succeeded", "failed", "succeeded"]
    assert shell("show", "2", "--output").stdout == "out\n"
    assert not list((shell.state / "journal").iterdir())
    assert not list((shell.state / "db" / "runs").iterdir())


def test_a_job_may_refuse_to_run_without_its_store(shell: Shell) -> None:
    shell.config.write_text('[jobs.x]\non_store_failure = "refuse"\n')
    shell("run", "-j", "x", "--", "true")
    (shell.state / "db" / "runguard.sqlite").write_bytes(b"garbage")
    done = shell("run", "-j", "x", "--", "touch", "ran")
    assert done.returncode == 74
    assert not (shell.directory / "ran").exists()


@pytest.fixture
def others() -> Iterator[Shell]:
    """A state directory of another user; pytest's own directories are closed to them."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("needs root and setpriv")
    directory = Path(tempfile.mkdtemp())
    shell = Shell(directory)
    os.chown(directory, 1234, 1234)
    shell.prefix = ("setpriv", "--reuid=1234", "--regid=1234", "--clear-groups")
    if shell("--version").returncode != 0:
        pytest.skip("another user may not read this interpreter or the sources")
    yield shell
    shutil.rmtree(directory)


def test_a_store_that_may_not_be_written_sends_the_record_to_the_journal(others: Shell) -> None:
    assert others("run", "-j", "x", "--", "true").returncode == 0
    database = others.state / "db" / "runguard.sqlite"
    database.chmod(0o400)
    done = others("run", "-j", "x", "--", *EXIT_5)
    assert (done.returncode, done.stdout) == (5, "out\n")
    assert "recording in the journal instead" in done.stderr
    assert len(others.json("history")) == 1
    database.chmod(0o600)
    assert others("run", "-j", "x", "--", "true").returncode == 0
    assert len(others.json("history")) == 3


@root_only
def test_on_a_read_only_file_system_nothing_runs_and_queries_still_work(shell: Shell, small_state: Path) -> None:
    shell("run", "-j", "x", "--", "true")
    subprocess.run(["mount", "-o", "remount,ro", small_state], check=True)
    done = shell("run", "-j", "x", "--", "touch", "ran")
    assert done.returncode in (74, 78)
    assert not (shell.directory / "ran").exists()
    assert len(shell.json("history")) == 1


def test_file_size_limits_are_a_full_disk(shell: Shell) -> None:
    shell("run", "-j", "x", "--", "true")
    line = f"ulimit -f 8; exec {sys.executable} -m runguard run -j x -- sh -c 'echo out; exit 5'"
    done = subprocess.run(
        ["sh", "-c", line], env=shell.environ, cwd=shell.directory, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (5, "out\n")
    assert "recording in the journal instead" in done.stderr


@root_only
def test_a_window_done_before_the_disk_was_full_is_not_run_again(shell: Shell, small_state: Path) -> None:
    daily = ("run", "-j", "d", "-s", "0 0 * * *", "-z", "UTC", "--scheduled-at", "2026-03-01T00:00Z")
    shell(*daily, "--", "true")
    fill(small_state)
    again = shell(*daily, "--", "touch", "again")
    assert again.returncode == 0
    assert not (shell.directory / "again").exists()


@root_only
def test_a_fault_of_the_store_is_said_once(shell: Shell, small_state: Path) -> None:
    shell("run", "-j", "x", "--", "true")
    fill(small_state)
    said = shell("run", "-j", "x", "--", "true").stderr.splitlines()
    assert len(said) == len(set(said))

"""Directories of the state in which others could plant something: a start refuses them, or says so and does without."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from shell import Shell

UID = os.geteuid()
PLANTED = "00000000-0000-4000-8000-000000000001"


def open_to_all(path: Path) -> str:
    path.chmod(0o777)
    return "others may write in it (mode 0777); chmod 700 it"


def link_elsewhere(path: Path) -> str:
    path.rename(path.with_name(f"{path.name}.real"))
    path.symlink_to(f"{path.name}.real")
    return "it is a symbolic link"


flawed = pytest.mark.parametrize("spoil", [open_to_all, link_elsewhere])
Spoil = Callable[[Path], str]


@flawed
@pytest.mark.parametrize(
    ("name", "what"),
    [("db", "state directory"), ("db/locks", "lock"), ("db/runs", "lock")],
    ids=["db", "locks", "runs"],
)
def test_nothing_starts_where_locks_and_run_files_could_be_planted(
    shell: Shell, name: str, what: str, spoil: Spoil
) -> None:
    shell("run", "-j", "a", "--", "true")
    why = spoil(shell.state / name)
    done = shell("run", "-j", "a", "--", "touch", "ran")
    assert done.returncode == 78
    assert f"{what} {shell.state}/{name}: {why} (uid {UID}); nothing was started" in done.stderr
    assert not (shell.directory / "ran").exists()


@flawed
def test_a_line_that_others_could_have_put_in_the_journal_is_not_believed(shell: Shell, spoil: Spoil) -> None:
    daily = ("run", "-j", "a", "-s", "0 0 * * *", "--scheduled-at", "2026-03-01T00:00Z", "-z", "UTC")
    shell(*daily, "--", "true")
    run = shell.json("history")[0]
    [start, finish] = [{**entry, "run_id": PLANTED} for entry in shell.entries(run["run_id"])]
    start["window"] = {**start["window"], "key": "L2026-03-02T00:00"}
    planted = [{key: value for key, value in entry.items() if key not in ("seq", "prev")} for entry in (start, finish)]
    lines = "".join(json.dumps(entry) + "\n" for entry in planted)
    (shell.state / "journal" / f"{PLANTED}.jsonl").write_text(lines)
    why = spoil(shell.state / "journal")
    done = shell(*daily[:6], "2026-03-02T00:00Z", "-z", "UTC", "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert done.stderr == f"runguard: a: journal {shell.state}/journal: {why} (uid {UID}); it is not used\n"
    assert len(shell.json("history")) == 2


def test_with_a_journal_that_is_not_private_a_failing_store_is_recorded_in_the_reserve(shell: Shell) -> None:
    shell("run", "-j", "a", "--", "true")
    open_to_all(shell.state / "journal")
    store = shell.state / "db" / "runguard.sqlite"
    content = store.read_bytes()
    store.write_bytes(b"no database" * 100)
    assert shell("run", "-j", "a", "--", "true").returncode == 0
    assert list((shell.state / "journal").iterdir()) == []
    store.write_bytes(content)
    assert shell("run", "-j", "a", "--", "true").returncode == 0
    assert [run["outcome"] for run in shell.json("history")] == ["succeeded"] * 3


@flawed
def test_a_witness_that_others_could_have_written_is_a_remark(shell: Shell, spoil: Spoil) -> None:
    shell("run", "-j", "a", "--", "true")
    why = spoil(shell.state / "witness")
    done = shell("run", "-j", "a", "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert f"{shell.state}/witness: {why}; it cannot tell whether history was lost" in done.stderr


def test_no_store_is_begun_anew_beside_such_a_witness(shell: Shell) -> None:
    shell("run", "-j", "a", "--", "true")
    open_to_all(shell.state / "witness")
    (shell.state / "db" / "runguard.sqlite").unlink()
    shell.config.write_text("on_store_failure = 'refuse'\n")
    done = shell("run", "-j", "a", "--", "true")
    assert done.returncode == 74
    assert "history lost: the store is missing or empty" in done.stderr


@flawed
def test_a_configuration_that_others_could_have_cached_is_read_anew(shell: Shell, spoil: Spoil) -> None:
    shell("run", "-j", "a", "--", "true")
    why = spoil(shell.state / "cache")
    (before,) = ((path.name, path.read_bytes()) for path in (shell.state / "cache").iterdir())
    shell.config.write_text("timeout = '9s'\n")
    done = shell("run", "-j", "a", "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert done.stderr == (
        f"runguard: a: {shell.state}/cache: {why} (uid {UID}); the configuration is read without its cache\n"
    )
    assert [(path.name, path.read_bytes()) for path in (shell.state / "cache").iterdir()] == [before]


@flawed
def test_output_is_not_spooled_where_others_could_see_to_it(shell: Shell, spoil: Spoil) -> None:
    (shell.state / "spool").mkdir(mode=0o700, parents=True)
    shell.state.chmod(0o700)
    why = spoil(shell.state / "spool")
    done = shell("run", "-j", "a", "--output", "on-failure", "--", "echo", "said")
    assert (done.returncode, done.stdout) == (0, "said\n")
    assert f"could not be kept for later and was passed on: {shell.state}/spool: {why}" in done.stderr


def test_every_directory_is_made_0700_whatever_the_umask(shell: Shell) -> None:
    spooled = ("run", "-j", "a", "--output", "on-failure", "--", "echo", "said")
    done = shell(*spooled, preexec_fn=lambda: os.umask(0o777))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    made = [path for path in shell.state.rglob("*") if path.is_dir()]
    assert {str(path.relative_to(shell.state)): oct(path.stat().st_mode) for path in made} == dict.fromkeys(
        ("cache", "db", "db/locks", "db/runs", "journal", "spool", "witness"), "0o40700"
    )


def test_a_dry_run_writes_nothing(shell: Shell) -> None:
    shell.state.mkdir(mode=0o700)
    shell("run", "-j", "a", "--dry-run", "--", "true")
    assert list(shell.state.iterdir()) == []


def test_a_store_in_a_directory_where_all_may_write_is_refused(shell: Shell) -> None:
    public = shell.directory / "public"
    public.mkdir()
    public.chmod(0o777)
    done = shell("run", "-j", "x", "--store", str(public / "r.sqlite"), "--", "touch", "ran")
    assert done.returncode == 78
    assert "all may write in it (mode 0777)" in done.stderr
    assert not (shell.directory / "ran").exists()
    public.chmod(0o1777)
    assert shell("run", "-j", "x", "--store", str(public / "r.sqlite"), "--", "true").returncode == 0

"""What of a start is masked in its record, and what a record can hold."""

from __future__ import annotations

import pytest

from runguard.store.lines import HEADER
from shell import Shell

SECRET = "s3cr3t-of-ann"
PARENT = "5bf66975-d4c7-4bf5-bcc8-b8d8a82ea278"


def records_of(shell: Shell) -> bytes:
    return b"".join(path.read_bytes() for path in shell.state.rglob("*") if path.is_file())


def test_a_persons_reason_is_masked(shell: Shell) -> None:
    shell("run", "-j", "a", "--reason", f"again with {SECRET}", "--", "true", environ={"API_TOKEN": SECRET})
    assert shell.json("history")[0]["reason"] == "again with ***"
    assert SECRET.encode() not in records_of(shell)


def test_why_a_command_could_not_be_started_is_masked(shell: Shell) -> None:
    done = shell("run", "-j", "a", "--", f"/opt/{SECRET}", environ={"API_TOKEN": SECRET})
    assert (done.returncode, SECRET in done.stderr) == (127, False)
    run = shell.json("show", "1")[0]
    assert (run["why"], run["remarks"][0]) == (done.stderr.removeprefix("runguard: a: ").strip(),) * 2
    assert "/opt/***" in run["why"]
    assert SECRET.encode() not in records_of(shell)


def test_the_paths_of_program_and_scripts_are_masked(shell: Shell) -> None:
    large = shell.directory / f"large-{SECRET}"  # hashed beside the command
    large.write_bytes(bytes(2_000_000))
    (shell.directory / SECRET).write_text("exit 0\n")
    shell("run", "-j", "a", "--", "/bin/sh", SECRET, str(large), environ={"API_TOKEN": SECRET})
    paths = [code["path"] for code in shell.json("show", "1")[0]["inputs"]]
    assert paths == [f"{shell.directory}/***", f"{shell.directory}/large-***"]
    assert SECRET.encode() not in records_of(shell)


@pytest.mark.parametrize(
    ("given", "parent"),
    [
        (PARENT, PARENT),
        (PARENT.upper(), PARENT),
        ("outer", None),
        (SECRET, None),
        ("", None),
        (PARENT + "\n", None),
        (PARENT.replace("5", "\udcff"), None),
        (PARENT.replace("-", ""), None),
        ("a" * 100_000, None),
    ],
    ids=["uuid", "upper case", "word", "secret", "empty", "line end", "no UTF-8", "no hyphens", "huge"],
)
def test_an_inherited_run_counts_only_where_it_is_one(shell: Shell, given: str, parent: str | None) -> None:
    assert shell("run", "-j", "a", "--", "true", environ={"RUNGUARD_RUN_ID": given}).returncode == 0
    assert shell.json("show", "1")[0]["parent"] == parent
    assert shell("show", "1").returncode == 0


def test_a_parent_of_bytes_that_an_older_version_recorded_is_shown(shell: Shell) -> None:
    shell("run", "-j", "a", "--", "true")
    start = shell.entries(shell.json("history")[0]["run_id"])[0]
    fields = {key: value for key, value in start.items() if key not in HEADER}
    shell.write(("run.start", "2026-03-01T00:00:00Z", {**fields, "run_id": PARENT, "number": 2, "parent": "\udcff"}))
    assert shell.json("show", "2")[0]["parent"] == "\\xff"
    assert "inside run    \\xff" in shell("show", "2").stdout


def test_bytes_that_are_no_text_are_recorded_and_shown(shell: Shell) -> None:
    odd = b"\xff\xfe"
    shell("run", "-j", "a", "--reason", odd, "--", "echo", odd)
    shell("run", "-j", "a", "--", b"/nowhere/" + odd, environ={"LOGNAME": "\udcff", "PATH": "/bin:\udcff"})
    first, second = shell.json("show", "1")[0], shell.json("show", "2")[0]
    assert first["argv"] == ["echo", "\\xff\\xfe"]
    assert first["reason"] == "\\udcff\\udcfe"
    assert second["why"].startswith("cannot run")
    for number in ("1", "2"):
        done = shell("show", number)
        assert (done.returncode, done.stderr) == (0, "")
    assert "\\xff\\xfe" in shell("show", "1").stdout
    assert shell("history").returncode == 0


def test_a_pattern_without_end_holds_up_no_job_and_masks_the_whole_text(shell: Shell) -> None:
    shell.config.write_text('mask = ["(a+)+$"]\n')
    texts = [f"{'a' * 39}{number}b" for number in range(20)]
    done = shell("run", "-j", "a", "--", "echo", *texts)
    assert (done.returncode, done.stdout) == (0, " ".join(texts) + "\n")
    remark = "a pattern of `mask` takes too long; text for which it did is masked whole"
    assert done.stderr == f"runguard: a: {remark}\n"
    run = shell.json("show", "1")[0]
    assert run["argv"][1:] == ["***"] * 20
    assert remark in run["remarks"]
    assert shell("show", "1", "--output").stdout == "***"

"""Jobs that tell of their cases, from the file that they get to what is on record in the end."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from runguard.evidence import lists
from shell import Shell, wait_until

BOTH = 'cat "$RUNGUARD_DONE"; echo; cat "$RUNGUARD_UNCERTAIN"'
DAILY = ("run", "-j", "d", "-s", "0 0 * * *", "-z", "UTC", "--scheduled-at", "2026-03-01T00:00Z")


def entry(case: str, phase: str = "intent", **fields: Any) -> str:
    return json.dumps({"case": case, "phase": phase, "action": "a", **fields})


def result(case: str, result: str = "done", **fields: Any) -> str:
    return entry(case, "result", result=result, **fields)


def job(shell: Shell, *lines: str, after: str = "") -> tuple[str, ...]:
    """Return a command that adds the lines, and then does what `after` says in shell."""
    path = shell.directory / f"lines-{time.monotonic_ns()}"
    path.write_text("".join(line + "\n" for line in lines))
    return ("--", "sh", "-c", f'cat {path} >> "$RUNGUARD_ITEMS"; {after}')


def runs(shell: Shell) -> Path:
    return shell.state / "db" / "runs"


def totals(shell: Shell, number: int) -> Any:
    return shell.json("show", str(number))[0]["items"]


def ledger(shell: Shell, kind: str) -> list[dict[str, Any]]:
    database = sqlite3.connect(shell.state / "db" / "runguard.sqlite")
    found = [json.loads(line) for (line,) in database.execute("SELECT line FROM ledger ORDER BY seq")]
    database.close()
    return [each for each in found if each["kind"] == kind]


def start(shell: Shell, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "runguard", *arguments]
    return subprocess.Popen(
        command, env=shell.environ, cwd=shell.directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def test_the_file_is_empty_and_the_jobs_alone_and_goes_with_the_run(shell: Shell) -> None:
    done = shell("run", "-j", "x", "-c", 'stat -c "%a %s %F" "$RUNGUARD_ITEMS"', preexec_fn=lambda: os.umask(0o777))
    assert done.stdout == "600 0 regular empty file\n"
    assert list(runs(shell).iterdir()) == []


def test_a_run_that_reached_every_case_is_a_clean_success(shell: Shell) -> None:
    done = shell("run", "-j", "x", *job(shell, '{"expected": 2}', entry("A"), result("A"), result("B", "no_action")))
    assert (done.returncode, done.stderr) == (0, "")
    [run] = shell.json("history")
    assert (run["outcome"], run["suspect"]) == ("succeeded", None)
    [finish] = ledger(shell, "run.finish")
    told = finish["items"]
    assert (told["entries"], told["cases"], told["done"], told["no_action"], told["expected"]) == (3, 2, 1, 1, 2)
    whole = lists.RunList()
    database = sqlite3.connect(shell.state / "db" / "runguard.sqlite")
    whole.extend(line for (line,) in database.execute("SELECT line FROM item ORDER BY id"))
    assert told["list_sha256"] == whole.sha256()
    assert list(runs(shell).iterdir()) == []


@pytest.mark.parametrize(
    ("lines", "doubt"),
    [
        ([entry("A")], "0 of 1 case accounted for: 1 case uncertain"),
        ([entry("A"), result("A", "failed")], "1 of 1 case accounted for: 1 failed"),
        ([entry("A"), result("A"), "torn"], "1 of 1 case accounted for: 1 line rejected"),
        (
            ['{"expected": 2}', entry("A"), result("A")],
            "1 of 2 cases accounted for: 1 of 2 expected cases were reached",
        ),
        ([result("A")], "1 of 1 case accounted for: 1 result without an intent"),
    ],
)
def test_a_success_that_its_entries_doubt_is_suspect_and_keeps_its_status(
    shell: Shell, lines: list[str], doubt: str
) -> None:
    done = shell("run", "-j", "x", *job(shell, *lines))
    assert (done.returncode, done.stderr) == (0, f"runguard: x: succeeded, but {doubt}\n")
    assert shell.json("history")[0]["suspect"] == doubt


def test_a_failure_is_told_with_its_uncertain_cases(shell: Shell) -> None:
    done = shell("run", "-j", "x", *job(shell, entry("A"), after="exit 3"))
    assert (done.returncode, done.stderr) == (3, "runguard: x: 0 of 1 case accounted for: 1 case uncertain\n")


def test_personal_data_is_warned_of(shell: Shell) -> None:
    done = shell("run", "-j", "x", *job(shell, result("ann@example.org", "skipped")))
    why = "case or reason of case entry 1 looks like an e-mail address: a record that is kept for years needs none"
    assert done.stderr == f"runguard: x: {why}\n"


def test_entries_are_on_record_while_the_command_runs(shell: Shell) -> None:
    lines = [entry(f"HB-{n}", reason="x" * 100) for n in range(2500)]
    running = start(
        shell, "run", "-j", "x", *job(shell, *lines, after="touch written; until test -e go; do sleep 0.05; done")
    )
    wait_until(lambda: (shell.directory / "written").exists())
    wait_until(lambda: len(ledger(shell, "items")) >= 2)
    assert shell("run", "-j", "y", "--", "true").returncode == 0
    [told] = shell.json("show", "1")
    assert (told["outcome"], told["items"]["uncertain"]) == ("running", told["items"]["entries"])
    (shell.directory / "go").touch()
    assert running.wait(timeout=30) == 0
    first = ledger(shell, "items")[0]
    assert (first["final"], first["items"]["entries"]) == (False, 1000)
    assert totals(shell, 1)["entries"] == 2500


# Further attempts


def test_a_further_attempt_learns_what_is_done_and_what_is_uncertain(shell: Shell) -> None:
    first = [entry("A"), result("A"), entry("B"), entry("C"), result("C", "failed"), result("D", "no_action")]
    odd = [entry("E\nF"), result("E\nF"), result("G", "skipped"), entry("H", "note")]
    shell(*DAILY, *job(shell, *first, *odd, after="exit 1"))
    done = shell(
        *DAILY, "--", "sh", "-c", 'stat -c %a "$RUNGUARD_DONE"; cat "$RUNGUARD_DONE"; echo; cat "$RUNGUARD_UNCERTAIN"'
    )
    assert done.stdout == '600\nA\nD\n"E\\nF"\n\nB\n'
    assert done.stderr == "runguard: d: 1 case is uncertain: B; RUNGUARD_UNCERTAIN names it to the command\n"
    assert list(runs(shell).iterdir()) == []


def test_the_last_attempt_that_touched_a_case_decides(shell: Shell) -> None:
    shell(*DAILY, *job(shell, entry("A"), entry("B"), result("B"), after="exit 1"))
    shell(*DAILY, *job(shell, entry("A"), result("A"), entry("B"), after="exit 1"))
    done = shell(*DAILY, "--", "sh", "-c", BOTH)
    assert done.stdout == "A\n\nB\n"


def test_a_case_is_done_when_the_last_result_of_each_action_is(shell: Shell) -> None:
    def did(case: str, action: str, came: str) -> list[str]:
        entries = (entry(case), result(case, came))
        return [line.replace('"action": "a"', f'"action": "{action}"') for line in entries]

    lines = [
        *did("A", "write", "failed"),
        *did("A", "write", "done"),
        *did("B", "write", "failed"),
        *did("B", "pay", "done"),
    ]
    shell(*DAILY, *job(shell, *lines, after="exit 1"))
    assert shell(*DAILY, "--", "sh", "-c", 'cat "$RUNGUARD_DONE"').stdout == "A\n"


def test_without_earlier_entries_there_is_nothing_to_learn(shell: Shell) -> None:
    shell(*DAILY, "--", "false")
    done = shell(*DAILY, "--", "env", environ={"RUNGUARD_DONE": "/x", "RUNGUARD_UNCERTAIN": "/x"})
    assert "RUNGUARD_ATTEMPT=2" in done.stdout
    assert "RUNGUARD_DONE" not in done.stdout
    assert "RUNGUARD_UNCERTAIN" not in done.stdout


def test_a_rerun_names_what_is_uncertain_before_it_starts(shell: Shell) -> None:
    shell("run", "-j", "x", *job(shell, entry("A"), entry("B")))
    done = shell("rerun", "1", "--reason", "test", "--", "sh", "-c", 'echo started >&2; cat "$RUNGUARD_UNCERTAIN"')
    assert done.stdout == "A\nB\n"
    said, started = done.stderr.splitlines()
    assert said == "runguard: x: 2 cases are uncertain: A, B; RUNGUARD_UNCERTAIN names them to the command"
    assert started == "started"


def test_retries_learn_from_the_attempt_before(shell: Shell) -> None:
    script = 'test -z "$RUNGUARD_DONE" && cat lines >> $RUNGUARD_ITEMS && exit 1; cat "$RUNGUARD_DONE"'
    (shell.directory / "lines").write_text(f"{entry('A')}\n{result('A')}\n")
    done = shell("run", "-j", "x", "--retries", "1", "--retry-delay", "0", "-c", script)
    assert (done.returncode, done.stdout) == (0, "A\n")


def test_a_held_window_names_what_is_uncertain(shell: Shell) -> None:
    shell(*DAILY, *job(shell, entry("A"), result("A"), entry("B"), after="kill -9 $PPID"))
    refused = shell(*DAILY, "--", "touch", "ran")
    assert refused.returncode == 75
    assert "; 1 case is uncertain: B" in refused.stderr
    assert shell.json("show", "2")[0]["because"].endswith("; 1 case is uncertain")  # a ledger spells no case
    assert not (shell.directory / "ran").exists()
    done = shell(
        "rerun",
        "d@2026-03-01T00:00Z",
        "--reason",
        "looked",
        "--",
        "sh",
        "-c",
        'cat "$RUNGUARD_DONE" "$RUNGUARD_UNCERTAIN"',
    )
    assert done.stdout == "A\nB\n"


# Whoever dies, and whatever fails


def test_the_file_of_a_dead_guard_is_taken_in_by_the_next_start(shell: Shell) -> None:
    lines = [line for n in range(1200) for line in (entry(f"HB-{n}"), result(f"HB-{n}"))]
    shell("run", "-j", "x", *job(shell, *lines, entry("last"), after="printf torn >> $RUNGUARD_ITEMS; kill -9 $PPID"))
    done = shell("run", "-j", "x", "--", "true")
    why = "run 1 is lost: no end on record; guard and command are gone; 1 case is uncertain: last"
    assert done.stderr == f"runguard: x: {why}\n"
    told = ledger(shell, "run.finish")[0]
    assert told["outcome"] == "lost"
    assert {name: told["items"][name] for name in ("entries", "cases", "uncertain", "rejected")} == {
        "entries": 2401,
        "cases": 1201,
        "uncertain": 1,
        "rejected": 1,
    }
    assert list(runs(shell).iterdir()) == []


def test_a_command_that_outlives_its_guard_goes_on_telling(shell: Shell) -> None:
    (shell.directory / "later").write_text(result("A") + "\n")
    after = "kill -9 $PPID; until test -e go; do sleep 0.05; done; cat later >> $RUNGUARD_ITEMS"
    shell("run", "-j", "x", *job(shell, entry("A"), after=after))
    assert shell("run", "-j", "x", "--", "true").returncode == 75
    (shell.directory / "go").touch()
    wait_until(lambda: shell("run", "-j", "x", "--", "true").returncode == 0)
    assert (totals(shell, 1)["entries"], totals(shell, 1)["uncertain"]) == (2, 0)


def aside(shell: Shell) -> Path:
    database = shell.state / "db" / "runguard.sqlite"
    moved = shell.directory / "aside"
    (moved if moved.exists() else database).rename(database if moved.exists() else moved)
    return moved


@pytest.mark.parametrize("when", ["all along", "at the end"])
def test_while_the_store_fails_the_file_stays_and_is_taken_in_later(shell: Shell, when: str) -> None:
    shell("run", "-j", "x", "--", "true")
    move = f"mv {shell.state}/db/runguard.sqlite {shell.directory}/aside"
    if when == "all along":
        aside(shell)
        move = ":"
    done = shell("run", "-j", "x", *job(shell, entry("A"), result("A"), entry("B"), after=f"{move}; exit 5"))
    assert done.returncode == 5
    assert "they are taken in later" in done.stderr
    [kept] = [path for path in runs(shell).iterdir() if path.suffix == ".items"]
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    aside(shell)
    assert shell("run", "-j", "x", "--", "true").returncode == 0  # brings the run over from the journal
    assert shell("run", "-j", "x", "--", "true").returncode == 0
    number = next(run["number"] for run in shell.json("history") if run["exit_status"] == 5)
    assert (totals(shell, number)["entries"], totals(shell, number)["uncertain"]) == (3, 1)
    [*_, final] = ledger(shell, "items")
    assert (final["final"], final["items"]["cases"]) == (True, 2)
    assert list(runs(shell).iterdir()) == []


def test_a_store_that_is_held_up_does_not_hold_up_signals(shell: Shell) -> None:
    lines = [entry(f"HB-{n}") for n in range(100)]
    running = start(shell, "run", "-j", "x", "-t", "2", *job(shell, *lines, after="touch written; sleep 60"))
    wait_until(lambda: (shell.directory / "written").exists())
    with shell.open() as store, store.write():
        began = time.monotonic()
        wait_until(lambda: not shell.processes("sleep 60"), limit_s=10)
        assert time.monotonic() - began < 10
    assert running.wait(timeout=60) == 124
    assert totals(shell, 1)["entries"] == 100


@pytest.mark.long
def test_what_was_over_the_limit_is_kept_beside(shell: Shell) -> None:
    script = 'truncate -s 1100M "$RUNGUARD_ITEMS"; printf "\\n" >> "$RUNGUARD_ITEMS"'
    (shell.directory / "lines").write_text(f"{entry('A')}\n{result('A')}\n")
    done = shell("run", "-j", "x", "-c", f'cat lines >> "$RUNGUARD_ITEMS"; {script}')
    assert done.returncode == 0
    [kept] = runs(shell).iterdir()
    assert kept.suffix == ".over"
    assert f"the case entries over the limit are kept in {kept}" in done.stderr
    told = totals(shell, 1)
    assert (told["entries"], told["beyond_bytes"]) == (2, kept.stat().st_size - told["bytes"])
    assert "over the limit are not on record" in shell.json("history")[0]["suspect"]
    shell("run", "-j", "x", "--", "true")
    assert kept.exists()


def test_a_command_that_removes_its_file_is_suspect(shell: Shell) -> None:
    done = shell("run", "-j", "x", *job(shell, entry("A"), after='rm "$RUNGUARD_ITEMS"'))
    why = "0 of 0 cases accounted for: the command removed or replaced the file of its case entries"
    assert (done.returncode, done.stderr) == (0, f"runguard: x: succeeded, but {why}\n")
    assert ledger(shell, "run.finish")[0]["items"]["removed"] is True


def test_a_file_that_cannot_be_trusted_is_left_and_said(shell: Shell) -> None:
    done = shell("run", "-j", "x", *job(shell, entry("A"), after='chmod 666 "$RUNGUARD_ITEMS"'))
    assert done.returncode == 0
    assert "others may write to it" in done.stderr
    assert "bytes are not on record yet" in shell.json("history")[0]["suspect"]
    path = next(runs(shell).iterdir())
    kept = (
        f"runguard: x: case entries {path}: others may write to it (mode 0666); chmod 600 it; it is kept as {path}.over"
    )
    assert shell("run", "-j", "x", "--", "true").stderr == f"{kept}, and not on record\n"
    assert shell("run", "-j", "x", "--", "true").stderr == ""


@pytest.mark.parametrize("another", ["mkfifo", "touch"])
def test_a_command_that_puts_something_empty_in_the_place_of_its_file_is_suspect(shell: Shell, another: str) -> None:
    done = shell("run", "-j", "x", *job(shell, entry("A"), after=f'rm "$RUNGUARD_ITEMS"; {another} "$RUNGUARD_ITEMS"'))
    why = "0 of 0 cases accounted for: the command removed or replaced the file of its case entries"
    assert (done.returncode, done.stderr) == (0, f"runguard: x: succeeded, but {why}\n")
    assert list(runs(shell).iterdir()) == []


def test_what_cannot_be_read_at_the_end_is_not_said_to_be_nothing(shell: Shell) -> None:
    seen = "until runguard show 1 --items > shown 2>/dev/null && grep -q A shown; do sleep 0.1; done"
    seen = seen.replace("runguard", f"{sys.executable} -m runguard")
    after = f'{seen}; rm "$RUNGUARD_ITEMS"; mkfifo "$RUNGUARD_ITEMS"'
    shell("run", "-j", "x", *job(shell, entry("A"), after=after))
    assert ledger(shell, "run.finish")[0]["items"]["pending_bytes"] == 1
    assert shell("verify", "--full").returncode == 0

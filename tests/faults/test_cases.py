"""The tail: whatever is killed while cases are handled, each that was touched has an intent or a result on record."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from shell import Shell, wait_until

# Handles cases: the file `target` is the system that it acts on. With a delay there is time to be killed within a case.
JOB = """
import os, sys, time
from runguard import items
target = os.open("target", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
with open("command", "w") as file:
    file.write(str(os.getpid()))
items.expected(int(sys.argv[2]))
done = items.done()
for n in range(int(sys.argv[2])):
    case_id = f"{sys.argv[1]}-{n}"
    if case_id in done:
        items.note(case_id, action="send")
        continue
    with items.case(case_id, action="send", rule={"id": "R7"}, reason="It was due."):
        os.write(target, f"{case_id}\\n".encode())
        time.sleep(0.0002)
"""


@pytest.fixture
def job(shell: Shell) -> Path:
    path = shell.directory / "job.py"
    path.write_text(JOB)
    return path


def start(shell: Shell, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "runguard", "run", "-j", "tail", "--", sys.executable, *arguments]
    (shell.directory / "command").unlink(missing_ok=True)  # of an earlier job: its pid may be another's by now
    silent = subprocess.DEVNULL
    return subprocess.Popen(command, env=shell.environ, cwd=shell.directory, stdout=silent, stderr=silent)


def touched(shell: Shell) -> list[str]:
    target = shell.directory / "target"
    return target.read_text().splitlines() if target.exists() else []


def explained(shell: Shell) -> set[str]:
    """Return the cases that have an intent or a result on record."""
    database = sqlite3.connect(shell.state / "db" / "runguard.sqlite")
    found = {
        json.loads(line)["item"]["case"] for (line,) in database.execute("SELECT line FROM item WHERE said <> 'note'")
    }
    database.close()
    return found


def settle(shell: Shell) -> None:
    """Start the job again until no earlier run lives, as cron would."""
    wait_until(lambda: shell("run", "-j", "tail", "--", "true").returncode == 0)


def kill_at(shell: Shell, running: subprocess.Popen[bytes], size_bytes: int, who: str) -> None:
    """Kill once the target has grown to that size: at any moment within a case."""
    target, command = shell.directory / "target", shell.directory / "command"
    wait_until(lambda: running.poll() is not None or (target.exists() and target.stat().st_size >= size_bytes))
    if who in ("command", "both"):
        with contextlib.suppress(ProcessLookupError, FileNotFoundError, ValueError):
            os.kill(int(command.read_text()), signal.SIGKILL)
    if who in ("guard", "both"):
        running.kill()
    running.wait(timeout=60)


def storm(shell: Shell, job: Path, kills: int, cases: int) -> None:
    chance = random.Random(kills)
    for n in range(kills):
        before = (shell.directory / "target").stat().st_size if n else 0
        running = start(shell, str(job), f"{n}", str(cases))
        kill_at(shell, running, before + chance.randrange(cases * 5), chance.choice(("command", "guard", "both")))
        settle(shell)
    acted = touched(shell)
    assert len(acted) > kills
    assert set(acted) - explained(shell) == set()
    left = [path.name for path in (shell.state / "db" / "runs").iterdir()]
    assert left == []


def test_no_case_is_left_unexplained_whoever_is_killed(shell: Shell, job: Path) -> None:
    storm(shell, job, kills=9, cases=300)


@pytest.mark.long
def test_of_120_kills_none_leaves_a_case_unexplained(shell: Shell, job: Path) -> None:
    storm(shell, job, kills=120, cases=6000)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a file system")
def test_on_a_full_disk_the_job_stops_and_no_case_is_left_unexplained(shell: Shell, job: Path) -> None:
    shell.state.mkdir(mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=0700", "none", shell.state], check=True)
    try:
        ballast = shell.state / "ballast"
        assert shell("run", "-j", "tail", "--", "true").returncode == 0
        running = start(shell, str(job), "full", "20000")
        wait_until(lambda: len(touched(shell)) > 100)
        with open(ballast, "wb", buffering=0) as file:
            for size in (1 << 16, 1 << 12, 1):
                try:
                    while True:
                        file.write(bytes(size))
                except OSError:
                    continue
        assert running.wait(timeout=60) == 1
        assert len(touched(shell)) < 20000
        ballast.unlink()
        settle(shell)
        settle(shell)
        assert set(touched(shell)) - explained(shell) == set()
        outcomes = [run["outcome"] for run in shell.json("history")]
        assert outcomes[-2] == "failed"
    finally:
        subprocess.run(["umount", "-l", shell.state], check=True)


@pytest.mark.long
def test_a_million_entries_in_one_run(shell: Shell) -> None:
    script = """
import json, os
with open(os.environ["RUNGUARD_ITEMS"], "a", buffering=1 << 20) as file:
    for n in range(500_000):
        head = {"case": f"HB-{n:07}", "action": "send", "key": str(n)}
        file.write(json.dumps({**head, "phase": "intent"}) + "\\\\n")
        file.write(json.dumps({**head, "phase": "result", "result": "done"}) + "\\\\n")
"""
    path = shell.directory / "many.py"
    path.write_text(script.replace("\\\\n", "\\n"))
    command = [sys.executable, "-m", "runguard", "run", "-j", "tail", "--", sys.executable, str(path)]
    before = shell("run", "-j", "tail", "--", "true")
    assert before.returncode == 0
    running = subprocess.Popen(command, env=shell.environ, cwd=shell.directory)
    _, status, usage = os.wait4(running.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert usage.ru_maxrss < 80 * 1024
    told = shell.json("show", "2")[0]["items"]
    assert (told["entries"], told["cases"], told["done"], told["uncertain"]) == (1_000_000, 500_000, 500_000, 0)
    assert len(shell.json("show", "2", "--items")) == 1_000_000

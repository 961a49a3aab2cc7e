"""The tail, as somebody asks for it afterwards: whatever is killed while cases are handled, for each that was touched
`explain` gives rule, reason, run, window and code, or says that it is uncertain.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from casework import GRACE_US
from disks import fill
from runguard.evidence.explain import explain
from runguard.evidence.found import Asked
from runguard.evidence.ran import Moment
from runguard.instant import DAY_S, SECOND_US, from_rfc3339, rfc3339
from runguard.store.sqlite import open_reader
from shell import Shell, wait_until

# The file `target` is the system that it acts on. With a delay there is time to be killed within a case.
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
FIRST_US = from_rfc3339("2025-03-01T02:00:00Z")


class Storm:
    """Runs of a job, a window for each, which are killed while they touch cases."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        self.runs = 0
        self.target = shell.directory / "target"
        self.command = shell.directory / "command"
        (shell.directory / "job.py").write_text(JOB)

    def start(self, cases: int) -> subprocess.Popen[bytes]:
        """Start a run that is to handle so many cases."""
        self.command.unlink(missing_ok=True)  # of an earlier job: its pid may be another's by now
        silent = subprocess.DEVNULL
        script = [sys.executable, str(self.shell.directory / "job.py"), str(self.runs), str(cases)]
        command = [sys.executable, "-m", "runguard", *self._run(), *script]
        return subprocess.Popen(command, env=self.shell.environ, cwd=self.shell.directory, stdout=silent, stderr=silent)

    def settle(self) -> None:
        """Start the job in the next window until no earlier run lives, as cron would."""
        self.runs += 1
        wait_until(lambda: self.shell(*self._run(), "true").returncode == 0)
        self.runs += 1

    def touched(self) -> list[str]:
        """Return the cases that the target knows of."""
        return self.target.read_text().splitlines() if self.target.exists() else []

    def kill(self, running: subprocess.Popen[bytes], size_bytes: int, who: str) -> None:
        """Kill once the target has grown to that size: at any moment within a case."""
        wait_until(
            lambda: running.poll() is not None or (self.target.exists() and self.target.stat().st_size >= size_bytes)
        )
        if who in ("command", "both"):
            with contextlib.suppress(ProcessLookupError, FileNotFoundError, ValueError):
                os.kill(int(self.command.read_text()), signal.SIGKILL)
        if who in ("guard", "both"):
            running.kill()
        running.wait(timeout=60)

    def unexplained(self, cases: Iterable[str]) -> list[str]:
        """Return the cases for which explain gives neither all that there is to give nor a doubt."""
        db = self.shell.state / "db"
        moment = Moment(FIRST_US + 1000 * DAY_S * SECOND_US, str(db / "runs"))
        with open_reader(str(db / "runguard.sqlite")) as reader:
            told = ((case, explain(reader, Asked(case, moment, lambda _: GRACE_US))) for case in cases)
            return [case for case, found in told if found is None or not self._is_explained(found)]

    def _is_explained(self, told: dict[str, Any]) -> bool:
        assert told["damage"] == []
        if any(each["what"] in ("uncertain", "rejected") for each in told["unknown"]):
            return True
        runs = {run["run_id"]: run for run in told["runs"]}
        return any(
            touch["state"] == "done"
            and touch["rule"] == {"id": "R7"}
            and touch["reason"] == "It was due."
            and runs[touch["run_id"]]["window"]["key"].startswith("L2025-")
            and runs[touch["run_id"]]["inputs"][0]["sha256"] is not None
            for touch in told["touches"]
        )

    def _run(self) -> list[str]:
        at = rfc3339(FIRST_US + self.runs * DAY_S * SECOND_US)
        return ["run", "-j", "tail", "-s", "0 2 * * *", "-z", "UTC", "--scheduled-at", at, "--"]


@pytest.fixture
def storm(shell: Shell) -> Storm:
    return Storm(shell)


def rage(storm: Storm, kills: int, cases: int, at_once: int) -> None:
    """Kill, ask at once for some of the cases, let the next start tidy up, and ask for all of them."""
    chance = random.Random(kills)
    assert storm.shell("run", "-j", "other", "--", "true").returncode == 0
    for n in range(kills):
        before = len(storm.touched())
        size = storm.target.stat().st_size if n else 0
        running = storm.start(cases)
        storm.kill(running, size + chance.randrange(cases * 5), chance.choice(("command", "guard", "both")))
        fresh = storm.touched()[before:]
        # The last ones are those that a kill may have left in between.
        some = {*fresh[-3:], *chance.sample(fresh, min(at_once, len(fresh)))}
        assert storm.unexplained(some) == []
        storm.settle()
        assert storm.unexplained(storm.touched()[before:]) == []
    assert list((storm.shell.state / "db" / "runs").iterdir()) == []
    touching = {case.partition("-")[0] for case in storm.touched()}
    assert len(touching) > kills // 2  # some were killed before their first case


def test_no_case_is_left_unexplained_whoever_is_killed(storm: Storm) -> None:
    rage(storm, kills=9, cases=300, at_once=20)


@pytest.mark.long
def test_of_120_kills_none_leaves_a_case_unexplained(storm: Storm) -> None:
    rage(storm, kills=120, cases=6000, at_once=20)


def test_on_a_full_disk_the_job_stops_and_no_case_is_left_unexplained(storm: Storm, small_state: Path) -> None:
    assert storm.shell("run", "-j", "other", "--", "true").returncode == 0
    running = storm.start(cases=20000)
    wait_until(lambda: len(storm.touched()) > 100)
    ballast = fill(small_state)
    assert running.wait(timeout=60) == 1
    touched = storm.touched()
    assert len(touched) < 20000
    assert storm.unexplained({*touched[-20:], *touched[:20]}) == []
    ballast.unlink()
    storm.settle()
    storm.settle()
    assert storm.unexplained(touched) == []
    assert storm.shell.json("history", "tail")[-1]["outcome"] == "failed"

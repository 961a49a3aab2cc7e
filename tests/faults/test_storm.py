"""Kill storms: guard, command or both are killed at random moments; afterwards every start has exactly one end.

Every start of the storm is followed by an ordinary one, as cron would: it must never run beside a living command.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from contextlib import suppress

import pytest

from guarded import guarded
from shell import Shell, wait_until
from whole import check, ledger

# The command proves by a lock of its own that it is alone; `9>&-`: what outlives it must not hold that.
COMMAND = """
exec 9>>alone; flock -n 9 || echo overlap >> overlaps
echo "$RUNGUARD_RUN_ID" >> ran; echo "$RUNGUARD_WINDOW_KEY $RUNGUARD_RUN_ID $$" >> begun
sleep 0.08 9>&-
echo "$RUNGUARD_WINDOW_KEY" >> ended
"""
SOMETIMES_FAILS = f"{COMMAND} exit $(( $$ % 3 ? 0 : 7 ))"
KILL = ("--overlap", "kill", "--kill-after", "0.5")
RETRIES = ("--retries", "2", "--retry-delay", "0.05")
MIXED = ((), ("--overlap", "wait"), KILL, RETRIES, (*KILL, *RETRIES), ("--overlap", "wait", *RETRIES))
TARGETS = ("guard", "command", "both", "guard stopped")


def window(n: int) -> tuple[str, ...]:
    day = f"2026-{1 + n // 28:02}-{1 + n % 28:02}"
    return ("-s", "0 2 * * *", "-z", "UTC", "--scheduled-at", f"{day}T02:00Z")


def kill(shell: Shell, target: str, guard_pid: int) -> None:
    """Kill what a storm is to hit, where it lives."""
    begun = shell.directory / "begun"
    if target in ("command", "both") and begun.exists():
        pid = int(begun.read_text().split()[-1])
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
    if target in ("guard", "both"):
        os.kill(guard_pid, signal.SIGKILL)
    if target == "guard stopped":
        os.kill(guard_pid, signal.SIGTERM)


def storm(
    shell: Shell, kills: int, seed: int, options: tuple[tuple[str, ...], ...] = ((),), command: str = COMMAND
) -> None:
    chance = random.Random(seed)
    for n in range(kills):
        guard = guarded(shell, *window(n), *chance.choice(options), "--", "sh", "-c", command)
        time.sleep(chance.random() * 0.25)  # the moment is the test
        kill(shell, chance.choice(TARGETS), guard.pid)
        following = shell("run", "-j", "x", *window(n), *chance.choice(options), "--", "sh", "-c", command)
        assert following.returncode in (0, 7, 75, 137, 143), following.stderr
        guard.communicate(timeout=30)
    wait_until(lambda: shell("run", "-j", "x", "--", "true").returncode == 0)
    check(shell, killed=True)
    assert not (shell.directory / "overlaps").exists()
    done = Counter(
        entry["run_id"] for entry in ledger(shell) if entry["kind"] == "run.finish" and entry["outcome"] == "succeeded"
    )
    windows = Counter(
        entry["window"]["key"]
        for entry in ledger(shell)
        if entry["kind"] == "run.start" and entry["window"] and entry["run_id"] in done
    )
    assert set(windows.values()) == {1}
    killed = Counter(run["outcome"] for run in shell.json("history", "--since", "2026-01-01", "-n", "1000"))
    assert killed["lost"] + killed["killed"] > 0  # the storm has hit something


def test_every_start_of_a_small_storm_has_one_end_and_no_window_succeeds_twice(shell: Shell) -> None:
    storm(shell, kills=24, seed=4)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_two_hundred_random_kills_leave_every_start_with_one_end(shell: Shell, seed: int) -> None:
    storm(shell, kills=200, seed=seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
def test_two_hundred_random_kills_of_starts_that_wait_kill_and_try_again_do_so_too(shell: Shell, seed: int) -> None:
    storm(shell, kills=200, seed=seed, options=MIXED, command=SOMETIMES_FAILS)

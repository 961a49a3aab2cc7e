"""What a guard holds while a long command runs, its start ping sent."""

from __future__ import annotations

import argparse
import subprocess
import time
from pathlib import Path

from benchmarks import machine
from benchmarks.receiver import Receiver
from benchmarks.table import show

MOST_MIB = 18


def measure(place: Path, receiver: Receiver, _: argparse.Namespace) -> None:
    """Print resident memory, and the share of it that no other process maps."""
    config = place / "runguard.toml"
    config.write_text(f'[jobs.long]\nschedule = "*/5 * * * *"\ntimezone = "Europe/London"\nping = "{receiver.url}"\n')
    command = [machine.RUNGUARD, "run", "-j", "long", "--", "sleep", "600"]
    with subprocess.Popen(command, env=machine.environ(place / "state", config)) as guard:
        try:
            next(path for path in receiver.told() if "/start" in path)
            while len(children(guard.pid)) > 1:  # the helper that sent it
                time.sleep(0.05)
            memory = rollup(guard.pid)
        finally:
            guard.terminate()
    rows = [(name, f"{memory[name] / 1024:.1f}") for name in ("Rss", "Pss", "Anonymous")]
    show("A waiting guard, its start ping sent", ("smaps_rollup", "MiB"), rows)
    print(f"\nwanted: at most {MOST_MIB} MiB: {memory['Rss'] / 1024:.1f} MiB")


def children(pid: int) -> list[str]:
    """Return the pids of a process's children."""
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def rollup(pid: int) -> dict[str, int]:
    """Return the sums of a process's mappings in KiB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    return {name: int(value.split()[0]) for name, _, value in (line.partition(":") for line in lines)}

"""Many starts at once on one store: is every one on record, and how long does the slowest take?"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import time
from pathlib import Path
from statistics import quantiles

from benchmarks import machine
from benchmarks.receiver import Receiver
from benchmarks.table import show


def measure(place: Path, _: Receiver, asked: argparse.Namespace) -> None:
    """Print how many records there are, and the spread of wall time."""
    environ = machine.environ(place / "state")
    began_s: dict[int, float] = {}
    walls_ms: list[float] = []
    failed = 0
    for number in range(asked.at_once):
        argv = [machine.RUNGUARD, "run", "-j", f"job{number}", "-s", "*/5 * * * *", "--", "true"]
        at_s = time.perf_counter()
        began_s[os.posix_spawn(argv[0], argv, environ)] = at_s
    while began_s:
        pid, status = os.wait()
        walls_ms.append((time.perf_counter() - began_s.pop(pid)) * 1000)
        failed += status != 0
    history = [machine.RUNGUARD, "history", "--json", "-n", str(2 * asked.at_once)]
    kept = json.loads(subprocess.run(history, env=environ, stdout=subprocess.PIPE, check=True).stdout)
    whole = sum(run["outcome"] == "succeeded" for run in kept)
    cut = quantiles(walls_ms, n=100)
    row = (str(asked.at_once), str(failed), str(whole), f"{cut[49]:.0f}", f"{cut[98]:.0f}", f"{max(walls_ms):.0f}")
    head = ("starts", "failed", "on record", "p50 ms", "p99 ms", "longest ms")
    show("Starts at once, each of a job of its own, on one store", head, [row])
    print(f"\nwanted: {asked.at_once} on record: {whole}")

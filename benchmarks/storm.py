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
    """Print how many records there are, the spread of wall time, and the processor time of one start."""
    environ = machine.environ(place / "state")
    began_s: dict[int, float] = {}
    walls_ms: list[float] = []
    failed, cpu_s = 0, 0.0
    for number in range(asked.at_once):
        argv = [machine.RUNGUARD, "run", "-j", f"job{number}", "-s", "*/5 * * * *", "--", "true"]
        at_s = time.perf_counter()
        began_s[os.posix_spawn(argv[0], argv, environ)] = at_s
    while began_s:
        pid, status, usage = os.wait3(0)
        cpu_s += usage.ru_utime + usage.ru_stime
        walls_ms.append((time.perf_counter() - began_s.pop(pid)) * 1000)
        failed += status != 0
    history = [machine.RUNGUARD, "history", "--json", "-n", str(2 * asked.at_once)]
    kept = json.loads(subprocess.run(history, env=environ, stdout=subprocess.PIPE, check=True).stdout)
    whole = sum(run["outcome"] == "succeeded" for run in kept)
    cut = quantiles(walls_ms, n=100)
    spread_ms = (cut[49], cut[98], max(walls_ms), cpu_s * 1000 / asked.at_once)
    row = (str(asked.at_once), str(failed), str(whole), *(f"{each:.0f}" for each in spread_ms))
    head = ("starts", "failed", "on record", "p50 ms", "p99 ms", "longest ms", "CPU ms each")
    show("Starts at once, each of a job of its own, on one store", head, [row])
    print(f"\nwanted: {asked.at_once} on record: {whole}")

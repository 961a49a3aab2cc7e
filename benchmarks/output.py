"""How fast much output goes through a guard, against `cat` in the same place, and in how much memory."""

from __future__ import annotations

import argparse
import subprocess
import time
from pathlib import Path
from statistics import median

from benchmarks import machine
from benchmarks.receiver import Receiver
from benchmarks.table import show

LEAST = 0.6
_LOOK_S = 0.05


def measure(place: Path, _: Receiver, asked: argparse.Namespace) -> None:
    """Print throughput and the guard's peak memory."""
    environ = machine.environ(place / "state")
    source = f"head -c {asked.size} /dev/zero"
    plain = ["sh", "-c", f"{source} | cat"]
    guarded = [machine.RUNGUARD, "run", "-j", "much", "--", *source.split()]
    taken: dict[str, list[float]] = {"cat": [], "runguard": []}
    peak_kib = 0
    for _round in range(asked.output_rounds):
        taken["cat"].append(_through(plain, environ)[0])
        wall_s, peak = _through(guarded, environ)
        taken["runguard"].append(wall_s)
        peak_kib = max(peak_kib, peak)
    rates = {name: asked.size / median(walls) / (1 << 20) for name, walls in taken.items()}
    ratio = rates["runguard"] / rates["cat"]
    rows = [
        ("cat", f"{rates['cat']:.0f}", "1.00", ""),
        ("runguard", f"{rates['runguard']:.0f}", f"{ratio:.2f}", f"{peak_kib / 1024:.1f}"),
    ]
    title = f"{asked.size / (1 << 30):g} GiB of output into a pipe, medians of {asked.output_rounds} interleaved rounds"
    show(title, ("", "MiB/s", "x cat", "peak MiB"), rows)
    print(f"\nwanted: at least {LEAST} times cat: {ratio:.2f}")


def _through(command: list[str], environ: dict[str, str]) -> tuple[float, int]:
    """Run the command into a reader; return seconds and the peak memory of its first process in KiB."""
    began_s = time.perf_counter()
    with (
        subprocess.Popen(command, env=environ, stdout=subprocess.PIPE) as writer,
        subprocess.Popen(["cat"], stdin=writer.stdout, stdout=subprocess.DEVNULL) as reader,
    ):
        assert writer.stdout is not None
        writer.stdout.close()
        peak_kib = 0
        while reader.poll() is None:
            peak_kib = max(peak_kib, _peak_kib(writer.pid))
            time.sleep(_LOOK_S)
        writer.wait()
    if writer.returncode != 0:
        raise SystemExit(f"status {writer.returncode} of {command}")
    return time.perf_counter() - began_s, peak_kib


def _peak_kib(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) if "VmHWM:" in status else 0

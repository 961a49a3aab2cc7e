"""How fast much output goes through a guard, against other ways in the same place, and in how much memory."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks import machine
from benchmarks.receiver import Receiver
from benchmarks.table import show

LEAST, LEAST_UNWANTED = 0.6, 0.9
_LOOK_S = 0.05
NOTHING_KEPT = "output_head = 0\noutput_tail = 0\n"


class Contender(NamedTuple):
    """A way for a command's output to come into a pipe."""

    name: str
    command: list[str]
    environ: dict[str, str]
    status: int = 0


class Sample(NamedTuple):
    """What one passage took."""

    wall_s: float
    cpu_s: float  # of the contender and its command; not of the reader
    peak_kib: int  # of the contender's first process


def measure(place: Path, _: Receiver, asked: argparse.Namespace) -> None:
    """Print throughput, processor time and peak memory."""
    contenders = _contenders(place, asked.size)
    taken: dict[str, list[Sample]] = {each.name: [] for each in contenders}
    busy_s, began_s = machine.busy_s(), time.monotonic()
    for _round in range(asked.output_rounds):
        for each in contenders:
            taken[each.name].append(_through(each))
    spent_s = sum(sample.cpu_s for samples in taken.values() for sample in samples)
    others = max(0.0, (machine.busy_s() - busy_s - spent_s) / (time.monotonic() - began_s) / (os.cpu_count() or 1))
    rates = {name: asked.size / median(each.wall_s for each in samples) / (1 << 20) for name, samples in taken.items()}
    rows = [
        (
            name,
            f"{rates[name]:.0f}",
            f"{rates[name] / rates['cat']:.2f}",
            f"{median(each.cpu_s for each in samples) / asked.size * (1 << 30):.2f}",
            f"{max(each.peak_kib for each in samples) / 1024:.1f}",
        )
        for name, samples in taken.items()
    ]
    gib = f"{asked.size / (1 << 30):g} GiB of output into a pipe"
    also = f"readers and others used {others:.0%} of the processors meanwhile"
    title = f"{gib}, medians of {asked.output_rounds} interleaved rounds ({also})"
    show(title, ("", "MiB/s", "x cat", "CPU s/GiB", "peak MiB"), rows)
    kept, unwanted = (rates[name] / rates["cat"] for name in ("runguard", "runguard, nothing kept"))
    print(f"\nwanted: at least {LEAST} times cat, hashed and its ends kept: {kept:.2f}")
    print(f"wanted: at least {LEAST_UNWANTED} times cat where the record wants no output: {unwanted:.2f}")


def _contenders(place: Path, size: int) -> list[Contender]:
    environ = machine.environ(place / "state")
    (place / "nothing.toml").write_text(NOTHING_KEPT)
    nothing = machine.environ(place / "state", place / "nothing.toml")
    source = ["head", "-c", str(size), "/dev/zero"]
    fails = ["sh", "-c", f"{' '.join(source)}; exit 3"]
    guard = [machine.RUNGUARD, "run", "-j", "much"]
    found = [
        Contender("no wrapper", source, environ),
        Contender("cat", ["sh", "-c", f"{' '.join(source)} | cat"], environ),
        Contender("runguard", [*guard, "--", *source], environ),
        Contender("runguard, nothing kept", [*guard, "--", *source], nothing),
        Contender("runguard, of a failure only", [*guard, "-q", "--", *fails], environ, 3),
    ]
    if shutil.which("chronic", path=machine.PATH):  # it keeps the whole in memory
        found.append(Contender("chronic, of a failure only", ["chronic", *fails], environ, 3))
    return found


def _through(contender: Contender) -> Sample:
    """Run the contender into a reader."""
    began_s = time.perf_counter()
    with subprocess.Popen(contender.command, env=contender.environ, stdout=subprocess.PIPE) as writer:
        reader = subprocess.Popen(["cat"], stdin=writer.stdout, stdout=subprocess.DEVNULL)
        assert writer.stdout is not None
        writer.stdout.close()
        peak_kib = 0
        while reader.poll() is None:
            peak_kib = max(peak_kib, _peak_kib(writer.pid))
            time.sleep(_LOOK_S)
        _, status, usage = os.wait4(writer.pid, 0)
        writer.returncode = os.waitstatus_to_exitcode(status)
    if writer.returncode != contender.status:
        raise SystemExit(f"status {writer.returncode} of {contender.command}")
    return Sample(time.perf_counter() - began_s, usage.ru_utime + usage.ru_stime, peak_kib)


def _peak_kib(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) if "VmHWM:" in status else 0

"""The command line of the benchmarks: facts of the machine, then one table for each question."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import evidence, machine, monitors, output, records, starts, storm, waiting, windows
from benchmarks.receiver import Receiver

SECTIONS = ("starts", "monitors", "waiting", "output", "storm", "windows", "records", "evidence")
MEMORY = "/dev/shm"


def main() -> None:
    """Measure what was asked for."""
    asked = arguments()
    print(machine.facts())
    with Receiver() as receiver:
        if "starts" in asked.sections:
            with places(asked.disk) as (memory, disk):
                starts.measure(memory, disk, receiver.url, asked.rounds)
        for section, measure in (
            ("monitors", monitors.measure),
            ("waiting", waiting.measure),
            ("output", output.measure),
            ("storm", storm.measure),
        ):
            if section in asked.sections:
                with places(asked.disk) as (memory, _):
                    measure(memory, receiver, asked)
        if "windows" in asked.sections:
            windows.measure()
        if "records" in asked.sections:
            with places(asked.disk) as (_, disk):
                records.measure(disk)
        if "evidence" in asked.sections:
            with places(asked.disk) as (_, disk):
                evidence.measure(disk)


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="benchmarks/run", description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"of {', '.join(SECTIONS)} (all)")
    parser.add_argument("--rounds", type=int, default=60, help="of the starts; each runs every contender once (60)")
    parser.add_argument("--size", type=_size, default=4 << 30, help="of the output: 10G, 512M (4G)")
    parser.add_argument("--output-rounds", type=int, default=3, help="of the output (3)")
    parser.add_argument("--at-once", type=int, default=500, help="starts at once (500)")
    parser.add_argument(
        "--disk", default=tempfile.gettempdir(), help="a directory on the disk to measure (%(default)s)"
    )
    asked = parser.parse_args()
    asked.sections = asked.sections or SECTIONS
    if unknown := set(asked.sections) - set(SECTIONS):
        parser.error(f"no such section: {', '.join(unknown)}")
    return asked


@contextmanager
def places(disk: str) -> Iterator[tuple[Path, Path]]:
    """Give two fresh directories: one in memory where the machine has one, one on the disk."""
    with (
        tempfile.TemporaryDirectory(dir=MEMORY if os.access(MEMORY, os.W_OK) else None) as memory,
        tempfile.TemporaryDirectory(dir=disk) as on_disk,
    ):
        yield Path(memory), Path(on_disk)


def _size(text: str) -> int:
    factor = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:].upper(), 1)
    return int(text.rstrip("kKmMgG")) * factor


if __name__ == "__main__":
    main()

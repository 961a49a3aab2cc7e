"""What a monitor costs the command: nothing before it, whether the monitor is well, hangs or drips."""

from __future__ import annotations

import argparse
import contextlib
import signal
import socket
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks import machine
from benchmarks.receiver import CHECK, Receiver
from benchmarks.table import show

WARM_UP = 3
MOST_ADDED_MS = 100


class Contender(NamedTuple):
    """A job, by its monitor."""

    name: str
    options: tuple[str, ...]
    waits: bool  # it would wait for its monitor until the deadline


def measure(place: Path, receiver: Receiver, asked: argparse.Namespace) -> None:
    """Print the delay of the command, and what the line takes after it."""
    with Silent(drips=False) as hanging, Silent(drips=True) as dripping:
        contenders = [
            Contender("no ping", (), False),
            Contender("a healthy monitor", ("--ping", receiver.url), False),
            Contender("one that hangs", ("--ping", hanging.url), True),
            Contender("one that drips a byte a second", ("--ping", dripping.url), True),
        ]
        guards: list[subprocess.Popen[bytes]] = []
        delays: dict[str, list[float]] = {each.name: [] for each in contenders}
        for number in range(asked.rounds + WARM_UP):
            for each in contenders:
                guard, delay_ms, _ = _start(place, each, number)
                if number >= WARM_UP:
                    delays[each.name].append(delay_ms)
                if each.waits:
                    (hanging if each is contenders[2] else dripping).wait_for_one()
                    guard.send_signal(signal.SIGTERM)  # it has told its record, and is idle
                    guards.append(guard)
                else:
                    guard.wait()
        for guard in guards:
            guard.wait()
        last = [_start(place, each, asked.rounds + WARM_UP) for each in contenders]
        with ThreadPoolExecutor() as threads:  # all at once: some take 15 s
            after = list(threads.map(lambda each: _seconds_after(each[0], each[2]), last))
    bare_ms = median(delays["no ping"])
    rows = [
        (name, f"{median(taken):.1f}", f"{median(taken) - bare_ms:+.1f}", f"{max(taken):.1f}", f"{after_s:.2f}")
        for (name, taken), after_s in zip(delays.items(), after, strict=True)
    ]
    head = ("the job's monitor", "delay ms", "more ms", "most ms", "line goes on, s")
    show(f"A command's start with a monitor: medians of {asked.rounds} interleaved rounds", head, rows)
    worst_ms = max(median(taken) for taken in delays.values()) - bare_ms
    print(f"\nwanted: at most {MOST_ADDED_MS} ms more than without a ping: {worst_ms:.1f} ms")


def _start(place: Path, contender: Contender, number: int) -> tuple[subprocess.Popen[bytes], float, int]:
    """Start a guard; return it, the delay of its command in ms, and when that ended (ns since 1970)."""
    stamp = place / f"{number}-{contender.name}"
    job = f"{contender.name.replace(' ', '-')}-{number}"  # nothing in the spool for it
    command = [machine.RUNGUARD, "run", "-j", job, *contender.options, "--", "sh", "-c", 'date +%s%N >"$0"', str(stamp)]
    began_ns = time.time_ns()
    guard = subprocess.Popen(command, env=machine.environ(place / "state"), stderr=subprocess.DEVNULL)
    while not (stamp.exists() and stamp.stat().st_size):
        time.sleep(0.002)
    ended_ns = int(stamp.read_text())
    return guard, (ended_ns - began_ns) / 1e6, ended_ns


def _seconds_after(guard: subprocess.Popen[bytes], ended_ns: int) -> float:
    guard.wait()
    return (time.time_ns() - ended_ns) / 1e9


class Silent:
    """A monitor that never answers, or a byte a second; `url` is what to ping."""

    def __init__(self, *, drips: bool) -> None:
        self._drips = drips
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}{CHECK}"
        self._came = threading.Semaphore(0)
        self._open: list[socket.socket] = []

    def __enter__(self) -> Silent:
        threading.Thread(target=self._accept, daemon=True).start()
        if self._drips:
            threading.Thread(target=self._drip, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        for connection in self._open:
            connection.close()

    def wait_for_one(self) -> None:
        """Wait until somebody has connected who was not waited for before."""
        self._came.acquire()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self._open.append(self._listener.accept()[0])
                self._came.release()

    def _drip(self) -> None:
        while self._listener.fileno() >= 0:
            for connection in list(self._open):
                with contextlib.suppress(OSError):
                    connection.send(b"H", socket.MSG_DONTWAIT)
            time.sleep(1)

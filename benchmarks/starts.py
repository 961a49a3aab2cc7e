"""What one guarded start costs beside what people use today: added time, CPU, memory, delay of the command."""

from __future__ import annotations

import marshal
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks import machine, stopwatch
from benchmarks.table import show

WARM_UP = 3  # rounds that make the store and fill caches; not counted
FIRST_DUE = datetime(2026, 1, 5, tzinfo=UTC)
CONFIGURATION = '[jobs.probe]\nschedule = "*/5 * * * *"\ntimezone = "Europe/London"\ntimeout = "1h"\n'
SHELL_LINE = """
exec 9>"$1/lock"; flock -n 9 || exit 75; place=$1; url=$2; shift 2
sqlite3 "$place/runs.sqlite" "INSERT INTO run (job, started) VALUES ('probe', unixepoch())"
"$@"; status=$?
sqlite3 "$place/runs.sqlite" "UPDATE run SET finished = unixepoch(), status = $status WHERE finished IS NULL"
[ -z "$url" ] || curl -fsS -m 10 -o /dev/null -d "$status" "$url"
exit $status
"""


class Contender(NamedTuple):
    """Something that stands in front of a command."""

    name: str
    command: Callable[[int, list[str]], list[str]]  # of a round and the guarded command
    environ: dict[str, str]
    needs: tuple[str, ...] = ()


class Figures(NamedTuple):
    """Medians of one contender."""

    wall_ms: float
    cpu_ms: float
    peak_mib: float
    delay_ms: float


def measure(memory: Path, disk: Path, url: str, rounds: int) -> None:
    """Print the tables: records in memory, where the disk's own speed is left out, then on the disk."""
    print(f"\nStarts: medians of {rounds} interleaved rounds; every guarded start answers a window of its own")
    figures, others = _measured([*_bare(memory), *_guards(memory, url)], memory, rounds)
    _print(f"records in memory{others}", figures)
    _judge(figures)
    sync = f", where one fdatasync takes {machine.sync_ms(disk):.2f} ms"
    figures, others = _measured([*_bare(disk), *_guards(disk, url)], disk, rounds)
    _print(f"records on the disk{sync}{others}", figures)


def _bare(place: Path) -> list[Contender]:
    environ = {"PATH": machine.PATH, "HOME": str(place)}
    return [
        Contender("true, bare", lambda _, command: command, environ),
        Contender("python3 -c pass", lambda _, command: _python(command), environ),
        Contender("flock", lambda _, command: ["flock", "-n", f"{place}/plain.lock", *command], environ, ("flock",)),
        Contender("chronic", lambda _, command: ["chronic", *command], environ, ("chronic",)),
    ]


def _python(command: list[str]) -> list[str]:
    """The interpreter alone has no command; where one is wanted, it becomes that command."""
    if command == ["true"]:
        return [machine.PYTHON, "-c", "pass"]
    return [machine.PYTHON, "-c", "import os, sys; os.execvp(sys.argv[1], sys.argv[1:])", *command]


def _guards(place: Path, url: str) -> list[Contender]:
    shell_place = place / "shell"
    shell_place.mkdir()
    tools = ("flock", "sqlite3")
    if shutil.which("sqlite3", path=machine.PATH):
        table = "CREATE TABLE run (id INTEGER PRIMARY KEY, job TEXT, started INTEGER, finished INTEGER, status INTEGER)"
        subprocess.run(["sqlite3", shell_place / "runs.sqlite", table], check=True)
    environ = {"PATH": machine.PATH, "HOME": str(place)}
    file = place / "runguard.toml"
    file.write_text(CONFIGURATION)
    pinged = place / "pinged.toml"
    pinged.write_text(f'{CONFIGURATION}ping = "{url}"\n')

    def line(url: str) -> Callable[[int, list[str]], list[str]]:
        return lambda _, command: ["sh", "-c", SHELL_LINE, "sh", str(shell_place), url, *command]

    return [
        Contender("sh: flock, sqlite3", line(""), environ, tools),
        Contender("sh: flock, sqlite3, curl", line(url), environ, (*tools, "curl")),
        Contender("runguard, no schedule", _unscheduled, machine.environ(place / "a")),
        Contender("runguard, file, schedule", _scheduled, machine.environ(place / "b", file)),
        Contender("runguard, same, and ping", _scheduled, machine.environ(place / "c", pinged)),
    ]


def _unscheduled(_: int, command: list[str]) -> list[str]:
    return [machine.RUNGUARD, "run", "-j", "plain", "--", *command]


def _scheduled(number: int, command: list[str]) -> list[str]:
    due = FIRST_DUE + timedelta(minutes=5 * number)
    return [machine.RUNGUARD, "run", "-j", "probe", "--scheduled-at", due.isoformat(), "--", *command]


def _measured(contenders: list[Contender], place: Path, rounds: int) -> tuple[dict[str, Figures | None], str]:
    """Return the figures by name, None where a program is absent, and a clause on how busy others were meanwhile."""
    present = [each for each in contenders if all(shutil.which(need, path=machine.PATH) for need in each.needs)]
    stamps = place / "stamps"
    stamps.mkdir()
    plain = [(each, number, ["true"]) for number in range(rounds + WARM_UP) for each in present]
    stamped = [
        (each, rounds + WARM_UP + number, ["sh", "-c", 'date +%s%N >"$0"', str(stamps / f"{number}-{each.name}")])
        for number in range(rounds)
        for each in present
    ]
    busy_s, began_s = machine.busy_s(), time.monotonic()
    taken = _time([(each.command(number, command), each.environ) for each, number, command in plain + stamped])
    others_s = machine.busy_s() - busy_s - sum(sample[2] for sample in taken)
    share = others_s / (time.monotonic() - began_s) / (os.cpu_count() or 1)
    samples = list(zip(plain + stamped, taken, strict=True))
    found: dict[str, Figures | None] = {each.name: None for each in contenders}
    for each in present:
        walls = [sample for (whose, number, command), sample in samples[: len(plain)] if whose is each][WARM_UP:]
        delays = [
            int(Path(command[-1]).read_text()) - sample[4]
            for (whose, _, command), sample in samples[len(plain) :]
            if whose is each
        ]
        found[each.name] = Figures(
            median(sample[1] for sample in walls) * 1e3,
            median(sample[2] for sample in walls) * 1e3,
            median(sample[3] for sample in walls) / 1024,
            median(delays) / 1e6,
        )
    return found, f" (others used {max(0.0, share):.0%} of the processors meanwhile)"


def _time(commands: list[tuple[list[str], dict[str, str]]]) -> list[tuple[int, float, float, int, int]]:
    """Have a small process run the commands in this order; each must succeed."""
    done = subprocess.run(
        [machine.PYTHON, "-I", "-S", stopwatch.__file__],
        input=marshal.dumps(commands),
        stdout=subprocess.PIPE,
        check=True,
    )
    taken: list[tuple[int, float, float, int, int]] = marshal.loads(done.stdout)
    for (argv, _), sample in zip(commands, taken, strict=True):
        if sample[0] != 0:
            raise SystemExit(f"status {sample[0]} of {argv}")
    return taken


def _print(title: str, figures: dict[str, Figures | None]) -> None:
    bare, python = figures["true, bare"], figures["python3 -c pass"]
    assert bare is not None
    assert python is not None
    rows = []
    for name, found in figures.items():
        if found is None:
            rows.append((name, "absent", "", "", "", "", ""))
            continue
        added_ms = found.wall_ms - bare.wall_ms
        # The stopwatch's own memory is all that is seen of smaller ones.
        peak = f"{found.peak_mib:.1f}" if found.peak_mib > bare.peak_mib + 0.1 else f"< {bare.peak_mib:.1f}"
        rows.append((
            name,
            f"{found.wall_ms:.1f}",
            f"{added_ms:.1f}",
            f"{added_ms / (python.wall_ms - bare.wall_ms):.2f}",
            f"{found.cpu_ms - bare.cpu_ms:.1f}",
            peak,
            f"{found.delay_ms - bare.delay_ms:.1f}",
        ))  # fmt: skip
    head = ("true, in front of it", "wall ms", "added ms", "x python3", "CPU ms", "peak MiB", "delay ms")
    show(title, head, rows)


def _judge(figures: dict[str, Figures | None]) -> None:
    bare, python, guard = (figures[name] for name in ("true, bare", "python3 -c pass", "runguard, file, schedule"))
    assert bare is not None
    assert python is not None
    assert guard is not None
    times = (guard.wall_ms - bare.wall_ms) / (python.wall_ms - bare.wall_ms)
    print(f"\nwanted: at most 3.0 times bare Python: {times:.2f}")
    if chronic := figures["chronic"]:
        print(f"wanted: less than chronic's {chronic.wall_ms:.1f} ms: {guard.wall_ms:.1f} ms")

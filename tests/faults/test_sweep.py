"""The sweep: one run is hit at every single system call of a kind; an ordinary run later, the ledger must be whole.

`strace` injects the fault into the guard alone. By default every third point of the few calls that make records
durable; with --long every point of all.
"""

from __future__ import annotations

import shutil
import sqlite3
import subprocess

import pytest

from shell import Shell, wait_until
from whole import check

DURABLE = ("pwrite64", "fdatasync", "flock", "ftruncate", "rename")
OTHERS = ("write", "fsync", "openat", "close")
DAILY = ("run", "-j", "d", "-s", "0 0 * * *", "-z", "UTC", "--scheduled-at", "2026-03-01T00:00Z")
COMMAND = ("--", "sh", "-c", 'echo "$RUNGUARD_RUN_ID" >> ran')
# The same, and it tells of two cases, one of which it leaves uncertain; the last line has no end.
LINES = (
    '{"case":"A","phase":"intent","action":"a"}\n{"case":"A","phase":"result","action":"a","result":"done"}\n'
    '{"case":"B","phase":"intent","action":"a"}'
)
TELLING = ("--", "sh", "-c", f'echo "$RUNGUARD_RUN_ID" >> ran; printf %s \'{LINES}\' >> "$RUNGUARD_ITEMS"')


def can_trace() -> bool:
    if not shutil.which("strace"):
        return False
    probe = ["strace", "-e", "inject=getpid:error=EIO:when=1", "true"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


pytestmark = pytest.mark.skipif(not can_trace(), reason="needs strace and the right to trace")


def points(shell: Shell, call: str, command: tuple[str, ...] = ("--", "true")) -> int:
    """Return how often an ordinary guarded run makes the system call."""
    log = shell.directory / "trace"
    shell.prefix = ("strace", "-o", str(log), "-e", f"trace={call}")
    shell("run", "-j", "count", *command)
    shell.prefix = ()
    return sum(line.startswith(f"{call}(") for line in log.read_text().splitlines())


def hit(shell: Shell, call: str, fault: str, n: int, command: tuple[str, ...] = COMMAND) -> int:
    """Run the job once with the fault at the nth system call; return the guard's status, -9 where it was killed."""
    inject = ("strace", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:{fault}:when={n}")
    shell.prefix = inject
    status = shell(*DAILY, *command).returncode
    shell.prefix = ()
    return status


def settle(shell: Shell, command: tuple[str, ...] = COMMAND) -> None:
    """Start the job again until no earlier run lives, as cron would."""
    wait_until(lambda: shell(*DAILY, "--reason", "after the fault", *command).returncode != 75)


def sweep(shell: Shell, call: str, fault: str, step: int) -> int:
    hits = 0
    for n in range(1, points(shell, call) + 1, step):
        status = hit(shell, call, fault, n)
        hits += 1
        if "signal" not in fault:
            assert status in (0, 74, 75, 78), (call, fault, n)
        settle(shell)
        check(shell, killed="signal" in fault)
        (shell.directory / "ran").unlink()
        shutil.rmtree(shell.state)
    return hits


@pytest.mark.parametrize("fault", ["signal=KILL", "error=ENOSPC", "error=EIO"])
@pytest.mark.parametrize("call", ["pwrite64", "fdatasync"])
def test_the_ledger_is_whole_after_a_fault_at_some_durable_calls(shell: Shell, call: str, fault: str) -> None:
    assert sweep(shell, call, fault, step=9 if call == "pwrite64" else 3) >= 3


@pytest.mark.long
@pytest.mark.parametrize("fault", ["signal=KILL", "error=ENOSPC", "error=EIO"])
@pytest.mark.parametrize("call", [*DURABLE, *OTHERS])
def test_the_ledger_is_whole_after_a_fault_at_any_call(shell: Shell, call: str, fault: str) -> None:
    if call in ("openat", "close", "write") and fault != "signal=KILL":
        pytest.skip("the interpreter itself does not survive that")
    assert sweep(shell, call, fault, step=1) >= 1


def entries(shell: Shell) -> list[tuple[str, str, str]]:
    """Return run, case and what is said of every case entry on record."""
    database = sqlite3.connect(shell.state / "db" / "runguard.sqlite")
    rows = database.execute(
        "SELECT run_id, case_id, said FROM item JOIN run ON run.start_seq = item.start_seq ORDER BY id"
    ).fetchall()
    database.close()
    return rows


def sweep_telling(shell: Shell, call: str, fault: str, step: int) -> int:
    hits = 0
    for n in range(1, points(shell, call, TELLING) + 1, step):
        shutil.rmtree(shell.state)
        (shell.directory / "ran").unlink()
        hit(shell, call, fault, n, TELLING)
        for _ in range(2):  # the first brings over the journal, the second what was left beside it
            settle(shell, TELLING)
        check(shell, killed="signal" in fault)
        ran = (shell.directory / "ran").read_text().split()
        said = [("A", "intent"), ("A", "done"), ("B", "intent")]
        assert sorted(entries(shell)) == sorted((run_id, *each) for run_id in ran for each in said), (call, fault, n)
        hits += 1
    return hits


@pytest.mark.parametrize(("call", "step"), [("pwrite64", 23), ("unlink", 1)])
@pytest.mark.parametrize("fault", ["signal=KILL", "error=ENOSPC"])
def test_every_case_entry_is_on_record_once_after_a_fault(shell: Shell, call: str, step: int, fault: str) -> None:
    assert sweep_telling(shell, call, fault, step) >= 2


@pytest.mark.long
@pytest.mark.parametrize("call", [*DURABLE, "unlink", "fsync"])
@pytest.mark.parametrize("fault", ["signal=KILL", "error=ENOSPC", "error=EIO"])
def test_every_case_entry_is_on_record_once_after_a_fault_at_any_call(shell: Shell, call: str, fault: str) -> None:
    assert sweep_telling(shell, call, fault, step=1) >= 1

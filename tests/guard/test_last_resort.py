"""Whatever fails while a command runs, it is waited for, limited and stopped as ever, and its status is known."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runguard.guard import runfile
from runguard.guard.capture import Capture
from runguard.guard.process import Plan, spawn
from runguard.guard.signals import Signals, listen
from runguard.guard.supervise import Ended, supervise

Drive = Callable[..., Any]
PATH = {"PATH": "/usr/bin:/bin"}


class Faulty(Capture):
    """A capture with a bug, or one that eats what memory there is."""

    def __init__(self, error: Exception, after: int = 0) -> None:
        super().__init__()
        self.error = error
        self.left = after

    def feed(self, stream: int, at_ms: int, data: bytes) -> None:
        self.left -= 1
        if self.left < 0:
            raise self.error
        super().feed(stream, at_ms, data)


@pytest.fixture
def signals() -> Iterator[Signals]:
    listening = listen()
    yield listening
    listening.close()


def run(signals: Signals, script: str, capture: Capture, **options: Any) -> Ended:
    plan = Plan(("sh", "-c", script), PATH, **{"output": "never", "drain_s": 0.2, **options})
    return supervise(spawn(plan, signals), plan, signals, capture)


def test_a_fault_of_ours_is_a_remark_and_the_status_the_commands(signals: Signals, tmp_path: Path) -> None:
    ended = run(signals, f"echo x; head -c 300000 /dev/zero && touch {tmp_path}/alive; exit 3", Faulty(KeyError("k")))
    assert (ended.exit_status, ended.signal) == (3, None)
    (remark,) = ended.remarks
    assert remark.startswith(
        "runguard failed at supervising the command and from then on dropped its output: KeyError('k') in feed ("
    )
    assert (tmp_path / "alive").exists()


def test_a_fault_before_the_first_round_is_one_too(signals: Signals) -> None:
    plan = Plan(("sh", "-c", "echo out; exit 4"), PATH, output="never", drain_s=0.2)
    child = spawn(plan, signals)
    beside: Any = (None,)  # no Beside
    ended = supervise(child, plan, signals, Capture(), beside)
    assert ended.exit_status == 4
    assert "AttributeError" in ended.remarks[0]


def test_what_is_left_behind_is_named_after_a_fault(signals: Signals) -> None:
    ended = run(signals, "echo x; setsid sleep 60 >/dev/null 2>&1 & exit 3", Faulty(KeyError("k")))
    [straggler] = ended.stragglers
    os.kill(straggler.pid, signal.SIGKILL)
    assert (ended.exit_status, straggler.fate) == (3, "left")


def test_the_time_limit_holds_after_a_fault(signals: Signals) -> None:
    ended = run(
        signals, "trap '' TERM; echo x; while :; do sleep 0.05; done", Faulty(OSError(5, "x")), timeout_s=0.3,
        kill_after_s=0.2,
    )  # fmt: skip
    assert (ended.timed_out, ended.kill_sent, ended.signal) == (True, True, signal.SIGKILL)


def test_signals_are_passed_on_after_a_fault(signals: Signals) -> None:
    script = "trap 'kill -TERM $PPID' USR1; trap 'exit 5' TERM; echo x; kill -USR1 $PPID; while :; do sleep 0.05; done"
    ended = run(signals, script, Faulty(MemoryError()))
    assert (ended.exit_status, ended.stop_signal) == (5, signal.SIGTERM)


def test_a_fault_leaves_no_descriptor_open(signals: Signals) -> None:
    before = os.listdir("/proc/self/fd")
    run(signals, "echo x; exit 1", Faulty(ValueError()))
    assert os.listdir("/proc/self/fd") == before


def test_what_others_write_after_the_end_is_not_waited_for_after_a_fault(signals: Signals) -> None:
    ended = run(signals, "echo x; sleep 30 & exit 6", Faulty(ValueError()))
    assert ended.exit_status == 6


def test_without_proc_a_command_runs_and_its_peak_is_not_claimed(drive: Drive) -> None:
    hidden = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"]
    ended = drive("sh", "-c", "echo out; exit 3", wrapper=hidden)
    if b"unshare" in ended.err or b"mount" in ended.err:
        pytest.skip("no mount namespace can be had here")
    assert (ended.status, ended.out, ended.err) == (3, b"out\n", b"")
    assert ended.report["peak_memory_bytes"] is None
    assert ended.report["remarks"] == []


def test_without_proc_the_group_is_waited_for_and_killed(drive: Drive) -> None:
    hidden = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"]
    script = "(trap '' TERM; while :; do sleep 0.1; done) & trap 'exit 3' TERM; wait"
    ended = drive("sh", "-c", script, wrapper=hidden, options={"timeout_s": 0.5, "kill_after_s": 0.5})
    if b"unshare" in ended.err or b"mount" in ended.err:
        pytest.skip("no mount namespace can be had here")
    assert ended.report["timed_out"]
    assert ended.report["kill_sent"]


@pytest.mark.parametrize("spare_kib", [0, 256, 1024, 3072])
def test_without_memory_the_command_lives_and_ends_with_its_own_status(
    drive: Drive, tmp_path: Path, spare_kib: int
) -> None:
    """The command takes what address space there is from its guard, but `spare_kib`, before it writes."""
    script = (
        "prlimit --pid $PPID --as=$(( $(awk '/VmSize/ {print $2}' /proc/$PPID/status) * 1024 + "
        f"{spare_kib} * 1024 )):; "
        f"head -c 3000000 /dev/zero && touch {tmp_path}/alive; prlimit --pid $PPID --as=unlimited:; exit 3"
    )
    ended = drive("sh", "-c", script, options={"runs": str(tmp_path), "drain_s": 0.2})
    assert ended.status == 3, ended.err
    assert (tmp_path / "alive").exists()
    assert ended.report["exit_status"] == 3
    assert ended.report["kept_bytes"] + ended.report["omitted_bytes"] == ended.report["stdout"]["bytes"]


def test_a_mirror_without_memory_is_a_remark(tmp_path: Path) -> None:
    class Poor(Capture):
        def since(self, offset: int) -> Any:
            raise MemoryError

    work = runfile.create(str(tmp_path), "run")
    capture = Poor()
    capture.feed(1, 0, b"out\n")
    work.mirror(capture)
    assert work.remark == f"the output is not mirrored in {work.path}: MemoryError()"
    assert work.behind(capture) == 0
    work.remove()

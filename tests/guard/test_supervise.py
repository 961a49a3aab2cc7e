"""Work beside the command, and what remains of a run that nobody needs to wait for."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from runguard.guard import runfile
from runguard.guard.capture import Capture
from runguard.guard.process import Plan, spawn
from runguard.guard.signals import Signals, listen
from runguard.guard.supervise import Beside, Ended, supervise

PATH = {"PATH": "/usr/bin:/bin"}


@pytest.fixture
def signals() -> Iterator[Signals]:
    listening = listen()
    yield listening
    listening.close()


def run(signals: Signals, script: str, *beside: Beside, work: runfile.RunFile | None = None) -> Ended:
    plan = Plan(("sh", "-c", script), PATH, output="never", inherit=(work.fd,) if work else ())
    return supervise(spawn(plan, signals), plan, signals, Capture(), beside, work)


def counting(done: list[int], until: int, wait_s: float | None = None) -> Iterator[float | None]:
    for number in range(until):
        done.append(number)
        yield wait_s


def test_work_beside_the_command_is_done_in_steps(signals: Signals, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")

    def release() -> Iterator[None]:
        yield from counting(done, 100)
        (tmp_path / "go").write_text("on\n")

    done: list[int] = []
    ended = run(signals, f"read x <{tmp_path}/go; exit 3", Beside(0, release()))
    assert (ended.exit_status, done) == (3, list(range(100)))


def test_work_is_left_to_the_caller_where_the_command_was_quicker(signals: Signals) -> None:
    done: list[int] = []
    run(signals, "true", Beside(30, counting(done, 3)))
    assert done == []


def test_a_step_may_ask_for_a_pause(signals: Signals) -> None:
    done: list[int] = []
    run(signals, "sleep 0.3", Beside(0, counting(done, 1000, wait_s=0.1)))
    assert len(done) in range(1, 100)


def test_a_fault_in_work_beside_the_command_is_a_remark(signals: Signals) -> None:
    def fails() -> Iterator[None]:
        yield
        raise OSError("no such thing")

    done: list[int] = []
    ended = run(signals, "sleep 0.2; exit 4", Beside(0, fails()), Beside(0, counting(done, 3)))
    assert ended.exit_status == 4
    assert ended.remarks == ("work beside the command failed: OSError('no such thing')",)
    assert done == [0, 1, 2]


def test_several_commands_can_be_supervised_in_turn(signals: Signals) -> None:
    before = os.listdir("/proc/self/fd")
    assert [run(signals, f"echo {status}; exit {status}").exit_status for status in (1, 2, 3)] == [1, 2, 3]
    assert os.listdir("/proc/self/fd") == before


def test_the_duration_ends_with_the_command_not_with_its_pipes(signals: Signals) -> None:
    ended = run(signals, "sleep 1.2 & exit 0")
    assert ended.exit_status == 0
    assert ended.duration_s < 1


def test_a_status_that_somebody_else_took_is_unknown_and_said(signals: Signals) -> None:
    plan = Plan(("sh", "-c", "exit 9"), PATH, output="never")
    child = spawn(plan, signals)
    os.waitpid(child.pid, 0)
    ended = supervise(child, plan, signals, Capture())
    assert (ended.exit_status, ended.signal) == (None, None)
    assert ended.remarks == ("the command's exit status is unknown: it was reaped by somebody else",)


def test_a_mirror_that_failed_is_a_remark(signals: Signals, tmp_path: Path) -> None:
    work = runfile.create(str(tmp_path), "run")
    os.close(work.fd)
    work.fd = os.open("/dev/full", os.O_RDWR)
    ended = run(signals, "echo out; exit 2", work=work)
    assert ended.exit_status == 2
    assert ended.remarks == (f"the output is not mirrored in {work.path}: No space left on device",)
    os.close(work.fd)

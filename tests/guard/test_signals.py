"""Signals to the guard, time limits, and the end of the whole group."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runguard.guard.signals import Signals, listen

Drive = Callable[..., Any]
Ready = Callable[[], bytes]


@pytest.fixture
def signals() -> Iterator[Signals]:
    listening = listen()
    yield listening
    listening.close()


def test_what_is_received_is_kept_in_order_and_wakes(signals: Signals) -> None:
    for number in (signal.SIGUSR1, signal.SIGTERM, signal.SIGINT):
        signal.raise_signal(number)
    assert os.read(signals.fd, 9) == bytes([10, 15, 2])
    assert signals.take() == [10, 15, 2]
    assert signals.take() == []
    assert signals.stop == 15


def test_a_signal_ignored_at_our_start_is_not_received() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    listening = listen()
    try:
        signal.raise_signal(signal.SIGHUP)
        assert listening.received == []
        assert listening.ignored >= {signal.SIGHUP}
    finally:
        listening.close()
        assert signal.signal(signal.SIGHUP, before) == signal.SIG_IGN


def test_the_wakeup_pipe_is_high_and_not_inherited(signals: Signals) -> None:
    assert min(signals.fd, signals.poke_fd) >= 64
    assert not os.get_inheritable(signals.fd)
    assert not os.get_inheritable(signals.poke_fd)


@pytest.mark.parametrize("name", ["TERM", "INT", "HUP", "QUIT"])
def test_a_stop_signal_is_forwarded_and_the_commands_own_status_kept(
    guard: Drive, ready: Ready, tmp_path: Path, name: str
) -> None:
    # A shell started with `&` would ignore INT and QUIT; this one is in the foreground of its own session.
    script = f"trap 'echo {name}; exit 9' {name}; echo >{tmp_path}/ready; while :; do sleep 0.05; done"
    started = guard("bash", "-c", script)
    ready()
    number = getattr(signal, f"SIG{name}")
    started.process.send_signal(number)
    ended = started.finish()
    assert (ended.status, ended.out) == (9, f"{name}\n".encode())
    assert ended.report["stop_signal"] == number
    assert ended.report["kill_sent"] is False


@pytest.mark.parametrize("name", ["USR1", "USR2"])
def test_a_user_signal_is_forwarded_once_and_stops_nothing(
    guard: Drive, ready: Ready, tmp_path: Path, name: str
) -> None:
    script = f"trap 'echo got' {name}; echo >{tmp_path}/ready; read x <{tmp_path}/go; sleep 0.1; exit 4"
    os.mkfifo(tmp_path / "go")
    started = guard("bash", "-c", script)
    ready()
    started.process.send_signal(getattr(signal, f"SIG{name}"))
    (tmp_path / "go").write_text("on\n")
    ended = started.finish()
    assert (ended.status, ended.out) == (4, b"got\n")
    assert ended.report["stop_signal"] is None


def test_the_whole_group_hears_the_signal(guard: Drive, ready: Ready, tmp_path: Path) -> None:
    inner = f"trap 'echo inner; exit' TERM; echo >{tmp_path}/ready; while :; do sleep 0.05; done"
    started = guard("bash", "-c", f'bash -c "{inner}"; echo outer')
    ready()
    started.process.terminate()
    ended = started.finish()
    assert ended.out == b"inner\n"
    assert ended.report["signal"] == signal.SIGTERM


def test_a_command_that_ignores_a_stop_is_killed(guard: Drive, ready: Ready, tmp_path: Path) -> None:
    script = f"trap '' TERM; echo >{tmp_path}/ready; sleep 60; sleep 60"
    started = guard("sh", "-c", script, options={"kill_after_s": 0.3})
    ready()
    started.process.terminate()
    ended = started.finish()
    assert ended.status == 137
    assert (ended.report["stop_signal"], ended.report["kill_sent"]) == (15, True)


def test_a_second_stop_signal_leaves_a_second_at_most(guard: Drive, ready: Ready, tmp_path: Path) -> None:
    script = f"trap '' TERM; trap 'echo >{tmp_path}/ready' INT; echo >{tmp_path}/ready; while :; do sleep 0.05; done"
    started = guard("bash", "-c", script, options={"kill_after_s": 300})
    ready()
    started.process.terminate()
    started.process.send_signal(signal.SIGINT)
    ready()
    ended = started.finish(timeout_s=20)
    assert ended.status == 137
    assert ended.report["stop_signal"] in (2, 15)  # the kernel delivers pending signals in its own order


def test_a_repeated_stop_signal_is_not_forwarded_twice(guard: Drive, ready: Ready, tmp_path: Path) -> None:
    script = f"trap 'echo TERM' TERM; echo >{tmp_path}/ready; while :; do sleep 0.05; done"
    started = guard("bash", "-c", script, options={"kill_after_s": 300})
    ready()
    started.process.terminate()
    assert started.process.stdout.read(5) == b"TERM\n"
    started.process.terminate()
    ended = started.finish(timeout_s=20)
    assert (ended.status, ended.out) == (137, b"")


def test_a_stop_reaches_a_stopped_group(guard: Drive, ready: Ready, tmp_path: Path) -> None:
    script = f"trap 'echo heard; exit' TERM; echo $$ >{tmp_path}/ready; while :; do sleep 0.05; done"
    started = guard("bash", "-c", script, options={"kill_after_s": 20})
    os.killpg(int(ready()), signal.SIGSTOP)
    started.process.terminate()
    assert started.finish().out == b"heard\n"


def test_the_lock_outlives_nothing_of_a_stopped_group(guard: Drive, ready: Ready, tmp_path: Path) -> None:
    # The leader ends at once, a member takes its time to clean up.
    member = f"trap 'sleep 0.4; echo cleaned >{tmp_path}/cleaned; exit' TERM; echo >{tmp_path}/ready; sleep 60 & wait"
    started = guard("bash", "-c", f'bash -c "{member}" >/dev/null 2>&1 & wait')
    ready()
    started.process.terminate()
    ended = started.finish()
    assert ended.report["signal"] == signal.SIGTERM
    assert (tmp_path / "cleaned").read_text() == "cleaned\n"
    assert ended.report["stragglers"] == []


def test_a_timeout_ends_the_command_with_term(drive: Drive) -> None:
    ended = drive("sh", "-c", "trap 'echo cleaning; exit 5' TERM; sleep 60 & wait", options={"timeout_s": 1})
    assert ended.out == b"cleaning\n"
    assert ended.report["timed_out"] is True
    assert (ended.report["exit_status"], ended.report["kill_sent"]) == (5, False)


def test_a_command_that_ignores_the_timeout_is_killed(drive: Drive) -> None:
    ended = drive("sh", "-c", "trap '' TERM; sleep 60; sleep 60", options={"timeout_s": 0.2, "kill_after_s": 0.2})
    assert (ended.report["timed_out"], ended.report["kill_sent"], ended.report["signal"]) == (True, True, 9)


def test_a_member_that_ignores_the_timeout_is_killed_too(drive: Drive, ready: Ready, tmp_path: Path) -> None:
    script = f"(trap '' TERM; echo >{tmp_path}/ready; sleep 61 >/dev/null 2>&1) & wait"
    ended = drive("sh", "-c", script, options={"timeout_s": 0.3, "kill_after_s": 0.3})
    ready()
    assert ended.report["kill_sent"] is True
    assert ended.report["stragglers"] == []


def test_a_command_that_ends_in_time_has_not_timed_out(drive: Drive) -> None:
    assert drive("true", options={"timeout_s": 30}).report["timed_out"] is False


def test_a_stop_after_the_commands_end_is_no_stop_of_the_command(guard: Drive, ready: Ready, tmp_path: Path) -> None:
    # The command's reader takes nothing, so the guard stays to deliver.
    read_fd, write_fd = os.pipe()
    script = f"head -c 200000 /dev/zero; echo $$ >{tmp_path}/ready"
    started = guard("sh", "-c", script, stdout=write_fd, stderr=subprocess.DEVNULL)
    pid = int(ready())
    while os.path.exists(f"/proc/{pid}"):
        time.sleep(0.01)
    started.process.terminate()
    ended = started.finish(timeout_s=8)  # less than the ten seconds it would wait otherwise
    os.close(read_fd)
    os.close(write_fd)
    assert (ended.status, ended.report["stop_signal"]) == (0, None)


def test_other_children_are_left_alone(tmp_path: Path) -> None:
    script = f"""
import os, sys, time
from runguard.guard.capture import Capture
from runguard.guard.process import Plan, spawn
from runguard.guard.signals import listen
from runguard.guard.supervise import supervise
other = os.posix_spawn("/bin/sh", ["sh", "-c", "exit 8"], {{}})
signals = listen()
child = spawn(Plan(("sleep", "0.2"), {{"PATH": "{os.environ["PATH"]}"}}), signals)
supervise(child, Plan((), {{}}), signals, Capture())
print(os.waitstatus_to_exitcode(os.waitpid(other, 0)[1]))
"""
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout == b"8\n"

"""Starting the helper and waiting for it, with real processes and servers."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from receivers import Healthchecks, Misbehaving, answer, drip, hang
from runguard.heartbeat import client
from runguard.heartbeat.body import Body
from runguard.heartbeat.client import Cut, collect, launch, message, poll
from runguard.heartbeat.styles import Event, Request, request

UUID = "5bf66975-d4c7-4bf5-bcc8-b8d8a82ea278"
RUN = "01957a0e-6b1f-7c3a-9f2e-3d1b5c7a9e10"
QUICK = {"delays_s": (0.01,), "timeouts_s": (60.0, 60.0), "deadline_s": 60.0}


def ask(url, **settings):
    return message("healthchecks", Request("POST", url, (), Body("failed", "x")), **{**QUICK, **settings})


def open_pipes():
    """Return our pipes; sockets come and go with the receivers, which live in this process."""
    targets = {}
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            targets[fd] = os.readlink(f"/proc/self/fd/{fd}")
    return {target for target in targets.values() if target.startswith("pipe:")}


def is_alive(pid):
    return Path(f"/proc/{pid}").exists()


def test_a_ping_is_sent_and_its_result_comes_back():
    before = open_pipes()
    with Healthchecks() as monitor:
        sending = launch(ask(monitor.add(UUID)), {})
        pid = sending.pid
        sent = collect(sending, 30)
    assert (sent.verdict, sent.status, sent.tries, sent.detail, sent.body_limit) == (
        "accepted", 200, 1, "HTTP 200", 10_000,
    )  # fmt: skip
    assert sent.elapsed_s > 0
    assert monitor.checks[UUID].log == [("", None, b"failed\nx")]
    assert not is_alive(pid)
    assert open_pipes() == before


def test_start_and_finish_of_a_run_clear_the_monitors_timer():
    with Healthchecks() as monitor:
        url = monitor.add(UUID)
        start = collect(launch(ask_event(url, Event("start", RUN)), {}), 30)
        assert monitor.checks[UUID].started
        collect(launch(ask_event(url, Event("success", RUN, 0, rid_ok=start.verdict == "accepted")), {}), 30)
    assert monitor.checks[UUID].log == [("start", RUN, b""), ("", RUN, b"")]
    assert (monitor.checks[UUID].started, monitor.checks[UUID].status) == (False, "up")


def test_a_finish_without_rid_clears_the_timer_of_a_start_whose_answer_was_lost():
    with Healthchecks() as monitor:
        url = monitor.add(UUID)
        collect(launch(ask_event(url, Event("start", RUN)), {}), 30)
        collect(launch(ask_event(url, Event("success", RUN, 0, rid_ok=False)), {}), 30)
    assert (monitor.checks[UUID].started, monitor.checks[UUID].status) == (False, "up")


def ask_event(url, event):
    return message("healthchecks", request("healthchecks", url, event), **QUICK)


def test_poll_never_waits():
    with Misbehaving([hang]) as monitor:
        sending = launch(ask(monitor.url("/x")), {})
        assert poll(sending) is None
        monitor.wait_for(1)
        assert poll(sending) is None
        assert collect(sending, 0).verdict == "undelivered"


def test_its_descriptor_is_readable_when_it_has_ended():
    with Healthchecks() as monitor:
        sending = launch(ask(monitor.add(UUID)), {})
        assert select.select([sending], [], [], 30)[0] == [sending]
        assert poll(sending).verdict == "accepted"
        assert poll(sending).verdict == "accepted"
        assert collect(sending).verdict == "accepted"
        assert sending.fileno() == -1


def test_a_helper_that_runs_out_of_time_tells_of_its_tries_before_it_would_be_killed():
    with Misbehaving([answer(503), hang]) as monitor:
        sent = collect(launch(ask(monitor.url("/x"), deadline_s=4.0), {}), 30)
    assert (sent.verdict, sent.status, sent.tries) == ("undelivered", 503, 2)
    assert sent.detail == "no success within 3 s: HTTP 503"


@pytest.mark.parametrize("step", [hang, drip])
def test_at_the_deadline_the_helper_is_killed(step):
    before = open_pipes()
    with Misbehaving([step]) as monitor:
        sending = launch(ask(monitor.url(f"/ping/{UUID}")), {})
        pid = sending.pid
        monitor.wait_for(1)
        sent = collect(sending, 0.2)
    assert (sent.verdict, sent.status, sent.tries) == ("undelivered", None, 0)
    assert sent.detail.startswith("deadline: no answer after ")
    assert not is_alive(pid)
    assert open_pipes() == before


@pytest.fixture
def wakeup():
    read_fd, write_fd = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    yield read_fd, write_fd
    os.close(read_fd)
    os.close(write_fd)


def test_a_stop_signal_shortens_the_wait(wakeup, monkeypatch):
    monkeypatch.setattr(client, "STOPPED_DEADLINE_S", 0.2)
    read_fd, write_fd = wakeup
    with Misbehaving([hang]) as monitor:
        sending = launch(ask(monitor.url("/x")), {})
        monitor.wait_for(1)
        os.write(write_fd, b"\x0f")
        answers = iter([False, True])  # not yet told when the wait begins
        sent = collect(sending, 60, Cut(read_fd, lambda: next(answers)))
    assert sent.verdict == "undelivered"
    assert sent.elapsed_s < 30


def test_a_stop_signal_that_came_before_shortens_the_wait(wakeup, monkeypatch):
    monkeypatch.setattr(client, "STOPPED_DEADLINE_S", 0.2)
    with Misbehaving([hang]) as monitor:
        sent = collect(launch(ask(monitor.url("/x")), {}), 60, Cut(wakeup[0], lambda: True))
    assert sent.elapsed_s < 30


def test_a_signal_that_is_no_stop_leaves_the_wait_alone(wakeup):
    read_fd, write_fd = wakeup
    os.write(write_fd, b"\x11")

    def told() -> bool:
        with contextlib.suppress(BlockingIOError):
            os.read(read_fd, 100)
        return False

    with Healthchecks() as monitor:
        assert collect(launch(ask(monitor.add(UUID)), {}), 30, Cut(read_fd, told)).verdict == "accepted"


def test_the_secret_is_in_no_argv_and_no_environment():
    secret = UUID.encode()
    environ = {"RUNGUARD_PING": f"https://hc-ping.com/{UUID}", "API_TOKEN": UUID, "PATH": "/usr/bin"}
    with Misbehaving([hang]) as monitor:
        sending = launch(ask(monitor.url(f"/ping/{UUID}")), environ)
        monitor.wait_for(1)
        environment = Path(f"/proc/{sending.pid}/environ").read_bytes()
        command_lines = b"".join(read_quietly(path) for path in Path("/proc").glob("[0-9]*/cmdline"))
        collect(sending, 0)
    assert b"-m\0runguard.sender" in command_lines
    assert secret not in command_lines
    assert secret not in environment
    assert b"PATH=/usr/bin" in environment


def read_quietly(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_the_helper_inherits_no_lock_and_no_directory():
    locked = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(locked, True)
    with Misbehaving([hang]) as monitor:
        sending = launch(ask(monitor.url("/x")), {})
        monitor.wait_for(1)
        targets = {fd: os.readlink(f"/proc/{sending.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{sending.pid}/fd")}
        directory = os.readlink(f"/proc/{sending.pid}/cwd")
        collect(sending, 0)
    os.close(locked)
    assert targets.pop("2") == "/dev/null"
    assert "/dev/null" not in targets.values()
    assert directory == "/"


def test_the_helper_has_a_session_of_its_own_and_outlives_a_stop():
    with Misbehaving([hang, answer(200, b"OK")]) as monitor:
        sending = launch(ask(monitor.url("/x"), timeouts_s=(1.0, 1.0)), {})
        monitor.wait_for(1)
        assert os.getsid(sending.pid) == sending.pid
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            os.kill(sending.pid, number)
        assert collect(sending, 30).verdict == "accepted"


def test_a_helper_that_dies_is_an_undelivered_ping():
    with Misbehaving([hang]) as monitor:
        sending = launch(ask(monitor.url("/x")), {})
        monitor.wait_for(1)
        os.kill(sending.pid, signal.SIGKILL)
        sent = collect(sending, 30)
    assert (sent.verdict, sent.detail) == ("undelivered", "the helper ended without a result (signal 9)")


def test_a_helper_that_somebody_else_reaped_is_no_error():
    with Misbehaving([hang]) as monitor:
        sending = launch(ask(monitor.url("/x")), {})
        monitor.wait_for(1)
        os.kill(sending.pid, signal.SIGKILL)
        os.waitpid(sending.pid, 0)
        assert collect(sending, 30).detail == "the helper ended without a result"


def test_an_interpreter_that_is_gone_is_an_undelivered_ping(monkeypatch):
    before = open_pipes()
    monkeypatch.setattr(sys, "executable", "/does/not/exist/python3")
    sent = collect(launch(ask("http://127.0.0.1:9/x"), {}), 30)
    assert (sent.verdict, sent.detail) == (
        "undelivered",
        "the helper could not be started: No such file or directory",
    )
    assert open_pipes() == before


def test_an_unknown_interpreter_is_an_undelivered_ping(monkeypatch):
    monkeypatch.setattr(sys, "executable", "")
    assert collect(launch(ask("http://127.0.0.1:9/x"), {}), 30).verdict == "undelivered"


def test_a_message_larger_than_a_pipe_is_handed_over():
    with Healthchecks() as monitor:
        wanted = ask(monitor.add(UUID))
        wanted["tail"] = "x" * 300_000
        sent = collect(launch(wanted, {}), 30)
    assert sent.verdict == "accepted"
    assert len(monitor.requests[0].body) == 10_000


SCRIPT = """
import os, sys
from runguard.heartbeat.body import Body
from runguard.heartbeat.client import collect, launch, message
from runguard.heartbeat.styles import Request
sent = collect(launch(message("healthchecks", Request("POST", sys.argv[1], (), Body())), dict(os.environ)), 30)
print(sent.verdict, sent.detail)
"""


@pytest.mark.parametrize("way", ["script", "-c", "PYTHONPATH"])
def test_the_helper_finds_the_package_however_the_guard_was_started(way, tmp_path):
    source = str(Path(client.__file__).parents[2])
    script = tmp_path / "scripts" / "guard.py"
    script.parent.mkdir()
    # What lies beside the script or in the current directory must not be what the helper imports.
    for directory in (script.parent, tmp_path):
        (directory / "requests.py").write_text("raise SystemExit(9)")
    script.write_text(f"import sys; sys.path.append({source!r})\n{SCRIPT}")
    environ = {"PATH": os.defpath}
    match way:
        case "script":
            command = [sys.executable, str(script)]
        case "-c":
            command = [sys.executable, "-c", script.read_text()]
        case _:
            command = [sys.executable, "-c", SCRIPT]
            environ["PYTHONPATH"] = source
    with Healthchecks() as monitor:
        ended = subprocess.run(
            [*command, monitor.add(UUID)], cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=60
        )
    assert (ended.stdout, ended.stderr) == ("accepted HTTP 200\n", "")


def test_the_helper_goes_on_when_the_guard_is_killed():
    with Misbehaving([hang, answer(200, b"OK")]) as monitor:
        script = SCRIPT.replace("Body())", "Body()), timeouts_s=(1.0, 1.0)")
        guard = subprocess.Popen(
            [sys.executable, "-c", script, monitor.url("/x")],
            env={"PYTHONPATH": str(Path(client.__file__).parents[2])},
        )
        monitor.wait_for(1)
        guard.kill()
        guard.wait()
        assert len(monitor.wait_for(2, timeout_s=30)) == 2


def test_nothing_heavy_is_imported_with_the_client():
    script = """
import sys
before = set(sys.modules)
import runguard.heartbeat.client, runguard.heartbeat.styles, runguard.heartbeat.redact
print(*sorted(set(sys.modules) - before))
"""
    environ = {"PYTHONPATH": str(Path(client.__file__).parents[2])}
    # -S, so that nothing of the environment's own has imported them before.
    ended = subprocess.run(
        [sys.executable, "-S", "-c", script], env=environ, capture_output=True, text=True, check=True, timeout=60
    )
    heavy = {"re", "json", "enum", "typing", "signal", "subprocess", "hashlib", "threading", "requests", "socket"}
    assert heavy & set(ended.stdout.split()) == set()
    assert "runguard.heartbeat.client" in ended.stdout.split()

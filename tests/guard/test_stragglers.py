"""What a command leaves behind is found wherever it went, told from others, waited for, ended and reaped."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runguard.children import HELPERS
from runguard.guard.capture import Capture
from runguard.guard.process import Plan, spawn
from runguard.guard.signals import Signals, listen
from runguard.guard.start import new_run_id
from runguard.guard.supervise import Beside, Ended, supervise

Drive = Callable[..., Any]
Ready = Callable[[], bytes]

# Twice forked, in a session of its own, with none of the descriptors that it inherited.
DAEMON = """
import os, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 1000)
        os.execvp(sys.argv[1], sys.argv[1:])
    os._exit(0)
os.wait()
"""
# The guard as it is where Python was built without _ctypes.
WITHOUT_PRCTL = """
import runpy, sys
sys.modules["_ctypes"] = None
sys.argv = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.fixture
def signals() -> Iterator[Signals]:
    listening = listen()
    yield listening
    listening.close()


def run(signals: Signals, script: str, *beside: Beside, **options: Any) -> Ended:
    plan = Plan(("sh", "-c", script), {"PATH": "/usr/bin:/bin"}, output="never", **options)
    return supervise(spawn(plan, signals), plan, signals, Capture(), beside)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False


def commands(stragglers: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(each["command"], each["fate"]) for each in stragglers]


def test_a_daemon_that_has_nothing_of_ours_is_named_and_left_alone(drive: Drive) -> None:
    ended = drive(sys.executable, "-c", DAEMON, "sleep", "60")
    assert commands(ended.report["stragglers"]) == [("sleep 60", "left")]
    pid = ended.report["stragglers"][0]["pid"]
    assert ended.report["remarks"] == [f"the command left behind {pid} (sleep 60)"]
    assert alive(pid)
    os.kill(pid, signal.SIGKILL)


def test_what_is_left_goes_to_init_when_we_end(drive: Drive, tmp_path: Path) -> None:
    plain = subprocess.run(["sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!"], capture_output=True, check=True)
    ended = drive("sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!")
    pids = [int(plain.stdout), int(ended.out)]
    parents = {Path(f"/proc/{pid}/stat").read_text().split()[3] for pid in pids}
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    assert len(parents) == 1


def test_what_ends_a_moment_after_the_command_is_not_left_behind(drive: Drive, tmp_path: Path) -> None:
    script = f"exec > >(cat >{tmp_path}/log); echo logged"
    ended = drive("bash", "-c", script)
    assert (ended.report["stragglers"], ended.report["remarks"]) == ([], [])
    assert (tmp_path / "log").read_text() == "logged\n"


def test_orphans_are_reaped_while_the_command_runs(drive: Drive) -> None:
    script = "x=$(sh -c 'true & echo $!'); for i in $(seq 200); do test -e /proc/$x || exit 7; sleep 0.05; done"
    assert drive("sh", "-c", script).status == 7


def test_orphans_are_reaped_after_the_command_too(signals: Signals) -> None:
    ended = run(signals, "sleep 60 >/dev/null 2>&1 &")
    pid = ended.stragglers[0].pid
    os.kill(pid, signal.SIGKILL)
    for _ in range(500):  # nothing of ours looks after it any more: the end of a child does
        if not os.path.exists(f"/proc/{pid}"):
            return
        time.sleep(0.01)
    pytest.fail("it is a zombie")


def test_orphans_of_an_earlier_command_are_not_the_next_ones(signals: Signals) -> None:
    first = run(signals, "sleep 60 >/dev/null 2>&1 &")
    second = run(signals, "true", stragglers="wait")
    os.kill(first.stragglers[0].pid, signal.SIGKILL)
    assert second.stragglers == ()


def test_a_helper_of_ours_is_none_of_the_commands(signals: Signals) -> None:
    def help_() -> Iterator[None]:
        HELPERS.add(os.posix_spawn("/bin/sleep", ["sleep", "60"], {}))
        yield

    ended = run(signals, "sleep 0.2", Beside(0, help_()), stragglers="kill")
    [helper] = HELPERS
    assert ended.stragglers == ()
    assert os.waitpid(helper, os.WNOHANG) == (0, 0)
    os.kill(helper, signal.SIGKILL)
    assert os.waitpid(helper, 0)[0] == helper
    HELPERS.clear()


def test_a_child_that_we_had_before_is_none_of_the_commands(drive: Drive) -> None:
    with_child = ["sh", "-c", 'sleep 60 >/dev/null 2>&1 & echo $!; exec "$@"', "sh"]
    ended = drive("echo", "done", wrapper=with_child, options={"stragglers": "kill"})
    pid, done = ended.out.split()
    assert (done, ended.report["stragglers"], alive(int(pid))) == (b"done", [], True)
    os.kill(int(pid), signal.SIGKILL)


def test_the_command_itself_adopts_nobody(drive: Drive) -> None:
    asking = "import ctypes; x = ctypes.c_int(7); ctypes.CDLL(None).prctl(37, ctypes.byref(x), 0, 0, 0); print(x.value)"
    assert drive(sys.executable, "-c", asking).out == b"0\n"  # PR_GET_CHILD_SUBREAPER


def test_all_that_is_left_is_counted_though_the_record_names_a_hundred(drive: Drive) -> None:
    script = "n=0; while [ $n -lt 103 ]; do sleep 30 >/dev/null 2>&1 & n=$((n+1)); done"
    report = drive("sh", "-c", script, options={"stragglers": "kill"}).report
    assert len(report["stragglers"]) == 100
    assert report["remarks"][0].endswith(" (sleep 30) and 100 more")


def test_what_is_left_is_waited_for_and_its_output_relayed(drive: Drive) -> None:
    script = "(setsid sh -c 'sleep 0.7; echo late' &); echo early; exit 3"
    ended = drive("sh", "-c", script, options={"stragglers": "wait"})
    assert (ended.status, ended.out, ended.report["remarks"]) == (3, b"early\nlate\n", [])
    assert ("sh -c sleep 0.7; echo late", "ended") in commands(ended.report["stragglers"])
    assert ended.report["duration_s"] > 0.7


def test_what_orphans_used_counts(drive: Drive) -> None:
    busy = f"{sys.executable} -c 'x = bytearray(100 << 20); sum(range(3_000_000))'"
    report = drive("sh", "-c", f"({busy} &)", options={"stragglers": "wait"}).report
    assert report["user_s"] > 0
    assert report["peak_memory_bytes"] > 100 << 20


def test_the_time_limit_holds_while_what_is_left_is_waited_for(drive: Drive) -> None:
    options = {"stragglers": "wait", "timeout_s": 0.8}
    ended = drive(sys.executable, "-c", DAEMON, "sleep", "60", options=options)
    assert (ended.report["exit_status"], ended.report["timed_out"], ended.report["late"]) == (0, True, True)
    assert commands(ended.report["stragglers"]) == [("sleep 60", "stopped")]
    assert not alive(ended.report["stragglers"][0]["pid"])


def test_a_stop_signal_ends_what_is_waited_for(guard: Drive, ready: Ready, tmp_path: Path) -> None:
    script = f"setsid sh -c 'echo >{tmp_path}/ready; sleep 60; true' >/dev/null 2>&1 &"
    started = guard("sh", "-c", script, options={"stragglers": "wait"})
    ready()
    started.process.terminate()
    ended = started.finish()
    assert (ended.report["exit_status"], ended.report["stop_signal"]) == (0, signal.SIGTERM)
    commands = [each["command"] for each in ended.report["stragglers"]]
    assert f"sh -c echo >{tmp_path}/ready; sleep 60; true" in commands


def test_what_is_left_is_told_to_end_then_killed_on_request(drive: Drive, tmp_path: Path) -> None:
    heeds = f"trap 'echo heard >{tmp_path}/heard; exit' TERM; while :; do sleep 0.05; done"
    ignores = "trap '' TERM; while :; do sleep 0.05; done"
    script = f'setsid sh -c "{heeds}" >/dev/null 2>&1 & setsid sh -c "{ignores}" >/dev/null 2>&1 & exit 3'
    ended = drive("sh", "-c", script, options={"stragglers": "kill", "kill_after_s": 0.3})
    assert (ended.status, (tmp_path / "heard").read_text()) == (3, "heard\n")
    assert {each["fate"] for each in ended.report["stragglers"]} == {"stopped"}
    assert not any(alive(each["pid"]) for each in ended.report["stragglers"])
    assert ended.report["survivors"] == []


def test_with_nothing_left_nothing_is_waited_for(drive: Drive) -> None:
    ended = drive("sh", "-c", "exit 4", options={"stragglers": "kill"})
    assert (ended.status, ended.report["stragglers"], ended.report["remarks"]) == (4, [], [])


def test_what_left_the_group_is_stopped_after_the_group(drive: Drive, tmp_path: Path) -> None:
    """The command may see to it itself: here it asks its daemon to end, which needs half a second for it."""
    daemon = (
        f"trap 'sleep 0.5; echo tidy >{tmp_path}/tidy; exit' USR1; echo >{tmp_path}/up; while :; do sleep 0.05; done"
    )
    script = f"""
        setsid bash -c "{daemon}" & d=$!
        trap 'kill -USR1 $d; wait $d; exit 5' TERM
        while :; do sleep 0.05; done
    """
    ended = drive("bash", "-c", script, options={"timeout_s": 1})
    assert (ended.report["exit_status"], ended.report["stragglers"]) == (5, [])
    assert (tmp_path / "tidy").exists()


def test_what_left_the_group_is_killed_where_it_ignores_term(drive: Drive) -> None:
    script = "setsid sh -c \"trap '' TERM; while :; do sleep 0.05; done\" >/dev/null 2>&1 & sleep 60"
    ended = drive("sh", "-c", script, options={"timeout_s": 0.8, "kill_after_s": 0.3})
    assert (ended.report["signal"], ended.report["kill_sent"]) == (signal.SIGTERM, True)
    assert not any(alive(each["pid"]) for each in ended.report["stragglers"])
    assert ended.report["stragglers"] != []


def test_a_second_stop_signal_hurries_the_sweep_too(guard: Drive, ready: Ready, tmp_path: Path) -> None:
    ignores = f"trap '' TERM INT; echo >{tmp_path}/ready; while :; do sleep 0.05; done"
    started = guard("sh", "-c", f'setsid sh -c "{ignores}" & wait', options={"kill_after_s": 300})
    ready()
    started.process.terminate()
    started.process.send_signal(signal.SIGINT)
    ended = started.finish(timeout_s=20)
    assert (ended.report["kill_sent"], ended.report["survivors"]) == (True, [])


def test_what_we_may_not_signal_survives_and_is_named(drive: Drive) -> None:
    if os.getuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("needs root and setpriv, to become another user")
    script = "setsid setpriv --reuid 65534 sleep 60 >/dev/null 2>&1 & sleep 60"
    wrapper = ["setpriv", "--bounding-set", "-kill"]  # root, but without CAP_KILL
    ended = drive("sh", "-c", script, wrapper=wrapper, options={"timeout_s": 0.8, "kill_after_s": 0.1})
    [survivor] = ended.report["survivors"]
    os.kill(survivor["pid"], signal.SIGKILL)
    assert (survivor["command"], survivor["uid"], ended.report["stragglers"]) == ("sleep 60", 65534, [])
    assert f"could not be stopped: {survivor['pid']} (sleep 60)" in ended.report["remarks"]


def test_without_prctl_the_run_is_known_by_its_variable(drive: Drive) -> None:
    environ = {**os.environ, "RUNGUARD_RUN_ID": new_run_id()}
    wrapper = [sys.executable, "-c", WITHOUT_PRCTL]
    script = "setsid sleep 60 >/dev/null 2>&1 & sleep 60"
    ended = drive("sh", "-c", script, options={"timeout_s": 0.8}, env=environ, wrapper=wrapper)
    assert commands(ended.report["stragglers"]) == [("sleep 60", "stopped")]
    assert not alive(ended.report["stragglers"][0]["pid"])


def test_without_prctl_what_is_left_is_waited_for_too(drive: Drive) -> None:
    environ = {**os.environ, "RUNGUARD_RUN_ID": new_run_id()}
    wrapper = [sys.executable, "-c", WITHOUT_PRCTL]
    ended = drive("sh", "-c", "setsid sh -c 'sleep 0.3; echo late' & echo early", options={"stragglers": "wait"},
                  env=environ, wrapper=wrapper)  # fmt: skip
    assert ended.out == b"early\nlate\n"

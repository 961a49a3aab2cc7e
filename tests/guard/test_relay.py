"""The command's output reaches our stdout and stderr, whole and in time, whatever stands at their other end."""

import hashlib
import os
import re
import socket
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

import pytest

Drive = Callable[..., Any]
Ready = Callable[[], bytes]

SLOW = {"stall_s": 0.5}
NOTHING_KEPT = {"limits": [0, 0]}  # where the report must be small


def sha256_of(stream: IO[bytes]) -> str:
    seen = hashlib.sha256()
    while chunk := stream.read(1 << 20):
        seen.update(chunk)
    return seen.hexdigest()


def undelivered(report: dict[str, Any]) -> int:
    (remark,) = report["remarks"]
    count = remark.removeprefix("nobody took our output: ").removesuffix(" bytes were not delivered")
    return int(count)


def test_every_byte_value_comes_through(drive: Drive) -> None:
    every = bytes(range(256))
    ended = drive("sh", "-c", "tee /dev/stderr", input=every)
    assert (ended.out, ended.err) == (every, every)
    assert ended.report["stdout"]["sha256"] == "40aff2e9d2d8922e47afd4648e6967497158785fbd1da870e7110266bf944880"


def test_output_comes_as_it_is_written(guard: Drive, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    started = guard("sh", "-c", f"printf 'no newline'; read x <{tmp_path}/go; echo; echo $x")
    assert os.read(started.process.stdout.fileno(), 99) == b"no newline"
    (tmp_path / "go").write_text("on\n")
    assert started.finish().out == b"\non\n"


def test_200_mb_come_through_a_pipe_unchanged(guard: Drive) -> None:
    started = guard("sh", "-c", "yes 0123456789abcdef | head -c 200000000", stderr=subprocess.DEVNULL)
    seen, size = hashlib.sha256(), 0
    while chunk := started.process.stdout.read(1 << 20):
        seen.update(chunk)
        size += len(chunk)
    report = started.finish().report
    assert size == 200_000_000
    assert report["stdout"] == {"bytes": 200_000_000, "sha256": seen.hexdigest()}
    assert report["omitted_bytes"] == 200_000_000 - (64 << 10) - (1 << 20)


def test_what_nobody_wants_to_keep_is_counted_and_not_hashed(guard: Drive) -> None:
    started = guard("sh", "-c", "yes 0123456789abcdef | head -c 50000000; echo end", options=NOTHING_KEPT)
    # { yes 0123456789abcdef | head -c 50000000; echo end; } | sha256sum
    assert sha256_of(started.process.stdout) == "6ee1ee6fb6d18e87ed9847c6c2f5b7247edcbe3ecbdb5b343f3a3df0a1d68cdf"
    report = started.finish().report
    assert report["stdout"] == {"bytes": 50_000_004, "sha256": None}
    assert (report["head"], report["tail"], report["omitted_bytes"]) == ("", "", 50_000_004)


@pytest.mark.parametrize("options", [{}, NOTHING_KEPT], ids=["kept", "nothing kept"])
def test_much_to_both_streams_at_once_comes_through_each(guard: Drive, options: dict[str, Any]) -> None:
    script = "yes err | head -c 20000000 >&2 & yes out | head -c 20000000; wait"
    started = guard("sh", "-c", script, options=options)
    with ThreadPoolExecutor() as pool:
        seen = list(pool.map(sha256_of, (started.process.stdout, started.process.stderr)))
    assert seen == [  # yes out | head -c 20000000 | sha256sum; the same of err
        "f68a036653afad94e0ebc972dba5cf088a626abfb2bc552d00154ca17e4ac00c",
        "5fdab6f3fcf06dca29b05f447304a13ce9263e9485e9a874322f79d6709aba7a",
    ]
    started.process.stdout = started.process.stderr = None
    report = started.finish().report
    assert [report[name]["bytes"] for name in ("stdout", "stderr")] == [20_000_000, 20_000_000]
    assert options or [report[name]["sha256"] for name in ("stdout", "stderr")] == seen


def test_where_the_kernel_passes_nothing_on_it_is_written(drive: Drive) -> None:
    script = 'import sys; sys.modules["ctypes"] = None; del sys.argv[0]; exec(open(sys.argv[0]).read())'
    ended = drive("sh", "-c", "yes 0123456789abcdef | head -c 20000000",
                  wrapper=["sh", "-c", 'p=$1; shift; exec $p -c "$0" "$@"', script])  # fmt: skip
    # yes 0123456789abcdef | head -c 20000000 | sha256sum
    assert ended.report["stdout"]["sha256"] == "faa762b885a1719c907159202a12c2f411123104d14255866716943ffa203c97"
    assert hashlib.sha256(ended.out).hexdigest() == ended.report["stdout"]["sha256"]


@pytest.mark.parametrize("options", [{}, NOTHING_KEPT], ids=["kept", "nothing kept"])
def test_after_a_reader_that_stopped_comes_every_byte(guard: Drive, options: dict[str, Any]) -> None:
    started = guard("sh", "-c", "yes 0123456789abcdef | head -c 20000000; exit 3", options=options)
    began = started.process.stdout.read(1 << 20)
    time.sleep(1.3)  # longer than output waits to be passed on inside the kernel
    whole = began + started.process.stdout.read()
    # yes 0123456789abcdef | head -c 20000000 | sha256sum
    assert hashlib.sha256(whole).hexdigest() == "faa762b885a1719c907159202a12c2f411123104d14255866716943ffa203c97"
    ended = started.finish()
    assert (ended.status, ended.report["stdout"]["bytes"], ended.report["remarks"]) == (3, 20_000_000, [])


def test_a_file_gets_every_byte_and_keeps_its_offset(drive: Drive, tmp_path: Path) -> None:
    with open(tmp_path / "log", "wb", buffering=0) as log:
        log.write(b"before\n")
        ended = drive("sh", "-c", "seq 100000", stdout=log)
        log.write(b"after\n")
    lines = (tmp_path / "log").read_text().split()
    assert (lines[0], lines[-1], len(lines)) == ("before", "after", 100_002)
    assert ended.report["stdout"]["bytes"] == 588_895


def test_the_end_is_the_commands_end_and_who_keeps_the_pipe_is_named(drive: Drive) -> None:
    began_s = time.monotonic()
    ended = drive("sh", "-c", "(sleep 30 &); echo hi; exit 3")
    assert time.monotonic() - began_s < 3
    assert (ended.status, ended.out) == (3, b"hi\n")
    holder = ended.report["stragglers"][0]
    assert holder["command"] == "sleep 30"
    assert ended.report["remarks"] == [f"the command left behind {holder['pid']} (sleep 30)"]
    os.kill(holder["pid"], 9)


def test_what_a_grandchild_still_writes_is_read_to_its_end(drive: Drive) -> None:
    ended = drive("sh", "-c", "(sleep 0.2; echo late) & echo early; exit 6")
    assert (ended.status, ended.out, ended.report["stragglers"]) == (6, b"early\nlate\n", [])


def test_an_endless_grandchild_does_not_hold_us(drive: Drive) -> None:
    ended = drive("sh", "-c", "yes grandchild & exit 3", options={"drain_s": 0.3}, stdout=subprocess.DEVNULL)
    assert ended.status == 3
    assert ended.report["stdout"]["bytes"] > 0


def test_a_pipe_that_nobody_reads_does_not_stop_the_job(drive: Drive) -> None:
    read_fd, write_fd = os.pipe()
    os.set_blocking(write_fd, False)
    filled = os.write(write_fd, bytes(1 << 20))
    os.set_blocking(write_fd, True)
    ended = drive("sh", "-c", "head -c 1500000 /dev/zero; exit 7", options=SLOW, stdout=write_fd)
    os.close(write_fd)
    with open(read_fd, "rb") as reader:
        taken = len(reader.read()) - filled
    assert (ended.status, ended.report["stdout"]["bytes"]) == (7, 1_500_000)
    assert undelivered(ended.report) in range(1_500_000 - taken, 1_500_000 - taken + (1 << 20))


def test_a_blocked_write_of_ours_does_not_delay_the_timeout(drive: Drive) -> None:
    read_fd, write_fd = os.pipe()
    ended = drive("yes", options={**SLOW, "timeout_s": 0.5}, stdout=write_fd)
    os.close(read_fd)
    os.close(write_fd)
    assert (ended.report["timed_out"], ended.report["signal"]) == (True, 15)
    assert ended.report["stdout"]["bytes"] < 8 << 20  # nothing piles up in our memory
    assert ended.report["duration_s"] < 5


def test_a_blocked_write_of_ours_does_not_delay_a_signal(guard: Drive, ready: Ready, tmp_path: Path) -> None:
    read_fd, write_fd = os.pipe()
    script = f"trap 'echo >{tmp_path}/ready' USR1; echo >{tmp_path}/ready; yes & wait; wait"
    started = guard("bash", "-c", script, options=SLOW, stdout=write_fd)
    ready()
    with open(read_fd, "rb") as reader:
        started.process.send_signal(10)
        ready()
        started.process.terminate()
        os.close(write_fd)
        reader.read()
    assert started.finish().report["stop_signal"] == 15


def test_a_slow_reader_gets_every_byte(guard: Drive) -> None:
    started = guard("sh", "-c", "seq 60000", options={"stall_s": 2.0}, stderr=subprocess.DEVNULL)
    got = b""
    while chunk := os.read(started.process.stdout.fileno(), 4096):
        got += chunk
        if len(got) < 100_000:
            time.sleep(0.1)  # altogether longer than the guard's patience with a reader who takes nothing
    assert len(got) == 348_894
    assert started.finish().report["remarks"] == []


def test_a_reader_slower_than_the_drain_gets_what_the_command_wrote(guard: Drive) -> None:
    started = guard("head", "-c", "2500000", "/dev/zero", options={"drain_s": 0.05}, stderr=subprocess.DEVNULL)
    time.sleep(0.4)  # the command has ended long ago: all of it lies in pipes and queues
    assert len(started.process.stdout.read()) == 2_500_000
    report = started.finish().report
    assert report["stdout"]["bytes"] == 2_500_000
    assert report["remarks"] == []


def test_a_reader_that_goes_closes_the_commands_pipe(guard: Drive) -> None:
    started = guard("yes")
    assert started.process.stdout.readline() == b"y\n"
    started.process.stdout.close()
    started.process.wait(timeout=20)
    report = started.finish().report
    assert report["signal"] == 13
    assert report["remarks"] == ["nobody read our stdout to its end; the command's was closed"]


def test_a_reader_that_goes_leaves_the_job_and_the_other_stream_alone(guard: Drive, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    script = f"trap '' PIPE; echo first; read x <{tmp_path}/go; echo lost; sleep 0.1; echo lost; echo err >&2; exit 5"
    started = guard("bash", "-c", script)
    assert started.process.stdout.readline() == b"first\n"
    started.process.stdout.close()
    started.process.stdout = None
    (tmp_path / "go").write_text("on\n")
    ended = started.finish()
    assert ended.status == 5
    assert ended.err.endswith(b"err\n")
    assert b"Broken pipe" in ended.err  # bash's own words: it saw what it would have seen without us


def test_a_full_device_costs_the_output_not_the_job(drive: Drive) -> None:
    with open("/dev/full", "wb") as full:
        ended = drive("sh", "-c", "echo one; echo two; exit 4", stdout=full)
    assert ended.status == 4
    assert ended.report["remarks"] == ["8 bytes could not be written to our stdout: No space left on device"]


def test_a_full_file_costs_the_output_not_the_job(drive: Drive, tmp_path: Path) -> None:
    limited = ["bash", "-c", 'ulimit -f 8; exec "$@"', "bash"]  # 8 KiB
    with open(tmp_path / "log", "wb") as log:
        ended = drive("sh", "-c", "head -c 20000 /dev/zero; exit 4", stdout=log, wrapper=limited, options=NOTHING_KEPT)
    assert ended.status == 4
    assert (tmp_path / "log").stat().st_size == 8192
    assert ended.report["stdout"]["bytes"] == 20_000
    assert ended.report["remarks"] == ["11808 bytes could not be written to our stdout: File too large"]


def test_where_no_thread_can_be_had_the_output_comes_all_the_same(drive: Drive) -> None:
    script = (
        "import _thread, sys\n"
        'def start_new_thread(*given): raise RuntimeError("can\'t start new thread")\n'
        "_thread.start_new_thread = start_new_thread\n"
        "del sys.argv[0]\n"
        "exec(compile(open(sys.argv[0]).read(), sys.argv[0], 'exec'))"
    )
    ended = drive("sh", "-c", "seq 100000; exit 3", wrapper=["sh", "-c", 'p=$1; shift; exec $p -c "$0" "$@"', script])
    assert (ended.status, len(ended.out)) == (3, 588_895)


def test_a_socket_is_written_like_a_pipe(drive: Drive) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        drive("sh", "-c", "echo through", stdout=theirs.fileno())
        assert ours.recv(99) == b"through\n"


def test_our_own_descriptors_are_never_made_nonblocking(drive: Drive, tmp_path: Path) -> None:
    read_fd, write_fd = os.pipe()
    drive("sh", "-c", "seq 1000", stdout=write_fd, stderr=write_fd, stdin=read_fd)
    assert os.get_blocking(read_fd)
    assert os.get_blocking(write_fd)
    os.close(read_fd)
    os.close(write_fd)


def test_a_pipe_that_others_made_nonblocking_gets_every_byte(guard: Drive) -> None:
    read_fd, write_fd = os.pipe()
    os.set_blocking(write_fd, False)
    started = guard("sh", "-c", "seq 400000", stdout=write_fd)
    os.close(write_fd)
    time.sleep(0.3)  # until it is full
    with open(read_fd, "rb") as reader:
        assert len(reader.read()) == 2_688_895
    assert started.finish().status == 0


@pytest.mark.parametrize("script", ["echo out; echo err >&2", "echo out; echo err >&2; exit 2"])
def test_never_keeps_quiet_and_captures(drive: Drive, script: str) -> None:
    ended = drive("sh", "-c", script, options={"output": "never"})
    assert (ended.out, ended.err) == (b"", b"")
    assert (ended.report["stdout"]["bytes"], ended.report["stderr"]["bytes"]) == (4, 4)


def test_on_failure_keeps_quiet_about_success(drive: Drive) -> None:
    ended = drive("sh", "-c", "echo out; echo err >&2", options={"output": "on-failure"})
    assert (ended.out, ended.err) == (b"", b"")
    assert ended.report["kept_bytes"] == 8


@pytest.mark.parametrize(("end", "status"), [("exit 2", 2), ("kill -9 $$", 137)])
def test_on_failure_repeats_everything_in_order(drive: Drive, tmp_path: Path, end: str, status: int) -> None:
    script = f"for i in 1 2 3; do echo o$i; echo e$i >&2; done; {end}"
    options = {"output": "on-failure", "spool_dir": str(tmp_path)}
    ended = drive("sh", "-c", script, options=options, stderr=subprocess.STDOUT)
    assert (ended.status, ended.out) == (status, b"o1\ne1\no2\ne2\no3\ne3\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report0.json"]


def test_on_failure_repeats_to_both_streams(drive: Drive, tmp_path: Path) -> None:
    script = "seq 50000; echo err >&2; exit 1"
    ended = drive("sh", "-c", script, options={"output": "on-failure", "spool_dir": str(tmp_path)})
    assert (len(ended.out), ended.err) == (288_894, b"err\n")


def test_on_failure_repeats_what_timed_out(drive: Drive) -> None:
    ended = drive("sh", "-c", "echo out; trap 'exit 0' TERM; sleep 9 & wait",
                  options={"output": "on-failure", "timeout_s": 0.3})  # fmt: skip
    assert ended.out == b"out\n"


def test_a_full_spool_passes_on_its_beginning_and_what_comes_and_counts_both(drive: Drive, tmp_path: Path) -> None:
    limited = ["bash", "-c", 'ulimit -f 128; exec "$@"', "bash"]  # 128 KiB
    options = {"output": "on-failure", "spool_dir": str(tmp_path), **NOTHING_KEPT}
    ended = drive("sh", "-c", "seq 60000 | while read -r line; do echo $line; done; exit 4",
                  options=options, wrapper=limited)  # fmt: skip
    assert (ended.status, ended.out) == (4, "".join(f"{number}\n" for number in range(1, 60_001)).encode())
    (remark,) = ended.report["remarks"]
    kept, after = map(int, re.findall(r"(?<=first )\d+|\d+(?= after)", remark))
    assert kept in range(64 << 10, 128 << 10)
    assert kept + after == 348_894
    assert remark.endswith(" after them as they came: File too large")


def test_a_spool_directory_that_cannot_be_made_lets_everything_through(drive: Drive) -> None:
    ended = drive("sh", "-c", "seq 3; echo err >&2", options={"output": "on-failure", "spool_dir": "/proc/nowhere"})
    assert (ended.out, ended.err) == (b"1\n2\n3\n", b"err\n")


def test_on_failure_with_a_reader_who_goes_still_ends(guard: Drive) -> None:
    started = guard("sh", "-c", "seq 1000000; exit 3", options={"output": "on-failure"})
    assert started.process.stdout.readline() == b"1\n"
    started.process.stdout.close()
    started.process.stdout = None
    ended = started.finish()
    assert (ended.status, ended.report["stdout"]["bytes"]) == (3, 6_888_896)


def test_on_failure_counts_what_nobody_took(drive: Drive) -> None:
    read_fd, write_fd = os.pipe()
    ended = drive("sh", "-c", "seq 1000000; exit 3", options={"output": "on-failure", **SLOW}, stdout=write_fd)
    os.close(write_fd)
    with open(read_fd, "rb") as reader:
        taken = len(reader.read())
    assert undelivered(ended.report) in range(6_888_896 - taken, 6_888_896 - taken + (1 << 20))

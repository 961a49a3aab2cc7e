"""What broke for users of other tools: output, and what may break on its way. Real processes throughout."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from runguard.guard.frames import decode
from shell import Shell, wait_until

RUN = ("run", "-j", "J")
# Starts a command and prints the peak memory in KiB of it and of all that it waited for. Its own must be small.
MEASURE = """
import os, sys
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(pid, 0)
os.write(2, f"{usage.ru_maxrss} KiB\\n".encode())
os._exit(os.waitstatus_to_exitcode(status))
"""


def kept(shell: Shell, number: int = 1) -> tuple[bytes, bytes]:
    """Return what is on record of a run's stdout and stderr."""
    with shell.open() as store:
        output = store.output(store.find_run(str(number)).run_id)
    assert output is not None
    frames = [frame for part in output for frame in decode(part)]
    out, err = (b"".join(bytes(frame.data) for frame in frames if frame.stream == stream) for stream in (1, 2))
    return out, err


def recorded(shell: Shell, run: str = "1") -> dict[str, Any]:
    """Return what `show` tells of a run."""
    [told] = shell.json("show", run)
    return dict(told)


# Whole output in memory → OOM


def peak_mib(shell: Shell, size: str, *options: str, status: int = 0) -> float:
    """Run a command that writes so much into a pipe, under a guard; return the guard's peak memory."""
    script = f"yes 0123456789abcdef | head -c {size}; exit {status}"
    measured = [sys.executable, "-I", "-S", "-c", MEASURE, sys.executable, "-m", "runguard", *RUN, *options]
    with (
        subprocess.Popen([*measured, "-c", script], env=shell.environ, cwd=shell.directory, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, stdin=subprocess.DEVNULL) as guard,
        subprocess.Popen(["cat"], stdin=guard.stdout, stdout=subprocess.DEVNULL),
    ):  # fmt: skip
        assert guard.stdout is not None
        assert guard.stderr is not None
        guard.stdout.close()
        said = guard.stderr.read().decode()
    assert guard.returncode == status, said
    found = re.fullmatch(r"(\d+) KiB\n", said)
    assert found, said
    return int(found[1]) / 1024


@pytest.mark.parametrize(("options", "status"), [((), 0), (("--output", "on-failure"), 3)], ids=["always", "spooled"])
def test_however_much_is_written_the_guard_keeps_its_size_and_both_ends(
    shell: Shell, options: tuple[str, ...], status: int
) -> None:
    little = peak_mib(shell, "8000000", *options, status=status)
    much = peak_mib(shell, "200000000", *options, status=status)
    assert much < 40
    assert much < little + 2
    told = recorded(shell, "2")["output"]
    assert told["stdout"] == {
        "bytes": 200_000_000,
        # yes 0123456789abcdef | head -c 200000000 | sha256sum
        "sha256": "fb9c1813a4e175b4d1cd1018155b509c6432b771163d6e1fa4b0dd526530d6ee",
        "omitted_bytes": 198_885_888,
    }
    out, _ = kept(shell, 2)
    assert len(out) == (64 << 10) + (1 << 20)
    assert out.startswith(b"0123456789abcdef\n0123456789abcdef\n")
    assert out.endswith(b"\n0123456789abcdef\n0123456789abcde")
    shown = shell("show", "2", "--output", stdout=subprocess.DEVNULL)
    assert shown.stderr == "runguard: 198885888 bytes between the beginning and the end were not kept\n"


@pytest.mark.long
def test_ten_gibibytes_in_constant_memory(shell: Shell) -> None:
    assert peak_mib(shell, "10G") < 40
    told = recorded(shell)["output"]
    # yes 0123456789abcdef | head -c 10G | sha256sum
    assert told["stdout"] == {
        "bytes": 10 << 30,
        "sha256": "196d300c545b2482ecc3cf41960e83ef3746279d5ab422baa8669f05bf81cf22",
        "omitted_bytes": (10 << 30) - (1088 << 10),
    }


# Previous output exported in an env var → E2BIG


def test_after_a_megabyte_of_output_the_next_run_starts_with_nothing_of_it(shell: Shell) -> None:
    shell(*RUN, "--", "head", "-c", "1000000", "/dev/zero")
    done = shell(*RUN, "--", "env")
    assert done.returncode == 0
    assert len(done.stdout) < 2000


# Own warnings looped


@pytest.mark.parametrize(
    ("schedule", "said"),
    [("0 0 30 2 *", 1), ("RRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", 1), ("0 0 29 2 *", 1)],
    ids=["30 February", "as a recurrence", "29 February"],
)
def test_of_a_schedule_that_matches_never_or_hardly_ever_little_is_said(shell: Shell, schedule: str, said: int) -> None:
    done = shell(*RUN, "-s", schedule, "-z", "UTC", "--", "sh", "-c", "echo ran")
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert len(done.stderr.splitlines()) == said
    shell.config.write_text(f'[jobs.J]\nschedule = "{schedule}"\n')
    for query in ("windows", "missing", "next"):
        assert len(shell(query, "J").stderr.splitlines()) < 10


def test_a_due_time_in_the_gap_is_no_reason_to_say_much(shell: Shell) -> None:
    at = ("-s", "30 1 * * *", "-z", "Europe/London", "--scheduled-at", "2026-03-29T02:00+01:00")
    done = shell(*RUN, *at, "--", "true")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_hundred_faults_are_twenty_lines_and_a_hundred_remarks(shell: Shell) -> None:
    shell.config.write_text("".join(f"unknown{number} = 1\n" for number in range(100)))
    *lines, last = shell(*RUN, "--", "true").stderr.splitlines()
    assert len(lines) == 19
    assert last == "runguard: J: there is more to remark: see the run's record"
    shell.config.write_text("")
    assert len(shell.entries(shell.runs_so_far()[0]["run_id"])[0]["remarks"]) == 100


# Wants mail only on error and the full log of each run; three camps of what is to be mailed


SAYS = "echo out; echo err >&2; exit {}"


@pytest.mark.parametrize("merged", [False, True], ids=["apart", "merged"])
@pytest.mark.parametrize("status", [0, 3], ids=["success", "failure"])
@pytest.mark.parametrize(
    ("options", "told"),
    [((), (True, True)), (("--output", "always"), (True, True)), (("-q",), (False, True)),
     (("--output", "on-failure"), (False, True)), (("--output", "never"), (False, False))],
    ids=["default", "always", "quiet", "on-failure", "never"],
)  # fmt: skip
def test_what_is_told_is_one_thing_and_what_is_kept_another(
    shell: Shell, options: tuple[str, ...], told: tuple[bool, bool], status: int, merged: bool
) -> None:
    pipes = {"stderr": subprocess.STDOUT} if merged else {}
    done = shell(*RUN, *options, "-c", SAYS.format(status), **pipes)
    out, err = ("out\nerr\n", None) if merged else ("out\n", "err\n")
    if not told[status != 0]:
        out, err = "", None if merged else ""
    assert (done.returncode, done.stdout, done.stderr) == (status, out, err)
    assert kept(shell) == ((b"out\nerr\n", b"") if merged else (b"out\n", b"err\n"))


def test_words_on_stderr_are_no_failure(shell: Shell) -> None:
    assert shell(*RUN, "-q", "-c", "echo only a warning >&2").stderr == ""
    assert shell.json("history")[0]["outcome"] == "succeeded"


def test_where_the_record_wants_nothing_the_bytes_are_counted_and_never_a_hash(shell: Shell) -> None:
    shell.config.write_text("output_head = 0\noutput_tail = 0\n")
    done = shell(*RUN, "-c", "yes 0123456789abcdef | head -c 20000000; echo err >&2")
    assert (len(done.stdout), done.stderr) == (20_000_000, "err\n")
    output = recorded(shell)["output"]
    assert output["stdout"] == {"bytes": 20_000_000, "sha256": None, "omitted_bytes": 20_000_000}
    assert output["stderr"] == {"bytes": 4, "sha256": None, "omitted_bytes": 4}
    lines = shell("show", "1").stdout.splitlines()
    assert "  output        stdout: 20000000 bytes, not hashed" in lines
    assert shell("show", "1", "--output").stdout == ""


# The disk of the spool is full


def on_a_small_disk(place: Path, command: str) -> list[str]:
    """Return a command line that runs a shell command with a file system of 2 MiB at `place`."""
    mount = 'mount -t tmpfs -o size=2m,mode=700 none "$1" && eval "$2"'
    return ["unshare", "-m", "sh", "-c", mount, "sh", str(place), command]


needs_mounts = pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="needs root and unshare")
TEN_MB = "seq 1500000; exit 5"  # 10888896 bytes
TEN_MB_SHA256 = "9ab1c76a034ecb9d31c317ffc180849e0d61ab92d80897b3ffa1ce93d8890505"  # seq 1500000 | sha256sum


@needs_mounts
def test_a_full_spool_costs_neither_output_nor_status_and_is_counted(shell: Shell) -> None:
    shell(*RUN, "-q", "--", "echo", "makes the directory")
    command = f"exec {sys.executable} -m runguard run -j J -q -c '{TEN_MB}'"
    limited = on_a_small_disk(shell.state / "spool", command)
    done = subprocess.run(limited, env=shell.environ, cwd=shell.directory, capture_output=True, timeout=60, check=False)
    assert (done.returncode, hashlib.sha256(done.stdout).hexdigest()) == (5, TEN_MB_SHA256)
    [remark] = recorded(shell, "2")["remarks"]
    assert done.stderr.decode() == f"runguard: J: {remark}\n"
    first, after = re.fullmatch(
        r"only the first (\d+) bytes of the output could be kept for later; they were passed on, and the (\d+) after"
        r" them as they came: No space left on device",
        remark,
    ).groups()  # type: ignore[union-attr]
    assert int(first) > 1_000_000
    assert int(first) + int(after) == 10_888_896
    assert recorded(shell, "2")["output"]["stdout"]["sha256"] == TEN_MB_SHA256


@needs_mounts
def test_where_everything_of_ours_is_full_the_run_ends_up_on_record_all_the_same(shell: Shell) -> None:
    guard = f"{sys.executable} -m runguard"
    steps = f"{guard} run -j J -q -c '{TEN_MB}' >out; echo $? >status; {guard} run -j J -- true; {guard} show 1 --json"
    shell.state.mkdir(mode=0o700)
    limited = on_a_small_disk(shell.state, steps)
    done = subprocess.run(limited, env=shell.environ, cwd=shell.directory, capture_output=True, timeout=60, check=False)
    assert (shell.directory / "status").read_text() == "5\n"
    assert hashlib.sha256((shell.directory / "out").read_bytes()).hexdigest() == TEN_MB_SHA256
    [told] = json.loads(done.stdout)
    assert (told["outcome"], told["exit_status"]) == ("failed", 5)
    assert told["output"]["stdout"]["sha256"] == TEN_MB_SHA256


def test_a_limit_on_the_size_of_files_costs_neither_output_nor_status(shell: Shell) -> None:
    shell(*RUN, "--", "true")
    command = f"ulimit -f 1024; exec {sys.executable} -m runguard run -j J -q -c '{TEN_MB}'"  # 1 MiB
    done = subprocess.run(
        ["bash", "-c", command], env=shell.environ, cwd=shell.directory, capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, hashlib.sha256(done.stdout).hexdigest()) == (5, TEN_MB_SHA256)
    assert b"File too large" in done.stderr
    shell(*RUN, "--", "true")
    told = recorded(shell, "2")
    assert (told["outcome"], told["exit_status"]) == ("failed", 5)


def test_a_stderr_that_nobody_reads_holds_up_a_start_once_and_not_for_each_remark(shell: Shell) -> None:
    shell.config.write_text("".join(f"unknown{number} = 1\n" for number in range(100)))
    read_fd, write_fd = os.pipe()
    os.set_blocking(write_fd, False)
    os.write(write_fd, bytes(1 << 20))
    began_s = time.monotonic()
    assert shell(*RUN, "-c", "exit 4", stderr=write_fd).returncode == 4
    assert time.monotonic() - began_s < 20  # one remark is given two seconds
    for fd in (read_fd, write_fd):
        os.close(fd)


# Hostile bytes, partial lines, order


HOSTILE = b"a\0b\x1b]52;c;cm0gLXJm\x07\x1b[2J\xe2\x80\xae\xff\xc3("  # OSC 52, clear, bidi, no UTF-8


def test_hostile_bytes_are_kept_as_they_are_and_never_reach_a_terminal(shell: Shell) -> None:
    (shell.directory / "bytes").write_bytes(bytes(range(256)) + HOSTILE)
    done = shell(*RUN, "-c", "cat bytes; cat bytes >&2; exit 1")
    every = (bytes(range(256)) + HOSTILE).decode("utf-8", "surrogateescape")
    assert [text.encode("utf-8", "surrogateescape") for text in (done.stdout, done.stderr)] == [
        every.replace("\r", "\n").encode("utf-8", "surrogateescape")  # as text mode reads
    ] * 2
    assert kept(shell) == (bytes(range(256)) + HOSTILE,) * 2
    for arguments in (("--output",), ("--stderr",), ("--times",), ()):
        seen = shell.on_terminal("show", "1", *arguments)
        assert not [each for each in seen if not each.isprintable() and each not in "\n\t"], arguments
    assert r"a\x00b\x1b]52;c;cm0gLXJm\x07\x1b[2J\u202e\xff\xc3(" in shell.on_terminal("show", "1", "--stderr")
    assert len(shell.json("show", "1", "--output")) >= 2  # valid JSON
    assert json.loads(shell("show", "1", "--stderr", "--format", "jsonl").stdout.splitlines()[0])["stream"] == "stderr"


def test_partial_lines_of_two_streams_keep_their_order_and_their_times(shell: Shell) -> None:
    steps = ["printf out1", "printf err1 >&2", "printf 'out2\\n'", "printf 'err2\\nerr3' >&2"]
    pause = "; read x <go; "  # until the test has seen what was written
    os.mkfifo(shell.directory / "go")
    go = os.open(shell.directory / "go", os.O_RDWR)  # both ends, so that nobody waits for the other to open it
    command = [sys.executable, "-m", "runguard", *RUN, "-c", pause.join(steps)]
    with subprocess.Popen(
        command, env=shell.environ, cwd=shell.directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as guard:
        assert guard.stdout is not None
        assert guard.stderr is not None
        for stream, text in ((guard.stdout, b"out1"), (guard.stderr, b"err1"), (guard.stdout, b"out2\n")):
            assert os.read(stream.fileno(), 99) == text
            os.write(go, b"on\n")
        assert guard.stderr.read() == b"err2\nerr3"
    os.close(go)
    assert shell("show", "1", "--output").stdout == "out1err1out2\nerr2\nerr3"
    assert shell("show", "1", "--stderr").stdout == "err1err2\nerr3"
    lines = [line.split("  ", 1) for line in shell("show", "1", "--times").stdout.splitlines()]
    assert [text for _, text in lines] == [
        "stdout  out1", "stderr  err1", "stdout+ out2", "stderr+ err2", "stderr  err3",
    ]  # fmt: skip
    assert sorted(at for at, _ in lines) == [at for at, _ in lines]


# Nobody takes our output


@pytest.mark.parametrize("shut", [">&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_where_our_output_is_closed_the_record_has_it_all_the_same(shell: Shell, shut: str) -> None:
    line = f"{sys.executable} -m runguard run -j J -c 'seq 20000; echo err >&2; exit 6' {shut}"
    done = subprocess.run(["sh", "-c", line], env=shell.environ, cwd=shell.directory, timeout=60, check=False)
    assert done.returncode == 6
    out, err = kept(shell)
    assert (len(out + err), out[-10:]) == (108_898, b"999\n20000\n" if err else b"20000\nerr\n")


def test_head_takes_a_line_and_the_record_is_whole(shell: Shell) -> None:
    script = 'trap "" PIPE; seq 100000 2>/dev/null; echo done >done; exit 4'
    line = f"{{ {sys.executable} -m runguard run -j J -c '{script}'; echo $? >status; }} | head -1"
    done = subprocess.run(
        ["sh", "-c", line], env=shell.environ, cwd=shell.directory, capture_output=True, timeout=60, check=False
    )
    assert done.stdout == b"1\n"
    assert (shell.directory / "status").read_text() == "4\n"
    assert (shell.directory / "done").exists()
    told = recorded(shell)
    assert (told["outcome"], told["exit_status"]) == ("failed", 4)
    assert kept(shell)[0].startswith(b"1\n2\n3\n")
    assert told["remarks"] in ([], ["nobody read our stdout to its end; the command's was closed"])


@pytest.mark.parametrize("wanted", [True, False], ids=["kept", "nothing kept"])
def test_a_reader_that_has_stopped_delays_neither_the_timeout_nor_a_signal(shell: Shell, wanted: bool) -> None:
    if not wanted:
        shell.config.write_text("output_head = 0\noutput_tail = 0\n")
    command = [sys.executable, "-m", "runguard", *RUN, "--kill-after", "0.5s"]
    pipes = {"env": shell.environ, "cwd": shell.directory, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    loud = "trap 'echo told >told' USR1; yes & echo >ready; while :; do wait; done"
    with subprocess.Popen([*command, "-t", "2s", "-c", loud], **pipes) as guard:
        wait_until(lambda: (shell.directory / "ready").exists())
        guard.send_signal(signal.SIGUSR1)
        wait_until(lambda: (shell.directory / "told").exists())
        [shell_pid] = [run["command_pid"] for run in shell.json("show", "1")]
        wait_until(lambda: not os.path.exists(f"/proc/{shell_pid}"))  # stopped at its time limit: nobody has read yet
        assert guard.stdout is not None
        taken = len(guard.stdout.read())
        assert guard.wait(timeout=20) in (124, 137)
    told = recorded(shell)
    assert told["outcome"] == "timed_out"
    assert told["output"]["stdout"]["bytes"] == taken

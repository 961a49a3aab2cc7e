"""The run's own file: its lock, and what a killed guard leaves in it."""

import fcntl
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runguard.guard import host, runfile
from runguard.guard.capture import Capture
from runguard.guard.frames import decode


def data(encoded: bytes) -> bytes:
    return b"".join(bytes(frame.data) for frame in decode(encoded))


def test_a_run_file_is_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o777)
    try:
        own = runfile.create(str(tmp_path), "3f0c")
    finally:
        os.umask(before)
    assert os.stat(own.path).st_mode & 0o7777 == 0o600
    assert own.fd >= 64
    assert not os.get_inheritable(own.fd)
    own.remove()


def test_an_existing_name_or_link_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / ".taken").write_text("x")
    (tmp_path / ".link").symlink_to(tmp_path / "elsewhere")
    for name in ("taken", "link"):
        with pytest.raises(FileExistsError):
            runfile.create(str(tmp_path), name)
    assert not (tmp_path / "elsewhere").exists()


def test_a_run_file_has_its_name_only_once_it_is_locked(tmp_path: Path) -> None:
    work = runfile.create(str(tmp_path), "run")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert runfile.probe(work.path)


def test_a_probe_sees_whether_the_run_lives(tmp_path: Path) -> None:
    own = runfile.create(str(tmp_path), "run")
    assert runfile.probe(own.path)
    fcntl.flock(own.fd, fcntl.LOCK_UN)
    assert not runfile.probe(own.path)
    own.remove()
    assert not runfile.probe(own.path)


def test_a_command_that_inherited_the_file_keeps_the_run_alive(tmp_path: Path) -> None:
    own = runfile.create(str(tmp_path), "run")
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=[own.fd]) as child:
        os.close(own.fd)
        assert runfile.probe(own.path)
        child.communicate()
    assert not runfile.probe(own.path)


def test_removing_unlocks_for_a_daemon_that_inherited_the_file(tmp_path: Path) -> None:
    own = runfile.create(str(tmp_path), "run")
    os.link(own.path, tmp_path / "same")
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=[own.fd]) as child:
        own.remove()
        assert not runfile.probe(str(tmp_path / "same"))
        child.communicate()
    assert not os.path.exists(own.path)


def test_it_tells_guard_and_command(tmp_path: Path) -> None:
    own = runfile.create(str(tmp_path), "run", guard_start=77)
    assert runfile.read(own.path) == (os.getpid(), 77, None, None, b"", b"", 0, 0, 0, False)
    own.spawned(os.getpid())
    left = runfile.read(own.path)
    assert left is not None
    assert (left.command_pid, left.command_start) == (os.getpid(), host.start_ticks(os.getpid()))
    own.remove()


@pytest.mark.parametrize("content", [b"", b"runguard", bytes(200), b"\xff" * 9000])
def test_a_file_without_a_header_tells_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "run").write_bytes(content)
    assert runfile.read(str(tmp_path / "run")) is None


def test_a_truncated_file_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    own, capture = runfile.create(str(tmp_path), "run"), Capture()
    capture.feed(1, 0, b"0123456789")
    own.mirror(capture)
    os.truncate(own.path, 4096 + 13 + 4)
    left = runfile.read(own.path)
    assert left is not None
    assert data(left.head) == b"0123"
    assert (left.stdout_bytes, left.omitted_bytes) == (10, 6)
    own.remove()


WRITES = st.lists(
    st.tuples(st.sampled_from([1, 2]), st.integers(0, 80), st.binary(min_size=1, max_size=300), st.booleans()),
    max_size=60,
)


@given(WRITES, st.integers(0, 200), st.integers(0, 400))
def test_whenever_it_is_mirrored_it_has_head_tail_and_counts(
    tmp_path_factory: pytest.TempPathFactory,
    writes: list[tuple[int, int, bytes, bool]],
    head_limit: int,
    tail_limit: int,
) -> None:
    folder = tmp_path_factory.mktemp("runs")
    own = runfile.create(str(folder), "run", head_limit=head_limit, tail_limit=tail_limit)
    capture, at_ms, whole = Capture(head_limit, tail_limit), 0, b""
    for stream, pause_ms, text, mirrored in writes:
        at_ms += pause_ms
        capture.feed(stream, at_ms, text)
        whole += text
        if mirrored:
            own.mirror(capture)
            left = runfile.read(own.path)
            assert left is not None
            head, tail = data(left.head), data(left.tail)
            assert head == whole[: len(head)]
            assert whole[len(head) :].endswith(tail)
            assert len(head) + len(tail) >= min(len(whole), head_limit + tail_limit)
            assert left.stdout_bytes + left.stderr_bytes == len(whole)
            assert left.omitted_bytes == len(whole) - len(head) - len(tail)
    assert own.remark is None
    own.remove()


def test_segments_are_filled_in_turn_and_the_file_stays_small(tmp_path: Path) -> None:
    own, capture = runfile.create(str(tmp_path), "run"), Capture()
    whole = b""
    for number in range(400):
        text = b"%07d\n" % number * 2000
        whole = (whole + text)[-(2 << 20) :]
        capture.feed(1, number, text)
        own.mirror(capture)
    left = runfile.read(own.path)
    assert left is not None
    assert data(left.tail) == whole[-(1 << 20) :]
    assert data(left.head)[:8] == b"0000000\n"
    assert left.omitted_bytes == 400 * 16_000 - (1 << 20) - (64 << 10)
    assert os.stat(own.path).st_size < 3 << 20
    own.remove()


def test_a_dribble_that_fills_the_heads_room_goes_on_in_the_tail(tmp_path: Path) -> None:
    own, capture = runfile.create(str(tmp_path), "run"), Capture()
    whole = b""
    for number in range(9000):
        text = b"%d" % number * (1 + number % 2 * 5)
        whole += text
        capture.feed(1, number, text)
        own.mirror(capture)
    left = runfile.read(own.path)
    assert left is not None
    assert data(left.head) + data(left.tail) == whole
    assert left.omitted_bytes == 0
    own.remove()


def test_a_full_disk_ends_the_mirror_with_one_remark(tmp_path: Path) -> None:
    import resource

    own, capture = runfile.create(str(tmp_path), "run"), Capture()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, hard))
    try:
        capture.feed(1, 0, bytes(9000))
        own.mirror(capture)
        capture.feed(1, 0, b"more")
        own.mirror(capture)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert own.remark == f"the output is not mirrored in {own.path}: File too large"
    assert own.behind(capture) == 0
    own.remove()


def test_a_disk_that_is_full_before_the_first_byte_is_said_the_same_way(tmp_path: Path) -> None:
    import resource

    own = runfile.create(str(tmp_path), "run")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        own.spawned(1, 2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert own.remark == f"the output is not mirrored in {own.path}: File too large"
    own.remove()


def test_a_killed_guard_leaves_the_output_and_a_live_run(
    tmp_path: Path, guard: Callable[..., Any], ready: Callable[[], bytes]
) -> None:
    script = f"echo out; echo err >&2; echo $$ >{tmp_path}/ready; exec sleep 60"
    started = guard("sh", "-c", script, options={"runs": str(tmp_path)})
    pid = int(ready())
    path = str(tmp_path / "run")
    try:
        _until(lambda: (left := runfile.read(path)) is not None and left.stderr_bytes == 4)
        started.process.kill()
        started.process.wait()
        left = runfile.read(path)
        assert left is not None
        assert [(frame.stream, bytes(frame.data)) for frame in decode(left.head)] == [(1, b"out\n"), (2, b"err\n")]
        assert (left.command_pid, left.command_start) == (pid, host.start_ticks(pid))
        assert left.guard_pid == started.process.pid
        assert runfile.probe(path)
    finally:
        os.kill(pid, 9)
    _until(lambda: not runfile.probe(path))


def test_a_guard_killed_at_full_speed_leaves_a_whole_tail(
    tmp_path: Path, guard: Callable[..., Any], ready: Callable[[], bytes]
) -> None:
    script = "yes 0123456 | head -c 300000000; echo the end; echo >ready; exec sleep 60 >&- 2>&-"
    started = guard("sh", "-c", script, options={"runs": str(tmp_path)}, cwd=tmp_path, stdout=subprocess.DEVNULL)
    ready()
    path = str(tmp_path / "run")
    _until(lambda: (left := runfile.read(path)) is not None and left.stdout_bytes == 300_000_008)
    started.process.kill()
    left = runfile.read(path)
    assert left is not None
    assert left.command_pid is not None
    os.kill(left.command_pid, 9)
    assert data(left.tail).endswith(b"0123456\nthe end\n")
    assert len(data(left.tail)) == 1 << 20
    assert data(left.head) == b"0123456\n" * 8192
    assert left.omitted_bytes == 300_000_008 - (1 << 20) - (64 << 10)


def _until(true: Callable[[], bool], within_s: float = 20) -> None:
    """Wait for something outside that gives no event."""
    end_s = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < end_s
        time.sleep(0.01)

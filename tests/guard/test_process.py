"""The command finds its world as without us, and a command that cannot be started says why."""

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runguard.errors import SpawnError
from runguard.guard.descriptors import high_fd
from runguard.guard.process import Plan, find_program, spawn
from runguard.guard.signals import Signals, listen

Drive = Callable[..., Any]


def executable(path: Path, content: str | bytes = "#!/bin/sh\n") -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    path.chmod(0o755)
    return path


def status_of(out: bytes, field: str) -> int:
    """Return a mask of /proc/self/status, as printed by the command."""
    return int(out.split(field.encode() + b":")[1].split()[0], 16)


def bit(number: int) -> int:
    return 1 << (number - 1)


def test_arguments_arrive_byte_for_byte(drive: Drive) -> None:
    odd = ["", " ", "a\nb", "*", os.fsdecode(b"\xff\xfe"), "-x", "ü"]
    expected = b"".join(os.fsencode(each) + b"\0" for each in odd)
    assert drive("printf", "%s\\0", *odd).out == expected


def test_environment_and_directory_are_ours(drive: Drive, tmp_path: Path) -> None:
    environ = {"PATH": os.environ["PATH"], "X": os.fsdecode(b"\xff"), "LANG": "C.UTF-8"}
    out = drive(sys.executable, "-c", "import os; print(os.environb[b'X'], os.getcwd())", env=environ, cwd=tmp_path).out
    assert out == f"b'\\xff' {tmp_path}\n".encode()


def test_stdin_is_ours(drive: Drive) -> None:
    assert drive("cat", input=b"\0through\xff").out == b"\0through\xff"


def test_the_outputs_are_pipes_of_their_own(drive: Drive) -> None:
    ended = drive("sh", "-c", "stat -L -c %F /dev/fd/1; stat -L -c %F /dev/fd/2 >&2; echo out; echo err >&2")
    assert (ended.out, ended.err) == (b"fifo\nout\n", b"fifo\nerr\n")
    assert ended.report["merged"] is False


def test_one_file_for_both_outputs_means_one_pipe_in_exact_order(drive: Drive) -> None:
    script = "for i in $(seq 500); do echo o$i; echo e$i >&2; done"
    ended = drive("sh", "-c", script, stderr=subprocess.STDOUT)
    assert ended.out.split()[:4] == [b"o1", b"e1", b"o2", b"e2"]
    assert ended.out == "".join(f"o{i}\ne{i}\n" for i in range(1, 501)).encode()
    assert ended.report["merged"] is True
    assert (ended.report["stdout"]["bytes"], ended.report["stderr"]["bytes"]) == (len(ended.out), 0)


def test_without_a_terminal_the_command_leads_its_own_session(drive: Drive) -> None:
    pid, group, session = drive("sh", "-c", "cut -d' ' -f1,5,6 /proc/$$/stat; :").out.split()
    assert pid == group == session


@pytest.mark.parametrize(
    ("script", "status", "by_signal"),
    [("exit 0", 0, None), ("exit 7", 7, None), ("exit 255", 255, None), ("kill -TERM $$", 143, 15)]
    + [("kill -KILL $$", 137, 9), ("kill -SEGV $$", 139, 11)],
)
def test_the_status_is_the_commands(drive: Drive, script: str, status: int, by_signal: int | None) -> None:
    ended = drive("sh", "-c", script)
    assert ended.status == status
    assert ended.report["signal"] == by_signal
    assert ended.report["exit_status"] == (None if by_signal else status)


def test_cpu_time_and_peak_memory_are_the_commands(drive: Drive) -> None:
    report = drive(sys.executable, "-c", "x = bytearray(200 << 20); sum(range(2_000_000))").report
    assert report["peak_memory_bytes"] > 200 << 20
    assert report["user_s"] > 0


def test_a_peak_below_our_own_is_not_claimed(drive: Drive) -> None:
    assert drive("true").report["peak_memory_bytes"] is None


def test_sigpipe_and_sigxfsz_are_at_their_defaults(drive: Drive) -> None:
    ignored = status_of(drive("cat", "/proc/self/status").out, "SigIgn")
    assert ignored & (bit(signal.SIGPIPE) | bit(signal.SIGXFSZ)) == 0


def test_a_hangup_that_nohup_ignores_stays_ignored(drive: Drive) -> None:
    out = drive("cat", "/proc/self/status", wrapper=["nohup"]).out
    assert status_of(out, "SigIgn") & bit(signal.SIGHUP)
    assert status_of(out, "SigCgt") == 0


def test_ignored_child_signals_stay_ignored_and_the_status_is_known(drive: Drive) -> None:
    ignoring = [sys.executable, "-c", "import os, signal, sys; signal.signal(17, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"]  # fmt: skip # noqa: E501
    assert status_of(drive("cat", "/proc/self/status", wrapper=ignoring).out, "SigIgn") & bit(signal.SIGCHLD)
    assert drive("sh", "-c", "exit 3", wrapper=ignoring).status == 3
    assert drive("./nonexistent", wrapper=ignoring).status == 127


def test_the_signal_mask_is_as_at_our_start(drive: Drive) -> None:
    blocking = [sys.executable, "-c", "import os, signal, sys; signal.pthread_sigmask(0, [10, 17]); os.execv(sys.argv[1], sys.argv[1:])"]  # fmt: skip # noqa: E501
    out = drive("cat", "/proc/self/status", wrapper=blocking).out
    assert status_of(out, "SigBlk") == bit(signal.SIGUSR1) | bit(signal.SIGCHLD)


def test_only_the_inherited_descriptors_reach_the_command_and_they_are_high(drive: Drive, tmp_path: Path) -> None:
    numbers = sorted(int(each) for each in drive("ls", "/proc/self/fd", options={"runs": str(tmp_path)}).out.split())
    assert numbers[:4] == [0, 1, 2, 3]  # 3 is the directory that ls reads
    assert len(numbers) == 5
    assert numbers[4] >= 64


def test_under_a_low_limit_the_inherited_descriptor_is_the_highest_free(drive: Drive, tmp_path: Path) -> None:
    limited = ["sh", "-c", 'ulimit -n 24; exec "$@"', "sh"]
    out = drive("ls", "/proc/self/fd", options={"runs": str(tmp_path)}, wrapper=limited).out
    assert max(int(each) for each in out.split()) in range(12, 24)


def test_a_moved_descriptor_is_the_same_file_and_not_inherited(tmp_path: Path) -> None:
    fd = os.open(tmp_path / "file", os.O_CREAT | os.O_RDWR)
    os.write(fd, b"x")
    moved = high_fd(fd)
    assert moved >= 64
    assert os.pread(moved, 9, 0) == b"x"
    assert not os.get_inheritable(moved)
    assert os.readlink(f"/proc/self/fd/{moved}") == str(tmp_path / "file")
    assert not os.path.exists(f"/proc/self/fd/{fd}") or os.readlink(f"/proc/self/fd/{fd}") != str(tmp_path / "file")
    assert high_fd(moved) == moved
    os.close(moved)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_descriptors_closed_at_our_start_are_null(drive: Drive, tmp_path: Path, closed: str) -> None:
    closing = ["sh", "-c", f'exec "$@" {closed}', "sh"]
    script = f"x=$(readlink /proc/$$/fd/0 /proc/$$/fd/1); echo $x >{tmp_path}/links; echo out; echo err >&2; exit 3"
    ended = drive("sh", "-c", script, wrapper=closing)
    assert ended.status == 3
    links = (tmp_path / "links").read_text().split()
    assert links[0] == "/dev/null"
    assert links[1].startswith("pipe:")
    assert ended.report["stdout"]["bytes"] + ended.report["stderr"]["bytes"] == 8


def test_a_script_without_a_shebang_runs_under_sh(drive: Drive, tmp_path: Path) -> None:
    script = executable(tmp_path / "job", 'echo "$0" "$@"; exit 4\n')
    ended = drive(str(script), "a b", "c")
    assert (ended.out, ended.status) == (f"{script} a b c\n".encode(), 4)


@pytest.mark.parametrize("first", [b"# gr\xfc\xdfe", b"\xef\xbb\xbf:", b"# \x1b[1mbold", b":\r", b""])
def test_a_script_in_any_encoding_is_one(drive: Drive, tmp_path: Path, first: bytes) -> None:
    ended = drive(str(executable(tmp_path / "job", first + b"\nexit 4\n")))
    assert ended.status == 4


def test_a_shell_string_runs_under_sh(drive: Drive) -> None:
    ended = drive("echo $0 | tr a-z A-Z; exit 5", options={"shell": True})
    assert (ended.out, ended.status) == (b"/BIN/SH\n", 5)


def test_the_name_is_looked_up_in_the_commands_path(drive: Drive, tmp_path: Path) -> None:
    executable(tmp_path / "job", "#!/bin/sh\necho found $0\n")
    assert drive("job", env={"PATH": f"/nonexistent:{tmp_path}"}).out == f"found {tmp_path}/job\n".encode()


def test_the_lookup_goes_on_past_files_that_may_not_be_executed(drive: Drive, tmp_path: Path) -> None:
    for folder in ("a", "b", "c"):
        (tmp_path / folder).mkdir()
    (tmp_path / "a" / "job").write_text("not executable")
    executable(tmp_path / "b" / "job", "#!/nonexistent/interpreter\n")
    executable(tmp_path / "c" / "job", "#!/bin/sh\necho c\n")
    path = ":".join(str(tmp_path / folder) for folder in ("a", "b", "c"))
    assert drive("job", env={"PATH": path}).out == b"c\n"


def test_an_empty_element_of_path_is_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executable(tmp_path / "job")
    monkeypatch.chdir(tmp_path)
    assert find_program("job", "/nonexistent:") == "./job"


def test_without_path_the_systems_own_directories_are_searched() -> None:
    assert find_program("sh", None) == "/bin/sh"


def test_a_name_with_a_slash_is_not_looked_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executable(tmp_path / "job")
    monkeypatch.chdir(tmp_path)
    assert find_program("./job", "/nonexistent") == "./job"


def write_failures(folder: Path) -> None:
    (folder / "plain").write_text("x")
    (folder / "folder").mkdir()
    executable(folder / "no-interpreter", "#!/nonexistent/python -u\n")
    executable(folder / "bad-interpreter", f"#!{folder}/plain\n")
    executable(folder / "binary", b"\x7fELF\0\0\0\0another machine's")
    executable(folder / "odd-binary", b"\x7fELF\xff\xfeecho no\n")
    executable(folder / "picture", b"\x89PNG\x01\x02\necho no\n")
    (folder / "link").symlink_to("link")


@pytest.mark.parametrize(
    ("command", "status", "words"),
    [
        ("./missing", 127, "cannot run './missing': No such file"),
        ("./plain/file", 127, "Not a directory"),
        ("./link", 127, "Too many levels of symbolic links"),
        ("missing", 127, "cannot run 'missing': not found; PATH is "),
        ("", 127, "cannot run '': not found"),
        ("./no-interpreter", 127, "its interpreter '/nonexistent/python -u': No such file"),
        ("./bad-interpreter", 126, "Permission denied"),
        ("./plain", 126, "it is not executable"),
        ("plain", 126, "/plain': it is not executable"),
        ("./folder", 126, "it is a directory"),
        ("./binary", 126, "it is no program of this machine, and no script"),
        ("./odd-binary", 126, "it is no program of this machine, and no script"),
        ("./picture", 126, "it is no program of this machine, and no script"),
    ],
)
def test_a_command_that_cannot_run_has_its_status_and_one_line(
    drive: Drive, tmp_path: Path, command: str, status: int, words: str
) -> None:
    write_failures(tmp_path)
    ended = drive(command, cwd=tmp_path, env={**os.environ, "PATH": str(tmp_path)})
    assert ended.status == status
    assert words in ended.err.decode()
    assert ended.err.count(b"\n") == 1
    assert ended.report == {}


@pytest.fixture
def signals() -> Iterator[Signals]:
    listening = listen()
    yield listening
    listening.close()


def test_too_long_an_argument_is_no_fault_of_the_program(signals: Signals) -> None:
    with pytest.raises(SpawnError) as caught:
        spawn(Plan(("true", "x" * 200_000), {"PATH": "/bin"}), signals)
    assert caught.value.status == 125
    assert str(caught.value) == "cannot start '/bin/true': Argument list too long"


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EMFILE, "too many open files (the limit is ulimit -n)"),
        (errno.ENFILE, "too many open files on this machine (the limit is sysctl fs.file-max)"),
        (errno.EAGAIN, "too many processes (the limit is ulimit -u, or pids.max of the control group)"),
        (errno.ENOMEM, "no memory (the limit is ulimit -v, or the machine's)"),
    ],
)
def test_a_start_for_which_there_was_no_room_names_the_limit(
    signals: Signals, monkeypatch: pytest.MonkeyPatch, number: int, words: str
) -> None:
    def fail(*_: object, **__: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "posix_spawn", fail)
    with pytest.raises(SpawnError) as caught:
        spawn(Plan(("true",), {"PATH": "/bin"}), signals)
    assert (caught.value.status, str(caught.value)) == (125, f"cannot start '/bin/true': {words}")


def test_without_a_free_descriptor_the_limit_is_named(drive: Drive) -> None:
    """The guard finds 24 to 27 free, which is enough to get ready and not for the pipes."""
    fill = "import os, resource, sys; [os.dup2(0, n, inheritable=True) for n in range(3, 24)]; "
    limit = "resource.setrlimit(resource.RLIMIT_NOFILE, (28, 28)); os.execv(sys.argv[1], sys.argv[1:])"
    limited = [sys.executable, "-c", fill + limit]
    ended = drive("true", wrapper=limited)
    assert ended.status == 125
    assert ended.err == b"runguard: cannot start 'true': too many open files (the limit is ulimit -n)\n"


def test_a_failed_spawn_leaves_no_descriptor_open(signals: Signals) -> None:
    before = os.listdir("/proc/self/fd")
    with pytest.raises(SpawnError):
        spawn(Plan(("/nonexistent",), {}), signals)
    assert os.listdir("/proc/self/fd") == before


def test_a_name_in_two_places_is_found_in_the_first(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        executable(tmp_path / folder / "job")
    assert find_program("job", f"{tmp_path}/a:{tmp_path}/b") == f"{tmp_path}/a/job"


def test_a_program_that_is_not_found_carries_its_status() -> None:
    with pytest.raises(SpawnError) as caught:
        find_program("no-such-program", "/nonexistent")
    assert caught.value.status == 127
    assert str(caught.value) == "cannot run 'no-such-program': not found; PATH is '/nonexistent'"


def test_a_control_character_in_a_name_does_not_reach_the_terminal(drive: Drive) -> None:
    assert b"\x1b" not in drive("./\x1b]52;c;x\n").err


def test_no_heavy_module_is_loaded_for_a_quiet_command(drive: Drive) -> None:
    loaded = set(drive("true").report["modules"])
    assert not loaded & {"hashlib", "_hashlib", "threading", "subprocess", "signal", "socket"}


def test_the_file_that_ran_is_known(drive: Drive, tmp_path: Path) -> None:
    script = executable(tmp_path / "job", "true\n")
    assert drive(str(script)).report["program"] == str(script)

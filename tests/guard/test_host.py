"""Processes and people as the guard sees them."""

import os
import subprocess

from runguard.guard import host


def test_our_own_process_lives() -> None:
    assert host.lives(os.getpid(), host.start_ticks(os.getpid()), host.boot_id())


def test_a_process_of_another_boot_does_not_live() -> None:
    assert not host.lives(os.getpid(), host.start_ticks(os.getpid()), "another boot")


def test_a_pid_with_another_start_time_is_another_process() -> None:
    ticks = host.start_ticks(os.getpid())
    assert ticks is not None
    assert not host.lives(os.getpid(), ticks - 1, host.boot_id())


def test_a_zombie_does_not_live() -> None:
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert host.start_ticks(child.pid) is None
    child.wait()


def test_a_name_with_parentheses_and_spaces_does_not_confuse_the_start_time(tmp_path) -> None:  # type: ignore[no-untyped-def]
    program = tmp_path / "a) R (b"
    program.symlink_to("/bin/cat")
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(b"x")
        child.stdout.read(1)  # it runs
        assert isinstance(host.start_ticks(child.pid), int)
        assert host.command_line(child.pid) == str(program)
        child.communicate()


def test_the_actor_names_who_called_sudo() -> None:
    assert host.actor({"SUDO_USER": "anna"}).sudo_user == "anna"
    assert host.actor({}).sudo_user is None
    assert host.actor({}).uid == os.getuid()

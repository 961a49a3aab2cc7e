"""The job's lock: who gets it, who is refused, and which files are not trusted."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import filelock
import pytest

from runguard.errors import UnsafeError
from runguard.guard import lock


def test_a_second_taker_is_refused(tmp_path: Path) -> None:
    held = lock.take(str(tmp_path / "locks"), "job")
    assert held is not None
    assert lock.take(str(tmp_path / "locks"), "job") is None


def test_a_released_lock_can_be_taken_again(tmp_path: Path) -> None:
    first = lock.take(str(tmp_path / "locks"), "job")
    assert first is not None
    first.release()
    assert lock.take(str(tmp_path / "locks"), "job") is not None


def test_locks_are_per_job(tmp_path: Path) -> None:
    assert lock.take(str(tmp_path / "locks"), "a") is not None
    assert lock.take(str(tmp_path / "locks"), "b") is not None


def test_a_child_that_inherited_the_lock_keeps_it_after_our_close(tmp_path: Path) -> None:
    held = lock.take(str(tmp_path / "locks"), "job")
    assert held is not None
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=[held.fd]) as child:
        os.close(held.fd)
        assert lock.take(str(tmp_path / "locks"), "job") is None
        child.communicate()
    assert lock.take(str(tmp_path / "locks"), "job") is not None


def test_a_release_unlocks_for_a_daemon_that_inherited_the_descriptor(tmp_path: Path) -> None:
    held = lock.take(str(tmp_path / "locks"), "job")
    assert held is not None
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=[held.fd]) as child:
        held.release()
        assert lock.take(str(tmp_path / "locks"), "job") is not None
        child.communicate()


def test_filelock_is_refused_by_our_lock_and_we_by_filelocks(tmp_path: Path) -> None:
    held = lock.take(str(tmp_path / "locks"), "job")
    assert held is not None
    other = filelock.UnixFileLock(held.path)
    with pytest.raises(filelock.Timeout):
        other.acquire(timeout=0)
    held.release()
    with other:
        assert lock.take(str(tmp_path / "locks"), "job") is None


def test_the_lock_file_stays_when_the_lock_is_released(tmp_path: Path) -> None:
    held = lock.take(str(tmp_path / "locks"), "job")
    assert held is not None
    held.release()
    assert os.path.exists(held.path)


def test_a_lock_file_deleted_while_held_lets_the_next_taker_have_another_inode(tmp_path: Path) -> None:
    # Exclusion then rests on the run's own lock: see tests/system.
    held = lock.take(str(tmp_path / "locks"), "job")
    assert held is not None
    os.unlink(held.path)
    again = lock.take(str(tmp_path / "locks"), "job")
    assert again is not None
    assert os.fstat(again.fd).st_ino != os.fstat(held.fd).st_ino


def test_the_note_of_the_holder_can_be_read_by_others(tmp_path: Path) -> None:
    held = lock.take(str(tmp_path / "locks"), "job")
    assert held is not None
    held.note(b"run 41")
    assert lock.read_note(str(tmp_path / "locks"), "job") == b"run 41"


@pytest.mark.parametrize("mask", [0o000, 0o077, 0o777])
def test_modes_do_not_depend_on_the_umask(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        held = lock.take(str(tmp_path / "locks"), "job")
    finally:
        os.umask(before)
    assert held is not None
    assert os.stat(held.path).st_mode & 0o777 == 0o600
    assert os.stat(tmp_path / "locks").st_mode & 0o777 == 0o700


def make_symlink(path: Path) -> None:
    (path.parent / "target").touch()
    path.symlink_to("target")


def make_hard_link(path: Path) -> None:
    (path.parent / "target").touch(mode=0o600)
    path.hardlink_to(path.parent / "target")


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (make_symlink, "it is a symbolic link"),
        (make_hard_link, "it has 2 hard links"),
        (lambda path: os.mkfifo(path), "not a regular file"),
        (lambda path: path.mkdir(), "Is a directory"),
    ],
    ids=["symlink", "hard link", "FIFO", "directory"],
)
def test_a_lock_file_that_others_could_have_planted_is_refused(tmp_path: Path, make, why: str) -> None:  # type: ignore[no-untyped-def]
    locks = tmp_path / "locks"
    locks.mkdir(mode=0o700)
    make(locks / "job.lock")
    with pytest.raises(UnsafeError) as refusal:
        lock.take(str(locks), "job")
    assert str(refusal.value) == f"lock {locks}/job.lock: {why} (uid {os.geteuid()}); nothing was started"


def test_a_world_writable_lock_directory_is_refused(tmp_path: Path) -> None:
    locks = tmp_path / "locks"
    locks.mkdir()
    locks.chmod(0o777)
    with pytest.raises(UnsafeError, match=r"others may write in it \(mode 0777\)"):
        lock.take(str(locks), "job")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give a file away")
def test_a_lock_file_of_another_user_is_refused(tmp_path: Path) -> None:
    locks = tmp_path / "locks"
    locks.mkdir(mode=0o700)
    (locks / "job.lock").touch(mode=0o600)
    os.chown(locks / "job.lock", 1, 1)
    with pytest.raises(UnsafeError, match="it belongs to uid 1"):
        lock.take(str(locks), "job")


def test_the_lock_is_not_inherited_by_accident(tmp_path: Path) -> None:
    held = lock.take(str(tmp_path / "locks"), "job")
    assert held is not None
    assert fcntl.fcntl(held.fd, fcntl.F_GETFD) & fcntl.FD_CLOEXEC
    assert held.fd >= 64


def test_a_process_killed_with_its_lock_frees_it(tmp_path: Path) -> None:
    code = (
        "import sys; from runguard.guard import lock; lock.take(sys.argv[1], 'job'); print('held', flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "locks")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        assert lock.take(str(tmp_path / "locks"), "job") is None
        child.kill()
        child.wait()
    assert lock.take(str(tmp_path / "locks"), "job") is not None

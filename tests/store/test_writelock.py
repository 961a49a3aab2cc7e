import fcntl
import os
import signal
import threading

import pytest

from runguard.store import writelock


@pytest.fixture
def held(tmp_path):
    """A path whose lock is held by another open file, and that file."""
    path = tmp_path / "lock"
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(file, fcntl.LOCK_EX)
    yield str(path), file
    os.close(file)


def opened(path):
    return os.open(path, os.O_RDWR)


def test_a_free_lock_is_taken_at_once(tmp_path):
    path = tmp_path / "lock"
    path.touch()
    assert writelock.take(opened(path), 0) is True


def test_a_held_lock_is_not_waited_for_without_a_limit(held):
    assert writelock.take(opened(held[0]), 0) is False


def test_the_wait_ends_and_leaves_no_lock_behind(held):
    waiting = opened(held[0])
    assert writelock.take(waiting, 0.05) is False
    fcntl.flock(held[1], fcntl.LOCK_UN)
    fcntl.flock(opened(held[0]), fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_the_lock_comes_when_its_holder_ends(tmp_path):
    path = tmp_path / "lock"
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(file, fcntl.LOCK_EX)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:  # holds the lock, and ends when the pipe does
        os.close(writing)
        os.read(reading, 1)
        os._exit(0)
    os.close(file)
    os.close(reading)
    threading.Timer(0.05, os.close, [writing]).start()
    assert writelock.take(opened(path), 30) is True
    os.waitpid(child, 0)


def test_the_handler_and_the_mask_of_the_alarm_are_put_back(held):
    def mine(number, frame):
        raise AssertionError("the alarm was not for us")

    before = signal.signal(signal.SIGALRM, mine)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    try:
        assert writelock.take(opened(held[0]), 0.05) is False
        assert signal.getsignal(signal.SIGALRM) is mine
        assert signal.SIGALRM in signal.pthread_sigmask(signal.SIG_BLOCK, [])
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
        signal.signal(signal.SIGALRM, before)


def test_an_alarm_that_was_set_before_still_comes(held):
    rung = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: rung.append(number))
    signal.setitimer(signal.ITIMER_REAL, 100)
    try:
        assert writelock.take(opened(held[0]), 0.05) is False
        left_s, interval_s = signal.setitimer(signal.ITIMER_REAL, 0)
        assert 0 < left_s < 100
        assert (interval_s, rung) == (0, [])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_another_signal_does_not_end_the_wait(held):
    rung = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: rung.append(number))
    threading.Timer(0.02, os.kill, [os.getpid(), signal.SIGUSR1]).start()
    try:
        assert writelock.take(opened(held[0]), 0.2) is False
        assert rung == [signal.SIGUSR1]
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_nobody_else_is_an_unknown_process(held):
    assert writelock.holders(held[0]) == "an unknown process"
    assert writelock.holders(held[0] + ".missing") == "an unknown process"

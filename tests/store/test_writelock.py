import fcntl
import os
import signal
import threading

import pytest

from runguard.errors import StoreError
from runguard.store import writelock
from runguard.store.lines import Author
from runguard.store.sqlite import open_store


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


def test_a_stop_ends_the_wait_and_leaves_no_lock_behind(held):
    told = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: told.append(number))
    threading.Timer(0.05, os.kill, [os.getpid(), signal.SIGTERM]).start()
    try:
        assert writelock.take(opened(held[0]), 600, lambda: bool(told)) is False
    finally:
        signal.signal(signal.SIGTERM, before)
    fcntl.flock(held[1], fcntl.LOCK_UN)
    fcntl.flock(opened(held[0]), fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_lock_that_is_free_is_taken_also_after_a_stop(tmp_path):
    path = tmp_path / "lock"
    path.touch()
    assert writelock.take(opened(path), 600, lambda: True) is True


def test_without_a_stop_the_wait_takes_its_time(held):
    assert writelock.take(opened(held[0]), 1.2, lambda: False) is False


def test_a_store_says_what_it_waited_for_when_it_was_told_to_stop(tmp_path):
    author = Author("alpha", {}, "0")
    path = str(tmp_path / "db" / "rg.sqlite")
    with open_store(path, author=author, create=True) as holding, holding.write():
        told = open_store(path, author=author, create=True, stop=lambda: True)
        with pytest.raises(StoreError, match="told to stop while waiting for an unknown process"), told.write():
            pass
    with open_store(path, author=author, create=True, stop=lambda: True) as store, store.write():
        pass


def test_a_store_that_is_only_being_created_ends_the_wait_too(tmp_path):
    (tmp_path / "db").mkdir()
    file = os.open(tmp_path / "db" / "write.lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(file, fcntl.LOCK_EX)
    with pytest.raises(StoreError, match="told to stop while waiting for"):
        open_store(str(tmp_path / "db" / "rg.sqlite"), author=Author("a", {}, "0"), create=True, stop=lambda: True)

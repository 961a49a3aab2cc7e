"""How long a user's pattern may take, and what is left of the process's timer and handler afterwards."""

from __future__ import annotations

import re
import signal
import threading

import pytest

from runguard.heartbeat.patience import Patience

ENDLESS = ("(a+)+$", "a" * 39 + "b")


def endless() -> str:
    return re.sub(ENDLESS[0], "", ENDLESS[1])


def test_work_in_time_is_what_it_returns() -> None:
    patience = Patience(1.0)
    assert patience.within(lambda: "done") == "done"
    assert (patience.limit_s, patience.expired) == (1.0, 0)


def test_work_that_takes_too_long_is_given_up_and_halves_what_is_left() -> None:
    patience = Patience(0.04)
    assert [patience.within(endless), patience.within(endless)] == [None, None]
    assert (patience.limit_s, patience.expired) == (0.01, 2)


def test_spent_patience_tries_nothing_more() -> None:
    patience = Patience(0.005)
    assert patience.within(lambda: "done") is None


def test_an_error_of_the_work_is_the_callers() -> None:
    with pytest.raises(re.error):
        Patience(1.0).within(lambda: re.sub("(", "", "a"))


@pytest.mark.parametrize("work", [endless, lambda: "done"])
def test_handler_mask_and_timer_are_put_back(work) -> None:
    rung = []
    before = signal.signal(signal.SIGVTALRM, lambda *_: rung.append(1))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGVTALRM])
    signal.setitimer(signal.ITIMER_VIRTUAL, 1000, 7)
    try:
        Patience(0.02).within(work)
        left_s, interval_s = signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        assert 900 < left_s <= 1000.1
        assert interval_s == pytest.approx(7, abs=0.02)
        assert signal.SIGVTALRM in signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.raise_signal(signal.SIGVTALRM)
        assert rung == [1]
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGVTALRM, before)


def test_no_timer_is_left_where_there_was_none() -> None:
    Patience(0.02).within(endless)
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGVTALRM) == signal.SIG_DFL


def test_outside_the_main_thread_nothing_is_limited() -> None:
    found = []
    thread = threading.Thread(target=lambda: found.append(Patience(1.0).within(lambda: "done")))
    thread.start()
    thread.join()
    assert found == ["done"]

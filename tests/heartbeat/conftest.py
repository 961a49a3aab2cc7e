"""What the tests of heartbeats share."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture
def no_hang() -> Iterator[None]:
    """Fail where quadratic work would hang for hours; the limit says nothing about speed."""

    def ring(*_: object) -> None:
        raise TimeoutError("hangs")

    previous = signal.signal(signal.SIGALRM, ring)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, previous)

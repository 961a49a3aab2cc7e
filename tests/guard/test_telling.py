"""What a run's monitors are told, and when, with a real helper and real servers."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from receivers import Healthchecks, Misbehaving, answer
from runguard import settings
from runguard.guard.capture import Capture
from runguard.guard.ending import Verdict
from runguard.guard.execution import Execution
from runguard.guard.prepare import Prepared, prepare
from runguard.guard.signals import Signals, listen
from runguard.guard.start import Expected
from runguard.guard.telling import Monitor
from runguard.guard.voice import Voice
from runguard.model import Resolution, Schedule, Window
from runguard.store.reads import Ping

CHECK = "0b1cfa3e-64a7-4c15-a1a6-62ac15ad21a5"
PING = f"/ping/{CHECK}"
SUCCESS = Execution(Verdict("succeeded", 0, 0, None, None), None, Capture(1, 1), True, None, [])


@pytest.fixture
def signals():
    found = listen()
    yield found
    found.close()


def prepared(directory: Path, url: str) -> Prepared:
    environ = {"HOME": str(directory), "RUNGUARD_STATE_DIR": str(directory / "state"), "RUNGUARD_CONFIG": "/dev/null"}
    return prepare(settings.request({"ping": url}, ["true"]), environ, pytest.fail)


def window(due_us: int) -> Window:
    return Window("L2026-03-01T02:00", due_us - 86_400_000_000, due_us, "2026-03-01T02:00Z", "", "real", 0)


def tell_end(start: Prepared, due_us: int, signals: Signals) -> list[Ping]:
    return Monitor(start, Voice("x")).tell_end(SUCCESS, window(due_us), None, signals)


def test_a_run_that_ended_seconds_before_its_due_is_told_at_its_due(tmp_path: Path, signals: Signals) -> None:
    with Healthchecks() as monitor:
        start = prepared(tmp_path, monitor.add(CHECK))
        due_us = start.start.at_us + 1_500_000
        [row] = tell_end(start, due_us, signals)
    [ping] = monitor.requests
    assert row.verdict == "accepted"
    assert ping.at_s >= time.monotonic() - (time.time() - due_us / 1e6) - 0.01


def test_the_start_is_not_told_before_the_due(tmp_path: Path) -> None:
    with Healthchecks() as monitor:
        start = prepared(tmp_path, monitor.add(CHECK))
        ahead = window(start.start.at_us + 4_000_000)
        expected = Expected(Schedule("0 2 * * *", "UTC"), None, "", Resolution(ahead, -4.0, None, off_schedule=False))
        start = start._replace(start=start.start._replace(expected=expected))
        _, told = Monitor(start, Voice("x")).beside()
        waits_s = next(told.steps)
        assert waits_s is not None
        assert 0 < waits_s <= 4
        assert monitor.requests == []


def test_told_to_stop_it_does_not_wait_for_the_due(tmp_path: Path, signals: Signals) -> None:
    with Healthchecks() as monitor:
        start = prepared(tmp_path, monitor.add(CHECK))
        signals.received.append(15)  # then there are 3 s
        [row] = tell_end(start, start.start.at_us + 4_900_000, signals)
        assert monitor.requests == []
    assert (row.event, row.verdict, row.tries) == ("success", "undelivered", 0)
    assert (row.error or "").startswith("before its due, ")


def test_an_instant_far_ahead_that_somebody_named_is_told_at_once(tmp_path: Path, signals: Signals) -> None:
    with Healthchecks() as monitor:
        start = prepared(tmp_path, monitor.add(CHECK))
        [row] = tell_end(start, start.start.at_us + 86_400_000_000, signals)
        assert (row.verdict, monitor.paths) == ("accepted", [PING])


def test_all_attempts_are_told_under_the_id_whose_start_a_monitor_waits_for_the_end_of(
    tmp_path: Path, signals: Signals
) -> None:
    with Misbehaving([answer(202)]) as sentry:
        first = prepared(tmp_path, sentry.url("/api/1/cron/letters/0123456789abcdef/"))
        monitor = Monitor(first, Voice("x"))
        tell_start(monitor)
        monitor.tell_attempt(SUCCESS, None)  # it has no log
        monitor = monitor.again(prepared(tmp_path, first.settings.ping or ""))
        tell_start(monitor)
        [_, row] = monitor.tell_end(SUCCESS, None, None, signals)
    assert row.verdict == "accepted"
    assert [(ping.query["status"], ping.query["check_in_id"]) for ping in sentry.requests] == [
        ("in_progress", first.start.run_id),
        ("in_progress", first.start.run_id),
        ("ok", first.start.run_id),
    ]


def tell_start(monitor: Monitor) -> None:
    _, told = monitor.beside()
    for _ in told.steps:
        time.sleep(0.02)


def test_a_fault_of_ours_is_a_line_and_no_exception(
    tmp_path: Path, signals: Signals, capfd: pytest.CaptureFixture[str]
) -> None:
    start = prepared(tmp_path, "http://127.0.0.1:9/")
    broken = SUCCESS._replace(capture=None, verdict=Verdict("failed", 1, 1, None, None))  # type: ignore[arg-type]
    assert Monitor(start, Voice("x")).tell_end(broken, None, None, signals) == []
    assert capfd.readouterr().err == "runguard: x: the ping failed: AttributeError\n"

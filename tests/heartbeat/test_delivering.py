"""A text handed to commands and to URLs."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from receivers import Misbehaving, answer, hang, reset
from runguard.heartbeat.delivering import deliver
from shell import wait_until

ENVIRON = {"PATH": "/usr/bin:/bin"}
FACTS = {"RUNGUARD_CHECK_STATE": "critical"}
SOON_S = 0.5


# Commands


def test_a_command_gets_the_text_on_its_stdin_and_the_facts_in_its_environment(tmp_path: Path) -> None:
    why = deliver(f"cd {tmp_path} && cat > text && echo $RUNGUARD_CHECK_STATE > state", "a\nb", FACTS, ENVIRON)
    assert why == ""
    assert (tmp_path / "text").read_text() == "a\nb\n"
    assert (tmp_path / "state").read_text() == "critical\n"


def test_a_command_that_does_not_read_has_succeeded() -> None:
    assert deliver("true", "x" * 9000, FACTS, ENVIRON) == ""


def test_what_a_command_prints_goes_to_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    deliver("echo out; echo err >&2", "", FACTS, ENVIRON)
    assert capfd.readouterr() == ("", "out\nerr\n")


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("exit 3", "the command ended with 3"),
        ("kill -TERM $$", "the command ended by signal 15"),
        ("/nowhere/mail", "the command ended with 127"),
    ],
)
def test_why_a_command_has_failed(command: str, why: str) -> None:
    assert deliver(command, "", FACTS, ENVIRON) == why


def test_a_command_that_does_not_end_is_stopped_with_what_it_started(tmp_path: Path) -> None:
    why = deliver(f"echo $$ > {tmp_path}/pid; sleep 60 | sleep 60", "", FACTS, ENVIRON, SOON_S)
    assert why == "the command did not end within 0.4 s"
    pid = int((tmp_path / "pid").read_text())
    wait_until(lambda: not _members(pid))


def test_a_command_that_ignores_the_first_signal_is_killed() -> None:
    assert deliver("trap '' TERM; while :; do sleep 0.05; done", "", FACTS, ENVIRON, SOON_S) == (
        "the command did not end within 0.4 s"
    )


def test_what_a_command_leaves_behind_holds_up_nothing(tmp_path: Path) -> None:
    began_s = time.monotonic()
    assert deliver("sleep 30 & exit 0", "", FACTS, ENVIRON) == ""
    assert time.monotonic() - began_s < 10


def test_no_lock_of_ours_is_inherited(tmp_path: Path) -> None:
    held = os.open(tmp_path / "lock", os.O_CREAT | os.O_RDWR)
    deliver(f"ls -l /proc/self/fd > {tmp_path}/fds", "", FACTS, ENVIRON)
    os.close(held)
    assert str(tmp_path / "lock") not in (tmp_path / "fds").read_text()


# URLs


def test_a_url_gets_the_text_as_a_post() -> None:
    with Misbehaving([answer(204)]) as monitor:
        assert deliver(monitor.url("/hook"), "letters: \x1b[1mfailed\x1b[0m é", FACTS, ENVIRON) == ""
        [request] = monitor.requests
    assert (request.method, request.path, request.body) == ("POST", "/hook", "letters: failed é".encode())
    assert request.headers["content-type"] == "text/plain; charset=utf-8"


def test_a_url_is_tried_again() -> None:
    with Misbehaving([reset, answer(200)]) as monitor:
        assert deliver(monitor.url("/hook"), "text", FACTS, ENVIRON) == ""
        assert [request.body for request in monitor.requests] == [b"text", b"text"]


@pytest.mark.parametrize(("step", "why"), [(answer(404), "HTTP 404"), (hang, "no success within")], ids=["404", "hang"])
def test_why_a_url_has_failed(step, why: str) -> None:  # type: ignore[no-untyped-def]
    with Misbehaving([step]) as monitor:
        assert why in deliver(monitor.url("/secret-hook"), "text", FACTS, ENVIRON, SOON_S)


def test_a_malformed_url_is_told_without_itself() -> None:
    assert deliver("https://user:secret@", "text", FACTS, ENVIRON) == "the URL has no valid host and port"


def _members(group: int) -> list[int]:
    """Return the living processes of a group."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            state, _, pgrp = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
        except (OSError, ValueError):
            continue
        if int(pgrp) == group and state != "Z":
            found.append(int(entry.name))
    return found

"""`ping`: the spool is emptied, a monitor is tried."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from receivers import Healthchecks, Misbehaving, Step, answer, hang
from runguard import clock
from runguard.heartbeat import spool
from runguard.heartbeat.body import Body
from runguard.heartbeat.event import Event
from runguard.heartbeat.slot import Slot
from shell import Shell

CHECK = "0b1cfa3e-64a7-4c15-a1a6-62ac15ad21a5"
RUN = "00000001-0000-4000-8000-000000000000"
DOWN = answer(503, Retry_After="3600")  # it is of no use to try again, so one try is all
UP = answer(200, b"OK")
HOUR_US = 3_600_000_000


def put(shell: Shell, url: str, kind: str = "failure", *, job: str = "letters", ago_us: int = 2 * HOUR_US,
        valid_us: int = HOUR_US, source: str = "", from_us: int = 0) -> int:  # fmt: skip
    """Put an outcome into the spool as a run did that ended so long ago, and return when it did."""
    shell.state.mkdir(mode=0o700, exist_ok=True)
    directory = str(shell.state / "spool")
    at_us = clock.look().wall_us - ago_us
    told = Event(kind, RUN, 0 if kind == "success" else 3, rid_ok=False, body=Body(f"{kind} of long ago"))
    until_us = at_us + valid_us if kind == "success" else None
    where = spool.address(directory, url)
    masked = f"{url.partition('/ping/')[0]}/…d21a5"
    spool.keep(
        directory,
        Slot(job, at_us, from_us or at_us, until_us, 1, "HTTP 503", "healthchecks", masked, source, where, told),
        at_us,
    )
    return at_us


def configure(shell: Shell, url: str, job: str = "letters") -> None:
    with shell.config.open("a") as file:
        file.write(f'[jobs.{job}]\nping = "{url}"\n')


def left(shell: Shell) -> list[str]:
    return [each.job for each in spool.slots(str(shell.state / "spool"))]


def test_what_a_run_could_not_tell_is_sent_and_recorded_with_that_run(shell: Shell) -> None:
    with Misbehaving([DOWN, UP]) as monitor:
        url = monitor.url(f"/ping/{CHECK}")
        configure(shell, url)
        shell("run", "-j", "letters", "--", "sh", "-c", "exit 3")
        done = shell("ping")
        told = rf"letters: failure of run 1 delivered late by \d+s to {monitor.url('/…d21a5')}\n"
        assert re.fullmatch(told, done.stdout)
        assert (done.returncode, done.stderr) == (0, "")
        assert monitor.paths[1] == f"/ping/{CHECK}/3"
        assert monitor.requests[1].body.startswith(b"delivered late by ")
    assert left(shell) == []
    rows = shell.json("show", "1")[0]["pings"]
    assert [(row["event"], row["verdict"]) for row in rows] == [("failure", "undelivered"), ("failure", "accepted")]


def test_with_nothing_to_send_it_is_silent_and_makes_nothing(shell: Shell) -> None:
    done = shell("ping")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not shell.state.exists()


def test_what_is_not_taken_stays_with_a_line_and_status_1(shell: Shell) -> None:
    with Misbehaving([DOWN]) as monitor:
        configure(shell, monitor.url(f"/ping/{CHECK}"))
        put(shell, monitor.url(f"/ping/{CHECK}"))
        done = shell("ping")
        where = monitor.url("/…d21a5")
    assert done.stdout == f"letters: failure of run {RUN} not delivered to {where}: HTTP 503; kept, 2 tries so far\n"
    assert (done.returncode, done.stderr) == (1, "")
    assert left(shell) == ["letters"]


def test_only_the_jobs_that_are_named_are_told_of(shell: Shell) -> None:
    with Healthchecks() as monitor:
        url = monitor.add(CHECK)
        for job in ("letters", "backup"):
            configure(shell, url, job)
            put(shell, url, job=job)
        assert shell("ping", "backup").returncode == 0
        assert len(monitor.requests) == 1
    assert left(shell) == ["letters"]


def test_a_success_is_sent_as_one_only_until_the_next_is_due(shell: Shell) -> None:
    with Healthchecks() as monitor:
        url = monitor.add(CHECK)
        configure(shell, url)
        put(shell, url, "success", valid_us=3 * HOUR_US)
        shell("ping")
        put(shell, url, "success", valid_us=HOUR_US)
        done = shell("ping", "--json")
        assert monitor.paths == [f"/ping/{CHECK}", f"/ping/{CHECK}/log"]
    [told] = json.loads(done.stdout)
    assert (told["event"], told["sent_as"], told["verdict"]) == ("success", "log", "accepted")


def test_a_style_without_a_log_is_not_told_of_a_success_that_is_too_late(shell: Shell) -> None:
    with Healthchecks() as monitor:
        url = monitor.url("/hooks/letters")
        configure(shell, url)
        put(shell, url, "success")
        done = shell("ping")
        assert monitor.requests == []
    assert done.returncode == 0
    assert "dropped: too late, from " in done.stdout
    assert left(shell) == []


def test_a_success_is_none_any_more_once_a_later_run_failed_of_which_no_monitor_heard(shell: Shell) -> None:
    with Misbehaving([DOWN, UP]) as monitor:
        configure(shell, monitor.url(f"/ping/{CHECK}"))
        shell("run", "-j", "letters", "--", "true")
        shell("run", "-j", "letters", "--", "false", environ={"RUNGUARD_CONFIG": "/dev/null"})
        shell("ping")
        assert monitor.paths[1:] == [f"/ping/{CHECK}/log"]


def test_no_success_is_sent_before_its_due(shell: Shell) -> None:
    with Healthchecks() as monitor:
        url = monitor.add(CHECK)
        configure(shell, url)
        put(shell, url, "success", ago_us=0, from_us=clock.look().wall_us + HOUR_US)
        done = shell("ping")
        assert monitor.requests == []
    assert done.returncode == 1
    assert "it would count for the window before" in done.stdout


def test_a_failure_of_the_future_is_sent_since_the_clock_was_set_back(shell: Shell) -> None:
    with Healthchecks() as monitor:
        url = monitor.add(CHECK)
        configure(shell, url)
        put(shell, url, ago_us=-2 * HOUR_US)
        assert shell("ping").returncode == 0
        assert monitor.paths == [f"/ping/{CHECK}/3"]


def test_what_a_monitor_refuses_for_good_is_dropped_loudly(shell: Shell) -> None:
    with Healthchecks() as monitor:
        url = monitor.url(f"/ping/{CHECK}")  # it knows no such check
        configure(shell, url)
        put(shell, url)
        done = shell("ping")
        where = monitor.url("/…d21a5")
    said = f"letters: failure of run {RUN} refused for good by {where}: HTTP 404: not found; dropped\n"
    assert (done.returncode, done.stdout) == (1, said)
    assert left(shell) == []


def test_a_dry_run_sends_nothing(shell: Shell) -> None:
    with Healthchecks() as monitor:
        url = monitor.add(CHECK)
        configure(shell, url)
        put(shell, url)
        done = shell("ping", "--dry-run")
        assert monitor.requests == []
    assert done.returncode == 0
    assert " would be sent to " in done.stdout
    assert left(shell) == ["letters"]


def test_an_address_that_was_an_option_is_read_again_where_it_is_in_a_file(shell: Shell) -> None:
    with Healthchecks() as monitor:
        url = monitor.add(CHECK)
        secret = shell.directory / "letters.url"
        secret.write_text(f"{url}\n")
        put(shell, url, source=f"file:{secret}")
        assert shell("ping").returncode == 0
        assert monitor.paths == [f"/ping/{CHECK}/3"]
        put(shell, url, source="--ping")
        done = shell("ping")
        assert len(monitor.requests) == 1
    assert done.returncode == 1
    assert done.stdout.endswith(
        "kept: its address was an option of the run, and is not stored: the job's next run sends it\n"
    )


@pytest.mark.parametrize(
    ("configured", "why"),
    [
        (
            "http://127.0.0.1:9/ping/7d0f3c59-2f7e-4c3c-9c53-0a3c0b1d8f11",
            "it was meant for another address than the job",
        ),
        ("", "no address is configured for the job"),
        ("file:/does/not/exist", "file:/does/not/exist: No such file or directory"),
    ],
)
def test_what_is_meant_for_another_address_is_not_sent_elsewhere(shell: Shell, configured: str, why: str) -> None:
    put(shell, f"http://127.0.0.1:9/ping/{CHECK}")
    if configured:
        configure(shell, configured)
    done = shell("ping")
    assert done.returncode == 1
    assert f"kept: {why}" in done.stdout or why in done.stdout
    assert left(shell) == ["letters"]


def slowly(began: Path) -> Step:
    """Answer once another process has had its try."""

    def step(connection, over) -> None:  # type: ignore[no-untyped-def]
        began.touch()
        until = time.monotonic() + 20
        while not (began.parent / "tried").exists() and time.monotonic() < until:
            over.wait(0.02)
        UP(connection, over)

    return step


def started(shell: Shell) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "runguard", "ping"]
    return subprocess.Popen(command, env=shell.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_what_nobody_will_send_any_more_is_dropped_by_hand_and_that_is_recorded(shell: Shell) -> None:
    with Misbehaving([DOWN]) as monitor:
        shell("run", "-j", "letters", "--ping", monitor.url(f"/ping/{CHECK}"), "--", "false")
        put(shell, monitor.url(f"/ping/{CHECK}"), job="backup")
        done = shell("ping", "--drop", "letters")
        assert len(monitor.requests) == 1
        where = monitor.url("/…d21a5")
    assert (done.returncode, done.stdout) == (0, f"letters: failure of run 1 to {where} dropped by hand\n")
    assert left(shell) == ["backup"]
    [_, row] = shell.json("show", "1")[0]["pings"]
    assert (row["event"], row["verdict"], row["error"]) == ("failure", "dropped", "dropped by hand")


def test_two_at_once_send_a_slot_once(shell: Shell) -> None:
    with Misbehaving([slowly(shell.directory / "began")]) as monitor:
        url = monitor.url(f"/ping/{CHECK}")
        configure(shell, url)
        put(shell, url)
        with started(shell) as first:
            monitor.wait_for(1)
            second = shell("ping")
            (shell.directory / "tried").touch()
            told, _ = first.communicate(timeout=20)
        assert len(monitor.requests) == 1
    assert "delivered late by 2h" in told
    assert second.returncode == 0
    assert second.stdout.endswith("left: another process is delivering it\n")
    assert left(shell) == []


def test_one_that_is_killed_in_mid_delivery_loses_nothing(shell: Shell) -> None:
    with Misbehaving([hang, UP]) as monitor:
        url = monitor.url(f"/ping/{CHECK}")
        configure(shell, url)
        put(shell, url)
        with started(shell) as first:
            monitor.wait_for(1)
            first.kill()
        assert left(shell) == ["letters"]
        assert shell("ping").returncode == 0
    assert left(shell) == []


def test_an_outcome_that_a_run_told_meanwhile_is_not_followed_by_an_older_one(shell: Shell) -> None:
    with Misbehaving([slowly(shell.directory / "began"), UP]) as monitor:
        url = monitor.url(f"/ping/{CHECK}")
        configure(shell, url)
        put(shell, url)
        with started(shell) as first:
            monitor.wait_for(1)
            run = [sys.executable, "-m", "runguard", "run", "-j", "letters", "--", "true"]
            with subprocess.Popen(run, env=shell.environ) as guard:
                while not shell.runs_so_far() or shell.runs_so_far()[0]["outcome"] != "succeeded":
                    pass
                assert len(monitor.requests) == 1  # it waits for what is being delivered
                (shell.directory / "tried").touch()
                guard.wait(20)
            first.communicate(timeout=20)
        assert monitor.paths == [f"/ping/{CHECK}/3", f"/ping/{CHECK}"]
    assert left(shell) == []


def test_a_damaged_slot_is_kept_aside_said_and_status_1(shell: Shell) -> None:
    put(shell, f"http://127.0.0.1:9/ping/{CHECK}")
    [path] = spool.waiting(str(shell.state / "spool"))
    Path(path).write_bytes(b"{}")
    done = shell("ping", "--dry-run")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"runguard: {path}: it cannot be read, and would be kept aside\n"
    done = shell("ping")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"runguard: {path}: it is damaged; kept as {path}.damaged, and not sent\n"
    assert shell("ping").returncode == 0


def test_without_the_key_of_the_spool_an_outcome_stays_with_the_reason(shell: Shell) -> None:
    put(shell, f"http://127.0.0.1:9/ping/{CHECK}")
    key = shell.state / "spool" / "key"
    key.unlink()
    key.mkdir()
    configure(shell, f"http://127.0.0.1:9/ping/{CHECK}")
    done = shell("ping")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.endswith(f" kept: {key.parent}: it is no regular file\n")
    assert len(left(shell)) == 1


def test_a_spool_that_others_can_write_to_is_refused(shell: Shell) -> None:
    put(shell, f"http://127.0.0.1:9/ping/{CHECK}")
    (shell.state / "spool").chmod(0o777)
    done = shell("ping")
    assert done.returncode == 78
    assert re.fullmatch(r"runguard: spool .*: others may write in it \(mode 0777\).*; nothing was sent\n", done.stderr)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["leters"], "no job 'leters' on record, in the configuration or in the spool; did you mean letters?"),
        (["--all"], "--all goes with --sync; without a JOB everything in the spool is sent"),
        (["--yes", "letters"], "--yes goes with --test"),
        (["--test"], "--test JOB: the job is missing"),
        (["--sync"], "--sync JOB or --sync --all: the job is missing"),
        (["--test", "--sync", "letters"], "--test or --sync, not both"),
        (["--drop", "--test", "letters"], "--drop or --test, not both"),
        (["--drop"], "--drop JOB: the job is missing"),
        (["--sync", "--all", "letters"], "JOB or --all, not both"),
    ],
)
def test_bad_usage_is_one_line_and_status_2(shell: Shell, arguments: list[str], said: str) -> None:
    configure(shell, f"http://127.0.0.1:9/ping/{CHECK}")
    done = shell("ping", *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"runguard: ping: {said}\n")


# --test


def test_a_test_is_a_line_for_the_log_and_changes_nothing(shell: Shell) -> None:
    with Healthchecks() as monitor:
        configure(shell, monitor.add(CHECK))
        done = shell("ping", "--test", "letters")
        [ping] = monitor.requests
        assert (ping.path, monitor.checks[CHECK].status) == (f"/ping/{CHECK}/log", "new")
        assert ping.body.startswith(b"a test of letters's monitor, from ")
        where = monitor.url("/…d21a5")
    took = "took a line for its log (HTTP 200): nothing else has changed there"
    assert (done.returncode, done.stdout) == (0, f"letters: {where} (healthchecks) {took}\n")
    assert CHECK not in done.stdout


def test_a_monitor_without_a_log_is_sent_a_success_only_if_that_is_wanted(shell: Shell) -> None:
    with Healthchecks() as monitor:
        configure(shell, monitor.url("/hooks/letters"))
        done = shell("ping", "--test", "letters")
        assert (done.returncode, monitor.requests) == (2, [])
        assert done.stderr.endswith(
            "letters: a plain monitor has no log, so that a test would count as a success; --yes sends one\n"
        )
        shell("ping", "--test", "--yes", "letters")
        assert monitor.paths == ["/hooks/letters"]


def test_of_several_monitors_those_with_a_log_are_tried(shell: Shell) -> None:
    with Healthchecks() as monitor:
        configure(shell, monitor.add(CHECK))
        with shell.config.open("a") as file:
            file.write(f'ping_success_url = "{monitor.url("/done")}"\n')
        assert shell("ping", "--test", "letters").returncode == 0
        assert monitor.paths == [f"/ping/{CHECK}/log"]


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (answer(404, b"not found"), "will never take it: HTTP 404: not found; there is no such check"),
        (answer(200, b"OK (not found)"), "will never take it: HTTP 200: OK (not found); there is no such check"),
        (answer(503), "did not take it: HTTP 503"),
    ],
    ids=["404", "OK (not found)", "503"],
)
def test_the_answer_to_a_test_is_put_into_words(shell: Shell, step: Step, said: str) -> None:
    with Misbehaving([step]) as monitor:
        configure(shell, monitor.url(f"/ping/{CHECK}"))
        done = shell("ping", "--test", "letters")
        assert len(monitor.requests) == 1
    assert done.returncode == 1
    assert done.stdout.endswith(f"(healthchecks) {said}\n")


def test_an_address_that_is_missing_or_cannot_be_read_is_told(shell: Shell) -> None:
    configure(shell, "file:/does/not/exist")
    done = shell("ping", "--test", "letters")
    assert done.returncode == 78
    assert "file:/does/not/exist: No such file or directory" in done.stderr
    shell.config.write_text("[jobs.letters]\n")
    done = shell("ping", "--test", "letters")
    assert done.returncode == 2
    assert "no address is configured for letters" in done.stderr

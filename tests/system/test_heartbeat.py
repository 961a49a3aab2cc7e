"""What a monitor hears of guarded runs, and that nothing it does hurts the job."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from receivers import Healthchecks, Misbehaving, answer, drip, hang, reset
from shell import Shell

CHECK = "0b1cfa3e-64a7-4c15-a1a6-62ac15ad21a5"


def ping_rows(shell: Shell, number: str = "1") -> list[dict[str, object]]:
    rows: list[dict[str, object]] = shell.json("show", number)[0]["pings"]
    return rows


def test_a_short_success_is_one_ping_after_the_record_with_a_summary_and_no_output(shell: Shell) -> None:
    with Healthchecks() as monitor:
        url = monitor.add(CHECK)
        assert shell("run", "-j", "x", "--ping", url, "--", "echo", "hi").returncode == 0
        [ping] = monitor.requests
    [run] = shell.json("history")
    assert (ping.method, ping.path, ping.query) == ("POST", f"/ping/{CHECK}", {})
    assert ping.body.startswith(b"succeeded, exit 0, ")
    assert f"run {run['run_id']}, ledger 3:".encode() in ping.body
    assert b"hi" not in ping.body.split(b", host")[0]
    assert ping.headers["user-agent"].startswith("runguard/")
    [row] = ping_rows(shell)
    assert (row["event"], row["verdict"], row["http_status"]) == ("success", "accepted", 200)
    assert CHECK not in str(row)


def test_a_failure_tells_status_and_the_end_of_the_output(shell: Shell) -> None:
    with Healthchecks() as monitor:
        url = monitor.add(CHECK)
        shell("run", "-j", "x", "--ping", url, "--", "sh", "-c", "echo why it failed; exit 3")
        [ping] = monitor.requests
    assert ping.path == f"/ping/{CHECK}/3"
    assert ping.body.endswith(b"\nwhy it failed")


def test_a_command_that_runs_longer_has_start_and_end_under_one_run_id(shell: Shell) -> None:
    with Healthchecks() as monitor:
        url = monitor.add(CHECK)
        command = [sys.executable, "-m", "runguard", "run", "-j", "x", "--ping", url, "--", "sh", "-c", "read line"]
        with subprocess.Popen(command, env=shell.environ, stdin=subprocess.PIPE) as guard:
            monitor.wait_for(1)
            guard.communicate(b"go on\n")
        start, end = monitor.requests
        assert monitor.checks[CHECK].started is False
    [run] = shell.json("history")
    assert (start.path, end.path) == (f"/ping/{CHECK}/start", f"/ping/{CHECK}")
    assert start.query == end.query == {"rid": run["run_id"]}
    assert start.headers["content-length"] == "0"
    assert [row["event"] for row in ping_rows(shell)] == ["start", "success"]


def test_the_start_ping_can_be_switched_off(shell: Shell) -> None:
    shell.config.write_text("[jobs.x]\nping_start = false\n")
    with Healthchecks() as monitor:
        url = monitor.add(CHECK)
        shell("run", "-j", "x", "--ping", url, "--", "sleep", "1.3")
        assert monitor.paths == [f"/ping/{CHECK}"]


@pytest.mark.parametrize("script", ["kill -TERM $$", "kill -KILL $$"])
def test_death_by_signal_is_a_failure_with_the_shells_status(shell: Shell, script: str) -> None:
    with Healthchecks() as monitor:
        url = monitor.add(CHECK)
        status = shell("run", "-j", "x", "--ping", url, "--", "sh", "-c", script).returncode
        assert monitor.paths == [f"/ping/{CHECK}/{status}"]


def test_a_cancelled_run_with_status_0_is_told_as_a_failure(shell: Shell) -> None:
    with Healthchecks() as monitor:
        url = monitor.add(CHECK)
        script = "trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done"
        command = [sys.executable, "-m", "runguard", "run", "-j", "x", "--ping", url, "--", "sh", "-c", script]
        with subprocess.Popen(command, env=shell.environ, stdout=subprocess.PIPE) as guard:
            assert guard.stdout is not None
            guard.stdout.readline()
            guard.send_signal(signal.SIGTERM)
            assert guard.wait(timeout=20) == 0
        assert monitor.paths[-1] == f"/ping/{CHECK}/fail"


def test_refused_and_duplicate_starts_tell_no_state(shell: Shell) -> None:
    with Healthchecks() as monitor:
        url = monitor.add(CHECK)
        daily = ("run", "-j", "d", "-s", "0 0 * * *", "-z", "UTC", "--scheduled-at", "2026-03-01T00:00Z", "--ping", url)
        shell(*daily, "--", "true")
        shell(*daily, "--", "true")
        assert monitor.paths == [f"/ping/{CHECK}"]


def test_an_unsafe_start_is_told_as_a_failure(shell: Shell) -> None:
    shell("run", "-j", "x", "--", "true")
    lock = shell.state / "db" / "locks" / "x.lock"
    lock.unlink()
    lock.symlink_to("elsewhere")
    with Healthchecks() as monitor:
        url = monitor.add(CHECK)
        assert shell("run", "-j", "x", "--ping", url, "--", "true").returncode == 78
        assert monitor.paths == [f"/ping/{CHECK}/78"]
    assert shell.json("history")[0]["why"] == "unsafe"


def test_an_unknown_url_is_told_of_success_alone(shell: Shell) -> None:
    with Healthchecks() as monitor:
        url = monitor.url("/hooks/backup")
        shell("run", "-j", "x", "--ping", url, "--", "false")
        assert monitor.requests == []
        shell("run", "-j", "x", "--ping", url, "--", "true")
        assert [(ping.method, ping.path) for ping in monitor.requests] == [("GET", "/hooks/backup")]


@pytest.mark.parametrize(
    ("style", "address", "told"),
    [
        ("betterstack", "/api/v1/heartbeat/KvsF4dYv", ("POST", "/api/v1/heartbeat/KvsF4dYv/3", [])),
        ("kuma", "/api/push/a1B2c3?status=up", ("GET", "/api/push/a1B2c3", ["status", "msg", "ping"])),
        ("sentry", "/api/1/cron/letters/abc/", ("GET", "/api/1/cron/letters/abc/", ["status", "check_in_id"])),
        ("pushgateway", "/metrics/job/letters", ("POST", "/metrics/job/letters", [])),
        (
            "cronitor",
            "/p/abc/letters?env=x",
            ("GET", "/p/abc/letters", ["env", "state", "series", "host", "status_code", "metric", "message"]),
        ),
        ("snitch", "/c2354d53d2", ("GET", "/c2354d53d2", ["s", "m"])),
    ],
)
def test_a_failure_is_told_in_the_words_of_the_monitor(
    shell: Shell, style: str, address: str, told: tuple[str, str, list[str]]
) -> None:
    with Misbehaving([answer(202)]) as monitor:
        named = ("--ping-style", style) if style in ("cronitor", "snitch") else ()  # known by their hosts
        done = shell("run", "-j", "x", *named, "--ping", monitor.url(address), "--", "sh", "-c", "exit 3")
        [ping] = monitor.requests
    assert (done.returncode, done.stderr) == (3, "")
    assert (ping.method, ping.path, list(ping.query)) == told
    assert [(row["style"], row["verdict"]) for row in ping_rows(shell)] == [(style, "accepted")]


@pytest.mark.parametrize(("choice", "script", "told"), [("always", "exit 0", True), ("never", "exit 3", False)])
def test_whether_the_output_is_told_is_a_setting(shell: Shell, choice: str, script: str, told: bool) -> None:
    shell.config.write_text(f'[jobs.x]\nping_output = "{choice}"\n')
    with Healthchecks() as monitor:
        shell("run", "-j", "x", "--ping", monitor.add(CHECK), "--", "sh", "-c", f"echo the output; {script}")
        assert (b"the output" in monitor.requests[0].body) == told


def test_what_a_server_takes_after_the_start_limits_the_body_of_the_end(shell: Shell) -> None:
    limited = answer(200, b"OK", Ping_Body_Limit="12")
    with Misbehaving([limited, answer(200, b"OK")]) as monitor:
        command = [sys.executable, "-m", "runguard", "run", "-j", "x", "--ping", monitor.url(f"/ping/{CHECK}")]
        with subprocess.Popen([*command, "--", "cat"], env=shell.environ, stdin=subprocess.PIPE) as guard:
            monitor.wait_for(1)
            guard.communicate(b"")
        assert monitor.requests[1].body == b"succeeded, e"


@pytest.mark.parametrize(
    ("steps", "verdict"),
    [
        ([reset, answer(503), answer(200, b"OK")], "accepted"),
        ([answer(404)], "final"),
        ([answer(200, b"OK (not found)")], "final"),
        ([answer(302, location="http://example.invalid/")], "final"),
    ],
    ids=["reset, 503, then 200", "404", "OK (not found)", "302 elsewhere"],
)
def test_what_a_monitor_answers_is_on_record_and_never_the_jobs_status(shell: Shell, steps: list, verdict: str) -> None:  # type: ignore[type-arg]
    with Misbehaving(steps) as monitor:
        done = shell("run", "-j", "x", "--ping", monitor.url(f"/ping/{CHECK}"), "--", "sh", "-c", "exit 3")
    assert done.returncode == 3
    assert ping_rows(shell)[0]["verdict"] == verdict
    assert (done.stderr == "") == (verdict == "accepted")
    assert CHECK not in done.stderr


def test_the_ping_of_a_run_that_the_journal_had_to_take_is_said_to_be_unrecorded(shell: Shell) -> None:
    shell("run", "-j", "x", "--", "true")
    store, kept = shell.state / "db" / "runguard.sqlite", shell.state / "db" / "kept"

    def mend() -> None:
        kept.replace(store)

    with Misbehaving([answer(200, b"OK")], look=mend) as monitor:
        store.rename(kept)
        store.write_bytes(b"no database")
        done = shell("run", "-j", "x", "--ping", monitor.url(f"/ping/{CHECK}"), "--", "true")
    *_, last = done.stderr.splitlines()
    assert last == "runguard: x: the run waits in the journal; what became of its ping is not recorded"
    assert done.returncode == 0


@pytest.mark.parametrize("step", [hang, drip], ids=["hang", "drip"])
def test_a_monitor_that_hangs_delays_no_command_and_no_lock_and_is_given_up(shell: Shell, step) -> None:  # type: ignore[no-untyped-def]
    with Misbehaving([step]) as monitor:
        url = monitor.url(f"/ping/{CHECK}")
        command = [
            sys.executable,
            "-m",
            "runguard",
            "run",
            "-j",
            "x",
            "--ping",
            url,
            "--",
            "sh",
            "-c",
            "echo ran; exit 4",
        ]
        with subprocess.Popen(command, env=shell.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as guard:
            assert guard.stdout is not None
            assert guard.stdout.readline() == b"ran\n"
            monitor.wait_for(1)
            # Record and lock are done with while the monitor hangs: the next start runs.
            assert shell("run", "-j", "x", "--", "true").returncode == 0
            assert shell.json("history")[-1]["outcome"] == "failed"
            told_at = time.monotonic()
            guard.send_signal(signal.SIGTERM)  # which also shortens the deadline to 3 s
            _, stderr = guard.communicate(timeout=14)
            assert time.monotonic() - told_at < 14  # and not for ever
            assert guard.returncode == 4
    assert b"not delivered" in stderr


def test_no_url_reaches_the_command_its_environment_or_the_store(shell: Shell) -> None:
    with Healthchecks() as monitor:
        url = monitor.add(CHECK)
        done = shell("run", "-j", "x", "--", "env", environ={"RUNGUARD_PING": url})
        assert monitor.paths == [f"/ping/{CHECK}"]
    assert CHECK not in done.stdout
    assert CHECK.encode() not in (shell.state / "db" / "runguard.sqlite").read_bytes()


def test_a_url_from_a_file_is_used_and_a_missing_file_does_not_stop_the_job(shell: Shell) -> None:
    secret = shell.directory / "url"
    with Healthchecks() as monitor:
        secret.write_text(monitor.add(CHECK) + "\n")
        shell("run", "-j", "x", "--ping", f"file:{secret}", "--", "true")
        assert monitor.paths == [f"/ping/{CHECK}"]
    secret.unlink()
    done = shell("run", "-j", "x", "--ping", f"file:{secret}", "--", "sh", "-c", "exit 3")
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert "the job runs without a ping" in done.stderr

"""What broke for users of other tools: heartbeats. Each test is one thing that really happened to somebody.

Elsewhere: what got lost and is told later (test_spool); that lock and record are done with while a monitor hangs
(test_heartbeat); windows without a run (check); every kind of answer (heartbeat/test_sender).
"""

from __future__ import annotations

import json
import os
import re
import ssl
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import trustme

from guarded import running
from receivers import Healthchecks, Misbehaving, Step, answer, drip, endless, hang, reset
from shell import SOURCE, Shell, wait_until

CHECK = "0b1cfa3e-64a7-4c15-a1a6-62ac15ad21a5"
PING = f"/ping/{CHECK}"
KEY = "fqOOd6-F4MMNuCEnzTU01w"
OK = answer(200, b"OK")
HURRIED = str(Path(__file__).parents[1] / "hurried.py")


def hurried(shell: Shell, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run `runguard` with short deadlines for pings."""
    environ = {**shell.environ, **options.pop("environ", {})}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
    command = [sys.executable, HURRIED, *arguments]
    return subprocess.run(command, env=environ, cwd=shell.directory, text=True, timeout=60, check=False, **pipes)


def pings(shell: Shell, number: str = "1") -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = shell.json("show", number)[0]["pings"]
    return rows


# A monitor that misbehaves


class Case(NamedTuple):
    """A way to misbehave: what each connection gets, and what the record says of start and end."""

    steps: list[Step]
    start: str  # verdict
    end: str
    tries: int  # of the end
    error: str = ""  # what the record says of the end; its beginning


CASES = {
    "hangs": Case([hang], "undelivered", "undelivered", 1, "no success within "),
    "drips a byte a second": Case([drip], "undelivered", "undelivered", 1, "no success within "),
    "resets": Case([reset], "undelivered", "undelivered", 4, "Connection reset by peer"),
    "503 twice, then 200": Case([OK, answer(503), answer(503), OK], "accepted", "accepted", 3),
    "429 with Retry-After": Case([OK, answer(429, Retry_After="1"), OK], "accepted", "accepted", 2),
    "429 with a long Retry-After": Case([answer(429, Retry_After="60")], "undelivered", "undelivered", 1, "HTTP 429"),
    "302 elsewhere": Case(
        [answer(302, Location=f"http://monitor.invalid{PING}")],
        "final", "final", 1, "redirects to http://monitor.invalid/…d21a5, which is not followed",
    ),
    "endless body": Case([endless], "accepted", "accepted", 1),
    "OK (rate limited)": Case(
        [answer(200, b"OK (rate limited)")], "undelivered", "undelivered", 4, "HTTP 200: OK (rate limited)"
    ),
    "OK (not found)": Case([answer(200, b"OK (not found)")], "final", "final", 1, "HTTP 200: OK (not found)"),
    "201": Case([answer(201, b"Created")], "accepted", "accepted", 1),
}  # fmt: skip


def run_with(shell: Shell, url: str, go_on: Any) -> subprocess.CompletedProcess[str]:
    """Run a job that notes its start and goes on once `go_on` returns; it prints `why` and ends with 3."""
    command = ["sh", "-c", ": > started; read line; echo why; exit 3"]
    line = [sys.executable, HURRIED, "--at-once", "run", "-j", "x", "--ping", url, "--", *command]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        line, env=shell.environ, cwd=shell.directory, text=True, stdin=pipe, stdout=pipe, stderr=pipe
    ) as guard:
        go_on()
        out, err = guard.communicate("go on\n", timeout=30)
    return subprocess.CompletedProcess(line, guard.returncode, out, err)


@pytest.mark.parametrize("name", CASES)
def test_whatever_a_monitor_does_the_job_goes_first_and_keeps_its_status(shell: Shell, name: str) -> None:
    case = CASES[name]
    with Misbehaving(case.steps, look=(shell.directory / "started").exists) as monitor:
        done = run_with(shell, monitor.url(PING), lambda: monitor.wait_for(1))
        requests = list(monitor.requests)
    assert (done.returncode, done.stdout) == (3, "why\n")
    assert set(monitor.looks) == {True}  # nobody connected before the command ran
    start, end = pings(shell)
    assert [(row["event"], row["verdict"]) for row in (start, end)] == [("start", case.start), ("failure", case.end)]
    assert (end["tries"], (end["error"] or "")[: len(case.error)]) == (case.tries, case.error)
    assert done.stderr.count("not delivered") == [case.start, case.end].count("accepted") * -1 + 2
    assert CHECK not in done.stderr + json.dumps([start, end])
    # The last try after a server's error goes without the body; all others carry it whole.
    told = [request for request in requests if request.path == f"{PING}/3"]
    assert all(request.body.endswith(b"\nwhy") for request in told)
    assert all(request.headers["content-length"] for request in requests)


def test_a_wait_that_a_monitor_asks_for_is_kept(shell: Shell) -> None:
    with Misbehaving([answer(429, Retry_After="1"), OK]) as monitor:
        hurried(shell, "run", "-j", "x", "--ping", monitor.url(PING), "--", "true")
        first, second = monitor.requests
    assert second.at_s - first.at_s >= 1.0


def test_a_certificate_that_is_not_the_monitors_is_no_answer(shell: Shell) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("localhost").configure_cert(context)  # by an authority that nobody knows
    with Misbehaving([OK], tls=context, look=(shell.directory / "started").exists) as monitor:
        done = run_with(shell, monitor.url(PING), lambda: wait_until(lambda: bool(monitor.looks)))
        assert monitor.requests == []
    assert (done.returncode, set(monitor.looks)) == (3, {True})
    assert [row["verdict"] for row in pings(shell)] == ["undelivered", "undelivered"]
    assert pings(shell)[1]["error"].startswith("TLS: ")


def test_a_name_that_nobody_knows_is_no_answer(shell: Shell) -> None:
    url = f"https://monitor.invalid{PING}"
    done = run_with(shell, url, lambda: wait_until((shell.directory / "started").exists))
    assert done.returncode == 3
    assert pings(shell)[-1]["verdict"] == "undelivered"
    assert "DNS: " in pings(shell)[-1]["error"]


def test_a_helper_that_fails_tells_nothing_of_the_address(shell: Shell) -> None:
    broken = shell.directory / "broken"
    broken.mkdir()
    (broken / "requests.py").write_text(
        "class Session:\n    headers = {}\n    def prepare_request(self, request): raise RuntimeError(request)\n"
        "class RequestException(Exception): pass\n"
        "def Request(method, url, **_): return url\n"
    )
    with Healthchecks() as monitor:
        options = ("run", "-j", "x", "--ping", monitor.add(CHECK), "--", "sh", "-c", "exit 3")
        done = hurried(shell, *options, environ={"PYTHONPATH": f"{broken}:{SOURCE}"})
    assert (done.returncode, CHECK in done.stderr) == (3, False)
    assert pings(shell)[0]["error"] == "the helper failed: RuntimeError"


# What servers are sent


def test_without_a_body_there_is_a_content_length_and_nothing_is_chunked(shell: Shell) -> None:
    shell.config.write_text("[jobs.x]\nping_body_limit = 0\n")
    with Healthchecks() as monitor:  # it answers 411 to a chunked request
        url = monitor.add(CHECK)
        done = run_with(shell, url, lambda: monitor.wait_for(1))
    assert [(ping.headers.get("content-length"), ping.body) for ping in monitor.requests] == [("0", b"")] * 2
    assert [row["verdict"] for row in pings(shell)] == ["accepted", "accepted"]
    assert done.stderr == ""


def test_a_check_that_the_ping_creates_is_no_error(shell: Shell) -> None:
    with Healthchecks() as monitor:
        url = monitor.url(f"/ping/{KEY}/letters?create=1")
        assert shell("run", "-j", "x", "--ping", url, "--", "true").stderr == ""
    assert [(row["verdict"], row["http_status"]) for row in pings(shell)] == [("accepted", 201)]


def test_the_window_of_the_run_is_in_what_is_told(shell: Shell) -> None:
    with Misbehaving([OK]) as monitor:
        shell.config.write_text(f'[jobs.x]\nping_success_url = "{monitor.url("/done")}?due={{due}}"\n')
        daily = ("-s", "0 2 * * *", "-z", "Europe/London", "--scheduled-at", "2026-07-01T02:00+01:00")
        shell("run", "-j", "x", *daily, "--ping", monitor.url(PING), "--", "true")
        told = {request.path: request for request in monitor.wait_for(2)}
    assert b", window 2026-07-01T02:00+01:00, host " in told[PING].body
    assert told["/done"].query == {"due": "2026-07-01T01:00:00Z"}


def test_a_job_of_several_steps_has_one_outcome(shell: Shell) -> None:
    with Healthchecks() as monitor:
        url = monitor.add(CHECK)
        status = shell("run", "-j", "x", "--ping", url, "-c", "true; sh -c 'exit 5'; echo went on; true").returncode
        assert shell("run", "-j", "x", "--ping", url, "-c", "set -e; true; sh -c 'exit 5'; true").returncode == 5
        assert (status, monitor.paths) == (0, [PING, f"{PING}/5"])


def test_a_success_far_too_soon_is_told_as_a_failure_with_the_reason(shell: Shell) -> None:
    shell.config.write_text('[jobs.x]\nmin_time = "5m"\n')
    with Healthchecks() as monitor:
        assert shell("run", "-j", "x", "--ping", monitor.add(CHECK), "--", "true").returncode == 0
        [ping] = monitor.requests
    assert ping.path == f"{PING}/fail"
    assert re.match(rb"succeeded, but it took \d\.\d s, less than its min_time of 300 s, exit 0, ", ping.body)


def test_two_runs_at_once_are_told_under_an_id_each(shell: Shell) -> None:
    with Healthchecks() as monitor:
        url = monitor.add(CHECK)
        # The first is told of its start after a second, as ever.
        with running(
            shell, "--ping", url, "--overlap", "allow", command="while [ ! -e go ]; do sleep 0.02; done"
        ) as one:
            monitor.wait_for(1)
            with running(shell, "--ping", url, "--overlap", "allow", command="sleep 1.2", started="other") as two:
                assert two.wait(timeout=30) == 0
            (shell.directory / "go").touch()
            assert one.wait(timeout=30) == 0
        first, second, *ends = monitor.requests
    assert [request.path for request in monitor.requests] == [f"{PING}/start", f"{PING}/start", PING, PING]
    assert first.query["rid"] != second.query["rid"]
    assert [end.query["rid"] for end in ends] == [second.query["rid"], first.query["rid"]]


def test_attempts_before_the_last_are_lines_in_a_log(shell: Shell) -> None:
    with Healthchecks() as monitor:
        options = ("run", "-j", "x", "--ping", monitor.add(CHECK), "--retries", "3", "--retry-delay", "0")
        command = ("sh", "-c", 'test "$RUNGUARD_ATTEMPT" = 3 || exit 4')
        assert shell(*options, "--", *command).returncode == 0
        assert monitor.paths == [f"{PING}/log", f"{PING}/log", PING]
        assert monitor.requests[0].body.startswith(b"failed, exit 4, ")
    assert [[row["event"] for row in pings(shell, number)] for number in "123"] == [["log"], ["log"], ["success"]]


# The clock


def test_a_run_that_ends_long_before_its_due_is_not_told_as_the_run_before(shell: Shell) -> None:
    shell.config.write_text('[jobs.x]\nearly = "3m"\n')
    due = datetime.now(UTC) + timedelta(minutes=2)  # one to two minutes from here: the clock is behind cron's
    schedule = f"{due.minute} {due.hour} * * *"
    with Healthchecks() as monitor:
        done = hurried(shell, "run", "-j", "x", "-s", schedule, "-z", "UTC", "--ping", monitor.add(CHECK), "--", "true")
        assert monitor.requests == []
    assert done.returncode == 0
    due_at = due.strftime("%Y-%m-%dT%H:%M:00Z")
    error = f"before its due, {due_at}, it would count for the window before"
    assert [(row["verdict"], row["error"]) for row in pings(shell)] == [("undelivered", error)]
    assert error in done.stderr


# Addresses that are none


@pytest.mark.parametrize(
    ("option", "what"),
    [
        ("", "--ping: is empty"),
        (f"hc-ping.com/{CHECK}", "--ping: is no address (https://…)"),
        (f"https://hc-ping.com/{CHECK} x", "--ping: holds characters that no address has"),
        (f"https://hc-ping.com:x/{CHECK}", "--ping: has no valid port"),
        (f"https://hc-ping.com:{'1' * 5000}/{CHECK}", "--ping: has no valid port"),
        (f"https://hc-ping.com/{CHECK}/fail", "--ping: ends in /fail: give the check's own address, without it"),
        ("file:/nonexistent/url", "--ping: file:/nonexistent/url: No such file or directory"),
        ("file:/etc", "--ping: file:/etc: not a regular file"),
    ],
)
def test_an_address_that_is_none_is_one_line_and_the_job_runs(shell: Shell, option: str, what: str) -> None:
    done = shell("run", "-j", "x", "--ping", option, "--", "sh", "-c", "echo ran; exit 3")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "ran\n", 1)
    assert done.stderr.startswith(f"runguard: x: {what}")
    assert "the job runs without" in done.stderr
    assert CHECK not in done.stderr
    assert pings(shell) == []


def test_a_template_with_another_placeholder_is_one_line_and_the_others_are_told(shell: Shell) -> None:
    with Misbehaving([OK]) as monitor:
        shell.config.write_text(
            f'[jobs.x]\nping_success_url = "{monitor.url("/ok")}"\n'
            f'ping_fail_url = "{monitor.url("/s3cr3t-of-ann")}/{{status}}"\n'
        )
        done = shell("run", "-j", "x", "--", "true")
        assert monitor.paths == ["/ok"]
    assert (done.returncode, done.stderr.count("\n"), "s3cr3t" in done.stderr) == (0, 1, False)
    assert "jobs.x.ping_fail_url: {status} is no placeholder" in done.stderr
    assert done.stderr.endswith("; the job runs without that ping\n")


# Templates


def test_each_event_has_an_address_of_its_own_filled_in(shell: Shell) -> None:
    with Misbehaving([OK]) as monitor:
        for event in ("start", "success", "fail"):
            (shell.directory / event).write_text(monitor.url(f"/{event}/{{job}}") + "?id={run_id}&status={exit}\n")
        keys = (f'ping_{event}_url = "file:{shell.directory}/{event}"\n' for event in ("start", "success", "fail"))
        shell.config.write_text("[jobs.x]\n" + "".join(keys))
        command = ["sh", "-c", "read line"]
        line = [sys.executable, HURRIED, "--at-once", "run", "-j", "x", "--", *command]
        with subprocess.Popen(line, env=shell.environ, cwd=shell.directory, stdin=subprocess.PIPE) as guard:
            monitor.wait_for(1)
            guard.communicate(b"go on\n", timeout=30)
        hurried(shell, "run", "-j", "x", "--", "sh", "-c", "kill -KILL $$")
        told = [(request.method, request.path, request.query["status"]) for request in monitor.requests]
    assert told == [("GET", "/start/x", ""), ("GET", "/success/x", "0"), ("GET", "/fail/x", "137")]
    second, first = shell.json("history")
    ids = [request.query["id"] for request in monitor.requests]
    assert ids == [first["run_id"], first["run_id"], second["run_id"]]
    assert [(row["event"], row["style"]) for row in pings(shell)] == [("start", "template"), ("success", "template")]


def test_the_monitor_of_ping_and_the_templates_are_both_told(shell: Shell) -> None:
    with Healthchecks() as monitor, Misbehaving([OK]) as hook:
        shell.config.write_text(f'[jobs.x]\nping_fail_url = "{hook.url("/failed/{exit}")}"\n')
        shell("run", "-j", "x", "--ping", monitor.add(CHECK), "--", "sh", "-c", "exit 3")
        assert (monitor.paths, hook.paths) == ([f"{PING}/3"], ["/failed/3"])


# Starts that are refused


@pytest.mark.parametrize(
    ("choice", "path"), [("none", None), ("log", f"{PING}/log"), ("success", PING), ("failure", f"{PING}/75")]
)
def test_a_refused_start_is_told_as_the_job_wants_it(shell: Shell, choice: str, path: str | None) -> None:
    shell.config.write_text(f'[jobs.x]\nping_on_skip = "{choice}"\n')
    with Healthchecks() as monitor, running(shell):
        done = shell("run", "-j", "x", "--ping", monitor.add(CHECK), "--", "true")
        refused = monitor.requests
    assert done.returncode == 75
    assert [request.path for request in refused] == ([path] if path else [])
    assert [request.body[:17] for request in refused] == ([b"not run (overlap)"] if path else [])
    # An id of its own, so that the timer of the run that goes on is left alone.
    assert [request.query["rid"] for request in refused] == [run["run_id"] for run in shell.json("history")[:1] if path]
    assert len(pings(shell, "2")) == len(refused)


def test_a_window_that_is_held_is_never_told_as_a_success(shell: Shell) -> None:
    shell.config.write_text('[jobs.x]\nping_on_skip = "success"\ndeadline = "1h"\n')
    daily = ("-s", "0 2 * * *", "-z", "UTC", "--scheduled-at", "2026-03-01T02:00Z")
    with Healthchecks() as monitor:
        url = monitor.add(CHECK)
        assert shell("run", "-j", "x", *daily, "--ping", url, "--", "true").returncode == 75  # past its deadline
        assert monitor.paths == [f"{PING}/log"]


def test_a_monitor_that_hangs_keeps_the_status_of_a_refused_start(shell: Shell) -> None:
    shell.config.write_text('[jobs.x]\nping_on_skip = "failure"\n')
    with Misbehaving([hang]) as monitor, running(shell):
        done = hurried(shell, "run", "-j", "x", "--conflict-exit", "9", "--ping", monitor.url(PING), "--", "true")
    assert done.returncode == 9
    assert "failure ping to" in done.stderr
    assert pings(shell, "2")[0]["verdict"] == "undelivered"


# Secrets


def test_the_address_is_nowhere_but_in_the_configuration(shell: Shell) -> None:
    keys = ["0b1cfa3e-64a7-4c15-a1a6-62ac15ad21a5", "t0ken-of-the-template-4711"]
    with Misbehaving([hang]) as monitor:
        shell.config.write_text(
            f'[jobs.x]\nping = "{monitor.url(f"/ping/{keys[0]}")}"\n'
            f'ping_fail_url = "{monitor.url(f"/{keys[1]}/{{exit}}")}"\n'
        )
        line = [sys.executable, HURRIED, "--at-once", "run", "-j", "x", "--", "sh", "-c", "env; read line; exit 3"]
        pipe = subprocess.PIPE
        with subprocess.Popen(
            line, env=shell.environ, cwd=shell.directory, text=True, stdin=pipe, stdout=pipe, stderr=pipe
        ) as guard:
            monitor.wait_for(1)  # the start, beside the command
            beside = processes()
            assert guard.stdin is not None
            guard.stdin.write("go on\n")
            guard.stdin.flush()
            wait_until(lambda: len(monitor.requests) >= 3)  # both monitors are told the end
            afterwards = processes()
            out, err = guard.communicate(timeout=30)
    queries = (("show", "1"), ("show", "1", "--json"), ("show", "1", "--output"), ("history", "--json"))
    shown = "".join(shell(*query).stdout for query in queries)
    kept = b"".join(path.read_bytes() for path in shell.state.rglob("*") if path.is_file())
    assert "-m\0runguard.sender" in beside
    assert "-m\0runguard.sender" in afterwards
    assert "\nRUNGUARD_RUN_ID=" in out
    assert "not delivered" in err
    for key in keys:
        assert key not in out + err + shown + beside + afterwards
        assert key.encode() not in kept


def processes() -> str:
    """Return every command line and every environment of ours that can be read."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        for name in ("cmdline", "environ"):
            try:
                if os.stat(process).st_uid == os.getuid():
                    found.append((process / name).read_bytes().decode("utf-8", "replace"))
            except OSError:
                continue
    return "\n".join(found)

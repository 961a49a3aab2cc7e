"""`ping --sync`: a Healthchecks server learns what windows a job has."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from management import KEY, PING_KEY, Managed
from receivers import Misbehaving, answer, hang
from runguard.cli import commands
from runguard.heartbeat import client
from shell import Shell

CHECK = "0b1cfa3e-64a7-4c15-a1a6-62ac15ad21a5"
LETTERS = 'schedule = "30 2 * * *"\ntimezone = "Europe/London"\ngrace = "10m"\n'
NO_CHECK = "HTTP 200, and what came with it describes no check; see ping_api_url"
EXPECTED = {"schedule": "30 2 * * *", "tz": "Europe/London", "grace": 600}


def configure(shell: Shell, keys: str, job: str = "letters", key: str = KEY) -> None:
    before = shell.config.read_text() or f'ping_api_key = "{key}"\n'
    shell.config.write_text(f"{before}[jobs.{job}]\n{keys}")


def test_the_check_of_a_jobs_address_is_updated_and_keeps_its_name(shell: Shell) -> None:
    with Managed() as server:
        url = server.make(CHECK, name="Letters, at night", channels="mail")
        configure(shell, f'{LETTERS}ping = "{url}"\n')
        done = shell("ping", "--sync", "letters")
        assert server.asked == [(f"/api/v3/checks/{CHECK}", EXPECTED)]
        assert server.known[CHECK] == {"name": "Letters, at night", "slug": "", **EXPECTED, "channels": "mail"}
        where = server.url("")
    told = f"letters: updated the check {where}/…d21a5 on {where}: '30 2 * * *' in Europe/London, grace 10m\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, told, "")


def test_the_monitor_then_expects_what_runguard_does(shell: Shell) -> None:
    with Managed() as server:
        url = server.make(CHECK)
        configure(shell, f'{LETTERS}timeout = "1h"\nping = "{url}"\n')
        shell("ping", "--sync", "letters")
        check = server.checks[CHECK]
        assert (check.schedule, check.zone, check.grace_s) == ("30 2 * * *", "Europe/London", 600 + 3600)


def test_without_an_address_a_check_is_made_by_the_jobs_name_and_updated_the_next_time(shell: Shell) -> None:
    with Managed() as server:
        configure(shell, f'{LETTERS}ping_api_url = "{server.url("/api/v3/")}"\n')
        first, second = shell("ping", "--sync", "letters"), shell("ping", "--sync", "letters")
        assert server.asked[0] == ("/api/v3/checks/", {"name": "letters", **EXPECTED, "unique": ["name"]})
        [(code, known)] = server.known.items()
        assert (known["name"], known["channels"]) == ("letters", "*")  # without integrations it would alarm nobody
        assert [path for path, _ in server.asked] == ["/api/v3/checks/", f"/api/v3/checks/{code}", "/api/v3/checks/"]
    assert (first.returncode, second.returncode) == (0, 0)
    assert first.stdout.startswith("letters: created the check http://")
    assert first.stdout.endswith(
        "the job does not ping it yet: set ping to its address, which the server's page shows\n"
    )
    assert second.stdout.startswith("letters: updated the check http://")
    assert code not in first.stdout + second.stdout


def test_an_address_with_a_slug_finds_its_check_by_that(shell: Shell) -> None:
    with Managed() as server:
        configure(shell, f'{LETTERS}ping = "{server.url(f"/ping/{PING_KEY}/letters-at-night?create=1")}"\n')
        assert shell("ping", "--sync", "letters").returncode == 0
        assert server.asked[0] == (
            "/api/v3/checks/",
            {"slug": "letters-at-night", **EXPECTED, "unique": ["slug"]},
        )
        [known] = server.known.values()
        assert (known["name"], known["slug"], known["channels"]) == ("letters", "letters-at-night", "*")


def test_an_address_that_the_server_does_not_know_is_not_taken_for_the_one_that_is_made(shell: Shell) -> None:
    with Managed() as server:
        configure(shell, f'{LETTERS}ping = "{server.url(f"/ping/{CHECK}")}"\n')
        done = shell("ping", "--sync", "letters")
        assert len(server.known) == 1
    assert done.returncode == 1
    assert done.stdout.endswith("/…d21a5; set ping to the address of this one\n")


def test_all_jobs_with_an_address_are_done_and_those_that_cannot_be_are_named(shell: Shell) -> None:
    with Managed() as server:
        for job, schedule in (
            ("payroll", "RRULE:FREQ=MONTHLY;BYDAY=MO;BYSETPOS=-1"),
            ("backup", "@daily"),
            ("poll", ""),
        ):
            keys = f'schedule = "{schedule}"\n' if schedule else ""
            configure(shell, f'{keys}timezone = "UTC"\nping = "{server.make(name=job)}"\n', job)
        configure(shell, LETTERS, "silent")
        configure(shell, f'{LETTERS}ping = "http://127.0.0.1:9/hooks/x"\n', "hook")
        told = shell("ping", "--sync", "--all", "--json")
        assert [body["schedule"] for _, body in server.asked] == ["0 0 * * *"]
    assert told.returncode == 1
    facts = {each["job"]: (each["action"], each["detail"]) for each in json.loads(told.stdout)}
    assert facts == {
        "backup": ("updated", ""),
        "payroll": ("refused", "it is a recurrence, and the server knows cron expressions"),
        "poll": ("refused", "it has no schedule and no max_age, so that nothing is expected of it"),
    }


def test_a_job_without_a_schedule_is_expected_within_its_max_age(shell: Shell) -> None:
    with Managed() as server:
        configure(shell, f'max_age = "1d"\nping = "{server.make(CHECK)}"\n')
        done = shell("ping", "--sync", "letters")
        assert server.asked == [(f"/api/v3/checks/{CHECK}", {"timeout": 86400, "grace": 300})]
        assert (server.checks[CHECK].schedule, server.checks[CHECK].period_s) == (None, 86400)
    assert done.stdout.endswith(": every 1d, grace 5m\n")


def test_a_check_that_several_jobs_ping_can_expect_none_of_them(shell: Shell) -> None:
    with Managed() as server:
        url = server.make(CHECK)
        for job in ("letters", "backup"):
            configure(shell, f'{LETTERS}ping = "{url}"\n', job)
        done = shell("ping", "--sync", "--all")
        assert server.asked == []
        where = server.url("")
    why = "ping the same check, which can expect one job's windows"
    assert done.returncode == 1
    assert done.stdout == (
        f"backup: not sent to {where}: letters {why.replace('ping', 'pings', 1)}\n"
        f"letters: not sent to {where}: backup {why.replace('ping', 'pings', 1)}\n"
    )


def test_nothing_is_sent_for_any_job_where_one_is_not_configured(shell: Shell) -> None:
    with Managed() as server:
        configure(shell, f'{LETTERS}ping = "{server.make(CHECK)}"\n')
        configure(shell, LETTERS, "backup")
        done = shell("ping", "--sync", "letters", "backup")
        assert server.asked == []
    assert done.returncode == 2
    assert "backup: it has no Healthchecks address: set ping_api_url" in done.stderr


def test_a_policy_of_which_the_server_knows_nothing_is_refused_by_name(shell: Shell) -> None:
    with Managed() as server:
        url = server.make(CHECK)
        keys = 'schedule = "30 1 * * *"\ntimezone = "Europe/London"\npolicy = "systemd"\n'
        configure(shell, f'{keys}ping = "{url}"\n')
        done = shell("ping", "--sync", "letters")
        assert server.asked == []
    assert done.returncode == 1
    assert "with policy systemd it has other windows than a server expects" in done.stdout


def test_a_dry_run_shows_what_would_be_sent(shell: Shell) -> None:
    with Managed() as server:
        configure(shell, f'{LETTERS}ping = "{server.make(CHECK)}"\n')
        done = shell("ping", "--sync", "letters", "--dry-run")
        assert server.asked == []
    assert done.returncode == 0
    assert '{"schedule": "30 2 * * *", "tz": "Europe/London", "grace": 600}' in done.stdout
    assert KEY not in done.stdout


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ([answer(400, b'{"error": "json validation error: tz is not a valid timezone"}')],
         "the server does not take this check (json validation error: tz is not a valid timezone)"),
        ([answer(401, b'{"error": "wrong api key"}')],
         "the server does not take the key of ping_api_key (wrong api key)"),
        ([answer(403)], "the check belongs to another project than the key of ping_api_key"),
        ([answer(404)], "there is no such check, or no management API; see ping_api_url"),
        ([answer(503, Retry_After="3600")], "the server fails: HTTP 503"),
        ([answer(302, Location="http://elsewhere.example/")],
         "HTTP 302 (redirects to http://elsewhere.example/…, which is not followed)"),
        ([answer(200, b"<html>")], NO_CHECK),
        ([answer(200, b"[" * 5000)], NO_CHECK),
        ([answer(204)], "HTTP 204, and what came with it describes no check; see ping_api_url"),
        ([answer(200, b'{"schedule": "* * * * *", "tz": "Europe/London", "grace": 600}')],
         "the server keeps schedule '* * * * *' in place of what was sent"),
    ],
    ids=["400", "401", "403", "404", "503", "302", "no JSON", "deep JSON", "204", "another schedule"],
)  # fmt: skip
def test_an_answer_is_put_into_words(shell: Shell, steps: list, said: str) -> None:  # type: ignore[type-arg]
    with Misbehaving(steps) as server:
        configure(shell, f'{LETTERS}ping = "{server.url(f"/ping/{CHECK}")}"\n')
        done = shell("ping", "--sync", "letters")
        assert all(request.body for request in server.requests)  # never without it: that would make an empty check
    assert done.returncode == 1
    assert done.stdout.endswith(f"is not as it should be: {said}\n")


@pytest.mark.parametrize("status", [200, 401, 404, 500])
def test_a_server_that_repeats_its_secrets_does_not_get_them_shown(shell: Shell, status: int) -> None:
    said = f'{{"error": "{KEY} is no key of {CHECK}", "grace": "{KEY}{CHECK}"}}'.encode()
    with Misbehaving([answer(status, said, Retry_After="3600")]) as server:
        configure(shell, f'{LETTERS}ping = "{server.url(f"/ping/{CHECK}")}"\n')
        done = shell("ping", "--sync", "letters")
    assert done.returncode == 1
    assert "***" in done.stdout
    assert (KEY in done.stdout, CHECK[:13] in done.stdout) == (False, False)


def test_a_server_without_room_says_so(shell: Shell) -> None:
    with Managed(room=0) as server:
        configure(shell, f'{LETTERS}ping_api_url = "{server.url("")}"\n')
        done = shell("ping", "--sync", "letters")
    assert (done.returncode, "the project has no room for another check" in done.stdout) == (1, True)


def test_the_key_is_read_from_its_file_and_is_in_no_argv(shell: Shell) -> None:
    secret = shell.directory / "api.key"
    secret.write_text(f"{KEY}\n")
    seen: list[bytes] = []

    def look(connection, over) -> None:  # type: ignore[no-untyped-def]
        seen.append(b"".join(quietly(path) for path in Path("/proc").glob("[0-9]*/cmdline")))
        answer(200, b"{}")(connection, over)

    with Misbehaving([look]) as server:
        configure(shell, f'{LETTERS}ping = "{server.url(f"/ping/{CHECK}")}"\n', key=f"file:{secret}")
        done = shell("ping", "--sync", "letters")
        assert server.requests[0].headers["x-api-key"] == KEY
    assert done.returncode == 0
    assert b"runguard.sender" in seen[0]
    assert KEY.encode() not in seen[0]
    for path in shell.state.rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes()


def quietly(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


@pytest.mark.parametrize(
    ("keys", "status", "said"),
    [
        ('ping = "http://127.0.0.1:9/hooks/x"\n', 2, "it has no Healthchecks address: set ping_api_url"),
        ('ping_api_url = "http://127.0.0.1:9"\n', 2, "set ping_api_key"),
        ('ping_api_url = "http://127.0.0.1:9"\nping_api_key = "file:/does/not/exist"\n', 78,
         "ping_api_key: file:/does/not/exist: No such file or directory"),
        ('ping_api_url = "http://127.0.0.1:9"\nping_api_key = "two\\nlines"\n', 78, "holds characters that no key has"),
    ],
)  # fmt: skip
def test_what_is_not_configured_is_named(shell: Shell, keys: str, status: int, said: str) -> None:
    shell.config.write_text(f"[jobs.letters]\n{LETTERS}{keys}")
    done = shell("ping", "--sync", "letters")
    assert (done.returncode, done.stdout) == (status, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try once, and not for long."""
    monkeypatch.setattr(client, "TIMEOUTS_S", (0.2, 0.2))
    monkeypatch.setattr(client, "DELAYS_S", ())


@pytest.mark.usefixtures("at_once")
def test_a_server_that_hangs_is_given_up(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    with Misbehaving([hang]) as server:
        configure(shell, f'{LETTERS}ping = "{server.url(f"/ping/{CHECK}")}"\n')
        assert commands.call(["ping", "--sync", "letters"], shell.environ) == 1
    assert capsys.readouterr().out.endswith("no answer: timed out\n")


@pytest.mark.usefixtures("at_once")
def test_a_port_where_nobody_listens_is_no_answer(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    configure(shell, f'{LETTERS}ping = "http://127.0.0.1:{port}/ping/{CHECK}"\n')
    assert commands.call(["ping", "--sync", "letters"], shell.environ) == 1
    assert capsys.readouterr().out.endswith("no answer: Connection refused\n")

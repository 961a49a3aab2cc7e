"""What the settings of one start come to, and what is said about mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from runguard import config
from runguard.settings import Problem, Settings

DEFAULTS = Settings(
    job="letters", schedule=None, timezone=None, policy="vixie", gap=None, fold=None, shell=False, timeout_s=None,
    kill_after_s=10.0, output="always", ping=None, ping_style=None, scheduled_at_us=None, reason=None,
    conflict_exit=75, dry_run=False, store=None, on_lost="hold", on_store_failure="run", early_s=5.0, ping_start=True,
    ping_success_url=None, ping_start_url=None, ping_fail_url=None, ping_on_skip="none",
    ping_output="on-failure", ping_body_limit=10_000, ping_api_url=None, ping_api_key=None,
    mask=(), output_head_bytes=65_536, output_tail_bytes=1_048_576,
    catch_up="none", catch_up_limit=100, command=None, grace_s=300.0, deadline_s=None, min_time_s=0.0,
    overlap="skip", wait_s=None, retries=0, retry_delay_s=10.0, retry_timeouts=False,
    stragglers="leave",
    max_age_s=None, alarm_after=3,
    like_cron=False,
    verify_within_s=3_024_000.0, sign_key=None, anchor=None,
)  # fmt: skip


def settings(
    tmp_path: Path, text: str = "", system: str = "", given: dict[str, object] | None = None, **environ: str
) -> tuple[Settings, tuple[Problem, ...]]:
    user = tmp_path / "runguard" / "runguard.toml"
    user.parent.mkdir()
    user.write_text(text)
    (tmp_path / "etc.toml").write_text(system)
    variables = {"XDG_CONFIG_HOME": str(tmp_path), **environ}
    loaded = config.load(variables, None, system_file=str(tmp_path / "etc.toml"))
    found, problems = config.effective(given or {}, variables, loaded, "letters")
    shortened = tuple(each._replace(text=each.text.replace(f"{tmp_path}/", "")) for each in problems)
    return found, shortened


def test_nothing_said_means_the_defaults(tmp_path: Path) -> None:
    assert settings(tmp_path) == (DEFAULTS, ())


def test_the_jobs_table_is_stronger_than_the_top_level(tmp_path: Path) -> None:
    found, _ = settings(tmp_path, 'timeout = 5\ngap = "skip"\n[jobs.letters]\ntimeout = 6\n')
    assert (found.timeout_s, found.gap) == (6.0, "skip")


def test_the_users_file_wins_key_by_key_and_table_by_table(tmp_path: Path) -> None:
    found, problems = settings(
        tmp_path,
        "timeout = 1\n[jobs.letters]\nearly = 2\n",
        "timeout = 11\nkill_after = 12\n[jobs.letters]\nearly = 13\ntimeout = 14\n",
    )
    assert (found.timeout_s, found.kill_after_s, found.early_s) == (14.0, 12.0, 2.0)
    assert problems == ()


def test_an_option_is_stronger_than_any_file(tmp_path: Path) -> None:
    found, _ = settings(tmp_path, "[jobs.letters]\ntimeout = 6\n", given={"timeout_s": 1, "timeout": 3.0})
    assert found.timeout_s == 3.0


def test_a_timeout_of_nothing_switches_it_off(tmp_path: Path) -> None:
    found, _ = settings(tmp_path, "timeout = 6\n", given={"timeout": 0.0})
    assert found.timeout_s is None


def test_the_environment_stands_between_option_and_file(tmp_path: Path) -> None:
    found, _ = settings(
        tmp_path, 'store = "/f"\nping = "http://f/"\n', RUNGUARD_STORE="/e", RUNGUARD_PING="http://e/",
        given={"ping": "http://o/"},
    )  # fmt: skip
    assert (found.store, found.ping) == ("/e", "http://o/")


def test_what_is_given_to_commands_is_never_read(tmp_path: Path) -> None:
    found, _ = settings(tmp_path, RUNGUARD_JOB="other", RUNGUARD_TIMEOUT="5", RUNGUARD_OUTPUT="never")
    assert found == DEFAULTS


def test_another_jobs_table_is_not_judged(tmp_path: Path) -> None:
    assert settings(tmp_path, "[jobs.other]\ntiemout = 5\nstore = 1\n") == (DEFAULTS, ())


def test_a_relative_store_of_the_command_line_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found, _ = settings(tmp_path, given={"store": "x.sqlite"})
    assert found.store == f"{tmp_path}/x.sqlite"


def test_a_secret_is_read_from_its_file_without_the_line_end(tmp_path: Path) -> None:
    (tmp_path / "url").write_text("https://hc.example/ping/5\n")
    found, problems = settings(tmp_path, f'ping = "file:{tmp_path}/url"\n')
    assert (found.ping, problems) == ("https://hc.example/ping/5", ())


MISTAKES = [
    ("tiemout = 5\n", "runguard/runguard.toml:1: tiemout: no such key; did you mean timeout?", "remark", ""),
    ("\nkill-after = 5\n", "runguard/runguard.toml:2: kill-after: no such key; did you mean kill_after?", "remark", ""),
    ("xyzzy = 5\n", "runguard/runguard.toml:1: xyzzy: no such key", "remark", ""),
    ("reason = 'x'\n", "runguard/runguard.toml:1: reason: is an option of the command line (--reason), not a key",
     "remark", ""),
    ("[job.letters]\ntimeout = 5\n",
     "runguard/runguard.toml:1: job: no such table; the table of a job is called [jobs.NAME]", "remark", ""),
    ("jobs = 5\n", "runguard/runguard.toml:1: jobs: a table [jobs.NAME] for each job is wanted", "remark", ""),
    ("[jobs]\nletters = 5\n", "runguard/runguard.toml:2: jobs.letters: a table [jobs.letters] is wanted", "remark", ""),
    ("[jobs.letters]\ntimeout = '5x'\n",
     "runguard/runguard.toml:2: jobs.letters.timeout: '5x' is no duration (90s, 15m, 2h, 1h30m, 7d)", "remark", ""),
    ("output = 'sometimes'\n",
     "runguard/runguard.toml:1: output: 'sometimes' is not one of always, on-failure, never", "remark", ""),
    ("[jobs.letters]\nstore = '/x'\n", "runguard/runguard.toml:2: jobs.letters.store: belongs at the top level of the"
     " file", "unsafe", "store"),
    ("store = 'x'\n", "runguard/runguard.toml:1: store: 'x' is not an absolute path", "unsafe", "store"),
    ("store = 5\n", "runguard/runguard.toml:1: store: a text in quotes is wanted", "unsafe", "store"),
    ("store = 'postgresql://h/d'\n", "runguard/runguard.toml:1: store: records are kept in an SQLite file;"
     " 'postgresql://' is not known", "unsafe", "store"),
    ("policy = 'vixi'\n", "runguard/runguard.toml:1: policy: 'vixi' is not one of vixie, walk, systemd, quartz, shift;"
     " did you mean vixie?", "remark", "window"),
    ("schedule = 5\n", "runguard/runguard.toml:1: schedule: a text in quotes is wanted", "remark", "window"),
    ("timezone = ''\n", "runguard/runguard.toml:1: timezone: is empty", "remark", "window"),
    ("ping = 'hc.example/secret'\n", "runguard/runguard.toml:1: ping: is no address (https://…)", "remark", "ping"),
    ("ping = 'file:/nonexistent'\n",
     "runguard/runguard.toml:1: ping: file:/nonexistent: No such file or directory", "remark", "ping"),
    ("ping = 'file:relative'\n",
     "runguard/runguard.toml:1: ping: file: wants an absolute path (file:/etc/…)", "remark", "ping"),
    ("ping = 'file:/dev/null'\n", "runguard/runguard.toml:1: ping: file:/dev/null: not a regular file", "remark",
     "ping"),
    ("ping_style = 'Kuma'\n", "runguard/runguard.toml:1: ping_style: 'Kuma' is not one of healthchecks, betterstack,"
     " kuma, cronitor, sentry, snitch, pushgateway, template, plain; did you mean kuma?", "remark", "ping"),
    ("ping_fail_url = 'https://h/{status}'\n", "runguard/runguard.toml:1: ping_fail_url: {status} is no placeholder;"
     " there are {exit}, {run_id}, {duration}, {due}, {host}, {job}, and {{ and }} for braces", "remark", "that ping"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message", "severity", "breaks"), MISTAKES)
def test_a_mistake_is_told_and_the_rest_stands(
    tmp_path: Path, text: str, message: str, severity: str, breaks: str
) -> None:
    assert settings(tmp_path, text) == (DEFAULTS, (Problem(message, severity, breaks),))


def test_a_broken_file_is_told(tmp_path: Path) -> None:
    assert settings(tmp_path, "a =\n", "early = 1\n") == (
        DEFAULTS._replace(early_s=1.0),
        (Problem("runguard/runguard.toml:1: invalid value; going on without this file"),),
    )


def test_a_bad_timeout_gives_way_to_the_next_one(tmp_path: Path) -> None:
    found, _ = settings(tmp_path, "timeout = 60\n[jobs.letters]\ntimeout = 'x'\n")
    assert found.timeout_s == 60.0


def test_a_bad_schedule_never_gives_way_to_another_jobs_default(tmp_path: Path) -> None:
    found, _ = settings(tmp_path, "schedule = '@daily'\n[jobs.letters]\nschedule = ''\n")
    assert found.schedule is None


def test_a_bad_ping_never_gives_way_to_another_check(tmp_path: Path) -> None:
    found, _ = settings(tmp_path, "ping = 'http://h/'\n", RUNGUARD_PING="")
    assert found.ping is None


def test_a_bad_policy_costs_the_window(tmp_path: Path) -> None:
    found, problems = settings(tmp_path, given={"schedule": "@daily", "policy": "x"})
    assert found.schedule is None
    assert problems[0].text == "--policy: 'x' is not one of vixie, walk, systemd, quartz, shift"


def test_a_mistake_that_an_option_overrules_is_told_and_costs_nothing(tmp_path: Path) -> None:
    found, problems = settings(tmp_path, "schedule = 5\nstore = 'x'\n", given={"schedule": "@daily", "store": "/s"})
    assert (found.schedule, found.store) == ("@daily", "/s")
    assert [(each.severity, each.breaks) for each in problems] == [("remark", ""), ("remark", "")]


def test_a_bad_store_of_the_environment_is_unsafe(tmp_path: Path) -> None:
    _, problems = settings(tmp_path, RUNGUARD_STORE="rg.sqlite")
    assert problems == (Problem("RUNGUARD_STORE: 'rg.sqlite' is not an absolute path", "unsafe", "store"),)


def test_what_a_secret_file_holds_is_never_told(tmp_path: Path) -> None:
    (tmp_path / "url").write_text("hc.example/ping/secret\nsecond\n")
    _, problems = settings(tmp_path, f"ping = 'file:{tmp_path}/url'\nstore = 'file:{tmp_path}/url'\n")
    assert "secret" not in "".join(each.text for each in problems)
    assert problems[0].text == "runguard/runguard.toml:1: ping: file:url holds nothing that would do"


def test_one_bad_pattern_leaves_the_others(tmp_path: Path) -> None:
    found, problems = settings(tmp_path, 'mask = ["api-[0-9]+", "("]\n')
    assert found.mask == ("api-[0-9]+",)
    assert len(problems) == 1


def test_the_key_of_an_api_is_no_runs_business_and_its_file_is_not_read(tmp_path: Path) -> None:
    found, problems = settings(tmp_path, 'ping_api_key = "file:/does/not/exist"\n')
    assert (found.ping_api_key, problems) == ("file:/does/not/exist", ())

"""`catchup`, `rerun` and `run --catch-up`: windows answered after their time, each once."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta

from shell import Shell, wait_until

HOURLY = ("-s", "0 * * * *", "-z", "UTC")


def hours_ago(hours: int) -> str:
    """Return the full hour so many hours ago."""
    return f"{datetime.now(UTC) - timedelta(hours=hours):%Y-%m-%dT%H:00Z}"


def answer_first(shell: Shell, hours: int, *command: str) -> None:
    """Register the hourly job `h` by a run of the window that was due so many hours ago."""
    done = shell("run", "-j", "h", *HOURLY, "--scheduled-at", hours_ago(hours), "--", *(command or ("true",)))
    assert done.returncode == 0


def test_catchup_runs_the_missing_windows_oldest_first_each_with_its_own_window(shell: Shell) -> None:
    answer_first(shell, 4)
    done = shell("catchup", "h", "--", "sh", "-c", "echo $RUNGUARD_TRIGGER >> t; echo $RUNGUARD_WINDOW_END >> ends")
    assert done.returncode == 0
    ends = (shell.directory / "ends").read_text().split()
    assert ends == sorted(ends)
    assert len(set(ends)) in (3, 4)  # within the grace the newest may not count yet
    assert set((shell.directory / "t").read_text().split()) == {"catch-up"}
    assert shell("missing", "h").returncode == 0


def test_catchup_without_a_command_runs_what_was_recorded_where_it_was(shell: Shell) -> None:
    (shell.directory / "there").mkdir()
    at = "cd there && " + " ".join([sys.executable, "-m", "runguard"])
    line = f"{at} run -j h -s '0 * * * *' -z UTC --scheduled-at {hours_ago(3)} -c 'echo x >> ran'"
    subprocess.run(line, shell=True, env=shell.environ, cwd=shell.directory, check=True)
    assert shell("catchup", "h").returncode == 0
    assert (shell.directory / "there" / "ran").read_text().count("x") in (3, 4)


def test_catchup_prefers_the_jobs_own_command(shell: Shell) -> None:
    answer_first(shell, 2)
    shell.config.write_text('[jobs.h]\ncommand = "echo own >> own"\n')
    assert shell("catchup", "h").returncode == 0
    assert (shell.directory / "own").read_text().startswith("own\n")


def test_a_stand_in_that_a_person_gave_once_does_not_become_the_jobs_command(shell: Shell) -> None:
    answer_first(shell, 3, "sh", "-c", "echo real >> ran")
    shell("rerun", "1", "--reason", "try", "--", "sh", "-c", "echo stand-in >> ran")
    shell("rerun", "1", "--reason", "again")
    shell("catchup", "h", "--limit", "1")
    assert (shell.directory / "ran").read_text() == "real\nstand-in\nreal\nreal\n"
    assert "command: sh -c 'echo real >> ran' (of run 1, in " in shell("catchup", "h", "--dry-run").stdout


def test_windows_past_the_deadline_are_left_and_said(shell: Shell) -> None:
    answer_first(shell, 4)
    shell.config.write_text('[jobs.h]\ndeadline = "1m"\n')
    done = shell("catchup", "h", "--", "true")
    assert done.returncode == 1
    assert "windows are past their deadline and left; runguard rerun h@U" in done.stderr


def test_a_recorded_command_with_masked_secrets_is_not_run_again(shell: Shell) -> None:
    answer_first(shell, 3, "true", "--password=swordfish")
    done = shell("catchup", "h")
    assert done.returncode == 2
    assert "had secrets that are not on record: give it after --" in done.stderr


def test_the_limit_of_catchup_is_said_and_is_status_1(shell: Shell) -> None:
    answer_first(shell, 5)
    done = shell("catchup", "h", "--limit", "1", "--", "true")
    assert done.returncode == 1
    assert "1 succeeded; " in done.stderr
    assert "windows are left" in done.stderr


def test_catchup_goes_on_after_a_failure_unless_told_to_stop(shell: Shell) -> None:
    answer_first(shell, 5)
    stopped = shell("catchup", "h", "--stop-on-failure", "--", "false")
    assert stopped.returncode == 1
    assert sum(run["outcome"] == "failed" for run in shell.json("history")) == 1
    went_on = shell("catchup", "h", "--", "false")
    assert went_on.returncode == 1
    assert sum(run["outcome"] == "failed" for run in shell.json("history")) >= 4


def test_a_dry_run_of_catchup_names_the_windows_and_runs_nothing(shell: Shell) -> None:
    answer_first(shell, 3)
    done = shell("catchup", "h", "--dry-run")
    assert done.returncode == 0
    assert done.stdout.count("h@U20") in (2, 3)
    assert len(shell.json("history")) == 1


def test_a_merged_catchup_is_one_run_that_answers_all(shell: Shell) -> None:
    answer_first(shell, 4)
    done = shell("catchup", "h", "--merge", "--", "sh", "-c", "echo $RUNGUARD_WINDOW_START $RUNGUARD_WINDOW_END > span")
    assert done.returncode == 0
    begin, end = (shell.directory / "span").read_text().split()
    assert begin < end
    newest, first = shell.json("history")
    assert newest["covers"]["count"] in (3, 4)
    assert begin == first["window"]["due"]
    assert shell("missing", "h").returncode == 0


def test_an_interrupted_catchup_stops_and_says_what_is_left(shell: Shell) -> None:
    answer_first(shell, 5)
    command = [sys.executable, "-m", "runguard", "catchup", "h", "--", "sh", "-c", "echo x >> ran; exec sleep 64"]
    running = subprocess.Popen(command, env=shell.environ, cwd=shell.directory, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: (shell.directory / "ran").exists() and bool(shell.processes("sleep 64")))
    running.send_signal(signal.SIGINT)
    _, stderr = running.communicate(timeout=20)
    assert running.returncode == 1
    assert "windows are left" in stderr
    assert (shell.directory / "ran").read_text() == "x\n"


def test_two_catchups_of_one_job_do_not_run_at_once(shell: Shell) -> None:
    answer_first(shell, 3)
    command = [sys.executable, "-m", "runguard", "catchup", "h", "--", "sh", "-c", "echo x > ran; exec sleep 65"]
    running = subprocess.Popen(command, env=shell.environ, cwd=shell.directory, stderr=subprocess.DEVNULL)
    wait_until(lambda: (shell.directory / "ran").exists())
    second = shell("catchup", "h", "--", "true")
    assert (second.returncode, second.stderr) == (75, "runguard: catchup: another catch-up of h is under way\n")
    running.terminate()
    running.wait(timeout=20)


def test_rerun_names_what_it_replaces_and_both_stay(shell: Shell) -> None:
    answer_first(shell, 1, "echo", "done")
    again = shell("rerun", "1", "--reason", "wrong paper")
    assert (again.returncode, again.stdout) == (0, "done\n")
    second, first = shell.json("history")
    assert (second["trigger"], second["reason"], second["attempt"]) == ("rerun", "wrong paper", 2)
    assert second["supersedes"] == first["run_id"]
    assert second["window"] == first["window"]
    assert (first["outcome"], first["superseded_by"]) == ("succeeded", second["run_id"])


def test_rerun_of_a_named_window_that_never_ran(shell: Shell) -> None:
    answer_first(shell, 3)
    [line, *_] = shell("catchup", "h", "--dry-run").stdout.splitlines()
    window = line.split()[0]
    done = shell("rerun", window, "--reason", "by hand", "--", "sh", "-c", "echo $RUNGUARD_WINDOW_KEY")
    assert done.stdout.strip() == window.partition("@")[2]


def test_rerun_of_a_run_without_a_window(shell: Shell) -> None:
    shell("run", "-j", "plain", "--", "echo", "hi")
    done = shell("rerun", "1", "--reason", "again")
    assert (done.returncode, done.stdout) == (0, "hi\n")
    second, first = shell.json("history")
    assert (second["supersedes"], second["window"]) == (first["run_id"], None)


def test_rerun_of_a_job_says_that_a_run_or_a_window_is_wanted(shell: Shell) -> None:
    shell("run", "-j", "plain", "--", "true")
    done = shell("rerun", "plain", "--reason", "again")
    hint = "that is a job; name a run (runguard history plain lists them) or plain@WINDOW"
    assert (done.returncode, done.stderr) == (2, f"runguard: rerun: no run 'plain': {hint}\n")


def test_rerun_without_a_reason_is_a_usage_error(shell: Shell) -> None:
    shell("run", "-j", "plain", "--", "true")
    done = shell("rerun", "1")
    assert (done.returncode, done.stderr) == (2, "runguard: rerun: --reason TEXT is needed: who runs again says why\n")


def test_a_start_that_catches_up_runs_the_missed_windows_first(shell: Shell) -> None:
    answer_first(shell, 4)
    command = ("--", "sh", "-c", "echo $RUNGUARD_TRIGGER >> t")
    assert shell("run", "-j", "h", *HOURLY, "--catch-up", "all", *command).returncode == 0
    triggers = (shell.directory / "t").read_text().split()
    assert triggers == ["catch-up"] * 3 + ["schedule"]
    assert shell("missing", "h").returncode == 0


def test_the_limit_of_a_start_that_catches_up_never_limits_the_start_itself(shell: Shell) -> None:
    answer_first(shell, 5)
    done = shell(
        "run", "-j", "h", *HOURLY, "--catch-up", "all", "--catch-up-limit", "1", "--", "sh", "-c", "echo x >> t"
    )
    assert done.returncode == 0
    assert (shell.directory / "t").read_text() == "x\nx\n"
    assert "the limit" in done.stderr


def test_the_latest_run_answers_the_missed_ones_and_says_so(shell: Shell) -> None:
    answer_first(shell, 4)
    done = shell("run", "-j", "h", *HOURLY, "--catch-up", "latest", "--", "sh", "-c", "echo x >> t")
    assert done.returncode == 0
    assert (shell.directory / "t").read_text() == "x\n"
    newest, _ = shell.json("history")
    assert newest["covers"]["count"] == 3
    assert shell("missing", "h").returncode == 0


def test_a_merging_start_has_a_window_from_the_first_missing_start(shell: Shell) -> None:
    answer_first(shell, 4)
    shell("run", "-j", "h", *HOURLY, "--catch-up", "merge", "--", "true")
    newest, first = shell.json("history")
    assert newest["window"]["start"] == first["window"]["due"]


def test_more_than_a_hundred_missed_windows_do_not_stop_the_job(shell: Shell) -> None:
    at = f"{datetime.now(UTC) - timedelta(minutes=150):%Y-%m-%dT%H:%MZ}"
    minutely = ("run", "-j", "m", "-s", "* * * * *", "-z", "UTC")
    shell(*minutely, "--scheduled-at", at, "--", "true")
    done = shell(*minutely, "--catch-up", "latest", "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert shell.json("history")[0]["covers"]["count"] >= 148


def test_a_window_past_its_deadline_is_refused_and_missing_for_that_reason(shell: Shell) -> None:
    answer_first(shell, 5)
    shell.config.write_text('[jobs.h]\ndeadline = "90m"\n')
    late = hours_ago(4)
    done = shell("run", "-j", "h", *HOURLY, "--scheduled-at", late, "--", "touch", "ran")
    assert done.returncode == 75
    assert "past its deadline" in done.stderr
    assert not (shell.directory / "ran").exists()
    missing = json.loads(shell("missing", "h", "--json").stdout)
    assert missing[0]["because"] == "past its deadline, refused by run 2"
    shell("catchup", "h", "--", "true")
    assert {run["why"] for run in shell.json("history") if run["outcome"] == "refused"} == {"deadline"}
    assert len([run for run in shell.json("history") if run["outcome"] == "refused"]) == 1


def test_a_success_sooner_than_its_min_time_is_suspect(shell: Shell) -> None:
    shell.config.write_text('[jobs.x]\nmin_time = "5m"\n')
    done = shell("run", "-j", "x", "--", "true")
    assert done.returncode == 0
    assert "less than its min_time of 300 s" in done.stderr
    [run] = shell.json("history")
    assert run["outcome"] == "succeeded"
    assert "min_time" in run["suspect"]


def test_a_merged_window_stays_one_when_it_is_run_once_more(shell: Shell) -> None:
    answer_first(shell, 4)
    merging = ("run", "-j", "h", *HOURLY, "--catch-up", "merge")
    shell(*merging, "--", "false")
    shell(*merging, "--", "sh", "-c", "echo $RUNGUARD_WINDOW_START $RUNGUARD_ATTEMPT > span")
    second, first, _ = shell.json("history")
    assert (shell.directory / "span").read_text() == f"{first['window']['start']} 2\n"
    assert (second["covers"], second["window"]) == (first["covers"], first["window"])
    assert {window["verdict"] for window in json.loads(shell("windows", "h", "--json").stdout)} == {"succeeded"}
    third = shell("rerun", str(second["number"]), "--reason", "again", "--", "true")
    assert third.returncode == 0
    assert shell.json("history")[0]["covers"] == first["covers"]


def test_a_window_to_come_is_not_re_run(shell: Shell) -> None:
    answer_first(shell, 1)
    ahead = f"{datetime.now(UTC) + timedelta(hours=3):U%Y-%m-%dT%H:00Z}"
    done = shell("rerun", f"h@{ahead}", "--reason", "too soon", "--", "true")
    assert done.returncode == 2
    assert "is not due before" in done.stderr


def test_a_first_start_that_catches_up_has_nothing_to_say(shell: Shell) -> None:
    now = ("--scheduled-at", hours_ago(0))
    done = shell("run", "-j", "h", *HOURLY, *now, "--catch-up", "all", "--", "true")
    assert (done.returncode, done.stderr) == (0, "")


def test_ten_years_of_missed_minutes_are_answered_by_one_run(shell: Shell) -> None:
    minutely = ("run", "-j", "m", "-s", "* * * * *", "-z", "UTC")
    shell(*minutely, "--scheduled-at", "2016-11-29T00:00Z", "--", "true")
    done = shell(*minutely, "--catch-up", "latest", "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert shell.json("history")[0]["covers"]["count"] > 5_000_000
    again = shell(*minutely, "--catch-up", "latest", "--reason", "again", "--", "echo", "ran")
    assert again.returncode == 0


def test_what_ran_while_the_store_failed_is_not_caught_up_on(shell: Shell) -> None:
    answer_first(shell, 3)
    database = shell.state / "db" / "runguard.sqlite"
    database.rename(shell.directory / "aside")
    shell("run", "-j", "h", *HOURLY, "--scheduled-at", hours_ago(2), "--", "true")
    shell("run", "-j", "h", *HOURLY, "--scheduled-at", hours_ago(1), "--", "true")
    (shell.directory / "aside").rename(database)
    done = shell("run", "-j", "h", *HOURLY, "--catch-up", "all", "--", "sh", "-c", "echo x >> ran")
    assert done.returncode == 0
    assert (shell.directory / "ran").read_text() == "x\n"


def test_a_dry_run_says_what_would_be_caught_up_on(shell: Shell) -> None:
    answer_first(shell, 4)
    done = shell("run", "-j", "h", *HOURLY, "--catch-up", "latest", "--dry-run", "--", "true")
    assert "3 missed windows, from U" in done.stdout
    assert "this run would answer them" in done.stdout


def test_a_start_that_is_told_to_stop_while_it_catches_up_records_that_for_its_own_window_too(shell: Shell) -> None:
    answer_first(shell, 3)
    command = [sys.executable, "-m", "runguard", "run", "-j", "h", *HOURLY, "--catch-up", "all", "--", "sleep", "66"]
    running = subprocess.Popen(command, env=shell.environ, cwd=shell.directory, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: bool(shell.processes("sleep 66")))
    running.terminate()
    _, said = running.communicate(timeout=20)
    assert running.returncode == 143
    assert said.splitlines()[-1] == "runguard: h: told to stop by signal 15 before the start"
    own, caught_up, _ = shell.json("history")
    assert (own["trigger"], own["outcome"], own["returned"]) == ("schedule", "cancelled", 143)
    assert (caught_up["trigger"], caught_up["outcome"]) == ("catch-up", "cancelled")


def test_a_start_that_catches_up_first_begins_its_own_run_after_that(shell: Shell) -> None:
    answer_first(shell, 2)
    shell("run", "-j", "h", *HOURLY, "--catch-up", "all", "--", "true")
    own, caught_up, _ = shell.json("history")
    assert (own["trigger"], caught_up["trigger"]) == ("schedule", "catch-up")
    assert own["started_at"] >= caught_up["finished_at"]

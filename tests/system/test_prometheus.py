"""Debian's node exporter, Pushgateway and promtool read what we write."""

from __future__ import annotations

import re
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemons import daemon, get, needs, program
from shell import Shell

RULES = Path(__file__).parents[2] / "examples" / "prometheus" / "runguard.rules.yml"


def samples(text: str) -> dict[str, str]:
    """Return our samples, numbers as Go prints them, by name and labels."""
    return dict(re.findall(r"^(runguard_\w+\{.*\}) (\S+)$", text, re.MULTILINE))


# node exporter


@pytest.fixture
def collector(shell: Shell) -> Iterator[tuple[Path, str]]:
    """The directory of a textfile collector, and the address of its exporter."""
    directory = shell.directory / "collector"
    directory.mkdir()
    textfile = ("--collector.textfile", f"--collector.textfile.directory={directory}")
    with daemon("prometheus-node-exporter", "--collector.disable-defaults", *textfile) as url:
        yield directory, f"{url}/metrics"


@needs("prometheus-node-exporter")
def test_the_node_exporter_passes_on_every_sample(shell: Shell, collector: tuple[Path, str]) -> None:
    directory, url = collector
    shell("run", "-j", "letters", "-s", "* * * * *", "-z", "UTC", "--", "sh", "-c", "exit 3")
    shell("run", "-j", "backup", "--", "true")
    shell("metrics", "-o", str(directory / "runguard.prom"))
    written, read = (directory / "runguard.prom").read_text(), get(url)
    assert "node_textfile_scrape_error 0" in read
    assert samples(read).keys() == samples(written).keys()
    assert len(samples(read)) == 22
    store = f'store="{shell.state}/db/runguard.sqlite"'
    assert samples(read)[f'runguard_last_exit_status{{job_name="letters",{store}}}'] == "3"
    assert samples(read)[f'runguard_running_since_timestamp_seconds{{job_name="backup",{store}}}'] == "NaN"


@needs("prometheus-node-exporter")
def test_the_files_of_two_accounts_stand_side_by_side(shell: Shell, collector: tuple[Path, str]) -> None:
    directory, url = collector
    for account in ("ann", "bob"):
        state = {"RUNGUARD_STATE_DIR": str(shell.directory / account)}
        shell("run", "-j", "backup", "--", "true", environ=state)
        shell("metrics", "-o", str(directory / f"{account}.prom"), environ=state)
    read = get(url)
    assert "node_textfile_scrape_error 0" in read
    assert len([sample for sample in samples(read) if sample.startswith("runguard_last_exit_status")]) == 2


@needs("prometheus-node-exporter")
def test_a_store_in_a_directory_of_any_name_breaks_no_scrape(shell: Shell, collector: tuple[Path, str]) -> None:
    directory, url = collector
    odd = {"RUNGUARD_STATE_DIR": f'{shell.directory}/a "b" \\ \n é \udcff'}
    shell("run", "-j", "backup", "--", "true", environ=odd)
    shell("metrics", "-o", str(directory / "runguard.prom"), environ=odd)
    read = get(url)
    assert "node_textfile_scrape_error 0" in read
    assert '/a \\"b\\" \\\\ \\\\n é \\\\xff/db/runguard.sqlite' in read


# Pushgateway


def group(text: str) -> dict[str, str]:
    """Return the samples of the group of the job letters by name."""
    found = re.findall(r'^(\w+)\{instance="db1",job="letters"\} (\S+)$', text, re.MULTILINE)
    return {name: value for name, value in found if not name.endswith("duration_seconds")}


@needs("prometheus-pushgateway")
def test_a_failure_leaves_the_last_success_with_the_pushgateway(shell: Shell) -> None:
    with daemon("prometheus-pushgateway", "--persistence.file=") as gateway:
        run = ("run", "-j", "letters", "--ping", f"{gateway}/metrics/job/letters/instance/db1", "--")
        assert shell(*run, "true").stderr == ""
        succeeded = group(get(f"{gateway}/metrics"))
        assert shell(*run, "sh", "-c", "kill -9 $$").stderr == ""
        failed = group(get(f"{gateway}/metrics"))
    assert (succeeded["runguard_last_exit_status"], failed["runguard_last_exit_status"]) == ("0", "137")
    finish, success = "runguard_last_finish_timestamp_seconds", "runguard_last_success_timestamp_seconds"
    assert succeeded[success] == succeeded[finish] == failed[success]
    assert float(failed[finish]) > float(failed[success])
    assert failed["push_failure_time_seconds"] == "0"
    assert [shell.json("show", number)[0]["pings"][0]["http_status"] for number in ("1", "2")] == [200, 200]


@needs("prometheus-pushgateway")
def test_the_pushgateway_finds_no_fault_with_our_whole_text(shell: Shell) -> None:
    shell("run", "-j", "letters", "--", "true")
    with daemon("prometheus-pushgateway", "--persistence.file=") as gateway:
        body = shell("metrics").stdout.encode()
        urllib.request.urlopen(f"{gateway}/metrics/job/node", body, timeout=10).close()
        assert "runguard_store_readable" in get(f"{gateway}/metrics")


# promtool


@needs("promtool")
def test_promtool_has_nothing_to_say_against_the_metrics(shell: Shell) -> None:
    shell("run", "-j", "letters", "--", "true")
    check = [str(program("promtool")), "check", "metrics"]
    done = subprocess.run(check, input=shell("metrics").stdout, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@needs("promtool")
def test_the_alerts_of_the_example_fire_when_they_should() -> None:
    tests = Path(__file__).parents[1] / "data" / "prometheus-rules.yml"
    promtool = str(program("promtool"))
    assert "SUCCESS: 8 rules found" in _said(promtool, "check", "rules", str(RULES))
    assert "SUCCESS" in _said(promtool, "test", "rules", str(tests))


def _said(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr if done.returncode == 0 else f"failed: {done.stdout}{done.stderr}"

"""`history`: runs, newest first."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from typing import Any

import pytest

Entry = Callable[..., tuple[str, str, dict[str, Any]]]
ALL = ("--since", "2026-01-01")


@pytest.fixture
def recorded(shell: Any, started: Entry, finished: Entry, refused: Entry) -> Any:
    """A failed run, a refused start, and an earlier run of another job without a window."""
    shell.write(
        started(7, "2026-03-20T00:00:00Z", job="backup", window=None, trigger="manual", reason="by hand"),
        finished(7),
        started(1),
        finished(1, "failed", exit_status=3, returned=3),
        refused(2),
    )
    return shell


def test_a_success_that_is_doubted_says_why(shell: Any, started: Entry, finished: Entry) -> None:
    shell.write(started(1), finished(1, suspect="1 case is uncertain"))
    [_, line] = shell("history", *ALL).stdout.splitlines()
    assert line.endswith("  suspect: 1 case is uncertain")


def test_json_is_one_array_newest_first(recorded: Any) -> None:
    assert [run["number"] for run in recorded.json("history", *ALL)] == [2, 1, 7]


def test_a_run_by_the_json_contract(recorded: Any) -> None:
    assert recorded.json("history", "letters", *ALL)[1] == {
        "run_id": "00000001-0000-4000-8000-000000000000",
        "number": 1,
        "job": "letters",
        "window": {
            "key": "L2026-03-29T02:30",
            "start": "2026-03-28T02:30:00Z",
            "due": "2026-03-29T01:30:00Z",
            "label": "2026-03-29T02:30+01:00",
            "nominal": "2026-03-29T02:30",
            "zone": "Europe/London",
        },
        "attempt": 1,
        "trigger": "schedule",
        "reason": None,
        "outcome": "failed",
        "exit_status": 3,
        "returned": 3,
        "signal": None,
        "why": None,
        "started_at": "2026-03-29T01:30:02Z",
        "finished_at": "2026-03-29T01:31:34Z",
        "duration_s": 92.5,
        "host": "alpha",
        "actor": "ann",
        "revision": 1,
        "supersedes": None,
        "superseded_by": None,
        "suspect": None,
        "covers": None,
    }


def test_a_run_without_a_schedule_has_no_window(recorded: Any) -> None:
    assert recorded.json("history", "backup", *ALL)[0]["window"] is None


def test_a_table_that_is_piped_is_plain_and_whole(recorded: Any) -> None:
    assert recorded("history", "letters", *ALL).stdout.splitlines() == [
        "RUN  STARTED                    JOB      WINDOW                  TRY  OUTCOME  EXIT   TOOK  WHY",
        "  2  2026-03-29 01:30:09+00:00  letters  2026-03-29T02:30+01:00       refused               overlap",
        "  1  2026-03-29 01:30:02+00:00  letters  2026-03-29T02:30+01:00    1  failed      3  1m32s",
    ]


def test_times_of_a_table_are_local(recorded: Any) -> None:
    done = recorded("history", "letters", *ALL, environ={"TZ": "Asia/Tokyo"})
    assert "2026-03-29 10:30:02+09:00" in done.stdout


def test_json_lines_are_one_object_each(recorded: Any) -> None:
    lines = recorded("history", *ALL, "--format", "jsonl").stdout.splitlines()
    assert [json.loads(line)["number"] for line in lines] == [2, 1, 7]


def test_csv_has_a_column_for_every_fact(recorded: Any) -> None:
    rows = list(csv.DictReader(recorded("history", *ALL, "--format", "csv").stdout.splitlines()))
    assert (rows[1]["window_key"], rows[1]["exit_status"], rows[2]["reason"], rows[2]["window_due"]) == (
        "L2026-03-29T02:30",
        "3",
        "by hand",
        "",
    )


@pytest.mark.parametrize(
    ("arguments", "numbers"),
    [
        (["--since", "2026-03-29"], [2, 1]),
        (["--since", "2026-03-29T01:30:09Z"], [2]),
        (["--since", "2026-03-29T02:30:09+01:00"], [2]),
        (["--since", "2026-03-29 01:30:03"], [2]),
        ([*ALL, "--until", "2026-03-29"], [7]),
        ([*ALL, "--until", "2026-03-29T01:30:09Z"], [1, 7]),
        (["--until", "2026-03-27"], [7]),
        ([*ALL, "--outcome", "refused"], [2]),
        ([*ALL, "--outcome", "refused", "--outcome", "failed"], [2, 1]),
        ([*ALL, "--outcome", "lost", "--outcome", "failed"], [1]),
        ([*ALL, "-n", "1"], [2]),
        ([*ALL, "-n2"], [2, 1]),
        (["--window", "L2026-03-29T02:30"], [2, 1]),
        (["--window", "2026-03-29T02:30+01:00"], [2, 1]),
        (["--window", "2026-03-29T01:30:00Z"], [2, 1]),
        (["--window", "2026-03-29T02:30"], [2, 1]),
        (["--window", "2026-03-29T02:31"], []),
        (["--window", "U2026-03-29T02:30Z"], []),
        (["letters", "--window", "L2026-03-29T02:30", "--outcome", "failed", "-n", "5"], [1]),
        (["--since", "1000d", "--outcome", "lost"], []),
    ],
)
def test_what_is_chosen(recorded: Any, arguments: list[str], numbers: list[int]) -> None:
    assert [run["number"] for run in recorded.json("history", *arguments)] == numbers


def test_without_since_it_looks_back_seven_days(recorded: Any) -> None:
    done = recorded("history", "letters")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("runguard: no such runs of letters since ")
    assert done.stderr.endswith("; --since 90d looks further back\n")


def test_an_empty_answer_is_an_empty_array(recorded: Any) -> None:
    done = recorded("history", "--json")
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_a_host_without_records_has_nothing_to_show(shell: Any) -> None:
    done = shell("history")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", shell.nothing_recorded)
    assert not shell.state.exists()


def test_a_store_of_an_option_a_variable_or_a_key_is_read(recorded: Any) -> None:
    moved = recorded.directory / "moved.sqlite"
    (recorded.state / "db" / "runguard.sqlite").rename(moved)
    (recorded.state / "witness").rename(recorded.directory / "elsewhere")
    assert len(recorded.json("history", *ALL, "--store", "moved.sqlite")) == 3
    done = recorded("history", *ALL, "--json", environ={"RUNGUARD_STORE": str(moved)})
    assert len(json.loads(done.stdout)) == 3
    recorded.config.write_text(f'store = "{moved}"\n')
    assert len(recorded.json("history", *ALL)) == 3


def test_a_run_whose_guard_and_command_are_gone_is_lost(shell: Any, started: Entry) -> None:
    shell.write(started(1))
    assert [(run["outcome"], run["why"]) for run in shell.json("history", *ALL)] == [("lost", "the host restarted")]
    assert shell.json("history", *ALL, "--outcome", "running") == []
    assert len(shell.json("history", *ALL, "--outcome", "lost")) == 1


HOSTILE = "\x1b]52;c;eA==\x07\u202e\x00\n\x7f\x9b31m\udcff"


def test_hostile_text_is_escaped_in_a_table(shell: Any, started: Entry) -> None:
    shell.write(started(1, job="x", reason=HOSTILE), ("run.finish", "2026-03-29T01:31:34Z", {
        "run_id": "00000001-0000-4000-8000-000000000000", "outcome": "failed", "why": HOSTILE,
    }))  # fmt: skip
    done = shell("history", *ALL)
    assert done.stdout.splitlines()[1].endswith(r"\x1b]52;c;eA==\x07\u202e\x00\n\x7f\x9b31m\udcff")
    assert json.loads(shell("history", *ALL, "--json").stdout)[0]["reason"].startswith("\x1b]52;c;eA==\x07\u202e\x00\n")


def test_json_is_ascii(shell: Any, started: Entry) -> None:
    shell.write(started(1, reason="déjà vu"))
    assert r'"reason": "d\u00e9j\u00e0 vu"' in shell("history", *ALL, "--json").stdout

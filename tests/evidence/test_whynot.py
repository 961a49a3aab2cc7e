"""Why a case was not handled in a window: each answer that the record can give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from casework import INTENT, RESULT, asked, put
from entries import WINDOW, run_id
from runguard.evidence import whynot
from runguard.instant import from_rfc3339
from runguard.model import Window
from runguard.store.sqlite import open_reader
from shell import Shell

Make = Callable[..., tuple[str, str, dict[str, Any]]]

NIGHT = Window(
    WINDOW["key"], from_rfc3339(WINDOW["start"]), from_rfc3339(WINDOW["due"]), WINDOW["label"], WINDOW["nominal"],
    "real", 0,
)  # fmt: skip
TALLY = {
    "entries": 2, "cases": 1, "done": 1, "no_action": 0, "failed": 0, "skipped": 0, "uncertain": 0, "unannounced": 0,
    "rejected": 0, "expected": None, "list_sha256": "ee" * 32, "rejected_sha256": None, "bytes": 10, "beyond_bytes": 0,
    "pending_bytes": 0,
}  # fmt: skip
CODE = {"path": "/opt/letters/send", "sha256": "cd" * 32, "size": 900}


def of(case: str, *said: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"case": case, **each} for each in said]


def registered() -> tuple[str, str, dict[str, Any]]:
    fields = {"job": "letters", "change": "registered", "revision": 1, "schedule": WINDOW["schedule"],
              "after": WINDOW["start"]}  # fmt: skip
    return "job.changed", "2026-03-28T12:00:00Z", fields


def answer(shell: Shell, case: str = "HB-1", *, at: str | None = None) -> dict[str, Any]:
    with open_reader(str(shell.state / "db" / "runguard.sqlite")) as reader:
        told, _ = whynot.answer(reader, asked(shell, case, at=at), "letters", NIGHT)
    return told


def because(shell: Shell, case: str = "HB-1", *, at: str | None = None) -> tuple[str, str]:
    told = answer(shell, case, at=at)
    return told["verdict"], told["because"]


def test_the_window_was_missing(shell: Shell) -> None:
    shell.write(registered())
    assert because(shell) == ("missing", "the window is missing: no start at all")


def test_the_window_was_waived(shell: Shell) -> None:
    waiver = {"job": "letters", "key": NIGHT.key, "since": None, "until": None, "withdraw": False, "reason": "a strike"}
    shell.write(registered(), ("window.waived", "2026-03-30T10:00:00Z", waiver))
    assert because(shell) == ("waived", "no run started for this window: waived by ann: a strike")


def test_its_start_was_refused(shell: Shell, refused: Make) -> None:
    shell.write(registered(), refused(2))
    told = answer(shell)
    assert (told["verdict"], told["because"]) == (
        "refused", "no run was let start for this window: run 2 was refused (overlap): run 1 still runs",
    )  # fmt: skip
    assert [each["entry"] for run in told["runs"] for each in run["entries"]] == [2]


def test_it_was_not_due_yet(shell: Shell) -> None:
    shell.write(registered())
    assert because(shell, at="2026-03-29T01:00:00Z") == ("pending", "the window was not due yet")


@pytest.mark.parametrize(
    ("said", "verdict", "text"),
    [
        ([INTENT, RESULT], "handled", "it handled the case"),
        ([INTENT], "uncertain", "it meant to handle the case and did not say what came of it: uncertain"),
        ([INTENT, {**RESULT, "result": "skipped", "reason": "On hold."}], "considered",
         "it considered the case and skipped it: On hold."),
        ([INTENT, {**RESULT, "result": "no_action"}], "considered",
         "it considered the case and found nothing to be done: No reply for 28 days."),
        ([INTENT, {**RESULT, "result": "failed"}], "failed",
         "it tried to handle the case and failed: No reply for 28 days."),
    ],
)  # fmt: skip
def test_the_run_says_what_it_did_with_the_case(
    shell: Shell, started: Make, finished: Make, said: list[dict[str, Any]], verdict: str, text: str
) -> None:
    shell.write(started(1))
    put(shell, run_id(1), *of("HB-1", *said))
    shell.write(finished(1, items=TALLY))
    assert because(shell) == (verdict, f"run 1 started for this window, and {text}")


@pytest.mark.parametrize(
    ("outcome", "items", "verdict", "text"),
    [
        ("succeeded", TALLY, "not_in_input",
         "it went through its input (1 case), and this case was not in it, as far as is known"),
        ("succeeded", {**TALLY, "expected": 3}, "not_reached",
         "it ended (succeeded) before it reached the case, as far as is known, after 1 case of 3 expected"),
        ("killed", TALLY, "not_reached",
         "it ended (killed) before it reached the case, as far as is known, after 1 case"),
        ("timed_out", {**TALLY, "expected": 6000}, "not_reached",
         "it ended (timed out) before it reached the case, as far as is known, after 1 case of 6,000 expected"),
        ("succeeded", {**TALLY, "rejected": 1}, "uncertain",
         "it says nothing of the case, and not all that it wrote could be read: uncertain"),
        ("succeeded", {**TALLY, "beyond_bytes": 1}, "uncertain",
         "it says nothing of the case, and not all that it wrote could be read: uncertain"),
    ],
)  # fmt: skip
def test_the_run_says_nothing_of_the_case(
    shell: Shell, started: Make, finished: Make, outcome: str, items: dict[str, Any], verdict: str, text: str
) -> None:
    shell.write(started(1, program=CODE))
    put(shell, run_id(1), *of("HB-2", INTENT, RESULT))
    shell.write(finished(1, outcome, items=items))
    assert because(shell) == (verdict, f"run 1 started for this window, and {text}")
    [run] = answer(shell)["runs"]
    assert (run["case_entries"], run["last_entry_at"]) == (2, "2026-03-29T01:30:07Z")


@pytest.mark.parametrize(
    ("outcome", "verdict", "text"),
    [
        ("succeeded", "silent",
         "it succeeded and said nothing of any case: whether this one was looked at is not known"),
        ("failed", "not_reached", "it ended (failed) before it said anything of any case"),
    ],
)  # fmt: skip
def test_the_run_says_nothing_of_any_case(
    shell: Shell, started: Make, finished: Make, outcome: str, verdict: str, text: str
) -> None:
    shell.write(started(1), finished(1, outcome))
    assert because(shell) == (verdict, f"run 1 started for this window, and {text}")


def test_a_torn_line_of_the_run_may_have_been_about_the_case(shell: Shell, started: Make, finished: Make) -> None:
    shell.write(started(1))
    put(shell, run_id(1), b'{"case":"HB-1","pha')
    shell.write(finished(1, items={**TALLY, "rejected": 1}))
    told = answer(shell)
    assert told["verdict"] == "uncertain"
    assert any("seems to name this case" in each["text"] for each in told["unknown"])


def test_what_one_of_several_runs_did_with_the_case_is_the_answer(shell: Shell, started: Make, finished: Make) -> None:
    shell.write(started(1), started(2, attempt=2), started(3, attempt=3))
    put(shell, run_id(1), *of("HB-1", INTENT))
    put(shell, run_id(2), *of("HB-1", INTENT, RESULT))
    put(shell, run_id(3), *of("HB-2", INTENT, RESULT))
    shell.write(finished(1, "killed"), finished(2, "failed"), finished(3, items=TALLY))
    told = answer(shell)
    assert (told["verdict"], told["because"]) == ("handled", "run 2 started for this window, and it handled the case")
    assert [run["verdict"] for run in told["runs"]] == ["uncertain", "handled", "not_in_input"]


def test_a_run_that_covers_the_window_answers_for_it(shell: Shell, started: Make, finished: Make) -> None:
    after = {**WINDOW, "key": "L2026-03-30T02:30", "start": WINDOW["due"], "due": "2026-03-30T01:30:00Z"}
    covers = {"first": WINDOW["due"], "last": WINDOW["due"], "count": 1}
    shell.write(started(1, window=after, trigger="catch-up", covers=covers))
    put(shell, run_id(1), *of("HB-1", INTENT, RESULT))
    shell.write(finished(1, items=TALLY))
    assert because(shell) == ("handled", "run 1 started for this window, and it handled the case")


def test_as_of_then_a_later_run_is_left_out(shell: Shell, started: Make, finished: Make) -> None:
    shell.write(registered(), started(1, "2026-03-29T05:00:00Z"))
    put(shell, run_id(1), *of("HB-1", INTENT, RESULT), at="2026-03-29T05:00:10Z")
    shell.write(finished(1, items=TALLY))
    assert because(shell, at="2026-03-29T04:00:00Z") == ("missing", "the window is missing: no start at all")
    assert because(shell)[0] == "handled"


def test_in_plain_english_with_entries(shell: Shell, started: Make, finished: Make) -> None:
    shell.write(started(1, program=CODE))
    put(shell, run_id(1), *of("HB-1", INTENT, {**RESULT, "result": "skipped", "reason": "On hold."}))
    shell.write(finished(1, items=TALLY))
    assert list(whynot.lines(answer(shell))) == [
        "HB-1 in letters@L2026-03-29T02:30, due 2026-03-29T02:30+01:00: run 1 started for this window, and it "
        "considered the case and skipped it: On hold.",
        "",
        "run 1 (entries 1, 2): it considered the case and skipped it: On hold.",
        "   started  2026-03-29 02:30:02+01:00 (01:30:02Z), by ann on alpha",
        "   entries  2, the last 2026-03-29 02:30:07+01:00 (01:30:07Z)",
        "   said     reminder: skipped; On hold. (records 1, 2)",
        "",
        "Not known:",
        "- runguard records what the job reported; it cannot confirm that the letter was delivered",
    ]

"""What `explain` tells of a case: each statement, from what is on record."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from typing import Any

import pytest

from casework import INTENT, RESULT, asked, put, text, told
from entries import WINDOW, run_id
from runguard.evidence import words
from runguard.evidence.explain import explain, searched
from runguard.guard.intake import Intake
from runguard.store.sqlite import open_reader
from shell import Shell

Make = Callable[..., tuple[str, str, dict[str, Any]]]

CODE = {"path": "/opt/letters/send", "sha256": "cd" * 32, "size": 900}
COMMIT = "0123456789abcdef0123456789abcdef01234567"
TALLY = {
    "entries": 2, "cases": 1, "done": 1, "no_action": 0, "failed": 0, "skipped": 0, "uncertain": 0, "unannounced": 0,
    "rejected": 0, "expected": None, "list_sha256": "ee" * 32, "rejected_sha256": None, "bytes": 10, "beyond_bytes": 0,
    "pending_bytes": 0,
}  # fmt: skip
ANN = {"uid": 1000, "user": "root", "login": "ann", "sudo_user": "ann"}


def of(case: str, *said: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"case": case, **each} for each in said]


def window(day: int) -> dict[str, Any]:
    """Return the window of that day of March. British clocks went forward on the 29th."""
    nominal, offset = f"2026-03-{day}T02:30", 0 if day < 29 else 1
    return {**WINDOW, "key": f"L{nominal}", "label": f"{nominal}+0{offset}:00", "nominal": nominal,
            "start": f"2026-03-{day - 1}T0{2 - (day > 29)}:30:00Z", "due": f"2026-03-{day}T0{2 - offset}:30:00Z",
            }  # fmt: skip


@pytest.fixture
def touched(shell: Shell, started: Make, finished: Make) -> Shell:
    """One run of `letters`, entries 1 and 2, that sent HB-1042 a letter."""
    shell.write(started(1, program=CODE, commit=COMMIT))
    put(shell, run_id(1), *of("HB-1042", INTENT, RESULT))
    shell.write(finished(1, items=TALLY))
    return shell


def test_a_touch_is_told_whole_in_plain_english(touched: Shell) -> None:
    assert text(touched, "HB-1042")[:18] == [
        "HB-1042 was touched once, by one run of letters: done.",
        "",
        "1. reminder: done, 2026-03-29 02:30:05+01:00 (01:30:05Z)",
        "Run      1 of letters, attempt 1 for the window 2026-03-29T02:30+01:00 (L2026-03-29T02:30)",
        f"Rule     R7, version 3, sha256 {'ab' * 32}",
        "Reason   No reply for 28 days.",
        "Inputs   last_reply: 2026-03-01 (source register, date 2026-03-28)",
        "Before   stage: 1",
        "After    stage: 2",
        "Sent     post, template L4, version 2, reference 99, at 2026-03-29T01:30:06Z",
        f"Code     /opt/letters/send, sha256 {'cd' * 32}",
        f"commit {COMMIT}, runguard 0.1.0, Python 3.11.2",
        "Started  2026-03-29 02:30:02+01:00 (01:30:02Z) by its schedule, by ann on host alpha (entry 1)",
        "Ended    2026-03-29 02:31:34+01:00 (01:31:34Z) succeeded, exit status 0 (entry 2)",
        "Records  1 (intent, written 2026-03-29 01:30:05Z, received 2026-03-29 01:30:07Z); "
        "2 (done, written 2026-03-29 01:30:06Z, received 2026-03-29 01:30:07Z); listed by entry 2",
        "",
        "Not known:",
        "- runguard records what the job reported; it cannot confirm that the letter was delivered",
    ]


def test_who_ran_it_by_hand_and_why_is_told(shell: Shell, started: Make) -> None:
    shell.write(started(1, trigger="manual", reason="the printer is back", supersedes=None))
    put(shell, run_id(1), *of("HB-1", INTENT))
    [line] = [line for line in text(shell, "HB-1") if line.startswith("Started")]
    assert line.endswith("by hand, by ann on host alpha: the printer is back (entry 1)")


def test_what_the_job_did_not_give_is_said_to_be_missing(shell: Shell, started: Make) -> None:
    shell.write(started(1))
    put(shell, run_id(1), {"case": "HB-1", "phase": "result", "result": "skipped", "action": "call"})
    lines = text(shell, "HB-1")
    assert "Rule     the job gave none" in lines
    assert "Reason   the job gave none" in lines
    assert "- the program was not hashed when run 1 was started: which version it was is not known (entry 1)" in lines


def test_what_intent_and_result_say_otherwise_is_both_told(shell: Shell, started: Make) -> None:
    shell.write(started(1))
    skipped = {**RESULT, "result": "skipped", "reason": "A reply came today."}
    put(shell, run_id(1), *of("HB-1", INTENT, skipped))
    lines = text(shell, "HB-1")
    at = lines.index("Reason   No reply for 28 days. (intent)")
    assert lines[at + 1] == "A reply came today. (skipped)"


def test_touches_come_in_the_order_of_their_runs(shell: Shell, started: Make) -> None:
    shell.write(started(1), started(2, job="bills", window=None))
    put(shell, run_id(2), *of("HB-1", INTENT, RESULT))
    put(shell, run_id(1), *of("HB-1", INTENT))
    found = told(shell, "HB-1")
    assert [(each["job"], each["run"], each["state"]) for each in found["touches"]] == [
        ("letters", 1, "uncertain"), ("bills", 2, "done"),
    ]  # fmt: skip
    assert text(shell, "HB-1")[0] == "HB-1 was touched 2 times, by 2 runs of letters and bills: 1 uncertain, 1 done."


def test_a_run_that_was_replaced_and_one_that_replaces_say_so(shell: Shell, started: Make, finished: Make) -> None:
    shell.write(started(1), finished(1, "failed"), started(2, supersedes=run_id(1), attempt=2))
    put(shell, run_id(1), *of("HB-1", INTENT))
    put(shell, run_id(2), *of("HB-1", INTENT, RESULT))
    lines = [line for line in text(shell, "HB-1") if line.startswith("Run")]
    assert [line.partition("; ")[2] for line in lines] == [
        "it was replaced by run 2", "it replaces run 1",
    ]  # fmt: skip


def test_a_late_end_of_a_run_that_was_taken_for_lost_is_told(shell: Shell, started: Make, finished: Make) -> None:
    shell.write(started(1), finished(1, "lost", exit_status=None, finished=None, why="the guard is gone"), finished(1))
    put(shell, run_id(1), *of("HB-1", INTENT))
    [line] = [line for line in text(shell, "HB-1") if line.startswith("Ended")]
    assert line == "Ended    lost, the guard is gone, but it ended later: succeeded (entries 2, 3)"


def test_hostile_text_is_left_to_who_prints(shell: Shell, started: Make) -> None:
    shell.write(started(1))
    put(shell, run_id(1), *of("HB-\n1", {**INTENT, "reason": "\x1b[2J"}))
    assert "Reason   \x1b[2J" in text(shell, "HB-\n1")


# What is not known


def not_known(shell: Shell, case: str) -> list[str]:
    lines = text(shell, case)
    return [line.removeprefix("- ") for line in lines[lines.index("Not known:") + 1 :]]


def test_an_intent_without_a_result_is_uncertain(shell: Shell, started: Make, finished: Make) -> None:
    intent = {**INTENT, "at": "2026-03-29T02:03:11Z"}
    shell.write(started(1, program=CODE))
    put(shell, run_id(1), *of("HB-1", intent))
    shell.write(finished(1, "lost", exit_status=None, why="the host restarted", items={**TALLY, "uncertain": 1}))
    assert not_known(shell, "HB-1") == [
        "runguard records what the job reported; it cannot confirm that it was so",
        "intent at 02:03:11Z without a result: uncertain: whether reminder was done is not known (record 1 of run 1) "
        "(entries 1, 2)",
        "run 1 was lost (the host restarted): what it did after its last entry is not known (entries 1, 2)",
    ]


@pytest.mark.parametrize(
    ("channel", "thing"),
    [("post", "the letter"), ("E-Mail", "the e-mail"), ("sms", "the text message"), ("pigeon", "what was sent"),
     (7, "what was sent")],
)  # fmt: skip
def test_nobody_here_knows_whether_it_was_delivered(shell: Shell, started: Make, channel: object, thing: str) -> None:
    shell.write(started(1))
    put(shell, run_id(1), *of("HB-1", INTENT, {**RESULT, "sent": {"channel": channel}}))
    said = f"runguard records what the job reported; it cannot confirm that {thing} was delivered"
    assert said in not_known(shell, "HB-1")


def test_a_result_without_an_intent_is_told(shell: Shell, started: Make) -> None:
    shell.write(started(1))
    put(shell, run_id(1), *of("HB-1", RESULT))
    assert "reminder was reported done in run 1 without an intent before it (entry 1)" in not_known(shell, "HB-1")


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"rejected": 3}, "3 lines of run 1 were rejected: what they say is not known (entries 1, 2)"),
        ({"beyond_bytes": 4096}, "4,096 bytes of run 1 were over the limit and are not on record (entries 1, 2)"),
        ({"pending_bytes": 12}, "12 bytes of run 1 are not on record yet (entries 1, 2)"),
        (
            {"removed": True},
            "the file of case entries of run 1 was removed before all of it was read: what it said is "
            "not known (entries 1, 2)",
        ),
    ],
)
def test_what_else_the_run_said_is_not_known(
    shell: Shell, started: Make, finished: Make, fields: dict[str, Any], text: str
) -> None:
    shell.write(started(1))
    put(shell, run_id(1), *of("HB-1", INTENT, RESULT))
    shell.write(finished(1, items={**TALLY, **fields}))
    assert text in not_known(shell, "HB-1")


def test_a_torn_line_that_names_the_case_makes_it_uncertain(shell: Shell, started: Make) -> None:
    shell.write(started(1))
    put(shell, run_id(1), b'{"case":"HB-7","phase":"intent","act')
    found = told(shell, "HB-7")
    assert found["touches"] == []
    [doubt] = found["unknown"]
    assert doubt["what"] == "rejected"
    assert doubt["text"].startswith("a piece of run 1 that is no case entry seems to name this case (it is no JSON")
    assert doubt["text"].endswith("what was done is uncertain")


@pytest.mark.parametrize("case", ["HB-70", "B-7", "7", "é"])
def test_a_torn_line_names_a_case_only_as_a_whole_word(shell: Shell, started: Make, case: str) -> None:
    shell.write(started(1))
    put(shell, run_id(1), b'{"case":"HB-7","phase":"int')
    with open_reader(str(shell.state / "db" / "runguard.sqlite")) as reader:
        assert explain(reader, asked(shell, case)) is None


def test_a_torn_line_names_a_case_also_with_escapes(shell: Shell, started: Make) -> None:
    shell.write(started(1))
    put(shell, run_id(1), b'{"case":"Zo\\u00eb/1","phase":"int')
    assert told(shell, "Zoë/1")["unknown"][0]["what"] == "rejected"


# What is not on record yet


def leave(shell: Shell, number: int, *lines: bytes) -> str:
    """Leave lines in the file of a run, as a guard that was killed does."""
    runs = shell.state / "db" / "runs"
    runs.mkdir(mode=0o700, exist_ok=True)
    path = runs / f"{run_id(number)}.items"
    path.touch(0o600)
    with open(path, "ab") as file:
        file.writelines(lines)
    return str(path)


def spelled(*said: dict[str, Any]) -> list[bytes]:
    return [json.dumps(each).encode() + b"\n" for each in said]


def test_what_waits_in_the_file_of_a_run_is_told_from_there(shell: Shell, started: Make) -> None:
    shell.write(started(1))
    path = leave(shell, 1, *spelled(*of("HB-1", INTENT), *of("HB-2", INTENT)))
    [touch] = told(shell, "HB-1")["touches"]
    assert (touch["state"], touch["file"], touch["reason"]) == ("uncertain", path, "No reply for 28 days.")
    assert f"what run 1 says in {path} is not on record yet (entry 1)" in not_known(shell, "HB-1")


def test_a_result_that_waits_answers_an_intent_on_record(shell: Shell, started: Make) -> None:
    shell.write(started(1))
    intent, result = spelled(*of("HB-1", INTENT, RESULT))
    put(shell, run_id(1), intent[:-1])
    leave(shell, 1, intent, result)
    [touch] = told(shell, "HB-1")["touches"]
    assert (touch["state"], [each["record"] for each in touch["records"]]) == ("done", [1, None])


def test_a_torn_line_that_waits_makes_its_case_uncertain(shell: Shell, started: Make) -> None:
    shell.write(started(1))
    path = leave(shell, 1, b'{"case":"HB-1","pha')
    [doubt] = told(shell, "HB-1")["unknown"]
    assert doubt["text"] == (
        f"{path} has 1 line that seems to name this case, no case entry and not on record yet: uncertain"
    )


def test_what_waits_of_a_run_that_is_not_on_record_is_uncertain(shell: Shell, started: Make) -> None:
    shell.write(started(1))
    put(shell, run_id(1), *of("HB-1", INTENT, RESULT))
    path = leave(shell, 9, *spelled(*of("HB-1", INTENT)))
    assert f"{path} names this case, and its run is not on record: uncertain" in not_known(shell, "HB-1")


def test_a_run_that_waits_in_the_journal_is_told_from_there(shell: Shell, started: Make, finished: Make) -> None:
    shell.write(started(1))
    path = leave(shell, 9, *spelled(*of("HB-1", INTENT)))
    entries = [{"kind": kind, "at": at, "host": "alpha", "actor": ANN, "version": "0.1.0", **fields, "number": None}
               for kind, at, fields in (started(9), finished(9, "failed"))]  # fmt: skip
    with open_reader(str(shell.state / "db" / "runguard.sqlite")) as reader:
        found = explain(reader, asked(shell, "HB-1")._replace(journaled=entries))
    assert found is not None
    [touch], [run] = found["touches"], found["runs"]
    assert (touch["state"], touch["file"], run["outcome"], run["entries"]) == ("uncertain", path, "failed", [])
    assert any(each["text"].startswith("2 entries of runs wait in the journal") for each in found["unknown"])
    assert any(line.endswith("(in the journal)") for line in words.lines(found))


def test_a_file_that_cannot_be_read_is_told(shell: Shell, started: Make) -> None:
    shell.write(started(1))
    put(shell, run_id(1), *of("HB-1", INTENT, RESULT))
    path = leave(shell, 1)
    os.rename(path, f"{path}.elsewhere")
    os.symlink(f"{path}.elsewhere", path)
    said = f"{path}: it is a symbolic link: what it says is not on record, and cannot be seen"
    assert said in not_known(shell, "HB-1")


# Entries that bear on it

T = "2026-03-30T09:00:00Z"


def later(shell: Shell, case: str) -> list[str]:
    lines = text(shell, case)
    if "Later entries that bear on it:" not in lines:
        return []
    rest = lines[lines.index("Later entries that bear on it:") + 1 :]
    return [line.removeprefix("- ") for line in rest[: rest.index("")]]


@pytest.mark.parametrize(
    ("kind", "fields", "said"),
    [
        ("correction", {"about": [{"case": "HB-1042"}], "wrong": "it was sent to the old address",
                        "right": "7 Mill Lane", "reason": "call of 30 March"},
         "corrected the record of case HB-1042: it was sent to the old address; right is: 7 Mill Lane (the original "
         "stays): call of 30 March"),
        ("correction", {"about": [{"entry": 2}], "wrong": "the printer jammed", "right": None, "reason": "seen"},
         "corrected the record of entry 2: the printer jammed (the original stays): seen"),
        ("hold", {"about": [{"job": "letters"}], "reason": "judicial review"},
         "put a hold on job letters: judicial review"),
        ("release", {"about": [{"run": run_id(1)}], "hold": 3, "reason": "over"},
         f"released the hold of entry 3 on run {run_id(1)}: over"),
        ("access", {"about": [{"case": "HB-1042"}], "how": "explain", "question": None, "bundle_sha256": None,
                    "reason": "appeal"}, "explained it: appeal"),
        ("access", {"about": [{"case": "HB-1042"}], "how": "explain",
                    "question": {"at": None, "why_not": "letters@L1"}, "bundle_sha256": None, "reason": None},
         "asked why it was not handled in letters@L1"),
        ("access", {"about": [{"job": "letters", "since": None, "until": "2026-04-01T00:00:00Z"}], "how": "export",
                    "question": None, "bundle_sha256": "ff" * 32, "reason": None},
         f"exported everything of letters before 2026-04-01T00:00:00Z (bundle sha256 {'ff' * 32})"),
        ("defect", {"about": [{"code": "cd" * 32}], "reference": "BUG-7", "reason": "leap days are counted twice"},
         f"noted a known fault of code with sha256 {'cd' * 32} (BUG-7): leap days are counted twice"),
        ("defect", {"about": [{"code": "cd" * 32, "since": "2026-03-01T00:00:00Z", "until": None}], "reference": None,
                    "reason": "wrong day"},
         f"noted a known fault of code with sha256 {'cd' * 32} from 2026-03-01T00:00:00Z, as far as it ran then: "
         "wrong day"),
        ("defect", {"about": [{"commit": COMMIT}], "reference": None, "reason": "wrong day"},
         f"noted a known fault of commit {COMMIT}: wrong day"),
        ("prune", {"about": [{"since": None, "until": "2026-06-01T00:00:00Z"}], "what": "cases", "keep": "90d",
                   "before": "2026-06-01T00:00:00Z",
                   "records": {"first": {"entry": 1, "record": 1}, "last": {"entry": 1, "record": 812}, "removed": 812,
                               "kept": 0, "kept_sha256": None},
                   "rejected": 0, "entries": None, "checkpoint": None, "held": [], "reason": "policy"},
         "removed 812 case entries from before 2026-06-01T00:00:00Z (kept: 90d): policy"),
        ("correction", {"about": [{"job": "letters", "window": "L2026-03-29T02:30"}], "wrong": "late", "right": None,
                        "reason": "clock"},
         "corrected the record of window letters@L2026-03-29T02:30: late (the original stays): clock"),
    ],
)  # fmt: skip
def test_a_later_entry_that_bears_on_the_case_is_told(
    touched: Shell, kind: str, fields: dict[str, Any], said: str
) -> None:
    touched.write((kind, T, fields))
    assert later(touched, "HB-1042") == [f"entry 3, 2026-03-30 09:00:00Z: ann on alpha {said}"]


@pytest.mark.parametrize(
    "target",
    [
        {"case": "HB-104"}, {"run": run_id(2)}, {"entry": 3}, {"job": "bills"}, {"code": "00" * 32}, {"commit": "ff"},
        {"job": "letters", "window": "L2026-03-30T02:30"}, {"since": "2026-03-30T00:00:00Z", "until": None},
        {"job": "letters", "since": None, "until": "2026-03-29T00:00:00Z"},
    ],
)  # fmt: skip
def test_an_entry_about_something_else_is_not_told(touched: Shell, target: dict[str, Any]) -> None:
    touched.write(("hold", T, {"about": [target], "reason": "x"}))
    assert later(touched, "HB-1042") == []


def test_who_acted_through_sudo_is_told(shell: Shell, started: Make) -> None:
    shell.write(started(1))
    put(shell, run_id(1), *of("HB-1", INTENT, RESULT))
    with shell.open() as store, store.write() as tx:
        tx.append("hold", 0, {"about": [{"case": "HB-1"}], "reason": "x"}, author=store.author._replace(actor=ANN))
    assert later(shell, "HB-1") == [
        "entry 2, 1970-01-01 00:00:00Z: root (logged in as ann, through sudo from ann) on alpha put a hold on case "
        "HB-1: x"
    ]


def test_records_that_were_erased_are_told_by_the_entry_that_removed_them(touched: Shell) -> None:
    records = [{"run": run_id(1), "seq": n, "sha256": f"{n:064}"} for n in (1, 2)]
    about = [{"case": "HB-1042"}]
    fields = {"about": about, "records": records, "rejected": [], "authority": "Art. 17", "reason": "request 12"}
    touched.write(("redact", T, fields))
    erase(touched)
    found = told(touched, "HB-1042")
    [touch] = found["touches"]
    assert (touch["state"], touch["removed_by"], touch["reason"]) == ("removed", 3, None)
    assert [each["record"] for each in touch["records"]] == [1, 2]
    lines = text(touched, "HB-1042")
    assert lines[2] == "1. removed: what run 1 recorded of it was lawfully removed by entry 3"
    assert later(touched, "HB-1042") == [
        "entry 3, 2026-03-30 09:00:00Z: ann on alpha removed 2 records lawfully; authority: Art. 17: request 12"
    ]
    assert found["damage"] == []


def test_what_was_erased_since_is_told_as_such_also_as_of_then(touched: Shell) -> None:
    records = [{"run": run_id(1), "seq": n, "sha256": f"{n:064}"} for n in (1, 2)]
    fields = {"about": [{"case": "HB-1042"}], "records": records, "rejected": [], "authority": None, "reason": "x"}
    touched.write(("redact", T, fields))
    erase(touched)
    found = told(touched, "HB-1042", at="2026-03-29T12:00:00Z")
    assert [(each["state"], each["removed_by"]) for each in found["touches"]] == [("removed", 3)]
    assert found["later"] == []


def erase(shell: Shell) -> None:
    change(shell, "DELETE FROM item")


def change(shell: Shell, statement: str, *values: object) -> None:
    """Change the database as somebody with every right would."""
    database = sqlite3.connect(shell.state / "db" / "runguard.sqlite")
    for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
        database.execute(f"DROP TRIGGER {name}")
    database.execute(statement, values)
    database.commit()
    database.close()


# Windows beside these


def changed(at: str = "2026-03-20T12:00:00Z") -> tuple[str, str, dict[str, Any]]:
    schedule = WINDOW["schedule"]
    return "job.changed", at, {
        "job": "letters", "change": "registered", "revision": 1, "schedule": schedule, "after": "2026-03-20T02:30:00Z",
    }  # fmt: skip


def windows(shell: Shell, case: str, *, at: str | None = None) -> list[str]:
    return [f"{each['key'][9:11]} {each['verdict']}: {each['because']}" for each in told(shell, case, at=at)["windows"]]


@pytest.fixture
def month(shell: Shell, started: Make, finished: Make) -> Shell:
    """Touched on the 23rd and the 27th; between: failed, missing, waived; after: lost, refused, succeeded, missing."""

    def ran(number: int, day: int, outcome: str, **fields: Any) -> list[tuple[str, str, dict[str, Any]]]:
        return [started(number, f"2026-03-{day}T02:30:01Z", window=window(day)), finished(number, outcome, **fields)]

    waiver = {"job": "letters", "key": "L2026-03-26T02:30", "since": None, "until": None, "withdraw": False,
              "reason": "nothing to send"}  # fmt: skip
    refusal = started(6, window=window(29))[2] | {"why": "overlap", "because": "run 5 still runs", "returned": 75}
    shell.write(
        changed(), *ran(1, 23, "succeeded"), *ran(2, 24, "failed", exit_status=3),
        ("window.waived", "2026-03-26T10:00:00Z", waiver), *ran(3, 27, "succeeded"),
        *ran(5, 28, "lost", exit_status=None, why="the host restarted"),
        ("run.refused", "2026-03-29T02:30:01Z", {key: value for key, value in refusal.items() if key != "attempt"}),
        *ran(7, 30, "succeeded"),
    )  # fmt: skip
    put(shell, run_id(1), *of("HB-1", INTENT, RESULT))
    put(shell, run_id(3), *of("HB-1", INTENT, RESULT), *of("HB-3", INTENT, RESULT))
    return shell


def test_the_windows_between_and_beside_that_no_success_answered_are_told(month: Shell) -> None:
    assert windows(month, "HB-1") == [
        "21 missing: no start at all",
        "22 missing: no start at all",
        "24 failed: run 2 failed with exit status 3",
        "25 missing: no start at all",
        "26 waived: waived by ann: nothing to send",
        "28 lost: run 5 was lost (the host restarted)",
        "29 missing: refused by run 6 (overlap)",
    ]


def test_windows_beyond_the_next_success_are_no_neighbours(month: Shell) -> None:
    assert [line[:2] for line in windows(month, "HB-3")] == ["24", "25", "26", "28", "29"]


def test_a_window_is_told_with_its_runs(month: Shell) -> None:
    lines = text(month, "HB-3")
    at = lines.index("Windows beside these that no success answered:")
    assert lines[at + 1] == (
        "- letters@L2026-03-24T02:30, due 2026-03-24T02:30+00:00: failed, run 2 failed with exit status 3 (run 2)"
    )


def test_windows_that_are_told_alike_are_told_as_one(month: Shell) -> None:
    lines = text(month, "HB-1")
    at = lines.index("Windows beside these that no success answered:")
    assert lines[at + 1 : at + 3] == [
        "- letters@L2026-03-21T02:30 to L2026-03-22T02:30, 2 windows: missing, no start at all",
        "- letters@L2026-03-24T02:30, due 2026-03-24T02:30+00:00: failed, run 2 failed with exit status 3 (run 2)",
    ]


# As of then


def test_what_was_recorded_later_is_left_out(month: Shell) -> None:
    month.write(("hold", T, {"about": [{"case": "HB-5"}], "reason": "x"}))
    put(month, run_id(1), *of("HB-5", INTENT, RESULT), at="2026-03-23T02:31:00Z")
    put(month, run_id(3), *of("HB-5", INTENT, RESULT), at="2026-03-27T02:31:00Z")
    found = told(month, "HB-5", at="2026-03-26T09:00:00Z")
    assert (found["at"], [each["run"] for each in found["touches"]], found["later"]) == (
        "2026-03-26T09:00:00Z", [1], [],
    )  # fmt: skip
    assert len(told(month, "HB-5")["touches"]) == 2


def test_an_intent_was_uncertain_until_its_result_came(shell: Shell, started: Make) -> None:
    shell.write(started(1))
    put(shell, run_id(1), *of("HB-1", INTENT), at="2026-03-29T01:30:10Z")
    put(shell, run_id(1), *of("HB-1", RESULT), at="2026-03-29T01:30:20Z")
    states = [told(shell, "HB-1", at=f"2026-03-29T01:30:{s}Z")["touches"][0]["state"] for s in ("15", "25")]
    assert states == ["uncertain", "done"]


def test_a_run_was_running_until_its_end_came(month: Shell) -> None:
    put(month, run_id(7), *of("HB-6", INTENT, RESULT), at="2026-03-30T02:30:05Z")
    month_end = "2026-03-30T02:31:00Z"
    assert told(month, "HB-6", at=month_end)["runs"][0]["outcome"] == "succeeded"  # finishes are dated 29 March


def test_a_window_was_missing_until_it_was_waived(month: Shell) -> None:
    put(month, run_id(1), *of("HB-5", INTENT, RESULT), at="2026-03-23T02:31:00Z")
    assert "26 missing: no start at all" in windows(month, "HB-5", at="2026-03-26T09:00:00Z")
    assert "26 waived: waived by ann: nothing to send" in windows(month, "HB-5", at="2026-03-26T11:00:00Z")


def test_a_case_that_was_not_on_record_then_is_not_told(touched: Shell) -> None:
    with open_reader(str(touched.state / "db" / "runguard.sqlite")) as reader:
        assert explain(reader, asked(touched, "HB-1042", at="2026-03-29T01:30:06Z")) is None
        assert searched(reader) == (2, 1, 1)


# Damage


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE ledger SET line = CAST(replace(CAST(line AS TEXT), 'letters', 'LETTERS') AS BLOB) WHERE seq = 1",
         "entry 1 of the ledger is not what entry 2 names: one of them was changed"),
        ("UPDATE ledger SET line = x'7b0a' WHERE seq = 1", "entry 1 of the ledger is not what entry 2 names"),
        ("DELETE FROM ledger WHERE seq = 1", "entry 1 of the ledger is missing"),
        ("UPDATE item SET line = CAST(replace(CAST(line AS TEXT), '28', '21') AS BLOB) WHERE seq = 1",
         f"case entry 1 of run {run_id(1)} was changed: its list names another hash"),
        ("UPDATE item SET said = 'failed' WHERE seq = 2",
         f"case entry 2 of run {run_id(1)} is indexed as another one: failed"),
        ("UPDATE item SET line = x'7b0a' WHERE seq = 1", f"case entry 1 of run {run_id(1)} cannot be read"),
    ],
)  # fmt: skip
def test_damage_is_told_first_and_the_rest_all_the_same(touched: Shell, statement: str, said: str) -> None:
    with touched.open() as store, store.write() as tx:
        intake = Intake("/nonexistent", run_id(1))
        intake.complete(tx, intake.tally(store))
    assert told(touched, "HB-1042")["damage"] == []
    change(touched, statement)
    lines = text(touched, "HB-1042")
    assert lines[0].startswith(f"DAMAGED: {said}")
    assert lines[0].endswith("(runguard verify --full)")
    assert any(line.startswith("HB-1042 was touched once, by one run of") for line in lines)

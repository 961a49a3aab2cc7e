"""`explain CASE` as a command: what it prints, what it puts on record, and what it refuses."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from casework import INTENT, RESULT, put
from entries import WINDOW, run_id
from runguard.store import sqlite
from shell import Shell

Make = Callable[..., tuple[str, str, dict[str, Any]]]

HOSTILE = "\x1b]52;c;bHM=\x07\u202e"
KEY = "letters@L2026-03-29T02:30"


def registered() -> tuple[str, str, dict[str, Any]]:
    fields = {"job": "letters", "change": "registered", "revision": 1, "schedule": WINDOW["schedule"],
              "after": WINDOW["start"]}  # fmt: skip
    return "job.changed", "2026-03-28T12:00:00Z", fields


def fill(shell: Shell, started: Make, finished: Make, case: str = "HB-1042") -> None:
    """Put one touch of a case on record: entries 1 to 3."""
    shell.write(registered(), started(1))
    put(shell, run_id(1), {"case": case, **INTENT}, {"case": case, **RESULT, "reason": HOSTILE})
    shell.write(finished(1))


@pytest.fixture
def touched(shell: Shell, started: Make, finished: Make) -> Shell:
    fill(shell, started, finished)
    return shell


def ledger(shell: Shell) -> list[dict[str, Any]]:
    database = sqlite3.connect(shell.state / "db" / "runguard.sqlite")
    found = [json.loads(line) for (line,) in database.execute("SELECT line FROM ledger ORDER BY seq")]
    database.close()
    return found


def test_a_case_is_explained_and_that_it_was_asked_is_on_record(touched: Shell) -> None:
    done = touched("explain", "HB-1042", "--reason", "appeal of 2 April")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "HB-1042 was touched once, by one run of letters: done."
    assert lines[-2:] == ["", "That this was asked is entry 4 of the ledger."]
    entry = ledger(touched)[-1]
    assert (entry["seq"], entry["kind"], entry["actor"]["uid"]) == (4, "access", os.getuid())
    assert {key: entry[key] for key in ("about", "how", "question", "bundle_sha256", "reason")} == {
        "about": [{"case": "HB-1042"}], "how": "explain", "question": None, "bundle_sha256": None,
        "reason": "appeal of 2 April",
    }  # fmt: skip


def test_who_asked_before_is_told_to_who_asks_next(touched: Shell) -> None:
    touched("explain", "HB-1042", "--reason", "appeal")
    [told] = touched.json("explain", "HB-1042")
    assert [(each["entry"], each["kind"], each["reason"]) for each in told["later"]] == [(4, "access", "appeal")]
    assert told["entry"] == 5


def test_hostile_text_never_reaches_a_terminal_or_a_pipe_raw(touched: Shell) -> None:
    for printed in (touched("explain", "HB-1042").stdout, touched.on_terminal("explain", "HB-1042")):
        assert "\\x1b]52;c;bHM=\\x07\\u202e" in printed
        assert not {"\x07", "\u202e"} & set(printed)
        assert "\x1b]" not in printed


def test_a_case_id_with_a_newline_is_found_and_printed_in_one_line(shell: Shell, started: Make, finished: Make) -> None:
    fill(shell, started, finished, "HB-\n1")
    assert shell("explain", "HB-\n1").stdout.splitlines()[0] == (
        "HB-\\n1 was touched once, by one run of letters: done."
    )


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_every_format_tells_it(touched: Shell, form: str) -> None:
    done = touched("explain", "HB-1042", "--format", form)
    assert done.returncode == 0
    assert "No reply for 28 days." in done.stdout
    assert done.stdout.count("\n") == {"jsonl": 1, "csv": 2}[form]


def test_a_case_that_is_not_on_record_is_unknown_and_leaves_no_trace(touched: Shell) -> None:
    done = touched("explain", "Jane Doe")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "runguard: explain: no case 'Jane Doe' is on record: 2 case entries of 1 run were searched, for exactly this "
        "id; of 1 of these runs not all that they wrote is on record; to ask why it was not handled: --why-not "
        "JOB@WINDOW\n"
    )
    assert len(ledger(touched)) == 3


def test_where_nothing_is_recorded_no_case_is(shell: Shell) -> None:
    done = shell("explain", "HB-1")
    assert done.returncode == 2
    said = shell.nothing_recorded.removeprefix("runguard: ")
    assert done.stderr == f"runguard: explain: no case 'HB-1' is on record: {said}"


def test_a_store_that_an_older_version_has_written_is_brought_up_to_date(shell: Shell) -> None:
    place = shell.state / "db"
    place.mkdir(parents=True, mode=0o700)
    shell.state.chmod(0o700)
    database = sqlite3.connect(place / "runguard.sqlite")
    database.executescript((Path(sqlite.__file__).parent / "migrations/sqlite/0001.sql").read_text())
    database.close()
    done = shell("explain", "HB-1")
    assert (done.returncode, "0 case entries of 0 runs were searched" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("",), "explain: CASE is empty"),
        ((), "explain: CASE is missing"),
        (("HB-1042", "--reason", " "), "explain: --reason is empty"),
        (("HB-1042", "--at", "2999-01-01"), "explain: --at (2999-01-01T00:00:00Z) lies ahead"),
        (("HB-1042", "--at", "soon"), "explain: --at: 'soon' is no instant"),
        (("HB-1042", "--why-not", "letters"), "explain: --why-not: 'letters' names no window: JOB@WINDOW is wanted"),
        (("HB-1042", "--why-not", "lettres@L2026-03-29T02:30"), "explain: no job 'lettres' on record; did you mean le"),
        (("HB-1042", "--why-not", "letters@L2026-03-29T02:31"), "explain: no window 'L2026-03-29T02:31' of letters;"),
        ((b"HB-\xff",), "explain: no case 'HB-\\udcff' is on record"),
        (("x" * 300,), "explain: no case 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'… is on record"),
        (("HB-1042", "--at", "2026-03-29T01:30:01Z"), "explain: no case 'HB-1042' is on record by 2026-03"),
    ],
)  # fmt: skip
def test_what_cannot_be_told_is_one_line_and_status_2(
    touched: Shell, arguments: tuple[str | bytes, ...], said: str
) -> None:
    done = touched("explain", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"runguard: {said}")
    assert done.stderr.count("\n") == 1


def test_as_it_was_on_record_then(touched: Shell) -> None:
    done = touched("explain", "HB-1042", "--at", "2026-03-29T01:31:00Z")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[1] == "As of 2026-03-29 01:31:00Z: what was recorded later is left out."
    assert "   Ended    not on record" in lines
    assert ledger(touched)[-1]["question"] == {"at": "2026-03-29T01:31:00Z", "why_not": None}


def test_why_not_is_answered_with_a_window_named_in_any_way(touched: Shell) -> None:
    done = touched("explain", "HB-9", "--why-not", "letters@2026-03-29T02:30+01:00")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] == (
        f"HB-9 in {KEY}, due 2026-03-29T02:30+01:00: run 1 started for this window, and it went through its input "
        "(1 case), and this case was not in it, as far as is known"
    )
    assert len(ledger(touched)) == 3  # nothing of anybody was shown
    [told] = touched.json("explain", "HB-1042", "--why-not", KEY)
    assert (told["verdict"], told["entry"]) == ("handled", 4)
    assert ledger(touched)[-1]["question"] == {"at": None, "why_not": KEY}


def test_a_damaged_record_is_told_with_status_1(touched: Shell) -> None:
    database = sqlite3.connect(touched.state / "db" / "runguard.sqlite")
    database.execute("DROP TRIGGER item_is_never_edited")
    database.execute("UPDATE item SET said = 'failed' WHERE said = 'done'")
    database.commit()
    database.close()
    done = touched("explain", "HB-1042")
    assert done.returncode == 1
    assert done.stdout.startswith(
        f"DAMAGED: case entry 2 of run {run_id(1)} is indexed as another one: failed (runguar"
    )


def test_what_waits_in_the_journal_is_brought_over_and_told(touched: Shell, started: Make) -> None:
    runs, journal = touched.state / "db" / "runs", touched.state / "journal"
    kind, at, fields = started(2)
    line = {"v": 1, "kind": kind, "at": at, "host": "alpha", "actor": {}, "version": "0.1.0", **fields, "number": None}
    for path, said in (
        (runs / f"{run_id(2)}.items", {"case": "HB-7", **INTENT}), (journal / f"{run_id(2)}.jsonl", line),
    ):  # fmt: skip
        path.parent.mkdir(mode=0o700, exist_ok=True)
        path.write_text(json.dumps(said) + "\n")
        path.chmod(0o600)
    [told] = touched.json("explain", "HB-7")
    assert [(each["run"], each["state"], each["reason"]) for each in told["touches"]] == [
        (2, "uncertain", "No reply for 28 days.")
    ]
    assert [each["entry"] for each in told["runs"][0]["entries"]] == [4]


# Another account


@pytest.fixture
def audited(started: Make, finished: Make) -> Iterator[Shell]:
    """A state directory whose database all may read, asked as another user; pytest's own are closed to them."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("needs root and setpriv")
    directory = Path(tempfile.mkdtemp())
    shell = Shell(directory)
    fill(shell, started, finished)
    for path in (directory, shell.state, shell.state / "db"):
        path.chmod(0o755)
    (shell.state / "db" / "runguard.sqlite").chmod(0o644)
    shell.environ["RUNGUARD_CONFIG"] = "/dev/null"
    shell.prefix = ("setpriv", "--reuid=1234", "--regid=1234", "--clear-groups")
    if shell("--version").returncode != 0:
        pytest.skip("another user may not read this interpreter or the sources")
    yield shell
    shutil.rmtree(directory)


def test_an_auditor_is_told_and_that_it_leaves_no_trace_is_said(audited: Shell) -> None:
    done = audited("explain", "HB-1042")
    assert (done.returncode, done.stdout.splitlines()[0]) == (
        0, "HB-1042 was touched once, by one run of letters: done.",
    )  # fmt: skip
    [said] = done.stderr.splitlines()
    assert said.startswith("runguard: explain: that you asked is not on record: store ")
    assert "entry" not in done.stdout.splitlines()[-1]
    assert len(ledger(audited)) == 3

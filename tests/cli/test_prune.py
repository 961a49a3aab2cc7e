"""`prune`: what is old enough goes, what is needed or held stays, and what is left still proves itself."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import sys
from typing import Any

import pytest

import oldruns
from oldruns import both, can_trace, checkpoint, entry, record, rows
from runguard.evidence import verify
from runguard.store.sqlite import open_reader
from shell import Shell

EDIT = "UPDATE ledger SET line = CAST(replace(CAST(line AS TEXT), 'ann', 'eve') AS BLOB) WHERE seq = "
PRUNE = ("prune", "--keep", "400d", "--reason", "policy 7")


@pytest.fixture
def letters(shell: Shell) -> Shell:
    """Three old runs (entries 1 and 2; 4 and 5; 6 and 7), a new one (9 and 10), checkpoints 3, 8 and 11."""
    record(shell, 1, "2025-01-01T02:00:00Z", both("HB-1", "HB-2", "HB-3") + b"torn\n")
    checkpoint(shell, "2025-01-03T00:00:00Z")
    record(shell, 2, "2025-01-04T02:00:00Z", both("HB-2", "HB-4"))
    record(shell, 3, "2025-01-04T03:00:00Z", both("HB-5"))
    checkpoint(shell, "2025-01-05T00:00:00Z")
    record(shell, 4, "2026-11-01T02:00:00Z", both("HB-1"))
    checkpoint(shell, "2026-11-02T00:00:00Z")
    return shell


def prune(shell: Shell, *options: str) -> str:
    done = shell(*PRUNE, *options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def missing(shell: Shell) -> list[Any]:
    found: list[Any] = json.loads(shell("missing", "letters", "--json").stdout)
    return found


def kinds(shell: Shell, upto: int) -> list[str]:
    """Return the kinds of the entries that are there up to one."""
    lines = rows(shell, f"SELECT line FROM ledger WHERE seq <= {upto} ORDER BY seq")
    return [json.loads(line)["kind"] for (line,) in lines]


def integrity(shell: Shell) -> dict[str, Any]:
    told: dict[str, Any] = shell.json("verify", "--full")[0]
    return told


def test_who_verifies_meanwhile_finds_nothing(letters: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "PAGE", 2)
    looked_at: list[int] = []

    def prune_in_between(count: int) -> None:
        looked_at.append(count)
        if len(looked_at) == 1:
            prune(letters)

    with open_reader(str(oldruns.path(letters))) as reader:
        report = verify.integrity(reader, verify.Since(), verify.Trusted(), {}, prune_in_between)
    assert report.findings == ()
    assert "pruned by entry" in report.removed[0].text


def test_case_text_goes_and_then_entries_but_never_checkpoints(letters: Shell) -> None:
    said = prune(letters)
    assert said.startswith(
        "removed 12 case entries, the text of 1 rejected line, 6 entries of the ledger from before 20"
    )
    assert said.endswith(" (entries 12 to 14); verification starts at checkpoint 8\n")
    assert rows(letters, "SELECT seq FROM ledger WHERE seq < 12") == [(3,), (8,), (9,), (10,), (11,)]
    assert rows(letters, "SELECT case_id FROM item") == [("HB-1",), ("HB-1",)]
    assert rows(letters, "SELECT number FROM run") == [(4,)]
    for table in ("item_run", "output"):
        assert rows(letters, f"SELECT count(*) FROM {table}") == [(1,)]
    assert rows(letters, "SELECT count(*) FROM item_rejected") == [(0,)]


def test_verification_starts_at_the_checkpoint_that_prune_names(letters: Shell) -> None:
    prune(letters)
    told = integrity(letters)
    assert (told["ok"], told["since_seq"]) == (True, 8)
    assert told["removed"] == [
        {"seq": 14, "text": "entries 1 to 7 pruned by entry 14; verification starts at checkpoint 8"}
    ]


def test_the_entries_say_what_was_removed(letters: Shell) -> None:
    prune(letters)
    cases, _, entries = (entry(letters, seq) for seq in (12, 13, 14))
    assert [cases[key] for key in ("kind", "what", "keep", "entries", "reason")] == [
        "prune", "cases", "400d", None, "policy 7",
    ]  # fmt: skip
    assert cases["about"] == [{"since": "2025-01-01T02:00:00Z", "until": "2025-01-04T03:00:00.000001Z"}]
    assert cases["records"] == {
        "first": {"entry": 1, "record": 0}, "last": {"entry": 6, "record": 2}, "removed": 12, "kept": 0,
        "kept_sha256": None,
    }  # fmt: skip
    assert (entries["what"], entries["checkpoint"]) == ("entries", 8)
    assert entries["entries"] == {"first": 1, "last": 7, "removed": 4, "kept": 0, "kept_sha256": None}


def test_case_text_alone_goes_if_that_is_wanted(letters: Shell) -> None:
    assert "of the ledger" not in prune(letters, "--cases-only")
    assert rows(letters, "SELECT count(*) FROM ledger") == [(12,)]
    assert rows(letters, "SELECT head, why FROM item_rejected") == [(b"", "its text was removed by entry 12")]
    assert integrity(letters)["removed"] == [
        {"seq": 12, "text": "12 records lawfully removed by entry 12; list intact"}
    ]


def test_a_held_case_survives_and_is_listed(letters: Shell) -> None:
    letters("hold", "--case", "HB-2", "--reason", "court")
    said = letters(*PRUNE)
    assert said.stderr == "runguard: prune: case HB-2 stays: held by entry 12 (court)\n"
    assert rows(letters, "SELECT DISTINCT case_id FROM item ORDER BY 1") == [("HB-1",), ("HB-2",)]
    assert rows(letters, "SELECT seq FROM ledger WHERE seq < 12") == [(n,) for n in (1, 2, 3, 4, 5, 8, 9, 10, 11)]
    told = integrity(letters)
    assert (told["ok"], told["records"]) == (True, 12)
    assert [each["text"] for each in told["removed"]] == [
        "entries 1 to 7 pruned by entry 14, 4 of them stay; verification starts at checkpoint 8",
        "6 records lawfully removed by entry 13; list intact",
    ]
    assert entry(letters, 13)["held"] == [12]


def test_what_was_released_goes_with_the_next_prune(letters: Shell) -> None:
    letters("hold", "--case", "HB-2", "--reason", "court")
    prune(letters)
    letters("release", "12", "--reason", "over")
    assert "removed 4 case entries" in prune(letters)
    assert rows(letters, "SELECT DISTINCT case_id FROM item") == [("HB-1",)]
    assert rows(letters, "SELECT count(*) FROM ledger WHERE seq < 8") == [(1,)]
    assert integrity(letters)["ok"]


@pytest.mark.parametrize(
    "target", [["--job", "letters"], ["--run", "1"], ["--span", "2025-01-01..2025-01-02"]], ids=["job", "run", "span"]
)
def test_a_held_run_survives_whole(letters: Shell, target: list[str]) -> None:
    letters("hold", *target, "--reason", "court")
    prune(letters)
    assert rows(letters, "SELECT count(*) FROM item WHERE id < 4194304") == [(6,)]
    assert rows(letters, "SELECT seq FROM ledger WHERE seq < 4") == [(1,), (2,), (3,)]
    assert integrity(letters)["ok"]


def test_a_dry_run_says_the_same_and_does_nothing(letters: Shell) -> None:
    letters("hold", "--case", "HB-2", "--reason", "court")
    said = letters("prune", "--keep", "400d", "--dry-run")
    assert said.stdout.startswith("would remove 8 case entries, 2 entries of the ledger from before ")
    assert said.stderr == "runguard: prune: case HB-2 stays: held by entry 12 (court)\n"
    assert rows(letters, "SELECT count(*) FROM ledger") == [(12,)]


def test_a_clock_that_is_years_ahead_removes_nothing(shell: Shell) -> None:
    record(shell, 1, "2020-02-01T02:00:00Z", both("HB-1"))
    record(shell, 2, "2020-03-01T02:00:00Z", both("HB-2"))
    for options in ((), ("--dry-run",)):
        done = shell(*PRUNE, *options)
        assert (done.returncode, done.stdout) == (2, "")
        assert "prune: the newest entry is of 2020-03-01T02:01:00Z, and now is 20" in done.stderr
    assert rows(shell, "SELECT count(*) FROM item") == [(4,)]


def test_who_asks_for_what_is_not_there_is_told_of_the_prune(letters: Shell) -> None:
    letters("prune", "--keep", "400d", "--reason", "policy 7")
    done = letters("explain", "HB-5")
    assert (done.returncode, "were pruned: whether they named this case is not known (entry 1" in done.stderr) == (
        2,
        True,
    )


def test_a_terminal_is_asked_first(letters: Shell) -> None:
    command = [sys.executable, "-m", "runguard", *PRUNE]
    said = letters.on_terminal(command=["sh", "-c", 'echo n | "$@" || test $? = 1', "sh", *command])
    assert "would remove" not in said  # a pipe is no terminal
    assert "removed 12 case entries" in said


def test_a_run_that_is_not_over_stays(shell: Shell) -> None:
    record(shell, 1, "2025-01-01T02:00:00Z", both("HB-1"), end=False)
    checkpoint(shell, "2025-01-03T00:00:00Z")
    record(shell, 2, "2025-01-04T02:00:00Z", both("HB-2"))
    said = shell(*PRUNE)
    assert said.stdout.startswith("removed 2 case entries from before")
    assert "run 1 stays: it is not over" in said.stderr
    assert rows(shell, "SELECT case_id FROM item") == [("HB-1",), ("HB-1",)]
    assert rows(shell, "SELECT seq FROM ledger WHERE seq < 3") == [(1,), (2,)]


def test_the_last_run_of_a_job_stays(shell: Shell) -> None:
    record(shell, 1, "2025-01-01T02:00:00Z", b"")
    record(shell, 2, "2025-01-02T02:00:00Z", b"")
    checkpoint(shell, "2025-01-03T00:00:00Z")
    prune(shell)
    assert rows(shell, "SELECT number FROM run") == [(2,)]
    assert shell.json("status")[0]["last"]["number"] == 2
    assert integrity(shell)["ok"]


def test_what_was_pruned_is_not_missing_afterwards(shell: Shell) -> None:
    schedule = {"expression": "0 2 * * *", "zone": "UTC", "policy": "vixie", "gap": None, "fold": None}
    registered = {"job": "letters", "change": "registered", "revision": 1, "schedule": schedule}
    shell.write(("job.changed", "2024-12-31T12:00:00Z", {**registered, "after": "2024-12-31T12:00:00Z"}))
    record(shell, 1, "2025-01-01T02:00:00Z", both("HB-1"))
    checkpoint(shell, "2025-01-03T00:00:00Z")
    shell.write(("job.changed", "2025-01-03T12:00:00Z", {
        "job": "letters", "change": "retired", "revision": 2, "schedule": None, "after": "2025-01-03T12:00:00Z",
    }))  # fmt: skip
    record(shell, 2, "2025-01-05T02:00:00Z", b"")
    assert len(missing(shell)) == 2
    prune(shell)
    assert missing(shell) == []
    assert shell.json("windows", "letters", "--since", "2024-12-31", "--verdict", "missing") == []
    assert rows(shell, "SELECT seq FROM ledger WHERE seq < 3") == [(1,)]  # the definition


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("DELETE FROM ledger WHERE seq = 2", "of the 4 entries that entry 14 left, 3 are there"),
        (EDIT + "2", "entry 2 is not what its checkpoint"),
        ("DELETE FROM ledger WHERE seq = 3", "checkpoint 3 is missing or cannot be read"),
        (EDIT + "3", "checkpoint 8 does not name the one"),
        ("DELETE FROM pruned WHERE what = 'entries'", "entries"),
        ("DELETE FROM entry_list", "entry 4 is not what its checkpoint names"),
        ("DELETE FROM item WHERE case_id = 'HB-2'", "of the 4 records that entry 13 left, 0 are there"),
        ("DELETE FROM bearing WHERE kind = 'hold'", "entry 12 has no row in the tables (bearing)"),
    ],
)
def test_what_is_done_to_the_rest_is_found(letters: Shell, statement: str, said: str) -> None:
    letters("hold", "--case", "HB-2", "--reason", "court")
    prune(letters)
    with sqlite3.connect(oldruns.path(letters)) as connection:
        for (trigger,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {trigger}")
        connection.execute(statement)
    told = letters("verify", "--full")
    assert told.returncode == 1
    assert said in told.stdout


def test_nothing_is_removed_from_a_record_that_does_not_hold(letters: Shell) -> None:
    with sqlite3.connect(oldruns.path(letters)) as connection:
        connection.execute("DROP TRIGGER ledger_is_never_edited")
        connection.execute(EDIT + "2")
    said = letters(*PRUNE)
    assert said.returncode == 74
    assert "the entries that checkpoint 3 names are not those that are there: nothing is removed" in said.stderr
    assert rows(letters, "SELECT count(*) FROM ledger WHERE seq < 12") == [(11,)]


@pytest.mark.skipif(not can_trace(), reason="needs strace and the right to trace")
def test_a_fault_in_the_middle_leaves_the_triggers_and_a_whole_store(letters: Shell) -> None:
    letters("hold", "--case", "HB-2", "--reason", "court")
    for call, fault, n in (
        ("pwrite64", "signal=KILL", 6), ("pwrite64", "error=ENOSPC", 12), ("pwrite64", "signal=KILL", 18),
        ("pwrite64", "error=EIO", 3), ("fdatasync", "signal=KILL", 4), ("ftruncate", "signal=KILL", 2),
    ):  # fmt: skip
        letters.prefix = ("strace", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:{fault}:when={n}")
        assert letters(*PRUNE).returncode in (-9, 74)
        letters.prefix = ()
        with sqlite3.connect(oldruns.path(letters)) as connection, pytest.raises(sqlite3.IntegrityError):
            connection.execute("DELETE FROM ledger")
        assert letters("verify", "--full").returncode == 0
    prune(letters)
    assert rows(letters, "SELECT DISTINCT case_id FROM item ORDER BY 1") == [("HB-1",), ("HB-2",)]
    assert integrity(letters)["ok"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--reason", "x"], "prune: --keep D is needed: how long everything is kept (400d, 2y)"),
        (["--keep", "400d"], "prune: --reason TEXT is needed: who prunes says why"),
        (["--keep", "400", "--reason", "x"], "prune: --keep '400': a unit is wanted: 400d, 52w, 18mo, 2y"),
        (["--keep", "1h", "--reason", "x"], "prune: --keep '1h': a day is the least"),
        (["--keep", "0y", "--reason", "x"], "prune: --keep '0y': a day is the least"),
    ],
)
def test_what_is_refused(letters: Shell, arguments: list[str], said: str) -> None:
    done = letters("prune", *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"runguard: {said}\n")


def test_years_and_weeks_are_those_of_the_calendar(letters: Shell) -> None:
    assert "nothing is from before 2023-" in letters("prune", "--keep", "3y", "--reason", "x").stdout
    assert "nothing is from before 2024-" in letters("prune", "--keep", "104w", "--reason", "x").stdout


def test_the_space_is_given_back(letters: Shell) -> None:
    record(letters, 5, "2025-01-02T02:00:00Z", both(*(f"HB-{n}" for n in range(2000))))
    before = oldruns.path(letters).stat().st_size
    prune(letters, "--vacuum")
    assert oldruns.path(letters).stat().st_size < before / 2
    assert integrity(letters)["ok"]


def test_a_run_that_a_checkpoint_has_cut_in_two_goes_whole(shell: Shell) -> None:
    record(shell, 1, "2025-01-01T02:00:00Z", both("HB-1"), end=False)
    checkpoint(shell, "2025-01-03T00:00:00Z")
    end = {"run_id": oldruns.run_id(1), "outcome": "failed", "exit_status": 1, "output": None, "items": None}
    shell.write(("run.finish", "2025-01-03T01:00:00Z", end))
    with shell.open() as store, store.write() as tx:
        tx.store.control("UPDATE item_run SET complete = 1")
    record(shell, 2, "2025-01-03T02:00:00Z", both("HB-2"))
    checkpoint(shell, "2025-01-05T00:00:00Z")
    record(shell, 3, "2026-11-01T02:00:00Z", both("HB-3"))
    prune(shell)
    assert rows(shell, "SELECT number FROM run") == [(3,)]
    assert kinds(shell, 6) == ["checkpoint", "checkpoint"]
    assert integrity(shell)["since_seq"] == 6


def test_a_record_that_was_verified_long_ago_is_verified_from_the_prune_on(letters: Shell) -> None:
    with letters.open() as store, store.write() as tx:
        [(line,)] = tx.store.rows("line_at", seq=2)
        upto = {"upto_seq": 2, "upto_hash": hashlib.sha256(line).hexdigest()}
        tx.send("insert_verified", {"at_us": 0, "since_seq": 0, **upto, "problems": 0})
    prune(letters)
    told = letters.json("verify")[0]
    assert (told["ok"], told["since_seq"]) == (True, 8)


def test_an_anchor_of_a_pruned_entry_cannot_be_compared_any_more(letters: Shell) -> None:
    [(line,)] = rows(letters, "SELECT line FROM ledger WHERE seq = 2")
    anchor = f"2:{hashlib.sha256(line).hexdigest()}"
    prune(letters)
    done = letters("verify", "--full", "--anchor", anchor)
    assert done.returncode == 1
    assert "entry 2, which the anchor knows, was pruned by entry 14: it cannot be compared any more" in done.stdout


def test_what_was_said_about_the_rest_stays_with_it(shell: Shell) -> None:
    record(shell, 1, "2025-01-01T02:00:00Z", both("HB-1"))
    record(shell, 2, "2025-01-01T03:00:00Z", both("HB-2"))
    reason = {"reason": "b"}
    shell.write(
        ("correction", "2025-01-02T00:00:00Z", {"about": [{"run": oldruns.run_id(1)}], "wrong": "a", **reason}),
        ("correction", "2025-01-02T00:00:00Z", {"about": [{"run": oldruns.run_id(2)}], "wrong": "a", **reason}),
        ("defect", "2025-01-02T00:00:00Z", {"about": [{"code": "ab" * 32}], "reference": None, **reason}),
        ("hold", "2025-01-02T00:00:00Z", {"about": [{"case": "HB-2"}], **reason}),
        ("access", "2025-01-02T00:00:00Z", {"about": [{"case": "HB-2"}], "how": "explain", **reason}),
        ("access", "2025-01-02T00:00:00Z", {"about": [{"case": "HB-1"}], "how": "explain", **reason}),
    )
    checkpoint(shell, "2025-01-07T00:00:00Z")
    record(shell, 3, "2026-11-02T02:00:00Z", b"")
    prune(shell)
    assert kinds(shell, 10) == ["run.start", "run.finish", "correction", "defect", "hold", "access"]
    assert integrity(shell)["ok"]

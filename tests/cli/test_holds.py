"""`hold`, `release`, `correct`, `defect`: entries of the ledger with a reason, and what they are about."""

from __future__ import annotations

import hashlib

import pytest

import oldruns
from oldruns import both, entry
from shell import Shell

OLD = "2025-01-01T02:00:00Z"


@pytest.fixture
def letters(shell: Shell) -> Shell:
    """One run of the job letters, entries 1 and 2, with two cases."""
    oldruns.record(shell, 1, OLD, both("HB-1", "HB-2"))
    return shell


def test_a_hold_names_one_case_in_one_entry(letters: Shell) -> None:
    done = letters("hold", "--case", "HB-1", "--case", "HB-2", "--reason", "court order 7")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == ("held case HB-1: court order 7 (entry 3)\nheld case HB-2: court order 7 (entry 4)\n")
    held = entry(letters, 3)
    assert (held["kind"], held["about"], held["reason"]) == ("hold", [{"case": "HB-1"}], "court order 7")
    assert held["actor"]["uid"] is not None


@pytest.mark.parametrize(
    ("arguments", "about"),
    [
        (["--run", "1"], {"run": oldruns.run_id(1)}),
        (["--job", "letters"], {"job": "letters"}),
        (["--span", "2025-01-01..2025-02-01"], {"since": "2025-01-01T00:00:00Z", "until": "2025-02-01T00:00:00Z"}),
        (
            ["--job", "letters", "--span", "2025-01-01..2025-02-01"],
            {"job": "letters", "since": "2025-01-01T00:00:00Z", "until": "2025-02-01T00:00:00Z"},
        ),
    ],
)
def test_what_else_is_held(letters: Shell, arguments: list[str], about: dict[str, str]) -> None:
    assert letters("hold", *arguments, "--reason", "court").returncode == 0
    assert entry(letters, 3)["about"] == [about]
    done = letters("redact", "HB-1", "--reason", "asked")
    assert (done.returncode, done.stdout) == (2, "")
    assert "held by entry 3 (court); nothing was removed (runguard release 3 ends it)" in done.stderr


def test_a_case_that_is_not_on_record_is_held_for_what_comes(letters: Shell) -> None:
    done = letters("hold", "--case", "HB-3", "--reason", "court")
    assert done.stderr == "runguard: hold: nothing is on record of case HB-3; what comes is held all the same\n"
    oldruns.record(letters, 2, OLD, both("HB-3"))
    assert "held by entry 3" in letters("redact", "HB-3", "--reason", "asked").stderr


def test_a_release_ends_a_hold_by_its_entry(letters: Shell) -> None:
    letters("hold", "--case", "HB-1", "--reason", "court")
    done = letters("release", "3", "--reason", "it is over")
    assert done.stdout == "released case HB-1, held by entry 3: it is over (entry 4)\n"
    assert (entry(letters, 4)["about"], entry(letters, 4)["hold"]) == ([{"case": "HB-1"}], 3)
    again = letters("release", "3", "--reason", "it is over")
    assert (again.returncode, again.stderr) == (
        2, "runguard: release: entry 3 is no hold in force; nothing is held\n",
    )  # fmt: skip


def test_a_release_ends_every_hold_with_the_same_target(letters: Shell) -> None:
    for case in ("HB-1", "HB-2", "HB-1"):
        letters("hold", "--case", case, "--reason", "court")
    done = letters("release", "--case", "HB-1", "--reason", "over")
    assert done.stdout.count("released case HB-1") == 2
    assert "held by entry 4" in letters("redact", "HB-2", "--reason", "asked").stderr


def test_a_correction_leaves_the_original_as_it_is(letters: Shell) -> None:
    before = oldruns.rows(letters, "SELECT line FROM ledger WHERE seq <= 2")
    done = letters("correct", "2", "--wrong", "the duration", "--right", "2 h", "--reason", "the clock was wrong")
    assert done.stdout == "corrected entry 2: the duration (entry 3)\n"
    said = entry(letters, 3)
    assert [said[key] for key in ("kind", "about", "wrong", "right", "reason")] == [
        "correction", [{"entry": 2}], "the duration", "2 h", "the clock was wrong",
    ]  # fmt: skip
    assert oldruns.rows(letters, "SELECT line FROM ledger WHERE seq <= 2") == before


@pytest.mark.parametrize(
    ("target", "about"),
    [
        (["--run", "1"], {"run": oldruns.run_id(1)}),
        (["00000001-"], {"run": oldruns.run_id(1)}),
        (["--case", "HB-2"], {"case": "HB-2"}),
        (["--case", "HB-2", "--run", "1"], {"case": "HB-2", "run": oldruns.run_id(1)}),
        (["--run", "1", "--seq", "3"], {"case": "HB-2", "run": oldruns.run_id(1), "record": 3}),
    ],
)
def test_what_else_is_corrected(letters: Shell, target: list[str], about: dict[str, str]) -> None:
    assert letters("correct", *target, "--wrong", "x", "--reason", "y").returncode == 0
    assert entry(letters, 3)["about"] == [about]


def test_a_defect_is_tied_to_the_hash_of_a_file(letters: Shell) -> None:
    program = letters.directory / "send"
    program.write_bytes(b"#!/bin/sh\n")
    digest = hashlib.sha256(b"#!/bin/sh\n").hexdigest()
    done = letters("defect", str(program), "--reason", "rounds down", "--reference", "T-9", "--since", "2025-01-01")
    assert done.returncode == 0
    said = entry(letters, 3)
    assert said["about"] == [{"code": digest, "since": "2025-01-01T00:00:00Z", "until": None}]
    assert (said["kind"], said["reference"], said["reason"]) == ("defect", "T-9", "rounds down")


@pytest.mark.parametrize(("code", "about"), [("AB" * 32, {"code": "ab" * 32}), ("cd" * 20, {"commit": "cd" * 20})])
def test_a_defect_is_tied_to_a_hash_or_a_commit(letters: Shell, code: str, about: dict[str, str]) -> None:
    letters("defect", code, "--reason", "rounds down")
    assert entry(letters, 3)["about"] == [about]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["hold", "--case", "HB-1"], "hold: --reason TEXT is needed: who holds says why"),
        (["hold", "--case", "HB-1", "--reason", " "], "hold: --reason TEXT is empty: who holds says why"),
        (["hold", "--reason", "x"], "hold: name what: --case ID, --run RUN, --job JOB, or --span SINCE..UNTIL"),
        (["hold", "--reason", "x", "--case", "a", "--run", "1"], "hold: either cases, a run, or a job and a span"),
        (["hold", "--reason", "x", "--job", "lettres"], "hold: no job 'lettres' on record; did you mean letters?"),
        (["hold", "--reason", "x", "--case", ""], "hold: '' is no case id: 1 to 200 characters"),
        (
            ["hold", "--reason", "x", "--span", "2025-01-01"],
            "hold: --span: '2025-01-01' is no span: SINCE..UNTIL is wanted, as in 2026-03-01..2026-04-01",
        ),
        (
            ["hold", "--reason", "x", "--span", "2025-01-02..2025-01-01"],
            "hold: --span: 2025-01-02T00:00:00Z is not before 2025-01-01T00:00:00Z",
        ),
        (
            ["release", "--reason", "x"],
            "release: name one: the entry of a hold, or what it is about (--case, --run, --job, --span)",
        ),
        (["release", "2", "--reason", "x"], "release: entry 2 is no hold in force; nothing is held"),
        (["release", "--case", "HB-1", "--reason", "x"], "release: case HB-1 is not held; nothing is held"),
        (["correct", "2", "--reason", "x"], "correct: --wrong TEXT is needed: what is wrong?"),
        (["correct", "9", "--wrong", "x", "--reason", "x"], "correct: the ledger has no entry 9 (the last is 2)"),
        (["correct", "--case", "HB-9", "--wrong", "x", "--reason", "x"], "correct: nothing is on record of case HB-9"),
        (["defect", "/nowhere", "--reason", "x"], "defect: '/nowhere' is no code: No such file or directory"
         " (a SHA-256, the id of a commit, or a file)"),
        (["defect", "ab" * 32], "defect: --reason TEXT is needed: what is wrong with it?"),
    ],
)  # fmt: skip
def test_what_is_refused(letters: Shell, arguments: list[str], said: str) -> None:
    done = letters(*arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"runguard: {said}\n")
    assert oldruns.rows(letters, "SELECT max(seq) FROM ledger") == [(2,)]

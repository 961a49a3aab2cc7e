"""`redact`: the text of a case is gone, and what the lists prove stays proved."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import oldruns
from oldruns import both, can_trace, done, entry, intent, rows
from shell import Shell

OLD = "2025-01-01T02:00:00Z"
TORN = b'{"case":"HB-2","phase":"int\n'


@pytest.fixture
def letters(shell: Shell) -> Shell:
    """Two runs, entries 1 to 4: three cases, one of which is uncertain and has a torn line."""
    oldruns.record(shell, 1, OLD, both("HB-1", "HB-3") + intent("HB-2", reason="Müller") + TORN)
    oldruns.record(shell, 2, "2025-01-02T02:00:00Z", both("HB-2", "HB-20"))
    return shell


def redact(shell: Shell, *arguments: str) -> str:
    said = shell("redact", *arguments, "--reason", "article 17")
    assert said.returncode == 0, said.stderr
    return said.stdout


def test_the_record_lines_go_and_their_hashes_stay(letters: Shell) -> None:
    said = redact(letters, "HB-2", "--authority", "decision 4")
    assert said == (
        "removed 3 case entries of 2 runs and the text of 1 rejected line, case HB-2; "
        "the lists stay as they are (entry 5)\n"
    )
    assert rows(letters, "SELECT DISTINCT case_id FROM item ORDER BY 1") == [("HB-1",), ("HB-20",), ("HB-3",)]
    assert rows(letters, "SELECT count(*) FROM item_open") == [(0,)]
    assert rows(letters, "SELECT head, why FROM item_rejected") == [(b"", "its text was removed by entry 5")]
    assert letters.json("verify")[0]["removed"] == [
        {"seq": 5, "text": "3 records lawfully removed by entry 5; list intact"}
    ]


def test_no_byte_of_it_is_left_in_the_file(letters: Shell) -> None:
    assert "Müller".encode() in oldruns.path(letters).read_bytes()
    redact(letters, "HB-2")
    left = oldruns.path(letters).read_bytes()
    assert "Müller".encode() not in left
    assert b'"HB-2"' not in left


def test_the_entry_does_not_spell_the_case(letters: Shell) -> None:
    redact(letters, "HB-2", "--authority", "decision 4")
    said = entry(letters, 5)
    assert "HB-2" not in json.dumps(said)
    assert (said["authority"], said["reason"]) == ("decision 4", "article 17")
    assert [each["seq"] for each in said["records"]] == [5, 1, 2]
    [target] = said["about"]
    assert [len(target["erased"]), len(said["rejected"])] == [64, 1]


def test_the_store_still_knows_that_the_case_was_redacted(letters: Shell) -> None:
    redact(letters, "HB-2")
    said = letters("redact", "HB-2", "--reason", "again")
    assert (said.returncode, said.stderr) == (
        2, "runguard: redact: nothing is on record of case HB-2: it was redacted before, by entry 5\n",
    )  # fmt: skip


def test_one_case_entry_is_redacted_alone(letters: Shell) -> None:
    assert redact(letters, "--run", "2", "--seq", "1") == (
        "removed 1 case entry of run 2, case HB-2; the lists stay as they are (entry 5)\n"
    )
    left = rows(letters, "SELECT seq, said FROM item WHERE case_id = 'HB-2'")
    assert left == [(5, "intent"), (2, "done")]


def test_a_dry_run_does_nothing(letters: Shell) -> None:
    said = redact(letters, "HB-2", "--dry-run")
    assert said == (
        "would remove 3 case entries of 2 runs and the text of 1 rejected line, case HB-2; nothing was done\n"
    )
    assert rows(letters, "SELECT max(seq) FROM ledger") == [(4,)]


def test_what_stays_is_named(letters: Shell) -> None:
    letters("hold", "--case", "HB-2", "--reason", "court")
    letters("release", "5", "--reason", "over")
    said = letters("redact", "HB-2", "--reason", "article 17")
    assert "entries that name the case stay, for the ledger is never edited: 5 (hold), 6 (release)\n" in said.stderr
    assert "exports, backups and copies of the file that were made before are out of reach\n" in said.stderr


def test_entries_that_spell_the_case_in_another_field_are_named_too(shell: Shell) -> None:
    lines = (intent("HB-2") + done("HB-2")).decode().splitlines()
    job = 'printf "%s\\n" "$1" "$2" >>"$RUNGUARD_ITEMS"'
    assert shell("run", "--job", "letters", "--", "sh", "-c", job, "HB-20", *lines).returncode == 0
    assert shell("correct", "--run", "1", "--wrong", "HB-2 and HB-3", "--reason", "typo").returncode == 0
    said = shell("redact", "HB-2", "--reason", "article 17")
    numbers = {entry(shell, seq)["kind"]: seq for (seq,) in rows(shell, "SELECT seq FROM ledger")}
    start, correction = numbers["run.start"], numbers["correction"]
    assert f"never edited: {start} (run.start), {correction} (correction)\n" in said.stderr


def test_output_that_names_the_case_stays_and_is_named(shell: Shell) -> None:
    job = (
        "printf '%s\\n' '"
        + (intent("HB-2") + done("HB-2")).decode().strip().replace("\n", "' '")
        + "' >> $RUNGUARD_ITEMS"
    )
    assert shell("run", "-j", "x", "-c", f"{job}; echo wrote to HB-2").returncode == 0
    said = shell("redact", "HB-2", "--reason", "article 17")
    assert "the kept output of run 1 holds the id and stays until it is pruned\n" in said.stderr
    assert shell("verify").returncode == 0


def test_a_record_that_is_deleted_without_an_entry_is_found(letters: Shell) -> None:
    redact(letters, "HB-2")
    with letters.open() as store, store.write() as tx:
        store.control("DROP TRIGGER item_is_never_deleted")
        store.control("DELETE FROM item WHERE case_id = 'HB-1' AND said = 'done'")
        tx.send("lower", {})
    said = letters("verify", "--full")
    assert said.returncode == 1
    assert "case entry 2 is missing, and no entry removed it" in said.stdout


def test_nothing_can_be_deleted_afterwards(letters: Shell) -> None:
    redact(letters, "HB-2")
    import sqlite3

    with sqlite3.connect(oldruns.path(letters)) as connection:
        for table in ("ledger", "item", "item_list", "item_rejected"):
            with pytest.raises(sqlite3.IntegrityError):
                connection.execute(f"DELETE FROM {table}")
        assert connection.execute("SELECT count(*) FROM lifted").fetchone() == (0,)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["HB-1"], "redact: --reason TEXT is needed: who redacts says why"),
        (["--reason", "x"], "redact: either CASE, or --run RUN and --seq N"),
        (["HB-1", "--run", "1", "--seq", "1", "--reason", "x"], "redact: either CASE, or --run RUN and --seq N"),
        (["--run", "1", "--reason", "x"], "redact: either CASE, or --run RUN and --seq N"),
        (["HB-9", "--reason", "x"], "redact: nothing is on record of case HB-9"),
        (["--run", "1", "--seq", "9", "--reason", "x"], "redact: run 1 has no case entry 9 on record"),
        (
            ["HB-1", "--reason", "HB-1 asked for it"],
            "redact: --reason or --authority spells the case id, and stays in the ledger: say it otherwise",
        ),
    ],
)
def test_what_is_refused(letters: Shell, arguments: list[str], said: str) -> None:
    told = letters("redact", *arguments)
    assert (told.returncode, told.stdout, told.stderr) == (2, "", f"runguard: {said}\n")
    assert rows(letters, "SELECT max(seq) FROM ledger") == [(4,)]


def test_a_case_of_a_run_that_is_not_over_is_refused(letters: Shell) -> None:
    oldruns.record(letters, 3, "2025-01-03T02:00:00Z", both("HB-2"), end=False)
    told = letters("redact", "HB-2", "--reason", "x")
    assert told.stderr == (
        "runguard: redact: run 3 is not over, or not all of its case entries are on record; wait for that\n"
    )
    assert rows(letters, "SELECT count(*) FROM item WHERE case_id = 'HB-2'") == [(5,)]


def test_explain_still_tells_that_something_was_removed(letters: Shell) -> None:
    redact(letters, "HB-2", "--authority", "decision 4")
    said = letters("explain", "HB-2")
    assert said.returncode == 0
    assert "what run 2 recorded of it was lawfully removed by entry 5" in said.stdout
    assert "removed 3 records lawfully; authority: decision 4: article 17" in said.stdout
    asked = entry(letters, 6)
    assert (asked["kind"], asked["about"]) == ("access", entry(letters, 5)["about"])


def test_explain_of_another_case_tells_nothing_of_it(letters: Shell) -> None:
    redact(letters, "HB-2")
    assert "removed" not in letters("explain", "HB-20").stdout


def test_the_key_without_which_nobody_finds_the_case_is_no_part_of_the_ledger(letters: Shell) -> None:
    redact(letters, "HB-2")
    [(secret,)] = rows(letters, "SELECT secret FROM erasure")
    lines = b"".join(line for (line,) in rows(letters, "SELECT line FROM ledger"))
    assert secret.hex().encode() not in lines
    assert b"HB-2" not in lines


def test_no_entry_spells_a_case_that_is_uncertain_although_it_is_said(shell: Shell) -> None:
    run = ("run", "-j", "x", "-s", "@daily", "-z", "UTC", "--scheduled-at", "2026-03-01T00:00Z")
    told = shell.directory / "told"
    told.write_bytes(intent("HB-2"))  # the command line shall not spell it
    assert shell(*run, "-c", f"cat {told} >> $RUNGUARD_ITEMS; kill -9 $PPID $$").returncode == -9
    assert "1 case is uncertain: HB-2" in shell(*run, "true").stderr
    assert "1 case is uncertain: HB-2" in shell(*run, "--reason", "looked", "-c", "exit 3").stderr
    lines = b"".join(line for (line,) in rows(shell, "SELECT line FROM ledger"))
    assert b"1 case is uncertain" in lines
    assert b"HB-2" not in lines


def test_what_waits_in_the_file_of_a_dead_guard_is_not_forgotten(letters: Shell) -> None:
    told = letters.directory / "told"
    told.write_bytes(both("HB-2"))
    letters("run", "-j", "x", "-c", f"cat {told} >> $RUNGUARD_ITEMS; kill -9 $PPID")
    said = letters("redact", "HB-2", "--reason", "article 17")
    assert said.returncode == 2
    assert "names the case and is not on record yet: the job's next start takes it in" in said.stderr
    letters("run", "-j", "x", "true")
    assert redact(letters, "HB-2").startswith("removed 5 case entries of 3 runs")


def test_a_run_beside_it_goes_on_and_all_is_whole(letters: Shell) -> None:
    """Cases are redacted and pruned, and bundles made, while a job tells of others."""
    job = """for n in $(seq 400); do
        echo '{"case":"N-'$n'","phase":"result","result":"done","action":"x"}' >> $RUNGUARD_ITEMS
        [ $((n % 40)) = 0 ] && sleep 0.05
    done"""
    command = [sys.executable, "-m", "runguard", "run", "-j", "x", "-c", job]
    with subprocess.Popen(command, env=letters.environ, cwd=letters.directory, stderr=subprocess.PIPE) as run:
        redact(letters, "HB-2")
        assert letters("prune", "--keep", "400d", "--reason", "policy", "--vacuum").returncode == 0
        assert letters("export", "--case", "HB-20", "-o", "bundle").returncode in (0, 2)
        assert b"journal" not in run.stderr.read() if run.stderr else True
        assert run.wait() == 0
    told = letters.json("verify", "--full")[0]
    assert (told["ok"], told["records"] >= 400) == (True, True)


@pytest.mark.skipif(not can_trace(), reason="needs strace and the right to trace")
def test_a_fault_in_the_middle_removes_all_of_it_or_nothing(letters: Shell) -> None:
    for n, fault in ((3, "signal=KILL"), (9, "error=ENOSPC"), (15, "signal=KILL")):
        letters.prefix = ("strace", "-o", "/dev/null", "-e", f"inject=pwrite64:{fault}:when={n}")
        assert letters("redact", "HB-2", "--reason", "article 17").returncode in (-9, 74)
        letters.prefix = ()
        said = letters("verify", "--full")
        assert said.returncode == 0
        [(left,)] = rows(letters, "SELECT count(*) FROM item WHERE case_id = 'HB-2'")
        assert (left, "lawfully removed" in said.stdout) in ((3, False), (0, True))
        if not left:
            return
    redact(letters, "HB-2")

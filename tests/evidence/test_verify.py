"""The record is held against itself and against what was kept elsewhere: each way to touch it is found and named."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import shutil
import sqlite3
import subprocess
import sys
import time
from typing import Any

import pytest

from runguard import clock
from runguard.evidence import checkpoints, signing
from runguard.instant import from_rfc3339
from shell import Shell
from spoilt import unguarded

LETTERS = ("run", "-j", "letters", "-s", "0 2 * * *", "-z", "UTC", "--scheduled-at")


@pytest.fixture
def written(shell: Shell) -> Shell:
    """A store with three runs of one job whose other windows are waived: entries 1 to 9."""
    for day in ("01", "02", "03"):
        assert shell(*LETTERS, f"2026-03-{day}T02:00Z", "--", "echo", day).returncode == 0
    shell("waive", "letters", "--since", "2026-03-03T12:00Z", "--until", "now", "--reason", "nothing to send")
    shell("retire", "letters", "--reason", "nothing more is missing")
    return shell


def spoil(shell: Shell, *statements: str) -> None:
    with unguarded(shell.state / "db" / "runguard.sqlite") as database:
        for statement in statements:
            database.execute(statement)


def verified(shell: Shell, *options: str) -> tuple[int, list[dict[str, Any]], list[str]]:
    """Return the status, the two verdicts, and the texts of what was found about integrity."""
    done = shell("verify", "--json", *options)
    verdicts = json.loads(done.stdout)
    return done.returncode, verdicts, [each["text"] for each in verdicts[0]["findings"]]


def line_at(shell: Shell, seq: int) -> bytes:
    database = sqlite3.connect(shell.state / "db" / "runguard.sqlite")
    ((line,),) = database.execute("SELECT line FROM ledger WHERE seq = ?", (seq,))
    database.close()
    return line


def test_a_record_that_nobody_touched_is_ok(written: Shell) -> None:
    status, (integrity, completeness), found = verified(written)
    assert (status, found, completeness["ok"]) == (0, [], True)
    assert (integrity["ok"], integrity["since_seq"], integrity["entries"]) == (True, 1, 9)


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        (
            "UPDATE ledger SET line = CAST(replace(CAST(line AS TEXT), 'succeeded', 'failed') AS BLOB) WHERE seq = 3",
            "entry 4 does not continue entry 3: one of the two was changed after it was written",
        ),
        ("UPDATE ledger SET line = x'7b7d0a' WHERE seq = 3", "entry 3 is no line of the ledger: changed after it was"),
        ("DELETE FROM ledger WHERE seq = 4", "entry 4 is missing: deleted after they were written"),
        ("DELETE FROM ledger WHERE seq IN (4, 5)", "entries 4 to 5 are missing: deleted after they were written"),
        ("DELETE FROM ledger WHERE seq > 6", "the ledger ends at 6, and the witness knows entry 9: its tail"),
        ("DELETE FROM ledger", "the ledger is empty, and the witness knows entry 9"),
        ("UPDATE run SET outcome = 'failed', returned = 1 WHERE number = 2", "the tables tell entry 5 other"),
        ("UPDATE run SET window_key = 'L1999-01-01T02:00' WHERE number = 2", "the tables tell entry 4 ot"),
        ("DELETE FROM run WHERE number = 3", "entry 6 has no row in the tables"),
        ("DELETE FROM revision WHERE number = 1", "entry 1 has no row in the tables"),
        ("UPDATE output SET head = x'00'", "the kept output (head) of the run that entry 3 ended was changed"),
    ],
)  # fmt: skip
def test_what_was_touched_is_found_and_named(written: Shell, statement: str, text: str) -> None:
    spoil(written, statement)
    status, _, found = verified(written)
    assert status == 1
    assert any(each.startswith(text) for each in found), found


def test_entries_that_changed_places_are_found(written: Shell) -> None:
    spoil(
        written,
        "UPDATE ledger SET seq = 99 WHERE seq = 4",
        "UPDATE ledger SET seq = 4 WHERE seq = 6",
        "UPDATE ledger SET seq = 6 WHERE seq = 99",
    )
    _, _, found = verified(written)
    assert "in the place of entry 4 stands one that says it is 6: moved or put in" in found
    assert "in the place of entry 6 stands one that says it is 4: moved or put in" in found


def test_an_entry_put_in_is_found(written: Shell) -> None:
    line = line_at(written, 5).replace(b'"seq":5', b'"seq":10')
    spoil(written, f"INSERT INTO ledger VALUES (10, x'{line.hex()}')")
    _, _, found = verified(written)
    assert "entry 10 does not continue entry 9: one of the two was changed after it was written" in found


def test_an_older_copy_in_its_place_is_found(written: Shell) -> None:
    database = written.state / "db" / "runguard.sqlite"
    shutil.copy(database, written.directory / "older")
    written("run", "-j", "x", "--", "true")
    shutil.copy(written.directory / "older", database)
    status, _, found = verified(written)
    assert (status, len(found)) == (1, 1)
    assert found[0].startswith("the ledger ends at 9, and the witness knows entry 12: its tail was cut off")


def test_a_witness_that_was_damaged_or_has_gone_is_told(written: Shell) -> None:
    [witness] = (written.state / "witness").iterdir()
    witness.write_text("nothing\n")
    status, _, found = verified(written)
    assert (status, found) == (1, [f"witness {witness}: it is damaged; the ledger is not held against it"])
    database = written.state / "db" / "runguard.sqlite"
    database.rename(f"{database}.away")
    assert written("verify").returncode == 74
    database.with_name(f"{database.name}.away").rename(database)
    witness.unlink()
    assert "entries 1 to 9, 0 checkpoints, no witness" in " ".join(written("verify", "--full").stdout.split())


def test_a_chain_that_was_written_anew_differs_from_an_anchor_that_somebody_kept(written: Shell) -> None:
    anchor = f"3:{hashlib.sha256(line_at(written, 3)).hexdigest()}"
    assert verified(written, "--anchor", anchor)[0] == 0
    database = sqlite3.connect(written.state / "db" / "runguard.sqlite")
    previous, anew = "0" * 64, []
    for seq, line in database.execute("SELECT seq, line FROM ledger ORDER BY seq"):
        entry = json.loads(line.replace(b"letters", b"LETTERS")) | {"prev": previous}
        fresh = (json.dumps(entry, separators=(",", ":")) + "\n").encode()
        previous = hashlib.sha256(fresh).hexdigest()
        anew.append(f"UPDATE ledger SET line = x'{fresh.hex()}' WHERE seq = {seq}")
    database.close()
    spoil(written, *anew, "UPDATE run SET job = 'LETTERS'", "DELETE FROM job", "UPDATE revision SET job = 'LETTERS'")
    _, _, found = verified(written, "--anchor", anchor, "--full")
    assert "entry 3 is not the one that the anchor knows: the ledger was written anew" in found
    assert "entry 9 is not the one that the witness knows: the ledger was written anew" in found


def test_a_second_look_begins_where_the_first_ended_and_full_looks_at_all(written: Shell) -> None:
    assert verified(written)[1][0]["entries"] == 9
    written("run", "-j", "x", "--", "true")
    _, (integrity, _), _ = verified(written)
    assert (integrity["since_seq"], integrity["entries"]) == (10, 3)
    assert verified(written, "--full")[1][0]["entries"] == 12


def test_what_was_verified_and_changed_since_is_found_by_its_last_entry_or_by_looking_at_all(written: Shell) -> None:
    verified(written)
    changed = "UPDATE ledger SET line = CAST(replace(CAST(line AS TEXT), 'letters', 'LETTERS') AS BLOB) WHERE seq = "
    spoil(written, changed + "2")
    assert verified(written)[2] == []
    assert verified(written, "--full")[0] == 1
    spoil(written, changed + "9")
    assert "entry 9 is not what it was when the ledger was last verified" in verified(written)[2]


def test_a_window_that_nobody_answered_is_a_finding_of_completeness_alone(shell: Shell) -> None:
    shell("run", "-j", "letters", "-s", "0 2 * * *", "-z", "UTC", "--scheduled-at", "2026-03-01T02:00Z", "--", "true")
    status, (integrity, completeness), _ = verified(shell)
    assert (status, integrity["ok"], completeness["ok"]) == (1, True, False)
    text = completeness["findings"][0]["text"]
    assert text.startswith("letters: nobody answered ")
    assert text.endswith("the first L2026-03-02T02:00: runguard missing letters")


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("DROP TRIGGER ledger_is_never_edited", "the trigger ledger_is_never_edited is missing"),
        ("DROP INDEX run_of_window", "the index run_of_window is missing"),
        ("CREATE TABLE mine (x)", "the table mine is not runguard's: put in"),
        ("CREATE VIEW v AS SELECT 1", "the view v is not runguard's: put in"),
        ("INSERT INTO lifted SELECT max(seq) FROM ledger", "the triggers that refuse changes are lifted"),
    ],
)
def test_tables_and_triggers_are_as_runguard_makes_them(written: Shell, statement: str, text: str) -> None:
    with sqlite3.connect(written.state / "db" / "runguard.sqlite") as database:
        database.execute(statement)
    assert verified(written, "--full")[2] == [text]


def test_a_trigger_that_does_nothing_is_found(written: Shell) -> None:
    name = "ledger_is_never_edited"
    with sqlite3.connect(written.state / "db" / "runguard.sqlite") as database:
        database.execute(f"DROP TRIGGER {name}")
        database.execute(f"CREATE TRIGGER {name} BEFORE UPDATE ON ledger BEGIN SELECT 1; END")
    assert verified(written, "--full")[2] == [f"the trigger {name} is not as runguard makes it: changed"]


def test_an_index_that_leads_astray_is_found(written: Shell) -> None:
    path = written.state / "db" / "runguard.sqlite"
    with sqlite3.connect(path) as database:
        [(page,)] = database.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'run_of_job'")
        [(size,)] = database.execute("PRAGMA page_size")
    data = bytearray(path.read_bytes())
    at = data.index(b"letters", (page - 1) * size)
    data[at : at + 7] = b"LETTERS"
    path.write_bytes(data)
    found = verified(written, "--full")[2]
    assert any(each.startswith("SQLite: ") and "run_of_job" in each for each in found), found


def test_nothing_recorded_is_no_finding(shell: Shell) -> None:
    done = shell("verify")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", shell.nothing_recorded)


def test_a_store_that_was_removed_is_history_lost(written: Shell) -> None:
    (written.state / "db" / "runguard.sqlite").unlink()
    done = written("verify")
    assert done.returncode == 74
    assert "history lost" in done.stderr


def test_people_read_two_lines_and_what_was_found(written: Shell) -> None:
    spoil(written, "DELETE FROM ledger WHERE seq = 4")
    lines = written("verify").stdout.splitlines()
    assert lines[1].startswith("integrity     2 found  entries 1 to 9, 0 checkpoints")
    assert lines[2] == "completeness  ok       every expected window is answered"
    assert lines[3] == "  entry 4 is missing: deleted after they were written"


def test_people_are_spared_the_thousandth_finding(written: Shell) -> None:
    rows = ", ".join(f"('{n}', 0, 1)" for n in range(70))
    spoil(written, f"INSERT INTO job VALUES {rows}")
    lines = written("verify").stdout.splitlines()
    assert lines[1].startswith("integrity     70 found")
    assert (len(lines), lines[-1]) == (54, "  and 20 more: --json names them all")


@pytest.mark.parametrize("anchor", ["", "3", "3:abc", "x:" + "0" * 64, "0:" + "0" * 64, "3:" + "Z" * 64])
def test_an_anchor_that_is_none_is_a_usage_error(written: Shell, anchor: str) -> None:
    done = written("verify", "--anchor", anchor)
    assert (done.returncode, done.stdout) == (2, "")
    assert "SEQ:SHA256 is wanted" in done.stderr


@pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="needs ssh-keygen")
def test_a_signature_that_does_not_hold_is_found(written: Shell) -> None:
    for name in ("ours", "another"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", written.directory / name], check=True)
    written.config.write_text(f'sign_key = "{written.directory}/ours"\n')
    spoil(written, "UPDATE run SET started_us = 0")
    written("run", "-j", "x", "--", "true")
    spoil(written, "UPDATE run SET started_us = 1 WHERE started_us = 0")
    _, (integrity, _), found = verified(written, "--full")
    assert (integrity["checkpoints"], integrity["signed"]) == (1, 1)
    assert not any("signature" in each for each in found)
    _, _, found = verified(written, "--full", "--public-key", str(written.directory / "another.pub"))
    assert any(each.startswith("the signature of checkpoint 13 does not hold: ssh-keygen: ") for each in found)
    spoil(written, "DELETE FROM signature")
    assert "checkpoint 13 is not signed" in verified(written, "--full")[2]


@pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="needs ssh-keygen")
def test_a_signature_that_the_next_checkpoint_has_seen_must_stay(written: Shell) -> None:
    key = str(written.directory / "ours")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    for day, signs in ((1, False), (2, True), (3, True)):
        with written.open() as store:
            with store.write() as tx:
                (made,) = checkpoints.make(tx, from_rfc3339(f"2099-01-0{day}T00:00:00Z"))
            if signs:
                with store.write() as tx:
                    text = signing.sign(key, made.line, written.environ)
                    tx.send("insert_signature", {"seq": made.seq, "text": text})
    assert verified(written, "--full")[2] == []
    spoil(written, "DELETE FROM signature WHERE seq = (SELECT min(seq) FROM signature)")
    assert verified(written, "--full")[2] == ["the signature of checkpoint 11 was removed"]


@pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="needs ssh-keygen")
def test_a_checkpoint_that_is_being_signed_is_no_finding(written: Shell) -> None:
    key = str(written.directory / "ours")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    written.config.write_text(f'sign_key = "{key}"\n')
    with written.open() as store:
        spoil(written, "UPDATE run SET started_us = started_us - 90000000000 WHERE number = 1")
        with store.write() as tx:
            (made,) = checkpoints.make(tx, clock.look().wall_us)
        spoil(written, "UPDATE run SET started_us = started_us + 90000000000 WHERE number = 1")
        looking = subprocess.Popen(
            [sys.executable, "-m", "runguard", "verify", "--full"], env=written.environ, stdout=subprocess.DEVNULL
        )
        time.sleep(0.5)  # it is at it, or has not begun: both are in order
        with store.write() as tx:
            text = signing.sign(key, made.line, written.environ)
            tx.send("insert_signature", {"seq": made.seq, "text": text})
    assert looking.wait(timeout=30) == 0


def append(store: str, witness: str, worker: int) -> None:
    from runguard.store.lines import Author
    from runguard.store.sqlite import open_store

    author = Author(f"writer{worker}", {"uid": 0, "user": "ann", "login": None, "sudo_user": None}, "0")
    with open_store(store, author=author, create=True, witness_directory=witness) as opened:
        for n in range(4):
            with opened.write() as tx:
                tx.append("clock", worker * 10 + n, {"run_id": None, "stepped_s": 1.0})


def test_fifty_writers_at_once_make_one_chain(shell: Shell) -> None:
    shell("run", "-j", "x", "--", "true")
    store, witness = str(shell.state / "db" / "runguard.sqlite"), str(shell.state / "witness")
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=append, args=(store, witness, worker)) for worker in range(50)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert [writer.exitcode for writer in writers] == [0] * 50
    status, (integrity, _), found = verified(shell)
    assert (status, found, integrity["entries"]) == (0, [], 203)

"""Case entries are held against the lists that the ledger names: each way to touch one is found and named."""

from __future__ import annotations

import json
import sqlite3
import textwrap

import pytest

from guarded import guarded
from shell import Shell, wait_until
from spoilt import unguarded

JOB = textwrap.dedent("""\
    import json, os
    items = os.open(os.environ["RUNGUARD_ITEMS"], os.O_WRONLY | os.O_APPEND)
    for n in range(1, 126):
        for phase in ({"phase": "intent"}, {"phase": "result", "result": "done"}):
            entry = {"case": f"HB-{n}", "action": "letter", **phase}
            os.write(items, (json.dumps(entry) + chr(10)).encode())
    os.write(items, b"this is no entry\\n")
""")


@pytest.fixture
def written(shell: Shell) -> Shell:
    """A store with one run of 250 case entries and one line that was rejected."""
    (shell.directory / "job.py").write_text(JOB)
    assert shell("run", "-j", "letters", "--", "/usr/bin/env", "python3", "job.py").returncode == 0
    return shell


def touch(shell: Shell, statement: str) -> None:
    with unguarded(shell.state / "db" / "runguard.sqlite") as database:
        database.create_function("edited", 1, lambda line: line.replace(b"letter", b"LETTER"))
        database.execute(statement)


def found(shell: Shell) -> list[str]:
    verdict = json.loads(shell("verify", "--full", "--json").stdout)[0]
    return [each["text"].partition(": ")[2] for each in verdict["findings"]]


def test_entries_that_nobody_touched_are_counted(written: Shell) -> None:
    verdict = json.loads(written("verify", "--json").stdout)[0]
    assert (verdict["ok"], verdict["records"], verdict["findings"]) == (True, 250, [])


@pytest.mark.parametrize(
    ("statement", "texts"),
    [
        ("UPDATE item SET line = edited(line) WHERE seq = 7", ["case entry 7 was changed after it was written"]),
        ("UPDATE item SET line = edited(line) WHERE seq = 250", ["case entry 250 was changed after it was written"]),
        ("DELETE FROM item WHERE seq = 7", ["case entry 7 is missing, and no entry removed it"]),
        (
            "DELETE FROM item WHERE seq IN (249, 250)",
            [
                "case entry 249 is missing, and no entry removed it",
                "case entry 250 is missing, and no entry removed it",
            ],
        ),
        (
            "INSERT INTO item (id, case_id, said, file_offset, received_us, line)"
            " SELECT id + 1, case_id, said, 999999, received_us, line FROM item WHERE seq = 250",
            ["case entry 251 is in no list: put in"],
        ),
        ("UPDATE item SET case_id = 'HB-9' WHERE seq = 7", ["case entry 7 is filed as another than it is"]),
        ("UPDATE item SET said = 'failed' WHERE seq = 8", ["case entry 8 is filed as another than it is"]),
        ("DELETE FROM item_rejected", ["its rejected lines are not those that entry 4 names"]),
    ],
)
def test_what_was_touched_is_found_and_named(written: Shell, statement: str, texts: list[str]) -> None:
    last = max(int(each) for each in [entry["seq"] for entry in written.entries(written.json("history")[0]["run_id"])])
    touch(written, statement)
    assert [text.replace(f"entry {last} names", "entry 4 names") for text in found(written)] == texts


def test_entries_that_changed_places_are_found(written: Shell) -> None:
    touch(written, "UPDATE item SET id = id + 1000000 WHERE seq = 3")
    touch(written, "UPDATE item SET id = id - 1 WHERE seq = 4")
    touch(written, "UPDATE item SET id = id - 999999 WHERE seq = 1000003")
    texts = found(written)
    assert "case entry 3 was changed after it was written" in texts
    assert "case entry 4 was changed after it was written" in texts


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE item_list SET digests = zeroblob(length(digests)) WHERE id = (SELECT min(id) FROM item_list)",
        "DELETE FROM item_list WHERE id = (SELECT max(id) FROM item_list)",
        "DELETE FROM item_list WHERE id = (SELECT min(id) FROM item_list)",
    ],
)
def test_a_list_that_was_touched_is_found(written: Shell, statement: str) -> None:
    touch(written, statement)
    assert found(written)


def test_all_entries_of_a_run_and_their_lists_removed_together_are_found(written: Shell) -> None:
    touch(written, "DELETE FROM item")
    touch(written, "DELETE FROM item_list")
    assert any("counts 250 case entries, and 0 are listed" in text for text in found(written))


def test_while_a_run_lives_what_is_in_no_list_yet_is_no_finding(shell: Shell) -> None:
    job = JOB + "import time\nfor _ in range(2000): os.path.exists('go') or time.sleep(0.02)\n"
    (shell.directory / "job.py").write_text(job)
    guard = guarded(shell, "--", "/usr/bin/env", "python3", "job.py", job="letters")
    wait_until(lambda: (shell.state / "db" / "runguard.sqlite").exists() and on_record(shell) == 250)
    assert found(shell) == []
    (shell.directory / "go").touch()
    assert guard.wait(timeout=30) == 0
    assert found(shell) == []


def on_record(shell: Shell) -> int:
    database = sqlite3.connect(shell.state / "db" / "runguard.sqlite", timeout=20)
    try:
        return int(database.execute("SELECT count(*) FROM item").fetchone()[0])
    except sqlite3.OperationalError:
        return 0
    finally:
        database.close()


def test_a_run_all_of_whose_lines_were_rejected_is_in_order(shell: Shell) -> None:
    shell("run", "-j", "letters", "--", "sh", "-c", "echo nonsense >> $RUNGUARD_ITEMS")
    assert found(shell) == []
    touch(shell, "UPDATE item_rejected SET sha256 = replace(hex(zeroblob(32)), '0', 'f')")
    assert "its rejected lines are not those that entry 3 names" in found(shell)


def test_a_thousand_rejected_lines_and_more_are_in_order(shell: Shell) -> None:
    shell("run", "-j", "letters", "--", "sh", "-c", "yes nonsense | head -n 2500 >> $RUNGUARD_ITEMS")
    assert found(shell) == []
    touch(shell, "UPDATE item_rejected SET head = x'' WHERE lines > 1")
    assert "what is kept of the rejected line at 9000 was changed" in found(shell)


def test_what_is_uncertain_of_many_cases_is_derived_again(shell: Shell) -> None:
    job = """seq 1200 | sed 's/.*/{"case":"HB-&","phase":"intent","action":"letter"}/' >> $RUNGUARD_ITEMS"""
    shell("run", "-j", "letters", "-c", job)
    assert found(shell) == []
    touch(shell, "UPDATE item_open SET key = 'x' WHERE case_id IN ('HB-3', 'HB-1200')")
    what = "what is uncertain of case {} is not what its entries say"
    assert found(shell) == [what.format("'HB-1200'"), what.format("'HB-3'")]

import re
import sqlite3

import pytest

from runguard.errors import StoreError
from runguard.store import shapes


def damage(place, *assignments):
    """Put into the tables what no statement of ours would."""
    connection = sqlite3.connect(place.path)
    connection.execute("PRAGMA ignore_check_constraints = ON")
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("UPDATE sqlite_schema SET sql = replace(sql, ' NOT NULL,', ',') WHERE name = 'run'")
    connection.commit()
    connection.close()
    connection = sqlite3.connect(place.path)
    connection.execute("PRAGMA ignore_check_constraints = ON")
    for assignment in assignments:
        connection.execute(f"UPDATE run SET {assignment}")
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    ("assignment", "said"),
    [
        ("started_us = NULL", "started_us holds None"),
        ("started_us = 'noon'", "started_us holds 'noon'"),
        ("exit_status = 1.5", "exit_status holds 1.5"),
        ("job = NULL", "job holds None"),
        ("outcome = x'00'", r"outcome holds b'\\x00'"),
    ],
)
def test_a_row_that_no_table_of_ours_holds_is_a_corrupt_file(place, start, assignment, said):
    place.write(start(1, run_id="r"))
    damage(place, assignment)
    with pytest.raises(StoreError, match=rf"the file is corrupt \({said}\)"):
        place.reader().run("r")


def test_a_text_that_is_no_utf8_is_a_corrupt_file(place, start):
    place.write(start(1, run_id="r", reason="because"))
    place.path.write_bytes(re.sub(rb'(?<!")because', b"bec\xffuse", place.path.read_bytes()))  # not in the ledger
    for question in (place.reader().history, place.open().history):
        with pytest.raises(StoreError, match=r"the file is corrupt \(a text is no UTF-8\)"):
            list(question())


def test_a_schema_that_is_no_utf8_is_a_corrupt_file(place, start):
    place.write(start(1))
    place.path.write_bytes(place.path.read_bytes().replace(b"CREATE TABLE ledger", b"CREATE\xffTABLE ledger"))
    for open_it in (place.reader, lambda: place.open().head()):
        with pytest.raises(StoreError, match=r"the file is corrupt \('utf-8' codec can't decode byte 0xff"):
            open_it()


def ledger(place, seq, change):
    connection = sqlite3.connect(place.path)
    connection.execute("DROP TRIGGER ledger_is_never_edited")
    (line,) = connection.execute("SELECT line FROM ledger WHERE seq = ?", (seq,)).fetchone()
    connection.execute("UPDATE ledger SET line = ? WHERE seq = ?", (change(line), seq))
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    "change",
    [
        lambda line: line[:40],
        lambda line: line.replace(b'"kind"', b'"ki\xffd"'),
        lambda line: b"[" * 100_000 + b"\n",
        lambda line: b"[]\n",
        lambda line: line.replace(b"/bin/true", b"/bin/trve"),
    ],
    ids=["cut", "no UTF-8", "deep", "no object", "another word"],
)
def test_a_damaged_entry_is_named_by_its_number(place, start, finish, change):
    place.write(start(1), start(2, run_id="r"), start(3))
    ledger(place, 2, change)
    with pytest.raises(StoreError, match="entry 2 of the ledger is damaged"):
        place.reader().entries("r")
    assert place.reader().find_run("1").number == 1


def test_every_column_of_every_table_is_judged_by_its_kind(place, start):
    place.write(start(1))
    connection = sqlite3.connect(place.path)
    for (table,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
        for _, column, kind, required, _, key in connection.execute(f"PRAGMA table_info({table})").fetchall():
            fitting = {"TEXT": "t", "BLOB": b"b"}.get(kind, 7)
            taken = [value for value in ("t", b"b", 7, 1.5) if not shapes.flaw([column], [(value,)], set())]
            assert taken == [fitting], (table, column)
            if not required and not key:
                assert shapes.flaw([column], [(None,)], set()) == "", (table, column)

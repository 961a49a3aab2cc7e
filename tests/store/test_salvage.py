"""Lines of a damaged ledger come over under their numbers if they are what was written, and nothing else does."""

import os
import sqlite3

import pytest

from runguard.store import lines, salvage, salvage_rows
from runguard.store.lines import Author
from runguard.store.sqlite import SCHEMA, open_reader
from runguard.store.witness import Seen

AUTHOR = Author("alpha", {"uid": 0, "user": "root", "login": None, "sudo_user": None}, "0")


@pytest.fixture
def written(place, start):
    """A store of ten starts; returns its file and the lines by number."""
    place.write(*(start(number) for number in range(1, 11)))
    connection = sqlite3.connect(place.path)
    found = dict(connection.execute("SELECT seq, line FROM ledger"))
    connection.close()
    return place.path, found


def taken(path, tmp_path, seen=None):
    """Salvage the file at `path` into a new one; return what was salvaged, and the new lines by number."""
    target = tmp_path / "new" / "new.sqlite"
    target.parent.mkdir()
    store, triggers = salvage.begin(str(target), AUTHOR)
    fd = os.open(path, os.O_RDONLY)
    salvaged = salvage.take_lines(store, fd, seen, lambda _: None)
    salvage_rows.take_rows(store, fd, lambda _: False, lambda _: None)
    os.close(fd)
    salvage.seal(store, triggers)
    connection = sqlite3.connect(target)
    found = dict(connection.execute("SELECT seq, line FROM ledger"))
    assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA,)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    return salvaged, found


def changed(path, old, new):
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new))


def test_every_table_is_either_kept_or_derived(place, start):
    place.write(start(1))
    connection = sqlite3.connect(place.path)
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    assert tables == {*salvage_rows.KEPT, *salvage_rows.DERIVED, *salvage_rows.NEVER_KEPT}


def test_of_a_sound_file_everything_comes_over(written, tmp_path):
    path, found = written
    salvaged, new = taken(path, tmp_path)
    assert (new, salvaged.entries, salvaged.lost) == (found, 10, ())
    assert salvaged.last == Seen(10, lines.digest(found[10]))
    assert [run.number for run in open_reader(str(tmp_path / "new" / "new.sqlite")).history()] == [*range(10, 0, -1)]


def test_the_new_file_has_the_triggers_of_any_other(written, tmp_path):
    path, _ = written
    taken(path, tmp_path)
    triggers = "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' ORDER BY name"
    there = [sqlite3.connect(each).execute(triggers).fetchall() for each in (path, tmp_path / "new" / "new.sqlite")]
    assert there[0] == there[1] != []


def test_a_line_that_the_next_one_names_otherwise_was_altered_and_is_left_out(written, tmp_path):
    path, found = written
    changed(path, found[4], found[4].replace(b"letters", b"LETTERS"))
    salvaged, new = taken(path, tmp_path)
    assert new == {seq: line for seq, line in found.items() if seq != 4}
    assert [gap[:2] for gap in salvaged.lost] == [(4, 4)]


def test_a_line_whose_own_prev_was_altered_is_left_out_and_not_the_one_before(written, tmp_path):
    path, found = written
    prev = lines.digest(found[3]).encode()
    changed(path, found[4], found[4].replace(prev, b"f" * 64))
    assert [gap[:2] for gap in taken(path, tmp_path)[0].lost] == [(4, 4)]


def test_the_last_line_is_judged_by_the_witness(written, tmp_path):
    path, found = written
    changed(path, found[10], found[10].replace(b"letters", b"LETTERS"))
    salvaged, new = taken(path, tmp_path, Seen(10, lines.digest(found[10])))
    assert (max(new), [gap[:2] for gap in salvaged.lost]) == (9, [(10, 10)])


def test_without_a_witness_the_last_line_stays_if_it_goes_on_from_the_one_before(written, tmp_path):
    path, found = written
    changed(path, found[10], found[10].replace(b"letters", b"LETTERS"))
    assert max(taken(path, tmp_path)[1]) == 10


def test_what_the_witness_saw_beyond_the_end_is_lost(written, tmp_path):
    path, _ = written
    salvaged, _ = taken(path, tmp_path, Seen(15, "a" * 64))
    assert [gap[:2] for gap in salvaged.lost] == [(11, 15)]


def test_a_line_in_a_page_that_cannot_be_taken_apart_comes_over_where_the_next_one_names_it(written, tmp_path):
    path, found = written
    data = bytearray(path.read_bytes())
    at = data.index(found[4]) // 4_096 * 4_096
    data[at : at + 8] = bytes(8)  # it is no leaf any more
    path.write_bytes(data)
    _, new = taken(path, tmp_path, Seen(10, lines.digest(found[10])))
    assert new == found


def test_a_loose_line_that_nobody_names_is_none(written, tmp_path):
    path, found = written
    forged = found[10].replace(b'"seq":10', b'"seq":11')
    forged = forged.replace(lines.digest(found[9]).encode(), lines.digest(found[10]).encode())
    with open(path, "ab") as file:
        file.write(forged.ljust(4_096, b"\0"))
    assert max(taken(path, tmp_path, Seen(10, lines.digest(found[10])))[1]) == 10

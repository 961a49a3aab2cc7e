"""The rows of an SQLite file are found by its bytes alone, whatever has become of other pages."""

import os
import sqlite3

import pytest

from runguard.store import pages

LONG = b"x" * 20_000


@pytest.fixture
def written(tmp_path):
    """A file with a table of 200 rows of every type and length, and an index."""
    path = tmp_path / "file.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a, b)")
    connection.execute("CREATE INDEX by_b ON t (b)")
    sizes = (0, 1, 4_040, 4_060, 4_061, 4_062, 9_000)
    rows = [(n, b"y" * sizes[n % len(sizes)], (n - 50, "ä", None, 2.5, 2**40, 0, 1)[n % 7]) for n in range(-100, 100)]
    connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
    connection.commit()
    connection.close()
    return path, rows


def rows_in(path):
    fd = os.open(path, os.O_RDONLY)
    try:
        return {row.rowid: row.values for page in pages.pages(fd) for row in page.rows if len(row.values) == 3}
    finally:
        os.close(fd)


def test_every_row_is_read_as_sqlite_wrote_it(written):
    path, rows = written
    assert rows_in(path) == {n: (None, a, b) for n, a, b in rows}


def test_a_damaged_header_and_schema_cost_no_row(written):
    path, rows = written
    data = path.read_bytes()
    path.write_bytes(os.urandom(4_096) + data[4_096:])
    assert len(rows_in(path)) == len(rows)


def test_a_page_that_was_overwritten_costs_its_own_rows_alone(written):
    path, rows = written
    data = bytearray(path.read_bytes())
    leaf = next(at for at in range(4_096, len(data), 4_096) if data[at] == 0x0D)
    data[leaf : leaf + 4_096] = bytes(4_096)
    path.write_bytes(data)
    assert len(rows) - 40 < len(rows_in(path)) < len(rows)


def test_a_file_that_was_cut_off_gives_what_stands_before(written):
    path, _ = written
    path.write_bytes(path.read_bytes()[: 4_096 * 30 + 100])
    assert rows_in(path)


@pytest.mark.parametrize("size", [512, 1_024, 8_192, 65_536])
def test_pages_of_other_sizes_are_read(tmp_path, size):
    connection = sqlite3.connect(tmp_path / "file.sqlite")
    connection.execute(f"PRAGMA page_size = {size}")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a, b)")
    connection.execute("INSERT INTO t VALUES (7, ?, 1)", (LONG,))
    connection.commit()
    connection.close()
    assert rows_in(tmp_path / "file.sqlite") == {7: (None, LONG, 1)}


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0", b"\x0d" * 4_096, os.urandom(12_288)])
def test_what_is_no_database_has_no_rows(tmp_path, content):
    (tmp_path / "file").write_bytes(content)
    assert rows_in(tmp_path / "file") == {}

"""Entries that bear on others are found by what they are about."""

import sqlite3

import pytest

from runguard.store import bearings, lines, statements
from runguard.store.index import index

ID = "00000001-0000-4000-8000-000000000000"
HASH = "ab" * 32


def access(*about):
    return "access", {"about": list(about), "how": "explain", "question": None, "bundle_sha256": None, "reason": None}


@pytest.mark.parametrize(
    ("target", "about", "name"),
    [
        ({"case": "HB-1042"}, "case", "HB-1042"),
        ({"case": "HB-1042", "run": ID}, "case", "HB-1042"),
        ({"case": "HB-1042", "run": ID, "record": 7}, "case", "HB-1042"),
        ({"run": ID}, "run", ID),
        ({"entry": 12}, "entry", "12"),
        ({"job": "letters"}, "job", "letters"),
        ({"job": "letters", "window": "L2026-03-29T02:30"}, "job", "letters"),
        ({"job": "letters", "since": None, "until": "2026-03-29T00:00:00Z"}, "job", "letters"),
        ({"since": "2026-03-29T00:00:00Z", "until": None}, "span", ""),
        ({"code": HASH}, "code", HASH),
        ({"commit": "f00d"}, "commit", "f00d"),
    ],
)
def test_an_entry_is_found_by_what_it_is_about(place, target, about, name):
    place.write(access(target))
    assert bearings.on(place.reader(), about, [name]) == [(about, name, 1, "access")]


def test_an_entry_about_one_case_in_two_ways_is_found_once(place):
    place.write(access({"case": "HB-1"}, {"case": "HB-1", "run": ID}, {"case": "HB-2"}))
    assert [each.seq for each in bearings.on(place.reader(), "case", ["HB-1", "HB-2"])] == [1, 1]


def test_all_entries_of_a_kind_are_found_in_order(place):
    hold = "hold", {"about": [{"case": "HB-1"}, {"job": "letters"}], "reason": "appeal"}
    place.write(hold, access({"case": "HB-1"}), hold)
    assert bearings.of_kind(place.reader(), "hold") == [1, 3]


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ([], "access: it is about nothing"),
        ([{}], "nothing: no entry can be about that"),
        ([{"case": "HB-1", "job": "letters"}], "case, job: no entry can be about that"),
        ([{"entry": "12"}], "entry is '12'"),
        ([{"entry": True}], "entry is True"),
        ([{"case": None}], "case is None"),
        ([{"since": "yesterday", "until": None}], "'yesterday' has no offset from UTC"),
    ],
)
def test_what_no_entry_can_be_about_is_refused(place, about, said):
    with pytest.raises((ValueError, TypeError), match=said):
        place.write(access(*about))
    assert place.reader().head() is None


def test_the_index_can_be_derived_again_from_the_lines(place):
    place.write(access({"case": "HB-\n1"}, {"case": "HB-1"}), access({"run": ID}, {"entry": 1}))
    stored = sqlite3.connect(place.path)
    sql = statements.load()
    again = sqlite3.connect(":memory:", isolation_level=None)
    again.execute(*stored.execute("SELECT sql FROM sqlite_schema WHERE name = 'bearing'").fetchone())
    for (line,) in stored.execute("SELECT line FROM ledger ORDER BY seq"):
        assert index(lambda name, row: again.execute(sql[name], row).rowcount, lines.parse(line))
    rows = stored.execute("SELECT * FROM bearing").fetchall()
    assert len(rows) == 4
    assert rows == again.execute("SELECT * FROM bearing").fetchall()

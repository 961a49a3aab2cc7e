import sqlite3

import pytest

from runguard.errors import StoreError


def test_a_start_and_its_finish_are_two_chained_lines(place, start, finish, chain):
    kind, fields = start(1)
    place.write((kind, fields))
    place.write(finish(fields["run_id"]))
    assert [entry["kind"] for entry in chain(place.path)] == ["run.start", "run.finish"]


def test_the_head_is_the_hash_of_the_last_line(place, start):
    import hashlib

    store = place.open()
    with store.write() as transaction:
        appended = transaction.append("run.start", 0, start(1)[1])
    line = sqlite3.connect(place.path).execute("SELECT line FROM ledger").fetchone()[0]
    assert store.head() == (1, hashlib.sha256(line).hexdigest()) == (appended.seq, appended.hash)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE ledger SET line = x'7b7d0a' WHERE seq = 1", "the ledger is never edited"),
        ("DELETE FROM ledger", "nothing is deleted from the ledger"),
        ("INSERT OR REPLACE INTO ledger (seq, line) VALUES (1, x'7b7d0a')", "the ledger has no gaps"),
        ("INSERT INTO ledger (seq, line) VALUES (3, x'7b7d0a')", "the ledger has no gaps"),
        ("INSERT INTO ledger (seq, line) VALUES (2, '{}')", "CHECK constraint failed"),
    ],
)
def test_the_database_refuses_to_change_the_ledger(place, start, statement, message):
    place.write(start(1))
    with pytest.raises(sqlite3.IntegrityError, match=message):
        sqlite3.connect(place.path).execute(statement)


def test_an_error_inside_a_transaction_leaves_nothing(place, start):
    store = place.open()

    def fail():
        with store.write() as transaction:
            transaction.append("run.start", 0, start(1)[1])
            raise KeyError("bug")

    with pytest.raises(KeyError, match="bug"):
        fail()
    assert store.head() is None
    assert store.running("letters") == []
    assert list(place.witness.glob("*")) == []


def test_after_an_error_the_next_transaction_is_possible(place, start, chain):
    store = place.open()
    with pytest.raises(KeyError), store.write():
        raise KeyError("bug")
    with store.write() as transaction:
        transaction.append("run.start", 0, start(1)[1])
    assert len(chain(place.path)) == 1


def test_a_finish_without_its_start_is_refused(place, finish):
    with pytest.raises(StoreError, match="run r1 is not waiting for a finish"):
        place.write(finish("r1"))


def test_a_second_finish_is_refused(place, start, finish):
    kind, fields = start(1)
    with pytest.raises(StoreError, match="is not waiting for a finish"):
        place.write((kind, fields), finish(fields["run_id"]), finish(fields["run_id"]))


def test_a_lost_run_takes_one_late_finish_marked_superseded(place, start, finish, chain):
    kind, fields = start(1)
    run_id = fields["run_id"]
    place.write((kind, fields), finish(run_id, "lost", exit_status=None), finish(run_id, exit_status=3))
    assert chain(place.path)[2]["superseded"] is True
    run = place.reader().run(run_id)
    assert (run.outcome, run.exit_status, run.finish_seq, run.late_seq) == ("lost", None, 2, 3)
    with pytest.raises(StoreError, match="is not waiting for a finish"):
        place.write(finish(run_id))


def test_two_runs_cannot_have_one_number(place, start):
    with pytest.raises(StoreError, match=r"UNIQUE constraint failed: run\.number"):
        place.write(start(1), start(1))


def test_a_window_that_ends_before_it_starts_is_refused(place, start):
    with pytest.raises(StoreError, match="CHECK constraint failed"):
        place.write(start(1, key="L1", due="2025-12-31T00:00:00Z"))


def test_fifty_processes_write_one_chain_without_a_gap(place, chain):
    assert place.writers(50, entries=4) == [0] * 50
    entries = chain(place.path)
    assert len(entries) == 200
    assert [entry["number"] for entry in entries] == list(range(1, 201))

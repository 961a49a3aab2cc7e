import pytest

from runguard.errors import StoreError
from runguard.instant import from_rfc3339
from runguard.model import Earlier
from runguard.store.answered import Refusal, Span, Start, Waiver

ID = "8c2f0000-0000-4000-8000-00000000000"
DAY_1, DAY_2, DAY_3, DAY_4 = (from_rfc3339(f"2026-03-0{day}T02:30:00Z") for day in (1, 2, 3, 4))


def due(day):
    return f"2026-03-0{day}T02:30:00Z"


def covers(first, last):
    return {"first": due(first), "last": due(last), "count": last - first + 1}


@pytest.fixture
def latest(place):
    """Return what is on record for the window of a day of March 2026."""

    def ask(day=3):
        with place.reader() as reader:
            return reader.latest("letters", f"L{day}", from_rfc3339(due(day)))

    return ask


def test_latest_is_the_last_start_with_the_count_of_starts(place, latest, start, finish, refused):
    place.write(
        start(1, key="L3", due=due(3), run_id=ID + "1"),
        finish(ID + "1"),
        start(2, key="L3", due=due(3), run_id=ID + "2", attempt=1),
        refused(3, "L3", due(3)),
        start(4, key="L2", due=due(2)),
        start(5, key="L3", due=due(3), job="other"),
    )
    assert latest(3) == Earlier(ID + "2", 2, "running", 2, "alpha")
    assert latest(4) is None


def test_a_window_takes_the_outcome_of_the_run_that_covers_it(place, latest, start, finish):
    place.write(start(1, key="L4", due=due(4), run_id=ID + "1", covers=covers(2, 3)), finish(ID + "1", "failed"))
    assert latest(1) is None
    assert latest(2) == latest(3) == Earlier(ID + "1", 1, "failed", 0, "alpha")
    assert latest(4) == Earlier(ID + "1", 1, "failed", 1, "alpha")


def test_the_latest_run_that_covers_a_window_counts(place, latest, start, finish):
    place.write(start(1, key="L4", due=due(4), run_id=ID + "1", covers=covers(2, 3)), finish(ID + "1", "failed"))
    place.write(start(2, key="L4", due=due(4), run_id=ID + "2", covers=covers(2, 3), attempt=2), finish(ID + "2"))
    assert latest(3) == Earlier(ID + "2", 2, "succeeded", 0, "alpha")


def test_a_window_with_a_start_of_its_own_is_not_decided_by_one_that_covers_it(place, latest, start, finish):
    """Such a window was not missing when the span was drawn around it."""
    place.write(start(1, key="L3", due=due(3), run_id=ID + "1"), finish(ID + "1"))
    place.write(start(2, key="L4", due=due(4), run_id=ID + "2", covers=covers(2, 3)), finish(ID + "2", "failed"))
    assert latest(3) == Earlier(ID + "1", 1, "succeeded", 1, "alpha")
    place.write(start(3, key="L2", due=due(2), run_id=ID + "3"))
    assert latest(2) == Earlier(ID + "3", 3, "running", 1, "alpha")


def test_a_waived_window_is_not_decided_by_a_run_that_covers_it(place, latest, start, finish, waived):
    place.write(waived(key="L3"))
    place.write(start(1, key="L4", due=due(4), run_id=ID + "1", covers=covers(2, 3)), finish(ID + "1", "failed"))
    assert latest(2) == Earlier(ID + "1", 1, "failed", 0, "alpha")
    assert latest(3) == Earlier("", None, "waived", 0, "alpha")


def test_a_waived_window_without_a_start(place, latest, waived):
    place.write(waived(key="L3"))
    assert latest(3) == Earlier("", None, "waived", 0, "alpha")
    assert latest(4) is None


def test_a_waived_window_names_its_latest_start(place, latest, start, finish, waived):
    place.write(start(1, key="L3", due=due(3), run_id=ID + "1"), finish(ID + "1", "lost"), waived(key="L3"))
    assert latest() == Earlier(ID + "1", None, "waived", 1, "alpha")


def test_a_waived_span_is_open_at_its_start_and_closed_at_its_end(place, latest, waived):
    place.write(waived(since=due(1), until=due(3)))
    assert [day for day in (1, 2, 3, 4) if latest(day)] == [2, 3]


def test_a_start_after_a_waiver_decides(place, latest, start, waived):
    place.write(waived(since=due(1), until=due(9)), start(1, key="L3", due=due(3), run_id=ID + "1"))
    assert latest(3) == Earlier(ID + "1", 1, "running", 1, "alpha")
    assert latest(4) == Earlier("", None, "waived", 0, "alpha")


def test_a_withdrawal_of_one_window_leaves_the_rest_of_a_span_waived(place, latest, waived):
    place.write(waived(since=due(1), until=due(4)), waived(key="L3", withdraw=True))
    assert [day for day in (2, 3, 4) if latest(day)] == [2, 4]


def test_a_withdrawal_of_a_span_undoes_every_earlier_waiver_in_it(place, latest, waived):
    place.write(waived(key="L3"), waived(key="L4"), waived(since=due(1), until=due(9)))
    place.write(waived(since=due(2), until=due(3), withdraw=True, reason=None))
    assert [day for day in (2, 3, 4) if latest(day)] == [2, 4]


def test_a_withdrawal_brings_the_start_back_and_a_new_waiver_counts_again(place, latest, start, finish, waived):
    place.write(start(1, key="L3", due=due(3), run_id=ID + "1"), finish(ID + "1", "failed"), waived(key="L3"))
    place.write(waived(key="L3", withdraw=True))
    assert latest().outcome == "failed"
    place.write(waived(since=due(2), until=due(3)))
    assert latest().outcome == "waived"


def test_a_waiver_is_of_one_job(place, latest, waived):
    place.write(waived(key="L3", job="other"), waived(since=due(1), until=due(9), job="other"))
    assert latest() is None


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "one window by its key, or the span"),
        ({"key": "L1", "since": due(1), "until": due(2)}, "one window by its key, or the span"),
        ({"since": due(1)}, "one window by its key, or the span"),
        ({"until": due(1)}, "one window by its key, or the span"),
        ({"key": "L1", "until": due(1)}, "one window by its key, or the span"),
        ({"since": due(2), "until": due(2)}, "is not before 2026-03-02T02:30:00Z"),
        ({"since": due(2), "until": due(1)}, "2026-03-02T02:30:00Z is not before 2026-03-01T02:30:00Z"),
        ({"key": "L1", "reason": None}, "has a reason"),
        ({"key": "L1", "reason": " \n"}, "has a reason"),
        ({"key": "L1", "withdraw": None}, "has a reason, or withdraws another"),
    ],
)
def test_a_waiver_that_says_too_much_or_too_little_is_refused(place, waived, fields, message):
    with pytest.raises(ValueError, match=message):
        place.write(waived(**fields))
    assert place.open().head() is None


def test_waivers_are_told_as_they_were_given(place, waived):
    place.write(waived(key="L3", reason="caf\u00e9 closed"), waived(key="L3", withdraw=True, reason=None))
    at = from_rfc3339("2026-03-29T01:30:00Z")
    assert place.reader().waivers("letters") == [
        Waiver(1, "L3", None, None, False, "caf\u00e9 closed", "ada", at, "alpha"),
        Waiver(2, "L3", None, None, True, None, "ada", at + 1_000_000, "alpha"),
    ]


def test_waivers_of_a_span_are_those_that_reach_into_it(place, waived):
    place.write(waived(since=due(1), until=due(3)), waived(key="L9"), waived(since=due(3), until=due(4)))
    place.write(waived(since=due(1), until=due(9), job="other"))
    waivers = place.reader().waivers

    def told(after, until):
        return [waiver.seq for waiver in waivers("letters", after, until)]

    assert told(DAY_1, DAY_2) == [1, 2]
    assert told(DAY_2, DAY_3) == [1, 2]
    assert told(DAY_3, DAY_4) == [2, 3]
    assert told(DAY_4, DAY_4 + 1) == [2]
    assert [waiver.seq for waiver in waivers("letters")] == [1, 2, 3]


def test_coverage_is_every_start_of_a_span_by_sequence(place, start, finish, refused):
    place.write(
        start(1, key="L3", due=due(3), run_id=ID + "1"),
        finish(ID + "1", exit_status=0, suspect="it took 0.1 s"),
        refused(2, "L2", due(2)),
        start(3, key="L2", due=due(2), run_id=ID + "3", attempt=2),
        finish(ID + "3", "failed", exit_status=3, why="w"),
        start(4, key="L1", due=due(1)),
        start(5, key="L4", due=due(4)),
        start(6),
        start(7, key="L3", due=due(3), job="other"),
    )
    bounds = (from_rfc3339("2026-01-01T00:00:00Z"), "l", "n")
    found = list(place.reader().coverage("letters", DAY_1, DAY_3))
    assert found[0] == Start(
        ID + "1", 1, "L3", DAY_3, "succeeded", None, 1, None, None, "it took 0.1 s", 4711, "b00t", 0, 1, *bounds
    )
    assert found[1] == Start(
        found[1].run_id, 2, "L2", DAY_2, "refused", "overlap", 3, None, None, None, None, None, None, None, *bounds
    )
    assert found[2] == Start(ID + "3", 3, "L2", DAY_2, "failed", "w", 4, None, None, None, 4711, "b00t", 3, 2, *bounds)
    assert len(found) == 3


def test_coverage_knows_the_runs_that_reach_into_a_span_from_outside_once_each(place, start):
    place.write(
        start(1, key="L4", due=due(4), covers=covers(2, 3)), start(2, key="L2", due=due(2), covers=covers(1, 1))
    )

    def told(after, until):
        return [(found.number, found.covers_first_us) for found in place.reader().coverage("letters", after, until)]

    assert told(DAY_1 - 1, DAY_1) == [(2, DAY_1)]
    assert told(DAY_1, DAY_2) == [(1, DAY_2), (2, DAY_1)]
    assert told(DAY_2, DAY_3) == [(1, DAY_2)]
    assert told(DAY_1, DAY_4) == [(1, DAY_2), (2, DAY_1)]
    assert told(DAY_4, DAY_4 + 1) == []


def test_what_catch_ups_cover_of_a_span(place, start):
    place.write(
        start(1, key="L4", due=due(4), covers=covers(2, 3)), start(2, key="L2", due=due(2), covers=covers(1, 1))
    )
    place.write(start(3, key="L4", due=due(4), covers=covers(1, 3), job="other"))
    asked = place.reader().covers
    assert asked("letters", DAY_1 - 1, DAY_4) == [Span(DAY_2, DAY_3, 1), Span(DAY_1, DAY_1, 2)]
    assert asked("letters", DAY_1, DAY_2) == [Span(DAY_2, DAY_3, 1)]
    assert asked("letters", DAY_3, DAY_4) == []


def test_answered_dues_are_those_of_starts_that_were_let_run_each_once(place, start, finish, refused):
    place.write(
        start(1, key="L3", due=due(3), run_id=ID + "1"),
        finish(ID + "1", "failed"),
        start(2, key="L3", due=due(3)),
        start(3, key="L2", due=due(2), run_id=ID + "3"),
        finish(ID + "3", "lost"),
        refused(4, "L1", due(1)),
        start(5, key="L4", due=due(4)),
        start(6, key="L1", due=due(1), job="other"),
        start(7),
    )
    assert place.reader().answered_dues("letters", DAY_1 - 1, DAY_4) == [DAY_2, DAY_3, DAY_4]
    assert place.reader().answered_dues("letters", DAY_2, DAY_3) == [DAY_3]
    assert place.reader().answered_dues("unknown", DAY_1, DAY_4) == []


def test_a_key_is_answered_whenever_its_window_was_due(place, start, refused):
    place.write(start(1, key="L3", due="2026-03-03T03:30:00Z"), refused(2, "L2", due(2)))
    assert place.reader().answered_keys("letters", ["L1", "L2", "L3"]) == {"L3"}
    assert place.reader().answered_keys("other", ["L3"]) == set()


def test_refusals_of_a_span_name_their_run_and_why(place, start, refused):
    place.write(
        refused(1, "L3", due(3), "deadline"),
        refused(2, "L2", due(2)),
        refused(3, "L1", due(1)),
        refused(4, "L4", due(4)),
    )
    place.write(start(5, key="L2", due=due(2)), refused(6, "L2", due(2), "held"), refused(7, "L2", due(2), job="other"))
    assert place.reader().refusals("letters", DAY_1, DAY_3) == [
        Refusal(DAY_2, "L2", 2, "overlap"),
        Refusal(DAY_2, "L2", 6, "held"),
        Refusal(DAY_3, "L3", 1, "deadline"),
    ]


def test_a_refused_start_covers_nothing(place, refused):
    kind, fields = refused(1, "L3", due(3))
    with pytest.raises(StoreError, match="CHECK constraint failed"):
        place.write((kind, {**fields, "covers": covers(1, 2)}))

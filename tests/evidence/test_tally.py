"""What the entries of a run come to, in words."""

from __future__ import annotations

import pytest

from runguard.evidence.tally import Tally, of_fields


def test_a_run_that_reached_every_case_is_clean() -> None:
    tally = Tally(entries=12_000, cases=6_000, done=5_900, no_action=100, expected=6_000)
    assert tally.sentence() == "6,000 of 6,000 cases accounted for"
    assert tally.verdict() is None


def test_a_run_that_skipped_cases_is_clean() -> None:
    assert Tally(entries=1, cases=1, skipped=1).verdict() is None


@pytest.mark.parametrize(
    ("tally", "said"),
    [
        (Tally(cases=6_000, uncertain=2, expected=6_000), "5,998 of 6,000 cases accounted for: 2 cases uncertain"),
        (Tally(cases=1, uncertain=1), "0 of 1 case accounted for: 1 case uncertain"),
        (Tally(cases=3, failed=1), "3 of 3 cases accounted for: 1 failed"),
        (Tally(cases=3, rejected=1), "3 of 3 cases accounted for: 1 line rejected"),
        (Tally(cases=2, expected=3), "2 of 3 cases accounted for: 2 of 3 expected cases were reached"),
        (Tally(cases=4, expected=3), "4 of 3 cases accounted for: 4 of 3 expected cases were reached"),
        (Tally(beyond_bytes=1024), "0 of 0 cases accounted for: 1,024 bytes over the limit are not on record"),
        (Tally(pending_bytes=1024), "0 of 0 cases accounted for: 1,024 bytes are not on record yet"),
        (
            Tally(cases=9, uncertain=1, failed=2, rejected=3),
            "8 of 9 cases accounted for: 1 case uncertain, 2 failed, 3 lines rejected",
        ),
    ],
)
def test_what_keeps_a_run_from_being_clean_is_named(tally: Tally, said: str) -> None:
    assert tally.verdict() == said


def test_a_tally_comes_back_from_the_ledger() -> None:
    tally = Tally(entries=3, cases=2, list_sha256="ab" * 32, expected=2)
    assert of_fields({**tally.fields(), "of a later version": 1}) == tally

"""Presets, and what a given gap or fold replaces."""

from __future__ import annotations

import pytest

from runguard.errors import ScheduleError
from runguard.schedule.policy import Rule, rule


@pytest.mark.parametrize(
    ("policy", "wild", "expected"),
    [
        ("vixie", False, Rule("after", "first", 10_800, 10_800)),
        ("vixie", True, Rule("skip", "both", 10_800, 10_800)),
        ("walk", False, Rule("skip", "both")),
        ("walk", True, Rule("skip", "both")),
        ("systemd", True, Rule("skip", "first")),
        ("quartz", False, Rule("skip", "second")),
        ("shift", True, Rule("shift", "first")),
    ],
)
def test_a_preset_means(policy, wild, expected):
    assert rule(policy, None, None, wild=wild) == expected


@pytest.mark.parametrize(
    ("policy", "gap", "fold", "expected"),
    [
        ("vixie", "after", None, Rule("after", "first", None, 10_800)),
        ("vixie", None, "first", Rule("after", "first", 10_800, None)),
        ("vixie", "shift", "both", Rule("shift", "both")),
        ("walk", "after", None, Rule("after", "both")),
        ("quartz", None, "first", Rule("skip", "first")),
    ],
)
def test_a_given_half_replaces_that_half_and_its_limit(policy, gap, fold, expected):
    assert rule(policy, gap, fold, wild=False) == expected


@pytest.mark.parametrize(
    ("policy", "gap", "fold", "field"),
    [
        ("cron", None, None, "policy"),
        ("", None, None, "policy"),
        ("vixie", "first", None, "gap"),
        ("vixie", "", None, "gap"),
        ("vixie", None, "after", "fold"),
        ("Vixie", None, None, "policy"),
    ],
)
def test_an_unknown_word_is_refused_with_the_known_ones(policy, gap, fold, field):
    with pytest.raises(ScheduleError) as caught:
        rule(policy, gap, fold, wild=False)
    assert caught.value.field == field
    assert "known: " in caught.value.why

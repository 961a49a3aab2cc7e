"""Intents, results and notes of one run are put together as touches."""

from __future__ import annotations

from typing import Any

import pytest

from runguard.evidence.touches import Said, pair


def said(*words: str) -> list[Said]:
    """Return entries from words such as `intent`, `done:key`."""
    found = []
    for n, word in enumerate(words, 1):
        what, _, key = word.partition(":")
        found.append(Said(n, what, {"action": "send", **({"key": key} if key else {})}, None, None))
    return found


def come_to(*words: str) -> list[tuple[str, list[int | None]]]:
    return [(touch.state, [each.record for each in touch.said]) for touch in pair(said(*words))]


@pytest.mark.parametrize(
    ("words", "touches"),
    [
        (("intent", "done"), [("done", [1, 2])]),
        (("intent",), [("uncertain", [1])]),
        (("done",), [("done", [1])]),
        (("intent", "note", "failed"), [("failed", [1, 2, 3])]),
        (("intent", "done", "note"), [("done", [1, 2, 3])]),
        (("note",), [("note", [1])]),
        (("note", "intent", "done"), [("note", [1]), ("done", [2, 3])]),
        (("intent", "done", "intent"), [("done", [1, 2]), ("uncertain", [3])]),
        (("intent", "done", "done"), [("done", [1, 2]), ("done", [3])]),
        (("intent:a", "intent:b", "skipped:a"), [("skipped", [1, 3]), ("uncertain", [2])]),
        (("intent:a", "intent:a", "done:a"), [("uncertain", [1]), ("done", [2, 3])]),
        (("intent:a", "done"), [("uncertain", [1]), ("done", [2])]),
    ],
)
def test_entries_of_one_case_come_to_touches(words: tuple[str, ...], touches: list[Any]) -> None:
    assert come_to(*words) == touches


def test_a_field_is_told_as_the_last_entry_that_has_it_says() -> None:
    intent = Said(1, "intent", {"action": "send", "reason": "due", "rule": "R7", "days": 28}, None, None)
    result = Said(2, "done", {"action": "send", "reason": "sent", "rule": None, "after": {"stage": 2}}, None, None)
    (touch,) = pair([intent, result])
    facts = touch.facts()
    assert (facts["reason"], facts["rule"], facts["after"], facts["sent"]) == ("sent", "R7", {"stage": 2}, None)
    assert facts["more"] == {"days": 28}


def test_a_touch_is_dated_by_the_job_and_else_by_its_reception() -> None:
    by_job = Said(1, "intent", {"action": "send", "at": "2026-03-29T01:30:05Z"}, "2026-03-29T01:30:07Z", None)
    received = Said(1, "intent", {"action": "send", "at": 5}, "2026-03-29T01:30:07Z", None)
    assert pair([by_job])[0].facts()["at"] == "2026-03-29T01:30:05Z"
    assert pair([received])[0].facts()["at"] == "2026-03-29T01:30:07Z"

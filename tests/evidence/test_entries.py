"""One line of a job, judged."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runguard.evidence import entries
from runguard.evidence.entries import Entry, Rejected, expected, judge, personal


def line(**fields: Any) -> bytes:
    return json.dumps({"case": "HB-1042", "phase": "intent", "action": "reminder", **fields}).encode()


def why(given: bytes) -> str:
    with pytest.raises(Rejected) as caught:
        judge(given)
    return str(caught.value)


def test_an_intent_says_that_a_case_is_about_to_be_touched() -> None:
    assert judge(line(key="k1")) == Entry("HB-1042", "intent", "k1", "reminder", "")


@pytest.mark.parametrize("result", ["done", "no_action", "failed", "skipped"])
def test_a_result_says_what_came_of_it(result: str) -> None:
    assert judge(line(phase="result", result=result)).said == result


def test_unknown_fields_are_nobodys_business() -> None:
    assert judge(line(phase="note", weather={"of": ["the", "day"]}, result=None)).said == "note"


def test_spaces_around_the_object_are_its_own() -> None:
    assert judge(b"  " + line() + b"\t\r").case == "HB-1042"


def test_a_case_may_hold_a_newline() -> None:
    assert judge(line(case="HB\n1042")).case == "HB\n1042"


def test_a_case_of_200_characters_is_the_longest() -> None:
    assert len(judge(line(case="ü" * 200)).case) == 200
    assert why(line(case="ü" * 201)) == "case is 201 characters long, more than 200"


def test_a_line_of_65536_bytes_is_the_longest() -> None:
    room = 65_536 - len(line(pad=""))
    assert judge(line(pad="x" * room)).case == "HB-1042"
    assert why(line(pad="x" * (room + 1))) == "it is 65537 bytes long, more than 65536"


@pytest.mark.parametrize(
    ("given", "because"),
    [
        (b'{"case":"HB-1","phase":"inte', "it is no JSON: Unterminated string starting at (character 24)"),
        (b'{"case":"HB-1"}{"case":"HB-2"}', "it is no JSON: Extra data (character 16)"),
        (b'[{"case":"HB-1"}]', "it is a list, not an object"),
        (b'"HB-1"', "it is a text, not an object"),
        (b"12", "it is a number, not an object"),
        (b"null", "it is null, not an object"),
        (b"true", "it is true, not an object"),
        (b"HB-1 done", "it is no JSON: Expecting value (character 1)"),
        (b"\x00\x01\x02", "it is no JSON: Expecting value (character 1)"),
        (b'{"case":"\xff"}', "it is no UTF-8 (byte 10)"),
        (b'\xef\xbb\xbf{"case":"HB-1"}', "it is no JSON: Expecting value (character 1)"),
        (b'{"case":"a\x00b"}', "it is no JSON: Invalid control character at (character 11)"),
        (b'{"case":"HB-1","case":"HB-2"}', "the key 'case' stands in one object twice"),
        (b'{"case":"HB-1","inputs":{"a":1,"a":2}}', "the key 'a' stands in one object twice"),
        (b'{"case":"HB-1","n":NaN}', "NaN is no number in JSON"),
        (b'{"case":"HB-1","n":-Infinity}', "-Infinity is no number in JSON"),
        (b'{"case":"HB-1","n":1e999}', "a number is too large"),
        (b"{}", "case is missing"),
        (b'{"case":1042}', "case is a number, not a text"),
        (b'{"case":""}', "case is empty"),
        (b'{"case":" \\n"}', "case is empty"),
        (b'{"case":"a\\u0000b"}', "case holds a NUL"),
        (b'{"case":"a\\ud800b"}', "case holds half of a surrogate pair"),
        (b'{"case":"HB-1"}', "phase is missing"),
        (b'{"case":"HB-1","phase":"done"}', "phase is 'done', not one of intent, result, note"),
        (b'{"case":"HB-1","phase":["intent"]}', "phase is a list, not a text"),
        (b'{"case":"HB-1","phase":"intent"}', "action is missing"),
        (b'{"case":"HB-1","phase":"result","action":"a"}', "result is missing"),
        (
            b'{"case":"HB-1","phase":"result","action":"a","result":"ok"}',
            "result is 'ok', not one of done, no_action, failed, skipped",
        ),
        (b'{"case":"HB-1","phase":"intent","action":"a","key":7}', "key is a number, not a text"),
        (b'{"case":"HB-1","phase":"intent","action":"a","key":""}', "key is empty"),
    ],
)
def test_a_line_that_is_no_entry_is_rejected_and_it_is_said_why(given: bytes, because: str) -> None:
    assert why(given) == because


def test_a_number_of_thousands_of_digits_is_rejected() -> None:
    assert why(b'{"case":"HB-1","n":%s}' % (b"9" * 5000)).startswith("it is no JSON: Exceeds the limit")


@pytest.mark.parametrize("depth", [101, 30_000])
def test_what_is_nested_too_deep_is_rejected(depth: int) -> None:
    assert why(b'{"case":"HB-1","n":' + b"[" * depth + b"]" * depth + b"}") == "it is nested deeper than 100 levels"


def test_many_objects_beside_each_other_are_not_deep() -> None:
    assert judge(line(inputs=[{"n": n} for n in range(500)])).said == "intent"


# {"expected": N}


def test_the_number_of_cases_that_is_expected_is_no_entry() -> None:
    assert expected(b'{"expected": 6000}') == 6000
    assert expected(line()) is None


def test_an_entry_that_has_such_a_field_is_an_entry() -> None:
    assert expected(line(expected=3)) is None
    assert judge(line(expected=3)).case == "HB-1042"


@pytest.mark.parametrize("number", ["-1", "true", "6e3", '"6000"', "null", "1000000001"])
def test_an_expected_number_is_a_whole_one(number: str) -> None:
    with pytest.raises(Rejected, match="not a number from 0 to 1000000000"):
        expected(b'{"expected": %s}' % number.encode())


# Personal data


@pytest.mark.parametrize(
    ("text", "seems"),
    [
        ("ann.lee@example.org", "an e-mail address"),
        ("wrote to <ann@example.org> twice", "an e-mail address"),
        ("07911 123456", "a phone number"),
        ("rang (020) 7946 0018 on Monday", "a phone number"),
        ("+44 20 7946 0018", "a phone number"),
        ("+49 (0) 30 901820", "a phone number"),
        ("AB 12 34 56 C", "a national insurance number"),
        ("ab123456c", "a national insurance number"),
    ],
)
def test_what_looks_like_a_person_is_noticed(text: str, seems: str) -> None:
    assert personal(text) == seems


@pytest.mark.parametrize(
    "text",
    [
        "HB-1042",
        "2026-03-29",
        "2026-03-29T02:30:00Z",
        "00012345678",
        "case 4711 of 6000",
        "GB123456A",
        "a@b",
        "R7 v3.0.1",
        "3f0c12ab-0000-4000-8000-000000000000",
        "No reply for 28 days since the first letter of 1 March 2026.",
    ],
)
def test_what_does_not_is_not(text: str) -> None:
    assert personal(text) == ""


def test_a_reason_that_looks_like_a_person_is_told_with_its_entry() -> None:
    assert judge(line(reason="asked by ann@example.org")).personal == "an e-mail address"
    assert judge(line(reason=["ann@example.org"])).personal == ""


def test_what_an_entry_says_is_one_of_six_words() -> None:
    assert entries.SAID == ("intent", "note", "done", "no_action", "failed", "skipped")

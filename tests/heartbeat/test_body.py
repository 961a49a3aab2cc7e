"""The text of a ping: cleaned, redacted, then cut."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runguard.heartbeat.body import Body, clean, compose, fit, summary

RUN = "01957a0e-6b1f-7c3a-9f2e-3d1b5c7a9e10"


def test_the_summary_names_exit_duration_window_host_run_and_ledger():
    line = summary(
        outcome="failed",
        exit_status=3,
        duration_s=12.44,
        label="2024-03-10T03:00-04:00",
        host="db1",
        run_id=RUN,
        ledger=(4711, "9f86d081"),
    )
    assert line == f"failed, exit 3, 12.4 s, window 2024-03-10T03:00-04:00, host db1, run {RUN}, ledger 4711:9f86d081"


def test_the_summary_names_the_signal_instead_of_the_status():
    line = summary(outcome="killed", exit_status=None, signal=9, duration_s=0.04, host="db1", run_id=RUN)
    assert line == f"killed, signal 9, 0.0 s, host db1, run {RUN}"


def test_the_summary_is_one_line_whatever_the_host_is_called():
    assert summary(outcome="failed", exit_status=1, host="a\nb\x1b[31mc\udcff", run_id="r") == (
        "failed, exit 1, host a bc\ufffd, run r"
    )


def test_a_short_output_is_sent_whole_under_the_summary():
    assert fit(compose("failed, exit 3", b"one\ntwo\n")) == b"failed, exit 3\none\ntwo"


def test_without_output_the_body_is_the_summary():
    assert fit(compose("succeeded, exit 0")) == b"succeeded, exit 0"


def test_an_empty_body_is_empty():
    assert fit(Body()) == b""


def test_output_that_was_not_kept_is_counted():
    # The first line may be half of one: it is left out too.
    body = compose("failed", b"alf a line\nlast line\n", omitted_bytes=1000)
    assert fit(body) == b"failed\n[1011 bytes left out]\nlast line"


def test_the_output_is_cut_at_a_line():
    body = compose("failed", b"".join(b"line %02d\n" % number for number in range(20)))
    assert fit(body, 80) == b"failed\n[112 bytes left out]\nline 14\nline 15\nline 16\nline 17\nline 18\nline 19"


def test_a_long_line_is_cut_between_characters():
    body = compose("failed", ("€" * 100).encode())
    assert fit(body, 60) == b"failed\n[270 bytes left out]\n" + "€".encode() * 10


def test_no_more_than_ten_thousand_bytes_are_sent_whatever_the_limit():
    assert len(fit(compose("failed", b"x" * 50_000), 1_000_000)) == 10_000


def test_a_limit_below_the_summary_cuts_the_summary_between_characters():
    assert fit(Body("h€llo"), 3) == b"h"


def test_a_limit_of_nothing_sends_nothing():
    assert fit(compose("failed", b"output"), 0) == b""


@pytest.mark.parametrize(
    ("raw", "cleaned"),
    [
        (b"a\x00b", "ab"),
        (b"\x1b[1;31mred\x1b[0m", "red"),
        (b"\x1b]52;c;c2VjcmV0\x07text", "text"),
        (b"\x1b]8;;https://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        (b"\x1bPq#0\x1b\\after", "after"),
        ("\x9b31mred".encode(), "red"),
        (b"50%\r100%\r\ndone", "50%\n100%\ndone"),
        (b"tab\there", "tab\there"),
        (b"bell\x07 back\x08 del\x7f", "bell back del"),
        ("user\u202egpj.exe\u2066".encode(), "usergpj.exe"),
        (b"caf\xe9", "caf\ufffd"),
        (b"\x1b\x1b[0m[0mx", "[0mx"),
        (b"open \x1b]0;never closed\nnext line", "open \nnext line"),
    ],
)
def test_escapes_and_control_characters_are_removed(raw, cleaned):
    assert clean(raw) == cleaned


def test_a_secret_is_masked_even_with_an_escape_inside():
    assert compose("failed", b"hun\x1b[1mter2 wrong", secrets=("hunter2",)).tail == "*** wrong"


def test_a_secret_that_is_no_utf8_is_masked():
    assert compose("failed", b"pw caf\xe9caf\xe9 wrong", secrets=("caf\udce9caf\udce9",)).tail == "pw *** wrong"


def test_a_secret_is_masked_in_the_summary_too():
    assert compose("host hunter2", secrets=("hunter2",)).summary == "host ***"


def test_a_secret_torn_by_the_kept_tail_is_left_out():
    # The tail begins inside the secret, and has no line to begin at.
    body = compose("failed", b"nter2" + b"." * 300, omitted_bytes=10, secrets=("hunter2",))
    assert b"nter2" not in fit(body)


def test_a_secret_at_the_cut_is_masked_before_it_is_cut():
    output = b"a" * 10 + b"hunter2-hunter2-hunter2" + b"b" * 9_950
    assert b"hunter2"[3:] not in fit(compose("failed", output, secrets=("hunter2-hunter2-hunter2",)))


SUMMARY = st.text(max_size=60).map(lambda text: text.replace("\n", " "))
OUTPUT = st.lists(
    st.sampled_from([b"line\n", b"\xe2\x82\xac", b"\xe2\x82", b"\x1b[1m", b"\x00", b"x" * 50, b"\xff"])
).map(b"".join)


@given(SUMMARY, OUTPUT, st.integers(0, 400), st.integers(0, 10**12))
def test_a_body_is_valid_utf8_within_the_limit_and_free_of_control(summary, output, limit, omitted):
    sent = fit(compose(clean(summary.encode()), output, omitted_bytes=omitted), limit)
    assert len(sent) <= limit
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\x9b]", sent.decode())


@given(SUMMARY, st.text(st.sampled_from("ab€\n"), max_size=400), st.integers(40, 300))
def test_what_is_sent_and_what_is_left_out_add_up(summary, output, limit):
    body = compose(clean(summary.encode()).strip(), output.encode(), omitted_bytes=0)
    sent = fit(body, limit).decode()
    found = re.search(r"^\[(\d+) bytes left out\]\n?", sent, re.MULTILINE)
    if found:
        assert len(sent[found.end() :].encode()) + int(found[1]) == len(body.tail.encode())


@given(OUTPUT, OUTPUT, st.integers(60, 400))
def test_a_secret_never_reaches_a_body(before, after, limit):
    secret = "s3cr\u20act"
    output = before + secret.encode() + after
    assert secret.encode() not in fit(compose("failed", output, secrets=(secret,)), limit)


def test_a_body_that_is_cut_again_counts_from_the_whole():
    body = compose("failed", b"0123456789\n" * 3000)
    assert body.omitted_bytes == 23_001
    assert fit(body, 500) == b"failed\n[32538 bytes left out]\n" + b"\n".join([b"0123456789"] * 42)


@pytest.mark.parametrize(
    "piece", [b"\x1b[", b"\x1b]", b"\x1b", b"\x9b", b"\xc2\x9b", b"\x1b]0;x", b"\r", b"\x00", b"x"]
)
@pytest.mark.usefixtures("no_hang")
def test_a_hostile_mebibyte_is_composed_without_hanging(piece):
    body = compose("failed", piece * (2**20 // len(piece)) + b"\nthe end")
    assert body.tail.endswith("the end")

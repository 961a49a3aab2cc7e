import pytest

from runguard.store import lines
from runguard.store.lines import Author

AUTHOR = Author("alpha", {"uid": 0}, "0.1.0")


def test_a_line_is_these_exact_bytes():
    entry = lines.entry(
        1, lines.FIRST_PREV, "run.finish", 1774747800_250000, AUTHOR, {"run_id": "r", "duration_s": 0.5}
    )
    assert lines.encode(entry) == (
        b'{"v":1,"seq":1,"prev":"0000000000000000000000000000000000000000000000000000000000000000",'
        b'"kind":"run.finish","at":"2026-03-29T01:30:00.25Z","host":"alpha","actor":{"uid":0},"version":"0.1.0",'
        b'"run_id":"r","duration_s":0.5}\n'
    )


def test_a_byte_that_is_no_utf8_survives_as_a_lone_surrogate():
    line = lines.encode({"argv": ["caf\udce9", "é\n\x00"]})
    assert line == b'{"argv":["caf\\udce9","\\u00e9\\n\\u0000"]}\n'
    assert lines.parse(line) == {"argv": ["caf\udce9", "é\n\x00"]}


def test_the_digest_covers_the_newline():
    assert lines.digest(b"{}\n") == "ca3d163bab055381827226140568f3bef7eaac187cebd76878e0b63e9e442356"


def test_fields_cannot_replace_the_header():
    with pytest.raises(ValueError, match="the field 'host' belongs to every entry"):
        lines.entry(1, lines.FIRST_PREV, "run.start", 0, AUTHOR, {"host": "beta"})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), b"bytes", {1, 2}])
def test_what_json_cannot_say_is_refused(value):
    with pytest.raises((TypeError, ValueError)):
        lines.encode({"x": value})


@pytest.mark.parametrize("line", [b'{"a":1}', b'{"a":\n', b"[1]\n", b"\xff\n", b""])
def test_a_torn_or_foreign_line_is_refused(line):
    with pytest.raises(ValueError):
        lines.parse(line)

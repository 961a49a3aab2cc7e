"""Where a key stands in a TOML file."""

from __future__ import annotations

import pytest

from runguard.config.keylines import line_of

TEXT = '''\
# a comment with timeout = 5
store = "/srv/rg.sqlite"   # [jobs.x]
mask = [
  "a = b",  # ] not the end
  'c',
]
note = """
[jobs.fake]
timeout = 1
"""

[jobs.letters]
timeout = "5m"
"odd key" = 1
[jobs."a.b"]
ping.start = true
[jobs]
inline = { timeout = 3, gap = "x" }
dotted.timeout = 4
last = 1
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("store",), 2),
        (("mask",), 3),
        (("note",), 7),
        (("jobs", "letters"), 12),
        (("jobs", "letters", "timeout"), 13),
        (("jobs", "letters", "odd key"), 14),
        (("jobs", "a.b"), 15),
        (("jobs", "a.b", "ping", "start"), 16),
        (("jobs",), 17),
        (("jobs", "inline", "gap"), 18),
        (("jobs", "dotted", "timeout"), 19),
        (("nothing",), None),
    ],
)
def test_the_line_of_a_key(path: tuple[str, ...], line: int | None) -> None:
    assert line_of(TEXT, path) == line


@pytest.mark.parametrize("text", ["", "=", "a", "[", "a = '''", 'a = "x\n', "a = [\n", 'a = "\\', "\x00\xff"])
def test_broken_text_ends(text: str) -> None:
    assert line_of(text, ("jobs", "x")) is None

"""Text from anywhere, made safe to print."""

from __future__ import annotations

import pytest

from runguard import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, ümlaut, 漢字", "plain text, ümlaut, 漢字"),
        ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
        ("\x1b[31mred\x1b]52;c;x\x07", "\\x1b[31mred\\x1b]52;c;x\\x07"),
        ("user\u202egpj.exe", "user\\u202egpj.exe"),
        ("\u2066x\u200bz", "\\u2066x\\u200bz"),
        ("bad \udcff byte", "bad \\xff byte"),
        ("\ud800 half", "\\ud800 half"),
        ("nul\x00 c1\x9b", "nul\\x00 c1\\x9b"),
    ],
)
def test_one_line(text: str, shown: str) -> None:
    assert printable.line(text) == shown


def test_a_block_keeps_line_ends_and_tabs() -> None:
    assert printable.block("a\tb\n\x1b[2J\nc\r\n") == "a\tb\n\\x1b[2J\nc\\r\n"


def test_every_byte_comes_out_printable() -> None:
    shown = printable.raw(bytes(range(256)))
    assert all(character.isprintable() or character in "\n\t" for character in shown)
    assert shown.startswith("\\x00\\x01")
    assert shown.endswith("\\xfe\\xff")

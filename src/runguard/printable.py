"""Text from anywhere, made safe to print: no control character, no escape sequence, no bidirectional override."""

from __future__ import annotations


def line(text: str) -> str:
    """Return `text` as one printable line.

    Whatever is not printable is shown as Python would spell it: `\\n`, `\\x1b`, `\\u202e`. A byte that was no UTF-8
    (a lone surrogate U+DC80 to U+DCFF) is shown as that byte: `\\xff`.
    """
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _escaped(character) for character in text)


def block(text: str) -> str:
    """Return `text` safe to print, its line ends and tabs kept."""
    return "\n".join("\t".join(line(cell) for cell in row.split("\t")) for row in text.split("\n"))


def raw(data: bytes) -> str:
    """Return bytes safe to print, line ends and tabs kept."""
    return block(data.decode("utf-8", "surrogateescape"))


def _escaped(character: str) -> str:
    if "\udc80" <= character <= "\udcff":
        return f"\\x{ord(character) - 0xDC00:02x}"
    return repr(character)[1:-1]

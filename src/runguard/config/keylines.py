"""Where a key stands in the text of a TOML file: tomllib tells what a file says, never where.

Runs only to word a message, so it is lenient: a text that is no TOML gives a guess or nothing, never an error.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def line_of(text: str, path: tuple[str, ...]) -> int | None:
    """Return the 1-based line of the key `path`, such as ("jobs", "letters", "timeout"), or None.

    A key inside an inline table is found at the line of that table, a table without a line of its own at its first key.
    """
    around: tuple[int, int] | None = None
    for line, keys in _statements(text):
        if keys == path:
            return line
        shared = min(len(keys), len(path))
        if keys[:shared] == path[:shared] and (around is None or shared > around[0]):
            around = shared, line
    return around[1] if around else None


def _statements(text: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield (line, full key) of every table header and every `key = value`."""
    table: tuple[str, ...] = ()
    at, line = 0, 1
    while at < len(text):
        if text[at] in " \t\r\n":
            line += text[at] == "\n"
            at += 1
        elif text[at] == "#":
            at = _line_end(text, at)
        elif text[at] == "[":
            end = _line_end(text, at)
            table = _keys(text[at:end].lstrip("[").partition("]")[0])
            yield line, table
            at = end
        else:
            equals = text.find("=", at)
            if equals < 0:
                return
            yield line, table + _keys(text[at:equals])
            end = _value_end(text, equals + 1)
            line += text.count("\n", at, end)
            at = end


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _value_end(text: str, at: int) -> int:
    """Return the position of the line end that closes the value which begins at `at`."""
    depth = 0
    while at < len(text):
        character = text[at]
        if character == "\n" and depth <= 0:
            return at
        if character == "#":
            at = _line_end(text, at)
            continue
        if character in "\"'":
            at = _string_end(text, at)
            continue
        depth += (character in "[{") - (character in "]}")
        at += 1
    return at


def _string_end(text: str, at: int) -> int:
    quote = text[at] * 3 if text.startswith(text[at] * 3, at) else text[at]
    at += len(quote)
    while at < len(text) and not text.startswith(quote, at):
        if text[at] == "\n" and len(quote) == 1:
            return at
        at += 2 if text[at] == "\\" and quote[0] == '"' else 1
    return at + len(quote)


def _keys(dotted: str) -> tuple[str, ...]:
    """Return the parts of a dotted key, without their quotes."""
    keys, part, quote = [], "", ""
    for character in dotted.strip():
        if quote:
            quote, part = ("", part) if character == quote else (quote, part + character)
        elif character in "\"'":
            quote = character
        elif character == ".":
            keys.append(part)
            part = ""
        elif character not in " \t":
            part += character
    return (*keys, part)

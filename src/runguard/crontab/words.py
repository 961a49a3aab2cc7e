"""The words of a shell command, with their places: enough of sh to see programs, pipes and redirections.

Nothing is expanded. A word whose text depends on the shell (`$HOME/x`, `*.log`) has no text here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_OPERATOR = re.compile(rb"&&|\|\||;;|\|&|[0-9]*(?:<<<|<<-?|>>|<>|>&|<&|>\||[<>])|&>>?|[;&|()\n]")
_BLANK = re.compile(rb"(?:[ \t]|\\\n)+")
_PLAIN = re.compile(rb"[^ \t\n'\"\\$`;&|<>()*?\[{~#]+|[#~{]")
_REDIRECTIONS = (b"<", b">")

BOURNE = ("sh", "dash", "bash", "ash", "ksh", "ksh93", "mksh", "yash", "zsh")  # shells that read these words
# What a shell knows by itself, sh's and bash's: not what a program of that name does, and nothing to look for.
BUILTINS = frozenset(
    b"! . : [ [[ alias bg bind break builtin caller case cd chdir command compgen complete compopt continue coproc"
    b" declare dirs disown do done echo elif else enable esac eval exec exit export false fc fg fi for function"
    b" getopts hash help history if in jobs kill let local logout mapfile popd printf pushd pwd read readarray"
    b" readonly return select set shift shopt source suspend test then time times trap true type typeset ulimit"
    b" umask unalias unset until wait while { }".split()
)
# After these words of the shell a command begins.
_OPENING = frozenset(b"! { if then elif else while until do time".split())
_SIGNS = (b"[", b"[[", b"{")  # words, and no patterns
_ASSIGNMENT = re.compile(rb"[A-Za-z_][A-Za-z0-9_]*\+?=")


class Word(NamedTuple):
    """One word, `command[start:end]`; `text` is what it means, None where the shell has to expand something."""

    start: int
    end: int
    text: bytes | None
    raw: bytes
    operator: bool = False


class Unclosed(ValueError):
    """A quote, a substitution or a brace is not closed, or too many are open."""


def split(command: bytes) -> list[Word]:
    """Return the words and operators of a command as the shell is given it. Raises Unclosed.

    A comment at its end is left out.
    """
    try:
        return _split(command)
    except RecursionError:
        raise Unclosed("quotes and substitutions are nested too deeply") from None


def _split(command: bytes) -> list[Word]:
    found: list[Word] = []
    at = 0
    while at < len(command):
        blank = _BLANK.match(command, at)
        operator = _OPERATOR.match(command, at)
        if blank:
            at = blank.end()
        elif operator:
            found.append(Word(at, operator.end(), operator[0], operator[0], operator=True))
            at = operator.end()
        elif command[at : at + 1] == b"#":
            at = command.find(b"\n", at) if b"\n" in command[at:] else len(command)
        else:
            word = _word(command, at)
            found.append(word)
            at = word.end
    return found


def simple_commands(words: Sequence[Word]) -> Iterator[list[Word]]:
    """Yield the words of each simple command: no operators, no redirections, no assignments in front.

    The shell's own words that open another command (`if`, `then`, `{`) are left out.
    """
    current: list[Word] = []
    target = False  # the next word is where a redirection goes
    for word in words:
        if word.operator and word.text and any(sign in word.text for sign in _REDIRECTIONS):
            target = True
        elif word.operator:
            if current:
                yield current
            current, target = [], False
        elif target:
            target = False
        elif not current and (word.text in _OPENING or _ASSIGNMENT.match(word.raw)):
            continue
        else:
            current.append(word)
    if current:
        yield current


def without_patterns(words: Sequence[Word]) -> list[Word]:
    """Return the words without the patterns of `case … in`, where | is no pipe."""
    kept: list[Word] = []
    open_cases = 0
    pattern = False
    for at, word in enumerate(words):
        if pattern:
            pattern = word.text not in (b")", b"esac")
            open_cases -= word.text == b"esac"
            if word.text == b")":
                kept.append(word)  # it parts what is before and behind
            continue
        kept.append(word)
        if word.text == b"in" and [each.text for each in words[max(at - 2, 0) : at]][:1] == [b"case"]:
            open_cases += 1
            pattern = True
        elif word.text == b"esac" and open_cases:
            open_cases -= 1
        elif word.operator and word.text == b";;" and open_cases:
            pattern = True
    return kept


def _word(command: bytes, start: int) -> Word:
    """Read the word that begins at `start`."""
    pieces: list[bytes] = []
    at, literal = start, True
    while at < len(command):
        sign = command[at : at + 1]
        plain = _PLAIN.match(command, at)
        if sign == b"'":
            end = _closing(command, at, b"'")
            pieces.append(command[at + 1 : end])
            at = end + 1
        elif sign == b'"':
            end, text = _double(command, at)
            literal = literal and text is not None
            pieces.append(text or b"")
            at = end
        elif sign == b"\\":
            pieces.append(command[at + 1 : at + 2])
            at += 2
        elif sign in b"$`":
            literal = False
            at = _expansion(command, at)
        elif sign in b"*?[":
            literal = False
            at += 1
        elif plain:
            literal = literal and not (plain[0][:1] == b"{" or (plain[0][:1] == b"~" and at == start))
            pieces.append(plain[0])
            at = plain.end()
        else:
            break
    raw = command[start:at]
    return Word(start, start + len(raw), b"".join(pieces) if literal else raw if raw in _SIGNS else None, raw)


def _double(command: bytes, start: int) -> tuple[int, bytes | None]:
    """Return (end, text) of a piece in double quotes."""
    pieces: list[bytes] = []
    at, literal = start + 1, True
    while at < len(command):
        sign = command[at : at + 1]
        if sign == b'"':
            return at + 1, b"".join(pieces) if literal else None
        if sign in b"$`":
            literal = False
            at = _expansion(command, at)
        elif sign == b"\\":
            following = command[at + 1 : at + 2]
            pieces.append(following if following in b'$`"\\' else b"\\" + following)
            at += 2
        else:
            pieces.append(sign)
            at += 1
    raise Unclosed("a double quote is not closed")


def _expansion(command: bytes, at: int) -> int:
    """Return where an expansion ends that begins with `$` or a backquote."""
    if command[at : at + 1] == b"`":
        return _closing(command, at, b"`") + 1
    match command[at + 1 : at + 2]:
        case b"(":
            return _balanced(command, at + 1, b"(", b")")
        case b"{":
            return _balanced(command, at + 1, b"{", b"}")
    name = re.compile(rb"[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-]|").match(command, at + 1)
    assert name
    return name.end()


def _balanced(command: bytes, at: int, opening: bytes, closing: bytes) -> int:
    depth = 0
    while at < len(command):
        sign = command[at : at + 1]
        if sign == b"'":
            at = _closing(command, at, b"'")
        elif sign == b'"':
            at = _double(command, at)[0] - 1
        elif sign == b"\\":
            at += 1
        elif sign == opening:
            depth += 1
        elif sign == closing:
            depth -= 1
            if not depth:
                return at + 1
        at += 1
    raise Unclosed(f"a {opening.decode()} is not closed")


def _closing(command: bytes, at: int, quote: bytes) -> int:
    end = command.find(quote, at + 1)
    if end < 0:
        raise Unclosed("a quote is not closed" if quote == b"'" else "a backquote is not closed")
    return end

"""Hazards of how programs are joined in a command: pipelines that hide a failure, and what runs in the background."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress

from runguard.crontab import words
from runguard.crontab.hazards import Finding
from runguard.crontab.parse import shown
from runguard.crontab.words import Word

# Programs that are run for their status alone, where something depends on it.
ASKED = frozenset(
    b"[ [[ cmp command diff dpkg egrep fgrep fuser getent grep hash id kill lsof mountpoint nc netstat pgrep pidof ping"
    b" rpm ss systemctl test type which zgrep".split()
)
_TALKERS = frozenset(b": date echo printf true yes".split())  # have no failure to hide
_CONDITIONS = (b"if", b"elif", b"while", b"until")
_PIPES = (b"|", b"|&")
_PARTING = (b"&&", b"||", b";", b";;", b"&", b"\n", b"(", b")")
_PIPEFAIL = re.compile(rb"\bpipefail\b")
_SHELLS = (b"sh", b"bash", b"dash", b"ksh", b"zsh")


def judge(number: int, command: bytes, found: Sequence[Word]) -> Iterator[Finding]:
    """Yield the hazards of a command with these words."""
    yield from _inner(number, found)
    if not _PIPEFAIL.search(command):
        last = next((_last(part) for part, decides in _pipelines(found) if _hides(part, decides)), None)
        if last is not None:
            yield Finding(
                number,
                "pipeline",
                f"a pipeline: its status is that of its last command, '{shown(last)}'",
                "when one in front of it fails, cron and every guard see a success",
                "runguard run … -- bash -o pipefail -c 'COMMAND', or with SHELL=/bin/bash: 'set -o pipefail; COMMAND'",
            )
    if found and found[-1].operator and found[-1].text == b"&":
        yield Finding(
            number,
            "background",
            "the command ends in &",
            "the shell ends at once: its status and its end are not known",
            "take the & off: cron does not wait for a line anyway",
        )


def is_condition(before: Sequence[Word]) -> bool:
    """Tell whether what follows these words decides over a branch or loop."""
    start = max((at + 1 for at, word in enumerate(before) if word.operator and word.text != b"|"), default=0)
    return any(word.text in _CONDITIONS for word in before[start : start + 1])


def _inner(number: int, found: Sequence[Word]) -> Iterator[Finding]:
    """Judge what another shell is told: `sh -c '… | …'`."""
    for simple in words.simple_commands(found):
        texts = [word.text for word in simple]
        if texts[0] and texts[0].rpartition(b"/")[2] in _SHELLS and b"-c" in texts[:-1] and b"pipefail" not in texts:
            inner = texts[texts.index(b"-c") + 1] or b""
            with suppress(words.Unclosed):
                yield from judge(number, inner, words.without_patterns(words.split(inner)))


def _pipelines(found: Sequence[Word]) -> Iterator[tuple[Sequence[Word], bool]]:
    """Yield the words of each pipeline, and whether something depends on its status.

    Of one that begins or ends with a subshell, only those that are outside.
    """
    start = 0
    for at in range(len(found) + 1):
        word = found[at] if at < len(found) else None
        if word is not None and not (word.operator and word.text in _PARTING):
            continue
        part = found[start:at]
        if any(_is_pipe(each) for each in part):
            yield part, (word is not None and word.text in (b"&&", b"||")) or part[0].text in _CONDITIONS
        start = at + 1


def _hides(part: Sequence[Word], decides: bool) -> bool:
    """Tell whether a failure in front of a pipeline's last command is of interest and not seen."""
    programs = [(simple[0].text or b"").rpartition(b"/")[2] for simple in words.simple_commands(part)]
    if decides and ASKED.intersection(programs[-1:]):
        return False
    if not _is_pipe(part[-1]):
        del programs[-1:]
    return _is_pipe(part[0]) or any(program not in _TALKERS for program in programs)


def _last(part: Sequence[Word]) -> bytes:
    at = max(at for at, word in enumerate(part) if _is_pipe(word))
    return part[at + 1].raw if at + 1 < len(part) else b"(...)"


def _is_pipe(word: Word) -> bool:
    return word.operator and word.text in _PIPES

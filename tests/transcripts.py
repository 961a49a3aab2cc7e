"""Console blocks of the documents, played in a shell, and what differs from run to run and from host to host."""

from __future__ import annotations

import re
import subprocess
from datetime import UTC, datetime, timedelta

# Instants of this day and of these moments are those of the reader's own runs; all others are told exactly.
RECORDED = "2026-11-29"


def read(block: str) -> list[tuple[str, str]]:
    """Return the commands of a console block, each with what it prints."""
    pieces = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)
    assert pieces[0] == ""
    return list(zip(pieces[1::2], pieces[2::2], strict=True))


def play(commands: list[str], environ: dict[str, str]) -> list[str]:
    """Return what each command prints in one shell, stdout and stderr as they come."""
    mark = "\x1e"
    script = f"mark() {{ was=$?; printf '{mark}'; return $was; }}\n" + "".join(f"mark\n{each}\n" for each in commands)
    done = subprocess.run(
        ["/bin/sh", "-c", script], env=environ, cwd=environ["HOME"], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False,
    )  # fmt: skip
    return done.stdout.split(mark)[1:]


def normal(text: str, environ: dict[str, str]) -> str:
    """Return `text` with everything that differs from run to run and from host to host as a word."""
    now = datetime.now(UTC)  # and midnight may have passed since
    days = "|".join((RECORDED, *(f"{now + timedelta(days=n):%F}" for n in (-1, 0, 1))))
    text = text.replace(environ["HOME"] + "/bin", "/usr/local/bin").replace(environ["HOME"], "/home/ann")
    for pattern, word in (
        (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "UUID"),
        (r"\b[0-9a-f]{64}\b", "HASH"),
        (r"\brun [0-9a-f]{8}\b", "run ID"),
        (rf"\b(?:{days})[T ][0-9:.]+(?:Z|[+-][0-9:]+)", "INSTANT"),
        (r"\b[0-9]+(?:\.[0-9]+)?s\b|\b(?:[0-9]+[dhm])+[0-9]+[hms]\b", "SPAN"),
        (r"\.[0-9]{8}T[0-9]{6}Z(\.[0-9]+)?~", ".STAMP~"),
        (r"\bpid [0-9]+", "pid N"),
        (r"\b[0-9]+ bytes, sha256 HASH", "N bytes, sha256 HASH"),
        (r"\btzdata \w+", "tzdata VERSION"),
        (r"\bPython [0-9.]+", "Python VERSION"),
        (r"\brunguard [0-9]+\.[0-9.]+\b", "runguard VERSION"),
        (r", at most [0-9.]+ MiB of memory", ""),
        (r"^  (by|host) .*", r"  \1 X"),
        (r"\bby \S+ on (?:host )?\S+", "by X on X"),
        (r"\b(intent at |INSTANT \()[0-9:]{8}Z", r"\1INSTANT"),
        (r" +", " "),
    ):
        text = re.sub(pattern, word, text, flags=re.MULTILINE)
    return text.strip()

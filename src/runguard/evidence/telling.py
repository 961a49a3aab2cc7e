"""What a bundle says to people: the explanation as text and as a page, and the README. Not evidence by itself."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from runguard.evidence import later, spoken, words
from runguard.evidence.localtime import Clocks
from runguard.evidence.selecting import Part, Selected
from runguard.instant import rfc3339
from runguard.printable import line
from runguard.store import bearings, items, lines
from runguard.store.reads import Reader, Run

_HEADING = re.compile(r"[A-Z][^:]*:")
_NUMBERED = re.compile(r"[0-9]+\. ")

_STYLE = """body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin: 1.5rem 0 .3rem; }
p { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; }
p.touch { font-weight: 600; margin-top: 1rem; }
@media print { body { margin: 0; max-width: none; } }"""
PAGE_END = "</body>\n</html>\n"


def explanation(selected: Selected) -> Iterator[str]:
    """Yield what explain tells of a case, line by line, safe to print."""
    assert selected.explained is not None
    yield from map(line, words.lines(selected.explained))


def overview(reader: Reader, selected: Selected) -> Iterator[str]:
    """Yield what is on record of each run of a job, line by line, safe to print."""
    parts = {part.run.run_id: part for part in selected.parts}
    runs = selected.runs
    yield line(f"{selected.title}: {len(runs)} run{'s' * (len(runs) != 1)}.")
    for run in runs:
        yield ""
        yield from _of_run(reader, run, parts.get(run.run_id))
    clocks, heading = Clocks(), "Later entries that bear on it:"
    for seq in selected.entries:
        entry = next((lines.parse(found) for (found,) in reader.rows("line_at", seq=seq)), None)
        if entry is not None and entry["kind"] in bearings.KINDS:
            yield from ("", heading) if heading else ()
            heading = ""
            yield line(f"- {spoken.entry(later.facts(entry), clocks)}")


def page_head(title: str) -> str:
    """Return the beginning of a page that loads nothing and runs nothing."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{_escaped(title)}</title>\n<style>\n{_STYLE}\n</style>\n</head>\n<body>\n"
        f"<h1>{_escaped(title)}</h1>\n"
    )


def page_line(text: str) -> str:
    """Return one line of an explanation as a paragraph or a heading."""
    if not text:
        return ""
    if _HEADING.fullmatch(text):
        return f"<h2>{_escaped(text.removesuffix(':'))}</h2>\n"
    mark = ' class="touch"' if _NUMBERED.match(text) else ""
    return f"<p{mark}>{_escaped(text)}</p>\n"


def readme(selected: Selected, records: int) -> str:
    """Return the README of a bundle."""
    title = line(selected.title)
    beyond = sum(part.unlisted for part in selected.parts)
    later = f"\nNot here: {beyond:,} records that no entry of the ledger names yet.\n" if beyond else ""
    return _README.format(title=title, rule="=" * (len(title) + 10), records=records, later=later)


def _of_run(reader: Reader, run: Run, part: Part | None) -> Iterator[str]:
    window = f" for the window {run.label} ({run.window_key})" if run.window_key else ""
    yield line(f"{run.number}. {rfc3339(run.started_us)}{window}: {run.outcome}{f', {run.why}' if run.why else ''}")
    entries = [str(seq) for seq in (run.start_seq, run.finish_seq, run.late_seq) if seq is not None]
    yield f"   Entries  {', '.join(entries)}"
    yield f"   Id       {run.run_id}"
    if run.suspect:
        yield line(f"   Suspect  {run.suspect}")
    if part is not None:
        told = items.progress(reader, run.start_seq)
        cases = f", {told.cases} cases" if told else ""
        yield f"   Records  {part.listed}{cases}, listed by entry {part.list_seq}"


def _escaped(text: str) -> str:
    return html.escape(line(text))


_README = """\
Evidence: {title}
{rule}

Taken from the record that runguard keeps of the runs of jobs and of what they
did with their cases. The files are plain text. To check them:

    sh VERIFY.sh

It needs sh, sha256sum, grep, and ssh-keygen where checkpoints are signed, and
nothing of runguard; read it first, it is short. It names every file, entry or
record that is not what was recorded, and ends with status 1 then.

explanation.txt, explanation.html
    What the record says, for people to read. Numbers of entries are those
    below. It is an account, not evidence: MANIFEST alone covers it.
entries.jsonl
    Entries of the ledger, one a line, byte for byte as they were written.
records.jsonl
    Records ({records}), one a line, byte for byte: "item" is what the job wrote,
    "salt" is random, so that nobody can guess a record from its hash.
lists/RUN/
    Which records a run has: gNNNNN lists a hundred of them by their SHA-256,
    run lists those lists. The entry that ends the run, or an entry "items",
    has the SHA-256 of run as list_sha256. rejects lists lines that were no
    records. Records of other cases are there as hashes alone; one that is in
    a list and not in records.jsonl is another person's, or was removed
    lawfully, and then an entry "redact" or "prune" says so.
checkpoints.jsonl, checkpoints/
    A checkpoint names all entries since the one before by the SHA-256 of a
    list, and the checkpoint before by its SHA-256. checkpoints/NNNNNNNNNN is
    the list of that checkpoint. newer, if it is there, lists entries that no
    checkpoint names yet.
recovered/
    If it is there: a damaged store was recovered, and lists of checkpoints were
    lost. The entry "recovery" of that number names the list of entries that
    they had named. These are proved since then, not since they were written.
signatures/, allowed_signers
    Signatures of checkpoints by ssh-keygen, and the key that made them.
texts/
    Texts (rules, templates) whose SHA-256 the record names, if they were
    added. runguard itself keeps only the hashes of rules.
MANIFEST
    SHA-256 of every other file. Its own SHA-256 stands for the bundle: it is
    on record where this was exported, in an entry "access".
{later}
What this proves
    That these entries and records are the ones that were written when their
    checkpoint was made. If you hold an anchor, the number and SHA-256 of an
    entry that you were told at some time (sh VERIFY.sh SEQ:SHA256), or trust
    whoever kept the signing key elsewhere: that nothing up to then was
    changed since.

What it does not
    That what the job reported is true: whoever controls the host while a job
    runs can have it record falsehoods. That the host's clock was right; an
    anchor proves "not later than". That nothing was left out of this
    selection: for that, ask for a verification of the whole ledger. Without
    an anchor outside, whoever controls the host afterwards could have written
    all of it anew, and a signing key on the same host does not help.
    Who looked at the record is on record there too, and not in this bundle.
"""

"""`verify`: is the record what was written, and is it whole."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import click

from runguard import clock, config
from runguard.cli.asking import Place, find, nothing_recorded
from runguard.cli.fast import say
from runguard.cli.options import Command, query_options
from runguard.cli.output import Column, Row, emit, page, steps
from runguard.errors import NothingRecordedError, RunguardError, UsageError, reason
from runguard.evidence import signing
from runguard.evidence import verify as verification
from runguard.evidence.chain import Finding
from runguard.evidence.verify import Report, Since, Trusted
from runguard.guard import anchoring, host
from runguard.instant import SECOND_US
from runguard.printable import line
from runguard.settings import Settings
from runguard.store.database import ReadOnlyStore
from runguard.store.sqlite import open_reader, open_store
from runguard.store.witness import Seen, Witness

TEXT = """Verify the record: was it touched since it was written (integrity), is every window answered (completeness)?

Looks at what came since the last time that nothing was found, or with --full at everything. What --anchor and the
witness kept outside of the store is held against it. Whoever may write to the store makes the daily checkpoint, too.
"""

STATUSES = (
    ("0", "nothing was found"),
    ("1", "something was found, or windows are missing"),
    ("2", "usage"),
    ("74", "the store cannot be read"),
    ("78", "a mistake in the configuration, with its file and line"),
)
COLUMNS = (Column("VERDICT"), Column("FOUND"), Column("WHAT", wrap=True))
_MOST_SHOWN = 50  # findings, to people
FIELDS = ("verdict", "ok", "since_seq", "upto_seq", "entries", "checkpoints", "signed", "records", "findings",
          "removed", "breaks")  # fmt: skip


@click.command("verify", cls=Command, help=TEXT, short_help="Verify the record.", statuses=STATUSES)
@click.option("--full", is_flag=True, help="Look at everything, not only at what came since the last time.")
@click.option("--anchor", "anchors", metavar="SEQ:SHA256", multiple=True, help="What a ping or another has kept.")
@click.option("--public-key", metavar="FILE", help="Public key of who signs (default: sign_key's).")
@query_options
@click.pass_obj
def verify(
    environ: dict[str, str],
    full: bool,
    anchors: tuple[str, ...],
    public_key: str | None,
    form: str | None,
    store: str | None,
) -> int:
    """Print both verdicts."""
    place = find(environ, store)
    settings, _ = config.effective({}, environ, place.loaded, "")
    kept = tuple(_anchor(text) for text in anchors)
    witness, damaged = _witness(place)
    trusted = Trusted(witness, kept, _public_key(public_key, settings, environ))
    try:
        records = open_reader(place.kept.store)
    except NothingRecordedError:
        if witness is None and not damaged and not kept:
            say(nothing_recorded(place))
            return 0
        open_reader(place.kept.store, witness_directory=place.kept.witness)  # says what the witness knows
        raise
    now_us = clock.look().wall_us
    with records:
        since = Since() if full else _since(records)
        head = records.head()
        with steps("entries", (head.seq if head else 0) - since.seq) as advance, ThreadPoolExecutor(1) as beside:
            file = beside.submit(verification.file_flaws, place.kept.store) if full else None
            report = verification.integrity(records, since, trusted, environ, advance)
        report = report._replace(findings=(*report.findings, *damaged, *(file.result() if file else ())))
        graces_us = {job: _grace_us(environ, place, job) for job in records.jobs()}
        windows = tuple(verification.unanswered(records, graces_us, now_us))
    emit(form or "table", _rows(report, windows, alone=witness is None), COLUMNS, FIELDS)
    if form in (None, "table"):
        texts = [each.text for each in (*report.findings, *windows)]
        if len(texts) > _MOST_SHOWN:
            texts[_MOST_SHOWN:] = [f"and {len(texts) - _MOST_SHOWN:,} more: --json names them all"]
        page(f"  {line(text)}" for text in (*texts, *(each.text for each in report.removed), *report.breaks))
    _note(environ, place, settings, report, now_us)
    return 1 if report.findings or windows else 0


def _anchor(text: str) -> Seen:
    """Return an anchor as pings and the anchor's command tell it. Raises UsageError."""
    seq, _, digest = text.strip().partition(":")
    if not (
        seq.isascii() and seq.isdigit() and int(seq) and len(digest) == 64 and not digest.strip("0123456789abcdef")
    ):
        raise UsageError(f"verify: --anchor: {text[:80]!r} is none: SEQ:SHA256 is wanted, as pings tell it")
    return Seen(int(seq), digest)


def _witness(place: Place) -> tuple[Seen | None, list[Finding]]:
    """Return what the witness has seen, and what is wrong with it; an auditor may not be let see it."""
    witness = Witness(place.kept.witness, os.path.realpath(place.kept.store))
    try:
        return witness.read(), []
    except PermissionError:
        return None, []
    except (OSError, ValueError) as error:
        text = f"witness {witness.path}: {reason(error)}; the ledger is not held against it"
        return None, [Finding("witness", None, text)]


def _public_key(path: str | None, settings: Settings, environ: dict[str, str]) -> str | None:
    """Return the public key that signatures are to be by. Raises UsageError for a file that holds none."""
    if path is not None:
        try:
            with open(path, encoding="utf-8") as file:
                return file.read().strip()
        except (OSError, ValueError) as error:
            raise UsageError(f"verify: --public-key: {path}: {getattr(error, 'strerror', None) or error}") from error
    if settings.sign_key is None:
        return None
    try:
        return signing.public_key(settings.sign_key, environ)
    except ValueError as error:
        say(f"sign_key: {error}; any valid signature counts")
        return None


def _since(records: ReadOnlyStore) -> Since:
    found = records.rows("last_verified")
    return Since(found[0][2], found[0][3]) if found else Since()


def _grace_us(environ: dict[str, str], place: Place, job: str) -> int:
    settings, _ = config.effective({}, environ, place.loaded, job)
    return round(settings.grace_s * SECOND_US)


def _rows(report: Report, windows: tuple[Finding, ...], *, alone: bool) -> Iterator[Row]:
    """Yield the two verdicts, each followed by what was found; `alone`: without a witness of where the ledger ends."""
    since = f"entries {report.since_seq + 1} to {report.upto_seq}" if report.entries else "no entry is new"
    signed = f", {report.signed} of them signed" if report.checkpoints else ""
    cases = f", {report.records} case entries" if report.records else ""
    checkpoints = "1 checkpoint" if report.checkpoints == 1 else f"{report.checkpoints} checkpoints"
    seen = f"{since}, {checkpoints}{signed}{cases}{', no witness' if alone else ''}"
    facts = {
        "since_seq": report.since_seq + 1, "upto_seq": report.upto_seq, "upto_sha256": report.upto_hash,
        "entries": report.entries, "checkpoints": report.checkpoints, "signed": report.signed,
        "records": report.records,
    }  # fmt: skip
    for verdict, findings, what in (
        ("integrity", report.findings, seen),
        ("completeness", windows, "every expected window is answered"),
    ):
        told = [{"what": each.what, "seq": each.seq, "text": each.text} for each in findings]
        found = "ok" if not findings else f"{len(findings)} found"
        said = what if not findings or verdict == "integrity" else "not every expected window is answered"
        gone = [each._asdict() for each in report.removed] if verdict == "integrity" else []
        breaks = list(report.breaks) if verdict == "integrity" else []
        row = {"verdict": verdict, "ok": not findings, **facts, "findings": told, "removed": gone, "breaks": breaks}
        yield Row(row, (verdict, found, said))


def _note(environ: dict[str, str], place: Place, settings: Settings, report: Report, now_us: int) -> None:
    """Note in the store that it was verified, and make the checkpoint that is due, where this account may."""
    row = {
        "at_us": now_us, "since_seq": report.since_seq, "upto_seq": report.upto_seq, "upto_hash": report.upto_hash,
        "problems": len(report.findings),
    }  # fmt: skip
    kept = place.kept
    if not os.access(kept.store, os.W_OK):
        return
    try:
        author = host.author(environ)
        with open_store(kept.store, author=author, create=False, witness_directory=kept.witness) as store:
            with store.write() as tx:
                tx.send("insert_verified", row)
            if not report.findings:
                anchoring.checkpoint(store, settings, environ, say)
    except RunguardError as error:
        say(f"{error}; that it was verified is not noted")

"""`export`: an evidence bundle that a third party checks without runguard."""

from __future__ import annotations

import hashlib
import os

import click

from runguard import clock, config
from runguard.cli.asking import Place, find, known_job, nothing_recorded, open_records
from runguard.cli.fast import say
from runguard.cli.options import Command, store_option
from runguard.cli.output import page, steps
from runguard.cli.spans import when
from runguard.cli.targets import case_id
from runguard.errors import OutputError, RunguardError, UsageError
from runguard.errors import reason as why
from runguard.evidence import bundle, erasure, selecting, shipping, signing
from runguard.evidence.bundle import Given, Written
from runguard.evidence.found import Asked
from runguard.evidence.ran import Moment
from runguard.evidence.selecting import Selected
from runguard.evidence.shipping import Parcel
from runguard.guard import anchoring, host
from runguard.guard.writing import writing
from runguard.instant import SECOND_US, rfc3339
from runguard.printable import line
from runguard.store.database import ReadOnlyStore
from runguard.store.journal import Journal
from runguard.store.sqlite import open_store

TEXT = """Write what is on record of a case, or of a job, with all that a stranger needs to check it: a bundle.

PATH becomes a directory, or an archive if it ends with .tar.gz. The bundle's VERIFY.sh needs nothing of runguard.
Records of other cases are in it as salted hashes alone. The export, with the bundle's hash, is itself put on record.
"""

STATUSES = (
    ("0", "done"),
    ("1", "done, and the record is damaged: VERIFY.sh will say so"),
    ("2", "usage, PATH exists, or a case or job that is not on record"),
    ("74", "the store cannot be read, or PATH not be written: then there is nothing there"),
    ("78", "a mistake in the configuration, with its file and line"),
)
MOST_TEXT_BYTES = 16 << 20


@click.command("export", cls=Command, help=TEXT, short_help="Write an evidence bundle.", statuses=STATUSES)
@click.option("--case", metavar="ID", help="What bears on this case.")
@click.option("--job", metavar="JOB", help="All runs of this job, with all their cases.")
@click.option("--since", metavar="WHEN", help="With --job: runs started then or later.")
@click.option("--until", metavar="WHEN", help="With --job: runs started before.")
@click.option("-o", "--output", metavar="PATH", help="Where to write it (needed).")
@click.option("--with", "texts", metavar="FILE", multiple=True, help="Add a text that the record names by its SHA-256.")
@click.option("--reason", metavar="TEXT", help="Why, for whom; it is put on record with your login.")
@store_option
@click.pass_obj
def export(
    environ: dict[str, str],
    case: str | None,
    job: str | None,
    since: str | None,
    until: str | None,
    output: str | None,
    texts: tuple[str, ...],
    reason: str | None,
    store: str | None,
) -> int:
    """Write the bundle beside PATH, put it on record, and give it its name; say its hash."""
    _judge(case, job, since, until, output, reason)
    assert output is not None
    place = find(environ, store)
    settings, _ = config.effective({}, environ, place.loaded, "")
    given = Given(_public_key(settings.sign_key, environ), tuple(_text(path) for path in texts))
    _bring_over(environ, place)
    records = open_records(place)
    if records is None:
        raise UsageError(f"export: {nothing_recorded(place)}")
    try:
        with shipping.parcel(output) as parcel, records:
            selected = _select(environ, place, records, case, job, since, until)
            _make_checkpoint(environ, place, selected)
            with steps("records", sum(part.listed for part in selected.parts)) as advance:
                written = bundle.write(parcel.directory, records, selected, given, advance)
            if written.unnamed:
                raise UsageError(f"export: --with: the record names no text with SHA-256 {written.unnamed[0]}")
            parcel.close()
            entry = _note(environ, place, case, selected, written, reason)
            parcel.deliver()
    except OSError as error:
        raise OutputError(f"export: {output}: {why(error)}; nothing was written") from error
    _tell(parcel, selected, written, entry)
    return 1 if selected.explained is not None and selected.explained["damage"] else 0


def _judge(
    case: str | None, job: str | None, since: str | None, until: str | None, output: str | None, reason: str | None
) -> None:
    if (case is None) == (job is None):
        raise UsageError("export: either --case ID or --job JOB")
    if case is not None:
        case_id("export", case)
    if job is None and (since is not None or until is not None):
        raise UsageError("export: --since and --until go with --job")
    if not output or not output.strip():
        raise UsageError("export: -o PATH is needed: where is it to be?")
    if reason is not None and not reason.strip():
        raise UsageError("export: --reason is empty")


def _bring_over(environ: dict[str, str], place: Place) -> None:
    """Bring the journal into the ledger, where that can be: what waits in it would not be in the bundle."""
    if not Journal(place.kept.state, host.author(environ)).pending():
        return
    try:
        with writing(environ, place.kept, create=False):
            pass
    except RunguardError as error:
        say(f"export: {error}; what waits in the journal is not in the bundle")


def _public_key(sign_key: str | None, environ: dict[str, str]) -> str | None:
    if sign_key is None:
        return None
    try:
        return signing.public_key(sign_key, environ)
    except ValueError as error:
        say(f"export: sign_key: {error}; the bundle has no public key")
        return None


def _text(path: str) -> tuple[str, bytes]:
    """Return the SHA-256 of a text, and the text. Raises UsageError."""
    try:
        with open(path, "rb") as file:
            text = file.read(MOST_TEXT_BYTES + 1)
    except (OSError, ValueError) as error:
        raise UsageError(f"export: --with: {path}: {getattr(error, 'strerror', None) or error}") from None
    if len(text) > MOST_TEXT_BYTES:
        raise UsageError(f"export: --with: {path} is larger than {MOST_TEXT_BYTES >> 20} MiB")
    return hashlib.sha256(text).hexdigest(), text


def _select(
    environ: dict[str, str],
    place: Place,
    records: ReadOnlyStore,
    case: str | None,
    job: str | None,
    since: str | None,
    until: str | None,
) -> Selected:
    """Return what is to go into the bundle. Raises UsageError."""
    now_us = clock.look().wall_us
    if case is not None:
        asked = Asked(case, Moment(now_us, place.kept.runs), lambda job: _grace_us(environ, place, job))
        found = selecting.of_case(records, asked)
        if found is None:
            raise UsageError(f"export: nothing is on record of case {line(case)}")
        return found
    assert job is not None
    known_job(records, job, place)
    ends = [
        None if text is None else when(f"export: {option}", text).at_us(now_us)
        for option, text in (("--since", since), ("--until", until))
    ]
    since_us, until_us = ends
    if since_us is not None and until_us is not None and since_us >= until_us:
        raise UsageError(f"export: --since ({rfc3339(since_us)}) is not before --until ({rfc3339(until_us)})")
    return selecting.of_job(records, job, since_us, until_us)


def _grace_us(environ: dict[str, str], place: Place, job: str) -> int:
    settings, _ = config.effective({}, environ, place.loaded, job)
    return round(settings.grace_s * SECOND_US)


def _make_checkpoint(environ: dict[str, str], place: Place, selected: Selected) -> None:
    """Let a checkpoint name every entry of the bundle, where this account may."""
    kept, upto_seq = place.kept, max(selected.entries, default=0)
    if not os.access(kept.store, os.W_OK):
        return
    settings, _ = config.effective({}, environ, place.loaded, "")
    author = host.author(environ)
    with open_store(kept.store, author=author, create=False, witness_directory=kept.witness) as store:
        anchoring.checkpoint(store, settings, environ, lambda text: say(f"export: {text}"), upto_seq)


def _note(
    environ: dict[str, str], place: Place, case: str | None, selected: Selected, written: Written, reason: str | None
) -> int | None:
    """Put the export on record; return its entry, None where this account cannot."""
    told = {"how": "export", "question": None, "bundle_sha256": written.manifest_sha256, "reason": reason}
    try:
        with writing(environ, place.kept, create=False) as tx:
            about = [erasure.target_of(tx.store, case)] if case is not None else [selected.target]
            return tx.append("access", clock.look().wall_us, {"about": about, **told}).seq
    except RunguardError as error:
        say(f"export: that it was exported is not on record: {error}")
    return None


def _tell(parcel: Parcel, selected: Selected, written: Written, entry: int | None) -> None:
    counts = f"{written.entries:,} entries, {written.records:,} record{'s' * (written.records != 1)}"
    on_record = f" (entry {entry})" if entry is not None else ""
    lines = [f"exported {line(selected.title)} to {line(parcel.path)}: {counts}{on_record}"]
    lines.append(f"  MANIFEST sha256 {written.manifest_sha256}")
    if parcel.archive_sha256 is not None:
        lines.append(f"  archive sha256  {parcel.archive_sha256}")
    page(lines)
    if written.newer:
        say(f"export: no checkpoint names entry {written.newer[0]} yet: nothing but an anchor proves it")
    if selected.explained is not None and selected.explained["damage"]:
        say("export: the record is damaged (runguard verify --full), and so is what was exported")

"""Is the record what was written, and is it whole: two verdicts, and every finding by name.

Integrity: the chain, the checkpoints, their signatures, the witness and anchors that others kept, the tables against
the ledger, case entries and their lists, the kept output. What redact and prune removed is counted, and named by their
entries. Completeness: every expected window is answered, or named.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from runguard import clock
from runguard.coverage.missing import gap
from runguard.errors import StoreError
from runguard.evidence import forgotten, indexed, mending, records, signing
from runguard.evidence.chain import PAGE, Chain, Finding, raw
from runguard.evidence.forgotten import Pruned, Rest
from runguard.evidence.indexed import Indexed
from runguard.evidence.removals import Removals, Removed
from runguard.guard.expecting import expecting
from runguard.instant import SECOND_US, from_rfc3339
from runguard.store import examining, recoveries
from runguard.store.database import ReadOnlyStore
from runguard.store.lines import FIRST_PREV
from runguard.store.recoveries import Recoveries
from runguard.store.witness import Seen

EMPTY = sha256(b"").hexdigest()
SIGNED_WITHIN_US = 3 * SECOND_US
MOST_FINDINGS = 1_000  # a ledger that was written anew from some entry on is one finding, not a million


class Since(NamedTuple):
    """Up to where the ledger was verified before: entry and SHA-256 of its line; 0 and the first `prev` for nothing."""

    seq: int = 0
    hash: str = FIRST_PREV


class Trusted(NamedTuple):
    """What was kept elsewhere and the ledger is held against."""

    witness: Seen | None = None
    anchors: tuple[Seen, ...] = ()
    public_key: str | None = None  # of who signs checkpoints; None: any valid signature counts


class Report(NamedTuple):
    """What was looked at, from which entry on, and what was found."""

    since_seq: int
    upto_seq: int
    upto_hash: str
    entries: int
    checkpoints: int
    signed: int
    records: int  # case entries
    findings: tuple[Finding, ...]
    removed: tuple[Removed, ...] = ()  # what is not there any more, lawfully
    breaks: tuple[str, ...] = ()  # what recoveries of a damaged store have named as lost, wherever it was looked at


def integrity(
    store: ReadOnlyStore,
    since: Since,
    trusted: Trusted,
    environ: Mapping[str, str],
    advance: Callable[[int], None],
    most: int = MOST_FINDINGS,
    known: Recoveries | None = None,
) -> Report:
    """Look at every entry after `since`; `advance` is told of each page how many entries it had. Raises StoreError.

    What a recovery has named is no finding any more, and is told in `breaks`; `known` are those that count, in place of
    those on record.
    """
    found: list[Finding] = []
    gone, removals, known = forgotten.pruned(store), Removals(store), known or recoveries.read(store)
    begin = _beginning(store, since, gone, found)
    chain, tellings = Chain(begin.seq, begin.hash, known.name_gap), records.Tellings()
    if gone is not None and begin.seq == gone.upto_seq:
        _rest(store, gone, tellings, found)
    while page := store.unjudged("lines_after", seq=chain.seq, page=PAGE):
        _hold_against(store, page, chain, tellings, found)
        advance(len(page))
        if len(found) > most:
            text = f"too many findings: nothing was looked at after entry {chain.seq}"
            found.append(Finding("chain", chain.seq, text))
            break
    found += indexed.strays(store)
    if not since.seq:
        found += indexed.orphans(store)
    looked_at = 0

    def counted(count: int) -> None:
        nonlocal looked_at
        looked_at += count
        advance(count)

    tellings.look_again(store, [run for seq, runs in removals.runs.items() if seq > begin.seq for run in runs])
    tellings.leave_out(known.incomplete)
    found += records.compare(store, tellings, removals, counted)
    found += records.untold(store, tellings, begin.seq)
    found += removals.what_stayed()
    found += _listed(store, gone, known)
    signed = _signatures(store, since.seq, trusted, environ, found)
    if found and forgotten.pruned(store) != gone:  # somebody has pruned meanwhile
        return integrity(store, since, trusted, environ, advance, most)
    found = [each for each in found if not known.names(each.what, each.seq)]
    found += _kept_elsewhere(store, trusted, gone, known)
    told = (begin.seq, chain.seq, chain.hash, chain.entries, chain.checkpoints, signed, looked_at, tuple(found))
    return Report(*told, tuple(_removed(gone, removals)), tuple(each.sentence() for each in known.found))


def file_flaws(path: str) -> list[Finding]:
    """Return what is wrong with the file itself: its pages, and tables, indexes and triggers that are not as made.

    Raises StoreError where it cannot be looked at.
    """
    try:
        return [Finding("file", None, text) for text in examining.flaws(path)]
    except StoreError as error:
        if not examining.is_damage(error):
            raise
        return [Finding("file", None, error.why)]


def unanswered(store: ReadOnlyStore, graces_us: Mapping[str, int], now_us: int) -> Iterator[Finding]:
    """Yield the windows of each job that nobody answered, since it is known; `graces_us` by job. Raises StoreError."""
    for job in store.jobs():
        expected = expecting(store, job)
        if expected is None:
            continue
        missed = gap(expected.succession, store, job, expected.since_us, now_us - graces_us[job])
        if missed is not None:
            windows = f"{missed.windows} windows" if missed.windows > 1 else "1 window"
            text = f"{job}: nobody answered {windows}, the first {missed.first.key}: runguard missing {job}"
            yield Finding("windows", None, text)


def _hold_against(
    store: ReadOnlyStore, page: list[tuple[Any, ...]], chain: Chain, tellings: records.Tellings, found: list[Finding]
) -> None:
    """Hold the next lines of the ledger against the chain, the tables and the outputs that are kept."""
    first_seq = chain.seq + 1
    sound, unsound = [], []
    for seq, line in page:
        flaws = list(chain.follow(seq, raw(line)))
        found += flaws
        if flaws:
            unsound.append(seq)
        else:
            sound.append((seq, raw(line)))
            tellings.read(seq, raw(line))
    found += Indexed(store, sound, first_seq, chain.seq, unsound).findings()
    found += _outputs(store, first_seq, chain.seq)


def _beginning(store: ReadOnlyStore, since: Since, gone: Pruned | None, found: list[Finding]) -> Since:
    """Return where to begin: after `since`, as long as that entry still stands there, or was pruned."""
    start = Since() if gone is None else Since(gone.upto_seq, gone.upto_hash)
    if since.seq <= start.seq:
        return start
    lines = store.unjudged("line_at", seq=since.seq)
    if lines and sha256(raw(lines[0][0])).hexdigest() == since.hash:
        return since
    found.append(Finding("chain", since.seq, f"entry {since.seq} is not what it was when the ledger was last verified"))
    return start


def _rest(store: ReadOnlyStore, gone: Pruned, tellings: records.Tellings, found: list[Finding]) -> None:
    """Look at what is there of the entries that were pruned."""
    rest = Rest(store, gone)
    after_seq = 0
    for upto_seq, page in rest.pages():
        found += Indexed(store, page, after_seq + 1, upto_seq).findings()
        after_seq = upto_seq
        for seq, line in page:
            tellings.read(seq, line)
    found += rest.findings
    found += _outputs(store, 1, gone.upto_seq)


def _removed(gone: Pruned | None, removals: Removals) -> Iterator[Removed]:
    """Yield what is not there any more, lawfully."""
    if gone is not None:
        stay = f", {gone.kept} of them stay" if gone.kept else ""
        begins = f"verification starts at checkpoint {gone.checkpoint_seq}"
        yield Removed(gone.seq, f"entries 1 to {gone.upto_seq} pruned by entry {gone.seq}{stay}; {begins}")
    yield from removals.looked_up()


def _outputs(store: ReadOnlyStore, first_seq: int, last_seq: int) -> Iterator[Finding]:
    for seq, *kept in store.unjudged("outputs_of", first_seq=first_seq, last_seq=last_seq):
        lines = store.unjudged("line_at", seq=seq)
        try:
            told = json.loads(lines[0][0])
            output = told.get("output") or {"head_sha256": EMPTY, "tail_sha256": EMPTY}
        except (ValueError, IndexError, AttributeError, TypeError):
            continue  # told by the chain
        if told.get("journaled"):
            continue  # it was kept afterwards, from what the guard had left
        for name, found in zip(("head", "tail"), kept, strict=True):
            expected = output.get(f"{name}_sha256")
            if expected is not None and sha256(raw(found or b"")).hexdigest() != expected:
                how = "removed" if found is None else "changed"
                yield Finding("output", seq, f"the kept output ({name}) of the run that entry {seq} ended was {how}")


def _listed(store: ReadOnlyStore, gone: Pruned | None, known: Recoveries) -> Iterator[Finding]:
    """Hold what no checkpoint proves any more against the lists of recoveries, as long as nothing of it is pruned."""
    for each in known.found:
        is_there = gone is None or all(first > gone.upto_seq for first, _ in each.listed)
        if is_there and mending.listed(store, each.listed).sha256 != each.list_sha256:
            yield Finding("chain", each.seq, f"the entries that the recovery {each.seq} lists were changed since")


def _signatures(
    store: ReadOnlyStore, after_seq: int, trusted: Trusted, environ: Mapping[str, str], found: list[Finding]
) -> int:
    """Check what is signed, and return how many are. Missing is a signature that the next checkpoint has seen.

    That of the last one is waited for a little: it is made after the checkpoint. Where one could not be made, the
    signature of any later checkpoint covers all before it.
    """
    signed = 0
    checkpoints = store.unjudged("signatures", seq=after_seq)
    for at, (seq, line, text) in enumerate(checkpoints):
        if text is not None:
            signed += 1
            if why := signing.flaw(raw(line), str(text), trusted.public_key, environ):
                found.append(Finding("signature", seq, f"the signature of checkpoint {seq} does not hold: {why}"))
        elif checkpoints[at + 1 :]:
            if b',"previous_signed":true}' in checkpoints[at + 1][1]:
                found.append(Finding("signature", seq, f"the signature of checkpoint {seq} was removed"))
        elif (signed or trusted.public_key is not None) and not _comes(store, seq, raw(line)):
            found.append(Finding("signature", seq, f"checkpoint {seq} is not signed"))
    return signed


def _comes(store: ReadOnlyStore, seq: int, line: bytes) -> bool:
    """Tell whether a checkpoint that was just made is signed by now."""
    try:
        made_us = from_rfc3339(json.loads(line)["at"])
    except (ValueError, KeyError, TypeError):
        return False
    while 0 <= clock.look().wall_us - made_us < SIGNED_WITHIN_US:
        time.sleep(0.1)
        if store.unjudged("signature", seq=seq):
            return True
    return bool(store.unjudged("signature", seq=seq))


def _kept_elsewhere(
    store: ReadOnlyStore, trusted: Trusted, gone: Pruned | None, known: Recoveries
) -> Iterator[Finding]:
    """Hold the ledger against what was kept outside of it."""
    kept: Sequence[tuple[str, Seen]] = [
        *([("witness", trusted.witness)] if trusted.witness else []),
        *(("anchor", each) for each in trusted.anchors),
    ]
    for what, (seq, hash) in kept:
        lines = store.unjudged("line_at", seq=seq)
        if not lines and gone is not None and seq <= gone.upto_seq:
            text = (
                f"entry {seq}, which the {what} knows, was pruned by entry {gone.seq}: it cannot be compared any more"
            )
            yield Finding(what, seq, text)
        elif not lines and known.knows(seq, hash):
            continue  # it is lost, and the recovery has named it
        elif not lines and known.name_gap(seq, seq):
            yield Finding(what, seq, f"entry {seq}, which the {what} knows, is lost: it cannot be compared any more")
        elif not lines:
            last = store.head()
            ends = f"ends at {last.seq}" if last else "is empty"
            cut = "its tail was cut off, or it is an older copy"
            yield Finding(what, seq, f"the ledger {ends}, and the {what} knows entry {seq}: {cut}")
        elif sha256(raw(lines[0][0])).hexdigest() != hash:
            yield Finding(what, seq, f"entry {seq} is not the one that the {what} knows: the ledger was written anew")

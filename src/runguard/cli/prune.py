"""`prune`: retention. What is older than it must be kept goes: case text, then entries of the ledger."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable

import click

from runguard import clock, values
from runguard.cli.asking import Place, find, nothing_recorded, open_records
from runguard.cli.fast import say
from runguard.cli.options import Command, store_option
from runguard.cli.output import page, steps
from runguard.cli.targets import reason_of
from runguard.errors import UsageError
from runguard.evidence import old_entries, pruning
from runguard.evidence.old_entries import Old
from runguard.evidence.pruning import Asked
from runguard.evidence.retention import Hold, held, in_words, said
from runguard.guard import host
from runguard.guard.writing import writing
from runguard.instant import DAY_S, SECOND_US, from_rfc3339, rfc3339
from runguard.printable import line
from runguard.store.sqlite import open_store

TEXT = """Remove what is older than --keep: the text of case entries, then entries of the ledger. Never checkpoints.

What is held stays and is listed, and so does a run that is not over, the last runs of each job, definitions and known
defects. Windows that were due before then are not expected any more. Entries of the ledger say what was removed, and
verification starts at the checkpoint that the last of them names. On a terminal it asks first; --dry-run does nothing.
"""

STATUSES = (
    ("0", "done, or there was nothing to remove"),
    ("1", "told not to, at the terminal"),
    ("2", "usage, or even the newest entry is of years ago: is the clock right?"),
    ("74", "the store cannot be read or written, or the record does not hold: then nothing is removed"),
    ("78", "a mistake in the configuration, with its file and line"),
)
_CALENDAR = re.compile(r"([0-9]{1,4}) ?(y|years?|mo|months?)")
_SHOWN = 20
_IDLE_US = 5 * 366 * DAY_S * SECOND_US  # a host that ran nothing for so long has rather lost its time


@click.command("prune", cls=Command, help=TEXT, short_help="Remove what is old enough.", statuses=STATUSES)
@click.option("--keep", metavar="D", help="How long everything is kept (needed): 400d, 2y; a day at least.")
@click.option("--reason", metavar="TEXT", help="Why (needed, except with --dry-run); it is recorded with your login.")
@click.option("--cases-only", is_flag=True, help="Remove the text of case entries; leave the ledger as it is.")
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and what is held; do nothing.")
@click.option("--yes", is_flag=True, help="Do not ask on a terminal.")
@click.option("--vacuum", is_flag=True, help="Give the space back to the file system; starts wait meanwhile.")
@store_option
@click.pass_obj
def prune(
    environ: dict[str, str],
    keep: str | None,
    reason: str | None,
    cases_only: bool,
    dry_run: bool,
    yes: bool,
    vacuum: bool,
    store: str | None,
) -> int:
    """Say what would be removed, or remove it, a piece at a time, and say which entries tell it."""
    if keep is None:
        raise UsageError("prune: --keep D is needed: how long everything is kept (400d, 2y)")
    if not dry_run:
        reason = reason_of("prune", reason, "who prunes says why")
    now_us = clock.look().wall_us
    asked = Asked(keep, _before_us(keep, now_us), reason)
    place = find(environ, store)
    _doubt_the_clock(place, asked, now_us)
    asks = not yes and sys.stdin.isatty() and sys.stdout.isatty()
    if dry_run or asks:
        foreseen = _foresee(place, asked, cases_only=cases_only)
        page([foreseen.sentence("would remove", asked)])
        foreseen.say_what_stays()
        if dry_run or not foreseen:
            return 0
        if not click.confirm("Remove it?"):
            return 1
    done = _Sum()
    _prune_cases(environ, place, asked, done)
    if not cases_only:
        _prune_entries(environ, place, asked, done)
    page([done.sentence("removed", asked)])
    if not asks:
        done.say_what_stays()
    if vacuum:
        _compact(environ, place)
    return 0


def _doubt_the_clock(place: Place, asked: Asked, now_us: int) -> None:
    """Raise UsageError where everything would go and the newest entry is years old: the clock may have jumped ahead."""
    records = open_records(place)
    if records is None:
        return
    with records:
        head = records.head()
        newest_at = said(records, head.seq)["at"] if head is not None else None
    if newest_at is not None and from_rfc3339(newest_at) < min(asked.before_us, now_us - _IDLE_US):
        raise UsageError(
            f"prune: the newest entry is of {newest_at}, and now is {rfc3339(now_us)}: all that is on record would be"
            " old enough; is the clock right? If it is, let some run come first"
        )


def _before_us(keep: str, now_us: int) -> int:
    """Return the instant before which everything goes. Raises UsageError."""
    text = keep.strip().lower()
    found = _CALENDAR.fullmatch(text)
    try:
        if found is not None:
            return _calendar_us(int(found[1]), months=found[2].startswith("m"), now_us=now_us)
        if not text[-1:].isalpha():
            raise ValueError("a unit is wanted: 400d, 52w, 18mo, 2y")
        if (weeks := re.fullmatch(r"([0-9]{1,4})w", text)) is not None:
            text = f"{7 * int(weeks[1])}d"
        kept_s = values.duration(text)
        if kept_s < DAY_S:
            raise ValueError("a day is the least")
    except (ValueError, OverflowError) as error:
        raise UsageError(f"prune: --keep {values.short(keep)}: {error}") from None
    return now_us - round(kept_s) * SECOND_US


def _calendar_us(number: int, *, months: bool, now_us: int) -> int:
    from datetime import UTC, datetime, timedelta

    from dateutil.relativedelta import relativedelta

    if not number:
        raise ValueError("a day is the least")
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    back = relativedelta(months=number) if months else relativedelta(years=number)
    return (epoch + timedelta(seconds=now_us // SECOND_US) - back - epoch) // timedelta(microseconds=1)


def _foresee(place: Place, asked: Asked, *, cases_only: bool) -> _Sum:
    records = open_records(place)
    found = _Sum()
    if records is None:
        say(nothing_recorded(place))
        return found
    with records:
        holds, begin = held(records), 0
        while True:
            look = pruning.look(records, holds, asked.before_us, begin)
            found.add_chunk(look, 0)
            if look.next is None:
                break
            begin = look.next
        if not cases_only:
            for old in old_entries.foresee(records, holds, asked.before_us):
                found.add_entries(old, 0)
            found.add_holds(holds.holds if found.entries else ())
    return found


def _prune_cases(environ: dict[str, str], place: Place, asked: Asked, done: _Sum) -> None:
    begin: int | None = 0
    while begin is not None:
        now_us = clock.look().wall_us
        with writing(environ, place.kept, create=False) as tx:
            look = pruning.look(tx.store, held(tx.store), asked.before_us, begin)
            entry = 0
            if look.chunk is not None:
                entry = pruning.prune(tx, asked, look.chunk, look.passed.holds, now_us)
        done.add_chunk(look, entry)
        begin = look.next


def _prune_entries(environ: dict[str, str], place: Place, asked: Asked, done: _Sum) -> None:
    records = open_records(place)
    assert records is not None  # it was written just now
    with records:
        these = old_entries.to_look_at(records, asked.before_us)
    with steps("entries", sum(each.last_seq - each.first_seq + 1 for each in these)) as advance:
        for checkpoint in these:
            now_us = clock.look().wall_us
            with writing(environ, place.kept, create=False) as tx:
                holds = held(tx.store)
                old = old_entries.look(tx.store, holds, asked.before_us, checkpoint)
                entry = old_entries.prune(tx, asked, holds, old, now_us) if old.removed else 0
            done.add_entries(old, entry)
            if old.removed:
                done.add_holds(holds.holds)
            advance(checkpoint.last_seq - checkpoint.first_seq + 1)


def _compact(environ: dict[str, str], place: Place) -> None:
    kept = place.kept
    author = host.author(environ)
    with open_store(kept.store, author=author, create=False, witness_directory=kept.witness) as store:
        store.compact()


class _Sum:
    """What was, or would be, removed, and what was left alone."""

    def __init__(self) -> None:
        self.records = 0
        self.rejected = 0
        self.entries = 0
        self._stay = 0
        self._checkpoint = 0
        self._told: list[int] = []
        self._holds: dict[int, Hold] = {}
        self._unfinished: set[int] = set()

    def __bool__(self) -> bool:
        return bool(self.records or self.rejected or self.entries)

    def add_chunk(self, look: pruning.Look, entry: int) -> None:
        """Count what a look at case entries has found; `entry` tells it, 0 for none."""
        if look.chunk is not None:
            self.records += len(look.chunk.removed)
            self.rejected += len(look.chunk.rejected)
        self._told += [entry] if entry else []
        self.add_holds(look.passed.holds)
        self._unfinished.update(look.passed.unfinished)

    def add_entries(self, old: Old, entry: int) -> None:
        """Count what goes of the ledger."""
        if old.removed:
            self.entries += len(old.removed)
            self._checkpoint = old.checkpoint.seq
        self._stay = len(old.kept) if entry else self._stay + len(old.kept)
        self._told += [entry] if entry else []

    def add_holds(self, holds: Iterable[Hold]) -> None:
        """Note what keeps something from being removed."""
        self._holds |= {hold.seq: hold for hold in holds}

    def sentence(self, does: str, asked: Asked) -> str:
        """Return in words what `does` (would remove, removed) befall what, and which entries tell it."""
        before = f"from before {rfc3339(asked.before_us)}"
        if not self:
            return f"nothing is {before} that may be removed"
        parts = [f"{self.records:,} case entr{'y' if self.records == 1 else 'ies'}"] if self.records else []
        if self.rejected:
            parts.append(f"the text of {self.rejected:,} rejected line{'s' * (self.rejected != 1)}")
        if self.entries:
            parts.append(f"{self.entries:,} entr{'y' if self.entries == 1 else 'ies'} of the ledger")
        told = f"{does} {', '.join(parts)} {before}{_numbered(self._told)}"
        if self.entries:
            stays = f" ({self._stay:,} before it stay)" if self._stay else ""
            told += f"; verification starts at checkpoint {self._checkpoint}{stays}"
        return told

    def say_what_stays(self) -> None:
        """Say what is held, and which runs are not over."""
        holds = [self._holds[seq] for seq in sorted(self._holds)]
        for hold in holds[:_SHOWN]:
            say(f"prune: {line(in_words(hold.target))} stays: held by entry {hold.seq} ({line(hold.reason)})")
        if len(holds) > _SHOWN:
            say(f"prune: and {len(holds) - _SHOWN} more are held")
        for number in sorted(self._unfinished)[:_SHOWN]:
            say(f"prune: run {number} stays: it is not over, or not all of its case entries are on record")


def _numbered(entries: list[int]) -> str:
    if not entries:
        return ""
    return f" (entry {entries[0]})" if len(entries) == 1 else f" (entries {entries[0]} to {entries[-1]})"

"""What can be asked of a store. Every question is one statement or a page of one: nothing stays open between them."""

from __future__ import annotations

from runguard.errors import StoreError
from runguard.model import Earlier, Revision, Schedule
from runguard.record import NamedTuple
from runguard.store import lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from runguard.store.answered import Refusal, Span, Start, Waiver

PAGE = 500
_FAR_US = 1 << 62


class Run(NamedTuple):
    """A start, or a refused start, as the tables have it. Its fields are the columns of `run_columns`, in order."""

    start_seq: int  # entry of the start; runs are ordered by it, never by their clocks
    finish_seq: int | None
    late_seq: int | None  # the late finish of a run that had been taken for lost
    run_id: str
    number: int
    job: str
    revision: int | None
    window_key: str | None
    window_start_us: int | None
    due_us: int | None
    label: str | None
    nominal: str | None
    zone: str | None
    attempt: int | None  # None for a refused start
    trigger: str
    reason: str | None  # a person's
    outcome: str
    exit_status: int | None  # the command's
    returned: int | None  # ours
    signal: int | None
    why: str | None  # the machine's reason of the outcome
    started_us: int
    finished_us: int | None
    duration_us: int | None
    host: str
    boot_id: str | None
    guard_pid: int | None
    actor: str | None
    supersedes: str | None
    superseded_by: str | None
    suspect: str | None  # why a success is doubted
    covers_first_us: int | None  # a catch-up also answers the windows of these dues, both included
    covers_last_us: int | None
    covers_count: int | None


class Ping(NamedTuple):
    """What became of one ping. `target` is the URL with its secrets masked."""

    event: str  # start | success | failure | log
    style: str
    target: str
    verdict: str  # accepted | retry | final
    http_status: int | None
    tries: int
    sent_us: int | None
    duration_us: int | None
    error: str | None


class Head(NamedTuple):
    """The last entry of the ledger: its number and the SHA-256 of its line."""

    seq: int
    hash: str


class InARow(NamedTuple):
    """Refusals of a job since the last start that ran."""

    starts: int
    since_us: int  # when the first of them was; 0 where there is none


class Reader:
    """The questions. A subclass sends the statements."""

    path: str

    def rows(self, name: str, **parameters: Any) -> list[tuple[Any, ...]]:
        """Send the named statement and return all rows. Raises StoreError."""
        raise NotImplementedError

    def head(self) -> Head | None:
        """Return the last entry, or None while the ledger is empty."""
        for seq, line in self.rows("head"):
            return Head(seq, lines.digest(line))
        return None

    def wants_checkpoint(self, head_seq: int, now_us: int) -> bool:
        """Tell whether the ledger that ends at `head_seq` wants one: once a day and every 10,000 entries."""
        ((last_seq, at_us),) = self.rows("checkpointed")
        aged = at_us is not None and now_us - at_us >= lines.CHECKPOINT_EVERY_US
        return bool(aged or head_seq - last_seq >= lines.CHECKPOINT_ENTRIES)

    def latest(self, job: str, key: str, due_us: int) -> Earlier | None:
        """Return what decides a window: its latest start or waiver by sequence, refusals left out, or None.

        A withdrawal undoes every earlier waiver that matches. A run that covers the window decides where there is
        nothing else: what was started or waived before was not missing, and a span only runs across it.
        """
        found, start_seq = None, 0
        for seq, *row in self.rows("latest", job=job, window_key=key, due_us=due_us):
            found = Earlier(*row)
            start_seq = seq if found.attempt else 0
        for seq, withdrawn, host in self.rows("latest_waiver", job=job, window_key=key, due_us=due_us):
            if seq > start_seq and not withdrawn:
                run_id, attempt = (found.run_id, found.attempt) if found and start_seq else ("", 0)
                return Earlier(run_id, None, "waived", attempt, host)
        return found

    def running(self, job: str) -> list[Run]:
        """Return the runs of a job that have no finish, oldest first."""
        return [Run(*row) for row in self.rows("running", job=job)]

    def last_started(self, job: str) -> Run | None:
        """Return the run of a job that was started last, refused starts left out, or None."""
        return next((Run(*row) for row in self.rows("last_started", job=job)), None)

    def last_ended(self, job: str) -> Run | None:
        """Return the run of a job that was started last among those that have a finish, or None."""
        return next((Run(*row) for row in self.rows("last_ended", job=job)), None)

    def registered_us(self, job: str) -> int | None:
        """Return when the job became known, or None."""
        return self._first("registered_at", job=job)

    def refused_in_a_row(self, job: str) -> InARow:
        """Return the starts that were refused, but not for being done already, since the last one that ran."""
        last = self.last_started(job)
        ((starts, since_us, _),) = self.rows("refusals_since", job=job, seq=last.start_seq if last else 0)
        return InARow(starts, since_us or 0)

    def registered(self, job: str) -> bool:
        """Tell whether the job is known, with or without a schedule. Raises StoreError."""
        return bool(self.rows("registered", job=job))

    def revisions(self, job: str) -> list[Revision]:
        """Return the revisions of a job's schedule, oldest first; none for a job without a schedule."""
        return [
            Revision(row[0], None if row[1] is None else Schedule(*row[1:6]), row[6])
            for row in self.rows("revisions", job=job)
        ]

    def revised_us(self, job: str) -> int | None:
        """Return when the latest revision of a job's schedule was opened, or None."""
        return self._first("last_revised", job=job)

    def forgotten_us(self) -> int | None:
        """Return up to which due windows are not expected any more, because what answered them was pruned, or None."""
        return self._first("forgotten")

    def retired(self, job: str) -> bool:
        """Tell whether nothing is expected of the job any more: its latest revision retired it."""
        return bool(self.rows("retired", job=job))

    def coverage(self, job: str, after_us: int, until_us: int) -> Iterator[Start]:
        """Yield every start, refused ones too, that bears on a due in `(after_us, until_us]`, by sequence.

        All of the span is read at once: ask for long spans in pieces.
        """
        from runguard.store import answered

        return answered.coverage(self, job, after_us, until_us)

    def answered_dues(self, job: str, after_us: int, until_us: int) -> list[int]:
        """Return the dues in `(after_us, until_us]` that some start was let run for, ascending, each once.

        Dues that are only covered by another window's run are not among them: see `covers`.
        """
        return [due_us for (due_us,) in self.rows("answered_dues", job=job, after_us=after_us, until_us=until_us)]

    def answered_keys(self, job: str, keys: Iterable[str]) -> set[str]:
        """Return those of `keys` for whose windows some start was let run, whenever that was due."""
        return {key for key in keys if self.rows("key_answered", job=job, window_key=key)}

    def covers(self, job: str, after_us: int, until_us: int) -> list[Span]:
        """Return what catch-ups cover of the dues in `(after_us, until_us]`, by sequence."""
        from runguard.store.answered import Span

        return [Span(*row) for row in self.rows("covers", job=job, after_us=after_us, until_us=until_us)]

    def refusals(self, job: str, after_us: int, until_us: int) -> list[Refusal]:
        """Return the refused starts with a due in `(after_us, until_us]`, by due."""
        from runguard.store.answered import Refusal

        return [Refusal(*row) for row in self.rows("refusals", job=job, after_us=after_us, until_us=until_us)]

    def waivers(self, job: str, after_us: int | None = None, until_us: int | None = None) -> list[Waiver]:
        """Return the waivers of a job and their withdrawals by sequence.

        Those of spans that do not reach into `(after_us, until_us]` are left out; those of one window never are.
        """
        from runguard.store import answered

        return answered.waivers(self, job, -_FAR_US if after_us is None else after_us, until_us or _FAR_US)

    def last_answered_due_us(self, job: str) -> int | None:
        """Return the greatest due that some start of the job was let run for, or None."""
        return self._first("last_answered_due", job=job)

    def last_finished_due_us(self, job: str) -> int | None:
        """Return the due of the last run, by sequence, that had a window and came to an end (lost is no end)."""
        return self._first("last_finished_due", job=job)

    def next_number(self) -> int:
        """Return the next short number. Runs and refusals share them; only inside a write is it still free later."""
        return (self._first("last_number") or 0) + 1

    def run(self, run_id: str) -> Run | None:
        """Return the run with this whole id, or None."""
        for row in self.rows("run_by_id", run_id=run_id):
            return Run(*row)
        return None

    def find_run(self, text: str) -> Run:
        """Return the run that a person names: its number, its id, or the first four or more characters of its id.

        Raises UsageError where no run or several runs are meant; the message names the candidates or the nearest.
        """
        from runguard.store.finding import find_run

        return find_run(self, text)

    def history(
        self,
        job: str | None = None,
        *,
        since_us: int | None = None,
        until_us: int | None = None,
        outcome: str | None = None,
        window_key: str | None = None,
        limit: int | None = None,
    ) -> Iterator[Run]:
        """Yield runs and refusals started in `[since_us, until_us)`, newest first by sequence, at most `limit`.

        Reads a page, gives up the database, yields: a slow printer never holds up a start.
        """
        span = {
            "since_us": -_FAR_US if since_us is None else since_us,
            "until_us": _FAR_US if until_us is None else until_us,
        }
        floor, last = 0, _FAR_US
        if since_us is not None or until_us is not None:
            floor, last = self.rows("history_span", **span)[0]
            if floor is None:
                return
        asked: dict[str, Any] = {**span, "floor": floor, "outcome": outcome}
        if job is None:
            name, asked["window_key"] = "history", window_key
        elif window_key is None:
            name, asked["job"] = "history_of_job", job
        else:
            name, asked["job"], asked["window_key"] = "history_of_window", job, window_key
        before, left = last + 1, limit
        while left is None or left > 0:
            size = PAGE if left is None else min(PAGE, left)
            page = self.rows(name, **asked, before=before, page=size)
            for row in page:
                yield Run(*row)
            if len(page) < size:
                return
            before = page[-1][0]
            left = None if left is None else left - size

    def entries(self, run_id: str) -> list[dict[str, Any]]:
        """Return what the ledger says of a run: its start or refusal, its finish, a late finish. None: no entries.

        Raises StoreError where one of them is damaged: it is no JSON, or the entry after it names another hash.
        """
        run = self.run(run_id)
        if run is None:
            return []
        found = []
        for seq in (run.start_seq, run.finish_seq, run.late_seq):
            if seq is not None:
                found += [self._sound(seq, line) for (line,) in self.rows("line_at", seq=seq)]
        return found

    def output(self, run_id: str) -> tuple[bytes, bytes] | None:
        """Return the kept head and tail of a run's output as the capture framed them, or None."""
        for head, tail in self.rows("output", run_id=run_id):
            return head, tail
        return None

    def pings(self, run_id: str) -> list[Ping]:
        """Return what became of a run's pings, in the order in which they were recorded."""
        return [Ping(*row) for row in self.rows("pings", run_id=run_id)]

    def jobs(self) -> list[str]:
        """Return the name of every job that was ever registered or started, sorted."""
        return [job for (job,) in self.rows("jobs")]

    def _sound(self, seq: int, line: bytes) -> dict[str, Any]:
        entry = self._parsed(seq, line)
        for (after,) in self.rows("line_at", seq=seq + 1):
            if self._parsed(seq + 1, after).get("prev") != lines.digest(line):
                raise StoreError(self.path, f"entry {seq} of the ledger is damaged: entry {seq + 1} names another hash")
        return entry

    def _parsed(self, seq: int, line: bytes) -> dict[str, Any]:
        try:
            return lines.parse(line)
        except (ValueError, RecursionError) as error:
            raise StoreError(self.path, f"entry {seq} of the ledger is damaged: {error}") from error

    def _first(self, name: str, **parameters: Any) -> int | None:
        for (value,) in self.rows(name, **parameters):
            return value  # type: ignore[no-any-return]
        return None

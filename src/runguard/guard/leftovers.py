"""What earlier runs left behind: runs without a finish, run files that nobody needs. Imported where there is any."""

from __future__ import annotations

import os

from runguard.guard import liveness
from runguard.guard.casefile import ITEMS, OVER
from runguard.guard.excerpts import masked
from runguard.guard.frames import omitted_bytes
from runguard.guard.provenance import small_sha256
from runguard.instant import SECOND_US

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from typing import Any

    from runguard.guard.liveness import Life
    from runguard.store.database import Transaction
    from runguard.store.reads import Run

    Mask = tuple[tuple[str, ...], tuple[str, ...]]  # secrets and patterns

_ABANDONED_US = 3600 * SECOND_US  # nobody takes that long between creating a run file and locking it
# A start looks at so few files of other runs: among hundreds that start at once, looking at all would take seconds.
_MOST_FILES = 20


class Leftovers:
    """Looks at the run files in the directory `runs` for a start at `at_us`, and keeps masked what they hold."""

    def __init__(self, tx: Transaction, runs: str, at_us: int, mask: Mask) -> None:
        self._tx = tx
        self._runs = runs
        self._at_us = at_us
        self._mask = mask
        self.spent: list[str] = []  # files that nobody needs once the transaction is committed
        self.entries: list[str] = []  # files of case entries whose run files have gone

    def close_dead(
        self, running: Iterable[Run], ended: Collection[str] = (), *, by: str = ""
    ) -> tuple[list[tuple[str, str]], tuple[Run, Life] | None]:
        """Close those of `running` that died: return what to say of them and aside, and one that lives still, if any.

        Of those in `ended` it is known how: they were stopped to make way for the run `by`.
        """
        said: list[tuple[str, str]] = []
        alive = None
        for run in running:
            life = liveness.judge(run.run_id, run.guard_pid, run.boot_id, self._runs)
            if life.state != liveness.LOST:
                alive = alive or (run, life)
                continue
            tally = self._close_items(run.run_id)
            head, tail = (masked(each, *self._mask) for each in _left(life))
            fields = {**_lost_fields(run, life, head, tail), "items": tally}
            if run.run_id in ended:
                fields |= {"outcome": "killed", "why": "overlap", "killed_by": by}
            self._tx.append("run.finish", self._at_us, fields)
            self._tx.keep_output(run.run_id, head, tail)
            if run.run_id not in ended:
                uncertain, names = self._uncertain(run, tally)
                said.append((f"run {run.number} is lost: {life.because}{uncertain}", names))
            unlink(os.path.join(self._runs, run.run_id))
        return said, alive

    def _close_items(self, run_id: str) -> dict[str, Any] | None:
        """Return what the end of a dead run says of its case entries, and put the end of their lists on record."""
        from runguard.guard.dead_cases import close

        tally = close(self._tx, self._runs, run_id)
        paths = (os.path.join(self._runs, run_id + suffix) for suffix in (".done", ".uncertain"))
        self.spent += [path for path in paths if os.path.exists(path)]
        if tally is None or not (tally["pending_bytes"] or tally["beyond_bytes"]):
            self.spent.append(os.path.join(self._runs, run_id + ".items"))
        return tally

    def _uncertain(self, run: Run, tally: dict[str, Any] | None) -> tuple[str, str]:
        """Return a clause that counts the cases of a lost run that nobody knows about, and one that names them."""
        if tally is None or not tally["uncertain"]:
            return "", ""
        from runguard.guard.earlier_cases import counted, named, uncertain_after

        cases = uncertain_after(self._tx.store, run)
        return f"; {counted(cases)}", named(cases)

    def take_over(self, names: list[str], ours: str) -> Iterator[str]:
        """Yield the run files that nobody needs any more, their output kept where its run is on record.

        Those of living runs are locked; a run that has a start and no end is its own job's to close. Of many, only
        those are looked at that follow our own in order: its name is random, so each is met soon.
        """
        names = sorted(names, key=lambda name: (name < ours, name))
        self._look_for_orphans([name for name in names if "." in name[1:]])  # RUN_ID.items, .done, .uncertain, .kill
        for run_id in [name for name in names if "." not in name[1:]][:_MOST_FILES]:
            path = os.path.join(self._runs, run_id)
            if liveness.held(path):
                continue
            if run_id.startswith("."):  # killed before it had its lock, or just about to take it
                if self._at_us - _changed_us(path, self._at_us) > _ABANDONED_US:
                    yield path
                continue
            run = self._tx.store.run(run_id)
            if run is not None and run.outcome == "running":
                continue
            left = liveness.left_by(path)
            if run is not None and left is not None and self._tx.store.output(run_id) is None:
                self._tx.keep_output(run_id, masked(left.head, *self._mask), masked(left.tail, *self._mask))
            yield path
            yield from (path + suffix for suffix in (".done", ".uncertain") if os.path.exists(path + suffix))
            if _size(path + ".items") == 0:
                yield path + ".items"

    def _look_for_orphans(self, names: list[str]) -> None:
        """Find what runs left behind whose own files have gone, among a few of the files `names`."""
        paths = [os.path.join(self._runs, name) for name in names[:_MOST_FILES] if not name.endswith(OVER)]
        orphans = [path for path in paths if not os.path.exists(path.rpartition(".")[0])]
        self.entries = [path for path in orphans if path.endswith(ITEMS)]
        self.spent += [path for path in orphans if not path.endswith(ITEMS)]


def _size(path: str) -> int | None:
    try:
        return os.stat(path).st_size
    except OSError:
        return None


def _changed_us(path: str, now_us: int) -> int:
    try:
        return os.lstat(path).st_mtime_ns // 1000
    except OSError:
        return now_us  # it has just got its lock and its name


def unlink(path: str) -> None:
    """Remove a run file."""
    try:
        os.unlink(path)
    except OSError:
        return  # gone, or its directory is read-only: the run is closed all the same


def _left(life: Life) -> tuple[bytes, bytes]:
    return (life.left.head, life.left.tail) if life.left else (b"", b"")


def _lost_fields(run: Run, life: Life, head: bytes, tail: bytes) -> dict[str, Any]:
    left = life.left
    omitted = omitted_bytes((left.stdout_bytes, left.stderr_bytes), (left.head, left.tail)) if left else (0, 0)
    return {
        "run_id": run.run_id,
        "outcome": "lost",
        "exit_status": None,
        "returned": None,
        "signal": None,
        "why": life.because,
        "finished": None,
        "duration_s": None,
        "command_pid": life.command_pid,
        "output": {
            "merged": left.merged,
            "stdout": {"bytes": left.stdout_bytes, "sha256": None, "omitted_bytes": omitted[0]},
            "stderr": {"bytes": left.stderr_bytes, "sha256": None, "omitted_bytes": omitted[1]},
            "omitted_bytes": left.omitted_bytes,
            "head_sha256": small_sha256(head),
            "tail_sha256": small_sha256(tail),
        }
        if left
        else None,
        "remarks": [],
    }

"""All that was ever said of a case, by run: on record, erased since, waiting in a file, or torn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from runguard.evidence import later, quoting, ran, waiting
from runguard.evidence.quoting import Entry, Quotes
from runguard.evidence.ran import Facts, Moment
from runguard.evidence.touches import REMOVED, Said, pair
from runguard.evidence.waiting import Waiting

_LAST = 1 << 62  # where a run is told that no entry of the ledger tells yet


class Asked(NamedTuple):
    """What is asked about a case: as of `moment`; what waits in the journal as `Journal.entries` tells it."""

    case: str
    moment: Moment
    grace_us: Callable[[str], int]  # by job
    journaled: Sequence[Entry] = ()


class Found:
    """What was said. `runs` by id; `on_case` are entries that name the case, `pieces` rejected ones that seem to;
    `files` are what is not on record yet, `unread` what of it could not be seen.
    """

    def __init__(self, quotes: Quotes, asked: Asked) -> None:
        self.runs: dict[str, Facts] = {}
        self.on_case: list[Entry] = []
        self.pieces: list[Facts] = []
        self.files: list[Waiting] = []
        self.unread: list[str] = []
        self._quotes = quotes
        self._asked = asked
        self._said: dict[str, list[Said]] = {}
        self._removed: dict[str, dict[int, list[Said]]] = {}  # by run, by the entry that removed them
        if spellable(asked.case):
            self._find()

    @property
    def any(self) -> bool:
        """Whether the case comes up at all."""
        return bool(self.runs or self.on_case or self.pieces or any(file.said or file.torn for file in self.files))

    def in_order(self) -> list[Facts]:
        """Return the runs in the order in which they were started."""
        return sorted(self.runs.values(), key=_started_by)

    def touches(self, run_id: str | None = None) -> list[Facts]:
        """Return what the runs, or one of them, did with the case, in order, by the JSON contract."""
        runs = self.in_order() if run_id is None else [self.runs[run_id]] if run_id in self.runs else []
        return [touch for run in runs for touch in self._of_run(run)]

    def _of_run(self, run: Facts) -> list[Facts]:
        run_id = run["run_id"]
        whose = {"run_id": run_id, "run": run["number"], "job": run["job"]}
        told = []
        for touch in pair(self._said.get(run_id, ())):
            waits = any(each.record is None for each in touch.said)
            file = next((file.path for file in self.files if file.run_id == run_id), None) if waits else None
            told.append({**whose, **touch.facts(), "removed_by": None, "file": file})
        for seq, said in self._removed.get(run_id, {}).items():
            records = [each.facts() for each in said]
            told.append({**whose, **pair(said)[0].facts(), "state": REMOVED, "records": records, "removed_by": seq,
                         "file": None})  # fmt: skip
        return sorted(told, key=lambda touch: touch["records"][0]["record"] or _LAST)

    def _find(self) -> None:
        quotes, (case, moment, *_) = self._quotes, self._asked
        if not moment.past:  # before the store is asked: what is taken in meanwhile must not be missed
            self.files, self.unread = waiting.in_files(quotes.reader, case, moment.runs)
        offsets: dict[str, set[int]] = {}
        for start_seq, records in quoting.of_case(quotes.reader, case).items():
            known = [each for each in records if not moment.past or each.received_us <= moment.at_us]
            run = ran.told(quotes, start_seq, moment) if known else None
            if run is not None:
                run_id = run["run_id"]
                self.runs[run_id] = run
                said = [quotes.record(run_id, each) for each in known]
                self._said[run_id] = [each for each in said if each is not None]
                offsets[run_id] = {each.file_offset for each in known}
        self._add_waiting(offsets)
        # What was erased since cannot be told as it was then, and an answer without it would be wrong.
        on_case = later.on_case(quotes, case, moment._replace(past=False))
        self.on_case = [entry for entry in on_case if moment.knows(entry)]
        self._find_removed(on_case)
        self.pieces = waiting.rejected(quotes.reader, case, moment)

    def _add_waiting(self, offsets: Mapping[str, set[int]]) -> None:
        """Add what waits in files; `offsets` of each run are on record by now."""
        for file in self.files:
            said = [each for offset, each in file.said if offset not in offsets.get(file.run_id, ())]
            if said and self._has_run(file.run_id):
                self._said.setdefault(file.run_id, []).extend(said)
            elif said:
                self.unread.append(f"{file.path} names this case, and its run is not on record: uncertain")

    def _find_removed(self, on_case: Iterable[Entry]) -> None:
        """Find what was erased: that it was, and by which entry."""
        for entry in on_case:
            for record in entry["records"] if entry["kind"] == "redact" else ():
                if self._has_run(record["run"]):
                    said = Said(record["seq"], REMOVED, {}, None, record["sha256"])
                    self._removed.setdefault(record["run"], {}).setdefault(entry["seq"], []).append(said)

    def _has_run(self, run_id: str) -> bool:
        """Tell whether a run is on record, or waits in the journal; then it is one of ours."""
        if run_id in self.runs:
            return True
        run = self._quotes.reader.run(run_id)
        told: Facts | None = None
        if run is not None:
            told = ran.told(self._quotes, run.start_seq, self._asked.moment)
        else:
            kinds: dict[str, Any] = {
                entry["kind"]: entry for entry in self._asked.journaled if entry["run_id"] == run_id
            }
            if "run.start" in kinds:
                told = ran.of_entries(kinds["run.start"], kinds.get("run.finish"))
        if told is not None:
            self.runs[run_id] = told
        return told is not None


def spellable(case: str) -> bool:
    """Return whether a case id is a text that a record can hold: no byte that was no UTF-8."""
    return case.isascii() or not any("\ud800" <= character <= "\udfff" for character in case)


def _started_by(run: Facts) -> int:
    return run["entries"][0]["entry"] if run["entries"] else _LAST

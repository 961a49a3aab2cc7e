"""What the record does not know about a case, said as plainly as what it does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from runguard.evidence.touches import NOTED, UNCERTAIN
from runguard.instant import rfc3339

Facts = dict[str, Any]

# What arrived nobody can know here. Names of channels are the job's own words.
_LETTER = ("letter", "post", "mail", "paper", "print")
_CHANNELS = {"email": "the e-mail", "e-mail": "the e-mail", "sms": "the text message", "text": "the text message",
             "fax": "the fax"}  # fmt: skip
_DOUBTFUL = ("lost", "running", "killed", "timed_out", "cancelled", "superseded")


def about(
    touches: Sequence[Facts],
    runs: Sequence[Facts],
    rejects: Iterable[Facts],
    files: Iterable[Any],
    unread: Iterable[str],
    journaled: Sequence[Any],
) -> Iterator[Facts]:
    """Yield what is not known: a word for it, a sentence, the run and the entries of the ledger that show it."""
    yield from _of_touches(touches, {run["run_id"]: run for run in runs})
    for reject in rejects:
        whose = name(reject)
        text = (
            f"a piece of {whose} that is no case entry seems to name this case ({reject['why']}; byte "
            f"{reject['offset']}, {reject['bytes']} bytes, sha256 {reject['sha256']}): what was done is uncertain"
        )
        yield _fact("rejected", text, reject["run"])
    for run in runs:
        yield from _of_run(run)
    for file in files:
        if file.torn:
            text = f"{file.path} has {_count(file.torn, 'line')} that seem{'s' * (file.torn == 1)} to name this case"
            yield _fact("rejected", f"{text}, no case entry and not on record yet: uncertain", None)
        if file.unread_bytes:
            yield _fact("beyond", f"{file.unread_bytes:,} bytes of {file.path} were not searched", None)
    for text in unread:
        yield _fact("unread", text, None)
    if journaled:
        waits = "waits" if len(journaled) == 1 else "wait"
        text = f"{_count(len(journaled), 'entry', 'entries')} of runs {waits} in the journal and not on record yet"
        yield _fact("journal", text, None)


def of_pruned(pruned: Sequence[tuple[int, int, int, int, int | None]]) -> Iterator[Facts]:
    """Yield that case entries were pruned, whoever they were about; `pruned` are rows of that statement."""
    if pruned:
        before_us, seq = max((before_us, seq) for seq, before_us, *_ in pruned)
        text = f"case entries from before {rfc3339(before_us)} were pruned: whether they named this case is not known"
        yield _fact("pruned", text, None, [seq])


def of_recovered(lost: Iterable[tuple[int, str]]) -> Iterator[Facts]:
    """Yield that entries were lost with a damaged store, whoever they were about: what, by the entry that names it."""
    for seq, what in lost:
        text = f"{what} with a damaged store: whether that named this case is not known"
        yield _fact("recovered", text, None, [seq])


def name(run: Facts) -> str:
    """Return how a run, or what names one, is called: by its number, or by its id where it has none yet."""
    number = run["run"] if "run" in run else run["number"]
    return f"run {number}" if number is not None else f"run {str(run['run_id'])[:8]}"


def _of_touches(touches: Sequence[Facts], runs: dict[str, Facts]) -> Iterator[Facts]:
    """Yield what no job can report, then what these did not."""
    sent = dict.fromkeys(_sent(touch["sent"]) for touch in touches if touch["sent"])
    if not sent and any(touch["state"] != NOTED for touch in touches):
        yield _fact("reported", "runguard records what the job reported; it cannot confirm that it was so", None)
    for what in sent:
        text = f"runguard records what the job reported; it cannot confirm that {what} was delivered"
        yield _fact("delivery", text, None)
    for touch in touches:
        run = runs[touch["run_id"]]
        entries = [each["entry"] for each in run["entries"]]
        if touch["state"] == UNCERTAIN:
            yield _fact("uncertain", _uncertain(touch, run), touch["run"], entries)
        elif touch["state"] in ("done", "failed") and not any(each["said"] == "intent" for each in touch["records"]):
            text = f"{touch['action']} was reported {touch['state']} in {name(touch)} without an intent before it"
            yield _fact("unannounced", text, touch["run"], entries)
        if touch["file"]:
            text = f"what {name(touch)} says in {touch['file']} is not on record yet"
            yield _fact("pending", text, touch["run"], entries)


def _uncertain(touch: Facts, run: Facts) -> str:
    first = touch["records"][0]
    at = str(first["at"] or first["received_at"] or "")
    clock = at.partition("T")[2] or at
    clock = clock.partition(".")[0] + "Z" if clock.endswith("Z") and "." in clock else clock
    so_far = " so far; the run is still running" if run["outcome"] == "running" else ""
    where = f"record {first['record']} of {name(run)}" if first["record"] else f"{name(run)}, not on record yet"
    said = f"intent at {clock or 'an unknown time'} without a result{so_far}: uncertain"
    return f"{said}: whether {touch['action']} was done is not known ({where})"


def _of_run(run: Facts) -> Iterator[Facts]:
    """Yield what else a run may have said or done that is not on record."""
    number, entries = run["number"], [each["entry"] for each in run["entries"]]
    items = run["items"] or {}
    if items.get("rejected"):
        were = "was rejected: what it says" if items["rejected"] == 1 else "were rejected: what they say"
        text = f"{_count(items['rejected'], 'line')} of {name(run)} {were} is not known"
        yield _fact("rejected", text, number, entries)
    if items.get("beyond_bytes"):
        text = f"{items['beyond_bytes']:,} bytes of {name(run)} were over the limit and are not on record"
        yield _fact("beyond", text, number, entries)
    if items.get("pending_bytes"):
        text = f"{items['pending_bytes']:,} bytes of {name(run)} are not on record yet"
        yield _fact("pending", text, number, entries)
    if items.get("removed"):
        text = (
            f"the file of case entries of {name(run)} was removed before all of it was read: what it said is not known"
        )
        yield _fact("removed", text, number, entries)
    if run["outcome"] in _DOUBTFUL:
        why = f" ({run['why']})" if run["why"] else ""
        said = "is still running" if run["outcome"] == "running" else f"was {run['outcome'].replace('_', ' ')}"
        said = said.replace("was timed out", "timed out")
        yield _fact("end", f"{name(run)} {said}{why}: what it did after its last entry is not known", number, entries)
    if run["list_entry"] is None:
        text = f"no entry of the ledger names the list of the case entries of {name(run)} yet"
        yield _fact("list", text, number, entries)
    unhashed = [code["path"] for code in (run["program"], *(run["inputs"] or ())) if code and not code.get("sha256")]
    if unhashed or run["program"] is None:
        which = ", ".join(unhashed) or "the program"
        text = f"{which} was not hashed when {name(run)} was started: which version it was is not known"
        yield _fact("code", text, number, entries)


def _sent(sent: object) -> str:
    channel = sent.get("channel") if isinstance(sent, dict) else None
    word = channel.lower() if isinstance(channel, str) else ""
    return "the letter" if word in _LETTER else _CHANNELS.get(word, "what was sent")


def _fact(what: str, text: str, run: int | None, entries: Sequence[int] = ()) -> Facts:
    return {"what": what, "text": text, "run": run, "entries": list(entries)}


def _count(number: int, noun: str, nouns: str = "") -> str:
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"

"""What earlier attempts did with their cases: for a further attempt in their window. Imported only then."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from runguard.errors import reason
from runguard.evidence import lists
from runguard.evidence.entries import parse
from runguard.guard.casefile import ITEMS
from runguard.guard.dead_cases import take_in
from runguard.store import items

if TYPE_CHECKING:
    from collections.abc import Iterable

    from runguard.guard.voice import Voice
    from runguard.store.database import Store
    from runguard.store.reads import Reader, Run

_GOOD, _BAD = ("done", "no_action"), ("failed", "skipped")
_NAMED = 20  # cases in one line


def variables(store: Store, run_id: str, earlier: list[Run], runs: str, voice: Voice) -> dict[str, str]:
    """Write which cases the runs `earlier`, newest first, have done, and which are uncertain, as files in `runs`.

    Returns their variables for the run `run_id`: RUNGUARD_DONE and RUNGUARD_UNCERTAIN. Uncertain cases are said by
    name. What dead guards left is taken in first.
    """
    for run in earlier:
        if os.path.exists(path := os.path.join(runs, run.run_id + ITEMS)):
            take_in(store, path, run, voice)
    done, uncertain = states(store, earlier)
    if uncertain:
        them = "it" if len(uncertain) == 1 else "them"
        voice(counted(uncertain), f"{named(uncertain)}; RUNGUARD_UNCERTAIN names {them} to the command")
    found = {}
    for name, suffix, cases in (("RUNGUARD_DONE", ".done", done), ("RUNGUARD_UNCERTAIN", ".uncertain", uncertain)):
        path = os.path.join(runs, run_id + suffix)
        try:
            _write(path, cases)
            found[name] = path
        except OSError as error:
            voice(f"{path}: {reason(error)}; the command cannot know which cases are {suffix[1:]}")
    return found


def states(reader: Reader, runs: Iterable[Run]) -> tuple[list[str], list[str]]:
    """Return the cases that are done, and those that are uncertain, both in order.

    `runs` are newest first: the latest that had an intent or a result of a case decides. It is uncertain with an intent
    that has no result, and done where for each action the last result is done or no_action.
    """
    seen: set[str] = set()
    done: list[str] = []
    uncertain: list[str] = []
    for run in runs:
        open_cases = {each.case for each in items.still_open(reader, run.start_seq)}
        good, bad = _results(reader, run.start_seq)
        uncertain += open_cases - seen
        done += {
            case
            for case in good - open_cases - seen
            if case not in bad or _done_in_the_end(reader, run.start_seq, case)
        }
        seen |= open_cases | good | bad
    return sorted(done), sorted(uncertain)


def uncertain_after(reader: Reader, run: Run) -> list[str]:
    """Return the cases that are uncertain after a run, in order."""
    return sorted({each.case for each in items.still_open(reader, run.start_seq)})


def counted(cases: list[str]) -> str:
    """Return a clause that counts uncertain cases."""
    one = len(cases) == 1
    return f"{len(cases):,} case{'' if one else 's'} {'is' if one else 'are'} uncertain"


def named(cases: list[str]) -> str:
    """Return the rest of the clause, which names them. It is said and not recorded: the ledger is never edited."""
    names = ", ".join(spelled(case) for case in cases[:_NAMED])
    more = f" and {len(cases) - _NAMED:,} more" if len(cases) > _NAMED else ""
    return f": {names}{more}"


def spelled(case: str) -> str:
    """Return a case id as one line: as it is, or as a JSON text where it holds a control character or begins with `"`.

    So a line that begins with `"` is always JSON, and any other the id itself.
    """
    plain = not case.startswith('"') and all(character >= " " and character != "\x7f" for character in case)
    return case if plain else json.dumps(case)


def _results(reader: Reader, start_seq: int) -> tuple[set[str], set[str]]:
    """Return the cases of a run with a good result, and those with another one."""
    good: set[str] = set()
    bad: set[str] = set()
    for case, said in items.words(reader, *lists.bounds(start_seq)):
        if said in _GOOD:
            good.add(case)
        elif said in _BAD:
            bad.add(case)
    return good, bad


def _done_in_the_end(reader: Reader, start_seq: int, case: str) -> bool:
    """Return whether the last result of every action of a case is a good one."""
    last = {}
    for record in items.of_case(reader, case):
        if lists.place(record.id)[0] == start_seq and record.said in (*_GOOD, *_BAD):
            last[parse(lists.item_of(record.line))["action"]] = record.said
    return all(said in _GOOD for said in last.values())


def _write(path: str, cases: list[str]) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(fd, "w", encoding="utf-8", newline="\n") as file:
        os.fchmod(fd, 0o600)  # whatever the umask
        file.writelines(spelled(case) + "\n" for case in cases)

"""Whatever a daemon fired over a change of offset: each window is answered once, and its second firing is told."""

from __future__ import annotations

from collections import Counter

from fired import ROWS, firings
from runguard import zones
from runguard.guard.decide import Proceed, Question, decide
from runguard.model import Earlier, Schedule
from runguard.schedule.revisions import resolve, timetable


def test_each_window_runs_once_and_every_further_firing_is_refused_with_a_reason() -> None:
    told: Counter[str] = Counter()
    for row in ROWS:
        expected = timetable(Schedule(row["schedule"], row["tz"]), zones.load(row["tz"]).zone)
        done: dict[str, Earlier] = {}
        for number, fired_us in enumerate(firings(row), start=1):
            resolution = resolve(expected, fired_us)
            key = resolution.window.key
            answer = decide(
                Question(
                    resolution.window,
                    done.get(key),
                    off_schedule=resolution.off_schedule,
                    next_in_us=resolution.next_due_us - fired_us,
                )
            )
            assert isinstance(answer, Proceed) == (key not in done), row
            if isinstance(answer, Proceed):
                done[key] = Earlier(f"run {number}", number, "succeeded", 1, "host")
                told["run"] += 1
            else:
                assert answer.status == 0
                told[f"{row['daemon']}: {answer.why}"] += 1
    # Off schedule: daemons that kept the old offset, and second occurrences close to the next due.
    assert told == {
        "run": 2442,
        "debian: duplicate": 21,
        "cronie: duplicate": 37,
        "cronie: off-schedule": 9,
        "busybox: duplicate": 44,
        "busybox: off-schedule": 3,
    }
